#!/bin/sh
# `make bench-cuda`: the time of a training step on a graphics processor beside PyTorch's, eager and
# compiled, in f32, and the bytes of the device that are declared.
#
# Nets of `make bench` (NETS), built by nvcc for the device that is here, with PRECISION=bf16 or f16 in
# 16 bits; PyTorch, which stays in f32, is that of the virtual environment MDLC_VENV, or of python3 where
# that has none. A call of ours copies its batch to the device and its loss back; the peers' batches lie
# on the device.
set -u
. tests/lib.sh
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] && nvidia-smi >/dev/null 2>&1 || { echo "bench-cuda: no nvcc, or nvidia-smi finds no device"; exit 1; }
torch=${MDLC_VENV:-$HOME/.cache/mdlc-bench}/bin/python
[ -x "$torch" ] || torch=python3
"$torch" -c 'import torch' 2>/dev/null || torch=-

# row NAME SOURCE STEPS COUNT_1 COUNT_2 CLASSES
row() {
    case " ${NETS:-digits mlp lenet lenet5 resnet mobile unet lstm gpt gpt2} " in *" $1 "*) ;; *) return ;; esac
    name=$1 upper=$(printf '%s' "$1" | tr '[:lower:]' '[:upper:]') steps=$3
    "$MDLC" --no-main --target=cuda "--precision=${PRECISION:-f32}" --prefix "$name" "$2" -o "$scratch/$name.cu" || exit 1
    "$nvcc" -std=c++17 -O3 -arch=native -fmad=false "-DPREFIX=$name" "-DUPPER=$upper" -DTRAIN=fit -DFIRST=x -DSECOND=y \
        "-DCOUNT_1=$4" "-DCOUNT_2=$5" "-DLIMIT=$6" "-DMODEL=\"$scratch/$name.cu\"" -x cu tests/cuda/driver.cc \
        -o "$scratch/$name" || exit 1
    "$scratch/$name" "$steps" >"$scratch/$name.out" 2>"$scratch/$name.err"
    [ "$(grep -c '^loss 0 ' "$scratch/$name.out")" = "$steps" ] || { echo "$name: $(grep -m 1 '^loss [^0]' "$scratch/$name.out")"; exit 1; }
    bytes=$(sed -n "s/^#define ${upper}_\\(PARAMS\\|STATE\\|IO\\|ARENA\\)_BYTES \\([0-9]*\\).*/\\2/p" "$scratch/$name.cu" |
        awk '{ s += $1 } END { printf "%d", s }')
    peers="- -"
    [ "$torch" = - ] || peers=$({ echo eager; echo compiled; } | DEVICE=cuda "$torch" tests/bench/torch_bench.py "$name" 4 fit 2>/dev/null |
        sed 1d | tr '\n' ' ')
    echo "$name $(sed -n 's/^step: \([0-9.]*\) us/\1/p' "$scratch/$name.err") $bytes $peers" |
        awk '{ printf "%-8s %10.1f %10s %12s %14.2f\n", $1, $2, $4, $5, $3 / 1e6 }'
}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
echo "net         mdlc us   eager us  compiled us    MB declared"
row digits samples/digits.mdl 200 8192 128 10
row mlp tests/bench/mlp.mdl 200 50176 64 10
row lenet tests/bench/lenet.mdl 100 50176 64 10
row lenet5 tests/bench/lenet5.mdl 100 100352 128 10
row resnet tests/bench/resnet.mdl 50 98304 32 10
row mobile tests/bench/mobile.mdl 30 98304 32 10
row unet tests/bench/unet.mdl 30 98304 8 2
row lstm tests/bench/lstm.mdl 20 4128 32 10
row gpt tests/bench/gpt.mdl 50 780 12 10
row gpt2 tests/bench/gpt2.mdl 10 260 4 10
