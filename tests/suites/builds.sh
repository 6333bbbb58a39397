#!/bin/sh
# Emitted programs built in other ways than their header comment says. Under the address and the
# undefined-behaviour sanitizers of gcc and clang every sample trains, evaluates and saves without a
# report; with --checks=canary, one thread or two, to the same weights bit for bit. At other levels of
# optimisation they build without a warning and train to the same loss but for rounding.
# LONG=1: every sample at every level, with vectors and all checks under every sanitizer; else digits
# under those of both compilers and one sample more under each, at one other level.
set -u
. tests/lib.sh
: "${LONG:=0}"

# Few held-out rows for the slow builds.
head -c 30000 samples/data/chars.txt >"$scratch/chars.txt"
train_of() {
    case $1 in
    diabetes) echo fit ;;
    chars) echo fit --data "text=$scratch/chars.txt" ;;
    esac
}
# build NAME SOURCE COMPILER FLAG...: $scratch/NAME, in the background
build() {
    build_name=$1 build_source=$2
    shift 2
    "$@" -Wall -Wextra -Werror "$scratch/$build_source.c" -lm -o "$scratch/$build_name" 2>"$scratch/$build_name.err" &
}
# train PROGRAM NAME THREADS: weights in PROGRAM.THREADS, log in log. Without rows that are held out
# nothing is evaluated, which a program would warn of.
train() {
    case "$evaluated " in *" $2 "*) every="--eval-every 2" ;; *) every= ;; esac
    # shellcheck disable=SC2046,SC2086
    [ -x "$scratch/$1" ] && "$scratch/$1" $(train_of "$2") --steps 3 $every --save-every 2 --seed 2 --threads "$3" --log json \
        --log-every 1 --save "$scratch/$1.$3" >"$scratch/log" 2>"$scratch/err"
}
why() { # PROGRAM: what went wrong, as far as it said
    grep -h -m 1 -e 'error' -e 'ERROR' -e 'warning' "$scratch/$1.err" "$scratch/err" 2>/dev/null | head -n 1
}
loss() { number "$(grep '"event":"end"' "$scratch/log")" loss; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { e = a - b; exit !(a != "" && b != "" && e * e <= 1e-6 * a * a) }'; }

echo 'int main(void) { return 0; }' >"$scratch/empty.c"
undefined="-fsanitize=address,undefined -fno-sanitize-recover=all"
strict="-fsanitize=implicit-conversion,integer-divide-by-zero,float-divide-by-zero,float-cast-overflow,local-bounds,nullability"
sanitizes=
for compiler in gcc clang; do
    # shellcheck disable=SC2086
    have $compiler && $compiler $undefined "$scratch/empty.c" -o "$scratch/empty" 2>/dev/null && "$scratch/empty" 2>/dev/null &&
        sanitizes="$sanitizes $compiler" || skip "sanitizers of $compiler" "not available"
done
names= evaluated=
for source in $(trained); do
    name=$(basename "$source" .mdl)
    ! grep -q '^ *holdout ' "$source" || evaluated="$evaluated $name"
    case $LONG$name in 1* | *digits | *residual | *chars) ;; *) skip "$name in other builds" "LONG=1 (make accept) has it"; continue ;; esac
    "$MDLC" "$source" -o "$scratch/$name.c" && "$MDLC" --checks=canary "$source" -o "$scratch/$name.bands.c" &&
        names="$names $name" || fail "$name" "does not compile"
done

# ---- sanitizers, bands ----
for name in $names; do
    # The tile kernel with vectors takes a sanitizer seconds to compile; gcc's checks of values too.
    vectors=-march=native checks=$undefined clang_vectors=-march=native by=$sanitizes
    if [ "$LONG" != 1 ]; then
        case "$name $sanitizes" in
        digits*) clang_vectors=-DMD_VBYTES=0 ;;
        chars*gcc*) checks=-fsanitize=address by=gcc ;; # its plain loops would run for seconds
        residual*clang*) by=clang ;;
        esac
        for compiler in $sanitizes; do
            case $by in *$compiler*) ;; *) skip "$name with sanitizers of $compiler" "LONG=1 (make accept) has it" ;; esac
        done
    fi
    build "$name.plain" "$name" "$CC" -O0 -fopenmp $vectors
    # shellcheck disable=SC2086
    case $by in *gcc*) build "$name.gcc" "$name.bands" gcc -O0 -fopenmp $vectors $checks ;; esac
    # shellcheck disable=SC2086
    case $by in *clang*) build "$name.clang" "$name" clang -O0 $clang_vectors $undefined $strict ;; esac
    wait
    train "$name.plain" "$name" 2 || { fail "$name" "$(why "$name.plain")"; continue; }
    expected=$(loss)
    case $by in
    *gcc*)
        for threads in 1 2; do
            train "$name.gcc" "$name" $threads && [ ! -s "$scratch/err" ] && pass || fail "$name with gcc's sanitizers" "$(why "$name.gcc")"
            cmp -s "$scratch/$name.plain.2" "$scratch/$name.gcc.$threads" && pass || fail "$name with $threads threads" "bands change the numbers"
        done ;;
    esac
    case $by in
    *clang*)
        train "$name.clang" "$name" 1 && [ ! -s "$scratch/err" ] && near "$expected" "$(loss)" && pass ||
            fail "$name with clang's sanitizers" "$(why "$name.clang")" ;;
    esac
done

# ---- levels ----
level() { # NAME COMPILER LEVEL
    have "$2" || { skip "$1 with $2 $3" "not installed"; return; }
    build "$1.level" "$1" "$2" "$3" -march=native
    wait
    train "$1.level" "$1" 1 && near "$expected" "$(loss)" && pass || fail "$1 with $2 $3" "$(why "$1.level")"
    rm -f "$scratch/$1.level"
}
[ "$LONG" = 1 ] || names=digits
for name in $names; do
    train "$name.plain" "$name" 2 || continue
    expected=$(loss)
    for compiler in gcc clang; do
        for optimised in -Og -O1 -Os -O2; do
            [ "$LONG" = 1 ] || [ "$compiler $optimised" = "gcc -Og" ] || continue
            level "$name" $compiler $optimised
        done
    done
done
summary builds
