#!/bin/sh
# Budgets below what a train needs when each step runs once: steps run again, the weights are those of the
# program without a budget to the byte, and the process takes no more than was declared. One that cannot be met
# says how little was found.
set -u
. tests/lib.sh

model=tests/suites/budgets.mdl
flags="-O1 -march=native -ffp-contract=off -fopenmp"
report() { # FIELD [OPTION...]: of the train, from the report
    report_field=$1
    shift
    "$MDLC" report --report=json "$@" $model >"$scratch/report" 2>"$scratch/err"
    tr '{,' '\n\n' <"$scratch/report" | awk -F: -v field="\"$report_field\"" '
        /"name":"fit"/ { inside = 1 }
        $1 == field && (inside || field ~ /total|arena"/) { sub(/}.*/, "", $2); print $2; exit }'
}
trained() { # PROGRAM OUT: what it takes is what it declares, and stays so
    "$1" fit --save "$2" --log json >"$scratch/log" 2>"$scratch/err" || return 1
    grown=$(number "$(grep '"event":"end"' "$scratch/log")" resident_growth_pages)
    [ "$grown" = 0 ] || { echo "$grown pages added"; return 1; }
}
build() { # NAME [OPTION...]
    build_name=$1
    shift
    # shellcheck disable=SC2086
    "$MDLC" "$@" $model -o "$scratch/$build_name.c" && $CC $flags "$scratch/$build_name.c" -lm -o "$scratch/$build_name"
}

total=$(report total) arena=$(report arena)
check "without a budget" build once
check "it trains" trained "$scratch/once" "$scratch/right"
[ "$(report steps_again)" = 0 ] && pass || fail "without a budget" "steps run again"
before=0
for share in 90 70 50 35; do
    budget=$((total - arena + arena * share / 100))
    check "a budget of $share % of the arena" build small --budget=$budget || continue
    [ "$(report total --budget=$budget)" -le $budget ] && pass || fail "$share %" "the budget is not met"
    again=$(report flops_again --budget=$budget)
    [ "$again" -gt $before ] && pass || fail "$share %" "$again FLOPs run again, after $before"
    before=$again
    check "$share %, trained" trained "$scratch/small" "$scratch/weights"
    same "weights with $share % of the arena" "$scratch/right" "$scratch/weights"
done
[ "$before" -lt "$(report flops)" ] && pass || fail "35 %" "all runs again"
grep -q ', again' "$scratch/small.c" && pass || fail "text" "no call says that it runs again"
sed "s/steps 6;/steps 6; budget $budget;/" $model >"$scratch/source.mdl"
"$MDLC" "$scratch/source.mdl" -o "$scratch/source.c" 2>"$scratch/err" && pass || fail "in the source" "$(cat "$scratch/err")"

"$MDLC" --budget=$((total - arena + 65536)) $model -o "$scratch/none.c" 2>"$scratch/err"
rc=$?
[ $rc -eq 3 ] && pass || fail "cannot be met" "exit status $rc"
grep -q 'run again already' "$scratch/err" && pass || fail "cannot be met" "$(cat "$scratch/err")"
[ ! -e "$scratch/none.c" ] && pass || fail "cannot be met" "it wrote a file"
# The least is the same whatever was asked for, and who asks for it gets it.
least=
for budget in 4096 $((total - arena + 4096)) $((total - arena + 65536)); do
    found=$("$MDLC" --budget=$budget $model -o "$scratch/none.c" 2>&1 | sed -n 's/.*needs \([0-9]*\) bytes.*/\1/p')
    : "${least:=$found}"
    [ -n "$found" ] && [ "$found" = "$least" ] && pass || fail "the least for $budget" "$found, not $least"
done
[ "$(report total --budget="$least")" -le "$least" ] && pass || fail "the least" "$least bytes are not met"
summary budgets
