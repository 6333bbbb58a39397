#!/bin/sh
# Moments in 8 bits (adamw8): what they take by hand, digits trained as well as by AdamW, the same bits from any
# number of threads and resumed, stacked layers and tensors whose last block is short.
set -u
. tests/lib.sh

# trained NAME OPTION...: the accuracy of the last evaluation, of a run whose weights are NAME.st.
trained() {
    trained_name=$1
    shift
    "$scratch/$trained_name" --log json --save "$scratch/$trained_name.st" "$@" >"$scratch/log" 2>"$scratch/err" </dev/null ||
        fail "$trained_name $*" "$(head -n 1 "$scratch/err")"
    number "$(grep '"event":"eval"' "$scratch/log" | tail -n 1)" acc
}

sed 's/optimizer adamw(/optimizer adamw8(/' samples/digits.mdl >"$scratch/eight.mdl"
for name in eight full; do
    [ $name = full ] && model=samples/digits.mdl || model=$scratch/eight.mdl
    "$MDLC" "$model" -o "$scratch/$name.c" && lightly emitted "$scratch/$name.c" "$scratch/$name" || { fail $name "does not build"; summary moments; exit 1; }
    "$MDLC" report --format=json "$model" >"$scratch/$name.json" || fail report $name
done
bytes() { sed -n 's/.*"regions".*"'"$2"'":\([0-9]*\).*/\1/p' "$scratch/$1.json"; }
# A byte for each element and a float for each 256, of two moments, each tensor at a multiple of 64 bytes; beside them three counters.
want=$((2 * (8192 + 128 + 16384 + 128 + 1280 + 64 + 128 + 64 + 256 + 64 + 64 + 64) + 3 * 64))
[ "$(bytes eight state)" = $want ] && pass || fail "state of digits" "$(bytes eight state) bytes, not $want"
[ "$(bytes eight arena)" = "$(bytes full arena)" ] && pass || fail "arena of digits" "$(bytes eight arena) bytes, in f32 $(bytes full arena)"

seeds=3
[ "${LONG:-0}" = 1 ] && seeds="1 2 3 4 5"
for name in eight full; do
    for seed in $seeds; do
        trained $name --seed "$seed"
        [ $name = full ] || [ "$(number "$(grep '"event":"end"' "$scratch/log")" resident_growth_pages)" = 0 ] && pass || fail "pages" "are added"
    done | grep -v '^FAIL' | sort >"$scratch/$name.acc"
done
median() { awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }' "$1"; }
awk -v a="$(median "$scratch/eight.acc")" -v b="$(median "$scratch/full.acc")" 'BEGIN { exit !(a >= b - (ARGV[1] == "long" ? 0.002 : 0.006)) }' \
    "$([ "${LONG:-0}" = 1 ] && echo long || echo one)" && pass || fail accuracy "$(median "$scratch/eight.acc"), by adamw $(median "$scratch/full.acc")"

# The same bits.
trained eight --seed 3 --threads 1 --steps 60 >/dev/null
cp "$scratch/eight.st" "$scratch/one.st"
for threads in 2 3; do
    trained eight --seed 3 --threads $threads --steps 60 >/dev/null
    same "$threads threads" "$scratch/one.st" "$scratch/eight.st"
done
"$scratch/eight" info </dev/null 2>/dev/null | grep -q 'fc1.weight.m  *U8  *\[8192\]' && pass || fail info "no codes of 8 bits"

# Clamped floats become integers in one step; NaN is 0, and what is not clamped is what it was.
cat >"$scratch/clamped.mdl" <<'END'
entry clamped(x: [12]) {
    return a = u8(min(max(x, 0), 255)), b = i8(max(min(x, 127.5), -128)), c = i32(min(max(x, -2147483648), 2147483520)),
        d = u16(min(max(x, -5), 70000)), e = i32(min(max(x, -1e10), 1e10)), f = u8(x);
}
END
if have python3 && "$MDLC" "$scratch/clamped.mdl" -o "$scratch/clamped.c" && quickly "$scratch/clamped.c" "$scratch/clamped"; then
    [ "$(grep -c '^    .*= ([a-z0-9_]*)md_near_i32(' "$scratch/clamped.c")" = 4 ] && pass || fail clamped "not four"
    PYTHONPATH=tests/suites python3 - "$scratch" <<'END'
import sys, npy
inf = float("inf")
npy.write(sys.argv[1] + "/odd.npy", "(12,)", [float("nan"), inf, -inf, 1e30, -1e30, -0.99, 254.99, 300, -7.5, 3e9, -2147483648, 65535.9], "f", "<f4")
END
    "$MDLC" run --entry clamped --in x="$scratch/odd.npy" "$scratch/clamped.mdl" | sed 's/ [a-z0-9]*\[12\]//' >"$scratch/want"
    "$scratch/clamped" clamped --in x="$scratch/odd.npy" 2>/dev/null </dev/null | sed 's/ \[12\]//' >"$scratch/got"
    # Programs print eight digits.
    paste "$scratch/want" "$scratch/got" | awk '
        { for (i = 3; i <= 14; i++) { d = $i - $(i + 14); if (d * d > 1e-14 * $i * $i) bad = 1 } } END { exit bad || NR != 6 }' && pass ||
        fail "clamped conversions" "$(cat "$scratch/got")"
else
    skip "clamped conversions" "no python3"
fi

# Layers of a `repeat` have blocks of their own; 33 * 33 elements end with a block of 65, and 33 have one.
cat >"$scratch/stack.mdl" <<'END'
use nn;
model net(x: [8, 33]) -> [8, 33] {
    repeat 3 carry h = x { h <- h + tanh(fc: linear(h, 33)); }
    return h;
}
train fit(x: [8, 33], t: [8, 33]) of net { loss mean((net(x) - t)^2); optimizer WHICH(lr = 0.01); steps 30; }
END
for which in adamw8 adamw; do
    sed "s/WHICH/$which/" "$scratch/stack.mdl" >"$scratch/$which.mdl"
    "$MDLC" "$scratch/$which.mdl" -o "$scratch/$which.c" && quickly "$scratch/$which.c" "$scratch/$which" || fail $which "does not build"
done
"$MDLC" report "$scratch/adamw8.mdl" | sed -n 's/^  state *\([0-9]*\) .*/\1/p' >"$scratch/state"
# 3 * 1089 and 3 * 33 codes, 3 * 5 and 3 scales, each rounded up to 64, twice, and the counters.
[ "$(cat "$scratch/state")" = $((2 * (3328 + 128 + 64 + 64) + 3 * 64)) ] && pass || fail "state of a stack" "$(cat "$scratch/state")"
if have python3; then
    PYTHONPATH=tests/suites python3 - "$scratch" <<'END'
import random, sys, npy
random.seed(2)
for name in "xt":
    npy.write("%s/%s.npy" % (sys.argv[1], name), "(8, 33)", [random.gauss(0, 1) for _ in range(264)], "f", "<f4")
END
    for which in adamw8 adamw; do
        "$scratch/$which" fit --seed 1 --in x="$scratch/x.npy" --in t="$scratch/t.npy" --log json --log-every 1 </dev/null 2>"$scratch/err" |
            sed -n 's/.*"event":"step".*"loss":\([^,}]*\).*/\1/p' >"$scratch/$which.loss"
    done
    paste "$scratch/adamw8.loss" "$scratch/adamw.loss" | awk '{ d = $1 - $2; if (NF != 2 || d * d > 0.05 * 0.05 * $2 * $2) bad = 1 } END { exit bad || NR != 30 }' && pass ||
        fail "losses of a stack" "$(paste "$scratch/adamw8.loss" "$scratch/adamw.loss" | tail -n 1)"
    in="--in x=$scratch/x.npy --in t=$scratch/t.npy"
    # shellcheck disable=SC2086
    for part in "--seed 1 --checkpoint $scratch/whole.ck" "--seed 1 --steps 12 --checkpoint $scratch/part.ck" "--resume $scratch/part.ck --steps 30 --checkpoint $scratch/more.ck"; do
        "$scratch/adamw8" fit $in $part </dev/null >"$scratch/log" 2>&1 || fail "$part" "$(cat "$scratch/log")"
    done
    same resumed "$scratch/whole.ck" "$scratch/more.ck"
    "$MDLC" run --seed 1 --entry fit --calls 5 --in x="$scratch/x.npy" --in t="$scratch/t.npy" "$scratch/adamw8.mdl" | sed -n 's/^loss = //p' >"$scratch/evaluated"
    head -n 5 "$scratch/adamw8.loss" | paste - "$scratch/evaluated" | awk '{ d = $1 - $2; if (NF != 2 || d * d > 1e-8 * $2 * $2) bad = 1 } END { exit bad || NR != 5 }' && pass ||
        fail evaluator "$(paste "$scratch/adamw8.loss" "$scratch/evaluated" | head -n 5 | tail -n 1)"
else
    skip "losses of a stack" "no python3"
fi
summary moments
