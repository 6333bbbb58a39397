#!/bin/sh
# scaler: the scale of the loss of trains in f16. The fixed sequence of scaler.c beside PyTorch's rule,
# plain, clipped, in micro-batches and with small odd sizes; then whole runs: what a run says of
# updates that are left out, resumes, threads, budgets, debugging builds, and that f32 has none of it.
set -u
. tests/lib.sh
: "${ODD_BUILD:=build/odd}"
model=tests/suites/scaler.mdl
wide=0

# host NAME COMPILER OPTIONS FLAGS: builds and runs the sequence.
host() {
    # shellcheck disable=SC2086
    if "$2" --no-main $3 $model -H "$scratch/scaler.h" -o "$scratch/model.c" &&
        lightly emitted "$scratch/model.c" "$scratch/model.o" -c -I"$scratch" &&
        $CC -O1 $4 -I"$scratch" tests/suites/scaler.c "$scratch/model.o" -fopenmp -lm -o "$scratch/host" &&
        "$scratch/host" >"$scratch/out"; then
        grep -qx 'overflowed 6 doubled 3 scale 8192' "$scratch/out" && pass || fail "$1" "$(cat "$scratch/out")"
    else
        fail "$1" "$(cat "$scratch/out" 2>/dev/null)"
    fi
}
host plain "$MDLC" "" ""
host clipped "$MDLC" "-D CLIP=2" ""
host "clipped by value" "$MDLC" "-D CLIP=3" ""
host micro-batches "$MDLC" "-D PARTS=2" "-DPARTS=2"
host "micro-batches, clipped" "$MDLC" "-D PARTS=2 -D CLIP=2" "-DPARTS=2"
host "small odd sizes" "$ODD_BUILD/mdlc" "" ""

# Eight batches of 32 rows; of the third and the last one a row is too large.
awk 'BEGIN { for (i = 0; i < 256; i++) {
    for (k = 0; k < 32; k++) printf "%s,", ((i * 5 + k * 3) % 17 - 8) / 8
    print (i == 70 || i == 250) ? "1e30" : i % 2 ? "-0.03" : "0.06" } }' >"$scratch/bad.csv"
awk 'NR <= 64 || (NR > 96 && NR <= 224)' "$scratch/bad.csv" >"$scratch/good.csv"

# run PROGRAM OPTION...: over the rows with the large ones.
run() {
    run_program=$1
    shift
    "$scratch/$run_program" --data "f=$scratch/bad.csv" --log json --log-every 1 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null ||
        fail "$run_program $*" "$(head -n 2 "$scratch/err")"
}
# build NAME OPTION...: with a main.
build() {
    build_name=$1
    shift
    "$MDLC" "$@" $model -o "$scratch/$build_name.c" && emitted "$scratch/$build_name.c" "$scratch/$build_name" || fail "$build_name" "does not build"
}
build scaler
run scaler fit --seed 3 --save "$scratch/left.st" --threads 1
end=$(grep '"event":"end"' "$scratch/out")
[ "$(number "$end" steps)" = 40 ] && [ "$(number "$end" skipped)" = 13 ] && [ "$(number "$end" overflowed)" = 13 ] && pass || fail counts "$end"
[ "$(number "$end" peak_over_process_bytes)" -le "$(number "$end" bound_bytes)" ] && [ "$(number "$end" resident_growth_pages)" = 0 ] && pass || fail bound "$end"
[ -s "$scratch/err" ] && fail warnings "$(cat "$scratch/err")" || pass
# Thirteen of them halve 65536 one after another; a line shows the scale that its step had.
sed -n 's/.*"event":"step".*"loss_scale":\([^,}]*\).*/\1/p' "$scratch/out" | uniq -c | awk '{ print $1 ":" $2 }' | tr '\n' ' ' >"$scratch/scales"
[ "$(cat "$scratch/scales")" = "2:65536 4:32768 2:16384 4:8192 2:4096 4:2048 2:1024 4:512 2:256 4:128 2:64 4:32 2:16 2:8 " ] && pass || fail scales "$(cat "$scratch/scales")"
"$scratch/scaler" fit --data "f=$scratch/bad.csv" --seed 3 --threads 1 --log text >"$scratch/out" 2>&1
grep -q '^left out: 13 updates whose scaled gradients overflowed$' "$scratch/out" && ! grep -q 'is no number' "$scratch/out" && pass || fail text "$(tail -n 4 "$scratch/out")"
"$scratch/scaler" fit --data "f=$scratch/good.csv" --seed 3 --threads 1 --log none --save "$scratch/good.st"
same "the updates are those of the other rows" "$scratch/good.st" "$scratch/left.st"
"$scratch/scaler" fit --data "f=$scratch/good.csv" --seed 3 --threads 1 --log none --save "$scratch/set.st" --set loss_scale=1024
same "whatever the first scale" "$scratch/good.st" "$scratch/set.st"
for threads in 2 3; do
    run scaler fit --seed 3 --save "$scratch/threads.st" --threads $threads
    same "$threads threads" "$scratch/left.st" "$scratch/threads.st"
done

# Two trains, each with a scale of its own; stopped anywhere and resumed, in front of and behind an overflow.
run scaler --seed 3 --checkpoint "$scratch/whole.st"
grep -q '"event":"end","entry":"other".*"overflowed"' "$scratch/out" && fail other "$(tail -n 1 "$scratch/out")" || pass
for stop in 2 3 6 25; do
    rm -f "$scratch/part.st"*
    run scaler fit --seed 3 --steps $stop --checkpoint "$scratch/part.st"
    run scaler --resume "$scratch/part.st" --checkpoint "$scratch/part.st"
    same "resumed behind step $stop" "$scratch/whole.st" "$scratch/part.st"
    [ "$(number "$(grep '"event":"end","entry":"fit"' "$scratch/out")" overflowed)" = 13 ] && pass || fail "counted on behind step $stop"
done

# A budget changes no bit. The first scale is too large by far.
blocks=tests/suites/budgets.mdl
total=$("$MDLC" report --precision="f16, always" $blocks | sed -n 's/^ *total *\([0-9]*\).*/\1/p')
for budget in $total $((total * 4 / 5)); do
    "$MDLC" --precision="f16, always" --budget=$budget $blocks -o "$scratch/blocks.c" && quickly "$scratch/blocks.c" "$scratch/blocks" &&
        "$scratch/blocks" --log json --save "$scratch/blocks.$budget.st" --set loss_scale=1e14 >"$scratch/out" || fail "budget $budget" "does not run"
    [ "$(number "$(grep '"event":"end"' "$scratch/out")" overflowed)" -gt 5 ] && pass || fail "budget $budget" "$(tail -n 1 "$scratch/out")"
done
grep -q ', again' "$scratch/blocks.c" && pass || fail budget "no step runs again"
same "with a budget" "$scratch/blocks.$total.st" "$scratch/blocks.$budget.st"
# A debugging build says where the infinity came from, and goes on.
"$MDLC" --checks=nan,canary $model -o "$scratch/checked.c" && quickly "$scratch/checked.c" "$scratch/checked" || fail "--checks" "does not build"
run checked fit --seed 3 --save "$scratch/checked.st" --threads 1
[ "$(grep -c "warning: the gradients of 'fit' overflowed in step [0-9]*, which is left out; the first NaN came from scaler.mdl:8: contract in .* an infinity came before it, from scaler.mdl:8: f16 in" "$scratch/err")" = 13 ] && pass || fail "--checks=nan" "$(head -n 2 "$scratch/err")"
[ "$(number "$(grep '"event":"end"' "$scratch/out")" overflowed)" = 13 ] && pass || fail "--checks=nan" "$(tail -n 1 "$scratch/out")"

# A loss that is no number is no matter of its scale.
sed 's/1e30/1e38/' "$scratch/bad.csv" >"$scratch/worse.csv"
"$scratch/scaler" fit --data "f=$scratch/worse.csv" --seed 3 --log none 2>"$scratch/err"
[ $? = 4 ] && grep -q "the loss of 'fit' became" "$scratch/err" && pass || fail "the loss" "$(cat "$scratch/err")"
# A clip by value would make numbers of infinities: it comes behind the judgement, and the norm is that in front of it.
for clip in "" "clip value(1e6);" "clip value(10);"; do
    cat >"$scratch/steep.mdl" <<END
use nn;
dataset d { file f = synthetic(320, seed = 1); x: f32[64] = 1.5 + 0 * normal(0, 1); shuffle false; }
model net(x: [16, 64]) -> [16, 32] { param w: [32, 64] = 0.01; y[b, o] = sum[k] x[b, k] * w[o, k]; return y; }
train fit of net on d[16] {
    loss 10.0 * sum((net(x) - 5)^2);
    optimizer sgd(lr = 1e-5);
    $clip
    steps 1;
    precision f16, always;
}
END
    "$MDLC" "$scratch/steep.mdl" -o "$scratch/steep.c" && quickly "$scratch/steep.c" "$scratch/steep" &&
        "$scratch/steep" --log json --save "$scratch/steep.st" >"$scratch/out" || fail "steep $clip" "does not run"
    [ "$(number "$(grep '"event":"end"' "$scratch/out")" overflowed)" = 7 ] && pass || fail "steep $clip" "$(tail -n 1 "$scratch/out")"
    number "$(grep '"event":"step"' "$scratch/out")" grad_norm >>"$scratch/norms"
    [ "$clip" = "clip value(10);" ] || cp "$scratch/steep.st" "$scratch/steep$((wide += 1)).st"
done
[ "$(sort -u "$scratch/norms" | wc -l)" = 1 ] && pass || fail "steep" "other norms with a clip: $(tr '\n' ' ' <"$scratch/norms")"
same "a clip that cuts nothing" "$scratch/steep1.st" "$scratch/steep2.st"
cmp -s "$scratch/steep.st" "$scratch/steep1.st" && fail "a clip that cuts" "the same weights" || pass
# f32 scales nothing.
build single --precision=f32
run single fit --seed 3 --save "$scratch/single.st" --threads 1 --steps 2
grep -q loss_scale "$scratch/out" "$scratch/single.c" && fail "--precision=f32" "$(grep -c loss_scale "$scratch/single.c") places" || pass
summary scaler
