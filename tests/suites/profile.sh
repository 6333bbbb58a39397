#!/bin/sh
# Profiles: what each call of a step needs by the report, against counts by hand; what a program that was
# compiled with --profile measures of them. No time is compared with a number.
set -u
. tests/lib.sh
: "${PYTHON:=python3}"

# ---- what is needed, by the report ----
# needs NAME PART FLOPS: the products of one part of a train, of all its calls.
needs() {
    needs_sum=$(awk -v part="\"part\":\"$2\"" '
        /^  \{"name":"/ { train = /"kind":"train"/ }
        train && /^    \{"step":/ && index($0, part) {
            match($0, /"times":[0-9]+/); times = substr($0, RSTART + 8, RLENGTH - 8)
            match($0, /"flops_of_products":[0-9]+/); sum += times * substr($0, RSTART + 20, RLENGTH - 20)
        }
        END { printf "%.0f", sum }' "$scratch/$1.json")
    [ "$needs_sum" = "$3" ] && pass || fail "$1: FLOPs of products, $2" "$needs_sum, not $3"
}
# number NAME KEY VALUE: a number of the train as a whole.
number() {
    number_is=$(sed -n "/\"kind\":\"train\"/,/\"calls\":/s/^.*,\"$2\":\([0-9]*\).*/\1/p" "$scratch/$1.json" | head -n 1)
    [ "$number_is" = "$3" ] && pass || fail "$1: $2" "$number_is, not $3"
}
report() { # NAME FILE OPTION...
    report_name=$1
    shift
    "$MDLC" report --format=json "$@" >"$scratch/$report_name.json" 2>"$scratch/err" || fail "$report_name" "$(head -n 3 "$scratch/err")"
}
report digits samples/digits.mdl
needs digits forward $((2 * 128 * (64 * 128 + 128 * 128 + 128 * 10)))
needs digits backward $((2 * 128 * (64 * 128 + 2 * 128 * 128 + 2 * 128 * 10)))
# AdamW: weights and both averages in and out; a batch in; loss, accuracy, norm and rate out; seed, step
# (in and out) and planned steps.
number digits bytes_once $((6 * 4 * 26122 + 128 * 64 * 4 + 128 + 4 * 4 + 4 * 8))
number digits flops_of_products $((2 * 128 * (2 * 64 * 128 + 3 * 128 * 128 + 3 * 128 * 10)))

# Along an axis of 28 places three taps read 28 * 3 - 2 elements; of 14, 40.
report lenet tests/bench/lenet.mdl
conv=$((2 * 64 * (32 * 82 * 82 + 64 * 32 * 40 * 40)))
full=$((2 * 64 * (3136 * 128 + 128 * 10)))
needs lenet forward $((conv + full))
number lenet flops_of_products $((3 * (conv + full) - 2 * 64 * 32 * 82 * 82))

# A stride, a dilation, a border that is wider on one side through a slice, and no border.
cat >"$scratch/borders.mdl" <<'END'
use nn;
dim B = 4;
model net(x: [B, 8, 20, 20]) -> [B, 2] {
    a = x |> strided: conv2d(16, k = 5, pad = 2, stride = 2, use_bias = false);
    b = a |> wide: conv2d(16, k = 3, pad = 2, dilation = 2, use_bias = false);
    c = b |> plain: conv2d(16, k = 3, use_bias = false);
    return head: linear(c as [B, 1024], out = 2);
}
train fit(x: [B, 8, 20, 20], y: [B, 2]) of net { loss mean((net(x) - y)^2); optimizer sgd(lr = 0.1); }
END
report borders "$scratch/borders.mdl"
# inside N COUNT STRIDE DILATION TAPS PAD: reads of one axis that lie inside
inside() {
    awk -v n="$1" -v count="$2" -v s="$3" -v d="$4" -v taps="$5" -v p="$6" 'BEGIN {
        for (i = 0; i < count; i++) for (k = 0; k < taps; k++) { at = s * i + d * k - p; sum += at >= 0 && at < n }
        print sum }'
}
s=$(inside 20 10 2 1 5 2) w=$(inside 10 10 1 2 3 2) p=$(inside 10 8 1 1 3 0)
needs borders forward $((2 * 4 * (8 * 16 * s * s + 16 * 16 * w * w + 16 * 16 * p * p + 1024 * 2)))

# A recurrence: its products run as often as the loop does. A table that is looked up: rows of it.
cat >"$scratch/turns.mdl" <<'END'
use nn;
dim B = 16, T = 12, V = 1000;
model net(t: i32[B, T] in 0..V) -> [B, 4] {
    e = emb: embedding(t, V, 32);
    h = rnn: gru(e, 24);
    return head: linear(h[:, T - 1, :], 4);
}
train fit(t: i32[B, T] in 0..V, y: [B, 4]) of net { loss mean((net(t) - y)^2); optimizer sgd(lr = 0.1); }
entry look(t: i32[B, T] in 0..V) { return y = net(t); }
END
report turns "$scratch/turns.mdl"
needs turns forward $((2 * 16 * (12 * (32 * 72 + 24 * 72) + 24 * 4)))
grep -q '"times":12,' "$scratch/turns.json" && pass || fail turns "no call runs twelve times"
looked=$(sed -n '/"name":"look"/,$s/^.*,"bytes_once":\([0-9]*\).*/\1/p' "$scratch/turns.json" | head -n 1)
[ -n "$looked" ] && [ "$looked" -lt $((1000 * 32 * 4)) ] && pass || fail turns "an entry that looks up 192 of 1000 rows needs $looked bytes"
summary profile
