#!/bin/sh
# `make before BASE=REV`: the time of a step beside that of programs from the compiler of BASE (any
# commit; the last one if not given), on one thread, in turn, medians of ROUNDS runs.
#
# The nets of `make busy`; NETS chooses, SECONDS_EACH says how long each run of them is. Nothing fails:
# machines are noisy, and a line that stands out is to be run again alone.
set -u
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}" "${CC:=cc}" "${ROUNDS:=5}" "${SECONDS_EACH:=1}"
: "${NETS:=digits mlp dqn wide gru lenet resnet mobile diabetes chars residual gan tune}"
. tests/base.sh
. tests/bench/train.sh
out=$BUILD/before
rm -rf "$out/was" "$out/is"
mkdir -p "$out/was" "$out/is"
NETS="$NETS" COMPILERS="$CC" PROGRAMS="$out/was" BUILD_ONLY=1 MDLC="$old" sh tests/bench/busy.sh >/dev/null || exit 1
NETS="$NETS" COMPILERS="$CC" PROGRAMS="$out/is" BUILD_ONLY=1 sh tests/bench/busy.sh >/dev/null || exit 1

middle() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "net          before us       now us   ratio"
for name in $NETS; do
    : >"$out/times.was"
    : >"$out/times.is"
    for round in $(seq "$ROUNDS"); do
        [ $((round % 2)) -eq 0 ] && sides="is was" || sides="was is" # who runs first may matter
        for side in $sides; do
            step_time "$out/$side/$name.$CC" "$name" 1 >>"$out/times.$side" || exit 1
        done
    done
    echo "$name $(middle "$out/times.was") $(middle "$out/times.is")" |
        awk '{ printf "%-10s %11.2f  %11.2f  %6.3f\n", $1, $2, $3, $3 / $2 }'
done
