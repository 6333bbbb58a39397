#!/bin/sh
# Augmentation in a train: the sums of augment.mdl, which look at what came out, against
# what the words of the library say; in the evaluator and in an emitted program, with 1 and 3 threads.
# SEED=n draws otherwise; the bounds are five standard deviations of 40 batches of 256 rows.
set -u
. tests/lib.sh
: "${SEED:=5}"
file=tests/suites/augment.mdl
echo "augment: SEED=$SEED"

check "tests in the file" "$MDLC" test "$file"
program=$scratch/augment
check "emit" "$MDLC" "$file" -o "$program.c"
check "build" quickly "$program.c" "$program"
[ -x "$program" ] || { summary augment; exit 1; }

"$program" augment --steps 40 --log-every 1 --log json --seed "$SEED" --threads 1 | grep '"event":"step"' >"$scratch/one"
"$program" augment --steps 40 --log-every 1 --log json --seed "$SEED" --threads 3 | grep '"event":"step"' >"$scratch/three"
same "the same bits for 1 and 3 threads" "$scratch/one" "$scratch/three"
[ "$(sed 's/"step":[0-9]*//' "$scratch/one" | sort -u | wc -l)" = 40 ] && pass || fail "each step draws anew"

# mean NAME WANT BOUND over the steps
mean() {
    have=$(sed -n "s/.*\"$1\":\\([-+0-9.eE]*\\).*/\\1/p" "$scratch/one" | awk '{ s += $1 } END { print (NR == 40 ? s / 40 : "none") }')
    awk -v a="$have" -v b="$2" -v t="$3" 'BEGIN { d = a - b; exit !(a != "none" && d <= t && -d <= t) }' && pass ||
        fail "$1" "$have, expected $2 within $3 (SEED=$SEED)"
}
for name in flip vertical crop cutout; do mean "${name}_wrong" 0 0; done
mean flip_share 0.3 0.023
mean vertical_share 0.5 0.025
mean draws_apart 0.15 0.018
mean crop_mean 4 0.1
mean crop_square 12 0.41
mean crop_both 4 0.22
mean noise_mean 0 0.0016
mean noise_square 0.0625 0.0006
mean noise_fourth 0.01171875 0.00025
mean cutout_rows 2.6666667 0.024
mean cutout_columns 2.6 0.025

# The evaluator draws the same numbers.
"$MDLC" run --entry augment --seed "$SEED" "$file" >"$scratch/run"
head -n 1 "$scratch/one" >"$scratch/step"
awk -v line="$(cat "$scratch/step")" '$2 == "=" && $1 != "lr" {
    n++
    if (!match(line, "\"" $1 "\":[-+0-9.eE]+")) { print $1 " is missing"; bad = 1; next }
    x = substr(line, RSTART + length($1) + 3, RLENGTH - length($1) - 3) + 0
    d = x - $3; s = $3 < 0 ? -$3 : $3
    if (d > 1e-5 * s + 1e-6 || -d > 1e-5 * s + 1e-6) { print $1, x, $3; bad = 1 }
} END { exit bad || n != 16 }' "$scratch/run" >"$scratch/diff" && pass ||
    fail "the evaluator and the program differ" "$(head -n 1 "$scratch/diff")"

# Entries are in infer mode.
"$program" augment --log none --save "$scratch/w.st"
"$program" plain --load "$scratch/w.st" --set shift=0 >"$scratch/plain" 2>&1
grep -q '^change = 0$' "$scratch/plain" && pass || fail "infer mode" "$(head -n 1 "$scratch/plain")"
summary augment
