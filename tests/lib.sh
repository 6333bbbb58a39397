# Shared by the test scripts: counting, and a scratch folder that goes away.
# A suite sources this file, calls pass, fail or skip once a case, and ends with `summary`.
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}" "${CC:=cc}"
passed=0 failed=0 skipped=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mdlc-test.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# The line that interface.md promises for emitted programs; one place for all suites.
EMITTED_FLAGS="-O3 -march=native -fopenmp -ffp-contract=fast -fno-math-errno -fno-trapping-math"
STRICT_FLAGS="-std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"

pass() { passed=$((passed + 1)); }
fail() { # NAME [REASON]
    failed=$((failed + 1))
    echo "FAIL $1${2:+: $2}"
}
skip() { # NAME REASON
    skipped=$((skipped + 1))
    echo "skip $1: $2"
}
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

# A call graph beside each object, where the compiler can write one (gcc 10 and newer).
CALLGRAPH=-fcallgraph-info=su
echo | $CC $CALLGRAPH -x c -c - -o "$scratch/empty.o" 2>/dev/null || CALLGRAPH=
rm -f "$scratch"/empty.*

# built NAME [FLAG...]: emits samples/NAME.mdl (or the file NAME.mdl) with those flags and builds it
# as its header comment says, once for all suites: $program, with .c, .h and .o beside it.
built() {
    case $1 in
    *.mdl) built_source=$1 built_name=$(basename "$1" .mdl) ;;
    *) built_source=samples/$1.mdl built_name=$1 ;;
    esac
    shift
    program=$BUILD/tests/emitted/$built_name$(printf '%s' "$*" | tr -c 'A-Za-z0-9=' '_')
    built_new=$program.new/$built_name
    rm -rf "$program.new"
    mkdir -p "$program.new" || return
    "$MDLC" "$@" "$built_source" -o "$built_new.c" -H "$built_new.h" || return
    echo "$CC $EMITTED_FLAGS" >"$built_new.line"
    if ! cmp -s "$built_new.c" "$program.c" || ! cmp -s "$built_new.line" "$program.line" || [ ! -x "$program" ]; then
        rm -f "$program"
        cp "$built_new.c" "$program.c" && cp "$built_new.line" "$program.line" &&
            emitted "$program.c" "$program.o" -c $CALLGRAPH && $CC -fopenmp "$program.o" -lm -o "$program" || return
    fi
    cp "$built_new.h" "$program.h"
    rm -rf "$program.new"
}

# The value of a key in a line of JSON: number "$line" loss
number() { printf '%s\n' "$1" | sed -n "s/.*\"$2\":\\([-+0-9.eE]*\\).*/\\1/p"; }

summary() {
    echo "$1: $passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
