#!/bin/sh
# Convolutions of 3 x 3 places at stride 1, of 2 x 2, as those behind an upsampling become, and of 4 x 4 at stride 2,
# whose tiles are transformed (runtime/tile_winograd.h): which products of a net are such, the same weights to the byte
# for any number of threads and from builds with
# vectors of all widths and with none, whatever is checked, and a net of which none is such.
set -u
. tests/lib.sh

# Odd sides, channels that fill no vector, one convolution that is added to what goes around it, one of places that
# repeat.
cat >"$scratch/net.mdl" <<'EOF'
use nn;
dim B = 12, N = 17;
model net(x: [B, 3, N, N]) -> [B, 4] {
    a = x |> c1: conv2d(40, k = 3, pad = 1) |> relu;
    b = a |> c2: conv2d(40, k = 3, pad = 1) |> relu;
    h = b + (b |> c3: conv2d(40, k = 3, pad = 1)) |> relu |> c4: conv2d(36, k = 3) |> relu
          |> upsample(2) |> c5: conv2d(36, k = 3, pad = 1) |> relu |> c6: conv2d(40, k = 4, stride = 2, pad = 1) |> relu;
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
plans() { grep -E '^    (.*sizeof\((float|double)\), )?MD_TILE_[A-Z_]+( \| MD_TILE_[A-Z_]+)*,$' "$1" | grep -c "MD_TILE_$2\b"; }
"$MDLC" --no-main "$scratch/net.mdl" -o "$scratch/plain.c" 2>"$scratch/err" || fail "net" "$(head -n 1 "$scratch/err")"
all=$(plans "$scratch/plain.c" WINOGRAD) sums=$(plans "$scratch/plain.c" WINOGRAD_SUM)
strides=$(grep -A 5 '^    MD_TILE_SUM3.* 4, .* 4, ' "$scratch/plain.c" | grep -c 'MD_TILE_WINOGRAD\b')
two=$(grep -c 'NAME##_two' "$scratch/plain.c")
# Three such products and the one behind the upsampling forward, three by the input and as many by the weights; equal ones are one kernel.
[ "$all" -ge 6 ] && pass || fail "products" "$all plans with transformed tiles"
[ "$two" -ge 1 ] && pass || fail "products of 2 x 2 places" "no text for them"
[ "$strides" -ge 1 ] && pass || fail "windows at a stride" "$strides plans with transformed tiles"
[ "$sums" -ge 1 ] && pass || fail "sums over places" "$sums plans"
sed 's/k = 3, pad = 1/k = 3, pad = 2, dilation = 2/; s/c4: conv2d(36, k = 3)/c4: conv2d(36, k = 3, stride = 2)/; s/k = 4/k = 5/' "$scratch/net.mdl" >"$scratch/other.mdl"
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
    "$MDLC" $options "$net" -o "$scratch/$name.c" 2>"$scratch/err" &&
        $build "$scratch/$name.c" -lm -o "$scratch/$name" 2>"$scratch/err" &&
        OMP_NUM_THREADS=$threads "$scratch/$name" fit --seed 3 --save "$scratch/$name.weights" --log json \
            >"$scratch/$name.log" 2>"$scratch/err" ||
        { fail "$name" "$(head -n 1 "$scratch/err")"; return 1; }
}
net=$scratch/net.mdl
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
    # Where each operation is a kernel of its own, sums of what comes behind the upsampling are other ones.
    net=$scratch/same.mdl
    sed '/upsample/d; s/c4: conv2d(36, k = 3) |> relu$/&;/' "$scratch/net.mdl" >"$net"
    trained three 1 $native && trained nan 2 $native -- --checks=nan && same "with checks" "$scratch/three.weights" "$scratch/nan.weights"
    net=$scratch/net.mdl
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

# Windows that run forwards and backwards, by weights of three layouts, in reverse: places of each against sums of
# doubles.
: "${PYTHON:=python3}"
: >"$scratch/turned.mdl"
entry() { # NAME WINDOW WEIGHT SHAPE TAPS
    cat >>"$scratch/turned.mdl" <<EOF
entry $1(x: [24, 16, 15, 32], w: [$4]) {
    y[b, i < 14, j < 13, o] = sum[c, p < $5, q < $5] x[b, $2, c] * w[$3];
    return y;
}
EOF
}
entry e0 "i + p, j + q" "o, c, p, q" "40, 32, 3, 3" 3
entry e1 "i + 2 - p, j + 2 - q" "o, c, p, q" "40, 32, 3, 3" 3
entry e2 "i + 2 - p, j + q" "c, o, 2 - p, q" "32, 40, 3, 3" 3
entry e3 "i + 2 - p, j + 2 - q" "c, o, p, q" "32, 40, 3, 3" 3
entry e4 "i + p, j + 2 - q" "p, q, c, o" "3, 3, 32, 40" 3
entry e5 "i + p, j + q" "o, c, p, q" "40, 32, 2, 2" 2
entry e6 "i + 1 - p, j + q" "p, q, c, o" "2, 2, 32, 40" 2
if ! have "$PYTHON"; then
    skip "windows and weights in reverse" "no $PYTHON"
elif "$MDLC" "$scratch/turned.mdl" -o "$scratch/turned.c" && emitted "$scratch/turned.c" "$scratch/turned" -O1; then
    all=$(plans "$scratch/turned.c" WINOGRAD)
    [ "$all" = 7 ] && pass || fail "windows and weights in reverse" "$all plans with transformed tiles"
    cat >"$scratch/turned.py" <<'EOF'
import array, os, random, struct, subprocess, sys
sys.path.insert(0, os.path.join("tests", "suites"))
import npy
program, folder = sys.argv[1:]
r = random.Random(7)

x = array.array('f', [r.uniform(-1, 1) for _ in range(24 * 16 * 15 * 32)])
w = array.array('f', [r.uniform(-1, 1) for _ in range(40 * 32 * 9)])
npy.write(folder + '/x.npy', (24, 16, 15, 32), x, 'f', '<f4')
tap = {'e0': lambda p, q: (p, q), 'e1': lambda p, q: (2 - p, 2 - q), 'e2': lambda p, q: (2 - p, q),
       'e3': lambda p, q: (2 - p, 2 - q), 'e4': lambda p, q: (p, 2 - q), 'e5': lambda p, q: (p, q), 'e6': lambda p, q: (1 - p, q)}
weight = {'e0': lambda o, c, p, q: ((o * 32 + c) * 3 + p) * 3 + q, 'e2': lambda o, c, p, q: ((c * 40 + o) * 3 + 2 - p) * 3 + q,
          'e3': lambda o, c, p, q: ((c * 40 + o) * 3 + p) * 3 + q, 'e4': lambda o, c, p, q: ((p * 3 + q) * 32 + c) * 40 + o,
          'e5': lambda o, c, p, q: ((o * 32 + c) * 2 + p) * 2 + q, 'e6': lambda o, c, p, q: ((p * 2 + q) * 32 + c) * 40 + o}
weight['e1'] = weight['e0']
shapes = {'e0': (40, 32, 3, 3), 'e1': (40, 32, 3, 3), 'e2': (32, 40, 3, 3), 'e3': (32, 40, 3, 3), 'e4': (3, 3, 32, 40),
          'e5': (40, 32, 2, 2), 'e6': (2, 2, 32, 40)}
for name in sorted(tap):
    taps = 3 if name < 'e5' else 2
    npy.write(folder + '/w.npy', shapes[name], w[:40 * 32 * taps * taps], 'f', '<f4')
    subprocess.run([program, name, '--in', 'x=' + folder + '/x.npy', '--in', 'w=' + folder + '/w.npy', '--out', folder + '/y.npy'],
                   check=True, stdout=subprocess.DEVNULL)
    data = open(folder + '/y.npy', 'rb').read()
    y = array.array('f', data[10 + struct.unpack('<H', data[8:10])[0]:])
    worst = 0
    for _ in range(300):
        b, i, j, o = r.randrange(24), r.randrange(14), r.randrange(13), r.randrange(40)
        want = 0.0
        for p in range(taps):
            for q in range(taps):
                row, column = tap[name](p, q)
                for c in range(32):
                    want += x[((b * 16 + i + row) * 15 + j + column) * 32 + c] * w[weight[name](o, c, p, q)]
        worst = max(worst, abs(want - y[((b * 14 + i) * 13 + j) * 40 + o]))
    print(name, worst)
    assert worst < 2e-5, (name, worst)
EOF
    check "windows and weights in reverse" "$PYTHON" "$scratch/turned.py" "$scratch/turned" "$scratch"
else
    fail "windows and weights in reverse" "does not build"
fi

# A sanitizer sees no access outside of any buffer, whatever the order of blocks.
if trained careful 3 $CC -O0 -march=native -ffp-contract=off -fopenmp -fsanitize=address,undefined -fno-sanitize-recover=all; then
    same "sanitizers" "$scratch/one.weights" "$scratch/careful.weights"
fi
summary winograd
