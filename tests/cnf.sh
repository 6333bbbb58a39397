#!/bin/sh
# `make cnf`: trains samples/cnf.mdl (STEPS=2500, SEED=0) and writes build/cnf/eight.png, the density that it has
# learned beside points that it makes. With PICTURE=FILE.png the same for points drawn from the dark
# places of a picture (build/cnf/picture.png, WIDTH=64, PICTURE_STEPS=6000).
set -eu
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}" "${CC:=cc}" "${SEED:=0}" "${STEPS:=2500}" "${PICTURE:=}" "${PICTURE_STEPS:=6000}" "${WIDTH:=64}" "${PYTHON:=python3}"
out=$BUILD/cnf
mkdir -p "$out"
made() { # NAME TRAIN OPTION...: the program is built; trains, and draws what it has learned
    # shellcheck disable=SC2086
    $CC -O3 -march=native -fopenmp -ffp-contract=off -fno-math-errno -fno-trapping-math "$out/$1.c" -lm -o "$out/$1"
    name=$1
    shift
    "$out/$name" "$@" --seed "$SEED" --log-every 250 --save "$out/$name.safetensors"
    "$out/$name" picture --load "$out/$name.safetensors" --out density="$out/$name.density.npy"
    "$out/$name" draws --load "$out/$name.safetensors" --seed "$SEED" --out "$out/$name.draws.npy"
    "$PYTHON" tests/tools/flow_picture.py show "$out/$name.png" "$out/$name.density.npy" "$out/$name.draws.npy"
    echo "$out/$name.png"
}
"$MDLC" samples/cnf.mdl -o "$out/eight.c"
made eight fit --steps "$STEPS"
if [ -n "$PICTURE" ]; then
    "$PYTHON" tests/tools/flow_picture.py points "$PICTURE" "$out/points.npy"
    "$MDLC" -D WIDTH="$WIDTH" -D B=256 samples/cnf.mdl -o "$out/picture.c"
    made picture paint --steps "$PICTURE_STEPS" --data drawing.f="$out/points.npy"
fi
