#!/bin/sh
# Blocks written out one behind the other take what the same blocks in a `repeat` take: what a GELU or a
# normalisation has made is made again for the derivative (passes/again.c), to the byte, also beside a build in
# which every value has a place of its own and nothing is made again.
set -u
. tests/lib.sh

flags="-O1 -march=native -ffp-contract=off -fopenmp"
cat >"$scratch/front.mdl" <<'EOF'
use nn;
dim B = 256, C = 1024, L = 4;
layer block(x: [B, C]) -> [B, C] { return x + (ln: layernorm(x) |> up: linear(4 * C) |> gelu |> down: linear(C)); }
model net(x: [B, C]) -> [B, 4] {
EOF
cat >"$scratch/back.mdl" <<'EOF'
    return last: linear(y, 4);
}
dataset drawn { file f = synthetic(1024, seed = 1); x: f32[C] = uniform(-1, 1); y: f32[4] = uniform(0, 1); }
train fit of net on drawn[B] {
    loss mean((net(x) - y)^2);
    optimizer adamw(lr = 1e-3);
    steps 3;
}
EOF
{ cat "$scratch/front.mdl"; echo 'repeat L carry y = x { y <- block(y); }'; cat "$scratch/back.mdl"; } >"$scratch/turns.mdl"
{
    cat "$scratch/front.mdl"
    echo 'y1 = b1: block(x); y2 = b2: block(y1); y3 = b3: block(y2);'
    echo 'y = b4: block(y3);'
    cat "$scratch/back.mdl"
} >"$scratch/list.mdl"

total() { # FILE
    "$MDLC" report --format=json "$1" >"$scratch/report" 2>"$scratch/err" || fail "$1" "$(head -n 1 "$scratch/err")"
    sed -n 's/.*"total":\([0-9]*\).*/\1/p' "$scratch/report" | head -n 1
}
turns=$(total "$scratch/turns.mdl") list=$(total "$scratch/list.mdl")
[ "$((list * 100))" -le "$((turns * 102))" ] && pass || fail "written out" "$list bytes, in a repeat $turns"

# What the last one has made is at hand when its derivative begins, and made again all the same.
made=$("$MDLC" --dump=again "$scratch/list.mdl" | grep -c 'core.again(')
[ "$made" -ge 4 ] && pass || fail "made again" "$made values"
sed 's/C = 1024/C = 64/' "$scratch/list.mdl" >"$scratch/narrow.mdl"
made=$("$MDLC" --dump=again "$scratch/narrow.mdl" | grep -c 'core.again(')
[ "$made" = 0 ] && pass || fail "small values" "$made are made again"

trained() { # NAME THREADS [OPTION...]
    name=$1 threads=$2
    shift 2
    # shellcheck disable=SC2086
    "$MDLC" "$@" "$scratch/list.mdl" -o "$scratch/$name.c" && $CC $flags "$scratch/$name.c" -lm -o "$scratch/$name" &&
        OMP_NUM_THREADS=$threads "$scratch/$name" fit --save "$scratch/$name.weights" --log json >"$scratch/$name.log" 2>"$scratch/err" ||
        { fail "$name" "$(head -n 1 "$scratch/err")"; return; }
    line=$(grep '"event":"end"' "$scratch/$name.log")
    [ "$(number "$line" resident_growth_pages)" = 0 ] && pass || fail "$name" "pages were added: $line"
}
trained one 1
trained three 3
trained apart 2 --checks=nan
same "threads" "$scratch/one.weights" "$scratch/three.weights"
same "every value at a place of its own" "$scratch/one.weights" "$scratch/apart.weights"
summary written_out
