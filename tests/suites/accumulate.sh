#!/bin/sh
# accumulate: four times 4 rows make the update of 16 (accumulate.mdl), for losses of every form; what
# is not a value of the update is done once; the bits do not depend on the number of threads.
set -u
. tests/lib.sh
model=tests/suites/accumulate.mdl program=$scratch/accumulate

# run TRAIN [OPTION...]: weights, checkpoint and steps of a run.
run() {
    run_train=$1
    shift
    "$program" "$run_train" --log json --log-every 1 --save "$scratch/$run_train.st" \
        --checkpoint "$scratch/$run_train.ck" "$@" >"$scratch/$run_train.log" 2>"$scratch/err" </dev/null ||
        fail "$run_train" "$(head -n 1 "$scratch/err")"
}
# pair FORM TOLERANCE [OPTION...]
pair() {
    pair_form=$1 pair_tolerance=$2
    shift 2
    run "whole_$pair_form" "$@"
    run "parts_$pair_form" "$@"
    check "$pair_form: weights" "$BUILD/tests/tools/stdiff" "$scratch/whole_$pair_form.st" "$scratch/parts_$pair_form.st" \
        "$pair_tolerance"
    for name in loss acc average kept square grad_norm; do
        for side in whole parts; do
            sed -n 's/.*"event":"step".*"'$name'":\([-+0-9.eE]*\).*/\1/p' "$scratch/${side}_$pair_form.log" >"$scratch/$side"
        done
        [ -s "$scratch/whole" ] || continue
        if paste "$scratch/whole" "$scratch/parts" | awk -v t="$pair_tolerance" '
            { d = $1 - $2; if (NF != 2 || d * d > t * t * ($1 * $1 + 1e-8)) bad = 1 } END { exit bad || NR < 10 }'; then
            pass
        else
            fail "$pair_form: $name" "$(paste "$scratch/whole" "$scratch/parts" | tail -n 1)"
        fi
    done
}

if ! "$MDLC" $model -o "$program.c" || ! $CC -O0 -fopenmp "$program.c" -lm -o "$program"; then
    fail accumulate "does not build"
    summary accumulate
    exit 1
fi
pair mean 1e-5
pair ratio 1e-5
pair root 1e-5
pair state 1e-5
pair torch 1e-5
pair normed 1e-4 # ten updates through statistics of 4 rows
# What is done once an update.
[ "$(grep -c '"once":0}' "$scratch/parts_mean.log")" -ge 10 ] && pass || fail "once an update" "$(tail -n 1 "$scratch/parts_mean.log")"
[ "$(grep -c '"slope":[0-9]' "$scratch/whole_mean.log")" = 10 ] && ! grep '"event":"eval"' "$scratch/whole_mean.log" | grep -q slope &&
    pass || fail "a metric of a gradient" "$(tail -n 2 "$scratch/whole_mean.log")"
# It makes a difference which of the two rules holds.
if "$BUILD/tests/tools/stdiff" "$scratch/parts_torch.st" "$scratch/parts_ratio.st" 1e-3 >/dev/null; then
    fail "a pair that cannot differ"
else
    pass
fi
# Arrays: an update takes [4, 4, 64], or as many numbers of [16, 64].
awk 'BEGIN { srand(3); for (i = 0; i < 16 * 64; i++) printf "%c", int(rand() * 100) + 1 }' >"$scratch/bytes"
array() { # NAME SHAPE
    array_head="{'descr': '|u1', 'fortran_order': False, 'shape': ($2), }"
    { printf '\223NUMPY\1\0'; printf "\\$(printf %03o ${#array_head})\\0%s" "$array_head"; cat "$scratch/bytes"; } >"$scratch/$1.npy"
}
array whole '16, 64'
array parts '4, 4, 64'
run whole_given --in x="$scratch/whole.npy"
run parts_given --in x="$scratch/parts.npy"
check "given: weights" "$BUILD/tests/tools/stdiff" "$scratch/whole_given.st" "$scratch/parts_given.st" 1e-5
if "$program" parts_given --in x="$scratch/whole.npy" 2>"$scratch/err" >/dev/null; then
    fail "given: an array of another form"
elif grep -q 'takes \[4, 4, 64\]' "$scratch/err"; then
    pass
else
    fail "given: an array of another form" "$(head -n 1 "$scratch/err")"
fi
# The same bits with any number of threads, and a resume in the middle.
for threads in 1 3; do
    run parts_mean --threads $threads
    cp "$scratch/parts_mean.ck" "$scratch/$threads.ck"
done
same "threads" "$scratch/1.ck" "$scratch/3.ck"
run parts_mean --steps 4
run parts_mean --resume "$scratch/parts_mean.ck" --steps 10
same "resume" "$scratch/1.ck" "$scratch/parts_mean.ck"
# Side by side they have the same bits as one behind the other, for any number of threads, in memory that was there
# before the first step; so have builds that look at each call, in which one thread has them all.
aside() { # NAME [OPTION...]: weights of each train of this build beside those of before
    aside_name=$1
    shift
    for form in mean ratio root state torch given; do
        [ $form = given ] && set -- --in x="$scratch/parts.npy" "$@"
        run parts_$form "$@"
        same "$aside_name: weights of $form" "$scratch/$form.before" "$scratch/parts_$form.st"
        grown=$(number "$(grep '"event":"end"' "$scratch/parts_$form.log")" resident_growth_pages)
        [ "$grown" = 0 ] && pass || fail "$aside_name: $form" "$grown pages added"
    done
}
for form in mean ratio root state torch; do
    run parts_$form
    mv "$scratch/parts_$form.st" "$scratch/$form.before"
done
run parts_given --in x="$scratch/parts.npy"
mv "$scratch/parts_given.st" "$scratch/given.before"
for how in --line --checks=canary --checks=nan --split=3; do
    "$MDLC" $how -D aside=true $model -o "$scratch/aside.c" || { fail "side by side, $how" "does not compile"; continue; }
    turns=$(cat "$scratch"/aside*.c | grep -c '^static void .*_turns[0-9]*_(') expected=0
    case $how in --line | --split=3) expected=6 ;; esac
    [ "$turns" = $expected ] && pass || fail "side by side, $how" "$turns functions of turns, not $expected"
    $CC -O0 -fopenmp "$scratch"/aside*.c -lm -o "$program" || { fail "side by side, $how" "does not build"; continue; }
    rm "$scratch"/aside*.c
    for threads in 3 1 2 4; do
        aside "$how, $threads threads" --threads $threads
        [ $how = --line ] || break
    done
done
# No turn writes what another one touches: the function of the turns in threads of its own under ThreadSanitizer,
# which reports what a memory shared by both would be.
if ! "$MDLC" --no-main --prefix acc -D aside=true $model -o "$scratch/race.c"; then
    fail "races" "does not compile"
elif ! $CC -fsanitize=thread -x c -o "$scratch/try" - 2>/dev/null <<'E' || ! "$scratch/try"
int main(void) { return 0; }
E
then
    skip "races" "$CC has no ThreadSanitizer"
else
    turns=$(sed -n 's/^static void \(acc_parts_given_turns[0-9]*_\)(.*/\1/p' "$scratch/race.c")
    for apart in 1 0; do
        $CC -O0 -g -fsanitize=thread -DAPART=$apart -DTURNS="$turns" -DARGS="${turns}args" -I"$scratch" -I. tests/suites/aside_race.c -lm -pthread -o "$scratch/race" ||
            fail "races" "does not build"
        "$scratch/race" >"$scratch/log" 2>"$scratch/err"
        code=$?
        [ $apart$code = 10 ] && pass && continue
        [ $apart = 0 ] && grep -q 'data race' "$scratch/err" && pass || fail "races, apart: $apart" "$code: $(head -n 2 "$scratch/err")"
    done
fi
# Where products and sums are rounded together, a sum over the turns is not: it is as long behind the loop as in it.
cat >"$scratch/side.mdl" <<'END'
use nn;
dim B = 24;
dataset d {
    file f = synthetic(195, seed = 60);
    x: f32[31] = normal(0, 1);
}
model net(x: [b, 31]) -> [b, 5] { return x |> fc: linear(5); }
train fit of net on d[B] {
    loss mean(net(x)^2);
    optimizer sgd(lr = 0.02);
    accumulate 3, parallel = true;
    steps 6;
}
END
sed 's/, parallel = true//' "$scratch/side.mdl" >"$scratch/turn.mdl"
for form in side turn; do
    "$MDLC" "$scratch/$form.mdl" -o "$scratch/$form.c" && $CC -O1 -march=native -fopenmp -ffp-contract=off "$scratch/$form.c" -lm -o "$scratch/$form" &&
        "$scratch/$form" --seed 7 --log json --log-every 1 --save "$scratch/$form.w" 2>&1 | grep '"event":"step"' >"$scratch/$form.log"
done
same "side by side: weights" "$scratch/turn.w" "$scratch/side.w"
same "side by side: losses" "$scratch/turn.log" "$scratch/side.log"
# Metrics of tables that the turns add up are those of all rows, to the digit where they count.
cat >"$scratch/tables.mdl" <<'END'
use nn;
dim B = 4;
dataset d {
    file f = synthetic(48, seed = 61);
    x: f32[5] = normal(0, 1);
    y: i32 in 0..3 = randint(0, 3);
}
model net(x: [B, 5]) -> [B, 3] { return x |> fc: linear(3); }
train fit of net on d[B] {
    p = net(x);
    loss mean(cross_entropy(p, y));
    table = confusion(p, y);
    seen[j < 3] = sum[b] f32(y[b] == j);
    ones[b < B] = 1.0;
    metric table = table;
    metric all = sum(table);
    metric macro = mean[j] (table[j, j] / max(sum[k] table[j, k], 1));
    metric second = seen[1];
    metric least = min(seen);
    metric places = segment_sum(ones, y, 3);
    optimizer sgd(lr = 0.5);
    accumulate 3;
    steps 4;
}
END
sed 's/accumulate 3;//; s/B = 4/B = 12/' "$scratch/tables.mdl" >"$scratch/tables_whole.mdl"
sed 's/accumulate 3/accumulate 3, parallel = true/' "$scratch/tables.mdl" >"$scratch/tables_side.mdl"
for form in tables tables_whole tables_side; do
    "$MDLC" -Werror "$scratch/$form.mdl" -o "$scratch/$form.c" && $CC -O1 -fopenmp "$scratch/$form.c" -lm -o "$scratch/$form" &&
        "$scratch/$form" --seed 7 --log json --log-every 1 2>&1 | sed -n 's/.*"event":"step".*"metrics"//p' >"$scratch/$form.log"
done
[ "$(grep -c '"table_2_2":.*"all":12,.*"second":[0-9].*"places_2":[0-9]' "$scratch/tables_whole.log")" = 4 ] && pass || fail "metrics of tables" "$(head -n 1 "$scratch/tables_whole.log")"
same "metrics of tables" "$scratch/tables_whole.log" "$scratch/tables.log"
same "metrics of tables, side by side" "$scratch/tables_whole.log" "$scratch/tables_side.log"
# What is behind the turns reads a loss and a metric as they are reported, be they means of the turns. A clause
# reads a state as it is where the clause stands, with turns and without.
cat >"$scratch/told.mdl" <<'END'
use nn;
dim B = 4;
dataset d {
    file f = synthetic(48, seed = 62);
    x: f32[5] = normal(0, 1);
}
model net(x: [B, 5]) -> [B, 3] { return x |> fc: linear(3); }
state best: f32 = 0;
train fit of net on d[B] {
    y = net(x)^2;
    loss max(y) / 8;
    metric top = max(y), old = best;
    optimizer sgd(lr = top + 8 * loss + best);
    clip norm(0.1);
    accumulate 3;
    best <- loss;
    steps 4;
}
END
sed 's/accumulate 3;//' "$scratch/told.mdl" >"$scratch/told_whole.mdl"
for form in told told_whole; do
    "$MDLC" "$scratch/$form.mdl" -o "$scratch/told.c" 2>"$scratch/err" && $CC -O1 -fopenmp "$scratch/told.c" -lm -o "$scratch/told" &&
        "$scratch/told" --log json --log-every 1 2>&1 | grep '"event":"step"' >"$scratch/told.log"
    awk -F'[:,{}]' '
        { for (i = 1; i < NF; i++) v[$i] = $(i + 1); loss = v["\"loss\""]; top = v["\"top\""]; old = v["\"old\""]
          d = v["\"lr\""] - (top + 8 * loss + old); f = old - last; last = loss
          if (d * d > 1e-10 * top * top || f * f > 1e-12 || top <= 0) bad = 1 } END { exit bad || NR != 4 }' "$scratch/told.log" &&
        pass || fail "behind the turns: $form" "$(head -n 2 "$scratch/told.log")"
done
# Beside the rows and the gradient sums the memory does not grow with the number of micro-batches.
for k in 4 64; do
    sed "s/accumulate 4/accumulate $k/" $model >"$scratch/many.mdl"
    "$MDLC" report --format=json "$scratch/many.mdl" | sed -n 's/.*"regions".*"arena":\([0-9]*\).*/\1/p' >"$scratch/arena.$k"
done
same "arena of 4 and of 64" "$scratch/arena.4" "$scratch/arena.64"
summary accumulate
