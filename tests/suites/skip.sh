#!/bin/sh
# Batches whose loss is no number, with --skip-nonfinite: left out as if their rows were not there. The
# update, its counter, schedule, draws and slots wait for the next batch; resumes know the place.
set -u
. tests/lib.sh
"$MDLC" tests/suites/skip.mdl -o "$scratch/skip.c" && quickly "$scratch/skip.c" "$scratch/skip" ||
    { fail "skip.mdl" "does not build"; summary skip; exit; }

# Six batches of four rows; the third, and the last two, have a row that divides by zero.
awk 'BEGIN {
    for (i = 0; i < 24; i++) print ((i == 9 || i == 17 || i == 22) ? 0 : 1 + i % 7) "," 2 - i / 16.5
}' >"$scratch/bad.csv"
awk 'NR <= 8 || (NR > 12 && NR <= 16)' "$scratch/bad.csv" >"$scratch/good.csv"

# run EXIT OPTION...: of both data sets.
run() {
    want=$1
    shift
    "$scratch/skip" --data "f=$scratch/bad.csv" --log json "$@" \
        >"$scratch/out" 2>"$scratch/err" </dev/null
    run_rc=$?
    [ $run_rc -eq "$want" ] && return 0
    fail "run $*" "exit $run_rc, not $want: $(head -n 2 "$scratch/err")"
    return 1
}
says() { grep -qF -e "$1" "$scratch/err" && pass || fail "says $1" "$(cat "$scratch/err")"; }

run 4 fit && says "the loss of 'fit' became infinite in step 3; nothing was saved; the first infinity came from skip.mdl:"
run 4 fit --skip-nonfinite 1 && says "infinite in step 4, behind 1 batches that were left out; nothing was saved"
[ "$(grep -c warning "$scratch/err")" = 2 ] && says "became infinite in step 3, whose batch is left out; the first infinity came from skip.mdl:"
run 0 fit --skip-nonfinite 2 --steps 31 --save "$scratch/left.st" && {
    [ "$(grep -c warning "$scratch/err")" = 20 ] && pass || fail "one warning for batches in a row" "$(grep -c warning "$scratch/err")"
    grep -q '"event":"end","entry":"fit","steps":31,.*"skipped":30' "$scratch/out" && pass || fail "the count" "$(tail -n 1 "$scratch/out")"
    grep -q '"step":4,"epoch":1' "$scratch/out" && pass || fail "the epoch is that of the rows" "$(grep '"step":4' "$scratch/out")"
}
"$scratch/skip" fit --data "rows=$scratch/good.csv" --steps 31 --save "$scratch/good.st" --log none
same "the updates are those of the other rows" "$scratch/good.st" "$scratch/left.st"

# Two trains one behind the other, the second with its rows in another order each epoch.
run 0 --skip-nonfinite 9 --checkpoint "$scratch/whole.st" && {
    grep -q '"entry":"other","steps":20,.*"skipped":' "$scratch/out" && pass || fail "phases" "$(tail -n 2 "$scratch/out")"
    cp "$scratch/out" "$scratch/whole.out"
}
# A run of one train hands on what the checkpoint says of the other.
for train in fit other; do
    run 0 $train --skip-nonfinite 9 --resume "$scratch/whole.st" --checkpoint "$scratch/alone.st" &&
        same "handed on by $train" "$scratch/whole.st" "$scratch/alone.st"
done
for stop in 3 4 11; do
    for train in fit other; do
        rm -f "$scratch/part.st"*
        case $train in
        fit) run 0 fit --skip-nonfinite 9 --steps $stop --checkpoint "$scratch/part.st" ;;
        other) run 0 --skip-nonfinite 9 --steps other=$stop --checkpoint "$scratch/part.st" ;;
        esac || continue
        run 0 --skip-nonfinite 9 --resume "$scratch/part.st" --checkpoint "$scratch/part.st" &&
            same "resumed in $train behind step $stop" "$scratch/whole.st" "$scratch/part.st"
    done
done
# Trains that take turns: one of them makes up for its batch before the other goes on.
sed 's/fit then other/fit, other/' tests/suites/skip.mdl >"$scratch/turns.mdl"
if "$MDLC" "$scratch/turns.mdl" -o "$scratch/turns.c" && quickly "$scratch/turns.c" "$scratch/skip"; then
    run 0 --skip-nonfinite 9 --checkpoint "$scratch/whole.st" &&
        run 0 --skip-nonfinite 9 --steps 7 --checkpoint "$scratch/part.st" &&
        run 0 --skip-nonfinite 9 --resume "$scratch/part.st" --checkpoint "$scratch/part.st" &&
        same "resumed between turns" "$scratch/whole.st" "$scratch/part.st"
else
    fail "turns.mdl" "does not build"
fi
run 2 --skip-nonfinite 0 && says "--skip-nonfinite needs a whole number from 1 up, not '0'"
summary skip
