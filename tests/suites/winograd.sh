#!/bin/sh
# Convolutions of 3 x 3 places at stride 1 whose tiles are transformed (runtime/tile_winograd.h): which
# products of a net are such, the same weights to the byte for any number of threads and from builds with
# vectors of all widths and with none, whatever is checked, and a net of which none is such.
set -u
. tests/lib.sh

# Odd sides, channels that fill no vector, one convolution that is added to what goes around it.
cat >"$scratch/net.mdl" <<'EOF'
use nn;
dim B = 12, N = 17;
model net(x: [B, 3, N, N]) -> [B, 4] {
    a = x |> c1: conv2d(40, k = 3, pad = 1) |> relu;
    b = a |> c2: conv2d(40, k = 3, pad = 1) |> relu;
    h = b + (b |> c3: conv2d(40, k = 3, pad = 1)) |> relu |> c4: conv2d(36, k = 3) |> relu;
    return mean_pool(h) |> f: linear(4);
}
layer mean_pool(x: [b, c, h, w]) { y[b, c] = mean[i, j] x[b, c, i, j]; return y; }
dataset drawn { file f = synthetic(40, seed = 1); x: f32[3, N, N] = uniform(-1, 1); y: f32[4] = uniform(0, 1); }
train fit of net on drawn[B] {
    loss mean((net(x) - y)^2);
    optimizer adamw(lr = 1e-3);
    steps 4;
}
EOF

# plans TEXT FLAG: how many products of the text have a plan with this flag.
plans() { grep -c "^    .*MD_TILE_$2\b" "$1"; }
"$MDLC" --no-main "$scratch/net.mdl" -o "$scratch/plain.c" 2>"$scratch/err" || fail "net" "$(head -n 1 "$scratch/err")"
all=$(plans "$scratch/plain.c" WINOGRAD) sums=$(plans "$scratch/plain.c" WINOGRAD_SUM)
# The net and its evaluation have three such products forward, the train two or three by the input and three
# by the weights, some of which are one kernel.
[ "$all" -ge 6 ] && pass || fail "products" "$all plans with transformed tiles"
[ "$sums" -ge 2 ] && pass || fail "sums over places" "$sums plans"
sed 's/k = 3, pad = 1/k = 3, pad = 2, dilation = 2/; s/c4: conv2d(36, k = 3)/c4: conv2d(36, k = 3, stride = 2)/' "$scratch/net.mdl" >"$scratch/other.mdl"
"$MDLC" --no-main "$scratch/other.mdl" -o "$scratch/other.c" 2>"$scratch/err" || fail "other" "$(head -n 1 "$scratch/err")"
all=$(plans "$scratch/other.c" WINOGRAD)
[ "$all" = 0 ] && pass || fail "dilations and strides" "$all plans with transformed tiles"

# trained NAME THREADS BUILD... [-- OPTION...]: four steps; the weights.
trained() {
    name=$1 threads=$2 options='' build=''
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do build="$build $1"; shift; done
    [ $# -gt 0 ] && shift
    options=$*
    # shellcheck disable=SC2086
    "$MDLC" $options "$scratch/net.mdl" -o "$scratch/$name.c" 2>"$scratch/err" &&
        $build "$scratch/$name.c" -lm -o "$scratch/$name" 2>"$scratch/err" &&
        OMP_NUM_THREADS=$threads "$scratch/$name" fit --seed 3 --save "$scratch/$name.weights" --log json \
            >"$scratch/$name.log" 2>"$scratch/err" ||
        { fail "$name" "$(head -n 1 "$scratch/err")"; return 1; }
}
native="$CC -O1 -march=native -ffp-contract=off -fopenmp"
# shellcheck disable=SC2086
if trained one 1 $native; then
    grep -q '"event":"end"' "$scratch/one.log" && pass || fail "one" "does not end"
    for threads in 2 3 7; do
        OMP_NUM_THREADS=$threads "$scratch/one" fit --seed 3 --save "$scratch/$threads.weights" --log none &&
            same "$threads threads" "$scratch/one.weights" "$scratch/$threads.weights" || fail "$threads threads" "does not end"
    done
    trained whole 2 $native -- --runtime=whole && same "all of the runtime" "$scratch/one.weights" "$scratch/whole.weights"
    trained canary 2 $native -- --checks=canary && same "guard bands" "$scratch/one.weights" "$scratch/canary.weights"
    trained nan 2 $native -- --checks=nan && same "with checks" "$scratch/one.weights" "$scratch/nan.weights"
    # All of these round a multiply-add once.
    if grep -qw avx2 /proc/cpuinfo 2>/dev/null && grep -qw fma /proc/cpuinfo; then
        trained avx2 2 $CC -O1 -mavx2 -mfma -ffp-contract=off -fopenmp && same "AVX2" "$scratch/one.weights" "$scratch/avx2.weights"
        trained none 2 $CC -O1 -mfma -DMD_VBYTES=0 -ffp-contract=off -fopenmp && same "no vectors" "$scratch/one.weights" "$scratch/none.weights"
    else
        skip "vectors of other widths" "the processor has no AVX2 and FMA"
    fi
    if have clang; then
        trained clang 1 clang -O1 -march=native && same "clang" "$scratch/one.weights" "$scratch/clang.weights"
    else
        skip "clang" "it is not installed"
    fi
fi

# A sanitizer sees no access outside of any buffer, whatever the order of blocks.
if trained careful 3 $CC -O1 -march=native -ffp-contract=off -fopenmp -fsanitize=address,undefined -fno-sanitize-recover=all; then
    same "sanitizers" "$scratch/one.weights" "$scratch/careful.weights"
fi
summary winograd
