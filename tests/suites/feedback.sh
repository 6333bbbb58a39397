#!/bin/sh
# A net of 72,868 weights whose output is its next input: called CALLS times (10^6 with LONG=1) by a
# host without one page or allocation; and differentiated through 64 turns, with what costs more to make again
# than to keep kept (nothing), with carries alone, and with the wide layer's values kept by the word, to the same bits.
set -u
. tests/lib.sh
calls=2000
[ "${LONG:-0}" = 0 ] || calls=1000000
model='use nn;
dim B = 32, STEPS = 64;
model f(x: [B, 4]) -> [B, 4] { return x |> up: linear(8096) |> relu |> down: linear(4); }'

printf '%s\nentry apply(x: [B, 4]) { return f(x); }\n' "$model" >"$scratch/net.mdl"
if "$MDLC" --no-main --threads=1 "$scratch/net.mdl" -o "$scratch/net.c" -H "$scratch/net.h" &&
    emitted "$scratch/net.c" "$scratch/net.o" -c -I"$scratch" &&
    $CC -O1 -I"$scratch" tests/suites/feedback.c "$scratch/net.o" -fopenmp -lm -o "$scratch/feedback"; then
    "$scratch/feedback" $calls >"$scratch/out" || fail calls "exit status $?"
    echo "feedback, $calls calls: $(cat "$scratch/out")"
    read -r _ declared _ _ _ pages <"$scratch/out"
    [ "${declared:-9999999}" -le 1340000 ] && pass || fail declared "$declared bytes, more than 1,340,000"
    [ "${pages:-1}" = 0 ] && pass || fail pages "$pages pages more"
    # Nothing in it could ask for memory.
    nm -u "$scratch/net.o" | awk '{ print $2 }' | grep -vE '^(mem(cpy|set|move|cmp)|GOMP_.*|omp_.*|_GLOBAL_OFFSET_TABLE_|[a-z0-9]*f?)$' >"$scratch/odd"
    nm -u "$scratch/net.o" | grep -E ' (malloc|calloc|realloc|free|mmap|sbrk|fopen|printf)$' >>"$scratch/odd"
    [ -s "$scratch/odd" ] && fail symbols "$(head -n 3 "$scratch/odd")" || pass
else
    fail calls "does not build"
fi

turn='h <- f(h);'
for name in usual carries all; do
    policy=
    [ $name = carries ] && policy='@checkpoint '
    [ $name = all ] && turn='@keep z = relu(f.up(h)); h <- f.down(z);'
    printf '%s\ntrain fit(x: [B, 4]) of f {\n    %sscan t < STEPS carry h = x { %s }\n    loss mean(h^2);\n    optimizer sgd(lr = 1e-4);\n    steps 3;\n}\n' \
        "$model" "$policy" "$turn" >"$scratch/$name.mdl"
    "$MDLC" --threads=1 --prefix net "$scratch/$name.mdl" -o "$scratch/$name.c" && $CC -O1 -march=native "$scratch/$name.c" -lm -o "$scratch/$name" ||
        { fail "$name" "does not build"; continue; }
    head_="{'descr': '<f4', 'fortran_order': False, 'shape': (32, 4), }"
    { printf '\223NUMPY\1\0'; printf "\\$(printf %03o ${#head_})\\0%s" "$head_"; head -c 512 /dev/zero | tr '\0' '>'; } >"$scratch/x.npy"
    "$scratch/$name" --in x="$scratch/x.npy" --log none --save "$scratch/$name.st" >"$scratch/out" 2>&1 || fail "$name" "$(head -n 1 "$scratch/out")"
    "$MDLC" report --threads=1 --format=json "$scratch/$name.mdl" | sed -n 's/.*"regions".*"total":\([0-9]*\).*/\1/p' >"$scratch/$name.bytes"
done
echo "through 64 turns: $(cat "$scratch/usual.bytes") bytes, $(cat "$scratch/carries.bytes") with carries, $(cat "$scratch/all.bytes") with all kept"
same "carries alone" "$scratch/usual.st" "$scratch/carries.st"
same "all kept" "$scratch/usual.st" "$scratch/all.st"
[ "$(cat "$scratch/carries.bytes")" -le 2700000 ] && pass || fail carries "more than 2.7 MB"
[ "$(cat "$scratch/usual.bytes")" -le 2700000 ] && pass || fail usual "more than 2.7 MB"
[ "$(cat "$scratch/all.bytes")" -ge 60000000 ] && pass || fail all "less than 60 MB"
# The program as the design has it (tests/unit/programs): the same updates, and an entry that goes on until little changes.
if "$MDLC" --threads=1 --prefix net tests/unit/programs/21_loop_a1.mdl -o "$scratch/loop.c" 2>/dev/null && $CC -O1 -march=native "$scratch/loop.c" -lm -o "$scratch/loop"; then
    "$scratch/loop" fit --steps 3 --in x="$scratch/x.npy" --log none --save "$scratch/loop.st" >"$scratch/out" 2>&1 || fail "21_loop_a1" "$(head -n 1 "$scratch/out")"
    same "21_loop_a1" "$scratch/carries.st" "$scratch/loop.st"
    settle() { "$scratch/loop" settle --load "$scratch/loop.st" --in x="$scratch/x.npy" --set tol="$1" --out y="$scratch/y.npy" --out iterations="$scratch/n.npy" >"$scratch/out" 2>"$scratch/err"; }
    turns() { tail -c 4 "$scratch/n.npy" | od -An -td4 | tr -d ' '; }
    settle 1e-3 && few=$(turns) && settle 1e-6 && many=$(turns) && [ "$few" -ge 2 ] && [ "$many" -gt "$few" ] && [ "$many" -le 200 ] && pass ||
        fail settle "${few:-none} iterations, ${many:-none} for more digits: $(cat "$scratch/err")"
    # One iteration more changes the result by no more than was asked for.
    "$scratch/loop" settle --load "$scratch/loop.st" --in x="$scratch/y.npy" --set tol=1e-6 --out iterations="$scratch/n.npy" --log none >"$scratch/out" 2>"$scratch/err" &&
        [ "$(turns)" = 1 ] && pass || fail settle "is not at rest: $(turns)"
    # What is never small enough ends with the status of a loop that met its maximum.
    exits "settle" 4 "21_loop_a1.mdl:12" settle -1
else
    fail "21_loop_a1" "does not build"
fi
summary feedback
