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
# whole NAME KEY VALUE: a number of the train as a whole.
whole() {
    whole_is=$(sed -n "/\"kind\":\"train\"/,/\"calls\":/s/^.*,\"$2\":\([0-9]*\).*/\1/p" "$scratch/$1.json" | head -n 1)
    [ "$whole_is" = "$3" ] && pass || fail "$1: $2" "$whole_is, not $3"
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
whole digits bytes_once $((6 * 4 * 26122 + 128 * 64 * 4 + 128 + 4 * 4 + 4 * 8))
whole digits flops_of_products $((2 * 128 * (2 * 64 * 128 + 3 * 128 * 128 + 3 * 128 * 10)))

# Along an axis of 28 places three taps read 28 * 3 - 2 elements; of 14, 40.
report lenet tests/bench/lenet.mdl
conv=$((2 * 64 * (32 * 82 * 82 + 64 * 32 * 40 * 40)))
full=$((2 * 64 * (3136 * 128 + 128 * 10)))
needs lenet forward $((conv + full))
whole lenet flops_of_products $((3 * (conv + full) - 2 * 64 * 32 * 82 * 82))

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

# ---- what a program measures ----
# exits NAME CODE WORDS COMMAND...: the exit code, and what is said on stderr.
exits() {
    exits_name=$1 exits_code=$2 exits_words=$3
    shift 3
    "$@" >"$scratch/out" 2>"$scratch/err"
    exits_got=$?
    [ $exits_got = "$exits_code" ] && grep -q -- "$exits_words" "$scratch/err" && pass ||
        fail "$exits_name" "exit $exits_got: $(head -n 2 "$scratch/err")"
}
built digits || fail digits "is not built"
plain=$program
built digits --profile || fail "digits --profile" "is not built"
digits=$program
for threads in 1 2; do
    check "digits, $threads threads" "$digits" --steps 40 --eval-every 20 --threads $threads --log json --save "$scratch/with$threads" \
        --profile-trace "$scratch/digits$threads.trace"
    "$digits" --steps 40 --eval-every 20 --threads $threads --log json >"$scratch/digits$threads.log" 2>"$scratch/err" ||
        fail "digits, $threads threads" "$(cat "$scratch/err")"
    check "without --profile" "$plain" --steps 40 --eval-every 20 --threads $threads --log none --save "$scratch/without$threads"
    same "weights with and without a profile, $threads threads" "$scratch/without$threads" "$scratch/with$threads"
done
same "weights on 1 and 2 threads" "$scratch/with1" "$scratch/with2"
for threads in 1 2; do
    "$digits" --steps 40 --threads $threads --log json --profile-trace "$scratch/t" >"$scratch/log" 2>"$scratch/err" || fail "a trace" "$(cat "$scratch/err")"
    end=$(grep '"event":"end"' "$scratch/log") memory=$(grep '"event":"memory"' "$scratch/log")
    [ "$(number "$end" peak_over_process_bytes)" = "$(number "$end" bound_bytes)" ] && [ "$(number "$end" resident_growth_pages)" = 0 ] &&
        pass || fail "the peak with a profile, $threads threads" "$end"
done
# Notes, rows of tables, 32,768 events of 24 bytes, and at least 64 MiB to measure with.
[ "$(number "$memory" profile)" -ge $((32768 * 24 + 67108864)) ] && pass || fail "the line of the profile" "$memory"
"$plain" --steps 1 --log json | grep -q '"profile"' && fail "without --profile" "has a profile" || pass

# In words: each table ends with all of it.
"$digits" --steps 40 >"$scratch/text"
[ "$(grep -c '  total$' "$scratch/text")" = 6 ] && grep -q "^profile of train 'fit': 40 calls in " "$scratch/text" &&
    grep -q '^ *40 .* 11: digits_d_fc2_weight, net.fc2, line 16$' "$scratch/text" && pass || fail "the tables" "$(tail -n 30 "$scratch/text")"
awk '/   (call|kernel|layer)$/ { count = ms = 0; next }
    /   total$/ { bad += $1 != count || $2 - ms > 0.02 || ms - $2 > 0.02; tables++; next }
    $1 ~ /^[0-9]+$/ && NF >= 7 && $2 ~ /\./ { count += $1; ms += $2 }
    END { exit !(tables == 6 && !bad) }' "$scratch/text" && pass || fail "the tables" "do not add up"
[ -z "$("$digits" --steps 3 --log none)" ] && pass || fail "--log none" "prints"

# Loops: far more events than are kept. Two trains by turns. Evaluation alone, and entries.
lightly built chars --profile && chars=$program || fail "chars --profile" "is not built"
"$chars" --steps 30 --log json --profile-trace "$scratch/chars.trace" >"$scratch/chars.log" || fail chars "does not run"
[ "$(wc -c <"$scratch/chars.trace")" -lt $((32768 * 400)) ] && pass || fail "a trace" "has no bound"
lightly built gan && "$program" --steps 6 --log none --save "$scratch/without" || fail gan "is not built"
lightly built gan --profile && "$program" --steps 6 --log json --save "$scratch/with" --profile-trace "$scratch/gan.trace" >"$scratch/gan.log" ||
    fail "gan --profile" "is not built"
same "two trains" "$scratch/without" "$scratch/with"
"$digits" eval --load "$scratch/with1" --log json --profile-trace "$scratch/eval.trace" >"$scratch/eval.log" || fail eval "does not run"
cat >"$scratch/entry.mdl" <<'END'
entry twice(s: f32) {
    x = full(s, [16, 12]);
    p[i, k] = sum[j] x[i, j] * x[k, j];
    return y = sum(p), z = p;
}
END
"$MDLC" --profile --precision=f64 --checks=nan,canary "$scratch/entry.mdl" -o "$scratch/entry.c" && emitted "$scratch/entry.c" "$scratch/entry" -O1 $STRICT_FLAGS ||
    fail "an entry" "is not built"
"$scratch/entry" twice --set s=2 --log json --profile-trace "$scratch/entry.trace" >"$scratch/entry.log" 2>"$scratch/err" || fail "an entry" "$(cat "$scratch/err")"
"$MDLC" --profile --runtime=whole samples/digits.mdl -o "$scratch/all.c" && emitted "$scratch/all.c" "$scratch/all" -O1 $STRICT_FLAGS &&
    "$scratch/all" --steps 2 | grep -q "^profile of train 'fit': 2 calls" && pass || fail "the whole runtime" "has no profile"
"$MDLC" --runtime=whole samples/digits.mdl -o "$scratch/all.c" && $CC $STRICT_FLAGS -fopenmp -fsyntax-only "$scratch/all.c" &&
    pass || fail "the whole runtime" "without --profile does not compile"

# 16 bits beside a product that stays f32, and f16, which is multiplied as floats.
cat >"$scratch/halves.mdl" <<'END'
use nn;
dim B = 64;
model net(x: [B, 64]) -> [B, 40] {
    h = x |> a: linear(out = 96) |> relu |> b: linear(out = 64);
    param w: [40, 64] ~ normal(0, 0.1);
    @f32 y[b, o] = sum[c] h[b, c] * w[o, c];
    return y;
}
train fit(x: [B, 64], y: [B, 40]) of net {
    loss mean((net(x) - y)^2); optimizer sgd(lr = 0.1); precision bf16, always; steps 5;
}
END
sed 's/precision bf16/precision f16/' "$scratch/halves.mdl" >"$scratch/f16.mdl"
for name in halves f16; do
    "$MDLC" --profile "$scratch/$name.mdl" -o "$scratch/$name.c" && emitted "$scratch/$name.c" "$scratch/$name" -O1 $STRICT_FLAGS || fail "$name" "is not built"
done

# A model with the name of the member.
cp tests/bench/wide.mdl "$scratch/profile.mdl"
"$MDLC" --profile "$scratch/profile.mdl" -o "$scratch/profile.c" && check "a model called profile" $CC $STRICT_FLAGS -fopenmp -fsyntax-only "$scratch/profile.c"
for compiler in clang g++ tcc; do
    case $compiler in
    clang) set -- $STRICT_FLAGS -march=native -fopenmp ;;
    g++) set -- -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Wno-unused-function -Werror ;;
    tcc) set -- -Wall ;;
    esac
    if have $compiler; then
        check "$compiler" $compiler -O1 "$@" "$digits.c" -lm -o "$scratch/by"
        "$scratch/by" --steps 2 | grep -q "^profile of train 'fit': 2 calls" && pass || fail "$compiler" "has no profile"
    else
        skip "a profile by $compiler" "no $compiler"
    fi
done

# Mappings, guards, frames and the printed address space of such a program.
FLAGS=--profile CHECKS="mapping frames limits" CASES="digits:" sh tests/suites/bounds.sh >"$scratch/bounds" 2>&1 && pass ||
    fail "bounds" "$(head -n 5 "$scratch/bounds")"

# ---- what cannot be ----
exits "a folder that is not there" 1 "cannot write '.*/none/t.json'" "$digits" --steps 1 --profile-trace "$scratch/none/t.json"
grep -q '^step' "$scratch/out" && fail "a folder that is not there" "is noticed behind step 0" || pass
exits "a folder" 1 "cannot write" "$digits" --steps 1 --profile-trace "$scratch"
exits "the file of the weights" 2 "are one file" "$digits" --steps 1 --save "$scratch/one" --profile-trace "$scratch/one"
exits "the data" 2 "are one file" "$digits" --steps 1 --profile-trace samples/data/digits.csv
exits "a program without it" 2 "profile-trace" "$plain" --profile-trace "$scratch/t"
"$MDLC" --runtime=whole tests/bench/wide.mdl -o "$scratch/whole.c" && quickly "$scratch/whole.c" "$scratch/whole" || fail "the whole runtime" "is not built"
exits "a whole runtime without it" 2 "compile the model with --profile" "$scratch/whole" --steps 0 --profile-trace "$scratch/t"
exits "--no-main" 2 "leave one of them out" "$MDLC" --profile --no-main samples/digits.mdl -o "$scratch/x.c"
exits "a device" 2 "leave one of them out" "$MDLC" --profile --no-main --target=cuda samples/digits.mdl -o "$scratch/x.c"
exits "another command" 2 "means nothing to 'report'" "$MDLC" report --profile samples/digits.mdl
if [ -w /dev/full ]; then
    exits "a full disk" 1 "cannot write '/dev/full': No space left" "$digits" --steps 3 --save "$scratch/kept" --profile-trace /dev/full
    [ -s "$scratch/kept" ] && pass || fail "a full disk" "the weights are lost"
else
    skip "a full disk" "no /dev/full"
fi
# A run that fails leaves no trace; one that is interrupted has a profile.
printf 'old' >"$scratch/kept.json"
cat >"$scratch/rate.mdl" <<'END'
use nn;
model net(x: [4]) -> [2] { return x |> fc: linear(out = 2); }
train fit(x: [4]) of net { loss sum(log(net(x) - 1e30)); optimizer sgd(lr = 0.1); steps 4; }
END
"$MDLC" --profile "$scratch/rate.mdl" -o "$scratch/rate.c" && quickly "$scratch/rate.c" "$scratch/rate" || fail "a NaN" "is not built"
"$PYTHON" -c 'import struct, sys; sys.stdout.buffer.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + (b"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (4,), }".replace(b"\"", b"\x27").ljust(117) + b"\n") + struct.pack("<4f", 1, 2, 3, 4))' >"$scratch/x.npy" 2>/dev/null
if [ -s "$scratch/x.npy" ]; then
    exits "a NaN" 4 "became NaN" "$scratch/rate" --in x="$scratch/x.npy" --profile-trace "$scratch/kept.json"
    [ "$(cat "$scratch/kept.json")" = old ] && ! grep -q '^profile' "$scratch/out" && pass || fail "a NaN" "leaves a profile"
else
    skip "a run that fails" "no $PYTHON"
fi
"$digits" --steps 100000000 --log-every 1000 --profile-trace "$scratch/stopped.trace" >"$scratch/stopped" 2>&1 &
run=$!
tries=0
while ! grep -q '^step' "$scratch/stopped" && [ $tries -lt 200 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
kill -INT $run
wait $run
[ $? = 130 ] && grep -q "^profile of train 'fit'" "$scratch/stopped" && [ -s "$scratch/stopped.trace" ] && pass || fail "SIGINT" "$(tail -n 3 "$scratch/stopped")"

# ---- numbers ----
have "$PYTHON" || { skip "numbers of the profiles" "no $PYTHON"; summary profile; exit; }
numbers() { # NAME KINDS MODEL LOG TRACE OPTION...
    numbers_name=$1 numbers_kinds=$2 numbers_model=$3 numbers_log=$4 numbers_trace=$5
    shift 5
    "$MDLC" report --format=json "$@" "$numbers_model" >"$scratch/numbers.json"
    # shellcheck disable=SC2086
    "$PYTHON" -B tests/suites/profile.py "$scratch/numbers.json" "$numbers_log" "$numbers_trace" $numbers_kinds >"$scratch/said" 2>&1 && pass ||
        fail "$numbers_name" "$(tail -n 3 "$scratch/said")"
}
"$digits" --steps 40 --eval-every 20 --log json --profile-trace "$scratch/digits.trace" >"$scratch/digits.log"
"$PYTHON" -c 'import struct, sys
for path, columns in ((sys.argv[1], 64), (sys.argv[2], 40)):
    head = ("{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (64, %d), }" % columns).replace("\"", "\x27").ljust(117) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode())
        out.write(struct.pack("<%df" % (64 * columns), *(i % 7 / 7 for i in range(64 * columns))))
' "$scratch/hx.npy" "$scratch/hy.npy"
for name in halves f16; do
    "$scratch/$name" --in x="$scratch/hx.npy" --in y="$scratch/hy.npy" --log json --profile-trace "$scratch/$name.trace" >"$scratch/$name.log" 2>"$scratch/err" ||
        fail "$name" "$(cat "$scratch/err")"
done
numbers "bf16 beside f32" "bf16 f32" "$scratch/halves.mdl" "$scratch/halves.log" "$scratch/halves.trace"
numbers f16 f32 "$scratch/f16.mdl" "$scratch/f16.log" "$scratch/f16.trace"
"$scratch/halves" --in x="$scratch/hx.npy" --in y="$scratch/hy.npy" | grep -q '^profile: threads .* GFLOP/s (f32), .* GFLOP/s (bf16), memory' && pass ||
    fail "bf16 beside f32" "has no rate in words"
numbers digits f32 samples/digits.mdl "$scratch/digits.log" "$scratch/digits.trace"
numbers chars f32 samples/chars.mdl "$scratch/chars.log" "$scratch/chars.trace"
numbers gan f32 samples/gan.mdl "$scratch/gan.log" "$scratch/gan.trace"
numbers eval f32 samples/digits.mdl "$scratch/eval.log" "$scratch/eval.trace"
numbers entry "" "$scratch/entry.mdl" "$scratch/entry.log" "$scratch/entry.trace" --precision=f64 --checks=nan,canary
# That a wrong number is seen.
wrong() { # NAME SED of the log or trace
    cp "$scratch/digits.log" "$scratch/wrong.log"
    cp "$scratch/digits.trace" "$scratch/wrong.trace"
    sed -i "$2" "$scratch/wrong.$3"
    cmp -s "$scratch/digits.$3" "$scratch/wrong.$3" && fail "planted: $1" "changes nothing"
    "$MDLC" report --format=json samples/digits.mdl >"$scratch/numbers.json"
    "$PYTHON" -B tests/suites/profile.py "$scratch/numbers.json" "$scratch/wrong.log" "$scratch/wrong.trace" >/dev/null 2>&1 &&
        fail "planted: $1" "is not seen" || pass
}
wrong "a count" 's/\("step":11,.*"count":\)40/\139/' log
wrong "FLOPs" 's/\("step":11,.*"flops":\)[0-9]/\19/' log
wrong "a sum of times" 's/\("kind":"train","calls":40,"seconds":\)[0-9.e-]*/\11e-9/' log
wrong "a limit" 's/\("bytes_once":[0-9]*,"limit_seconds":\)/\19/' log
wrong "an event that is missing" '40d' trace
wrong "an event that is too long" '40s/"dur":/"dur":9/' trace
summary profile
