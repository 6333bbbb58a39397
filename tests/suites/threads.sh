#!/bin/sh
# Loops may go from several threads to one and back at any time (runtime/team.h): with limits so small that
# they do so all the while, and with threads that never pay, the weights are those of one thread to the
# byte, and no page is added, with GNU's and with LLVM's OpenMP, also where whole calls take turns with
# calls on one thread. So are those of a program that is made for one thread alone. Shares that are begun unit by unit: test_help under ThreadSanitizer.
set -u
. tests/lib.sh

weights() { # PROGRAM OUT [OPTION...]: trains; fails unless no page was added.
    weights_program=$1 weights_out=$2
    shift 2
    "$weights_program" "$@" --save "$weights_out" --log json >"$scratch/log" 2>"$scratch/err" || return 1
    grown=$(number "$(grep '"event":"end"' "$scratch/log")" resident_growth_pages)
    [ "$grown" = 0 ] || { echo "$grown pages added"; return 1; }
}

flags="-O1 -march=native -ffp-contract=off"
sed 's/budget 1 MiB;//; s/hidden = 128/hidden = 1024/' samples/digits.mdl >"$scratch/units.mdl"
usual=yes # and with small odd sizes all products are large enough
usual_sizes || usual=no
for name in digits residual chars units; do
    source=samples/$name.mdl steps=60
    case $name in units) source=$scratch/units.mdl steps=9 ;; esac # products large enough to be begun unit by unit
    "$MDLC" "$source" -o "$scratch/$name.c" || { fail "$name" "does not compile"; continue; }
    case $name:$usual in units:* | *:no) grep -q '^MD_.*md_help_next' "$scratch/$name.c" ;; *) ! grep -q md_help_next "$scratch/$name.c" ;; esac && pass ||
        fail "$name" "has units where its products are small, or none"
    case $name:$(grep -c 'md_calls_begin(&m->pace' "$scratch/$name.c"):$usual in residual:[1-9]*:* | digits:0:yes | [!rd]* | d*:no) pass ;;
    *) fail "$name" "calls of few loops are timed on one thread, or of many are not" ;;
    esac
    "$MDLC" --threads=1 "$source" -o "$scratch/alone.c" || { fail "$name" "does not compile"; continue; }
    # shellcheck disable=SC2086
    $CC $flags "$scratch/alone.c" -lm -o "$scratch/alone" || { fail "$name" "does not build"; continue; }
    check "$name, made for one thread" weights "$scratch/alone" "$scratch/right" --steps $steps
    for compiler in $CC clang; do
        echo 'int main(void) { return 0; }' >"$scratch/try.c"
        $compiler -fopenmp "$scratch/try.c" -o "$scratch/try" 2>/dev/null || { skip "$name with $compiler" "no OpenMP"; continue; }
        # Built once for both limits, which are variables in it (limits.c).
        # shellcheck disable=SC2086
        $compiler $flags -fopenmp -I. -include tests/suites/limits.h -DMD_TEAM_LOSS=team_loss -DMD_TEAM_LONG=team_long \
            "$scratch/$name.c" tests/suites/limits.c -lm -o "$scratch/$name" || { fail "$name with $compiler" "does not build"; continue; }
        for limits in "1e-6 2e-4" "-1e9 1e9"; do
            export TEAM_LOSS="${limits% *}" TEAM_LONG="${limits#* }"
            check "$name with $compiler, one thread" weights "$scratch/$name" "$scratch/one" --threads 1 --steps $steps
            same "weights of $name with $compiler, one thread" "$scratch/right" "$scratch/one"
            check "$name with $compiler, limits $limits" weights "$scratch/$name" "$scratch/many" --threads 3 --steps $steps
            same "weights of $name with $compiler, limits $limits" "$scratch/right" "$scratch/many"
        done
    done
done

# -fopenmp for its atomics alone: the threads are those of POSIX.
if [ "${HAVE_CMOCKA:-}" != yes ]; then
    skip "units under ThreadSanitizer" "cmocka is not installed"
elif ! $CC -fopenmp -fsanitize=thread "$scratch/try.c" -o "$scratch/try" 2>/dev/null || ! "$scratch/try"; then
    skip "units under ThreadSanitizer" "$CC has no OpenMP or no ThreadSanitizer"
else
    $CC -O0 -g -std=c11 -march=native -fopenmp -fsanitize=thread -I. tests/runtime/test_help.c -lcmocka -lm \
        -o "$scratch/help" || fail "units under ThreadSanitizer" "does not build"
    check "units under ThreadSanitizer" "$scratch/help"
    # It sees what it is there for: the same units counted without atomics.
    $CC -O0 -g -std=c11 -march=native -fsanitize=thread -I. tests/runtime/test_help.c -lcmocka -lm -pthread \
        -o "$scratch/help" || fail "units without atomics" "does not build"
    "$scratch/help" >"$scratch/log" 2>"$scratch/err" && fail "units without atomics" "no race seen" || pass
    grep -q 'data race' "$scratch/err" && pass || fail "units without atomics" "$(head -n 1 "$scratch/err")"
fi
summary threads
