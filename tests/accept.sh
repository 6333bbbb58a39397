#!/bin/sh
# The long runs: digits over five seeds, a million steps of linear regression with two optimizers.
# Minutes, not seconds; `make test` runs short forms of them. Run from the root by `make accept`.
set -u
. tests/lib.sh

build_sample() { # NAME
    "$MDLC" "samples/$1.mdl" -o "$scratch/$1.c" && emitted "$scratch/$1.c" "$scratch/$1"
}
end_line() { grep '"event":"end"' "$1"; }

# Digits: 660 steps, the median of five seeds at least 97.8 % of 359 held-out rows.
if build_sample digits; then
    : >"$scratch/acc"
    for seed in 0 1 2 3 4; do
        "$scratch/digits" --seed $seed --log json >"$scratch/log" || fail "digits seed $seed" "exit status $?"
        line=$(end_line "$scratch/log")
        echo "digits seed $seed: $(number "$line" steps) steps, accuracy $(number "$line" acc), $(number "$line" seconds) s," \
            "bound $(number "$line" bound_bytes) B, peak $(number "$line" peak_over_process_bytes) B"
        [ "$(number "$line" steps)" = 660 ] && pass || fail "digits seed $seed" "not 660 steps"
        [ "$(number "$line" resident_growth_pages)" = 0 ] && pass || fail "digits seed $seed" "resident memory grew"
        number "$line" acc >>"$scratch/acc"
    done
    median=$(sort -n "$scratch/acc" | sed -n 3p)
    echo "digits: median accuracy $median"
    awk -v a="$median" 'BEGIN { exit !(a * 359 >= 351.5) }' && pass || fail digits "median accuracy $median is below 352 of 359"
else
    fail digits "does not build"
fi

# Diabetes: both optimizers end at the least-squares optimum.
if build_sample diabetes; then
    for train in fit adam_fit; do
        "$scratch/diabetes" $train --seed 0 --log json >"$scratch/log" || fail "diabetes $train" "exit status $?"
        line=$(end_line "$scratch/log")
        # The loss of the last step is that before its update, at the optimum like the one after it.
        error=$(awk -v m="$(number "$line" loss)" 'BEGIN { e = m / 2859.69634758675 - 1; printf "%.3g", e < 0 ? -e : e }')
        echo "diabetes $train: $(number "$line" steps) steps, MSE $(number "$line" loss), relative error $error, $(number "$line" seconds) s"
        [ "$(number "$line" steps)" = 1000000 ] && pass || fail "diabetes $train" "not a million steps"
        awk -v e="$error" 'BEGIN { exit !(e <= 1e-5) }' && pass || fail "diabetes $train" "relative error $error"
        [ "$(number "$line" resident_growth_pages)" = 0 ] && pass || fail "diabetes $train" "resident memory grew"
    done
else
    fail diabetes "does not build"
fi

# Ten thousand steps of the others, evaluated on the way: no page more than after the second step.
for name in digits residual chars; do
    build_sample $name || { fail $name "does not build"; continue; }
    "$scratch/$name" --steps 10000 --eval-every 100 --save "$scratch/out.safetensors" --save-every 1000 \
        --seed 0 --log json >"$scratch/log" || fail "$name: ten thousand steps" "exit status $?"
    line=$(end_line "$scratch/log")
    echo "$name: $(number "$line" steps) steps, loss $(number "$line" loss), $(number "$line" seconds) s," \
        "bound $(number "$line" bound_bytes) B, peak $(number "$line" peak_over_process_bytes) B"
    [ "$(number "$line" steps)" = 10000 ] && pass || fail "$name: not ten thousand steps"
    [ "$(number "$line" resident_growth_pages)" = 0 ] && pass || fail "$name: resident memory grew"
    [ "$(number "$line" peak_over_process_bytes)" -le "$(number "$line" bound_bytes)" ] && pass || fail "$name: the peak is above the bound"
done

# A hundred thousand steps, evaluated a thousand times, saved a hundred times in three ways.
if build_sample digits; then
    "$scratch/digits" --steps 100000 --eval-every 100 --save "$scratch/out.safetensors" --save-every 1000 --best "$scratch/best.safetensors" \
        --checkpoint "$scratch/out.checkpoint" --log json --log csv="$scratch/out.csv" >"$scratch/log" || fail "digits: 10^5 steps" "exit status $?"
    line=$(end_line "$scratch/log")
    echo "digits: $(number "$line" steps) steps, $(number "$line" seconds) s, bound $(number "$line" bound_bytes) B," \
        "peak $(number "$line" peak_over_process_bytes) B, pages added $(number "$line" resident_growth_pages)"
    [ "$(number "$line" steps)" = 100000 ] && [ "$(number "$line" resident_growth_pages)" = 0 ] && pass || fail "digits: 10^5 steps" "resident memory grew"
fi

# Every sample with every compiler and machine that is here.
WIDE=1 sh tests/suites/compilers.sh >"$scratch/log"
cat "$scratch/log"
tail -n 1 "$scratch/log" | grep -q ' 0 failed, ' && pass || fail "compilers"

# All hostile files from another seed, and five hundred kills while it saves.
SEED=2 KILLS=500 sh tests/suites/hostile.sh >"$scratch/hostile.log"
tail -n 1 "$scratch/hostile.log"
tail -n 1 "$scratch/hostile.log" | grep -q ' 0 failed, ' && pass || fail hostile "$(grep FAIL "$scratch/hostile.log" | head -n 3)"
# The long forms of suites: what a step allocates and maps, every build, Valgrind, stops and kills of
# runs, a million calls, a file of 2 GiB, every setting, every program with a twin in PyTorch, random
# index notation, sums of ten million terms.
for suite in memory strict blas builds package init ways valgrind resume feedback data phase matrix programs slices sums; do
    LONG=1 sh tests/suites/$suite.sh >"$scratch/log" 2>&1 && pass || fail "$suite, long"
    cat "$scratch/log"
done
sh tests/resnet20.sh >"$scratch/log" 2>&1 && pass || fail "resnet20"
cat "$scratch/log"
summary accept
