#!/bin/sh
# Checkpoints: a run that was stopped and resumed ends with the same bytes as one that was not; a
# program that is killed while it saves leaves a checkpoint that is whole; damage is seen and the
# checkpoint before is taken. LONG=1 stops at 20 steps and kills 200 times.
set -u
. tests/lib.sh
: "${LONG:=0}" "${SEED:=1}"
[ "$LONG" = 1 ] && stops=20 kills=200 || stops=5 kills=12
echo "resume: SEED=$SEED"

"$MDLC" tests/suites/resume.mdl -o "$scratch/resume.c" &&
    $CC -O1 -march=native -fopenmp "$scratch/resume.c" -lm -o "$scratch/resume" ||
    { fail resume "does not build"; summary resume; exit 1; }
program=$scratch/resume
fit() { "$program" fit --log none "$@" 2>"$scratch/err"; }
numbers() { # COUNT MOST: as many numbers from 1 to MOST
    awk -v n="$1" -v most="$2" -v seed="$SEED" 'BEGIN { srand(seed); for (i = 0; i < n; i++) print 1 + int(rand() * most) }'
}

fit --steps 40 --seed 5 --checkpoint "$scratch/whole" --save "$scratch/whole.w" || fail "whole run" "$(cat "$scratch/err")"
for stop in $(numbers $stops 39); do
    rm -f "$scratch"/part*
    fit --steps "$stop" --seed 5 --checkpoint "$scratch/part" &&
        fit --steps 40 --resume "$scratch/part" --checkpoint "$scratch/part" --save "$scratch/part.w" ||
        { fail "stopped at $stop" "$(cat "$scratch/err")"; continue; }
    cmp -s "$scratch/part.w" "$scratch/whole.w" && cmp -s "$scratch/part" "$scratch/whole" && pass ||
        fail "stopped at $stop" "other bytes than without the stop"
done
# Another number of threads, and a signal, make no difference either.
rm -f "$scratch"/part*
fit --steps 17 --seed 5 --threads 1 --checkpoint "$scratch/part" && fit --steps 40 --threads 2 --resume "$scratch/part" --save "$scratch/part.w" &&
    same "other threads" "$scratch/whole.w" "$scratch/part.w"
rm -f "$scratch"/part*
"$program" fit --steps 100000000 --seed 5 --log none --checkpoint "$scratch/part" 2>/dev/null & child=$!
sleep 0.4
kill -TERM $child
wait $child
[ $? -eq 143 ] && fit --steps 1 --resume "$scratch/part" && pass || fail "a signal" "$(cat "$scratch/err")"

# The table of a run that was stopped is that of one that was not.
fit --steps 40 --seed 5 --log csv="$scratch/whole.csv" --log-every 5 --eval-every 20
fit --steps 20 --seed 5 --log csv="$scratch/part.csv" --log-every 5 --checkpoint "$scratch/part" &&
    fit --steps 40 --resume "$scratch/part" --log csv="$scratch/part.csv" --log-every 5
same "table" "$scratch/whole.csv" "$scratch/part.csv"
[ "$(head -n 1 "$scratch/part.csv")" = event,step,epoch,loss,lr,acc ] && [ "$(wc -l <"$scratch/part.csv")" -eq 11 ] && pass ||
    fail "table" "$(head -n 3 "$scratch/part.csv")"

# Killed while it saves, at any moment: one of the two files is whole.
rm -f "$scratch"/part*
fit --steps 1 --seed 5 --checkpoint "$scratch/part"
for pause in $(numbers $kills 40); do
    "$program" fit --steps 100000000 --log none --resume "$scratch/part" --checkpoint "$scratch/part" --save-every 1 2>/dev/null & child=$!
    sleep "0.$((100 + pause * 3))"
    kill -KILL $child
    wait $child 2>/dev/null
    fit --steps 1 --resume "$scratch/part" && pass || { fail "killed" "$(cat "$scratch/err")"; break; }
done
[ "$(find "$scratch" -name 'part*' | wc -l)" -le 2 ] && pass || fail "killed" "files are left behind"

# Damage.
rm -f "$scratch"/part*
fit --steps 10 --seed 5 --checkpoint "$scratch/part" && fit --steps 20 --resume "$scratch/part" --checkpoint "$scratch/part"
cp "$scratch/part" "$scratch/good"
size=$(wc -c <"$scratch/good")
for at in $(numbers 4 $((size - 5000))); do
    cp "$scratch/good" "$scratch/part"
    # The last byte of a header and data; a bit that is turned is another byte in any case.
    byte=$(od -An -tu1 -j $((4000 + at)) -N1 "$scratch/good")
    # shellcheck disable=SC2059
    printf "\\$(printf %o $(((byte ^ 4) & 255)))" | dd of="$scratch/part" bs=1 seek=$((4000 + at)) conv=notrunc 2>/dev/null
    exits "a bit turned at $((4000 + at))" 0 "going on from .*part.old', step 10" fit --steps 40 --resume "$scratch/part" --save "$scratch/part.w"
    same "a bit turned" "$scratch/whole.w" "$scratch/part.w"
done
head -c 3000 "$scratch/good" >"$scratch/part"
exits "cut" 0 "going on from .*part.old', step 10" fit --steps 12 --resume "$scratch/part"
cp "$scratch/part.old" "$scratch/kept"
exits "a cut one is no PATH.old" 0 "going on from" fit --steps 11 --resume "$scratch/part" --checkpoint "$scratch/part"
same "a cut one is no PATH.old" "$scratch/kept" "$scratch/part.old"
check "the next is" fit --steps 12 --resume "$scratch/part" --checkpoint "$scratch/part"
cmp -s "$scratch/kept" "$scratch/part.old" && fail "the next is" "PATH.old stayed" || pass
cp "$scratch/kept" "$scratch/part.old"
rm "$scratch/part"
exits "missing" 0 "going on from .*part.old', step 10" fit --steps 12 --resume "$scratch/part"
head -c 3000 "$scratch/good" >"$scratch/part"
cp "$scratch/part" "$scratch/part.old"
exits "both damaged" 1 "does not help either" fit --steps 12 --resume "$scratch/part"
exits "weights" 1 "not a checkpoint" fit --steps 12 --resume "$scratch/whole.w"
exits "with --seed" 2 "goes on with" fit --steps 12 --resume "$scratch/good" --seed 3
exits "no folder" 1 "cannot write" fit --steps 12 --checkpoint "$scratch/none/x"
exits "a table that does not fit" 1 "cannot write '/dev/full'" fit --steps 12 --log csv=/dev/full
cp "$scratch/whole.csv" "$scratch/kept.csv"
exits "a table of a run that cannot begin" 1 "cannot\|No such" fit --steps 12 --load "$scratch/none" --log csv="$scratch/kept.csv"
same "a table of a run that cannot begin" "$scratch/whole.csv" "$scratch/kept.csv"
exits "a table in no folder" 1 "cannot write" fit --steps 12 --log csv="$scratch/none/x"
cp "$scratch/good" "$scratch/part"
check "nothing left to do" fit --steps 5 --resume "$scratch/part" --save "$scratch/part.w"
# A checkpoint is a weights file too.
"$program" eval --load "$scratch/good" --log json >"$scratch/eval" 2>"$scratch/err" && grep -q '"event":"eval"' "$scratch/eval" && pass ||
    fail "eval of a checkpoint" "$(cat "$scratch/err")"

# The best evaluation: what the log says is best is in the file, and --patience ends where it should.
best() { fit --seed 4 --eval-every 2 --monitor max:acc "$@"; }
"$program" fit --steps 60 --seed 4 --eval-every 2 --log json --monitor max:acc --best "$scratch/best.w" >"$scratch/log" 2>"$scratch/err" || fail best "$(cat "$scratch/err")"
sed -n 's/.*"event":"eval".*"step":\([0-9]*\),.*"loss":\([^,]*\),.*"acc":\([^}]*\)}.*/\1 \2 \3/p' "$scratch/log" >"$scratch/evals"
want=$(awk '$3 > top { top = $3; at = $1 } END { print at }' "$scratch/evals")
end=$(grep '"event":"end"' "$scratch/log")
[ -n "$want" ] && [ "$want" -lt 60 ] && [ "$want" = "$(number "$end" best_step)" ] && pass || fail "best step" "$(number "$end" best_step), not $want"
best --steps "$want" --save "$scratch/then.w" && same "weights of the best evaluation" "$scratch/then.w" "$scratch/best.w"
# Stopped and resumed, it decides the same: the best so far goes with the checkpoint.
for stop in $((want - 1)) $((want + 1)); do
    rm -f "$scratch"/part* "$scratch/again.w"
    best --steps $stop --best "$scratch/again.w" --checkpoint "$scratch/part" &&
        fit --steps 60 --resume "$scratch/part" --eval-every 2 --monitor max:acc --best "$scratch/again.w" || fail "best, stopped at $stop" "$(cat "$scratch/err")"
    same "best, stopped at $stop" "$scratch/best.w" "$scratch/again.w"
done
# An end: the first place where three evaluations in a row are not better.
best() { fit --seed 4 --steps 60 --eval-every 1 --patience 3 --monitor max:acc "$@"; }
"$program" fit --steps 60 --seed 4 --eval-every 1 --log json --best "$scratch/least.w" >"$scratch/log" 2>"$scratch/err"
sed -n 's/.*"event":"eval".*"step":\([0-9]*\),.*"loss":\([^,]*\),.*"acc":\([^}]*\)}.*/\1 \2 \3/p' "$scratch/log" >"$scratch/evals"
want=$(awk '$3 > top { top = $3; since = 0; next } ++since == 3 { print $1; exit }' "$scratch/evals")
[ "${want:-60}" -lt 60 ] && pass || fail "patience" "no place where it would end; the test needs another seed"
best --checkpoint "$scratch/ended" --best "$scratch/best.w" && "$program" --resume "$scratch/ended" --steps 60 --eval-every 1 --patience 3 --monitor max:acc \
    --log json >"$scratch/log.end" && [ "$(number "$(grep '"event":"end"' "$scratch/log.end")" steps)" = "$want" ] && pass ||
    fail "patience" "ends with $(tail -n 1 "$scratch/log.end"), not at $want"
rm -f "$scratch"/part*
best --steps $((want - 2)) --checkpoint "$scratch/part" --best "$scratch/again.w" && fit --steps 60 --eval-every 1 --patience 3 --monitor max:acc \
    --resume "$scratch/part" --best "$scratch/again.w" --checkpoint "$scratch/part" || fail "patience" "$(cat "$scratch/err")"
same "patience, stopped before its end" "$scratch/ended" "$scratch/part"
same "patience, stopped before its end: the best" "$scratch/best.w" "$scratch/again.w"
# Without --monitor it is the loss, and less is better.
least=$(sort -g -k 2 "$scratch/evals" | head -n 1 | cut -d' ' -f1)
[ "$(number "$(grep '"event":"end"' "$scratch/log")" best_step)" = "$least" ] && pass || fail "the least loss" "is not at $least"
LC_ALL=C sed 's/\("mdlc.note":"+fit.acc [0-9.]* [0-9]*\) 3"/\1 0"/' "$scratch/part" >"$scratch/turned"
cmp -s "$scratch/turned" "$scratch/part" && fail "note" "is not there" || pass
exits "a note that was changed" 1 "its checksum is another one" fit --steps 60 --resume "$scratch/turned"
exits "no evaluation" 2 "compare evaluations: --eval-every N" fit --steps 5 --best "$scratch/x"
exits "which way" 2 "say what is better, max:acc or min:acc" fit --steps 5 --eval-every 2 --best "$scratch/x" --monitor acc
exits "no such metric" 2 "no evaluation over held-out rows has 'f1'" fit --steps 5 --eval-every 2 --best "$scratch/x" --monitor max:f1
exits "nothing to monitor for" 2 "says what --best" fit --steps 5 --monitor max:acc
exits "one file for both" 2 "are one file" fit --steps 5 --eval-every 2 --best "$scratch/x" --save "$scratch/x"
exits "best in no folder" 1 "cannot write" fit --steps 5 --eval-every 2 --best "$scratch/none/x"
summary resume
