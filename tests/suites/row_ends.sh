#!/bin/sh
# Loops over rows that end where the rest of a row is known (passes/schedule/edge.c): values and
# derivatives of programs beside those of the evaluator, and the same bits on one and three threads.
# COUNT masks (6; 200 with LONG=1) are drawn from SEED on.
set -u
. tests/lib.sh
: "${SEED:=1}" "${LONG:=}" "${COUNT:=${LONG:+200}}" "${COUNT:=6}"

model=$scratch/ends.mdl
# masked NAME WIDTH CONDITION [CHANNELS]: softmax of rows of which a part counts, in attention.
masked() {
    cat <<END
entry $1() {
    x[b < 2, i < $2, k < ${4:-3}] = f32((b * 41 + i * 31 + k * 17) % 23) / 8 - 1;
    s[b, i, j] = select($3, sum[k] x[b, i, k] * x[b, j, k] / 2, -inf);
    p = softmax(s);
    y[b, i, k] = sum[j] p[b, i, j] * x[b, j, k];
    g = grad(sum(y^2), x);
    a[m < 60] = y[m % 2, 3 * m, m % 3];
    d[m < 60] = g[m % 2, 3 * m, m % 3];
    return a = a, d = d;
}
END
}
{
    echo "use nn;"
    masked causal 210 "j <= i"
    masked even 192 "i >= j"
    masked ahead 203 "j < i + 9"
    masked behind 203 "j < i - 5 or j == 0"
    masked window 210 "j <= i and i < j + 70"
    masked wide 210 "i64(j) - 2 < i64(i)"
    masked far 420 "j <= i" 36
    masked beyond 430 "j <= i + 30 and i < j + 200" 40
    cat <<'END'
// Sums and extremes of a part of each row; of lengths that are values of the run; in levels.
entry folds() {
    x[i < 220, j < 220] = f32((i * 31 + j * 17) % 23) - 11;
    a[i] = sum[j] select(j <= i, x[i, j], 0);
    b[i] = max[j] select(j <= i, x[i, j] + f32(j), -inf);
    c[i] = min[j] select(i < j, inf, x[i, j] - f32(j));
    e[i < 220] = prod[j < 220] select(j <= i - 215, 1.5, 1);
    f[i] = max[j] select(j < i - 100, x[i, j], -inf);
    t[m < 60] = a[m * 3 + 40] + 1000 * b[m * 3 + 40] + 100000 * c[m * 3 + 40];
    u[m < 60] = e[m + 160] + sum[q < 220] e[q];
    v[m < 60] = f[m * 2 + 101];
    return t = t, u = u, v = v;
}
// What else is made of a row goes through all of it.
entry beside() {
    u[i < 220, k < 40] = f32((i * 31 + k * 17) % 23) / 8 - 1;
    x[i, j] = sum[k] u[i, k] * u[j, k] / 9;
    s[i, j] = select(j <= i, x[i, j], -inf);
    p = softmax(s) + 0.1 * x;
    q[i] = sum[j] p[i, j] * f32(j % 7);
    a[m < 60] = q[3 * m];
    b[m < 60] = q[m];
    return a = a, b = b;
}
entry lengths() {
    x[i < 220, j < 220] = f32((i * 31 + j * 17) % 23) - 11;
    w[i < 220] = f32(i * 37 % 220);
    n = argsort(w);
    y[i, j] = select(j < n[i], x[i, j], 0);
    z[i, j] = y[i, j] / (1 + sum[q] y[i, q]^2);
    a[m < 60] = sum[j] z[m * 3, j];
    b[m < 60] = z[m * 3, m];
    return a = a, b = b;
}
entry levels() {
    x[i < 40, j < 9000] = f32((i * 31 + j * 17) % 23) - 11;
    a[i] = sum[j] select(j <= 200 * i, x[i, j], 0);
    b[i] = max[j] select(j <= 200 * i, x[i, j], -inf);
    return a = a, b = b;
}
END
    # Any two comparisons of places, whatever they leave of a row: what is made of it as a whole, and
    # in a row that later parts of the kernel read.
    awk -v seed="$SEED" -v count="$COUNT" '
    function below(n) { return int(rand() * n) }
    function place(n) { return below(3) ? n : sprintf("%s %s %d", n, below(2) ? "+" : "-", below(60)) }
    function atom(o) {
        o = substr("< <=> >===", 1 + 2 * below(5), 2)
        return below(2) ? place("j") " " o " " place("i") : place("i") " " o " " place("j")
    }
    function mask(m) {
        m = "(" atom() ")"
        m = below(3) ? m : m (below(2) ? " and (" : " or (") atom() ")"
        return below(4) ? m : "not (" m ")"
    }
    BEGIN {
        srand(seed)
        for (n = 0; n < count; n++) {
            m = mask()
            rows = 120 + below(80)
            print "entry drawn" n "() {"
            print "    u[b < 3, i < " rows ", k < 36] = f32((b * 41 + i * 31 + k * 17) % 23) / 8 - 1;"
            print "    v[b < 3, j < " 64 + below(200) ", k < 36] = f32((b * 7 + j * 13 + k * 5) % 19) / 8 - 1;"
            print "    x[b, i, j] = sum[k] u[b, i, k] * v[b, j, k] / 16;"
            print "    s[b, i, j] = select(" m " or j == 0, x[b, i, j], -inf);"
            print "    p = softmax(s)" (below(3) ? "" : " + 0.1 * x") ";"
            print "    y[b, i, k] = sum[j] p[b, i, j] * v[b, j, k];"
            print "    z[b, i] = sum[j] f32(" mask() ") * (x[b, i, j] + f32(j % 11));"
            print "    w[b, i] = max[j] select(" m ", f32(j) + x[b, i, j], -1000);"
            print "    g = grad(sum(y^2) / 100, v);"
            print "    a[m < 60] = y[m % 3, 2 * m, m % 7];"
            print "    c[m < 60] = z[m % 3, 2 * m];"
            print "    e[m < 60] = w[m % 3, 2 * m];"
            print "    d[m < 60] = g[m % 3, m, m % 7];"
            print "    return a = a, c = c, e = e, d = d;"
            print "}"
        }
    }'
} >"$model"
echo "row_ends: SEED=$SEED"
"$MDLC" "$model" -o "$scratch/ends.c" && emitted "$scratch/ends.c" "$scratch/ends" || {
    fail "row ends" "does not build"
    [ -n "$LONG" ] || echo "left to LONG=1: 194 drawn masks"
summary row_ends
    exit 1
}
# What the loops of every entry say: softmax forward and back, folds, lengths of the run.
ends=$(grep -c 'const int64_t j_end.* = ' "$scratch/ends.c")
[ "$ends" -ge 34 ] && pass || fail "row ends" "$ends loops end early"
# Threads that have as many rows have as much to do.
grep -q '_turn % 2 == 0 ? ' "$scratch/ends.c" && pass || fail "row ends" "no rows go by turns"
# What is not stored, nobody reads (passes/schedule/unread.c): buffers are full of NaN there in this build.
[ "$(grep -c 'const int64_t j_zero.* = ' "$scratch/ends.c")" -ge 2 ] && [ "$(grep -c '| MD_TILE_AHEAD_UNREAD' "$scratch/ends.c")" -ge 2 ] && pass || fail unread "all zeros are stored"
"$MDLC" --checks=canary "$model" -o "$scratch/full.c" && lightly emitted "$scratch/full.c" "$scratch/full" || fail "row ends" "do not build with guard bands"
for entry in causal even ahead behind window wide far beyond folds beside lengths levels $(seq -f "drawn%.0f" 0 $((COUNT - 1))); do
    echo "$entry" >"$scratch/want"
    "$MDLC" run --entry "$entry" "$model" 2>"$scratch/err" >>"$scratch/want"
    for threads in 1 3; do
        echo "$entry" >"$scratch/have.$threads"
        OMP_NUM_THREADS=$threads "$scratch/ends" "$entry" >>"$scratch/have.$threads" 2>"$scratch/err" ||
            fail "$entry" "$(head -n 1 "$scratch/err")"
    done
    awk -f tests/suites/beside.awk -v tolerance=2e-6 -v derived=1e-5 -v least=2 "$scratch/want" "$scratch/have.1" \
        >"$scratch/found" && pass || fail "$entry" "$(head -n 3 "$scratch/found")"
    same "$entry, three threads" "$scratch/have.1" "$scratch/have.3"
    echo "$entry" >"$scratch/have.full"
    "$scratch/full" "$entry" >>"$scratch/have.full" 2>"$scratch/err" || fail "$entry" "$(head -n 1 "$scratch/err")"
    same "$entry, NaN in every buffer" "$scratch/have.1" "$scratch/have.full"
done
[ -n "$LONG" ] || echo "left to LONG=1: 194 drawn masks"
summary row_ends
