#!/bin/sh
# The compiler with small odd sizes for every threshold, block and chunk (TUNED in compiler/base.h):
# other loops, other teams, other workspaces, the same numbers, and the bound still holds. The long
# form is `make odd`.
set -u
. tests/lib.sh
: "${ODD_BUILD:=build/odd}"

: "${LONG:=0}"
cases="digits::30 chars::10 tests/suites/nested.mdl::20"
[ "$LONG" = 1 ] && cases="$cases diabetes:fit:200 residual::20"
# Loops on threads in a program: regions, and those that one function runs.
loops() {
    awk '/^MD_NOINLINE void md_team_run\(/ { own = 1 } /^}/ { own = 0 }
        !own && /MD_OMP\(parallel|^ +md_team_run\(/ { n++ } END { print n + 0 }' "$1"
}

for case in $cases; do
    source=${case%%:*} rest=${case#*:}
    name=$(basename "$source" .mdl)
    train=${rest%%:*} steps=${rest#*:}
    built "$source" || { fail "$name" "does not build"; continue; }
    [ -f "$source" ] || source=samples/$source.mdl
    "$ODD_BUILD/mdlc" "$source" -o "$scratch/$name.c" &&
        quickly "$scratch/$name.c" "$scratch/$name" || { fail "$name" "does not build with odd sizes"; continue; }
    # What is compared is another program: many more of its loops are cut for threads.
    many=$(loops "$scratch/$name.c") few=$(loops "$program.c")
    [ "$many" -ge $((few + 5)) ] && pass || fail "$name" "$many parallel loops, $few with the usual sizes"

    # shellcheck disable=SC2086
    "$program" $train --steps "$steps" --seed 3 --log json >"$scratch/usual" 2>"$scratch/err" || fail "$name" "$(head -n 1 "$scratch/err")"
    for threads in 1 3; do
        # shellcheck disable=SC2086
        "$scratch/$name" $train --steps "$steps" --seed 3 --threads $threads --log json --save "$scratch/$name.$threads" \
            >"$scratch/odd.$threads" 2>"$scratch/err" || fail "$name with odd sizes, $threads threads" "$(head -n 1 "$scratch/err")"
        end=$(grep '"event":"end"' "$scratch/odd.$threads")
        bound=$(number "$end" bound_bytes) peak=$(number "$end" peak_over_process_bytes)
        [ "${peak:-0}" -gt 0 ] && [ "$peak" -le "$bound" ] && [ "$(number "$end" resident_growth_pages)" = 0 ] && pass ||
            fail "$name, $threads threads" "peak $peak, bound $bound, $(number "$end" resident_growth_pages) pages in steps"
    done
    cmp -s "$scratch/$name.1" "$scratch/$name.3" && pass || fail "$name: weights differ with 3 threads"
    for log in usual odd.1; do
        sed -n 's/.*"step":\([0-9]*\).*"loss":\([^,}]*\).*/\1 \2/p' "$scratch/$log" >"$scratch/$log.loss"
    done
    worst=$(paste -d' ' "$scratch/usual.loss" "$scratch/odd.1.loss" | awk '
        { d = $2 / $4 - 1; d = d < 0 ? -d : d; if (!($1 == $3 && d <= worst)) worst = $1 == $3 && d == d ? d : 1; n++ }
        END { printf "%.2g", (n > 5 ? worst : 1) }')
    awk -v w="$worst" 'BEGIN { exit !(w != "" && w + 0 <= 1e-5) }' && pass || fail "$name" "a loss differs by $worst of it"
done

# What letting go of a value can free at most is held against each plan there; with loops and without.
for source in tests/suites/budgets.mdl tests/bench/gpt.mdl; do
    for budget in 1 "1, rounding"; do
        "$ODD_BUILD/mdlc" --threads=2 --budget="$budget" "$source" -o "$scratch/none.c" 2>"$scratch/err"
        rc=$?
        [ $rc -eq 3 ] && grep -q 'needs [0-9]* bytes' "$scratch/err" && pass || fail "$source in $budget" "$rc: $(head -n 1 "$scratch/err")"
    done
done

# Lowering against the evaluator, products against plain sums.
if [ "${HAVE_CMOCKA:-}" = yes ]; then
    for test in test_ops_f32 test_patterns_threads test_random_planned; do
        check "test_lower: $test" env MDLC_COUNT=25 "$ODD_BUILD/tests/unit/test_lower" "$test"
    done
    check "test_tile" "$ODD_BUILD/tests/runtime/test_tile"
else
    skip "lowering with odd sizes" "cmocka is not installed"
fi
summary odd
