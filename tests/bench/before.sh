#!/bin/sh
# `make before BASE=REV`: the time of a step beside that of programs from the compiler of BASE (any
# commit; the last one if not given), on one thread, in turn, medians of ROUNDS runs.
#
# The nets of `make busy`; NETS chooses, SECONDS_EACH says how long each run of them is. Nothing fails:
# machines are noisy, and a line that stands out is to be run again alone.
set -u
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}" "${BASE:=HEAD}" "${CC:=cc}" "${ROUNDS:=5}" "${SECONDS_EACH:=1}"
: "${NETS:=digits mlp dqn wide gru diabetes chars residual gan tune}"
rev=$(git rev-parse --verify --quiet "$BASE^{commit}") || { echo "before: no commit $BASE" >&2; exit 2; }
out=$BUILD/before
old=$out/$rev
mkdir -p "$out"
if [ ! -x "$old/build/mdlc" ]; then
    rm -rf "$old"
    mkdir -p "$old"
    git archive "$rev" | tar xf - -C "$old" || exit 2
    make -s -C "$old" BUILD=build build/mdlc >"$out/build.log" 2>&1 || {
        echo "before: $BASE does not build, see $out/build.log" >&2
        exit 2
    }
fi
rm -rf "$out/was" "$out/is"
mkdir -p "$out/was" "$out/is"
NETS="$NETS" COMPILERS="$CC" PROGRAMS="$out/was" BUILD_ONLY=1 MDLC="$old/build/mdlc" sh tests/bench/busy.sh >/dev/null || exit 1
NETS="$NETS" COMPILERS="$CC" PROGRAMS="$out/is" BUILD_ONLY=1 sh tests/bench/busy.sh >/dev/null || exit 1

now() { date +%s%N; }
train() { # PROGRAM STEPS [TRAIN]
    start=$(now)
    "$1" ${3:-} --threads 1 --steps "$2" --log none >/dev/null || exit 1
    echo "$start $(now) $2" | awk '{ printf "%.3f\n", ($2 - $1) / $3 / 1000 }'
}
run() { # PROGRAM NET
    case $2 in
    diabetes) train "$1" 200000 ;;
    chars) train "$1" 200 ;;
    residual) train "$1" 500 ;;
    gan) train "$1" 1000 d ;;
    tune) train "$1" 1500 pre ;;
    *) OMP_NUM_THREADS=1 "$1" "$SECONDS_EACH" ;;
    esac
}
middle() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "net          before us       now us   ratio"
for name in $NETS; do
    : >"$out/times.was"
    : >"$out/times.is"
    for round in $(seq "$ROUNDS"); do
        [ $((round % 2)) -eq 0 ] && sides="is was" || sides="was is" # who runs first may matter
        for side in $sides; do
            run "$out/$side/$name.$CC" "$name" >>"$out/times.$side" || exit 1
        done
    done
    echo "$name $(middle "$out/times.was") $(middle "$out/times.is")" |
        awk '{ printf "%-10s %11.2f  %11.2f  %6.3f\n", $1, $2, $3, $3 / $2 }'
done
