#!/bin/sh
# Builds and runs tests/bench/tile_bench.c: sh tests/bench/tile_bench.sh [THREADS], from the root.
# CC and CFLAGS are honoured; a CBLAS library is compared with where one links.
set -eu
dir=${BUILD:-build}/bench
threads=${1:-1}
cc=${CC:-cc}
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -I. -I$dir -Wall -Wextra -Wpedantic -Wshadow -Wconversion"
fast="-O3 -march=native -fopenmp -ffp-contract=off -fno-math-errno -fno-trapping-math ${CFLAGS:-}"
mkdir -p "$dir"
$cc $flags -O1 -DPLANS tests/bench/tile_bench.c -o "$dir/tile_plans"
"$dir/tile_plans" > "$dir/tile_bench_plans.h"
blas=
for library in openblas cblas blas; do
    if echo 'int cblas_sgemm(void); int main(void) { return cblas_sgemm != 0; }' |
        $cc -x c - -l$library -o "$dir/has_blas" 2>/dev/null; then
        blas="-DHAVE_CBLAS -l$library"
        break
    fi
done
$cc $flags $fast tests/bench/tile_bench.c $blas -lm -o "$dir/tile_bench"
# An OpenBLAS older than the machine falls back to narrow kernels unless told otherwise.
if grep -q avx512vl /proc/cpuinfo 2>/dev/null; then
    export OPENBLAS_CORETYPE=SkylakeX
fi
OMP_NUM_THREADS=$threads OPENBLAS_NUM_THREADS=$threads "$dir/tile_bench" "$threads"
