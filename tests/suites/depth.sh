#!/bin/sh
# The length of the emitted file does not depend on trip counts: two depths of one model emit files
# that are the same, word by word, but for numbers. (How many words fit on a line depends on these.)
set -u
. tests/lib.sh

pair() { # FILE OPTION OTHER
    mkdir -p "$scratch/a" "$scratch/b"
    "$MDLC" -D "$2" "$1" -o "$scratch/a/x.c" && "$MDLC" -D "$3" "$1" -o "$scratch/b/x.c" ||
        { fail "$1 with $2 and $3" "does not compile"; return; }
    cmp -s "$scratch/a/x.c" "$scratch/b/x.c" && fail "$1" "$2 changes nothing"
    sed -E 's/[0-9]+/N/g' "$scratch/a/x.c" | tr -s ' \n' '\n' >"$scratch/a.n"
    sed -E 's/[0-9]+/N/g' "$scratch/b/x.c" | tr -s ' \n' '\n' >"$scratch/b.n"
    same "$1 with $2 and $3" "$scratch/a.n" "$scratch/b.n"
}
pair samples/residual.mdl depth=2 depth=48
pair tests/suites/feedback.mdl STEPS=8 STEPS=512
summary depth
