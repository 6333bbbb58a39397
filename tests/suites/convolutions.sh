#!/bin/sh
# Convolutions of usual sizes and their gradients, by products on the register tile, beside the
# reference evaluator in double.
#
# Random ones from SEED on (suites/convolutions.awk), COUNT of them, else 16, and 150 with LONG=1:
# along one to three axes, of any stride, dilation, padding and window, channels first or last, from
# 2^22 multiplications on, where sums take the forms that large ones have. All numbers are small
# integers. Of each result two sums are compared, along places and along channels: a place or a
# channel that is wrong shows in one of them. One and three threads print the same. Then the same in
# 16 bits, which hold such integers, for this machine and for any machine by turns.
set -u
. tests/lib.sh
: "${SEED:=1}" "${LONG:=}"
if [ -z "${COUNT:-}" ]; then
    COUNT=${LONG:+150}
    COUNT=${COUNT:-16}
fi
echo "convolutions: SEED=$SEED"
results='p_y c_y p_dx c_dx p_dw c_dw'

# printed THREADS: runs the program; its results, whole, as mdlc run prints them.
printed() {
    # shellcheck disable=SC2046
    OMP_NUM_THREADS=$1 "$scratch/net" $(for r in $results; do echo "--out $r=$scratch/$r.npy"; done) >"$scratch/log" 2>&1 ||
        cat "$scratch/log"
    for r in $results; do
        head=$(od -An -tu2 -j8 -N2 "$scratch/$r.npy")
        echo "$r" $(od -An -v -tf4 -j$((head + 10)) "$scratch/$r.npy")
    done
}

# beside NAME PRECISION OPTION...: the net in this precision, as a program with these options too.
beside() {
    name=$1 precision=$2
    shift 2
    "$MDLC" run --precision="$precision" "$scratch/net.mdl" >"$scratch/want" 2>"$scratch/err" ||
        fail "$name" "$(head -n 1 "$scratch/err")"
    if "$MDLC" "$@" "$scratch/net.mdl" -o "$scratch/net.c" 2>"$scratch/err" && quickly "$scratch/net.c" "$scratch/net"; then
        printed 1 >"$scratch/one"
        printed 3 >"$scratch/three"
        awk -v tolerance=1e-5 -v least=6 -f tests/suites/beside.awk "$scratch/want" "$scratch/one" >"$scratch/found" && pass ||
            fail "$name" "$(head -n 2 "$scratch/found" | cut -c 1-200)"
        cmp -s "$scratch/one" "$scratch/three" && pass || fail "$name" "other numbers with three threads"
    else
        fail "$name" "does not build: $(head -n 1 "$scratch/err")"
    fi
}

seed=$SEED
while [ $seed -lt $((SEED + COUNT)) ]; do
    awk -v seed=$seed -f tests/suites/convolutions.awk >"$scratch/net.mdl"
    name="$seed: $(head -n 1 "$scratch/net.mdl")"
    beside "$name" f64
    case $((seed % 2)) in
        0) beside "$name, bf16" 'bf16, always' --precision='bf16, always' ;;
        1) beside "$name, bf16" 'bf16, always' --precision='bf16, always' --for=native ;;
    esac
    seed=$((seed + 1))
done
seed=$SEED
while [ $seed -lt $((SEED + 4 + COUNT / 8)) ]; do
    awk -v seed=$seed -v whole=1 -f tests/suites/convolutions.awk >"$scratch/net.mdl"
    beside "$seed, over whole axes: $(head -n 1 "$scratch/net.mdl")" f64
    seed=$((seed + 1))
done
[ "$COUNT" -ge 150 ] || echo "left to LONG=1: $((150 - COUNT)) convolutions more"
summary convolutions
