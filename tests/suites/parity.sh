#!/bin/sh
# Ten steps of the digits net from the same weights as PyTorch: losses, and weights after one step
# and after ten. tests/parity/make_parity.py wrote the reference.
set -u
. tests/lib.sh

built tests/parity/parity.mdl ||
    { fail parity "does not build"; summary parity; exit 1; }

column=1
for name in sgd adam adamw; do
    column=$((column + 1))
    for steps in 1 10; do
        tolerance=1e-5
        [ $steps = 1 ] || tolerance=1e-4
        if ! "$program" fit_$name --steps $steps --load tests/parity/init.safetensors \
            --save "$scratch/out.safetensors" --log json >"$scratch/log" 2>"$scratch/err"; then
            fail "$name $steps" "$(head -n 1 "$scratch/err")"
            continue
        fi
        check "$name: weights after $steps" "$BUILD/tests/tools/stdiff" "$scratch/out.safetensors" \
            tests/parity/${name}_$steps.safetensors $tolerance
    done
    # Losses of the ten-step run, those that were logged.
    grep '"event":"step"' "$scratch/log" |
        sed 's/.*"step":\([0-9]*\).*"loss":\([-+0-9.eE]*\).*/\1 \2/' >"$scratch/losses"
    wrong=$(awk -F'[, ]' -v column=$column '
        NR == FNR { if (FNR > 1) want[$1] = $column; next }
        { seen++; d = $2 / want[$1] - 1; if (d < 0) d = -d; if (!(d <= 1e-5)) print "step " $1 ": " $2 " for " want[$1] }
        END { if (!seen) print "no losses were logged" }' tests/parity/losses.csv "$scratch/losses")
    [ -z "$wrong" ] && pass || fail "$name: losses" "$wrong"
done
summary parity
