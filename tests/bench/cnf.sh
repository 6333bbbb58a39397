#!/bin/sh
# `make bench-cnf`: the time of a training step of samples/cnf.mdl beside the same flow in JAX (a scan over
# steps with a checkpoint at each, and Diffrax) and in PyTorch (the solver's loop written out, eager and with
# its slopes compiled), at width 32 and batch 200, and width 64 and batch 500, with 1 and 2 threads, each of
# which has a part of the batch. The ratio is to the best of them. JAX and Diffrax come from the virtual
# environment MDLC_JAX, PyTorch from MDLC_VENV (default ~/.cache/mdlc-bench for both); what is not there
# is nan. All take turns; medians of TURNS.
set -u
. tests/lib.sh
: "${PYTHON:=python3}" "${TURNS:=5}" "${THREADS:=1 2}" "${SIZES:=32:200 64:500}"
venv=${MDLC_VENV:-$HOME/.cache/mdlc-bench}
torch=$venv/bin/python jax=${MDLC_JAX:-$venv}/bin/python
"$torch" -c 'import torch' 2>/dev/null || { echo "bench-cnf: no PyTorch in $venv"; torch=-; }
"$jax" -c 'import jax' 2>/dev/null || { echo "bench-cnf: no JAX in ${MDLC_JAX:-$venv}"; jax=-; }
have "$PYTHON" || { echo "bench-cnf: no $PYTHON, which lets all take turns"; exit 1; }
echo "width batch threads   mdlc ms    scan ms diffrax ms   eager ms compiled ms   ratio"
for size in $SIZES; do
    width=${size%:*} batch=${size#*:}
    for threads in $THREADS; do
        "$MDLC" -D WIDTH="$width" -D B="$batch" -D PARTS="$threads" samples/cnf.mdl -o "$scratch/cnf.c" && emitted "$scratch/cnf.c" "$scratch/cnf" || exit 1
        "$PYTHON" tests/bench/cnf_turns.py "$width" "$batch" "$threads" "$TURNS" "$scratch/cnf" "$jax" "$torch" >"$scratch/times" || exit 1
        awk -v w="$width" -v b="$batch" -v t="$threads" '{
            best = "nan"
            for (i = 2; i <= 5; i++) { if ($i != "nan" && (best == "nan" || $i + 0 < best + 0)) { best = $i } }
            printf "%5d %5d %7d %9s %10s %10s %10s %11s %7s\n", w, b, t, $1, $2, $3, $4, $5, best == "nan" ? "-" : sprintf("%.2f", best / $1)
        }' "$scratch/times"
    done
done
