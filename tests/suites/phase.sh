#!/bin/sh
# Several trains in one run: what a run of phases does is what its trains do when they are called by
# name, one update after the other; it can be stopped anywhere; nobody touches another's weights.
# Pre-training and tuning with a frozen part, and the sample gan.mdl. LONG=1 stops at 12 random moments
# and trains the sample as it stands.
set -u
. tests/lib.sh
: "${LONG:=0}" "${SEED:=1}"
[ "$LONG" = 1 ] && stops=12 || stops=2
echo "phase: SEED=$SEED"

"$MDLC" tests/suites/phase.mdl -o "$scratch/phase.c" 2>"$scratch/err" &&
    quickly "$scratch/phase.c" "$scratch/phase" ||
    { fail phase "does not build: $(cat "$scratch/err")"; summary phase; exit 1; }
program=$scratch/phase
# Three slices [20, 10] of small numbers: each float is 2^-8 with two bits of its own.
{
    printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (60, 10), }"
    # shellcheck disable=SC2059
    printf "$(awk -v seed="$SEED" 'BEGIN { srand(seed); for (i = 0; i < 600; i++) printf "\\000\\%03o\\%03o\\073", rand() * 256, 128 + rand() * 64 }')"
} >"$scratch/shift.npy"
extra="--in shift=$scratch/shift.npy --set gain=0.5"
run() { "$program" --log none $extra "$@" 2>"$scratch/err"; }
fed() { "$program" g --log none $extra "$@" 2>"$scratch/err"; }
alone() { "$program" "$@" --log none 2>"$scratch/err"; }

# The same updates by name, in the order written.
run --steps 4 --steps tune=5 --seed 7 --checkpoint "$scratch/whole" --save "$scratch/whole.w" && pass || fail "whole run" "$(cat "$scratch/err")"
alone d --steps 1 --seed 7 --checkpoint "$scratch/chain" && fed --steps 1 --resume "$scratch/chain" --checkpoint "$scratch/chain"
for round in 2 3 4; do
    [ $round != 3 ] || cp "$scratch/chain" "$scratch/middle"
    alone d --steps $round --resume "$scratch/chain" --checkpoint "$scratch/chain" &&
        fed --steps $round --resume "$scratch/chain" --checkpoint "$scratch/chain"
done
cp "$scratch/chain" "$scratch/turned"
alone tune --steps 5 --resume "$scratch/chain" --checkpoint "$scratch/chain" --save "$scratch/chain.w"
same "updates by name" "$scratch/whole.w" "$scratch/chain.w"
same "all that persists, by name" "$scratch/whole" "$scratch/chain"
# The other order of turns is another run.
fed --steps 1 --seed 7 --checkpoint "$scratch/other" && alone d --steps 1 --resume "$scratch/other" --checkpoint "$scratch/other"
alone d --steps 1 --seed 7 --checkpoint "$scratch/first" && fed --steps 1 --resume "$scratch/first" --checkpoint "$scratch/first" --set gain=2
cmp -s "$scratch/other" "$scratch/first" && fail "order" "makes no difference" || pass

# Stopped between two rounds, between two phases, inside the second one.
run --steps 4 --steps tune=2 --seed 7 --checkpoint "$scratch/second"
for place in middle turned second; do
    run --steps 4 --steps tune=5 --resume "$scratch/$place" --checkpoint "$scratch/part" --save "$scratch/part.w" ||
        fail "resumed: $place" "$(cat "$scratch/err")"
    same "resumed: $place" "$scratch/whole.w" "$scratch/part.w"
    same "resumed, all that persists: $place" "$scratch/whole" "$scratch/part"
done
# A signal, at any moment; one that comes before the first update leaves nothing to go on from.
run --steps 600 --steps tune=600 --seed 7 --save "$scratch/long.w"
for pause in $(awk -v n=$stops -v seed="$SEED" 'BEGIN { srand(seed); for (i = 0; i < n; i++) printf "0.%03d\n", 20 + int(rand() * 200) }'); do
    rm -f "$scratch"/part*
    "$program" --log none $extra --steps 600 --steps tune=600 --seed 7 --checkpoint "$scratch/part" 2>/dev/null & child=$!
    sleep "$pause"
    kill -TERM $child 2>/dev/null
    wait $child 2>/dev/null
    from="--resume $scratch/part"
    [ -f "$scratch/part" ] || from="--seed 7"
    run --steps 600 --steps tune=600 $from --save "$scratch/part.w" || fail "stopped after $pause s" "$(cat "$scratch/err")"
    same "stopped after $pause s" "$scratch/long.w" "$scratch/part.w"
done

# Whose weights an update changes: one of each from the same seed.
alone d --steps 1 --seed 7 --save "$scratch/d" && fed --steps 1 --seed 7 --save "$scratch/g" && alone tune --steps 1 --seed 7 --save "$scratch/tune"
for file in d g tune whole turned; do
    alone weights --load "$scratch/$file" --out body_fc="$scratch/$file.body_fc" --out body_out="$scratch/$file.body_out" \
        --out head_fc="$scratch/$file.head_fc" --out other_fc1="$scratch/$file.other_fc1" --out other_fc2="$scratch/$file.other_fc2" ||
        fail "weights of $file" "$(cat "$scratch/err")"
done
keeps() { # FILE OTHER TENSOR...
    keeps_a=$1 keeps_b=$2
    shift 2
    for tensor; do same "$tensor of $keeps_a and $keeps_b" "$scratch/$keeps_a.$tensor" "$scratch/$keeps_b.$tensor"; done
}
moves() {
    moves_a=$1 moves_b=$2
    shift 2
    for tensor; do cmp -s "$scratch/$moves_a.$tensor" "$scratch/$moves_b.$tensor" && fail "$tensor of $moves_a and $moves_b" "is the same" || pass; done
}
keeps d tune other_fc1 other_fc2
keeps g tune body_fc
moves d g body_fc body_out head_fc other_fc1 other_fc2
moves g tune body_out head_fc other_fc1 other_fc2
# What the second phase freezes keeps its bytes, the rest of its models moves, others do not.
keeps turned whole body_fc other_fc1 other_fc2
moves turned whole body_out head_fc

# What is printed: turns in their order, whose line it is, an end for each.
# shellcheck disable=SC2086
"$program" $extra --steps 3 --steps tune=2 --log json --log-every 1 --eval-every 2 --log csv="$scratch/table" >"$scratch/log"
sed -n 's/.*"event":"\([a-z]*\)","entry":"\([a-z]*\)","step.*":\([0-9]*\),.*/\1 \2/p' "$scratch/log" | sed 's/,.*//' >"$scratch/lines"
printf '%s\n' 'step d' 'step g' 'step d' 'step g' 'eval d' 'eval g' 'step d' 'step g' 'eval d' 'eval g' \
    'end d' 'end g' 'step tune' 'step tune' 'eval tune' 'end tune' >"$scratch/expected"
same "lines of the log" "$scratch/expected" "$scratch/lines"
[ "$(grep -c '"resident_growth_pages":0}' "$scratch/log")" = 3 ] && pass || fail "pages" "$(grep growth "$scratch/log")"
[ "$(head -n 1 "$scratch/table")" = event,entry,step,epoch,loss,lr,acc,grad_norm,mae ] &&
    [ "$(awk -F, 'NF != 9' "$scratch/table" | wc -l)" = 0 ] && [ "$(wc -l <"$scratch/table")" = 14 ] && pass || fail "table" "$(cat "$scratch/table")"
# An evaluation sees the scalars and arrays of its own train, whoever staged in between.
loss=$(number "$(grep '"eval","entry":"g"' "$scratch/log" | tail -n 1)" mae)
"$program" g $extra --steps 3 --log json --eval-every 2 >"$scratch/log.g"
[ -n "$loss" ] && [ "$loss" = "$(number "$(grep '"eval"' "$scratch/log.g" | tail -n 1)" mae)" ] && pass || fail "evaluation between turns" "$loss"
[ "$(grep '"eval","entry":"g"' "$scratch/log" | sed 's/.*"loss"/"loss"/')" = "$(grep '"eval"' "$scratch/log.g" | sed 's/.*"loss"/"loss"/')" ] && pass ||
    fail "evaluation between turns" "other numbers than alone"

# Options that name a train, and what does not fit.
run --steps 2 --steps tune=1 --seed 7 --set lr=0.02 --save "$scratch/a" && run --steps d=2 --steps tune=1 --seed 7 --set d.lr=0.02 --set g.lr=0.02 --save "$scratch/b"
same "a name alone means every train that has it" "$scratch/a" "$scratch/b"
run --steps 2 --steps tune=1 --seed 7 --set lr=0.03 --set g.lr=0.02 --save "$scratch/b"
cmp -s "$scratch/a" "$scratch/b" && fail "--set g.lr" "does nothing" || pass
cp samples/data/diabetes.csv "$scratch/sick.csv"
run --steps 2 --steps tune=1 --seed 7 --set lr=0.02 --data sick.f="$scratch/sick.csv" --save "$scratch/b" && same "--data SET.FILE" "$scratch/a" "$scratch/b"
exits "--data of one set" 1 "none.csv" run --steps 2 --data sick.f="$scratch/none.csv"
exits "--data of no set" 2 "no such name; there are: f digits f sick$" run --steps 2 --data sack.f=x
exits "no such train" 2 "no such name; there are: d g tune" run --steps e=2
exits "no number" 2 "whole number from 0 up" run --steps d=
exits "turns of other lengths" 2 "'d' and 'g' take turns, but one is to make 2 updates and the other 3" run --steps d=2 --steps g=3
exits "epochs of other lengths" 2 "take turns, but one is to make 44 updates and the other 14" run --epochs 1
exits "steps and epochs of one" 2 "exclude each other" run --steps d=2 --epochs d=2
exits "no length" 2 "'d' does not say how long" run
exits "a name of another train" 2 "no such name" alone d --steps 1 --set gain=1
exits "an input that is missing" 2 "'g' needs input 'gain'" alone --steps 2
exits "turns that were left out" 1 "'d' has made 1 updates and 'g' 0, but they take turns" sh -c "\"$program\" d --steps 1 --checkpoint \"$scratch/out\" --log none && \"$program\" --log none $extra --steps 4 --resume \"$scratch/out\" 2>\"$scratch/err\""
exits "a phase that was left early" 2 "'g' has made 4 of 6 updates, but 'tune' behind it has begun; --steps g=N" run --steps 6 --resume "$scratch/second"
exits "weights" 1 "not a checkpoint of 'd'" run --steps 6 --resume "$scratch/whole.w"
exits "d diverges" 4 "of 'd' became .* nothing was saved" run --steps 50 --set d.lr=1e38
exits "g diverges" 4 "of 'g' became .*holds the weights of step [0-9]* of 'g'" run --steps 50 --set g.lr=1e38 --save "$scratch/x" --save-every 1
"$program" --help | grep -q '^  without a word  *d, g then tune$' && pass || fail "--help" "does not say what a run is"
exits "the best of which train" 2 "'d' and 'g' both have 'loss'" run --steps 4 --eval-every 2 --best "$scratch/x"
exits "an early end of an early phase" 2 "'d' is not of the last phase" run --steps 4 --eval-every 2 --monitor min:d.loss --patience 2
run --steps 4 --seed 7 --eval-every 2 --monitor min:tune.loss --best "$scratch/x" --save "$scratch/y" && pass || fail "best of a phase" "$(cat "$scratch/err")"

# The sample: an update of one train changes every tensor of its own network and no byte of the other.
gan() { "$scratch/gan" "$@" --log none --threads 1 2>"$scratch/err"; }
[ "$LONG" = 1 ] && smaller= || smaller="-D hidden=32 -D B=64"
# shellcheck disable=SC2086
"$MDLC" $smaller samples/gan.mdl -o "$scratch/gan.c" && quickly "$scratch/gan.c" "$scratch/gan" ||
    { fail gan "does not build"; summary phase; exit 1; }
changed() { # FILE: tensors that differ from those of three rounds, by network
    "$BUILD/tests/tools/stdiff" "$1" "$scratch/three.w" 0 | sed -n 's/^BAD \([a-z]*\)\..*/\1/p' | sort | uniq -c | tr -s ' \n' ' '
}
gan --steps 3 --seed "$SEED" --checkpoint "$scratch/three" --save "$scratch/three.w" || fail gan "$(cat "$scratch/err")"
for train in d g; do
    gan $train --steps 4 --resume "$scratch/three" --save "$scratch/four.w" || fail "gan $train" "$(cat "$scratch/err")"
    case "$train$(changed "$scratch/four.w")" in
    'd 6 disc ' | 'g 6 gen ') pass ;;
    *) fail "an update of $train" "changes$(changed "$scratch/four.w")" ;;
    esac
done
gan --steps 40 --seed "$SEED" --save "$scratch/four.w" && gan --steps 40 --resume "$scratch/three" --save "$scratch/part.w"
same "turns resumed" "$scratch/four.w" "$scratch/part.w"
# It learns: at least seven of the eight places are reached, and most points are near one.
good() { # FILE
    gan quality --load "$1" --out covered="$scratch/covered" --out near="$scratch/near"
    said=$(for file in covered near; do tail -c 4 "$scratch/$file" | od -An -tf4; done | tr -s ' \n' ' ')
    echo "$said" | awk '{ exit !($1 >= 7 && $2 > 0.6) }'
}
gan --seed "$SEED" --save "$scratch/gan.w"
good "$scratch/gan.w" && pass || fail "gan" "places and part of the points near one:$said"
good "$scratch/three.w" && fail "gan" "three rounds are as good:$said" || pass

# The sample of pre-training and tuning: with the same updates of the classifier, the encoder that has seen
# pictures makes far fewer mistakes than one that has not.
built tune ||
    { fail tune "does not build"; summary phase; exit 1; }
right() { # ARGUMENTS: the part of the held-out rows that is right at the end
    number "$("$program" "$@" --seed "$SEED" --threads 1 --log json | grep '"event":"eval"' | tail -n 1)" acc
}
tuned=$(right) alone=$(right fit)
awk -v t="$tuned" -v a="$alone" 'BEGIN { exit !(t > 0.88 && a > 0.5 && 1 - t < 0.7 * (1 - a)) }' && pass ||
    fail "tune" "accuracy $tuned with, $alone without pre-training"

# Memory goes by phases: the bound is that of the larger one, as reported and as measured, slots of a phase
# that is over are gone and those of the next one are taken where it begins. So it is with a checkpoint, which
# holds everything all the same, and for a run that goes on from one, in whichever phase; for one train by its
# name the regions lie side by side. The weights are the same bytes.
field() { # EVENT NAME FILE: of the last such line
    number "$(grep "\"event\":\"$1\"" "$3" | tail -n 1)" "$2"
}
"$MDLC" report --format=json samples/tune.mdl >"$scratch/tune.json"
regions=$(grep '"regions"' "$scratch/tune.json")
total=$(number "$regions" total) apart=$(number "$regions" apart)
most=$(sed -n 's/.*"entries":\["[a-z]*"\].*"total":\([0-9]*\).*/\1/p' "$scratch/tune.json" | sort -n | tail -n 1)
[ "${total:-0}" -gt 0 ] && [ "$total" = "$most" ] && [ "$total" -lt "$apart" ] && pass || fail "bound of phases" "$total, the largest $most, apart $apart"
short="--steps pre=30 --steps fit=9 --seed 3 --log json"
# shellcheck disable=SC2086
"$program" $short --save "$scratch/over.w" >"$scratch/log" || fail "tune" "does not run"
[ "$(field memory total "$scratch/log")" = "$total" ] && pass || fail "bound of phases" "$(field memory total "$scratch/log") in the run, $total in the report"
[ "$(grep '"event":"phase"' "$scratch/log" | sed 's/.*"total":\([0-9]*\).*/\1/' | sort -n | tail -n 1)" = "$total" ] && pass || fail "phases of the run" "$(grep '"phase"' "$scratch/log")"
page=$(getconf PAGESIZE)
measured() { # NAME: the log of a run stays within the bound of the largest phase, as reported
    [ -r /proc/self/statm ] || { skip "$1" "no /proc here"; return; }
    grep '"event":"end"' "$scratch/log" | while read -r line; do
        over=$(number "$line" peak_over_process_bytes) bound=$(number "$line" bound_bytes)
        [ "$over" -le "$bound" ] && [ "$bound" -le $((total + 12 * page)) ] && [ "$(number "$line" resident_growth_pages)" = 0 ] || echo "peak $over, bound $bound"
    done >"$scratch/bad"
    grep -q '"event":"end"' "$scratch/log" && [ ! -s "$scratch/bad" ] && [ "$(field memory total "$scratch/log")" = "$total" ] && pass ||
        fail "$1" "$(field memory total "$scratch/log"), not $total: $(cat "$scratch/bad")"
}
measured "memory of phases"
if [ -r /proc/self/statm ]; then
    given=$(field released bytes "$scratch/log") taken=$(field released taken "$scratch/log")
    [ "${given:-0}" -gt 200000 ] && [ "${taken:-0}" -gt 100000 ] && pass || fail "slots" "$given bytes given, $taken taken"
    grep '"event":"end"' "$scratch/log" | head -n 1 >"$scratch/first"
    [ "$(field end peak_rss_bytes "$scratch/first")" -gt "$(field released resident_bytes "$scratch/log")" ] && pass || fail "resident memory" "does not fall"
else
    skip "memory of phases" "no /proc here"
fi
# shellcheck disable=SC2086
"$program" $short --save "$scratch/apart.w" --checkpoint "$scratch/apart" >"$scratch/log" || fail "tune" "does not run"
measured "a run with a checkpoint"
grep -q '"released"' "$scratch/log" && pass || fail "a run with a checkpoint" "gives nothing back"
same "weights with and without a checkpoint" "$scratch/apart.w" "$scratch/over.w"
"$program" fit --steps 1 --seed 3 --log json >"$scratch/log"
[ "$(field memory total "$scratch/log")" = "$apart" ] && pass || fail "a train by its name" "$(field memory total "$scratch/log"), apart $apart"
# One by one in memory that has everything: the same checkpoint.
"$program" pre --steps 30 --seed 3 --log none --checkpoint "$scratch/chain" && "$program" fit --steps 9 --log none --resume "$scratch/chain" --checkpoint "$scratch/chain"
same "a checkpoint of phases and of trains by name" "$scratch/chain" "$scratch/apart"
# A run goes on in the first phase, between the two, in the second one, at its end.
for done in "pre=12 --steps fit=0" "pre=30 --steps fit=0" "pre=30 --steps fit=4" "pre=30 --steps fit=9"; do
    rm -f "$scratch"/part*
    # shellcheck disable=SC2086
    "$program" --steps $done --seed 3 --log none --checkpoint "$scratch/part" && "$program" ${short% --seed*} --log json --resume "$scratch/part" \
        --checkpoint "$scratch/part" --save "$scratch/part.w" >"$scratch/log" || fail "goes on: $done" "does not"
    same "weights of a run that goes on: $done" "$scratch/apart.w" "$scratch/part.w"
    same "checkpoint of a run that goes on: $done" "$scratch/apart" "$scratch/part"
    measured "memory of a run that goes on: $done"
done
# The one before it, where the last one is damaged.
head -c 3000 "$scratch/part" >"$scratch/cut"
"$program" --steps pre=30 --steps fit=4 --seed 3 --log none --checkpoint "$scratch/cut.old"
# shellcheck disable=SC2086
exits "a damaged checkpoint" 0 "going on from '.*cut.old', step 4" sh -c "\"$program\" ${short% --seed*} --log none --resume \"$scratch/cut\" --checkpoint \"$scratch/again\" 2>\"$scratch/err\""
same "a damaged checkpoint" "$scratch/apart" "$scratch/again"
# What is not there is kept in a file beside; where there is no room for that, or nothing beside, a run says so,
# or has everything at once.
exits "no room beside the checkpoint" 1 "cannot write '.*full'" sh -c "ulimit -f 1; \"$program\" $short --log none --checkpoint \"$scratch/full\" 2>\"$scratch/err\""
# shellcheck disable=SC2086
"$program" $short --save /dev/stdout >"$scratch/log" && [ "$(number "$(grep -a '"event":"memory"' "$scratch/log")" total)" = "$apart" ] && pass || fail "weights to a pipe" "need a file"
ls -A "$scratch" | grep -q tmp && fail "files left behind" "$(ls -A "$scratch" | grep tmp)" || pass
# A budget holds for the largest phase.
"$MDLC" --budget="$total" samples/tune.mdl -o "$scratch/tune.c" && pass || fail "budget" "$total is enough for each phase"
"$MDLC" --no-main --budget="$total" samples/tune.mdl -o "$scratch/tune.c" 2>"$scratch/err" && fail "budget" "a host has no phases" || pass
"$MDLC" --budget=400000 samples/tune.mdl -o "$scratch/tune.c" 2>"$scratch/err" && fail "budget" "holds" || { grep -q 'in phase 1, the largest' "$scratch/err" && pass || fail "budget" "$(cat "$scratch/err")"; }

# Weights that only the second phase reads: a frozen base of 2 MiB with a trained addition, and averages of
# that. They are drawn, or read from the files, where the phase begins.
"$MDLC" tests/suites/later.mdl -o "$scratch/later.c" && $CC -O1 $STRICT_FLAGS -fopenmp "$scratch/later.c" -lm -o "$scratch/later" ||
    { fail later "does not build"; summary phase; exit 1; }
program=$scratch/later
later() { "$program" --log none "$@" 2>"$scratch/err" || fail "later $*" "$(cat "$scratch/err")"; }
base=$((2 * 512 * 512 * 4))
"$program" info >"$scratch/info"
awk -v base=$base '/^  phase 1/ { gsub(",", ""); one = $3 } /^  phase 2/ { gsub(",", ""); two = $3 } END { exit !(one > 0 && one < base / 2 && two > base) }' "$scratch/info" && pass ||
    fail "later" "$(grep '^  phase' "$scratch/info")"
later --steps 0 --seed 11 --save "$scratch/other.w"
later --steps 0 --seed 12 --save "$scratch/adds.w" --save-only add
for from in "--seed 5" "--seed 5 --load $scratch/other.w" "--seed 5 --load $scratch/other.w --with $scratch/adds.w"; do
    rm -f "$scratch"/chain* "$scratch"/part*
    # shellcheck disable=SC2086
    later first --steps 20 $from --checkpoint "$scratch/chain" && later second --steps 10 --resume "$scratch/chain" --checkpoint "$scratch/chain" --save "$scratch/chain.w"
    later second --steps 0 --resume "$scratch/chain" --save "$scratch/chain.add" --save-only add,small
    # shellcheck disable=SC2086
    later $from --save "$scratch/part.add" --save-only add,small
    same "later, its base not saved: $from" "$scratch/chain.add" "$scratch/part.add"
    # shellcheck disable=SC2086
    "$program" $from --log json --save "$scratch/part.small" --save-only small >"$scratch/log" 2>"$scratch/err" || fail "later $from" "$(cat "$scratch/err")"
    grep '"event":"end"' "$scratch/log" | head -n 1 >"$scratch/first"
    if [ -r /proc/self/statm ]; then
        more=$(($(field end peak_rss_bytes "$scratch/log") - $(field end peak_rss_bytes "$scratch/first")))
        [ $more -ge $((base - 16 * page)) ] && pass || fail "resident before its phase: $from" "$more more behind it, $(cat "$scratch/first")"
        [ "$(field end peak_over_process_bytes "$scratch/log")" -le "$(field end bound_bytes "$scratch/log")" ] && pass || fail "bound: $from" "$(tail -n 1 "$scratch/log")"
    else
        skip "resident before its phase" "no /proc here"
    fi
    # shellcheck disable=SC2086
    later $from --save "$scratch/part.w" --checkpoint "$scratch/part"
    same "later, weights: $from" "$scratch/chain.w" "$scratch/part.w"
    same "later, checkpoint: $from" "$scratch/chain" "$scratch/part"
    for done in "first=7 --steps second=0" "first=20 --steps second=0" "first=20 --steps second=4"; do
        rm -f "$scratch"/part*
        # shellcheck disable=SC2086
        later $from --steps $done --checkpoint "$scratch/part"
        later --resume "$scratch/part" --save "$scratch/part.w" --checkpoint "$scratch/part"
        same "later, weights of a run that goes on: $done $from" "$scratch/chain.w" "$scratch/part.w"
        same "later, checkpoint of a run that goes on: $done $from" "$scratch/chain" "$scratch/part"
    done
done
# Where it is saved, it is in memory once in front of the first phase, and not while that runs.
if [ -r /proc/self/smaps_rollup ]; then
    mkfifo "$scratch/fifo"
    "$program" --steps first=9000 --log json --log-every 1 --checkpoint "$scratch/part" >"$scratch/fifo" 2>"$scratch/err" & child=$!
    exec 9<"$scratch/fifo"
    while read -r line <&9; do # the pipe holds less than the lines of the first phase
        case $line in
        *'"event":"memory"'*) before=$(number "$line" process) ;;
        *'"event":"step"'*) break ;;
        esac
    done
    resident=$(awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$child/smaps_rollup")
    kill -9 $child
    wait $child 2>/dev/null
    exec 9<&-
    [ "${resident:-0}" -gt "$before" ] && [ "$resident" -lt $((before + base)) ] && pass || fail "resident in the first phase" "$resident, $before at the start"
else
    skip "resident in the first phase" "no smaps_rollup here"
fi
# The averages of a file in place of its weights.
cp "$scratch/chain" "$scratch/avg.w"
later first --steps 20 --seed 5 --load "$scratch/avg.w" --weights plus --checkpoint "$scratch/chain" && later second --steps 10 --resume "$scratch/chain" --save "$scratch/chain.w"
later --seed 5 --load "$scratch/avg.w" --weights plus --save "$scratch/part.w"
same "later, averages as weights" "$scratch/chain.w" "$scratch/part.w"
# A file that gets another name meanwhile is the one that was checked; one that is written to is refused.
cp "$scratch/other.w" "$scratch/mine.w"
later --seed 5 --load "$scratch/other.w" --save "$scratch/part.w" && later --seed 5 --load "$scratch/mine.w" --save "$scratch/mine.w" --save-every 1
same "a file that the run replaces" "$scratch/part.w" "$scratch/mine.w"
cp "$scratch/other.w" "$scratch/mine.w"
"$program" --seed 5 --steps first=9000 --load "$scratch/mine.w" --log json --log-every 1 2>"$scratch/err" | {
    while read -r line; do # as above
        case $line in *'"event":"step"'*) break ;; esac
    done
    printf x | dd of="$scratch/mine.w" bs=1 seek=$((base / 2)) conv=notrunc 2>/dev/null
    cat >/dev/null
}
grep -q "mine.w: was changed while weights in it waited for their phase" "$scratch/err" && pass || fail "a file that changes" "$(cat "$scratch/err")"
summary phase
