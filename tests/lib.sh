# Shared by the test scripts: counting, and a scratch folder that goes away.
# A suite sources this file, calls pass, fail or skip once a case, and ends with `summary`.
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}" "${CC:=cc}"
passed=0 failed=0 skipped=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mdlc-test.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# The line that interface.md promises for emitted programs; one place for all suites.
: "${EMITTED_FLAGS:=-O3 -march=native -fopenmp -ffp-contract=off -fno-math-errno -fno-trapping-math}"
STRICT_FLAGS="-std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"

# Samples that their own main can train: those with data.
trained() { grep -l '^dataset' samples/*.mdl; }

pass() { passed=$((passed + 1)); }
fail() { # NAME [REASON]
    failed=$((failed + 1))
    echo "FAIL $1${2:+: $2}"
}
skip() { # NAME REASON
    [ -n "${2:-}" ] || { fail "$1" "skipped without a reason"; return; }
    skipped=$((skipped + 1))
    echo "skip $1: $2"
}
usual_sizes() { ! "$MDLC" --version | grep -q '^build:.* odd sizes'; } # not those of `make odd`
have() { command -v "$1" >/dev/null 2>&1; }

# check NAME COMMAND...: passes when the command does; what it printed is shown when it fails.
check() {
    check_name=$1
    shift
    if "$@" >"$scratch/check.log" 2>&1; then
        pass
    else
        fail "$check_name" "$*"
        sed 's/^/    /' "$scratch/check.log" | head -n 20
    fi
}

# usually NAME COMMAND...: a check of what holds with the usual sizes alone.
usually() {
    if usual_sizes; then check "$@"; else skip "$1" "small odd sizes cut this another way"; fi
}

# exits NAME STATUS PATTERN COMMAND...: the command ends with the status, and what it wrote to
# $scratch/err holds the pattern.
exits() {
    exits_name=$1 exits_want=$2 exits_text=$3
    shift 3
    "$@"
    exits_rc=$?
    if [ $exits_rc -ne "$exits_want" ]; then
        fail "$exits_name" "status $exits_rc, not $exits_want: $(cat "$scratch/err")"
    else
        grep -q "$exits_text" "$scratch/err" && pass || fail "$exits_name" "$(cat "$scratch/err")"
    fi
}

# same NAME EXPECTED ACTUAL: two files with the same bytes.
same() {
    if cmp -s "$2" "$3"; then
        pass
    else
        fail "$1" "differs from $2"
        diff -u "$2" "$3" 2>&1 | sed 's/^/    /' | head -n 30
    fi
}

# Builds an emitted file as its header comment says: emitted IN OUT [FLAG...].
emitted() {
    emitted_in=$1 emitted_out=$2
    shift 2
    # shellcheck disable=SC2086
    $CC $EMITTED_FLAGS "$@" "$emitted_in" -lm -o "$emitted_out"
}

# QUICK: what builds soonest. clang without optimisation takes a third of gcc's time, where it has OpenMP.
if [ -z "${QUICK:-}" ]; then
    QUICK=$CC
    printf '#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n' >"$scratch/quick.c"
    ! clang -O0 -march=native -fopenmp "$scratch/quick.c" -o "$scratch/quick" 2>/dev/null || ! "$scratch/quick" || QUICK=clang
    rm -f "$scratch"/quick*
fi
QUICK_FLAGS="-O0 -march=native -fopenmp -ffp-contract=off"

# What is asked for its numbers, files and words and runs for a moment: quickly IN OUT [FLAG...]. The same
# text with the same vectors; what is said of the optimised code has programs built as `emitted` does.
quickly() {
    quickly_in=$1 quickly_out=$2
    shift 2
    # shellcheck disable=SC2086
    $QUICK $QUICK_FLAGS "$@" "$quickly_in" -lm -o "$quickly_out"
}

# A call graph beside each object, where the compiler can write one (gcc 10 and newer).
CALLGRAPH=-fcallgraph-info=su
echo | $CC $CALLGRAPH -x c -c - -o "$scratch/empty.o" 2>/dev/null || CALLGRAPH=
rm -f "$scratch"/empty.*

# What emitted programs are linked with beside libm; FLAGS are options of mdlc for suites that run more
# than once.
: "${LIBS:=}" "${FLAGS:=}"

# built NAME [FLAG...]: emits samples/NAME.mdl (or the file NAME.mdl) with those flags and builds it
# as its header comment says, once for all suites: $program, with .c, .h and .o beside it. Suites run
# side by side: the folder is named by what it holds, is put in place when it is whole, and who needs
# what another suite builds waits for it (where there is flock). Other flags of the C compiler give another
# folder, which does not take this one for one of an earlier mdlc.
built() {
    case $1 in
    *.mdl) built_source=$1 built_name=$(basename "$1" .mdl) ;;
    *) built_source=samples/$1.mdl built_name=$1 ;;
    esac
    shift
    built_base=$BUILD/tests/emitted/$built_name$(printf '%s' "$*" | tr -c 'A-Za-z0-9=' '_')
    built_base=$built_base.c$(echo "$CC $EMITTED_FLAGS" | cksum | cut -d' ' -f1)
    built_new=$scratch/built/$built_name
    rm -rf "$scratch/built"
    mkdir -p "$scratch/built" "$BUILD/tests/emitted" || return
    "$MDLC" "$@" "$built_source" -o "$built_new.c" -H "$built_new.h" || return
    built_sum=$(cksum <"$built_new.c" | cut -d' ' -f1)
    program=$built_base.$built_sum/$built_name
    [ ! -x "$program" ] || return 0
    # The lock goes with the subshell, whatever ends it.
    (
        ! have flock || flock 9
        [ -x "$program" ] || built_make
    ) 9>"$built_base.lock"
}
built_make() {
    # Some warnings come from optimisation alone. No plain -std flag: the header comment has none.
    emitted "$built_new.c" "$built_new.o" -c $CALLGRAPH ${STRICT_FLAGS#-std=c11} && $CC -fopenmp "$built_new.o" $LIBS -lm -o "$built_new" || return
    cp -R "$scratch/built" "$built_base.$built_sum.$$.new" || return
    [ -d "$built_base.$built_sum" ] || mv "$built_base.$built_sum.$$.new" "$built_base.$built_sum"
    rm -rf "$built_base.$built_sum.$$.new"
    for built_old in "$built_base".[0-9]*; do # of earlier compilers
        case $built_old in
        "$built_base.$built_sum" | *.new) ;;
        *) rm -rf "$built_old" ;;
        esac
    done
}

# lightly built ... (or emitted ...): what one suite runs for a while, in two thirds of the time.
lightly() {
    lightly_flags=$EMITTED_FLAGS
    EMITTED_FLAGS="-O1 -march=native -fopenmp -ffp-contract=off"
    "$@"
    lightly_rc=$?
    EMITTED_FLAGS=$lightly_flags
    return $lightly_rc
}

# The value of a key in a line of JSON: number "$line" loss
number() { printf '%s\n' "$1" | sed -n "s/.*\"$2\":\\([-+0-9.eE]*\\).*/\\1/p"; }

# symbols NAME OBJECT [PATTERN]: the model part calls memory functions, mathematics, threads, and what the
# pattern allows; no allocator, no input or output.
symbols() {
    symbols_allowed='mem(cpy|set|move|cmp)|expf?|expm1f?|logf?|log1pf?|powf?|sqrtf?|sinf?|cosf?|tanhf?|erff?|floorf?|rintf?|nearbyintf?|roundf?|fmodf?|fabsf?|fmaf?'
    symbols_threads='GOMP_.*|__kmpc_.*|kmp_[gs]et_blocktime|omp_.*|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail'
    symbols_wrong=$(nm -u "$2" | awk '{ sub(/@.*/, "", $2); print $2 }' | grep -Ev "^($symbols_allowed|$symbols_threads${3:+|$3})\$")
    [ -z "$symbols_wrong" ] && pass || fail "$1: symbols of the model part" "$(echo $symbols_wrong)"
}

summary() {
    echo "$1: $passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
