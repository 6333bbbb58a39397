# What stands around the compiler: man pages, completions, editors, build systems; installing and
# packing. Included by the Makefile.

# The one place of flags for emitted C: those that fit every machine, and those for the machine that
# compiles. They are the ones of the header comment of emitted files (suites/install.sh).
MODEL_FLAGS := -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math
MODEL_FLAGS_NATIVE := -march=native

VERSION := $(shell sed -n 's/^.define MDLC_VERSION "\(.*\)"/\1/p' compiler/version.h)
DATE = $(shell git log -1 --format=%cs 2>/dev/null || date -r compiler/version.h +%Y-%m-%d)
ZSHDIR ?= share/zsh/site-functions
# What prints the help: a compiler for this machine, where that which is built is for another one.
RUN_MDLC ?= $(BUILD)/mdlc

SHARED := $(addprefix $(BUILD)/share/,mdlc.1 mdl.5 mdlc.bash mdlc.zsh mdlc.fish package.json \
        mdlcConfig.cmake mdlcConfigVersion.cmake mdlc.pc)

# made COMMAND: what it prints becomes the target, whole. Suites that run side by side may make it twice.
made = @mkdir -p $(@D)$(NEWLINE)$(call say,MAKE $@)$(NEWLINE)$(Q)$(1) >$@.$$$$ && mv $@.$$$$ $@
define NEWLINE


endef

$(BUILD)/share/help.txt: $(BUILD)/mdlc
	$(call made,$(RUN_MDLC) --help)

$(BUILD)/share/mdlc.1: share/man/mdlc.awk share/man/roff.awk $(BUILD)/share/help.txt README.md compiler/version.h
	$(call made,awk -v version=$(VERSION) -v date=$(DATE) -f share/man/roff.awk -f share/man/mdlc.awk $(BUILD)/share/help.txt README.md)

$(BUILD)/share/mdl.5: share/man/mdl.awk share/man/roff.awk docs/language.md compiler/version.h
	$(call made,awk -v version=$(VERSION) -v date=$(DATE) -f share/man/roff.awk -f share/man/mdl.awk docs/language.md)

$(BUILD)/share/mdlc.%: share/completions/%.awk share/completions/help.awk $(BUILD)/share/help.txt
	$(call made,awk -f share/completions/help.awk -f $< $(BUILD)/share/help.txt)

fill = sed -e 's/@VERSION@/$(VERSION)/g' -e 's/@MODEL_FLAGS@/$(MODEL_FLAGS)/g' \
        -e 's/@MODEL_FLAGS_NATIVE@/$(MODEL_FLAGS_NATIVE)/g'
# The rules stand here, so the flags and the version do: a change of this file makes them anew.
$(BUILD)/share/%: share/cmake/%.in share/share.mk compiler/version.h
	$(call made,$(fill) $<)

$(BUILD)/share/%: share/pkgconfig/%.in share/share.mk compiler/version.h
	$(call made,$(fill) $<)

$(BUILD)/share/%: share/vscode/%.in share/share.mk compiler/version.h
	$(call made,$(fill) $<)

shared: $(SHARED)

# By the environment, so that a path may hold any character.
install uninstall: export MDLC_ROOT = $(DESTDIR)$(PREFIX)
install: $(BUILD)/mdlc $(SHARED)
	$(Q)sh share/files.sh $(BUILD) $(ZSHDIR) | sh share/install.sh install "$$MDLC_ROOT"

uninstall:
	$(Q)sh share/install.sh uninstall "$$MDLC_ROOT"

# The files of the repository, as they are here; without one, those of the folders that it has.
DIST := mdlc-$(VERSION)
dist:
	$(Q)sh share/dist.sh $(BUILD) $(DIST)

deb: $(BUILD)/mdlc $(SHARED)
	$(Q)BUILD=$(BUILD) VERSION=$(VERSION) MAKE="$(MAKE)" sh share/deb/build.sh

.PHONY: shared install uninstall dist deb
