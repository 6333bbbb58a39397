#!/bin/sh
# Folds of rows that lie side by side in memory, by vectors across them (passes/schedule/cpu_across.c), have the
# bits of those of rows one behind another: of more terms than lanes, fewer, and a few in no lanes; on one thread
# and on three.
set -u
. tests/lib.sh

for size in 150:70 64:64 1000:33 21:200 12:130; do
    terms=${size%%:*} rows=${size#*:}
    if "$MDLC" --prefix net -D J="$terms" -D C="$rows" --no-main tests/suites/across.mdl -o "$scratch/net.c" -H "$scratch/net.h" 2>"$scratch/err" &&
        lightly emitted "$scratch/net.c" "$scratch/net.o" -c && $CC -O1 -DJ="$terms" -DC="$rows" -I"$scratch" tests/suites/across.c "$scratch/net.o" -fopenmp -lm -o "$scratch/across"; then
        for threads in 1 3; do
            OMP_NUM_THREADS=$threads "$scratch/across" >"$scratch/out" 2>&1 && pass || fail "$terms terms, $rows rows, $threads threads" "$(head -n 1 "$scratch/out")"
        done
        # A store to the sums of a piece at each term, none of a row by itself.
        across=$(awk '/^MD_NOINLINE void net_.*_loop|^static void net_/ { n = /part|lanes/ && !/_back/ } n && /MD_IVDEP/ { m++ } END { print m + 0 }' "$scratch/net.c")
        usually "$terms terms, $rows rows: $across loops across" [ "$across" -ge 10 ]
    else
        fail "$terms terms, $rows rows" "$(head -n 1 "$scratch/err")"
    fi
done
summary across
