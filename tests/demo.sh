#!/bin/sh
# Emits the digits sample, builds it with the line in its header comment, trains it, and prints the
# declared bound beside the measured peak. Run from the root by `make demo`.
set -eu
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}"
mkdir -p "$BUILD/demo"
echo "\$ $MDLC samples/digits.mdl -o $BUILD/demo/train.c"
"$MDLC" samples/digits.mdl -o "$BUILD/demo/train.c"
wc -lc "$BUILD/demo/train.c" | awk '{ printf "  %d lines, %d bytes of C\n", $1, $2 }'

# The line names the file that it builds by its last part; it is run from that folder.
line=$(grep -m 1 -oE '(cc|gcc|clang) .*-lm -o [^ *]+' "$BUILD/demo/train.c")
binary=${line##*-o }
echo "\$ $line"
(cd "$BUILD/demo" && eval "$line")
echo "\$ $BUILD/demo/$binary"
"$BUILD/demo/$binary" --log json --seed 0 >"$BUILD/demo/log.json"
awk '
    function number(key,   s) {
        if (!match($0, "\"" key "\":[-+0-9.eE]+")) return "?"
        s = substr($0, RSTART, RLENGTH); sub(/^[^:]*:/, "", s); return s
    }
    /"event":"memory"/ { params = number("params"); state = number("state"); io = number("io"); arena = number("arena") }
    /"event":"step"/ { step = number("step"); if (step % 110 == 0 || step == 1) printf "  step %4d  loss %.4f\n", step, number("loss") }
    /"event":"eval"/ { acc = number("acc"); rows = number("rows") }
    /"event":"end"/ {
        printf "  %d steps in %.2f s, loss %.4f, held-out accuracy %.2f %% of %d rows\n\n", number("steps"), number("seconds"), number("loss"), 100 * acc, rows
        printf "  parameters %9d B\n  state      %9d B\n  in and out %9d B\n  arena      %9d B\n", params, state, io, arena
        printf "  bound      %9d B   declared before step 0\n", number("bound_bytes")
        printf "  peak       %9d B   measured over the process at its start\n", number("peak_over_process_bytes")
        printf "  growth     %9d pages between step 2 and the last step\n", number("resident_growth_pages")
    }' "$BUILD/demo/log.json"
