#!/bin/sh
# Loss and metrics that read parameters and counters: the same in a step and in the evaluation on
# held-out rows, which puts sums of batches together at its end.
set -u
. tests/lib.sh

cat >"$scratch/metrics.mdl" <<'END'
use nn;
dim B = 128, K = 10;
dataset digits {
    file f = "samples/data/digits.csv";
    x: f32[64] = f.columns(0..64) / 16;
    y: u8 in 0..K = f.column(64);
    holdout every(5);
}
model net(x: [B, 64]) -> [B, K] { return x |> fc: linear(out = K); }
train fit(beta: real = 0.5) of net on digits[B] {
    size = sum(net.fc.weight^2);
    ce = mean(cross_entropy(net(x), y));
    loss ce + beta * size;
    metric l2 = size;
    metric rest = loss - ce;
    metric when_ = f32(epoch);
    metric now = f32(step);
    optimizer sgd(lr = 0.0);
    epochs 3;
}
END
if "$MDLC" "$scratch/metrics.mdl" -o "$scratch/metrics.c" && quickly "$scratch/metrics.c" "$scratch/metrics" &&
    "$scratch/metrics" --log json --log-every 12 >"$scratch/log"; then
    pass
else
    fail "metrics" "does not run"
    summary metrics
    exit 1
fi
step=$(grep '"event":"step"' "$scratch/log" | tail -n 1)
eval=$(grep '"event":"eval"' "$scratch/log")
near() { # NAME A B TOLERANCE
    awk -v a="$2" -v b="$3" -v t="$4" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d <= t && d >= -t) }' && pass ||
        fail "$1" "$2 and $3"
}
l2=$(number "$step" l2)
near "parameters in an evaluation" "$l2" "$(number "$eval" l2)" 1e-5
near "a metric that reads the loss" "$(number "$step" rest)" "$(awk -v x="$l2" 'BEGIN { print x / 2 }')" 1e-5
near "the same in the evaluation" "$(number "$eval" rest)" "$(awk -v x="$l2" 'BEGIN { print x / 2 }')" 1e-5
near "the last step" "$(number "$step" now)" 33 0
near "the epoch that it belongs to" "$(number "$step" when_)" 2 0
# The number of rows is known only at the end: 359 held out, in three batches of at most 128.
# A scalar that the run sets is the same in all batches: it meets sums of them as one fixed by the text does, an f32
# exactly as a real, over held-out rows and rows to train on, whose last batch is shorter.
scalar() { # NAME TYPE K K+1
    printf 'use nn;\ndim B = 50;\ndataset digits { file f = "samples/data/digits.csv"; x: f32[64] = f.columns(0..64) / 16;\n'
    printf '    y: f32 = f.column(64); holdout every(5); }\nmodel net(x: [B, 64]) -> [B, 1] { return x |> fc: linear(out = 1); }\n'
    printf 'train fit(k: %s) of net on digits[B] {\n    p = net(x)[:, 0];\n    loss mean((p - y)^2) / %s;\n' "$2" "$3"
    printf '    metric near = mean(abs(p - y)) * %s;\n    metric only = %s;\n    optimizer sgd(lr = 0.01);\n    steps 7;\n}\n' "$4" "$3"
}
scalar real "real = 2.5" k "(k + 1)" >"$scratch/real.mdl"
scalar f32 "f32 = 2.5" k "(k + 1)" >"$scratch/f32.mdl"
scalar i32 "i32 = 2" "f32(k)" "f32(k + 1)" >"$scratch/i32.mdl"
for name in real f32 i32; do
    "$MDLC" "$scratch/$name.mdl" -o "$scratch/$name.c" && quickly "$scratch/$name.c" "$scratch/$name" || fail "a scalar: $name"
    for k in 3 0.7; do
        [ $name$k = i320.7 ] || {
            "$scratch/$name" --seed 2 --set k=$k --log json --save "$scratch/scalar.st" && "$scratch/$name" eval --load "$scratch/scalar.st" --part train --set k=$k --log json
        } | grep -E '"event":"(step|eval)"' >"$scratch/$name.$k"
    done
done
grep -q '"event":"eval".*"rows":1438,.*"only":3}' "$scratch/real.3" && same "an f32 of the run in an evaluation" "$scratch/real.3" "$scratch/f32.3"
same "an i32 of the run in an evaluation" "$scratch/real.3" "$scratch/i32.3"
grep -q '"event":"eval".*"rows":359,.*"only":0.7}' "$scratch/real.0.7" && same "an f32 of the run in an evaluation" "$scratch/real.0.7" "$scratch/f32.0.7"
# A metric of few classes shares storage with what is computed beside it: in each step the accuracy
# must be what it is in an evaluation of the same rows.
cat >"$scratch/few.mdl" <<'END'
use nn;
dim B = 32, K = 4;
dataset digits {
    file f = "samples/data/digits.csv", "samples/data/digits.csv";
    x: f32[64] = f.columns(0..64) / 16;
    y: u8 in 0..K = u8(min(f.column(64), 3));
    z: f32 = f.column(64);
    shuffle false;
}
model net(x: [B, 64]) -> [B, K] { return x |> fc: linear(out = K); }
train fit of net on digits[B] {
    l = net(x);
    loss mean(cross_entropy(l, y));
    metric acc = mean(f32(argmax(l) == y));
    metric n = f32(count(z));
    metric m = sum(z) / count(z);
    metric mm = mean(z);
    optimizer sgd(lr = 0.0);
    steps 1;
}
END
if "$MDLC" "$scratch/few.mdl" -o "$scratch/few.c" && quickly "$scratch/few.c" "$scratch/few"; then
    "$scratch/few" --log json --log-every 1 --steps 56 >"$scratch/few.log"
    grep '"event":"step"' "$scratch/few.log" | sed -n 's/.*"acc":\([0-9.e+-]*\).*/\1/p' >"$scratch/acc"
    steps=$(awk '{ s += $1; n++ } END { if (n) print s / n }' "$scratch/acc")
    eval_few=$(grep '"event":"eval"' "$scratch/few.log")
    near "rows of an evaluation" "$(number "$eval_few" n)" 1797 0
    near "sum over count is the mean" "$(number "$eval_few" m)" "$(number "$eval_few" mm)" 1e-5
    # 56 batches of 32 are all rows but the last five.
    near "accuracy of few classes in a step" "$steps" "$(number "$eval_few" acc)" 0.004
    awk -v a="$steps" 'BEGIN { exit !(a > 0.02) }' && pass || fail "accuracy of few classes" "is $steps"
else
    fail "few classes" "does not build"
fi
"$scratch/metrics" --set beta=0 --log json --steps 1 >"$scratch/log"
near "the loss without its second part" "$(number "$(grep '"event":"step"' "$scratch/log")" rest)" 0 1e-6

# The library's metrics over held-out rows, in 15 batches of which the last is ragged: what they are in
# one batch of all rows.
cat >"$scratch/library.mdl" <<'END'
use nn;
dim B = 128, K = 10;
dataset digits {
    file f = "samples/data/digits.csv", "samples/data/digits.csv";
    x: f32[64] = f.columns(0..64) / 16;
    y: u8 in 0..K = f.column(64);
    z: f32 = f.column(64);
    shuffle false;
}
model net(x: [B, 64]) -> [B, K] { return x |> fc: linear(out = K); }
train fit of net on digits[B] {
    l = net(x);
    v = l[:, 0];
    loss mean(cross_entropy(l, y));
    metric a = accuracy(l, y);
    metric top = top_k_accuracy(l, y, 3);
    metric p = perplexity(l, y);
    metric e1 = mae(v, z);
    metric e2 = rmse(v, z);
    metric rr = r2(v, z);
    metric pp = precision(v > 0, y == 1);
    metric rc = recall(v > 0, y == 1);
    metric f1 = f1(v > 0, y == 1);
    metric w = cross_entropy_weighted(l, y, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    metric w2 = cross_entropy_weighted(l, y, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], smooth = 0.1);
    metric area = auc(sigmoid(v), y == 1, bins = 50);
    c = confusion(l, y);
    r[k] = c[k, k] / max(sum[j] c[k, j], 1);
    metric macro = mean(r);
    metric least = min(r);
    metric best = f32(argmax(r));
    metric of_best = r[argmax(r)];
    o[j < 3] = c[j + 2, K - 1 - j] + c[9 - j, argmin(r)];
    metric off = sum(o);
    metric high = max(mean(l, axis = 0) * net.fc.bias + mean(l, axis = 0));
    metric diagonal = einsum("ii->", c);
    metric turned = transpose(c)[1, 3] - 2 * matmul(c, transpose(c))[1, 3];
    metric form = einsum("i,ij,j->", r, c, r);
    metric moment = max(matmul(transpose(l), l) / 1000);
    metric pair = c[3..5, 3..5];
    optimizer sgd(lr = 0.0);
    steps 1;
}
END
if "$MDLC" "$scratch/library.mdl" -o "$scratch/library.c" && quickly "$scratch/library.c" "$scratch/library" &&
    "$MDLC" -D B=1797 "$scratch/library.mdl" -o "$scratch/whole.c" && quickly "$scratch/whole.c" "$scratch/whole"; then
    eval_library=$("$scratch/library" --log json | grep '"event":"eval"')
    whole=$("$scratch/whole" --log json | grep '"event":"step"')
    for name in loss pair_0_0 pair_0_1 pair_1_0 pair_1_1 $(sed -n '/pair/d; s/^    metric \([a-z0-9_]*\) = .*/\1/p' "$scratch/library.mdl"); do
        near "$name over held-out rows" "$(number "$eval_library" "$name")" "$(number "$whole" "$name")" 1e-4
    done
    awk -v a="$(number "$whole" f1)" -v b="$(number "$whole" top)" 'BEGIN { exit !(a > 0 && b > 0.1 && b < 1) }' && pass ||
        fail "library" "metrics are 0"
else
    fail "library" "does not build"
fi

# The norm of each gradient: together they are the norm of all, before clipping, also of stacked parameters
# and of several micro-batches.
cat >"$scratch/norms.mdl" <<'END'
use nn;
dim B = 8;
dataset set { file f = synthetic(64, seed = 1); x: f32[8] = normal(0, 1); }
model net(x: [B, 8]) -> [B, 8] {
    repeat 3 carry x { x <- x + (x |> fc: linear(8) |> tanh); }
    return x |> out: linear(8);
}
train fit of net on set[B] {
    loss mean((net(x) + 1)^2);
    metric gradients;
    clip norm(1e-3);
    accumulate 2;
    optimizer sgd(lr = 0.1);
    steps 4;
}
END
if "$MDLC" "$scratch/norms.mdl" -o "$scratch/norms.c" && quickly "$scratch/norms.c" "$scratch/norms"; then
    "$scratch/norms" --log json --log-every 1 | grep '"event":"step"' >"$scratch/log"
    all=$(head -n 1 "$scratch/log" | tr ',' '\n' | sed -n 's/^"grad_net_[a-z_]*":\(.*\)$/\1/p' |
        awk '{ s += $1 * $1; n++ } END { if (n == 4) printf "%.9g", sqrt(s) }')
    near "norms of the gradients" "$all" "$(number "$(head -n 1 "$scratch/log")" grad_norm)" 1e-6
else
    fail "norms of the gradients" "does not build"
fi

# A hundred names of sixty letters: a line of the log is whole.
{
    echo 'use nn; dataset set { file f = synthetic(64, seed = 1); x: f32[8] = normal(0, 1); }'
    echo 'model net(x0: [8, 8]) -> [8, 8] {'
    for i in $(seq 50); do echo "    x$i = x$((i - 1)) |> layer_with_a_name_that_is_so_long_that_lines_end_$i: linear(8) |> tanh;"; done
    echo '    return x50; } train fit of net on set[8] { loss mean(net(x)^2); metric gradients; optimizer sgd(lr = 0.1); steps 2; }'
} >"$scratch/many.mdl"
if "$MDLC" "$scratch/many.mdl" -o "$scratch/many.c" && quickly "$scratch/many.c" "$scratch/many"; then
    "$scratch/many" --log json --log-every 1 --log csv="$scratch/many.csv" >"$scratch/log"
    names=$(grep '"event":"step"' "$scratch/log" | grep '}$' | tr ',' '\n' | grep -c '^"grad_net_layer_with_a_name_that_is_so_long_that_lines_end_[0-9]*_[a-z]*":[0-9]')
    [ "$names" = 200 ] && pass || fail "a hundred norms" "$names in two lines"
    fields=$(awk -F, '{ print NF }' "$scratch/many.csv" | sort -u)
    [ "$fields" = 105 ] && pass || fail "a hundred norms in a table" "fields: $fields"
else
    fail "a hundred norms" "does not build"
fi

# A negative zero is shown as 0, in text, JSON and the table.
cat >"$scratch/zero.mdl" <<'END'
dim B = 2;
dataset rows { file f = synthetic(4); x: f32[2] = normal(0, 1); }
model net(x: [B, 2]) -> [B, 2] { param w: [2] = 0; y[b, i] = x[b, i] * w[i]; return y; }
optimizer still(p: [...], g: [...]) { p <- p; }
train fit of net on rows[B] {
    z = sum(net(x)^2);
    loss -z;
    metric minus = -z;
    optimizer still();
    steps 1;
}
END
if "$MDLC" "$scratch/zero.mdl" -o "$scratch/zero.c" && quickly "$scratch/zero.c" "$scratch/zero" &&
    "$scratch/zero" --log csv="$scratch/zero.csv" >"$scratch/zero.text" &&
    "$scratch/zero" --log json >"$scratch/zero.json"; then
    check "zero as text" grep -q 'step 1 .* loss 0  minus 0$' "$scratch/zero.text"
    check "zero as JSON" grep -q '"loss":0,"metrics":{"minus":0}' "$scratch/zero.json"
    check "zero in the table" grep -q ',0,0$' "$scratch/zero.csv"
else
    fail "a program with a negative zero"
fi
summary metrics
