#!/bin/sh
# Emitted C under strict flags: gcc and clang, with and without OpenMP, with and without main, and
# as C++17; no allocator in the model part, no variable-length arrays; the same bytes each time. What
# optimisation alone warns of is asked of some samples; LONG=1 asks it of all.
set -u
. tests/lib.sh
: "${LONG:=0}"

names=
for file in samples/*.mdl tests/parity/functions.mdl; do
    name=$(basename "$file" .mdl)
    if "$MDLC" "$file" -o "$scratch/$name.c" && "$MDLC" --no-main "$file" -o "$scratch/${name}_model.c" &&
        "$MDLC" "$file" -o "$scratch/$name.c" -H "$scratch/$name.h"; then
        pass
        names="$names $name"
    else
        fail "$file" "does not compile"
    fi
done

# Layers with the names that the parts of another layer's kernel get.
cat >"$scratch/parts.mdl" <<'END'
use nn;
dim B = 64;
model net(x: [B, 64]) -> [B, 64] {
    return x |> fc: linear(out = 256) |> gelu |> fc_part: linear(out = 256) |> gelu |> fc_loop: linear(out = 256) |> gelu
             |> fc_args: linear(out = 256) |> gelu |> fc_epilogue: linear(out = 256) |> gelu |> fc_tile: linear(out = 64);
}
train fit(x: [B, 64]) of net { loss mean((net(x) - x)^2); optimizer adamw(lr = 1e-3); steps 3; }
END
"$MDLC" "$scratch/parts.mdl" -o "$scratch/parts.c" || fail "names of parts" "does not compile"
check "names of parts" "$CC" $STRICT_FLAGS -fsyntax-only "$scratch/parts.c"
# Many loops go to threads by one function, whose parameters have names too.
cat >"$scratch/parts.mdl" <<'END'
use nn;
dim B = 4096;
model net(x: [B, 256]) -> [B, 256] {
    return x |> n1: layernorm |> softmax |> f1: linear(out = 256) |> n2: layernorm |> softmax |> f2: linear(out = 256)
             |> n3: layernorm |> softmax |> f3: linear(out = 256);
}
train fit(x: [B, 256]) of net { loss mean((net(x) - x)^2); optimizer adamw(lr = 1e-3); steps 3; }
END
"$MDLC" "$scratch/parts.mdl" -o "$scratch/parts.c" || fail "loops of parts" "does not compile"
grep -q '^MD_.*md_team_run(' "$scratch/parts.c" && pass || fail "loops of parts" "no loops go to threads"
check "loops of parts" "$CC" $STRICT_FLAGS -fsyntax-only "$scratch/parts.c"

# A product of 16 bits is the only one, and hands its sums to an epilogue of its own.
echo 'entry f(x: bf16[256, 512], w: bf16[512, 512]) { return bf16(matmul(x, w)); }' >"$scratch/lone.mdl"
"$MDLC" --no-main --runtime=whole "$scratch/lone.mdl" -o "$scratch/lone.c" || fail "only 16 bits" "does not compile"
check "only 16 bits" "$CC" $STRICT_FLAGS -fsyntax-only "$scratch/lone.c"

# Axes of one element: no index of a loop on threads and no value is named that nobody reads.
cat >"$scratch/ones.mdl" <<'END'
entry place(x: [400, 300, 1]) {
    m[k] = max[i, j] x[i, j, k];
    return argmin(m);
}
entry picked(x: [2, 1, 524288], i: u8[2, 3] in 0..1, u: [2, 3, 524288]) {
    y[b, k, c] = x[b, i[b, k], c];
    return vjp(y, x, u);
}
END
"$MDLC" --threads=8 --no-main "$scratch/ones.mdl" -o "$scratch/ones.c" || fail "axes of one element" "does not compile"
check "axes of one element" "$CC" $STRICT_FLAGS -fsyntax-only "$scratch/ones.c"

# Models with the names that locals of a kernel get.
for name in parts sum row; do
    cp tests/suites/wide.mdl "$scratch/$name.mdl"
    "$MDLC" "$scratch/$name.mdl" -o "$scratch/$name.c" || fail "a model called $name" "does not compile"
    check "a model called $name" "$CC" $STRICT_FLAGS -fsyntax-only "$scratch/$name.c"
done

# What a program can never need is not printed, and what it needs is.
needs() { # FILE FUNCTIONS: of those that some models alone have a use for
    "$MDLC" "$1" -o "$scratch/needs.c" || fail "$1" "does not compile"
    found=
    for name in save_split slice_turned load_copies data_check_windows data_made data_constants short_ring \
        setup_scalars stage_scalar setup_parts stage_refused; do
        grep -q "^MD_.*md_$name(" "$scratch/needs.c" && found="$found $name"
    done
    [ "$found" = "${2:+ $2}" ] && pass || fail "$1: parts of the runtime" "$found, not $2"
    "$MDLC" --no-main "$1" -o "$scratch/needs.c" || fail "$1" "does not compile"
    check "$1 without main" "$CC" $STRICT_FLAGS -fsyntax-only "$scratch/needs.c"
    ! grep -Eq 'md_load_say|md_slice_wanted' "$scratch/needs.c" && pass || fail "$1 without main" "has messages of a load"
}
needs samples/digits.mdl ""
cat >"$scratch/alone.mdl" <<'END'
use nn;
dim B = 32;
model net(x: [B, 32]) -> [B, 32] { return x |> fc: linear(out = 32); }
entry run(x: [B, 32]) { return y = net(x); }
END
"$MDLC" --no-main "$scratch/alone.mdl" -o "$scratch/needs.c" || fail "a product for one thread" "does not compile"
# With small odd sizes it is one for several threads.
grep -q '^MD_.*md_tile_run' "$scratch/needs.c" && { ! usual_sizes || ! grep -q md_team "$scratch/needs.c"; } && pass ||
    fail "a product for one thread" "has no product, or what teams of threads need"
check "a product for one thread" "$CC" $STRICT_FLAGS -fsyntax-only "$scratch/needs.c"
needs samples/chars.mdl "data_check_windows stage_scalar stage_refused"
needs samples/pytorch/gpt2.mdl "save_split slice_turned setup_parts"
needs samples/dqn.mdl "load_copies short_ring stage_scalar setup_parts stage_refused"
needs tests/suites/data.mdl "data_check_windows data_made data_constants setup_parts"
needs tests/suites/rings.mdl "data_made short_ring setup_scalars setup_parts stage_refused"

# Two models in one file: an error that says the cure, which is one.
for name in one two; do
    "$MDLC" --no-main --prefix=$name tests/suites/wide.mdl -o "$scratch/$name.c" || fail "two models" "do not compile"
done
cat "$scratch/one.c" "$scratch/two.c" >"$scratch/both.c"
$CC -fsyntax-only "$scratch/both.c" 2>"$scratch/err" && fail "two models" "are no error" || pass
grep -q 'error.*several models in one file.*--runtime=whole' "$scratch/err" && pass || fail "two models" "$(head -n 3 "$scratch/err")"
for name in one two; do
    "$MDLC" --no-main --runtime=whole --prefix=$name tests/suites/wide.mdl -o "$scratch/$name.c" || fail "two models" "do not compile"
done
cat "$scratch/one.c" "$scratch/two.c" >"$scratch/both.c"
$CC -fsyntax-only "$scratch/both.c" 2>"$scratch/err" && fail "two models, whole runtime" "are no error" || pass
grep -q 'error.*several models in one file.*define MD_TILE_EVERY' "$scratch/err" && pass || fail "two models, whole runtime" "$(head -n 3 "$scratch/err")"
check "two models, all register tiles" "$CC" $STRICT_FLAGS -DMD_TILE_EVERY -fsyntax-only "$scratch/both.c"
# Each type of floats has them all, whichever model comes first: a product of the last one of three.
echo 'entry e(x: [64, 64], w: [64, 64]) { return matmul(x, w); }' >"$scratch/ma.mdl"
echo 'entry e(x: [8, 64], w: [64, 16]) { return matmul(x, w); }' >"$scratch/mb.mdl"
echo 'entry e(x: [67, 65], w: [65, 35]) { return matmul(x, w); }' >"$scratch/mc.mdl"
"$MDLC" --no-main --runtime=whole --precision=f64 "$scratch/ma.mdl" -o "$scratch/ma.c" &&
    "$MDLC" --no-main --runtime=whole "$scratch/mb.mdl" -o "$scratch/mb.c" && "$MDLC" --no-main --runtime=whole "$scratch/mc.mdl" -o "$scratch/mc.c" ||
    fail "three models" "do not compile"
cat "$scratch/ma.c" "$scratch/mb.c" "$scratch/mc.c" - >"$scratch/three.c" <<'END'
#include <stdio.h>
static _Alignas(64) unsigned char memory[4][MC_ARENA_BYTES + MC_IO_BYTES + MC_PARAMS_BYTES + MC_STATE_BYTES + 64];
int main(void) {
    static float x[67 * 65], w[65 * 35];
    for (int i = 0; i < 67 * 65; i++) x[i] = (float)(i % 7);
    for (int i = 0; i < 65 * 35; i++) w[i] = (float)(i % 5);
    mc m;
    memset(&m, 0, sizeof m);
    mc_memory given = {memory[0], memory[1], memory[2], memory[3], MC_PARAMS_BYTES, MC_STATE_BYTES, MC_IO_BYTES, MC_ARENA_BYTES};
    if (mc_bind(&m, &given) || mc_init(&m, 0)) return 1;
    const mc_e_in in = {x, w};
    mc_e_out out;
    if (mc_e(&m, &in, &out)) return 2;
    for (int i = 0; i < 67 * 35; i++) {
        float sum = 0;
        for (int k = 0; k < 65; k++) sum += x[i / 35 * 65 + k] * w[k * 35 + i % 35];
        if (sum != out.out[i]) return 3;
    }
    return 0;
}
END
check "three models, all register tiles" "$CC" -w -O1 -march=native -DMD_TILE_EVERY "$scratch/three.c" -lm -o "$scratch/three"
check "three models: a product of the last" "$scratch/three"

for name in $names; do
    if [ "$name" = functions ]; then # a hundred small functions: their text counts, not how it is built
        for compiler in gcc clang; do
            have $compiler || { skip "$name with $compiler" "not installed"; continue; }
            check "$name with $compiler" $compiler $STRICT_FLAGS -Wvla -fsyntax-only "$scratch/${name}_model.c"
        done
        continue
    fi
    for compiler in gcc clang; do
        have $compiler || { skip "$name with $compiler" "not installed"; continue; }
        # Threads in the program under one compiler, in the model alone under the other.
        for openmp in "" -fopenmp; do
            # A compiler may come without its OpenMP runtime; its headers are what a compile needs.
            [ -z "$openmp" ] || printf '#include <omp.h>\n' | $compiler $openmp -fsyntax-only -x c - 2>/dev/null ||
                { skip "$name with $compiler $openmp" "no omp.h"; continue; }
            case $compiler$openmp in
            gcc-fopenmp | clang) part=$name ;;
            *) part=${name}_model ;;
            esac
            check "$part with $compiler $openmp" $compiler $STRICT_FLAGS -Wvla $openmp -fsyntax-only "$scratch/$part.c"
        done
    done
    for compiler in g++ clang++; do
        have $compiler || { skip "$name with $compiler" "not installed"; continue; }
        check "$name as C++17 with $compiler" $compiler -x c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only "$scratch/$name.c"
    done
    # The header alone, and its text beside the model's.
    printf '#include "%s.h"\n' "$name" >"$scratch/use.c"
    check "$name.h alone" "$CC" $STRICT_FLAGS -I"$scratch" -c "$scratch/use.c" -o "$scratch/x.o"
    source=samples/$name.mdl
    [ -f "$source" ] || source=tests/parity/$name.mdl
    level=
    case $LONG$name in # what several suites run is built once
    ?digits | ?diabetes | ?chars | ?residual | ?tune) check "$name as its header comment says" built "$source" && level=-O0 ;;
    0dqn) level=-O1 ;;
    esac
    check "$name without main" emitted "$scratch/${name}_model.c" "$scratch/${name}_model.o" -c $level ${STRICT_FLAGS#-std=c11}
    symbols "$name" "$scratch/${name}_model.o"
    # The same bytes from another folder and by another path.
    root=$(pwd)
    case $MDLC in /*) compiler=$MDLC ;; *) compiler=$root/$MDLC ;; esac
    mkdir "$scratch/$name.other"
    (cd "$scratch/$name.other" && "$compiler" "$root/$source" -o "$name.c" -H "$name.h") # a header asks for all of the interface
    same "$name: same bytes from another folder" "$scratch/$name.c" "$scratch/$name.other/$name.c"
    grep -qF "$root" "$scratch/$name.c" && fail "$name: holds a path of this machine" || pass
    case $LONG$name in
    0residual | 0tune | 0dqn | 0diabetes)
        skip "$name with clang -O1" "LONG=1 (make accept) has it"
        continue
        ;;
    esac
    if have clang; then
        check "$name with clang -O1" clang $STRICT_FLAGS -O1 -c "$scratch/${name}_model.c" -o "$scratch/x.o"
    fi
done
summary strict
