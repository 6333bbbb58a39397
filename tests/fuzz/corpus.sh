#!/bin/sh
# corpus.sh FOLDER: the inputs that fuzzing of the model language begins with, one file each: all
# model texts of the tree, the library, and what --dump makes of the programs among them. What is
# longer than LARGEST bytes stays out: it would be slow, and mutants of it much alike. MDLC names the
# compiler.
set -u
: "${MDLC:=build/mdlc}" "${LARGEST:=20000}"
folder=$1
mkdir -p "$folder" || exit 1
find samples lang tests -name '*.mdl' -size "-${LARGEST}c" | while read -r file; do
    cp "$file" "$folder/$(echo "$file" | tr / _)" || exit 1
done
for file in samples/*.mdl tests/cases/run/*.mdl; do
    for stage in build clean; do
        dump=$folder/$(basename "$file" .mdl)_$stage.mdl
        "$MDLC" --dump=$stage "$file" >"$dump" 2>/dev/null && [ "$(wc -c <"$dump")" -le "$LARGEST" ] || rm -f "$dump"
    done
done
[ "$(find "$folder" -name '*_clean.mdl' | wc -l)" -ge 5 ]
