#!/bin/sh
# Values without elements: empty.mdl in the evaluator and as programs, and files with nothing in them.
set -u
. tests/lib.sh
model=tests/suites/empty.mdl

# What the comments of the model promise, entry by entry: all, and those before any training.
awk '/^\/\/= / { line[n++] = substr($0, 5); next }
     /^entry / { sub(/\(.*/, "", $2); print $2; for (i = 0; i < n; i++) print line[i]; n = 0 }' $model >"$scratch/trained"
sed '/^trained$/,$d' "$scratch/trained" >"$scratch/initial"
entries=$(sed -n 's/^entry \([a-z_]*\)().*/\1/p' $model)

# Types and the sign of a zero are no part of it: plain <PRINTED
plain() { sed -E 's/ (f32|f64|bool|u8|i32)\[/ [/; s/ =( ?)/\1/; s/-0( |$)/0\1/g; s/ $//'; }

for precision in f32 f64; do
    for entry in $entries; do
        [ "$entry" = trained ] && continue
        echo "$entry"
        "$MDLC" run --precision=$precision --entry "$entry" $model 2>&1
    done | plain >"$scratch/values"
    same "mdlc run $precision" "$scratch/initial" "$scratch/values"
done

# program NAME CFLAGS LDFLAGS [OPTION...]: trains, and calls every entry with the weights it saved.
program() {
    name=$1 cflags=$2 ldflags=$3
    shift 3
    # shellcheck disable=SC2086
    if ! "$MDLC" "$@" $model -o "$scratch/program.c" ||
        ! $CC $cflags "$scratch/program.c" $ldflags -lm -o "$scratch/program" ||
        ! "$scratch/program" fit --log none --save "$scratch/w" --checkpoint "$scratch/k" >"$scratch/err" 2>&1; then
        fail "$name" "does not build or train: $(cat "$scratch/err")"
        return
    fi
    for entry in $entries; do
        echo "$entry"
        "$scratch/program" "$entry" --load "$scratch/w" 2>&1
    done | plain >"$scratch/values"
    same "$name" "$scratch/trained" "$scratch/values"
    "$scratch/program" fit --log none --resume "$scratch/k" --checkpoint "$scratch/k2" --save "$scratch/w2" >"$scratch/err" 2>&1
    same "$name: a resumed run saves the same weights" "$scratch/w" "$scratch/w2"
    same "$name: a resumed run writes the same checkpoint" "$scratch/k" "$scratch/k2"
}
program program "-O1 -fopenmp $STRICT_FLAGS" ""
program "program with sanitizers" "-O0 -fsanitize=address,undefined -fno-sanitize-recover=all" ""
program "program in f64" "-O0 -fopenmp" "" --precision=f64
program "program with --checks=canary" "-O0" "" --checks=canary
program "program with --checks=nan" "-O0" "" --checks=nan
if echo 'int main(void) { return 0; }' | $CC -x c - -lopenblas -o "$scratch/linked" 2>/dev/null; then
    program "program with OpenBLAS" "-O0" "-lopenblas" --blas=openblas
else
    skip "program with OpenBLAS" "it does not link"
fi

# --- files --------------------------------------------------------------------------------------

# npy FILE SHAPE [BYTES]: an array of f32 with that many bytes of zeros.
npy() {
    head="{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }"
    {
        printf '\223NUMPY\001\000\166\000%-117s\n' "$head"
        head -c "${3:-0}" /dev/zero
    } >"$1"
}
quiet() { "$@" >"$scratch/out" 2>"$scratch/err"; }
says() { # NAME PATTERN COMMAND...: a message about a file
    says_name=$1 says_text=$2
    shift 2
    exits "$says_name" 1 "$says_text" quiet "$@"
}

cat >"$scratch/arrays.mdl" <<'END'
entry through(e: [0, 3], x: [2, 3]) {
    return back = e, both = concat(x, e, axis = 0), n = sum(e);
}
ring cache[4] { a: f32[0]; b: f32; }
entry push() { cache.push(zeros([0]), 1); return n = f32(cache.count); }
entry pull() { s = cache.sample(2); return a = s.a, b = sum(s.b); }
END
npy "$scratch/e03" "0, 3"
npy "$scratch/x23" "2, 3" 24
npy "$scratch/x203" "2, 0, 3"
npy "$scratch/x30" "3, 0"
printf 'back [0, 3]\nboth [2, 3] 0 0 0 0 0 0\nn 0\n' >"$scratch/wanted"
cat "$scratch/wanted" "$scratch/wanted" >"$scratch/wanted2"
"$MDLC" run --in e="$scratch/e03" --in x="$scratch/x23" "$scratch/arrays.mdl" 2>&1 | plain >"$scratch/values"
same "mdlc run with an input without elements" "$scratch/wanted" "$scratch/values"
if "$MDLC" "$scratch/arrays.mdl" -o "$scratch/arrays.c" &&
    $CC -O0 -fsanitize=address,undefined -fno-sanitize-recover=all "$scratch/arrays.c" -lm -o "$scratch/arrays"; then
    set -- "$scratch/arrays" through --in x="$scratch/x23"
    "$@" --in e="$scratch/e03" 2>&1 | plain >"$scratch/values"
    same "an input without elements" "$scratch/wanted" "$scratch/values"
    "$@" --in e="$scratch/x203" 2>&1 | plain >"$scratch/values"
    same "two calls of one" "$scratch/wanted2" "$scratch/values"
    "$@" --in e="$scratch/e03" --out back="$scratch/back" 2>&1
    same "a result without elements as a file" "$scratch/e03" "$scratch/back"
    says "another empty shape" "shape \[3, 0\]; input 'e' of 'through' takes \[0, 3\]" "$@" --in e="$scratch/x30"
    says "rows for an empty input" "shape \[2, 3\]; input 'e'" "$@" --in e="$scratch/x23"
    says "no rows for an input" "shape \[0, 3\]; input 'x'" "$scratch/arrays" through --in e="$scratch/e03" --in x="$scratch/e03"
    check "a push of nothing" "$scratch/arrays" push --checkpoint "$scratch/ring"
    check "another one" "$scratch/arrays" push --resume "$scratch/ring" --checkpoint "$scratch/ring"
    "$scratch/arrays" pull --resume "$scratch/ring" 2>&1 | plain >"$scratch/values"
    printf 'a [2, 0]\nb 2\n' >"$scratch/wanted"
    same "rows of a ring" "$scratch/wanted" "$scratch/values"
else
    fail "arrays" "does not build"
fi

# Files without rows end a train with one message.
cat >"$scratch/rows.mdl" <<'END'
use nn;
const rows = 2;
dataset d {
    file f = "rows";
    x: f32[2] = f.columns(0..2);
    y: f32 = f.column(2);
}
model net(x: [b, 2]) { return x |> l: linear(1); }
train fit of net on d[rows] {
    z = net(x);
    loss mean((z[:, 0] - y)^2);
    optimizer sgd(lr = 0.1);
    steps 2;
}
END
npy "$scratch/no.npy" "0, 3"
npy "$scratch/wide.npy" "5, 0"
: >"$scratch/no.csv"
printf 'a,b,c\n' >"$scratch/head.csv"
printf '\0\0\015\002\0\0\0\0\0\0\0\003' >"$scratch/no.idx"
: >"$scratch/no.i32"
if "$MDLC" "$scratch/rows.mdl" -o "$scratch/rows.c" &&
    $CC -O0 -fsanitize=address,undefined -fno-sanitize-recover=all "$scratch/rows.c" -lm -o "$scratch/rows"; then
    for file in no.npy no.csv head.csv no.idx; do
        says "$file" "$file: no rows" "$scratch/rows" --data f="$scratch/$file"
    done
    says "no.i32" "no.i32: the file is empty" "$scratch/rows" --data f="$scratch/no.i32"
    says "wide.npy" "records of 0 elements" "$scratch/rows" --data f="$scratch/wide.npy"
else
    fail "rows" "does not build"
fi
says "a batch of no rows" "a batch has at least one row, found 0" "$MDLC" -D rows=0 "$scratch/rows.mdl" -o "$scratch/x.c"
summary empty
