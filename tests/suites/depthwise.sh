#!/bin/sh
# Depthwise sums over windows of all sizes and their derivatives, in registers along the channels
# (passes/schedule/cpu_taps.c), are those of products (depthwise.mdl), on one thread and on three and with
# and without vectors of the machine.
set -u
. tests/lib.sh

# gaps NAME BUILD...: the program, and what it says of each size of windows.
gaps() {
    name=$1
    shift
    "$@" "$scratch/depthwise.c" -lm -o "$scratch/$name" 2>"$scratch/err" || { fail "$name" "$(head -n 1 "$scratch/err")"; return; }
    for threads in 1 3; do
        OMP_NUM_THREADS=$threads "$scratch/$name" gaps >"$scratch/out" 2>"$scratch/err" || fail "$name" "$(head -n 1 "$scratch/err")"
        for size in few line lines many long beside all rows odd turned \
            ring second third tall wide spread single apart stepped both placed uneven third_placed slim broad; do
            grep -qx "$size \[3\] = 0 0 0" "$scratch/out" && pass || fail "$name, $size, $threads threads" "$(grep "^$size " "$scratch/out")"
        done
    done
}
"$MDLC" tests/suites/depthwise.mdl -o "$scratch/depthwise.c" 2>"$scratch/err" || fail "depthwise" "$(head -n 1 "$scratch/err")"
# Places of a window, or of a line of one, are written out in loops along the channels; small odd sizes cut
# windows another way.
written=$(grep -A 1 -E '^ +for \(int64_t j(_[0-9]+)? = ' "$scratch/depthwise.c" | grep -c 'MD_UNROLL(8)')
usually "registers: $written loops along channels have places that are written out" [ "$written" -ge 5 ]
# Sums side by side are local variables of a turn of the vector loop, and so are those of the numbers.
for width in 6 7 8; do
    usually "$width sums side by side are local" grep -q "float held\[$width\];" "$scratch/depthwise.c"
done
# Lines of a sample's copy lie in a ring of three, forward, by the picture and by the numbers.
rings=$(grep -cE '\(\(r_2.* % 3\) \* [0-9]+\] = ' "$scratch/depthwise.c")
usually "lines: $rings loops make lines of a ring" [ "$rings" -ge 3 ]
# Places of 256 channels are 272 floats apart there.
usually "places of 1 KiB are further apart" grep -qE 'halo_own\[i_[0-9]+ \* 272 \+ i_[0-9]+ \+ .*% 3\) \* [0-9]+\] = ' "$scratch/depthwise.c"
# Windows that share few places have the loop over pieces of the channels inside of that over places.
grep -A 1 'for (int64_t r_3 = 0; r_3 < 4; r_3++)' "$scratch/depthwise.c" >"$scratch/places"
usually "windows at a step go by places" grep -q 'for (int64_t c = 0; c < 8; c++)' "$scratch/places"
# Those whose operand is near at hand read it where it lies, with the places at its border apart: forward, and by
# the numbers, whose sums of a chunk of samples are partial ones.
in_place() {
    awk -v sums="$1" '/^MD_NOINLINE void/ { kernel = "" } { kernel = kernel $0 "\n" }
        /^}/ { if (kernel ~ /r_[0-9]+ < 1; r_/ && kernel ~ /MD_UNROLL/ && kernel !~ /halo/ && (kernel ~ /RESTRICT partial/) == sums) { n++ } kernel = "" }
        END { print n + 0 }' "$scratch/depthwise.c"
}
placed=$(in_place 0) sums=$(in_place 1)
usually "in place: $placed loops read no copy" [ "$placed" -ge 3 ]
usually "in place: $sums loops of sums read no copy" [ "$sums" -ge 3 ]
gaps native $CC -O1 -march=native -ffp-contract=off -fopenmp
gaps plain $CC -O1 -ffp-contract=off -fopenmp -DMD_VBYTES=0
summary depthwise
