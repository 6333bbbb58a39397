#!/bin/sh
# Slices, indices and index notation beside plain arrays and loops: the reference evaluator and
# emitted programs, values and derivatives.
#
#   slices    every way to pick from a value in a loop (tests/tools/slices.c)
#   notation  random statements from SEED on (tests/tools/notation.c): COUNT models, else 40, and 500
#             with LONG=1
#
# PART=NAME is one of the two.
set -u
. tests/lib.sh
: "${SEED:=1}" "${LONG:=}" "${PART:=slices notation}"

# beside NAME PRINTED [OPTION...]: all values of $scratch/values are there, and right.
beside() {
    beside_name=$1 beside_file=$2
    shift 2
    awk "$@" -f tests/suites/beside.awk "$scratch/values" "$beside_file" >"$scratch/found" && pass ||
        fail "$beside_name" "$(head -n 3 "$scratch/found")"
}
built() { # PROGRAM: of PROGRAM.c
    $CC -O1 -march=native -fopenmp "$1.c" -lm -o "$1"
}

# --- slices ------------------------------------------------------------------------------------
part_slices() {
    "$BUILD/tests/tools/slices" model >"$scratch/slices.mdl"
    "$BUILD/tests/tools/slices" values >"$scratch/values"
    entries=$(sed -n 's/^entry \([a-z_]*\)().*/\1/p' "$scratch/slices.mdl")
    for precision in f32 f64; do
        for entry in $entries; do
            echo "$entry"
            "$MDLC" run --precision=$precision --entry "$entry" "$scratch/slices.mdl" 2>&1
        done >"$scratch/run"
        beside "slices: mdlc run $precision" "$scratch/run" -v tolerance=1e-5 -v derived=1e-5 -v least=1000
    done
    if "$MDLC" "$scratch/slices.mdl" -o "$scratch/program.c" && built "$scratch/program" &&
        "$scratch/program" keep --log none --save "$scratch/w" 2>"$scratch/err"; then
        for entry in $entries; do
            echo "$entry"
            "$scratch/program" "$entry" --load "$scratch/w" 2>&1
        done >"$scratch/run"
        beside "slices: program" "$scratch/run" -v tolerance=1e-5 -v derived=1e-5 -v least=1000
    else
        fail "slices: program" "does not build or train: $(cat "$scratch/err")"
    fi
}

# --- notation ----------------------------------------------------------------------------------
part_notation() {
    echo "slices: SEED=$SEED"
    count=${LONG:+500} seed=$SEED
    last=$((SEED + ${COUNT:-${count:-40}}))
    while [ $seed -lt $last ]; do
        "$BUILD/tests/tools/notation" model $seed >"$scratch/notation.mdl"
        "$BUILD/tests/tools/notation" values $seed >"$scratch/values"
        "$MDLC" run --precision=f64 "$scratch/notation.mdl" >"$scratch/run" 2>&1
        beside "notation $seed" "$scratch/run" -v tolerance=2e-8 -v derived=1e-6 -v least=20 -v more=yes
        "$MDLC" --precision=f64 "$scratch/notation.mdl" -o "$scratch/program.c" 2>"$scratch/err" && pass ||
            fail "notation $seed: does not compile" "$(head -n 3 "$scratch/err")"
        if [ $((seed - SEED)) -lt 2 ] || { [ -n "$LONG" ] && [ $((seed % 25)) -eq 0 ]; }; then
            : >"$scratch/run"
            built "$scratch/program" && "$scratch/program" go >"$scratch/run" 2>&1
            beside "notation $seed: program" "$scratch/run" -v tolerance=2e-8 -v derived=1e-6 -v least=20 -v more=yes
        fi
        seed=$((seed + 1))
    done
    echo "executions $((last - SEED))"
    [ -n "$LONG" ] || echo "left to LONG=1: 460 models of random index notation"
}

for part in $PART; do
    "part_$part"
done
summary slices
