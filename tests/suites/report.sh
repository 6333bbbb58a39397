#!/bin/sh
# The JSON report: its fields are those that docs/report.md describes, over programs that have all of
# them; what it says of C is what the header says to a C compiler; the roles of inputs. That a host can
# live on it alone is in interop.sh. All but the first checks want Python.
set -u
. tests/lib.sh
: "${PYTHON:=python3}"

# ---- targets ----
# What layers and models compute from is an input; what the loss alone looks at is a target, also behind
# a fold, in a loop of micro-batches and in a scan beside a model.
cat >"$scratch/roles.mdl" <<'END'
use nn;
dim B = 4;
model net(x: [B, 3]) -> [B, 2] { return x |> fc: linear(out = 2); }
model one(x: [3]) -> [2] { return x |> fc: linear(out = 2); }
train plain(x: [B, 3], y: i32[B] in 0..2, w: [B], scale: [B, 3], unused: [B]) of net {
    loss mean(w * cross_entropy(net(x * scale), y));
    optimizer sgd(lr = 0.1);
}
train parts(x: [B, 3], y: [B, 2]) of net {
    loss mean((net(x) - y)^2);
    accumulate 2;
    optimizer sgd(lr = 0.1);
}
train turns(x: [5, 3], y: [5, 2]) of one {
    scan t < 5 carry total = 0.0 { total <- total + sum((one(x[t, :]) - y[t, :])^2); }
    loss total;
    optimizer sgd(lr = 0.1);
}
train fed(x: [5, 3], y: [5, 3]) of one {
    scan t < 5 carry g = zeros([3]), h = zeros([3]) { h <- h + g; g <- g + y[t, :]; }
    loss sum(one(h)^2) + sum(x);
    optimizer sgd(lr = 0.1);
}
entry predict(x: [B, 3]) { return out = net(x); }
END
cat >"$scratch/expected" <<'END'
init init
plain train
  x input true
  y target true
  w target true
  scale input true
  unused input true
parts train
  x input true
  y target true
turns train
  x input true
  y target true
fed train
  x target true
  y input true
predict entry
  x input true
END
"$MDLC" report --no-main --format=json "$scratch/roles.mdl" >"$scratch/roles.json" 2>"$scratch/err" || fail roles "$(head -n 3 "$scratch/err")"
sed -n 's/.*{"name":"\([a-z]*\)","kind":"\([a-z]*\)".*/\1 \2/p; s/^ *{"name":"\([a-z]*\)",.*"role":"\(input\|target\)","required":\([a-z]*\).*/  \1 \2 \3/p' "$scratch/roles.json" >"$scratch/roles"
same "roles of inputs" "$scratch/expected" "$scratch/roles"

# ---- why ----
# What lies at a peak: the causes, each where the program has it. explained NAME PATTERN FILE.
explained() {
    grep -qE "$2" "$3" && pass || fail "why: $1" "$(grep -A 12 'peak at' "$3")"
}
"$MDLC" report samples/digits.mdl >"$scratch/why.digits"
explained "a layer" '65536  fc1_linear +f32\[128, 128\] line 16, net.fc1; saved for the derivative in net.fc2, line 16; ' "$scratch/why.digits"
# Long and narrow: the peak is at the loss. What that makes of its derivative is not saved.
"$MDLC" report -DB=8192 -Dhidden=8 --budget=100MiB samples/digits.mdl >"$scratch/why.long"
explained "the loss derives at once" '32768  cross_entropy_max +f32\[8192\] line 23, net.head; saved for the derivative of the loss; ' "$scratch/why.long"
explained "a derivative" '327680  d_head_out +f32\[8192, 10\] line 23, net.head; used here, then read later by ' "$scratch/why.long"
explained "a workspace" 'net.fc2; workspace of 8 threads$' "$scratch/why.digits"
"$MDLC" report samples/pytorch/gpt2.mdl >"$scratch/why.gpt2"
explained "turns" 'saved in each of 2 turns for the derivative in gpt.block.attn, line 14; ' "$scratch/why.gpt2"
explained "a tied weight" 'gpt.wte; gradient of gpt.wte.weight, the sum of those of its 2 uses; clip keeps all gradients until their norm is known, line 45; ' "$scratch/why.gpt2"
explained "one use" 'gradient of gpt.block.mlp.c_fc.weight; clip keeps' "$scratch/why.gpt2"
# What it adds to a wide net: its gradients as a whole, in whose place one activation has gone.
wide="use nn; dim B = 200, N = 2000; model net(x: [B, N]) -> [B, N] { return x |> a: linear(N) |> relu |> b: linear(N); }
train fit(x: [B, N]) of net { loss mean((net(x) - x)^2); CLIP optimizer sgd(lr = 0.01); }"
arena_of() { "$MDLC" report --format=json "$1" | sed -n 's/.*"regions".*"arena":\([0-9]*\).*/\1/p' | head -n 1; }
printf '%s' "$wide" | sed 's/CLIP//' >"$scratch/free.mdl"
printf '%s' "$wide" | sed 's/CLIP/clip norm(1.0);/' >"$scratch/clip.mdl"
added=$(($(arena_of "$scratch/clip.mdl") - $(arena_of "$scratch/free.mdl"))) gradients=$((2 * 4 * (2000 * 2000 + 2000)))
[ "$added" -le "$gradients" ] && [ $((added + 3 * 4 * 200 * 2000)) -ge "$gradients" ] && pass ||
    fail "a clip of a wide net" "it adds $added bytes, its gradients are $gradients"
"$MDLC" report "$scratch/clip.mdl" >"$scratch/why.wide"
explained "a clip of a wide net" 'gradient of net.a.weight; clip keeps all gradients until their norm is known' "$scratch/why.wide"
# Large logits are made by rows without a budget, but not where their gradients wait for the loss of all rows: each
# would be made twice.
logits="use nn; dim B = 2048, D = 64, V = 40_000; model net(x: [B, D]) -> [B, V] { return x |> head: linear(V); }
train fit(x: [B, D], y: i32[B] in 0..V) of net { loss mean(cross_entropy(net(x), y))POWER; optimizer sgd(lr = 0.1); }"
work_of() { "$MDLC" report --format=json "$1" | tr '{,' '\n\n' | awk -F: '$1 == "\"kind\"" { inside = $2 == "\"train\"" } $1 == "\"flops\"" && inside { printf "%.0f\n", $2; exit }'; }
printf '%s' "$logits" | sed 's/POWER//' >"$scratch/rows.mdl"
printf '%s' "$logits" | sed 's/POWER/^2/' >"$scratch/whole.mdl"
rows="$(arena_of "$scratch/rows.mdl") $(work_of "$scratch/rows.mdl")" whole="$(arena_of "$scratch/whole.mdl") $(work_of "$scratch/whole.mdl")"
[ "${rows% *}" -lt 100000000 ] && [ "${whole% *}" -ge 327680000 ] && [ $((${whole#* } * 10)) -lt $((${rows#* } * 11)) ] && pass ||
    fail "logits by rows" "bytes and FLOPs $rows, with the square of the loss $whole"
"$MDLC" --budget="150 MB, rounding" "$scratch/whole.mdl" -o "$scratch/whole.c" 2>"$scratch/err" && pass || fail "logits by rows for a budget" "$(head -n 1 "$scratch/err")"
# Without the clip nothing is said of one; with micro-batches they are.
sed '/clip norm/d' samples/pytorch/gpt2.mdl >"$scratch/free.mdl"
"$MDLC" report "$scratch/free.mdl" >"$scratch/why.free"
grep -q "clip keeps" "$scratch/why.free" && fail "why: no clip" "$(grep 'clip keeps' "$scratch/why.free")" || pass
sed 's/clip norm.*/&\n    accumulate 4;/' samples/digits.mdl >"$scratch/parts.mdl"
"$MDLC" report "$scratch/parts.mdl" >"$scratch/why.parts"
explained "micro-batches" 'gradient of net.fc2.weight; adds up over 4 micro-batches; clip' "$scratch/why.parts"
"$MDLC" report samples/residual.mdl >"$scratch/why.residual"
explained "a carry" 'carried from turn to turn of a loop, line 17; ' "$scratch/why.residual"

have "$PYTHON" || { skip "the JSON report: fields and declarations" "no $PYTHON"; summary report; exit; }

# ---- programs ----
# report NAME OPTION... FILE: what a compile prints beside the C file, in the form of the contract.
report() {
    report_name=$1
    shift
    mkdir "$scratch/$report_name"
    "$MDLC" --report=json "$@" -o "$scratch/$report_name/net.c" >"$scratch/$report_name/report.json" 2>"$scratch/err" && pass ||
        fail "$report_name" "$(head -n 1 "$scratch/err")"
    reports="$reports $scratch/$report_name/report.json"
}
# agrees NAME OPTION... FILE: and a C compiler finds the same in the header.
agrees() {
    report "$1" "$2" "$3" ${4:+"$4"} ${5:+"$5"} -H "$scratch/$1/net.h"
    "$PYTHON" -B tests/suites/report.py program "$scratch/$1/report.json" net.h >"$scratch/$1/agrees.c" || fail "$1: C of the report" "is not written"
    # shellcheck disable=SC2086
    check "$1: the header says the same" $CC -std=c11 -Wall -Wextra -Wno-unused-function -Werror -O0 -fopenmp -I"$scratch/$1" \
        "$scratch/$1/agrees.c" "$scratch/$1/net.c" -lm -o "$scratch/$1/agrees"
    check "$1: tables" "$scratch/$1/agrees"
}
reports=
agrees digits --no-main samples/digits.mdl
agrees gan --no-main samples/gan.mdl
agrees regress --no-main --prefix=other samples/hosts/regress.mdl
agrees host --no-main tests/suites/host.mdl
agrees guarded --no-main --checks=nan,canary samples/digits.mdl
agrees traced --no-main --checks=nan samples/diabetes.mdl
agrees gpt2 --no-main -DT=8 -DV=32 samples/pytorch/gpt2.mdl
agrees table --no-main tests/suites/table.mdl
agrees entries --no-main tests/suites/entries.mdl
report with_main samples/digits.mdl
report halves --no-main --precision="f16, always" tests/suites/halves.mdl
report in_phases samples/tune.mdl
report device --target=cuda --no-main samples/digits.mdl
mkdir "$scratch/what_if"
"$MDLC" report --format=json --what-if samples/digits.mdl >"$scratch/what_if/report.json" && reports="$reports $scratch/what_if/report.json" || fail what_if "$?"
# The results of fc1, 128 rows of 128, are kept in 2 bytes each.
"$MDLC" report --precision="f16, always" tests/suites/halves.mdl >"$scratch/halves.txt"
grep -q '^  stored in f16, by layer; f32 would take as many bytes more$' "$scratch/halves.txt" && grep -qE '^ +[0-9]+ +32768  mlp.fc1$' "$scratch/halves.txt" && pass ||
    fail "16 bits by layer" "$(grep -A 4 'stored in' "$scratch/halves.txt")"
"$MDLC" report tests/suites/halves.mdl | grep -q "stored in" && fail "16 bits by layer" "in f32" || pass
# shellcheck disable=SC2086
check "fields as documented" "$PYTHON" -B tests/suites/report.py fields docs/report.md $reports
# That the comparison sees a field too many, and one too few; and the C compiler a wrong statement.
grep -v '`api.align`' docs/report.md >"$scratch/less.md"
{ cat docs/report.md; echo '| `entries[].more` | |'; } >"$scratch/more.md"
for planted in less more; do
    # shellcheck disable=SC2086
    "$PYTHON" -B tests/suites/report.py fields "$scratch/$planted.md" $reports >"$scratch/said" && fail "planted: $planted" "is not seen" || pass
    grep -q '^api.align: printed\|^entries\[\].more: documented' "$scratch/said" && pass || fail "planted: $planted" "$(cat "$scratch/said")"
done
wrong() { # NAME SED
    mkdir "$scratch/wrong"
    sed "$2" "$scratch/host/report.json" >"$scratch/wrong/report.json"
    cmp -s "$scratch/host/report.json" "$scratch/wrong/report.json" && fail "planted: $1" "changes nothing"
    "$PYTHON" -B tests/suites/report.py program "$scratch/wrong/report.json" net.h >"$scratch/wrong/agrees.c" 2>/dev/null &&
        $CC -std=c11 -O0 -w -I"$scratch/host" "$scratch/wrong/agrees.c" "$scratch/host/net.c" -lm -o "$scratch/wrong/agrees" 2>/dev/null &&
        "$scratch/wrong/agrees" && fail "planted: $1" "is not seen" || pass
    rm -r "$scratch/wrong"
}
wrong "a field's type" 's/"type":"int32_t","pointer":false,"declaration":"int32_t n"/"type":"int64_t","pointer":false,"declaration":"int64_t n"/'
wrong "the order of fields" 's/"field":"n"/"field":"q"/; s/"field":"w"/"field":"n"/; s/"field":"q"/"field":"w"/'
wrong "a code" 's/"code":9/"code":19/'
wrong "a parameter" 's/"declaration":"int host_run(host \*m, const/"declaration":"int host_run(host *m, /'
wrong "a size" 's/"state":\([0-9]*\)/"state":1\1/'
wrong "an offset" 's/"offset":64/"offset":128/'
wrong "an element type" 's/"i64":5/"i64":6/'
summary report
