#!/bin/sh
# Short rows with a byte in each place (emit/narrow.c): two vectors that overlap, of widths that have them
# and some that do not, give what the evaluator gives.
set -u
. tests/lib.sh

model=$scratch/short.mdl
for width in 3 4 5 6 7 8 9 11 13 14 15 16; do
    rows=$((32 / width)) # a program prints 64 numbers
    cat <<END
entry w$width() {
    x[i < $rows, j < 2 * $width] = f32((i * 31 + j * 17) % 23) - 11;
    u[i < $rows, j < $width] = f32((i * 5 + j * 3) % 7) + 1;
    y[i < $rows, j < $width] = max[q < 2] x[i, 2 * j + q];
    return y = 2 * y, dx = grad(sum(y * u), x);
}
END
done >"$model"
"$MDLC" "$model" -o "$scratch/short.c" && emitted "$scratch/short.c" "$scratch/short" || { fail "short rows" "does not build"; summary short_rows; exit 1; }
grep -q '_from += ' "$scratch/short.c" && pass || fail "short rows" "no vectors overlap"
for width in 3 4 5 6 7 8 9 11 13 14 15 16; do
    "$MDLC" run --entry "w$width" "$model" 2>"$scratch/err" | sed 's/ f32\[/ [/' >"$scratch/want"
    "$scratch/short" "w$width" >"$scratch/have" 2>"$scratch/err" || fail "w$width" "$(head -n 1 "$scratch/err")"
    [ "$(grep -c -E '^(y|dx) ' "$scratch/want")" -eq 2 ] || fail "w$width" "no values"
    same "w$width" "$scratch/want" "$scratch/have"
done
summary short_rows
