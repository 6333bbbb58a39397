# mdlc: builds the compiler and everything around it. GNU make.
#
#   make            the compiler, build/mdlc           make deps      what a build needs
#   make demo       train the digits sample             make test      all suites
#   make lint       layering, sizes, format             make asan      test under ASan and UBSan
#   make cover      lines that no test runs             make golden    rewrite expected outputs
#   make analyze    gcc -fanalyzer and clang-tidy
#   make accept     the long runs                       make bench     beside PyTorch
#   make busy       threads beside a busy process       make before     beside an earlier compiler
#   make mutants    wrong changes noticed               make replay    what a change does to emitted C
#   make soak       MINUTES=n of fuzzing, JOBS=2        make fuzzers   the targets, sanitized
#   make odd        tests with small odd block sizes
#   make install    DESTDIR and PREFIX are honoured     make uninstall
#   make dist       a tarball of the sources            make deb       a Debian package
#   make clean
#
# Everything generated lies under $(BUILD). A second flavour (asan, cover) is a second folder.
# `make V=1` shows the commands.
ifndef INNER
# One goal after the other, each by a make of its own: it sees what `deps` has installed, and it
# takes all processors unless -j says otherwise.
GOALS := $(or $(MAKECMDGOALS),all)
.PHONY: $(GOALS)
.NOTPARALLEL:
$(GOALS):
	+@$(MAKE) --no-print-directory INNER=1 $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(or \
		$(shell getconf _NPROCESSORS_ONLN 2>/dev/null),1)) $@
else
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

BUILD ?= build
PREFIX ?= /usr/local
CC ?= cc
ifeq ($(origin CC),default)
CC := cc
endif
FLEX ?= flex
BISON ?= bison
HOSTCC ?= $(CC)
OPT ?= -O2 -g
WERROR ?= -Werror
Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)')

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wmissing-prototypes \
        -Wstrict-prototypes $(WERROR)
FLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L -I. -I$(BUILD)/gen $(OPT) $(EXTRA)
CFLAGS_ALL = $(FLAGS) $(WARN) -MMD -MP $(CFLAGS)
# The skeletons of flex and bison convert freely and hold functions that a grammar need not use.
CFLAGS_GEN = $(FLAGS) $(filter-out -Wconversion -Wmissing-prototypes,$(WARN)) \
             -Wno-unused-function -Wno-unused-but-set-variable -MMD -MP $(CFLAGS)

FOLDERS := lang compiler compiler/driver passes passes/lower passes/schedule passes/plan emit
SOURCES := $(sort $(wildcard $(FOLDERS:%=%/*.c)))
MODULES := $(sort $(wildcard lang/*.mdl lang/*/*.mdl))
PAGES := $(sort $(wildcard docs/errors/*.md))
PIECES := $(sort $(filter-out runtime/embed.c,$(wildcard runtime/*.c runtime/*.h runtime/*.def)))
TEMPLATES := $(sort $(wildcard share/templates/*.mdl))
EMBEDDED := $(PAGES) $(MODULES) $(PIECES) share/report.html $(TEMPLATES)
GENERATED := $(if $(wildcard lang/lex.l),$(BUILD)/gen/lex.c) \
             $(if $(wildcard lang/parse.y),$(BUILD)/gen/parse.c) $(BUILD)/gen/embed_data.c
HEADERS := $(if $(wildcard lang/parse.y),$(BUILD)/gen/parse.h)
OBJECTS := $(SOURCES:%.c=$(BUILD)/obj/%.o) $(GENERATED:$(BUILD)/gen/%.c=$(BUILD)/obj/gen/%.o)
LIBRARY := $(filter-out $(BUILD)/obj/compiler/driver/main.o,$(OBJECTS))

# All of the compiler but main: what the unit tests link with.
MAIN := $(BUILD)/obj/compiler/driver/main.o
LIBMDLC := $(BUILD)/libmdlc.a

# USUAL=FOLDER: of another build, whose objects serve where they do not depend on SEEN, a list of
# files. Those that do come first: a linker takes the first that it finds.
ifdef USUAL
MAIN := $(USUAL)/obj/compiler/driver/main.o
OBJECTS := $(patsubst $(USUAL)/%.d,$(BUILD)/%.o,$(shell grep -lwF $(SEEN:%=-e %) \
	$(FOLDERS:%=$(USUAL)/obj/%/*.d)))
LIBMDLC := $(OBJECTS) $(USUAL)/libmdlc.a
endif

all: $(BUILD)/mdlc

$(BUILD)/mdlc: $(MAIN) $(LIBMDLC)
	$(call say,LINK $@)
	$(Q)$(CC) $(OPT) $(EXTRA) $(LDFLAGS) $^ -lm -o $@

$(BUILD)/libmdlc.a: $(LIBRARY)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(LIBRARY)

$(BUILD)/obj/%.o: %.c | $(HEADERS)
	@mkdir -p $(@D)
	$(call say,CC $<)
	$(Q)$(CC) $(CFLAGS_ALL) -c $< -o $@

# `mdlc --version` names them.
comma := ,
SANITIZERS := $(patsubst -fsanitize=%,%,$(filter -fsanitize=%,$(OPT) $(EXTRA) $(CFLAGS)))
$(BUILD)/obj/compiler/driver/version.o: CFLAGS_ALL += \
	$(if $(SANITIZERS),-DMDLC_SANITIZERS='"$(subst $(comma), ,$(SANITIZERS))"')

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c | $(HEADERS)
	@mkdir -p $(@D)
	$(call say,CC $<)
	$(Q)$(CC) $(CFLAGS_GEN) -c $< -o $@

$(BUILD)/gen/lex.c: lang/lex.l
	@mkdir -p $(@D)
	$(call say,FLEX $<)
	$(Q)$(FLEX) -o $@ $<

# One run writes both; the grouped target keeps a parallel make from running it twice.
$(BUILD)/gen/parse.c $(BUILD)/gen/parse.h &: lang/parse.y
	@mkdir -p $(BUILD)/gen
	$(call say,BISON $<)
	$(Q)$(BISON) -Wall -Wcounterexamples -Werror --defines=$(BUILD)/gen/parse.h \
		-o $(BUILD)/gen/parse.c $<

$(BUILD)/embed: runtime/embed.c
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -std=c11 -O1 $(WARN) $< -o $@

# The list of names is a prerequisite of its own, so that a removed file is noticed too.
$(BUILD)/gen/embed.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(EMBEDDED) | cmp -s - $@ || printf '%s\n' $(EMBEDDED) > $@

$(BUILD)/gen/embed_data.c: $(BUILD)/embed $(BUILD)/gen/embed.list $(EMBEDDED)
	$(call say,EMBED $@)
	$(Q)$(BUILD)/embed $(EMBEDDED) > $@

# ---- tests -----------------------------------------------------------------------------------

UNIT := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
PIECE_TESTS := $(patsubst tests/runtime/%.c,$(BUILD)/tests/runtime/%,$(wildcard tests/runtime/test_*.c))
TOOLS := $(patsubst tests/tools/%.c,$(BUILD)/tests/tools/%,$(wildcard tests/tools/*.c))
HASH := \#
has_header = $(shell printf '%s\n' '$(HASH)include <stdarg.h>' '$(HASH)include <stddef.h>' \
        '$(HASH)include <stdint.h>' '$(HASH)include <setjmp.h>' '$(HASH)include <$(1)>' | \
        $(CC) -fsyntax-only -x c - 2>/dev/null && echo yes)
HAVE_CMOCKA := $(call has_header,cmocka.h)
HAVE_ZLIB := $(call has_header,zlib.h)
OPENMP := $(shell printf 'int main(void) { return 0; }' | $(CC) -fopenmp -x c - -o /dev/null \
        2>/dev/null && echo -fopenmp)
TEST_LIBS := $(if $(HAVE_ZLIB),-lz) -lm -pthread
TEST_FLAGS := $(if $(HAVE_ZLIB),-DHAVE_ZLIB)
TEST_BINARIES := $(if $(HAVE_CMOCKA),$(UNIT) $(PIECE_TESTS)) $(TOOLS)

# Other files of tests/unit (no test_ prefix) are shared helpers, linked into every unit test.
UNIT_SHARED := $(filter-out $(wildcard tests/unit/test_*.c),$(wildcard tests/unit/*.c)) \
        tests/fuzz/mutate.c
UNIT_SHARED_OBJECTS := $(UNIT_SHARED:%.c=$(or $(USUAL),$(BUILD))/obj/%.o)

# Tests run for moments: they are optimised for the time that it takes to build them.
$(BUILD)/obj/tests/%.o $(PIECE_TESTS): OPT := $(patsubst -g,-g1,$(patsubst -O2,-O1,$(OPT)))

# All register tiles: gcc optimises for 40 s with -O1 what takes 5 s less to run.
$(addprefix $(BUILD)/tests/runtime/,test_tile test_tile_wide test_tile_band test_tile_winograd \
        test_tile_dots \
        test_streams test_help): \
        OPT := $(patsubst -O1,-Og,$(OPT))

$(UNIT): $(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(UNIT_SHARED_OBJECTS) $(LIBMDLC)
	@mkdir -p $(@D)
	$(call say,LINK $@)
	$(Q)$(CC) $(OPT) $(EXTRA) $(LDFLAGS) $(filter %.o %.a,$^) -lcmocka $(TEST_LIBS) -o $@

# A runtime test includes the pieces that it tests: they are text for other programs, not objects.
$(PIECE_TESTS): $(BUILD)/tests/runtime/%: tests/runtime/%.c
	@mkdir -p $(@D)
	$(call say,CC $<)
	$(Q)$(CC) $(CFLAGS_ALL) $(TEST_FLAGS) $(PIECE_FLAGS) $< $(LDFLAGS) -lcmocka $(TEST_LIBS) -MF $@.d -o $@

$(BUILD)/tests/runtime/test_help: PIECE_FLAGS := $(OPENMP)

$(TOOLS): $(BUILD)/tests/tools/%: tests/tools/%.c
	@mkdir -p $(@D)
	$(call say,CC $<)
	$(Q)$(CC) $(CFLAGS_ALL) $< $(LDFLAGS) -lm -MF $@.d -o $@

# ---- fuzzing ---------------------------------------------------------------------------------

# A target is tests/fuzz/fuzz_NAME.c with LLVMFuzzerTestOneInput. ENGINE is what calls it: an object
# (our driver) or a flag (libFuzzer of clang). The rest of tests/fuzz is linked where it is used.
FUZZ := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c) \
        tests/fuzz/planted.c)
FUZZ_SHARED := $(patsubst %.c,$(BUILD)/obj/%.o,$(addprefix tests/fuzz/,fuzz.c whole.c mutate.c dictionary.c) \
        tests/unit/dumped.c)
ENGINE ?= $(BUILD)/obj/tests/fuzz/driver.o
ENGINE_FLAGS ?=

$(BUILD)/libfuzz.a: $(FUZZ_SHARED)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(FUZZ): $(BUILD)/tests/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(ENGINE) $(BUILD)/libfuzz.a $(BUILD)/libmdlc.a
	@mkdir -p $(@D)
	$(call say,LINK $@)
	$(Q)$(CC) $(OPT) $(EXTRA) $(LDFLAGS) $(ENGINE_FLAGS) $< $(ENGINE) $(BUILD)/libfuzz.a \
		$(BUILD)/libmdlc.a $(TEST_LIBS) -o $@

$(BUILD)/tests/fuzz/words: $(BUILD)/obj/tests/fuzz/words.o $(BUILD)/libfuzz.a $(BUILD)/libmdlc.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(OPT) $(EXTRA) $(LDFLAGS) $^ -lm -o $@

fuzz-binaries: $(FUZZ) $(BUILD)/tests/fuzz/words $(BUILD)/mdlc

# The targets with our driver, in a flavour of their own unless this one has sanitizers already.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_BUILD := $(if $(findstring -fsanitize,$(EXTRA)),$(BUILD),build/fuzz)
# clang takes half the time, where it is there and its sanitizers are.
FUZZ_CC = $(firstword $(foreach compiler,$(if $(filter $(BUILD),$(FUZZ_BUILD)),,clang) $(CC), \
        $(shell printf 'int main(void) { return 0; }\n' | \
        $(compiler) $(SANITIZE) -x c - -o /dev/null 2>/dev/null && echo $(compiler))))

# Every block a chunk of its own, poisoned when it is left; tables that hash otherwise.
HOSTILE := -DMDLC_HOSTILE_ARENAS -DHASH_TABLE=0x9e3779b97f4a7c15u
# -O0 saves half a minute of building and costs seconds of running. Two makes in one folder take turns.
fuzzers: | $(if $(filter $(BUILD),$(FUZZ_BUILD)),$(BUILD)/mdlc $(TEST_BINARIES))
	@$(MAKE) BUILD=$(FUZZ_BUILD) CC=$(or $(FUZZ_CC),$(CC)) OPT="-O0 -g1" WERROR=-w \
		EXTRA="$(if $(FUZZ_CC),$(SANITIZE)) -DMDLC_FAULT_ABORTS $(HOSTILE)" fuzz-binaries

# The same with libFuzzer, where clang has it.
HAVE_LIBFUZZER = $(shell printf 'int LLVMFuzzerTestOneInput(const char *d, long n) { return 0; }\n' | \
        clang -fsanitize=fuzzer,address,undefined -w -x c - -o /dev/null 2>/dev/null && echo yes)
libfuzzers:
	@$(MAKE) BUILD=build/libfuzzer CC=clang OPT="-O1 -g" WERROR=-w ENGINE= \
		ENGINE_FLAGS=-fsanitize=fuzzer EXTRA="-fsanitize=fuzzer-no-link $(SANITIZE) \
		-DMDLC_FAULT_ABORTS" fuzz-binaries

soak: $(BUILD)/mdlc $(TEST_BINARIES)
	@$(MAKE) $(if $(HAVE_LIBFUZZER),libfuzzers,fuzzers)
	@$(TEST_ENV) FUZZ=$(if $(HAVE_LIBFUZZER),build/libfuzzer,$(FUZZ_BUILD)) \
		LIBFUZZER=$(HAVE_LIBFUZZER) sh tests/soak.sh

# What the shell parts of the tests see.
TEST_ENV = BUILD=$(BUILD) MDLC=$(BUILD)/mdlc CC="$(CC)" HAVE_CMOCKA=$(HAVE_CMOCKA) \
        FUZZ_BUILD=$(FUZZ_BUILD) ODD_BUILD=$(ODD_BUILD)

# Small odd thresholds, blocks and chunks (TUNED in compiler/base.h): small tensors reach each path.
ODD_BUILD := $(BUILD)/odd
ODD_SEEN := $(filter-out compiler/base.h,$(shell grep -lwE 'TUNED|MD_TUNED|ODD_SIZES' $(SOURCES) \
        $(wildcard $(FOLDERS:%=%/*.h) runtime/*.h)))
in_odd = $(MAKE) OPT="-O1 -g" WERROR=-w EXTRA="$(EXTRA) -DMDLC_ODD_SIZES"
odd-binaries: $(BUILD)/mdlc $(TEST_BINARIES)
	+@$(in_odd) BUILD=$(ODD_BUILD) USUAL=$(BUILD) SEEN="$(ODD_SEEN)" odd-few
odd-few: $(BUILD)/mdlc $(if $(HAVE_CMOCKA),$(addprefix $(BUILD)/tests/,unit/test_lower runtime/test_tile))
	@:

# What does not ask for the usual sizes.
odd:
	+@$(in_odd) BUILD=build/odd-all ONLY="unit/test_ runtime/test_tile samples threads gradients metrics memory parity strict depthwise" odd-tests
odd-tests: $(BUILD)/mdlc $(TEST_BINARIES)
	@$(TEST_ENV) ONLY="$$(echo $(ONLY) | tr ' ' '\n')" sh tests/run.sh

test: $(BUILD)/mdlc $(TEST_BINARIES) shared fuzzers odd-binaries
	@$(TEST_ENV) sh tests/run.sh

golden: $(BUILD)/mdlc
	@$(TEST_ENV) sh tests/cases.sh --golden
	@$(TEST_ENV) sh tests/suites/structure.sh --golden
	@$(TEST_ENV) sh tests/suites/readme.sh --golden

# Leaks are looked for in the compiler; arenas are given back at its end.
asan:
	@$(MAKE) BUILD=build/asan OPT="-O1 -g" \
		EXTRA="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
		-Wno-format-truncation" \
		test

# Counts of earlier runs go first; ONLY=TEXT runs a part and adds to what is there.
cover:
	@$(if $(ONLY),,find build/cover -name '*.gcda' -delete 2>/dev/null;) \
	$(MAKE) BUILD=build/cover OPT="-O0 -g" EXTRA="--coverage -DMDLC_COVERAGE" test; \
		status=$$?; sh tests/cover.sh build/cover && exit $$status

deps:
	@sh tests/deps.sh

lint: $(BUILD)/mdlc
	@sh tests/lint.sh

# gcc -fanalyzer and clang-tidy over the compiler, gcc over emitted programs.
analyze: $(BUILD)/mdlc
	@$(TEST_ENV) sh tests/analyze.sh

demo: $(BUILD)/mdlc
	@$(TEST_ENV) sh tests/demo.sh

# One seed of the agent of samples/dqn.mdl: SEED=n STEPS=n.
dqn: $(BUILD)/mdlc
	@$(TEST_ENV) sh tests/dqn.sh

# PICTURE=FILE.png: points of its dark places too.
cnf: $(BUILD)/mdlc
	@$(TEST_ENV) sh tests/cnf.sh

accept: $(BUILD)/mdlc $(TOOLS)
	@$(TEST_ENV) sh tests/accept.sh

# `make replay BASE=REV`: what the change since a commit does to emitted programs; RUN=1 runs them too.
replay: $(BUILD)/mdlc
	@$(TEST_ENV) BASE="$(BASE)" SAME="$(SAME)" RUN="$(RUN)" sh tests/replay.sh

# COUNT, SEED and JOBS are read from the environment. Hours, not minutes: see docs/soak.md.
mutants: $(BUILD)/tests/tools/mutate
	@$(TEST_ENV) sh tests/mutate.sh

bench: $(BUILD)/mdlc
	@$(TEST_ENV) sh tests/bench/bench.sh

# What budgets cost: NETS, SHARES, THREADS, ROUNDS and RUNNER are read from the environment.
bench-budgets: $(BUILD)/mdlc
	@$(TEST_ENV) sh tests/bench/budgets.sh

bench-cuda: $(BUILD)/mdlc
	@$(TEST_ENV) sh tests/bench/cuda.sh

bench-cnf: $(BUILD)/mdlc
	@$(TEST_ENV) sh tests/bench/cnf.sh

bench-chargpt: $(BUILD)/mdlc
	@$(TEST_ENV) TEXT="$(TEXT)" sh tests/bench/chargpt.sh

# TABLES="products depthwise" measures these alone; attention stands beside PyTorch of MDLC_VENV.
bench-kernels: $(BUILD)/mdlc
	@mkdir -p $(BUILD)/bench
	@$${MDLC_VENV:+$$MDLC_VENV/bin/}python3 tests/bench/kernels.py $(BUILD)/mdlc "$(CC)" "$$($(BUILD)/mdlc flags)" $(BUILD)/bench $(TABLES)

# `make before BASE=REV`: the same nets beside those from an earlier compiler.
before: $(BUILD)/mdlc
	@$(TEST_ENV) BASE="$(BASE)" sh tests/bench/before.sh

busy: $(BUILD)/mdlc
	@$(TEST_ENV) sh tests/bench/busy.sh

include share/share.mk

clean:
	rm -rf build

FORCE:
.PHONY: all deps demo test lint analyze asan cover golden mutants replay bench before busy accept dqn cnf bench-cnf bench-chargpt bench-cuda bench-kernels bench-budgets clean FORCE \
        fuzz-binaries fuzzers libfuzzers soak odd odd-binaries odd-few odd-tests
.SECONDARY:

-include $(OBJECTS:.o=.d) $(UNIT:$(BUILD)/tests/unit/%=$(BUILD)/obj/tests/unit/%.d) \
	$(UNIT_SHARED_OBJECTS:.o=.d) $(FUZZ_SHARED:.o=.d) \
	$(FUZZ:$(BUILD)/tests/fuzz/%=$(BUILD)/obj/tests/fuzz/%.d) $(PIECE_TESTS:=.d) $(TOOLS:=.d)
endif
