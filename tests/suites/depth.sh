#!/bin/sh
# The length of the emitted file does not depend on trip counts: two depths of one model emit files
# that are the same but for numbers.
set -u
. tests/lib.sh

pair() { # NAME OPTION OTHER
    "$MDLC" -D "$2" "samples/$1.mdl" -o "$scratch/a.c" && "$MDLC" -D "$3" "samples/$1.mdl" -o "$scratch/b.c" ||
        { fail "$1 with $2 and $3" "does not compile"; return; }
    sed -E 's/[0-9]+/N/g' "$scratch/a.c" >"$scratch/a.n"
    sed -E 's/[0-9]+/N/g' "$scratch/b.c" >"$scratch/b.n"
    cmp -s "$scratch/a.c" "$scratch/b.c" && fail "$1" "$2 changes nothing"
    same "$1 with $2 and $3" "$scratch/a.n" "$scratch/b.n"
}
pair residual depth=2 depth=48
pair chars T=8 T=512
summary depth
