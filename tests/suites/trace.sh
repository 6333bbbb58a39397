#!/bin/sh
# Where a NaN came from: trains that end in one (trace.mdl) name the line that is marked there, as a
# program of its own by running the step again, built with --checks=nan, and embedded (trace.c).
set -u
. tests/lib.sh
model=tests/suites/trace.mdl
# line MARK: "trace.mdl:14" of the line that holds the mark.
line() { echo "trace.mdl:$(grep -n "// $1\$" $model | cut -d: -f1)"; }

array() { # NAME SHAPE OCTAL-OF-ONE COUNT
    array_head="{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }"
    {
        printf '\223NUMPY\1\0'
        printf "\\$(printf %03o ${#array_head})\\0%s" "$array_head"
        n=0
        while [ $n -lt "$4" ]; do printf "$3"; n=$((n + 1)); done
    } >"$scratch/$1.npy"
}
array x '4, 8' '\0\0\200\076' 32     # 0.25
array parts '3, 4, 8' '\0\0\200\076' 96
array bad '4, 8' '\0\0\300\177' 32   # NaN
array wide '4, 8' '\0\0\200\177' 32  # infinity

# ends BUILD TRAIN ARRAY TEXT: exit 4, and the message holds the text.
ends() {
    "$scratch/$1" "$2" --in x="$scratch/$3.npy" --save "$scratch/out.st" --log none >"$scratch/out" 2>"$scratch/err" </dev/null
    ends_rc=$?
    if [ $ends_rc = 4 ] && grep -qF "$4" "$scratch/err" && [ "$(wc -l <"$scratch/err")" = 1 ]; then
        pass
    else
        fail "$1 $2" "exit $ends_rc, no '$4': $(head -n 3 "$scratch/err")"
    fi
    [ ! -e "$scratch/out.st" ] || { fail "$1 $2" "weights were saved"; rm -f "$scratch/out.st"; }
}

for checks in none nan nan,canary; do
    "$MDLC" --checks=$checks $model -o "$scratch/trace.c" && $CC -O0 -fopenmp "$scratch/trace.c" -lm -o "$scratch/$checks" ||
        { fail "$checks" "does not build"; continue; }
    ends $checks forward x "the first NaN came from trace.mdl:"
    ends $checks overflow x "the loss of 'overflow' became infinite in step 1; nothing was saved; the first infinity came from trace.mdl:"
    ends $checks loop x "the first NaN came from trace.mdl:"
    for train in forward masked overflow loop turns; do # among the lines that are computed together
        "$scratch/$checks" $train --in x="$scratch/$([ $train = turns ] && echo parts || echo x).npy" --log none 2>"$scratch/err" >"$scratch/out"
        number=$(line "from $train")
        sed -n 's/.*came from trace.mdl:\([0-9, ]*\):.*/, \1,/p' "$scratch/err" | grep -q ", ${number#*:}," && pass ||
            fail "$checks $train" "line ${number#*:}: $(cat "$scratch/err")"
    done
    ends $checks given bad "input x held a NaN before the step"
    ends $checks given wide "; input x held an infinity"
done
# Looked at as far as they are written: buffers hold a NaN elsewhere with guard bands, or from the step before.
"$MDLC" --checks=canary $model -o "$scratch/trace.c" && [ "$(grep -c 'MD_TRACE_NEAR(m->trace, [0-9]' "$scratch/trace.c")" -ge 4 ] && $CC -O0 -fopenmp "$scratch/trace.c" -lm -o "$scratch/full" && pass ||
    fail canary "does not build, or looks at all"
marked=$(line 'from masked')
ends full masked x ", ${marked#*:}: computed together"
ends none masked x ", ${marked#*:}: computed together"
# Apart from each other, operations are told apart; fused, a kernel is one place.
ends none forward x "computed together; --checks=nan tells them apart"
ends nan forward x "the first NaN came from $(line 'from forward'): sqrt in 'far = sqrt(y - 10)"
ends nan mixed x "the first NaN came from $(line 'from mixed'): mul in"
ends nan mixed x "an infinity came before it, from $(line 'before mixed'): exp in"
ends none mixed x "trace.mdl:"
# What the loss does not show: the next step meets it, unless the gradients are looked at.
ends none backward x "in step 2; nothing was saved; the first NaN came from"
ends none backward x "; parameter flat.w held an infinity"
ends nan backward x "the gradient norm of 'backward' became infinite in step 1; nothing was saved; the first infinity came from"
ends nan backward x "$(line 'from backward')"
# A gradient of 1e25, whose square is infinite: the line of its parameter.
cat >"$scratch/large.mdl" <<'END'
use nn;
model net(x: [4, 8]) -> [4] {
    param w: [8] = 1;
    y[b] = sum[i] x[b, i] * w[i];
    return y;
}
train large(x: [4, 8]) of net { loss mean(net(x)) * 1e25; optimizer sgd(lr = 0.1); steps 2; }
END
"$MDLC" --checks=nan "$scratch/large.mdl" -o "$scratch/large.c" && $CC -O0 -fopenmp "$scratch/large.c" -lm -o "$scratch/large" || fail large "does not build"
ends large large x "the first infinity came from large.mdl:3: mul in 'param w: [8] = 1  [8]'"
ends none update x "in step 2; nothing was saved; parameter net.fc.weight held a NaN before the step"
ends nan update x "in step 1; nothing was saved; the first NaN came from"

# A host asks for the place; the weights are as they were unless the optimizer made it.
"$MDLC" --checks=nan --no-main $model -o "$scratch/trace.c" -H "$scratch/trace.h" &&
    $CC -O0 -Wall -Wextra -Werror -I. -I"$scratch" tests/suites/trace.c "$scratch/trace.c" -lm -o "$scratch/host" 2>"$scratch/err" ||
    fail host "$(head -n 1 "$scratch/err")"
check "host" "$scratch/host"
"$scratch/host" >"$scratch/out" 2>&1
for train in forward turns backward update; do
    if [ $train = update ] || grep -q "^$train $(line "from $train") " "$scratch/out"; then
        pass
    else
        fail "host: $train" "$(grep "^$train " "$scratch/out")"
    fi
done
grep -q "^update trace.mdl:[0-9]* " "$scratch/out" && pass || fail "host: update" "$(grep "^update" "$scratch/out")"
# A model without main that is not checked carries nothing of it.
"$MDLC" --no-main $model -o "$scratch/plain.c"
grep -q 'md_trace\|MD_TRACE\|_places' "$scratch/plain.c" && fail "plain" "notes in a model that is not checked" || pass
# The same numbers, up to what fusing rounds, of a net that trains.
built digits && "$program" --steps 20 --log json --log-every 20 >"$scratch/usual"
built digits --checks=nan && "$program" --steps 20 --log json --log-every 20 >"$scratch/apart"
for file in usual apart; do sed -n 's/.*"event":"step".*"loss":\([0-9.]*\).*/\1/p' "$scratch/$file" >"$scratch/$file.loss"; done
paste "$scratch/usual.loss" "$scratch/apart.loss" | awk '{ d = $1 - $2; exit !(NF == 2 && d * d < 1e-10) }' && pass ||
    fail "apart" "$(paste "$scratch/usual.loss" "$scratch/apart.loss")"
summary trace
