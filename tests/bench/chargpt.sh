#!/bin/sh
# `make bench-chargpt TEXT=FILE`: a GPT of characters (tests/bench/chargpt.mdl) trained STEPS steps on a
# text beside its PyTorch twin (chargpt.py), from the same weights, windows and rates: seconds, processor
# seconds (what counts on a busy machine), memory, and the loss of the held-out windows of both, which
# must lie within 0.02. PyTorch comes from the virtual environment MDLC_VENV; THREADS and STEPS choose.
set -u
. tests/lib.sh
twin=${MDLC_VENV:-$HOME/.cache/mdlc-bench}/bin/python
: "${THREADS:=1}" "${STEPS:=200}"
[ -r "${TEXT:-}" ] || { echo "chargpt: TEXT=FILE names the text"; exit 1; }
"$twin" -c 'import numpy, torch' 2>/dev/null || { echo "chargpt: no PyTorch in $twin"; exit 1; }
"$MDLC" tests/bench/chargpt.mdl -o "$scratch/chargpt.c" && emitted "$scratch/chargpt.c" "$scratch/chargpt" || exit 1
"$twin" tests/bench/chargpt.py init "$scratch/weights.safetensors" || exit 1
cp "$TEXT" "$scratch/chargpt.txt"

# The loss of the held-out windows is taken at the end, outside of the seconds of the steps, so a second
# run of no more than one step says what an evaluation takes.
run() { # STEPS
    "$scratch/chargpt" --load "$scratch/weights.safetensors" --data "text=$scratch/chargpt.txt" --steps "$1" \
        --threads "$THREADS" --log json --log-every 1000 >"$scratch/log" || exit 1
}
# Seconds of processors that programs run by this shell (not one in $(...)) have taken so far.
used() { tail -n 1 "$1" | tr 'ms' '  ' | awk '{ print 60 * $1 + $2 + 60 * $3 + $4 }'; }
times >"$scratch/start"
run 1
short=$(number "$(grep '"event":"end"' "$scratch/log")" seconds)
times >"$scratch/middle"
run "$STEPS"
times >"$scratch/last"
end=$(grep '"event":"end"' "$scratch/log")
held=$(grep '"event":"eval"' "$scratch/log" | tail -n 1)
ours=$(awk -v a="$(number "$end" seconds)" -v b="$short" -v n="$STEPS" -v s="$(used "$scratch/start")" -v m="$(used "$scratch/middle")" -v e="$(used "$scratch/last")" \
    'BEGIN { printf "%.1f %.1f", (a - b) * n / (n - 1), (e - 2 * m + s) * n / (n - 1) }')
ours="$ours $(number "$held" loss) $(awk -v b="$(number "$end" peak_rss_bytes)" 'BEGIN { printf "%.0f", b / 1048576 }')"
theirs=$("$twin" tests/bench/chargpt.py train "$scratch/weights.safetensors" "$scratch/chargpt.txt" "$STEPS" "$THREADS") || exit 1
echo "         seconds  processor s  held-out loss  peak MB"
echo "mdlc $ours
PyTorch $theirs" | awk '{ printf "%-8s %7s %12s %14s %8s\n", $1, $2, $3, $4, $5; v[NR] = $4 }
    END { off = v[1] - v[2]; if (off < 0) off = -off; printf "losses %.4f apart\n", off; exit !(off <= 0.02) }'
