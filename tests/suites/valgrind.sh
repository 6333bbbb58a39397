#!/bin/sh
# Under Valgrind: an emitted program makes as many allocations in many steps as in few, with no error
# and no leak; the compiler has none of both either. LONG=1: 1000 steps and every sample.
# Built without AVX-512, which Valgrind 3.19 does not know, and without multiply-adds, of which it takes
# one lane at a time (chars is 14 times slower).
set -u
. tests/lib.sh
: "${LONG:=0}"

have valgrind || { skip valgrind "not installed"; summary valgrind; exit; }
grind() { valgrind --error-exitcode=99 --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all "$@" >"$scratch/out" 2>"$scratch/err"; }
why() { grep -m 1 -e 'Invalid' -e 'uninitialised' -e 'lost' -e 'rror' "$scratch/err"; }
allocations() { sed -n 's/.*total heap usage: \([0-9,]*\) allocs.*/\1/p' "$scratch/err"; }
# counts PROGRAM STEPS: how many allocations that many steps make
counts() { grind "$1" fit --steps "$2" --threads 1 --seed 1 --eval-every 5 --log none --save "$scratch/weights" && allocations; }

narrow="-mno-avx512f -mno-fma"
echo | $CC $narrow -x c -c - -o "$scratch/empty.o" 2>/dev/null || narrow=
[ "$LONG" = 1 ] && names=$(basename -s .mdl $(trained | grep -v cnf)) many=1000 || names=diabetes many=40
sanitized=$("$MDLC" --version | grep '^build: sanitizers')
[ -z "$sanitized" ] || skip "mdlc under Valgrind" "it is built with sanitizers, which Valgrind cannot run"
for name in $names; do
    "$MDLC" "samples/$name.mdl" -o "$scratch/$name.c" && $CC -O1 -g1 -march=native $narrow "$scratch/$name.c" -lm -o "$scratch/$name" ||
        { fail "$name" "does not build"; continue; }
    few=$(counts "$scratch/$name" 10) || { fail "$name" "$(why)"; continue; }
    more=$(counts "$scratch/$name" $many) || { fail "$name" "$(why)"; continue; }
    [ -n "$few" ] && [ "$few" = "$more" ] && pass || fail "$name" "$few allocations in 10 steps, $more in $many"
    [ -z "$sanitized" ] || continue
    grind "$MDLC" "samples/$name.mdl" -o "$scratch/again.c" && pass || fail "mdlc samples/$name.mdl" "$(why)"
done

# That a lost block and an allocation in a step are seen.
"$MDLC" samples/diabetes.mdl -o "$scratch/fault.c" &&
    sed 's#k->step++;#k->step++; if (malloc(8) == NULL) { return 1; }#' "$scratch/fault.c" >"$scratch/lost.c" &&
    $CC -O0 "$scratch/lost.c" -lm -o "$scratch/lost" || fail "a lost block" "does not build"
counts "$scratch/lost" 3 >"$scratch/count" && fail "a lost block" "is not seen" || pass
[ "$(allocations)" != "${few:-}" ] && pass || fail "an allocation a step" "is not seen"
summary valgrind
