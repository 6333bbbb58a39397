#!/bin/sh
# --split: a program in several C files. It computes the same bytes as in one, its files compile without
# a warning and link beside another model; every kernel stands in one of them, the program's runtime in
# the last; a -D writes again those files alone that it changes, and what it refuses it says.
set -u
. tests/lib.sh

# in_one NAME SOURCE OPTION...: the same in one file, quickly built as $scratch/NAME.one
in_one() {
    one_name=$1 one_source=$2
    shift 2
    "$MDLC" --prefix="$one_name" "$@" "$one_source" -o "$scratch/$one_name.one.c" &&
        quickly "$scratch/$one_name.one.c" "$scratch/$one_name.one"
}
# in_files NAME N SOURCE OPTION...: in N files more, each without a warning.
in_files() {
    files_name=$1 files_count=$2 files_source=$3
    shift 3
    mkdir -p "$scratch/$files_name" && "$MDLC" --prefix="$files_name" --split="$files_count" "$@" "$files_source" -o "$scratch/$files_name/$files_name.c" || return
    for file in "$scratch/$files_name/$files_name"*.c; do
        # shellcheck disable=SC2086
        $QUICK $QUICK_FLAGS -c $STRICT_FLAGS -Wmissing-prototypes "$file" -o "${file%.c}.o" || return
    done
    $QUICK -fopenmp "$scratch/$files_name"/*.o -lm -o "$scratch/$files_name/$files_name"
}
# kernels FILE...: the functions with a comment of their place in the model, of which each is one
kernels() { cat "$@" | grep -c '^/\* [a-z_0-9]*\.mdl:[0-9]'; }

# ---- the same program ----
# twins NAME N SOURCE RUN OPTION...: weights of a run of one file and of several, to the byte.
twins() {
    twins_name=$1 twins_count=$2 twins_source=$3 twins_run=$4
    shift 4
    check "$twins_name: in one file" in_one "$twins_name" "$twins_source" "$@" || return
    check "$twins_name: in several files" in_files "$twins_name" "$twins_count" "$twins_source" "$@" || return
    for threads in 1 2; do
        for kind in "$twins_name.one" "$twins_name/$twins_name"; do
            # shellcheck disable=SC2086
            "$scratch/$kind" $twins_run --threads $threads --save "$scratch/$kind.$threads" >"$scratch/$kind.said" 2>&1 || fail "$twins_name: a run" "$(cat "$scratch/$kind.said")"
        done
        same "$twins_name: $threads threads" "$scratch/$twins_name.one.$threads" "$scratch/$twins_name/$twins_name.$threads"
    done
    [ "$(kernels "$scratch/$twins_name.one.c")" -eq "$(kernels "$scratch/$twins_name"/*.c)" ] && pass || fail "$twins_name: kernels of several files"
}
sed 's/synthetic(512_000/synthetic(1_000/' samples/cnf.mdl >"$scratch/flow.mdl"
twins flow 4 "$scratch/flow.mdl" "--steps 1 --seed 3"
twins ragged 4 "$scratch/flow.mdl" "--steps 1 --seed 3" -D B=331 -D WIDTH=40
twins aside 4 "$scratch/flow.mdl" "--steps 1 --seed 3" -D PARTS=2
twins adaptive 3 samples/ode_fit.mdl "--steps 3 --seed 1"
twins profiled 2 samples/digits.mdl "--steps 5 --seed 1" --profile
twins halves 3 samples/digits.mdl "--steps 30 --seed 1" '--precision=bf16, always' --checks=canary,nan
sed 's/dim B = 32/dim B = 9/; s/file img = "images.npy"/file img = synthetic(18, seed = 1)/; /file lab/d; s/= img;/= normal(0, 1);/; s/= lab;/= u8(randint(0, 10));/' tests/suites/resnet20.mdl >"$scratch/residual.mdl"
twins residual 6 "$scratch/residual.mdl" "--steps 1 --seed 1"
twins alone 1 samples/digits.mdl "--steps 5 --seed 1" --precision=f64 --budget=4194304

# The first of four files and more has the calls of long lists, and no kernel; with checks or a profile
# they stand in that of -o. A number of theirs that is more than one digit says which step it is.
calls() { sed -n '/^\/\* Steps of /,/^}/p' "$@"; }
for name in flow aside residual; do
    file=$scratch/$name/$name.1.c
    [ "$(kernels "$file")" -eq 0 ] && [ "$(calls "$file" | wc -l)" -gt 500 ] && pass || fail "$name: calls" "$(kernels "$file"), $(calls "$file" | wc -l)"
    calls "$file" | sed 's|/\*.*\*/||; s/UINT64_C([0-9]*)//g; s/MD_TRACE[A-Z_]*(m->trace, [0-9]*[,)]//g; s/[a-zA-Z0-9_]*[a-zA-Z_][a-zA-Z0-9_]*//g; s/\[[0-9]*\]//g' | grep '[0-9][0-9]' >"$scratch/outside"
    [ ! -s "$scratch/outside" ] && pass || fail "$name: numbers of calls" "$(head -3 "$scratch/outside")"
    [ "$(cat "$scratch/$name"/*.c | grep -c '_calls[0-9]*_(&frame_')" -eq "$(calls "$file" | grep -c '^MD_SHARED void')" ] && pass || fail "$name: who calls them"
done
[ "$(cat "$scratch"/profiled/*.c "$scratch"/halves/*.c | grep -c '_calls[0-9]*_(')" -eq 0 ] && pass || fail "calls that are checked or timed"

# Of a net of many kernels each file but the last has its part: none is empty, none has more than twice
# its share. The last one has the runtime of the program, and nothing that is of the model.
for file in "$scratch"/residual/residual.[2-5].c; do
    here=$(kernels "$file") all=$(kernels "$scratch"/residual/residual.[1-6].c)
    [ "$here" -gt 0 ] && [ $((here * 5)) -le $((all * 2)) ] && pass || fail "kernels of $(basename "$file")" "$here of $all"
done
sed '/^#define md_[a-z0-9_]* residual_md_/d; 1s/residual//' "$scratch/residual/residual.6.c" | grep residual >"$scratch/outside"
[ ! -s "$scratch/outside" ] && grep -q '^MD_SHARED_COLD int md_main(' "$scratch/residual/residual.6.c" && pass || fail "the runtime" "$(head -3 "$scratch/outside")"
# Products stand apart from loops: a C compiler needs other runtime for them.
grep -l '^MD_TILE_' "$scratch"/flow/flow.*.c | sed 's|.*/||' | tr '\n' ' ' | grep -qx 'flow\.3\.c ' && pass || fail "files of products"
# What the runtime has once for all is defined in one file, by a name that begins with the prefix.
for name in md_tile_run md_team_run md_tile_turn_f32 md_main; do
    [ "$(nm "$scratch"/residual/*.o | grep -c " [Tt] residual_$name\$")" -eq 1 ] && pass || fail "$name is defined once"
done
# More files than kernels: those that get none are files of C all the same, in C++ too.
check "few kernels: in several files" in_files few 9 tests/suites/linear.mdl
for file in "$scratch"/few/few*.c "$scratch"/profiled/profiled*.c; do
    # shellcheck disable=SC2086
    check "$(basename "$file") as C++" g++ -std=c++17 -O0 -fsyntax-only -x c++ -Wall -Wextra "$file"
done

# ---- beside another model ----
# Both have kernels and functions of the runtime of the same kinds; a third file calls the two.
for name in left right; do
    mkdir -p "$scratch/$name"
    check "$name: a library" "$MDLC" --no-main --prefix=$name --split=2 samples/digits.mdl -o "$scratch/$name/$name.c" -H "$scratch/$name/$name.h"
done
cat >"$scratch/both.c" <<'END'
#include "left/left.h"
#include "right/right.h"
int main(void) { return left_strerror(0)[0] != right_strerror(0)[0]; }
END
# shellcheck disable=SC2086
check "two models in one program" $QUICK $QUICK_FLAGS -I"$scratch" "$scratch/both.c" "$scratch"/left/*.c "$scratch"/right/*.c -lm -o "$scratch/both"
check "both of them run" "$scratch/both"
nm -g "$scratch"/residual/*.o | awk '$2 == "T" { print $3 }' | grep -v '^residual_\|^main$' >"$scratch/outside"
[ ! -s "$scratch/outside" ] && pass || fail "names without the prefix" "$(head -3 "$scratch/outside")"

# ---- what is written again ----
# again NAME FILES OPTION...: exactly those files are newer than before
again() {
    again_name=$1 again_files=$2
    shift 2
    "$MDLC" --prefix=flow --split=4 "$scratch/flow.mdl" -o "$scratch/flow/flow.c" || fail "again: $again_name"
    touch -d '2020-01-01' "$scratch"/flow/*.c
    "$MDLC" --prefix=flow --split=4 "$@" "$scratch/flow.mdl" -o "$scratch/flow/flow.c" || fail "again: $again_name"
    again_found=$(find "$scratch/flow" -name '*.c' -newermt '2021-01-01' | sed 's|.*/||' | LC_ALL=C sort | tr '\n' ' ')
    echo "$again_found" | grep -qx "$again_files" && pass || fail "again: $again_name" "$again_found"
}
again "without a change" 'flow\.c '
again "what only the rows are made with" 'flow\.c ' -D spread=0.3
again "a number of one kernel" 'flow\.c ' -D radius=2
again "a number of all kernels" 'flow\.c ' -D until=0.6
again "the steps of the solver" 'flow\.c ' -D STEPS=12
again "sizes of all kernels" 'flow\.1\.c flow\.2\.c flow\.3\.c flow\.c ' -D WIDTH=48
again "the batch" 'flow\.c ' -D B=400
again "the batch, on threads" 'flow\.c ' -D B=300
again "no columns left over" 'flow\.c ' -D B=256
again "calls in another order" 'flow\.1\.c flow\.c ' -D B=500
again "the longest sum that is one block" 'flow\.1\.c flow\.c ' -D B=768
again "more of the same blocks" 'flow\.2\.c flow\.c ' -D BLOCKS=3
# Where kernels have other numbers each stands where it stood.
names() { for file in "$scratch"/flow/flow.[1-4].c; do sed -n 's/^\(static\|MD_[A-Z_]*\) .*\(flow_[a-z_0-9]*\)(.*/\2/p' "$file"; echo; done; }
names >"$scratch/names"
"$MDLC" --prefix=flow --split=4 "$scratch/flow.mdl" -o "$scratch/flow/flow.c"
names >"$scratch/names2"
[ "$(grep -c . "$scratch/names")" -gt 100 ] && same "kernels of a file with other numbers" "$scratch/names2" "$scratch/names" || fail "names of kernels"
grep -q ' flow\.c flow\.1\.c flow\.2\.c flow\.3\.c flow\.4\.c -lm -o flow$' "$scratch/flow/flow.c" && grep -q '^ \* Options: .* --split=4$' "$scratch/flow/flow.c" && pass ||
    fail "how the files are built"

# Of a kernel's numbers the turns of its outermost loop and its constants stand elsewhere, no
# exponent or stride.
cat >"$scratch/power.mdl" <<'END'
dim B = 100, N = 3;
const slope = 3.5;
model power(x: [B, N]) -> [B, N] {
    param w: [N] = 1;
    y[i, j] = w[j] * x[i, j] + pow(abs(x[i, j]), 2.5) * slope;
    return y;
}
entry go(x: f32[B, N]) { return y = power(x); }
END
for option in '' '-D slope=0.25' '-D B=120' '-D N=4'; do
    # shellcheck disable=SC2086
    "$MDLC" --no-main --split=2 $option "$scratch/power.mdl" -o "$scratch/power.c" && mv "$scratch/power.1.c" "$scratch/power$(echo "$option" | tr -d ' ')" || fail "power: $option"
done
same "numbers apart: a constant" "$scratch/power-Dslope=0.25" "$scratch/power"
same "numbers apart: rows" "$scratch/power-DB=120" "$scratch/power"
cmp -s "$scratch/power-DN=4" "$scratch/power" && fail "numbers apart: a stride" || pass
grep -q 'i < power_64i_[a-z_]*\[0\]; i++' "$scratch/power" && grep -q 'md_powf(fabsf([a-z_]*), 2\.5f), power_32f_[a-z_]*\[0\]\|md_powf(fabsf([a-z_]*), 2\.5f) \* power_32f_[a-z_]*\[0\]' "$scratch/power" && pass ||
    fail "numbers apart: the text" "$(grep -A12 '^/\* power.mdl' "$scratch/power")"

# Of a product's plan what follows from its rows is read from where it stands; so are constants of
# what it is followed by. Strides, rows of register tiles and what the sum is cut into are known.
cat >"$scratch/product.mdl" <<'END'
dim B = 200, N = 48;
const slope = 3.5;
model product(x: [B, 64]) -> [B, N] {
    param w: [64, N] ~ normal(0, 1);
    y[i, j] = sum[k] x[i, k] * w[k, j];
    z[i, j] = y[i, j] * slope;
    return z;
}
entry go(x: f32[B, 64]) { return y = product(x); }
END
for option in '' '-D slope=0.25' '-D B=300' '-D N=96'; do
    # shellcheck disable=SC2086
    "$MDLC" --no-main --split=2 $option "$scratch/product.mdl" -o "$scratch/product.c" && cat "$scratch/product.1.c" "$scratch/product.2.c" >"$scratch/product$(echo "$option" | tr -d ' ')" || fail "product: $option"
    cp "$scratch/product.c" "$scratch/product$(echo "$option" | tr -d ' ').numbers"
done
same "numbers apart: a constant behind a product" "$scratch/product-Dslope=0.25" "$scratch/product"
same "numbers apart: rows of a product" "$scratch/product-DB=300" "$scratch/product"
cmp -s "$scratch/product-DN=96" "$scratch/product" && fail "numbers apart: columns of a product" || pass
grep -q 'MD_TILE_ON(8, 6, 14, 6), MD_TILE_ON(7, 5, 13, 5), 1, /\* A \*/ 0, /\* C \*/ 0, MD_TILE_READ, /\* A \*/ 64, /\* C \*/ 48),$' "$scratch/product" &&
    grep -q '^}, &product_[a-z_]*_tile};$' "$scratch/product" && grep -q '\* product_32f_[a-z_]*\[0\];$' "$scratch/product" && pass ||
    fail "numbers apart: a product" "$(grep -A12 '^/\* product.mdl' "$scratch/product")"
grep -q '^    MD_TILE_ROWS(200, /\* A \*/ 64, /\* C \*/ 48),' "$scratch/product.numbers" && grep -q '^    MD_TILE_ROWS(300, ' "$scratch/product-DB=300.numbers" && pass ||
    fail "numbers apart: a plan" "$(grep -A6 '^MD_SHARED const md_tile' "$scratch/product.numbers")"
# To a C compiler they are constants: it calls no register tile.
# shellcheck disable=SC2046
for file in "$scratch/flow/flow.3.c" "$scratch/ragged/ragged.3.c" "$scratch/residual/residual.5.c"; do
    check "$(basename "$file"): built" $CC $("$MDLC" flags) -c "$file" -o "$scratch/tiles.o"
    [ "$(nm "$scratch/tiles.o" | grep -c 'md_tile_body')" -eq 0 ] && grep -q 'MD_TILE_READ' "$file" && pass || fail "$(basename "$file"): register tiles" "$(nm "$scratch/tiles.o" | grep md_tile_body)"
done

# The makefile of docs/building.md: what a -D changes is compiled again and nothing else.
awk '/^## / { here = /Several C files/ } here && /^```/ { code = !code; next } here && code' docs/building.md >"$scratch/flow/Makefile"
mdlc=$(cd "$(dirname "$MDLC")" && pwd)/$(basename "$MDLC")
sed -i "s|\tmdlc |\t'$mdlc' |; s|net|flow|g" "$scratch/flow/Makefile"
cp "$scratch/flow.mdl" "$scratch/flow"
makes() { (unset MAKEFLAGS MFLAGS MAKELEVEL; cd "$scratch/flow" && make -j2 CC="$QUICK" CFLAGS="$QUICK_FLAGS" "$@" >make.log 2>&1); }
rm -f "$scratch"/flow/*.o "$scratch"/flow/flow.*c
check "the makefile" makes flow
makes flow && ! grep -q -e '-c flow' "$scratch/flow/make.log" && pass || fail "the makefile: nothing to do" "$(cat "$scratch/flow/make.log")"
sleep 1
makes -B flow.c DEFINES='-D spread=0.3' && makes flow && [ "$(grep -o '[-]c [a-z0-9.]*' "$scratch/flow/make.log" | tr '\n' ' ')" = "-c flow.c " ] && pass ||
    fail "the makefile: a number of the data" "$(cat "$scratch/flow/make.log")"

# ---- what does not go ----
refuses() { # NAME PATTERN WORD...
    refuses_name=$1 refuses_pattern=$2
    shift 2
    exits "$refuses_name" 2 "[-]*$refuses_pattern" "$MDLC" "$@" samples/digits.mdl 2>"$scratch/err"
}
refuses "no number" "--split wants a number of files from 1 to 64, got '0'" --split=0 -o "$scratch/no.c"
refuses "no file" "--split names its files by the one that -o names" --split=2
refuses "standard output" "--split names its files by the one that -o names" --split=2 -o -
refuses "the whole runtime" "'--runtime=whole' does not go with '--split'" --split=2 --runtime=whole -o "$scratch/no.c"
refuses "lines of the source" "'--line' does not go with '--split'" --split=2 --line -o "$scratch/no.c"
refuses "a device" "'--split' does not go with '--target=cuda'" --split=2 --target=cuda --no-main -o "$scratch/no.c"
refuses "a check" "'--split' means nothing to 'check'" check --split=2
refuses "a header of that name" "name one file" --split=2 -o "$scratch/no.c" -H "$scratch/no.2.c"
[ -z "$(find "$scratch" -name 'no.*')" ] && pass || fail "files of refused compiles"
summary split
