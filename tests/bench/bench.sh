#!/bin/sh
# `make bench`: the time of a training step beside PyTorch, eager and compiled, and JAX, on this machine.
#
# Twelve nets: digits (batch 128), 784-512-512-10 (batch 64, AdamW), the update of a DQN (batch 128,
# Adam), 4-8096-4 (batch 64, SGD), two convolutions and pools (batch 64, AdamW), LeNet-5 (batch 128, SGD
# with momentum), ResNet-20 and a stack of MobileNet blocks (batch 32, SGD), a U-Net (64 x 64, batch 8,
# AdamW; no JAX), an LSTM of 256 units (128 steps, batch 32, AdamW) and a GPT of four
# layers of 128 (64 letters, batch 12, AdamW) and GPT-2 of 124 million parameters (64 words, batch 4,
# AdamW; some 8 GB of memory for all sides), and where NETS names them `gpt2long`, the same for one text of
# 1,024 words, and `mse`, 10,000-10,000-10,000 (batch 1,000, SGD; minutes, some 16 GB), each with 1 and 2 threads (THREADS). PyTorch comes from the virtual environment MDLC_VENV
# (default ~/.cache/mdlc-bench), JAX from MDLC_JAX (default the same), which lie outside of the tree;
# what is not there has no column. 64 batches take turns, on all sides. The ratio is to the best peer.
#
# With PRECISION=bf16 or f16 trains are in 16 bits for the machine FOR (default native), as PyTorch's are
# under autocast; JAX has no column then, and two more say what ours takes in f32, in turn with the rest,
# and how much longer that is. There are no predictions, since precision is that of trains.
#
# Single operations follow, beside PyTorch's eager ones, and what compiling takes.
#
# The limit is that of programs compiled with --profile: what the step needs by the report, FLOPs of
# products and bytes that must move once, at the rates that limit.c measures on as many threads.
set -u
. tests/lib.sh
: "${PYTHON:=python3}"
venv=${MDLC_VENV:-$HOME/.cache/mdlc-bench}
torch=$venv/bin/python
if [ ! -x "$torch" ] || ! "$torch" -c 'import torch' 2>/dev/null; then
    torch=-
    echo "bench: no PyTorch in $venv; python3 -m venv $venv && $venv/bin/pip install torch numpy"
fi
venv=${MDLC_JAX:-$venv}
jax=$venv/bin/python
if [ ! -x "$jax" ] || ! "$jax" -c 'import jax' 2>/dev/null; then
    jax=-
    echo "bench: no JAX in $venv; python3 -m venv $venv && $venv/bin/pip install jax, or MDLC_JAX=VENV"
fi
if ! have "$PYTHON" && [ "$torch$jax" != -- ]; then
    torch=- jax=-
    echo "bench: no $PYTHON, which lets the peers take turns"
fi

: "${PRECISION:=f32}"
case $PRECISION in
    f32) halves= ;;
    bf16 | f16)
        halves="--precision=$PRECISION --for=${FOR:-native}" jax=- PREDICTS=
        EMITTED_FLAGS=$("$MDLC" flags "--for=${FOR:-native}") || exit 1
        ;;
    *) echo "bench: PRECISION is f32, bf16 or f16, not '$PRECISION'"; exit 2 ;;
esac
export PRECISION

# shellcheck disable=SC2086
$CC $EMITTED_FLAGS -D_POSIX_C_SOURCE=200809L -I. tests/bench/limit.c -o "$scratch/limit" || exit 1

nets="digits mlp dqn wide lenet lenet5 resnet mobile unet lstm gpt gpt2"
build() { # NAME SOURCE BATCH WIDTH CLASSES [OPTION...], if it is asked for
    case " ${NETS:-$nets} ${PREDICTS-} " in *" $1 "*) ;; *) return ;; esac
    name=$1 source=$2 batch=$3 width=$4 classes=$5
    shift 5
    upper=$(printf '%s' "$name" | tr '[:lower:]' '[:upper:]')
    if [ -n "$halves" ]; then
        emit "$@" && step "$scratch/$name-f32"
        # shellcheck disable=SC2086
        set -- "$@" $halves
    fi
    emit "$@"
    step "$scratch/$name"
    grep -q '^entry predict' "$source" && batch=1 step "$scratch/$name-predict" -DPREDICT
    "$MDLC" report "$@" --format=json "$source" >"$scratch/$name.json" || exit 1
}
emit() { "$MDLC" "$@" --no-main --prefix "$name" "$source" -o "$scratch/$name.c" -H "$scratch/$name.h" || exit 1; }
step() { # PROGRAM [FLAG]
    # shellcheck disable=SC2086
    $CC $EMITTED_FLAGS -D_POSIX_C_SOURCE=200809L -std=gnu11 -I"$scratch" "-DMODEL_HEADER=\"$name.h\"" \
        "-DMODEL=$name" "-DM(x)=${name}_##x" "-DM_MACRO(x)=${upper}_##x" "-DBATCH=$batch" "-DWIDTH=$width" \
        "-DCLASSES=$classes" ${2:-} tests/bench/step.c "$scratch/$name.c" -lm -o "$1" || exit 1
}
# times_of WHAT PROGRAM [BESIDE]: microseconds of all sides, in turn, of net `name` on `threads` threads; those of
# BESIDE at the end.
times_of() {
    if [ "$torch$jax" != -- ] || { [ -n "${3:-}" ] && have "$PYTHON"; }; then
        "$PYTHON" tests/bench/turns.py "$name" "$threads" "$1" "$2" "$torch" "$jax" ${3:+"$3"}
    else
        "$2" 0.5 >/dev/null
        echo "$("$2" 2) nan nan nan ${3:+$("$3" 2)}"
    fi
}
# needed NAME KEY: a number of the train of its report.
needed() { sed -n "/\"kind\":\"train\"/,/\"calls\":/s/^.*,\"$2\":\([0-9]*\).*/\1/p" "$scratch/$1.json" | head -n 1; }
build digits samples/digits.mdl 128 64 10
build mlp tests/bench/mlp.mdl 64 784 10
build dqn tests/bench/dqn.mdl 128 10 2
build wide tests/bench/wide.mdl 64 4 4
build lenet tests/bench/lenet.mdl 64 784 10
build lenet5 tests/bench/lenet5.mdl 128 784 10
build resnet tests/bench/resnet.mdl 32 3072 10
build mobile tests/bench/mobile.mdl 32 3072 10
build unet tests/bench/unet.mdl 8 12288 2
build lstm tests/bench/lstm.mdl 32 129 10
build gpt tests/bench/gpt.mdl 12 65 10
build gpt2 tests/bench/gpt2.mdl 4 65 10
build gpt2long tests/bench/gpt2.mdl 1 1025 10 -D B=1 -D T=1024
build mse tests/bench/mse.mdl 1000 10000 10

# faster RATES RATES: of each the higher one. While the machine does something else a limit would be too low, so
# it is measured in front of a row and behind it.
faster() { echo "$1 $2" | awk '{ print ($1 > $3 ? $1 : $3), ($2 > $4 ? $2 : $4) }'; }

echo "net     threads   mdlc us   eager us   compiled us     jax us   ratio   limit us (flops, bytes)   of the limit${halves:+     f32 us   times}"
for name in ${NETS:-$nets}; do
    for threads in ${THREADS:-1 2}; do
        OMP_NUM_THREADS=$threads
        export OMP_NUM_THREADS
        rates=$("$scratch/limit" "$PRECISION")
        times=$(times_of fit "$scratch/$name" ${halves:+"$scratch/$name-f32"}) || exit 1
        rates=$(faster "$rates" "$("$scratch/limit" "$PRECISION")")
        beside=
        [ -z "$halves" ] || beside=${times##* } times=${times% *}
        echo "$name $threads $times $rates $(needed $name flops_of_products) $(needed $name bytes_once) $beside" | awk '{
            flops = $9 / ($7 * 1e9) * 1e6
            bytes = $10 / ($8 * 1e9) * 1e6
            limit = flops > bytes ? flops : bytes
            best = 0
            for (i = 4; i <= 6; i++) if ($i != "nan" && (best == 0 || $i + 0 < best)) best = $i + 0
            ratio = best > 0 ? sprintf("%.2f", best / $3) : "-"
            printf "%-7s %7d %9.1f %10s %13s %10s %7s   %.1f (%.1f, %.1f) %15.0f %%", $1, $2, $3, $4, $5, $6, ratio, limit, flops, bytes, 100 * limit / $3
            if ($11 != "") printf " %10.1f %7.2f", $11, $11 / $3
            print ""
        }'
    done
done

# Predictions of one row: what the weights take to be read once is the limit where no cache holds them.
echo
echo "predict threads   mdlc us   eager us   compiled us     jax us   ratio   FLOPs us   weights MB   GB/s"
for name in ${PREDICTS-${NETS:-$nets}}; do
    [ -x "$scratch/$name-predict" ] || continue
    for threads in ${THREADS:-1 2}; do
        OMP_NUM_THREADS=$threads
        export OMP_NUM_THREADS
        rates=$("$scratch/limit" f32)
        times=$(times_of predict "$scratch/$name-predict") || exit 1
        rates=$(faster "$rates" "$("$scratch/limit" f32)")
        flops=$(sed -n '/"name":"predict"/,/"calls":/s/^.*,"flops_of_products":\([0-9]*\).*/\1/p' "$scratch/$name.json" | head -n 1)
        weights=$(sed -n 's/^.*_PARAMS_BYTES *= *\([0-9]*\).*/\1/p;s/^#define .*_PARAMS_BYTES  *\([0-9]*\).*/\1/p' "$scratch/$name.h" | head -n 1)
        echo "$name $threads $times $rates ${flops:-0} ${weights:-0}" | awk '{
            best = 0
            for (i = 4; i <= 6; i++) if ($i != "nan" && (best == 0 || $i + 0 < best)) best = $i + 0
            ratio = best > 0 ? sprintf("%.2f", best / $3) : "-"
            printf "%-7s %7d %9.1f %10s %13s %10s %7s %10.1f %12.2f %6.1f\n", $1, $2, $3, $4, $5, $6, ratio, $9 / ($7 * 1e9) * 1e6, $10 / 1e6, $10 / $3 / 1e3
        }'
    done
done

# Single operations, by ops.py.
if [ "$torch" != - ] && [ -z "${NETS:-}" ]; then
    echo
    echo "operation                threads     mdlc ms    eager ms   ratio"
    for threads in ${THREADS:-1 2}; do
        OMP_NUM_THREADS=$threads "$torch" tests/bench/ops.py "$MDLC" "$CC" "$EMITTED_FLAGS" "$scratch" $threads || exit 1
    done
fi

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
