#!/bin/sh
# Builds samples/dqn.mdl and the program around it, samples/dqn.c, and trains one seed (SEED=0) for
# STEPS=500000 steps; the last line has return, seconds, declared and resident bytes. (make dqn)
set -eu
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}" "${CC:=cc}" "${SEED:=0}" "${STEPS:=500000}"
out=$BUILD/dqn
mkdir -p "$out"
"$MDLC" --no-main --threads=1 samples/dqn.mdl -o "$out/dqn_net.c" -H "$out/dqn.h"
# shellcheck disable=SC2086
$CC -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -I"$out" \
    samples/dqn.c "$out/dqn_net.c" -lm -o "$out/dqn"
"$out/dqn" "$SEED" "$STEPS"
