#!/bin/sh
# `make bench`: the time of a training step beside PyTorch, eager and compiled, on this machine.
#
# Six nets: digits (batch 128), 784-512-512-10 (batch 64, AdamW), the update of a DQN (batch 128,
# Adam), 4-8096-4 (batch 32, SGD), two convolutions and pools (batch 64, AdamW) and ResNet-20 (batch
# 32, SGD), each with 1 and 2 threads. PyTorch comes from the virtual
# environment MDLC_VENV (default ~/.cache/mdlc-bench), which lies outside of the tree; without it mdlc
# alone is timed. 64 batches take turns, on both sides.
#
# The limit printed is max(FLOPs / measured multiply-add rate, bytes / measured copy rate), with
#   FLOPs = 2 B (3 sum(in*out) - in*out of the first layer): forward, weight and input gradients
#   bytes = 24 a parameter: AdamW reads and writes p, m and v
set -u
. tests/lib.sh
venv=${MDLC_VENV:-$HOME/.cache/mdlc-bench}
python=$venv/bin/python
if [ ! -x "$python" ] || ! "$python" -c 'import torch' 2>/dev/null; then
    python=
    echo "bench: no PyTorch in $venv; python3 -m venv $venv && $venv/bin/pip install torch numpy"
fi

# shellcheck disable=SC2086
$CC $EMITTED_FLAGS -D_POSIX_C_SOURCE=200809L tests/bench/limit.c -o "$scratch/limit" || exit 1

build() { # NAME SOURCE BATCH WIDTH CLASSES
    upper=$(printf '%s' "$1" | tr '[:lower:]' '[:upper:]')
    "$MDLC" --no-main --prefix "$1" "$2" -o "$scratch/$1.c" -H "$scratch/$1.h" || exit 1
    # shellcheck disable=SC2086
    $CC $EMITTED_FLAGS -D_POSIX_C_SOURCE=200809L -std=gnu11 -I"$scratch" "-DMODEL_HEADER=\"$1.h\"" \
        "-DMODEL=$1" "-DM(x)=$1_##x" "-DM_MACRO(x)=${upper}_##x" -DBATCH="$3" -DWIDTH="$4" -DCLASSES="$5" \
        tests/bench/step.c "$scratch/$1.c" -lm -o "$scratch/$1" || exit 1
}
build digits samples/digits.mdl 128 64 10
build mlp tests/bench/mlp.mdl 64 784 10
build dqn tests/bench/dqn.mdl 128 10 2
build wide tests/bench/wide.mdl 32 4 4
build lenet tests/bench/lenet.mdl 64 784 10
build resnet tests/bench/resnet.mdl 32 3072 10

echo "net     threads   mdlc us   eager us   compiled us   ratio   limit us (flops, bytes)   of the limit"
for name in ${NETS:-digits mlp dqn wide lenet resnet}; do
    case $name in
    digits) batch=128 products=$((64 * 128 + 128 * 128 + 128 * 10)) first=$((64 * 128)) params=26122 ;;
    mlp) batch=64 products=$((784 * 512 + 512 * 512 + 512 * 10)) first=$((784 * 512)) params=669706 ;;
    # The target net runs forward too.
    dqn) batch=128 products=10728 first=$((480 - 10728)) params=10934 ;;
    wide) batch=32 products=64768 first=32384 params=72868 ;;
    # Multiplications of convolutions: places times channels times taps.
    lenet) batch=64 products=$((784 * 32 * 9 + 196 * 64 * 288 + 3136 * 128 + 1280)) first=$((784 * 32 * 9)) params=421642 ;;
    resnet) batch=32 products=40813184 first=$((1024 * 16 * 27)) params=272474 ;;
    esac
    for threads in 1 2; do
        OMP_NUM_THREADS=$threads
        export OMP_NUM_THREADS
        rates=$("$scratch/limit" 2>/dev/null)
        if [ -n "$python" ]; then
            times=$("$python" tests/bench/torch_bench.py $name $threads "$scratch/$name") || exit 1
        else
            "$scratch/$name" 0.5 >/dev/null
            times="$("$scratch/$name" 2) nan nan"
        fi
        echo "$name $threads $times $rates" | awk -v batch=$batch -v products=$products -v first=$first -v params=$params '{
            flops = 2 * batch * (3 * products - first) / ($6 * 1e9) * 1e6
            bytes = 24 * params / ($7 * 1e9) * 1e6
            limit = flops > bytes ? flops : bytes
            best = $4; if ($5 == $5 + 0 && $5 + 0 < best + 0) best = $5
            ratio = best == best + 0 ? sprintf("%.2f", best / $3) : "-"
            printf "%-7s %7d %9.1f %10s %13s %7s   %.1f (%.1f, %.1f) %15.0f %%\n", $1, $2, $3, $4, $5, ratio, limit, flops, bytes, 100 * limit / $3
        }'
    done
done

# What compiling takes: the median of eleven runs of mdlc, and one run of the C compiler.
now() { date +%s%N; }
echo
echo "sample     mdlc ms   C lines   $CC -O3 s"
for name in digits diabetes residual chars; do
    for run in 1 2 3 4 5 6 7 8 9 10 11 12; do
        start=$(now)
        "$MDLC" samples/$name.mdl -o "$scratch/$name.c" || exit 1
        [ $run = 1 ] || echo $((($(now) - start) / 1000))
    done | sort -n >"$scratch/times"
    start=$(now)
    emitted "$scratch/$name.c" "$scratch/$name" || exit 1
    echo "$name $(sed -n 6p "$scratch/times") $(wc -l <"$scratch/$name.c") $((($(now) - start) / 1000))" |
        awk '{ printf "%-8s %9.1f %9d %11.2f\n", $1, $2 / 1000, $3, $4 / 1e6 }'
done
