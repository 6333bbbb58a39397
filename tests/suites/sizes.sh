#!/bin/sh
# Hostile sizes: each input gives a clear error, or correct work, in reasonable time and below 1 GiB.
# Times are printed, not judged; a minute is the end of any. Large models are compiled whole, and what
# is emitted for them grows as they do.
set -u
. tests/lib.sh

# What a sanitizer reserves is no memory: its limit is not set there.
MANY=10000
if sh -c "ulimit -v 1048576 && \"$MDLC\" --version" >/dev/null 2>&1; then
    limited() { (ulimit -v 1048576 && exec timeout 60 "$@"); }
else
    limited() { timeout 60 "$@"; }
    MANY=1000
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
    [ "${1:-}" = check ] || set -- "$@" -o "$scratch/out.c"
    limited "$MDLC" "$@" "$scratch/$sized_name.mdl" >"$scratch/out" 2>"$scratch/err"
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

# counted COUNT FIRST EACH LAST: FIRST, then EACH for the numbers from 1 on, LAST. In EACH a # is the
# number and an @ the one before it, in LAST a # is COUNT.
counted() {
    awk -v n="$1" -v first="$2" -v each="$3" -v last="$4" 'BEGIN {
        print first
        for (i = 1; i <= n; i++) { s = each; gsub(/#/, i, s); gsub(/@/, i - 1, s); print s }
        gsub(/#/, n, last)
        print last }'
}
# net COUNT EACH [OPTIMIZER]: so many layers in a row, of 8 wide, trained on an input of its own.
net() {
    counted "$1" 'use nn; dim B = 4, W = 8;
        op input() -> [B, W] { x[b < B, w < W] = sin(f32(8*b + w)); return x; }
        model net(x: [B, W]) -> [B, W] { h0 = x;' "$2" "return h#; }
        train fit of net { loss mean(net(input())^2); optimizer ${3:-sgd(lr = 1e-4)}; steps 3; }"
}

# Layers of one shape share their functions: however many there are, they are few.
for layers in 100 400; do
    net $layers 'h# = relu(l#: linear(h@, W));' 'adamw(lr = 1e-3)' >"$scratch/chain.mdl"
    functions=$("$MDLC" --stats "$scratch/chain.mdl" -o "$scratch/chain.c" | sed -n 's/^functions: //p')
    [ "$functions" -ge 5 ] && [ "$functions" -le 25 ] && pass || fail "chain of $layers" "$functions functions"
done

# Many of everything.
net $MANY 'h# = relu(l#: linear(h@, W));' >"$in"
sized 0 layers -D B=32 -D W=16
net $((MANY / 10)) 'h# = h@ + gelu(l#: linear(h@, W));' 'adamw(lr = 1e-3)' >"$in"
sized 0 layers_residual
net $((MANY / 10)) 'e# = new linear(W); h# = tanh(e#(h@));' >"$in"
sized 0 layers_new
net 1 "repeat $MANY carry h0 { h0 <- relu(linear(h0, W)); } h1 = h0;" >"$in"
sized 0 layers_repeat
counted $MANY 'use nn;' 'layer y#(x: [b, n]) -> [b, n] { return linear(x, n) + #; }' \
    'model net(x: [4, 8]) -> [4, 8] { return y1(x); } entry f(x: [4, 8]) { return net(x); }' >"$in"
sized 0 layers_declared
counted $MANY 'model net(x: [4]) -> [4] { y0 = x;' 'param p#: [4] = #; y# = y@ + p#;' \
    'return y#; } entry f(x: [4]) { return net(x); }' >"$in"
sized 0 parameters
counted $MANY 'entry f(x: [64]) { y0 = x;' 'y# = sin(y@) + x;' 'return y#; }' >"$in"
sized 0 statements
counted $MANY 'entry f(x: [4, 4]) { h0 = zeros([4]);' 'scan t < 4 carry h# = h@ { h# <- tanh(h# + x[t, :]); }' \
    'return h#; }' >"$in"
sized 0 loops
counted $MANY '' 'entry f#(x: [4]) { return # * x; }' '' >"$in"
sized 0 entries
counted $MANY 'op f0(x: [n]) -> [n] { return x + 1; }' \
    'op f#(x: [n]) -> [n] { return f@(x) * 2; } entry e#(x: [4]) { return f#(x); }' '' >"$in"
sized 1 calls_of_the_one_before
[ "$(grep -c ': error: ' "$scratch/err")" -eq 1 ] && pass || fail "calls_of_the_one_before" "more than one error"
counted $MANY '' 'const c# = #; dim D# = #;' 'entry f(x: [4]) { return c# * x; }' >"$in"
sized 0 constants
counted $MANY 'const c0 = 1;' 'const c# = c@ + 1;' 'entry f(x: [4]) { return c# * x; }' >"$in"
sized 1 constants_nested
counted $MANY '' 'op o#(x: [...]) -> [...] { return sin(x) + #; }' 'entry f(x: [4]) { return o#(x); }' >"$in"
sized 0 ops
counted 199 'op o0(x: [...]) -> [...] { return sin(x); }' 'op o#(x: [...]) -> [...] { return o@(x) + #; }' \
    'entry f(x: [4]) { return o#(x); }' >"$in"
sized 0 ops_nested
counted $MANY 'entry f(x: [64]) { y0 = sin(x); return' 'y# = # * x,' 'y = y0; }' >"$in"
sized 0 results
counted $MANY 'use nn;' 'model m#(x: [4, 8]) -> [4, 8] { return linear(x, 8); }' \
    'entry f(x: [4, 8]) { return m#(x); }' >"$in"
sized 0 models

# What is emitted for a chain of layers is as long as the chain: the same for every layer, in kernels
# and in operations, so nothing is computed again along it, and in text but for longer numbers.
measured() { # LAYERS: sets kernels, flops, bytes
    chain "$1" >"$scratch/chain.mdl"
    "$MDLC" --stats --no-main --prefix=net "$scratch/chain.mdl" -o "$scratch/chain.c" >"$scratch/stats" || return
    kernels=$(sed -n 's/^kernels: //p' "$scratch/stats")
    flops=$(sed -n 's/^flops: //p' "$scratch/stats")
    bytes=$(wc -c <"$scratch/chain.c")
}
linear() { # NAME
    measured 24 && k1=$kernels f1=$flops b1=$bytes && measured 48 && k2=$kernels f2=$flops b2=$bytes &&
        measured 96 || { fail "$1"; return; }
    echo "sizes: $1, 24, 48, 96 layers: $k1 $k2 $kernels kernels, $f1 $f2 $flops operations, $b1 $b2 $bytes bytes"
    [ $((kernels - k2)) -eq $((2 * (k2 - k1))) ] && pass || fail "$1: kernels"
    [ $((flops - f2)) -eq $((2 * (f2 - f1))) ] && pass || fail "$1: operations"
    [ $((10 * (bytes - b2))) -le $((22 * (b2 - b1))) ] && pass || fail "$1: text"
}
chain() { net "$1" 'h# = h@ + tanh(l#: linear(h@, W));'; }
linear training
chain() { net "$1" 'h# = relu(l#: linear(h@, W));' | sed '/train fit/d' && echo 'entry f(x: [B, W]) { return net(x); }'; }
linear inference

# And it is right: 60 layers give the losses of the reference evaluator.
net 60 'h# = h@ + tanh(l#: linear(h@, W));' >"$scratch/chain.mdl"
if "$MDLC" "$scratch/chain.mdl" -o "$scratch/chain.c" && $CC -O0 "$scratch/chain.c" -lm -o "$scratch/chain"; then
    "$scratch/chain" fit --seed 3 --log json | sed -n '/"event":"step"/s/.*"loss":\([-+0-9.e]*\).*/\1/p' >"$scratch/ours"
    "$MDLC" run --entry fit --seed 3 --calls 3 "$scratch/chain.mdl" | sed -n 's/^loss = //p' >"$scratch/theirs"
    if paste "$scratch/ours" "$scratch/theirs" | awk '
        { d = $1 - $2; worst = d * d > worst ? d * d : worst; n += NF == 2 && d * d < 1e-8 * $2 * $2 }
        END { exit n != 3 }'; then
        pass
    else
        fail "the losses of 60 layers" "$(tr '\n' ' ' <"$scratch/ours"), not $(tr '\n' ' ' <"$scratch/theirs")"
    fi
else
    fail "60 layers"
fi

# Where 1,500 results go is known in no time, however many --out say it: seconds of one processor are plenty.
awk 'BEGIN { printf "entry f() { return y0 = full(0, [2])"; for (i = 1; i < 1500; i++) printf ", y%d = full(%d, [2])", i, i; print "; }" }' >"$scratch/results.mdl"
"$MDLC" "$scratch/results.mdl" -o "$scratch/results.c" && $CC -O0 "$scratch/results.c" -lm -o "$scratch/results" || fail "1,500 results"
outs=$(awk 'BEGIN { for (i = 0; i < 100; i++) printf " --out y%d=/dev/null", i * 15 }')
# shellcheck disable=SC2086
(ulimit -t 5 && exec "$scratch/results" f $outs --out y1499="$scratch/last.npy") >"$scratch/out" 2>&1 && [ -s "$scratch/last.npy" ] && pass ||
    fail "1,500 results" "100 of them into files: $(head -n 1 "$scratch/out")"

# A model for which there is not enough memory is an error that says so, and leaves no file.
if [ "$MANY" != 1000 ]; then
    (ulimit -v 9000 && exec "$MDLC" samples/chars.mdl -o "$scratch/out.c") >"$scratch/out" 2>"$scratch/err"
    small_rc=$?
    [ $small_rc = 1 ] && grep -q '^mdlc: error: out of memory: .*ulimit -v' "$scratch/err" && [ ! -e "$scratch/out.c" ] && pass ||
        fail "too little memory" "status $small_rc: $(head -n 2 "$scratch/err")"
fi
summary sizes
