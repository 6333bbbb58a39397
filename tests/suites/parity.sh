#!/bin/sh
# PyTorch's numbers: ten steps of small nets by each optimizer from the same weights, the weights
# after one step and after ten; values and gradients of layers, activations, losses and metrics; the
# rates of schedules; the spread of initial values. tests/parity/make_parity.py wrote the references,
# one line of a table a row; tests/parity/make_layers.py those of layers with all their settings.
set -u
. tests/lib.sh
parity=tests/parity

# program NAME: builds it, without the optimizations that take long.
program() {
    "$MDLC" $parity/"$1".mdl -o "$scratch/$1.c" && quickly "$scratch/$1.c" "$scratch/$1" && return
    fail "$1" "does not build"
    return 1
}

# compare FILE REFERENCE TOLERANCE: lines "name v v v", which differ by no more in the Euclidean norm;
# a zero is a zero up to the tolerance. Prints what differs, and lines that one file lacks.
compare() {
    awk -v tolerance="$3" '
        NR == FNR { have[$1] = $0; next }
        {
            rows++
            n = split(have[$1], value, " ")
            if (n == 0) { print $1 ": is missing"; next }
            if (n != NF) { print $1 ": " n - 1 " numbers for " NF - 1; next }
            off = size = 0
            for (i = 2; i <= NF; i++) { d = value[i] - $i; off += d * d; size += $i * $i }
            limit = tolerance * (size > 1e-12 ? sqrt(size) : 1)
            if (!(sqrt(off) <= limit)) print $1 ": off by " sqrt(off) " of " sqrt(size)
        }
        END { if (!rows) print "no rows" }' "$1" "$2"
}

# agree NAME FILE REFERENCE TOLERANCE: one case a line of the reference.
agree() {
    compare "$2" "$3" "$4" >"$scratch/wrong"
    wrong=$(wc -l <"$scratch/wrong")
    sed "s/^/FAIL $1: /" "$scratch/wrong"
    failed=$((failed + wrong))
    passed=$((passed + $(wc -l <"$3") - wrong))
}

if program steps; then
    previous=
    sed -n 's/^train fit_\([a-z_0-9]*\) of \([a-z]*\) .*/\1 \2/p' $parity/steps.mdl >"$scratch/rows"
    : >"$scratch/losses.txt"
    while read -r row net; do
        for steps in 1 10; do
            tolerance=1e-5
            [ $steps = 1 ] || tolerance=1e-4
            "$scratch/steps" fit_"$row" --steps $steps --log-every 1 --load $parity/steps.safetensors \
                --save "$scratch/out.safetensors" --checkpoint "$scratch/all.safetensors" --log json >"$scratch/log" 2>"$scratch/err" </dev/null ||
                fail "$row $steps" "$(head -n 1 "$scratch/err")"
            [ "$row" != ema ] || cp "$scratch/all.safetensors" "$scratch/out.safetensors" # averages are there alone
            check "$row: weights after $steps" "$BUILD/tests/tools/stdiff" "$scratch/out.safetensors" \
                $parity/"${row}_$steps.safetensors" $tolerance
        done
        losses=$(sed -n 's/.*"event":"step".*"loss":\([-+0-9.eE]*\).*/\1/p' "$scratch/log" | tr '\n' ' ')
        echo "$row $losses" >>"$scratch/losses.txt"
        # A row that cannot fail shows nothing: another optimizer's weights are told apart.
        if [ "${previous% *}" = "$net" ] && "$BUILD/tests/tools/stdiff" "$scratch/out.safetensors" \
            "$parity/${previous#* }_10.safetensors" 1e-4 >/dev/null 2>&1; then
            fail "$row" "has the weights of ${previous#* }"
        else
            pass
        fi
        previous="$net $row"
    done <"$scratch/rows"
    agree losses "$scratch/losses.txt" $parity/losses.txt 1e-5
fi

if program functions; then
    "$scratch/functions" predict --load $parity/functions.safetensors --log json 2>"$scratch/err" |
        sed -n 's/.*"event":"result".*"name":"\([a-zA-Z_0-9]*\)".*"values":\[\(.*\)\]}/\1,\2/p' |
        tr ',' ' ' >"$scratch/functions.txt"
    agree functions "$scratch/functions.txt" $parity/functions.txt 1e-5
    sed 's/^\(mish [-0-9]*\)\./\11./' "$scratch/functions.txt" >"$scratch/planted.txt"
    [ "$(compare "$scratch/planted.txt" $parity/functions.txt 1e-5 | grep -c '^mish: off')" = 1 ] && pass ||
        fail "planted" "a wrong value is not noticed"
    grep -v '^mish ' "$scratch/functions.txt" >"$scratch/planted.txt"
    [ "$(compare "$scratch/planted.txt" $parity/functions.txt 1e-5)" = "mish: is missing" ] && pass ||
        fail "planted" "a missing row is not noticed"
fi

if program layers; then
    "$scratch/layers" values --load $parity/layers.safetensors --log json 2>"$scratch/err" |
        sed -n 's/.*"event":"result".*"name":"\([a-zA-Z_0-9]*\)".*"values":\[\(.*\)\]}/\1,\2/p' |
        tr ',' ' ' >"$scratch/layers.txt"
    agree layers "$scratch/layers.txt" $parity/layers.txt 1e-5
    "$scratch/layers" fit --steps 3 --load $parity/layers.safetensors --save "$scratch/moved.safetensors" \
        >"$scratch/log" 2>"$scratch/err" </dev/null || fail "layers moved" "$(head -n 1 "$scratch/err")"
    # what moves in training mode: running statistics, singular vectors
    check "layers: weights and states after 3" "$BUILD/tests/tools/stdiff" "$scratch/moved.safetensors" \
        $parity/layers_3.safetensors 1e-5
    # written by us and read again: families that begin at 1, in every place of a name
    "$scratch/layers" values --load "$scratch/moved.safetensors" --log json 2>"$scratch/err" |
        sed -n 's/.*"event":"result".*"name":"\([a-zA-Z_0-9]*\)".*"values":\[\(.*\)\]}/\1,\2/p' |
        tr ',' ' ' >"$scratch/again.txt"
    same "layers: saved and loaded" "$scratch/layers.txt" "$scratch/again.txt"
fi

if program rates; then
    for train in fit apart; do
        "$scratch/rates" $train --log-every 1 --log json 2>"$scratch/err" | grep '"event":"step"'
    done >"$scratch/log"
    for row in $(sed -n 's/^    metric \([a-z_]*\)_ = .*/\1/p' $parity/rates.mdl); do
        echo "$row $(sed -n "s/.*\"${row}_\":\\([-+0-9.eE]*\\).*/\\1/p" "$scratch/log" | tr '\n' ' ')"
    done >"$scratch/rates.txt"
    agree rates "$scratch/rates.txt" $parity/rates.txt 1e-6
fi
# As drawn: the bound and the root mean square of each parameter, from one draw of ours; a bound that is
# sqrt(3) or a root of a fan off is far beyond.
"$MDLC" run --entry initial $parity/initial.mdl | sed 's/ f32\[2\] =//; s/,//' >"$scratch/initial.txt"
agree initial "$scratch/initial.txt" $parity/initial.txt 0.06
summary parity
