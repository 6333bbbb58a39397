#!/bin/sh
# Entries in phases: one goes through a data set batch by batch, the last one with few rows, in front of
# a train of the rows that it pushed to a ring. What the rows are, how many, resumes anywhere, what does
# not fit.
set -u
. tests/lib.sh
: "${LONG:=0}" "${SEED:=1}"
[ "$LONG" = 1 ] && stops=12 || stops=2
echo "passes: SEED=$SEED"
run() { "$program" --log none "$@" 2>"$scratch/err"; }
held() { "$program" held --resume "$1" 2>"$scratch/err" >"$scratch/held" || cat "$scratch/err"; }
of() { sed -n "s/^$1 = //p" "$scratch/held"; }

for checks in none nan canary; do
    "$MDLC" --checks=$checks tests/suites/passes.mdl -o "$scratch/passes.c" 2>"$scratch/err" &&
        $CC -O1 $STRICT_FLAGS -fopenmp "$scratch/passes.c" -lm -o "$scratch/passes" 2>>"$scratch/err" ||
        { fail "passes $checks" "does not build: $(cat "$scratch/err")"; summary passes; exit 1; }
    program=$scratch/passes
    run --seed 7 --checkpoint "$scratch/whole" --save "$scratch/whole.w" && pass || fail "whole run $checks" "$(cat "$scratch/err")"
    # 1,438 rows in 29 calls of 50 and one of 38, in the order of the file; one by one they are the same.
    held "$scratch/whole"
    [ "$(of n)" = 1438 ] && [ "$(of labels)" = 0 ] && pass || fail "rows $checks" "$(of n), $(of labels) labels differ"
    awk -v d="$(of apart)" 'BEGIN { exit !(d >= 0 && d < 1e-6) }' && pass || fail "codes $checks" "differ by $(of apart)"
    awk -F, 'NR % 5 != 0 { print $65 + 0 }' samples/data/digits.csv >"$scratch/labels"
    "$program" held --resume "$scratch/whole" --out y="$scratch/y.npy" >"$scratch/err" && tail -c 1500 "$scratch/y.npy" | head -c 1438 | od -An -v -w1 -tu1 | tr -d ' ' >"$scratch/y"
    same "labels $checks" "$scratch/labels" "$scratch/y"
    # Whoever takes turns with a train is called as often.
    [ "$(of passes)" = 168 ] && pass || fail "turns $checks" "$(of passes)"
    [ "$checks" = none ] && cp "$scratch/whole.w" "$scratch/plain.w"
    same "weights with --checks=$checks" "$scratch/plain.w" "$scratch/whole.w"
done
"$MDLC" tests/suites/passes.mdl -o "$scratch/passes.c" && $CC -O1 -fopenmp "$scratch/passes.c" -lm -o "$scratch/passes"

# By name, one behind the other: the same bytes.
run encode --seed 7 --checkpoint "$scratch/chain" && run fit --resume "$scratch/chain" --checkpoint "$scratch/chain" &&
    run mark --steps 168 --resume "$scratch/chain" --checkpoint "$scratch/chain" && run single --resume "$scratch/chain" --checkpoint "$scratch/chain" ||
    fail "by name" "$(cat "$scratch/err")"
same "by name" "$scratch/whole" "$scratch/chain"
# Stopped in the pass, between two phases and, by a signal, anywhere.
run encode --steps 11 --seed 7 --checkpoint "$scratch/early"
run encode --seed 7 --checkpoint "$scratch/between"
for place in early between; do
    run --resume "$scratch/$place" --checkpoint "$scratch/part" || fail "resumed: $place" "$(cat "$scratch/err")"
    same "resumed: $place" "$scratch/whole" "$scratch/part"
done
run --epochs 400 --seed 7 --save "$scratch/long.w" || fail "long run" "$(cat "$scratch/err")"
for pause in $(awk -v n=$stops -v seed="$SEED" 'BEGIN { srand(seed); for (i = 0; i < n; i++) printf "0.%03d\n", 5 + int(rand() * 120) }'); do
    rm -f "$scratch"/part*
    "$program" --log none --epochs 400 --seed 7 --checkpoint "$scratch/part" 2>/dev/null & child=$!
    sleep "$pause"
    kill -TERM $child 2>/dev/null
    wait $child
    from="--resume $scratch/part"
    [ -f "$scratch/part" ] || from="--seed 7"
    # shellcheck disable=SC2086
    run --epochs 400 $from --save "$scratch/part.w" || fail "stopped after $pause s" "$(cat "$scratch/err")"
    same "stopped after $pause s" "$scratch/long.w" "$scratch/part.w"
done

# Options; two passes, part of one; what does not fit is said before the first call.
run --steps encode=7 --steps fit=3 --steps single=5 --checkpoint "$scratch/part" && held "$scratch/part" && [ "$(of n)" = 350 ] && [ "$(of passes)" = 3 ] && pass || fail "--steps" "$(of n) $(of passes)"
run --epochs encode=2 --steps fit=3 --steps single=1 --checkpoint "$scratch/part" && held "$scratch/part" && [ "$(of n)" = 1500 ] && pass || fail "two passes" "$(of n)"
run --steps 0 --save "$scratch/none.w" && pass || fail "--steps 0" "$(cat "$scratch/err")"
"$program" --log json --log-every 10 --steps fit=20 --log csv="$scratch/table" >"$scratch/log" 2>"$scratch/err"
[ "$(sed -n 's/.*"event":"\([a-z]*\)","entry":"\([a-z]*\)".*/\1 \2/p' "$scratch/log" | uniq -c | tr -s ' \n' ' ')" = \
    " 3 step encode 1 end encode 1 step fit 1 step mark 1 step fit 1 step mark 1 end fit 1 end mark $(grep -c '"step","entry":"single"' "$scratch/log") step single 1 end single " ] &&
    pass || fail "lines of the log" "$(cat "$scratch/log")"
grep '"entry":"encode"' "$scratch/log" | grep -q loss && fail "log" "a pass has a loss" || pass
[ "$(wc -l <"$scratch/table")" = 3 ] && pass || fail "table" "$(cat "$scratch/table")"
[ "$(grep -c '"resident_growth_pages":0}' "$scratch/log")" = 4 ] && pass || fail "pages" "$(grep growth "$scratch/log")"
exits "too few rows" 1 "ring 'cache' holds 0 rows when 'fit' begins, which takes 50 at once" run fit --steps 1
exits "too few pushes" 1 "ring 'cache' holds 0 rows when 'fit' begins" run --steps encode=0
exits "a checkpoint without rows" 1 "ring 'cache' holds 0 rows when 'fit' begins" sh -c "\"$program\" mark --steps 1 --log none --checkpoint \"$scratch/x\" && \"$program\" fit --log none --resume \"$scratch/x\" 2>\"$scratch/err\""
exits "turns of other lengths" 2 "take turns, but one is to make 3 updates and the other 4" run --steps fit=3 --steps mark=4
exits "rows in use are not set" 2 "no such name" run encode --set rows=3
exits "no evaluation" 2 "has nothing to evaluate\|cannot be run" run eval fit --load "$scratch/whole.w"
"$program" --help | grep -q '^  encode  *go through its data$' && pass || fail "--help" "does not say what 'encode' is"

# A ring that is shorter than the data keeps the last rows.
"$MDLC" -D N=100 tests/suites/passes.mdl -o "$scratch/short.c" && $CC -O1 -fopenmp "$scratch/short.c" -lm -o "$scratch/short"
program=$scratch/short
run --steps fit=9 --checkpoint "$scratch/part" || fail "a short ring" "$(cat "$scratch/err")"
held "$scratch/part"
[ "$(of n)" = 100 ] && [ "$(of labels)" = 0 ] && awk -v d="$(of apart)" 'BEGIN { exit !(d >= 0 && d < 1e-6) }' && pass || fail "a short ring" "$(of n) $(of labels) $(of apart)"

# A frozen encoder of texts in front of a classifier (tests/unit/programs), small: 60 texts of two kinds, 8 at once.
if have python3 && python3 -B - "$scratch" <<'P'
import random, sys
sys.path.insert(0, 'tests/suites')
import npy
random.seed(1)
rows, labels = [], []
for i in range(60):
    rows += [random.randint(3, 16)] + [random.randint(0, 99) + 100 * (i % 2) for _ in range(16)]
    labels.append(i % 2)
npy.write(sys.argv[1] + "/mails.npy", "(60, 17)", rows, "i", "<i4")
npy.write(sys.argv[1] + "/labels.npy", "(60,)", labels, "B", "|u1")
P
then
    "$MDLC" -D T=16 -D V=200 -D C=24 -D H=4 -D L=2 -D N=64 -D B=8 --prefix bert tests/unit/programs/10_bert_phases.mdl -o "$scratch/bert.c" &&
        $CC -O1 $STRICT_FLAGS -fopenmp "$scratch/bert.c" -lm -o "$scratch/bert" &&
        "$scratch/bert" --data f="$scratch/mails.npy" --data g="$scratch/labels.npy" --seed 2 --epochs 60 --log json --log-every 1 >"$scratch/log" 2>"$scratch/err" || fail "encoder of texts" "$(cat "$scratch/err")"
    loss=$(sed -n 's/.*"event":"step","entry":"fit".*"loss":\([0-9.]*\).*/\1/p' "$scratch/log" | tail -n 7 | awk '{ sum += $1 } END { print sum / NR }')
    grep -q '"event":"end","entry":"encode","steps":8,' "$scratch/log" && grep -q '"event":"end","entry":"fit","steps":420,' "$scratch/log" &&
        awk -v l="$loss" 'BEGIN { exit !(l > 0 && l < 0.45) }' && pass || fail "encoder of texts" "loss $loss"
elif have python3; then
    fail "encoder of texts" "its data are not written"
else
    skip "encoder of texts" "no python3"
fi
# The dumped graph makes the same program; the evaluator pushes the rows in use.
"$MDLC" --dump=fma tests/suites/passes.mdl >"$scratch/dump.mdl" && "$MDLC" --prefix passes "$scratch/dump.mdl" -o "$scratch/dump.c" && $CC -O1 -fopenmp "$scratch/dump.c" -lm -o "$scratch/dump" &&
    "$scratch/dump" --log none --seed 7 --save "$scratch/dump.w"
same "dumped" "$scratch/whole.w" "$scratch/dump.w"
# A frozen encoder's weights go back to the system behind the phase that reads them, whether they are saved or not; they are
# those that the second phase has no offset of. Its weights are the same bytes either way, and so is the encoder in the file.
built mail || fail "samples/mail.mdl" "does not build"
mail=$scratch/mail
cp "$program" "$mail"
"$mail" --seed 3 --log json --log-every 10000 --save "$scratch/head.st" --save-only head >"$scratch/log" || fail "mail" "does not run"
encoder=$("$MDLC" report --format=json samples/mail.mdl | tr ',{' '\n\n' | awk -F '[:"]+' '
    $2 == "name" { inside = $3 ~ /^encoder\./ } $2 == "bytes" && inside { sum += $3; inside = 0 } END { print sum + 0 }')
given=$(number "$(grep '"event":"released"' "$scratch/log")" bytes) left=$(number "$(grep '"event":"released"' "$scratch/log")" resident_bytes)
before=$(number "$(grep '"event":"end"' "$scratch/log" | head -n 1)" peak_rss_bytes)
page=$(getconf PAGESIZE)
bound=$(number "$(grep '"event":"end"' "$scratch/log" | head -n 1)" bound_bytes)
"$MDLC" report --format=json samples/mail.mdl >"$scratch/mail.json"
total=$(number "$(grep '"regions"' "$scratch/mail.json")" total)
[ "$(number "$(grep '"event":"memory"' "$scratch/log")" total)" = "$total" ] && [ "$total" -le "$bound" ] && [ "$bound" -le $((total + 12 * page)) ] && pass ||
    fail "bound of phases" "$total reported, $bound measured against"
[ "${given:-0}" -gt 1500000 ] && [ "$given" -ge $((encoder - 2 * page)) ] && [ "$given" -le "$encoder" ] && pass ||
    fail "released" "${given:-nothing} of $encoder bytes"
[ "${left:-0}" -gt 0 ] && [ $((before - left)) -ge $((given - 16 * page)) ] && pass || fail "resident" "$before before and $left behind"
[ "$(number "$(grep '"event":"end"' "$scratch/log" | tail -n 1)" resident_growth_pages)" = 0 ] && pass || fail "resident" "grows in the second phase"
awk -v loss="$(number "$(grep '"event":"end"' "$scratch/log" | tail -n 1)" acc)" 'BEGIN { exit !(loss > 0.8) }' && pass || fail "mail" "does not learn"
"$MDLC" --no-main samples/mail.mdl -o "$scratch/mail.c"
awk '/^int mail_fit\(.*{$/ { inside = 1; n++ } inside && /encoder/ { n = 9 } /^}/ { inside = 0 } END { exit n != 1 }' "$scratch/mail.c" && pass || fail "mail_fit" "knows of the encoder"
for kept in "--save $scratch/whole.st" "--checkpoint $scratch/whole.ck" "--save $scratch/some.st --save-only head,encoder.body"; do
    # shellcheck disable=SC2086
    "$mail" --seed 3 --log json --log-every 10000 $kept >"$scratch/log"
    given=$(number "$(grep '"event":"released"' "$scratch/log")" bytes) over=$(number "$(grep '"event":"end"' "$scratch/log" | tail -n 1)" peak_over_process_bytes)
    [ "${given:-0}" -ge $((encoder - 2 * page)) ] && [ "$given" -le "$encoder" ] && [ "$over" -le "$bound" ] && pass || fail "released with $kept" "$given bytes, peak $over"
done
"$mail" fit --steps 0 --resume "$scratch/whole.ck" --save "$scratch/again.st" --log none
cmp -s "$scratch/whole.st" "$scratch/again.st" && pass || fail "weights" "of a checkpoint are others"
"$mail" fit --steps 0 --load "$scratch/whole.st" --save "$scratch/again.st" --save-only head --log none
cmp -s "$scratch/head.st" "$scratch/again.st" && pass || fail "weights" "depend on what is released"
"$mail" fit --steps 0 --seed 3 --save "$scratch/drawn.st" --save-only encoder --log none
"$mail" fit --steps 0 --load "$scratch/whole.st" --save "$scratch/kept.st" --save-only encoder --log none
cmp -s "$scratch/drawn.st" "$scratch/kept.st" && pass || fail "encoder" "was not saved as it was"

# A pass beside trains of which none is of a ring's rows: what the runtime has for these is not there.
cat >"$scratch/few.mdl" <<'END'
use nn;
dim B = 4;
dataset d { file f = "few.csv"; x: f32[3] = f.columns(0..3); }
ring r[16] { x: f32[3]; }
state n: i64 = 0;
model net(x: [B, 3]) -> [B] { param w: [3] = 1; y[b] = sum[i] w[i] * x[b, i]; return y; }
train fit of net on d[B] { loss mean(net(x)^2); optimizer sgd(lr = 0.1); steps 1; }
entry count on d[B] { n <- n + 1; }
entry fill on d[B] { r.push(x); }
entry seen() { return n = n; }
END
sed -n 1,10p samples/data/digits.csv | cut -d, -f1-3 >"$scratch/few.csv"
for order in 'count then fit' 'fill then fit' 'fit then count' 'count, fit'; do
    { cat "$scratch/few.mdl" && echo "phase $order;"; } >"$scratch/order.mdl"
    "$MDLC" "$scratch/order.mdl" -o "$scratch/order.c" && $CC -O1 $STRICT_FLAGS -fopenmp "$scratch/order.c" -lm -o "$scratch/order" 2>"$scratch/err" &&
        "$scratch/order" --data f="$scratch/few.csv" --log none --checkpoint "$scratch/order.ck" 2>"$scratch/err" &&
        "$scratch/order" seen --resume "$scratch/order.ck" >"$scratch/seen" 2>"$scratch/err" || fail "phase $order" "$(head -n 2 "$scratch/err")"
    case $order in fill*) want=0 ;; count,*) want=1 ;; *) want=3 ;; esac
    [ "$(sed -n 's/^n = //p' "$scratch/seen")" = $want ] && pass || fail "phase $order" "$(cat "$scratch/seen") calls, not $want"
done
summary passes
