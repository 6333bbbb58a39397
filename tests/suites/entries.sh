#!/bin/sh
# Programs with several entries over one store (entries.mdl): a host calls them and compares bytes,
# plainly built and under the sanitizers.
set -u
. tests/lib.sh

for name in entries stream; do
    "$MDLC" --no-main tests/suites/$name.mdl -o "$scratch/$name.c" -H "$scratch/$name.h" ||
        { fail $name "does not compile"; summary entries; exit 1; }
done
if $CC -O1 -Wall -Wextra -Werror -I"$scratch" tests/suites/stream.c "$scratch/stream.c" -lm -o "$scratch/stream"; then
    check stream "$scratch/stream"
else
    fail stream "does not build"
fi
for flags in "-O2 -Wall -Wextra -Werror" "-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all"; do
    # shellcheck disable=SC2086
    if ! $CC $flags -I. -I"$scratch" tests/suites/entries.c "$scratch/entries.c" -lm -o "$scratch/entries" 2>"$scratch/err"; then
        case $flags in
        *sanitize*) skip "entries $flags" "no sanitizers: $(grep -m 1 error "$scratch/err")" ;;
        *) fail "entries $flags" "$(grep -m 1 error "$scratch/err")" ;;
        esac
        continue
    fi
    check "entries $flags" "$scratch/entries"
done
# What a program takes for numbers that it is not given: the values of the source.
cat >"$scratch/asked.mdl" <<'END'
entry asked(t: f32 = 1 / 8, k: i32 in 1..5 = 4, n: i64 = -9_007_199_254_740_992, flip: bool = true, top: f64 = inf) {
    return t = t, k = k, n = n, flip = flip, top = top;
}
END
if "$MDLC" "$scratch/asked.mdl" -o "$scratch/asked.c" && $CC -O1 "$scratch/asked.c" -lm -o "$scratch/asked"; then
    "$scratch/asked" asked >"$scratch/out" 2>&1
    printf '%s\n' 't = 0.125' 'k = 4' 'n = -9007199254740992' 'flip = 1' 'top = inf' >"$scratch/want"
    same "defaults" "$scratch/want" "$scratch/out"
    "$scratch/asked" asked --set n=1073741825 --set top=1e10 --log json | grep -c '"values":\[1073741825\]' >"$scratch/out"
    printf '1\n' >"$scratch/want"
    same "all digits of an integer" "$scratch/want" "$scratch/out"
    "$scratch/asked" asked --set k=1 --set asked.t=2 --set flip=0 >"$scratch/out" 2>&1
    printf '%s\n' 't = 2' 'k = 1' 'n = -9007199254740992' 'flip = 0' 'top = inf' >"$scratch/want"
    same "defaults beside --set" "$scratch/want" "$scratch/out"
    "$scratch/asked" info | sed -n 's/^ *--set //p' >"$scratch/out"
    printf '%s\n' t=0.125 k=4 n=-9007199254740992 flip=1 top=inf >"$scratch/want"
    same "defaults in info" "$scratch/want" "$scratch/out"
    for wrong in k=5 flip=2 k=1.5 t=x; do
        "$scratch/asked" asked --set $wrong >"$scratch/out" 2>&1
        [ $? -eq 2 ] && pass || fail "--set $wrong" "is taken"
    done
    "$MDLC" report --format=json "$scratch/asked.mdl" >"$scratch/out"
    grep -q '"name":"t".*"default":0.125' "$scratch/out" && grep -q '"name":"top".*"default":null' "$scratch/out" && pass ||
        fail "defaults in the report" "$(grep '"name":"t"' "$scratch/out")"
    grep '^#define.*_DEFAULT_' "$scratch/asked.c" >"$scratch/want"
    "$MDLC" --dump=build "$scratch/asked.mdl" >"$scratch/dumped.mdl" &&
        "$MDLC" --prefix asked "$scratch/dumped.mdl" -o "$scratch/dumped.c" && grep '^#define.*_DEFAULT_' "$scratch/dumped.c" >"$scratch/out"
    same "defaults of a dumped graph" "$scratch/want" "$scratch/out"
else
    fail defaults "does not build"
fi
# An assignment takes effect when the call ends, in the evaluator as in programs.
if "$MDLC" tests/cases/run/assigned_and_read.mdl -o "$scratch/read.c" && $CC -O1 "$scratch/read.c" -lm -o "$scratch/read"; then
    "$scratch/read" fit --steps 0 --log none --checkpoint "$scratch/read.ck" >"$scratch/out" 2>&1
    for call in 1 2 3; do
        "$scratch/read" all --resume "$scratch/read.ck" --checkpoint "$scratch/read.ck" >>"$scratch/out" 2>&1
    done
    same "assigned and read" tests/cases/run/assigned_and_read.out "$scratch/out"
else
    fail "assigned and read" "does not build"
fi
# The same in a train, also where the second set is read behind its assignment.
cat >"$scratch/moved.mdl" <<'END'
use nn;
dim B = 4;
dataset d {
    file f = synthetic(48, seed = 62);
    x: f32[3] = normal(0, 1);
}
model net(x: [B, 3]) -> [B, 1] { return x |> fc: linear(1, use_bias = false); }
state a = net;
train fit of net on d[B] {
    metric before = mean(a(x));
    a <- lerp(a, net, 0.5);
    metric called = mean(a(x)), part = mean(a.fc(x));
    z[b] = sum[j] x[b, j] * a.fc.weight[0, j];
    metric by_path = mean(z);
    loss mean((net(x) - 1)^2);
    optimizer sgd(lr = 0.1);
    steps 5;
}
END
if "$MDLC" "$scratch/moved.mdl" -o "$scratch/moved.c" && $CC -O1 "$scratch/moved.c" -lm -o "$scratch/moved"; then
    "$scratch/moved" --log json --log-every 1 2>&1 | awk -F'[:,{}]' '
        /"event":"step"/ {
            for (i = 1; i < NF; i++) v[$i] = $(i + 1)
            before = v["\"before\""]; path = v["\"by_path\""] - before; n++
            if (before == last || v["\"called\""] != before || v["\"part\""] != before || path * path > 1e-12) bad = 1
            last = before
        } END { exit bad || n != 5 }' && pass || fail "a second set in a train" "$("$scratch/moved" --log json --log-every 1 2>&1 | sed -n 2p)"
else
    fail "a second set in a train" "does not build"
fi
# The sample agent: a few thousand updates, the same bits twice, flat memory, inside its figure.
if BUILD=$scratch MDLC=$MDLC STEPS=14000 sh tests/dqn.sh >"$scratch/first" 2>"$scratch/err"; then
    "$scratch/dqn/dqn" 0 14000 >"$scratch/second"
    sed 's/, [0-9.]* s,/,/' "$scratch/first" >"$scratch/first.bits"
    sed 's/, [0-9.]* s,/,/' "$scratch/second" >"$scratch/second.bits"
    same "dqn twice" "$scratch/first.bits" "$scratch/second.bits"
    bytes=$(sed -n 's/.* declared \([0-9]*\) bytes.*/\1/p' "$scratch/first")
    [ "${bytes:-900001}" -le 900000 ] && pass || fail "dqn" "$bytes bytes declared, more than 900,000"
    # Every step but the first 10,000 and its updates, whose pages are there by then.
    grep -q 'growth 0 pages$' "$scratch/second" && pass || fail "dqn" "$(tail -n 1 "$scratch/second")"
else
    fail "dqn" "$(head -n 3 "$scratch/err")"
fi
summary entries
