#!/bin/sh
# samples/cnf.mdl: a flow that learns eight places. How far it comes in a few steps, its density and the points that it
# makes, a picture of them, what it takes; with LONG=1 all 2,500 steps, whose floor is the entropy of the data.
set -u
. tests/lib.sh
if [ "${LONG:-0}" = 1 ]; then steps=2500; else steps=300; fi
if built cnf && "$program" fit --seed 1 --steps $steps --log json --log-every 1 --save "$scratch/cnf.w" >"$scratch/log"; then
    pass
else
    fail cnf "does not run"
    summary cnf
    exit 0
fi
# The mean of 50 losses has a standard error of 0.009.
below() { # STEP BOUND: the mean of the 50 losses up to there
    sed -n 's/^{"event":"step",.*"step":\([0-9]*\),.*"loss":\([-0-9.eE]*\),.*/\1 \2/p' "$scratch/log" |
        awk -v at="$1" -v bound="$2" '$1 > at - 50 && $1 <= at { sum += $2; n++ } END { exit !(n == 50 && sum / n <= bound) }' &&
        pass || fail "loss at step $1" "above $2"
}
below 300 2.6
if [ $steps = 2500 ]; then
    below 1000 1.78
    below 2500 1.73
fi
# Held-out rows: no density fits better than the one they come from, whose entropy is 1.6848.
held=$(grep '"event":"eval"' "$scratch/log" | tail -n 1)
awk -v l="$(number "$held" loss)" -v s="$(number "$held" square)" -v steps=$steps 'BEGIN {
    e = sqrt((s - l * l) / 10240); exit !(l >= 1.6848 - 3 * e && l <= (steps == 2500 ? 1.73 : 2.5)) }' && pass ||
    fail "held-out rows" "$(number "$held" loss)"
end=$(grep '"event":"end"' "$scratch/log")
[ "$(number "$end" resident_growth_pages)" = 0 ] && pass || fail "memory" "pages were added"
# Both checkpoints of acceptance at once: 10 MB by the step, 3 MB by the stage.
for parts in 1 2; do
    "$MDLC" --stats -D WIDTH=64 -D B=500 -D PARTS=$parts samples/cnf.mdl -o "$scratch/wide.c" >"$scratch/stats"
    awk -F ': ' '$1 == "cnf_fit.arena" { arena = $2 } END { exit !(arena > 0 && arena <= 3000000) }' "$scratch/stats" && pass ||
        fail "arena at width 64, batch 500, $parts parts" "$(grep cnf_fit.arena "$scratch/stats")"
done
# What is kept changes no bit of what is learned.
sed 's/@checkpoint ode/ode/' samples/cnf.mdl >"$scratch/cnf.mdl"
"$MDLC" "$scratch/cnf.mdl" -o "$scratch/all.c" && emitted "$scratch/all.c" "$scratch/all" || fail "without checkpoints" "does not build"
"$program" fit --seed 1 --steps 20 --log none --save "$scratch/some.w" && "$scratch/all" fit --seed 1 --steps 20 --log none --save "$scratch/all.w"
cmp -s "$scratch/some.w" "$scratch/all.w" && pass || fail "without checkpoints" "other weights"
"$program" fit --seed 1 --steps 20 --threads 1 --log none --save "$scratch/one.w"
cmp -s "$scratch/some.w" "$scratch/one.w" && pass || fail "one thread" "other weights"
# Two halves of the rows side by side are one update of all of them, with one thread and with two.
if "$MDLC" -D PARTS=2 samples/cnf.mdl -o "$scratch/parts.c" && emitted "$scratch/parts.c" "$scratch/parts"; then
    for threads in 1 2; do
        "$scratch/parts" fit --seed 1 --steps 20 --threads $threads --log json --save "$scratch/parts$threads.w" >"$scratch/parts.log"
        [ "$(number "$(grep '"event":"end"' "$scratch/parts.log")" resident_growth_pages)" = 0 ] && pass || fail "two parts" "pages were added"
    done
    same "two parts, one thread and two" "$scratch/parts1.w" "$scratch/parts2.w"
    check "two parts and one" "$BUILD/tests/tools/stdiff" "$scratch/some.w" "$scratch/parts2.w" 1e-4
else
    fail "two parts" "do not build"
fi
# The same flow with another checkpoint and no head of its own for pictures (tests/unit/programs), 300 steps: it learns as
# far as the sample, in an arena of its own size.
if "$MDLC" --prefix flow -D B=100 tests/unit/programs/16_cnf.mdl -o "$scratch/flow.c" && emitted "$scratch/flow.c" "$scratch/flow" &&
    "$scratch/flow" --seed 1 --steps 300 --log json --log-every 1 >"$scratch/flow.log"; then
    mv "$scratch/log" "$scratch/sample.log"
    mv "$scratch/flow.log" "$scratch/log"
    below 300 2.75
    [ "$(number "$(grep '"event":"end"' "$scratch/log")" resident_growth_pages)" = 0 ] && pass || fail "16_cnf" "pages were added"
    mv "$scratch/sample.log" "$scratch/log"
else
    fail "16_cnf" "does not run"
fi
if python3 -c 1 2>/dev/null; then
    "$program" picture --load "$scratch/cnf.w" --out density="$scratch/density.npy" &&
        "$program" draws --load "$scratch/cnf.w" --seed 1 --out "$scratch/draws.npy" || fail "picture" "does not run"
    check "picture" python3 tests/tools/flow_picture.py show "$scratch/cnf.png" "$scratch/density.npy" "$scratch/draws.npy"
    # The density is one of a whole, its points lie where it is high, and the picture is read as it was written.
    python3 - "$scratch" >"$scratch/off" 2>&1 <<'P' && [ ! -s "$scratch/off" ] && pass || fail "picture" "$(cat "$scratch/off")"
import sys
sys.argv[1:1] = ["none"]
folder = sys.argv.pop()
source = open("tests/tools/flow_picture.py").read().split("\nif sys.argv")[0]
exec(source)
density, draws = read_npy(folder + "/density.npy"), read_npy(folder + "/draws.npy")
side = len(density)
mass = sum(map(sum, density)) * (2 * VIEW / side) ** 2
if not 0.9 < mass < 1.01:
    print("mass", mass)
near = sum(1.0 < (x * x + y * y) ** 0.5 < 2.0 for x, y in draws) / len(draws)
if near < 0.8:
    print("near the circle", near)
seen = read_png(folder + "/cnf.png")
if len(seen) != 384 or len(seen[0]) != 772 or max(map(max, seen)) != 1:
    print("picture", len(seen), len(seen[0]))
P
    # Points of a picture are rows to train on.
    check "points" python3 tests/tools/flow_picture.py points "$scratch/cnf.png" "$scratch/points.npy" 3000
    check "paint" "$program" paint --data drawing.f="$scratch/points.npy" --steps 3 --log none
else
    skip picture "no python3"
fi
summary cnf
