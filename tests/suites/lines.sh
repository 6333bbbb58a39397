#!/bin/sh
# --line: the lines of calls and kernels are those of the source, all others those of the emitted file.
set -u
. tests/lib.sh
mkdir "$scratch/plain"

for name in digits chars; do
    "$MDLC" --line "samples/$name.mdl" -o "$scratch/$name.c" || fail "$name" "does not compile"
    check "$name is strict C" "$CC" $STRICT_FLAGS -fsyntax-only "$scratch/$name.c"
    # Without directives it is the same text.
    "$MDLC" "samples/$name.mdl" -o "$scratch/plain/$name.c"
    grep -v '^#line ' "$scratch/$name.c" >"$scratch/without.c"
    same "$name without directives" "$scratch/plain/$name.c" "$scratch/without.c"
    awk -v own="\"$scratch/$name.c\"" '
        /^#line / && $3 == own { found++; if ($2 != NR + 1) bad = bad " " NR }
        END { if (bad != "" || found == 0) print "wrong:" bad, found; exit bad != "" || found == 0 }' \
        "$scratch/$name.c" >"$scratch/log" && pass || fail "$name: numbers of the emitted file" "$(cat "$scratch/log")"
done
line=$(grep -n 'fc1: linear' samples/digits.mdl | cut -d: -f1)
loss=$(grep -n '^ *loss ' samples/digits.mdl | cut -d: -f1)
for at in "$line" "$loss"; do
    grep -q "^#line $at \"samples/digits.mdl\"" "$scratch/digits.c" && pass || fail "line $at" "no directive for it"
done

"$MDLC" --line -o "$scratch/odd\"name.c" samples/diabetes.mdl && check "a name with a quote" "$CC" -fsyntax-only "$scratch/odd\"name.c"

if ! have gdb; then
    skip "gdb" "it is not there"
elif "$CC" -g -O0 "$scratch/digits.c" -lm -o "$scratch/digits" 2>"$scratch/err"; then
    gdb -batch -ex 'info line digits_fc1_linear_gelu_dropout' "$scratch/digits" >"$scratch/log" 2>&1
    grep -q "Line $line of \"samples/digits.mdl\"" "$scratch/log" && pass || fail "a kernel in gdb" "$(cat "$scratch/log")"
    # Stepping through the train shows its source.
    {
        echo 'set pagination off'
        echo 'break digits_fit'
        echo 'run fit --steps 1 --log none'
        for step in $(seq 150); do echo next; done
    } >"$scratch/commands"
    gdb -batch -x "$scratch/commands" "$scratch/digits" >"$scratch/log" 2>&1
    if grep -q 'Breakpoint 1, digits_fit' "$scratch/log"; then
        grep -q "^$line[[:space:]].*fc1: linear" "$scratch/log" && pass || fail "stepping" "the line of fc1 is not shown"
        grep -q "^$loss[[:space:]].*loss mean" "$scratch/log" && pass || fail "stepping" "the line of the loss is not shown"
    else
        skip "stepping in gdb" "it may not trace here"
    fi
else
    fail "digits with -g" "$(head -n 3 "$scratch/err")"
fi
summary lines
