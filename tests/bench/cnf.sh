#!/bin/sh
# `make bench-cnf`: the time of a training step of samples/cnf.mdl beside the same flow in JAX (a scan over
# steps, a checkpoint at each), at width 32 and batch 200, and width 64 and batch 500, with 1 and 2
# threads, each of which has a part of the batch. JAX comes from the virtual environment MDLC_JAX. The two take turns; medians of TURNS.
set -u
. tests/lib.sh
venv=${MDLC_JAX:-${MDLC_VENV:-$HOME/.cache/mdlc-bench}}
jax=$venv/bin/python
"$jax" -c 'import jax' 2>/dev/null || { echo "bench-cnf: no JAX in $venv"; jax=-; }
: "${TURNS:=5}" "${THREADS:=1 2}" "${SIZES:=32:200 64:500}"
median() { sort -n | awk '{ v[NR] = $1 } END { printf "%.2f", v[int((NR + 1) / 2)] }'; }
echo "width batch threads   mdlc ms   jax ms   ratio"
for size in $SIZES; do
    width=${size%:*} batch=${size#*:}
    for threads in $THREADS; do
        "$MDLC" -D WIDTH="$width" -D B="$batch" -D PARTS="$threads" samples/cnf.mdl -o "$scratch/cnf.c" && emitted "$scratch/cnf.c" "$scratch/cnf" || exit 1
        : >"$scratch/ours"
        : >"$scratch/theirs"
        turn=0
        while [ $turn -lt "$TURNS" ]; do
            turn=$((turn + 1))
            # Two runs of unlike lengths: what begins and ends a run is in both.
            for steps in 40 120; do
                "$scratch/cnf" --steps $steps --threads "$threads" --log json --log-every 1000 >"$scratch/log"
                number "$(grep '"event":"end"' "$scratch/log")" seconds
            done | awk '{ v[NR] = $1 } END { printf "%.4f\n", 1000 * (v[2] - v[1]) / 80 }' >>"$scratch/ours"
            [ "$jax" = - ] || echo | "$jax" tests/bench/cnf_jax.py "$width" "$batch" "$threads" | awk 'NR == 2 { printf "%.4f\n", $1 / 1000 }' >>"$scratch/theirs"
        done
        ours=$(median <"$scratch/ours") theirs=$(median <"$scratch/theirs")
        awk -v w="$width" -v b="$batch" -v t="$threads" -v a="$ours" -v c="$theirs" \
            'BEGIN { printf "%5d %5d %7d %9.2f %8.2f %7.2f\n", w, b, t, a, c, (a > 0 ? c / a : 0) }'
    done
done
