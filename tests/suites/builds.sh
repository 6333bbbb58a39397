#!/bin/sh
# Emitted programs built in other ways than their header comment says: levels of optimisation with
# each compiler. They build without a warning and train to the loss of the ordinary build but for
# rounding. LONG=1 takes every sample, level and compiler.
set -u
. tests/lib.sh
: "${LONG:=0}"

# How each sample is run for a few steps; the loss of the last one.
train_of() { case $1 in diabetes) echo fit ;; esac; }
loss() { # PROGRAM NAME
    # shellcheck disable=SC2046
    "$1" $(train_of "$2") --steps 5 --seed 1 --threads 2 --log json >"$scratch/log" 2>"$scratch/err" || return 1
    number "$(grep '"event":"end"' "$scratch/log")" loss
}
near() { awk -v a="$1" -v b="$2" 'BEGIN { e = a - b; m = a < 0 ? -a : a; exit !(a != "" && b != "" && e * e <= 1e-6 * m * m) }'; }

variant() { # NAME EXPECTED COMPILER FLAG...
    variant_name=$1 variant_loss=$2
    shift 2
    rm -f "$scratch/program"
    if ! "$@" -Wall -Wextra -Werror "$scratch/$variant_name.c" -lm -o "$scratch/program" 2>"$scratch/err"; then
        fail "$variant_name with $*" "$(grep -m 1 -e error -e warning "$scratch/err")"
        return
    fi
    found=$(loss "$scratch/program" "$variant_name") || { fail "$variant_name with $*" "$(head -n 1 "$scratch/err")"; return; }
    near "$variant_loss" "$found" && pass || fail "$variant_name with $*" "loss $found, elsewhere $variant_loss"
}

[ "$LONG" = 1 ] && names=$(basename -s .mdl samples/*.mdl) levels="-O0 -Og -O1 -Os -O2" compilers="gcc clang" ||
    names=digits levels="-O0 -Og" compilers=gcc
for name in $names; do
    built "$name" && cp "$program.c" "$scratch/$name.c" || { fail "$name" "does not build"; continue; }
    expected=$(loss "$program" "$name") || { fail "$name" "$(head -n 1 "$scratch/err")"; continue; }
    for compiler in $compilers; do
        have $compiler || { skip "$name with $compiler" "not installed"; continue; }
        for level in $levels; do
            variant "$name" "$expected" $compiler $level -march=native
        done
    done
done
summary builds
