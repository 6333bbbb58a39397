#!/bin/sh
# Slices and indices of values in loops, by loop indices, constants and data, forward and derivative:
# the reference evaluator and an emitted program beside plain arrays (tests/tools/slices.c).
set -u
. tests/lib.sh

# beside NAME FILE: the values of FILE are those of the arrays, all of them.
beside() {
    awk '
        { sub(/f32 ?/, ""); sub(/\[[^]]*\] /, ""); sub(/= /, "") }
        NF == 1 { entry = $1; next }
        FNR == NR { want[entry " " $1] = $0; n++; next }
        !(entry " " $1 in want) { print entry ": " $0; bad++; next }
        {
            k = split(want[entry " " $1], w, " ")
            off = k != NF
            for (i = 2; i <= k && !off; i++) {
                d = w[i] - $i; m = w[i] < 0 ? -w[i] : w[i]
                off = (d < 0 ? -d : d) > 1e-5 * (1 + m)
            }
            if (off) { print entry ": " $0 ", not " want[entry " " $1]; bad++ }
            seen++
        }
        END { if (seen != n) print seen + 0 " values of " n; exit bad > 0 || seen != n || n < 1000 }
    ' "$scratch/values" "$2" >"$scratch/found" && pass || fail "$1" "$(head -n 5 "$scratch/found")"
}

"$BUILD/tests/tools/slices" model >"$scratch/slices.mdl"
"$BUILD/tests/tools/slices" values >"$scratch/values"
entries=$(sed -n 's/^entry \([a-z_]*\)().*/\1/p' "$scratch/slices.mdl")
for precision in f32 f64; do
    for entry in $entries; do
        echo "$entry"
        "$MDLC" run --precision=$precision --entry "$entry" "$scratch/slices.mdl" 2>&1 | sed 's/f64/f32/'
    done >"$scratch/run"
    beside "mdlc run $precision" "$scratch/run"
done
if "$MDLC" "$scratch/slices.mdl" -o "$scratch/slices.c" &&
    $CC -O1 -march=native -fopenmp "$scratch/slices.c" -lm -o "$scratch/slices" &&
    "$scratch/slices" keep --log none --save "$scratch/w" 2>"$scratch/err"; then
    for entry in $entries; do
        echo "$entry"
        "$scratch/slices" "$entry" --load "$scratch/w" 2>&1
    done >"$scratch/run"
    beside program "$scratch/run"
else
    fail program "does not build or train: $(cat "$scratch/err")"
fi
summary slices
