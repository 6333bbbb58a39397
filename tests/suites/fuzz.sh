#!/bin/sh
# Fuzz targets with our driver, for a moment each and from a fixed seed: the long form is `make soak`.
# Then the net itself: a target with planted faults must be seen to fail, and its inputs be saved.
# SEED and FUZZ_RUNS (a factor) change what is tried.
set -u
. tests/lib.sh
: "${FUZZ_BUILD:=build/fuzz}" "${SEED:=20240}" "${FUZZ_RUNS:=1}"
targets=$FUZZ_BUILD/tests/fuzz

sh tests/fuzz/corpus.sh "$scratch/mdl" || fail corpus "cannot be made"
echo "fuzz: seed $SEED"

# runs NAME COUNT FOLDER: that many mutants of the files in FOLDER; what is found is kept.
findings=$BUILD/tests/findings
runs() {
    mkdir -p "$findings"
    check "fuzz_$1 with seed $SEED" "$targets/fuzz_$1" "-seed=$SEED" "-runs=$(($2 * FUZZ_RUNS))" \
        "-artifact_prefix=$findings/$1-" "$3"
}
runs parse 1000 "$scratch/mdl"
runs elab 300 "$scratch/mdl"
runs compile 250 "$scratch/mdl"
runs bytes 250 "$scratch/mdl"
runs dump 200 "$scratch/mdl"
# The readers of files in emitted programs, from the files of tests/tools/hostile.c.
for name in csv npy idx gzip safetensors json text options; do
    sh "tests/fuzz/fuzz_$name.sh" "$scratch/$name" || fail "seeds of $name" "cannot be made"
    runs $name 2000 "$scratch/$name"
done

# The driver on planted faults: each kind of end is told apart, the input is saved, and alone it
# ends the same way.
planted() { # KIND WORD MESSAGE
    mkdir "$scratch/$2"
    printf 'dim B = 4;\ndim K = 7;\n%s\n' "$2" >"$scratch/$2/a.mdl"
    set -- "$1" "$2" "$3" -timeout=1 -rss_limit_mb=600
    "$targets/planted" -seed=1 -runs=3 "$4" "$5" "-artifact_prefix=$scratch/$2-" "$scratch/$2" >"$scratch/planted.log" 2>&1
    [ $? -eq 1 ] && grep -q "$3" "$scratch/planted.log" && pass || fail "planted $1 at '$2'" "the driver does not say so"
    saved=$(find "$scratch" -maxdepth 1 -name "$2-$1-*" | sort | head -n 1)
    if [ -z "$saved" ]; then
        fail "planted $1 at '$2'" "nothing is saved"
    elif "$targets/planted" "$4" "$5" "$saved" >"$scratch/planted.log" 2>&1; then
        fail "planted $1 at '$2'" "the saved input ends without a fault"
    else
        pass
    fi
}
planted crash model 'internal fault at .*planted'
planted crash train 'finding: .* files were open'
planted timeout repeat 'driver: timeout with input'
planted oom scan 'driver: oom with input'
# Without sanitizers nobody sees lost memory.
if grep -q AddressSanitizer "$scratch/planted.log"; then
    planted leak layer 'driver: leak with input'
else
    skip "planted leak" "no AddressSanitizer"
fi
summary fuzz
