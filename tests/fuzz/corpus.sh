#!/bin/sh
# corpus.sh FOLDER: the inputs that fuzzing of the model language begins with, one file each: all
# model texts of the tree, the library, and what --dump makes of the samples. MDLC names the compiler.
set -u
: "${MDLC:=build/mdlc}"
folder=$1
mkdir -p "$folder" || exit 1
find samples lang tests -name '*.mdl' | while read -r file; do
    cp "$file" "$folder/$(echo "$file" | tr / _)" || exit 1
done
for file in samples/*.mdl; do
    for stage in build grad clean; do
        "$MDLC" --dump=$stage "$file" >"$folder/$(basename "$file" .mdl)_$stage.mdl" || exit 1
    done
done
