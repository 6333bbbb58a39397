#!/bin/sh
# Hostile sizes: each input gives a clear error, or correct work, in reasonable time and below 1 GiB.
# Times are printed, not judged; a minute is the end of any.
set -u
. tests/lib.sh

# What a sanitizer reserves is no memory: its limit is not set there.
if sh -c "ulimit -v 1048576 && \"$MDLC\" --version" >/dev/null 2>&1; then
    limited() { (ulimit -v 1048576 && exec timeout 60 "$@"); }
else
    limited() { timeout 60 "$@"; }
    skip "memory" "the address space cannot be limited with a sanitizer"
fi

# sized STATUS NAME [ARGUMENT...]: the model text in $in is compiled, with that status; an
# error is one that says where, in few lines.
in=$scratch/in
sized() {
    sized_want=$1 sized_name=$2
    shift 2
    mv "$in" "$scratch/$sized_name.mdl"
    sized_start=$(date +%s)
    limited "$MDLC" "$@" "$scratch/$sized_name.mdl" -o "$scratch/out.c" >"$scratch/out" 2>"$scratch/err"
    sized_rc=$?
    echo "sizes: $sized_name, $(($(wc -c <"$scratch/$sized_name.mdl") / 1000)) kB: status $sized_rc, $(($(date +%s) - sized_start)) s"
    if [ $sized_rc -ne "$sized_want" ]; then
        fail "$sized_name" "status $sized_rc, not $sized_want: $(head -c 300 "$scratch/err")"
    elif [ $sized_rc -ne 0 ] && ! grep -q 'mdl:[0-9]*:[0-9]*: error: .*\[E[0-9]*\]' "$scratch/err"; then
        fail "$sized_name" "no message"
    elif [ "$(wc -c <"$scratch/err")" -gt 40000 ]; then
        fail "$sized_name" "$(wc -c <"$scratch/err") bytes of messages"
    else
        pass
    fi
    rm -f "$scratch/$sized_name.mdl" "$scratch/out.c"
}

# repeated COUNT TEXT [MIDDLE [END]]: TEXT so many times, MIDDLE, END so many times.
repeated() {
    awk -v n="$1" -v a="$2" -v m="${3:-}" -v b="${4:-}" 'BEGIN {
        for (i = 0; i < n; i++) printf "%s", a
        printf "%s", m
        for (i = 0; i < n && b != ""; i++) printf "%s", b }'
}
expression() { echo "const A = $(cat); entry f(x: f32[4]) { return x; }"; }
body() { echo "entry f(x: f32[4]) { y = x; $(cat) return y; }"; }

N=100000
repeated $N '(' 1 ')' | expression >"$in"
sized 1 parentheses
repeated $N '[' 1 ']' | expression >"$in"
sized 1 lists
repeated $N '-' 1 | expression >"$in"
sized 1 signs
repeated $N 'not ' true | expression >"$in"
sized 1 negations
repeated $N '1 + ' 1 | expression >"$in"
sized 1 sums
repeated $N '2^' 1 | expression >"$in"
sized 1 powers
repeated $N 'a.' b | expression >"$in"
sized 1 dots
repeated $N 'exp(' 1 ')' | expression >"$in"
sized 1 calls
repeated $N 'a[' 0 ']' | expression >"$in"
sized 1 indices
(printf 'z = x'; repeated $N ' |> exp' ';') | body >"$in"
sized 1 pipes
repeated $N '{' '' '}' | body >"$in"
sized 1 braces
repeated $N 'when true { ' '' '}' | body >"$in"
sized 1 whens
repeated $N 'repeat 2 carry y { ' '' '}' | body >"$in"
sized 1 repeats
(printf 'when false { }'; repeated $N ' else when false { }') | body >"$in"
sized 1 elses
repeated $N '}' >"$in"
sized 1 ends
repeated 50000 'model ;
' >"$in"
sized 1 errors

# Just below what the parser lets through.
(printf 'z = x'; repeated 1900 ' |> exp' ';') | body >"$in"
sized 0 pipes_below
repeated 390 'exp(' 1 ')' | expression >"$in"
sized 0 calls_below
repeated 1900 'not ' true | expression >"$in"
sized 0 negations_below
(printf 'when false { }'; repeated 1900 ' else when false { }') | body >"$in"
sized 0 elses_below

# Files: what is too large is not read to its end.
yes '// a comment that says nothing at all' | head -c 50000000 >"$in"
sized 1 comments_50MB
head -c 50000000 /dev/zero | tr '\0' x >"$in"
sized 1 line_50MB
head -c 1000000 /dev/zero >"$in"
sized 1 nuls
(yes '// a comment that says nothing at all' | head -n 100000; echo 'dim B = 4;') >"$in"
sized 0 comments_4MB check
(head -c 4000000 /dev/zero | tr '\0' x) >"$in"
sized 1 line_4MB
awk 'BEGIN { srand(1); for (i = 0; i < 1000000; i++) printf "%c", 33 + int(rand() * 94) }' >"$in"
sized 1 garbage

# Numbers and words.
D=4611686018427387904
echo "entry f(x: f32[$D]) { return 2 * x; }" >"$in"
sized 1 dim
echo "dim A = 3000000000, B = 4000000000; entry f(x: f32[A, B]) { return 2 * x; }" >"$in"
sized 1 product
echo "entry f(x: f32[4]) { y[i < 3000000000, j < 4000000000] = x[0] * f32(i + j); return sum(y); }" >"$in"
sized 1 product_inside
repeated 1000000 9 | expression >"$in"
sized 1 digits
(printf 'test "'; repeated 1000000 s; printf '" { expect 1 < 2; }\n') >"$in"
sized 0 string check
name=$(repeated 4000 n)
echo "model $name(x: f32[4]) -> f32[4] { $name = 2 * x; return $name; }
entry f_$name(x: f32[4]) { return $name(x); }
entry g_$name(x: f32[4]) { return $name(x) + 1; }" >"$in"
sized 0 name
summary sizes
