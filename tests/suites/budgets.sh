#!/bin/sh
# Budgets below what a train needs when each step runs once: steps run again, the weights are those of the
# program without a budget to the byte, and the process takes no more than was declared. One that cannot be met
# says how little was found. Loops keep less for their derivatives, with the same bits, and with `rounding` with
# weights that are the same but for that: a smaller budget never takes less time, and what it says is what the process takes.
set -u
. tests/lib.sh

model=tests/suites/budgets.mdl
report() { # FIELD [OPTION...]: of the train, from the report
    report_field=$1
    shift
    "$MDLC" report --report=json "$@" $model >"$scratch/report" 2>"$scratch/err"
    tr '{,' '\n\n' <"$scratch/report" | awk -F: -v field="\"$report_field\"" '
        /"name":"fit"/ { inside = 1 }
        $1 == field && (inside || field ~ /total|arena"/) { sub(/}.*/, "", $2); print $2; exit }'
}
trained() { # PROGRAM OUT: what it takes is what it declares, and stays so
    "$1" fit --save "$2" --log json >"$scratch/log" 2>"$scratch/err" || return 1
    grown=$(number "$(grep '"event":"end"' "$scratch/log")" resident_growth_pages)
    [ "$grown" = 0 ] || { echo "$grown pages added"; return 1; }
}
build() { # NAME [OPTION...]
    build_name=$1
    shift
    "$MDLC" "$@" $model -o "$scratch/$build_name.c" && quickly "$scratch/$build_name.c" "$scratch/$build_name"
}

total=$(report total) arena=$(report arena)
check "without a budget" build once
check "it trains" trained "$scratch/once" "$scratch/right"
[ "$(report steps_again)" = 0 ] && pass || fail "without a budget" "steps run again"
before=0
for share in 90 70 50 35; do
    budget=$((total - arena + arena * share / 100))
    check "a budget of $share % of the arena" build small --budget=$budget || continue
    [ "$(report total --budget=$budget)" -le $budget ] && pass || fail "$share %" "the budget is not met"
    again=$(report flops_again --budget=$budget)
    [ "$again" -gt $before ] && pass || fail "$share %" "$again FLOPs run again, after $before"
    before=$again
    check "$share %, trained" trained "$scratch/small" "$scratch/weights"
    same "weights with $share % of the arena" "$scratch/right" "$scratch/weights"
    [ $share = 50 ] && cp "$scratch/small" "$scratch/half"
done
# What one budget has begun another goes on with.
"$scratch/half" fit --steps 3 --checkpoint "$scratch/begun" --log none >"$scratch/log" 2>&1 &&
    "$scratch/small" fit --resume "$scratch/begun" --save "$scratch/weights" --log none >"$scratch/log" 2>&1 || fail "two budgets" "$(head -n 1 "$scratch/log")"
same "a run under two budgets" "$scratch/right" "$scratch/weights"
[ "$before" -lt "$(report flops)" ] && pass || fail "35 %" "all runs again"
grep -q ', again' "$scratch/small.c" && pass || fail "text" "no call says that it runs again"
sed "s/steps 6;/steps 6; budget $budget;/" $model >"$scratch/source.mdl"
"$MDLC" "$scratch/source.mdl" -o "$scratch/source.c" 2>"$scratch/err" && pass || fail "in the source" "$(cat "$scratch/err")"

# What is said to run again does, and no more: the FLOPs of all calls that a program counts while it runs.
counted() { # FILE STEPS OPTION...: FLOPs of a step
    counted_file=$1 counted_steps=$2
    shift 2
    "$MDLC" --profile --threads=1 "$@" "$counted_file" -o "$scratch/counted.c" 2>"$scratch/err" && quickly "$scratch/counted.c" "$scratch/counted" || return 1
    # shellcheck disable=SC2086
    "$scratch/counted" fit $inputs --steps "$counted_steps" --log json >"$scratch/log" 2>"$scratch/err" || return 1
    awk -v steps="$counted_steps" '
        /"event":"profile_call"/ && /"kind":"train"/ { match($0, /"flops":[0-9]+/); sum += substr($0, RSTART + 8, RLENGTH - 8) }
        END { printf "%.0f", sum / steps }' "$scratch/log"
}
# again NAME FILE BUDGET: FLOPs counted in it and without, against what the report says of both.
again() {
    once=$(counted "$2" 3) more=$(counted "$2" 3 --budget="$3") || fail "FLOPs of $1" "$(head -n 1 "$scratch/err")"
    for budget in "" "--budget=$3"; do
        # shellcheck disable=SC2086
        "$MDLC" report --report=json --threads=1 $budget "$2" | tr '{,' '\n\n' | awk -F: '
            $1 == "\"kind\"" { inside = $2 == "\"train\"" }
            $1 == "\"flops\"" && inside { print $2 + 0; exit }'
    done >"$scratch/told"
    { read -r told_once; read -r told_more; } <"$scratch/told"
    [ -n "$once" ] && [ "$more" -gt "$once" ] && [ $((more - once)) = $((told_more - told_once)) ] && pass ||
        fail "FLOPs of $1" "$once and $more counted, $told_once and $told_more told"
}
inputs=
again "a list" $model $((total - arena + arena / 2))
printf 'use nn;\ndim B = 32, STEPS = 24;\nmodel f(x: [B, 4]) -> [B, 4] { h = x |> up: linear(96) |> gelu |> mid: linear(96) |> gelu; return down: linear(h, 4); }
train fit of f {\n    x0[b < B, c < 4] = sin(f32(4 * b + c));\n    scan t < STEPS carry h = x0 { h <- f(h); }\n    loss mean(h^2);\n    optimizer sgd(lr = 1e-4);\n    steps 3;\n}\n' >"$scratch/turns.mdl"
again "a loop" "$scratch/turns.mdl" 200000

"$MDLC" --budget=$((total - arena + 65536)) $model -o "$scratch/none.c" 2>"$scratch/err"
rc=$?
[ $rc -eq 3 ] && pass || fail "cannot be met" "exit status $rc"
grep -q 'run again already' "$scratch/err" && pass || fail "cannot be met" "$(cat "$scratch/err")"
[ ! -e "$scratch/none.c" ] && pass || fail "cannot be met" "it wrote a file"
# The least is the same whatever was asked for, and who asks for it gets it.
least=
for budget in 4096 $((total - arena + 4096)) $((total - arena + 65536)); do
    found=$("$MDLC" --budget=$budget $model -o "$scratch/none.c" 2>&1 | sed -n 's/.*needs \([0-9]*\) bytes.*/\1/p')
    : "${least:=$found}"
    [ -n "$found" ] && [ "$found" = "$least" ] && pass || fail "the least for $budget" "$found, not $least"
done
[ "$(report total --budget="$least")" -le "$least" ] && pass || fail "the least" "$least bytes are not met"

# The total that a compile declares.
declared() { sed -n 's/^ \*   total *\([0-9]*\).*/\1/p' "$1"; }
planned() { # FILE OPTION...: total and predicted nanoseconds of its train
    "$MDLC" report --report=json --threads=2 "$@" 2>"$scratch/err" | tr '{,' '\n\n' | awk -F: '
        $1 == "\"total\"" && !total { total = $2 + 0 }
        $1 == "\"kind\"" { inside = $2 == "\"train\"" }
        $1 == "\"predicted_ns\"" && inside { print total, $2 + 0; exit }'
}
least() { # WORD FILE
    "$MDLC" --threads=2 --budget="1$1" "$2" -o "$scratch/none.c" 2>&1 | sed -n 's/.*needs \([0-9]*\) bytes.*/\1/p'
}
# under SHARE WORD: the program in so many hundredths of what it can do without, with the bits that it had or, where
# sums may be rounded otherwise, nearly.
under() {
    under_name="$name, $1 %$2" budget=$((low + (total - low) * $1 / 100))
    "$MDLC" --threads=2 --budget="$budget$2" "$file" -o "$scratch/less.c" 2>"$scratch/err" && quickly "$scratch/less.c" "$scratch/less" ||
        { fail "$under_name" "$(head -n 1 "$scratch/err")"; return; }
    [ "$(declared "$scratch/less.c")" -le $budget ] && pass || fail "$under_name" "the budget is not met"
    time=$(planned "$file" --budget="$budget$2")
    [ "${time#* }" -ge "$before" ] && pass || fail "$under_name" "${time#* } ns, $before with more bytes"
    before=${time#* }
    "$scratch/less" --load "${file%.mdl}.safetensors" --steps 3 --save "$scratch/less.st" --log json >"$scratch/log" 2>"$scratch/err" || fail "$under_name" "$(head -n 1 "$scratch/err")"
    [ "$(number "$(grep '"event":"end"' "$scratch/log")" resident_growth_pages)" = 0 ] && pass || fail "$under_name" "pages were added"
    if [ -z "$2" ]; then
        same "weights of $under_name" "$scratch/whole.st" "$scratch/less.st"
    else
        "$scratch/stdiff" "$scratch/less.st" "$scratch/whole.st" 1e-4 >"$scratch/out" && pass || fail "$under_name" "$(grep -m 1 -v ok "$scratch/out")"
    fi
}
$CC -O1 tests/tools/stdiff.c -lm -o "$scratch/stdiff" || fail stdiff "does not build"
shares="75 40 0"
if [ "${LONG:-0}" != 0 ]; then
    LOOPED="crf deep flash flow gpt kalman ode perceiver physics seq2seq sinkhorn ssm stateful tree unrolled vit"
    shares="90 80 70 60 50 40 30 20 10 0"
fi
for name in ${LOOPED:-kalman gpt}; do
    file=tests/programs/$name.mdl
    "$MDLC" --threads=2 "$file" -o "$scratch/whole.c" && quickly "$scratch/whole.c" "$scratch/whole" || { fail "$name" "does not build"; continue; }
    "$scratch/whole" --load "${file%.mdl}.safetensors" --steps 3 --save "$scratch/whole.st" --log none >"$scratch/log" 2>&1 || fail "$name" "$(head -n 1 "$scratch/log")"
    total=$(declared "$scratch/whole.c") exact=$(least "" "$file")
    for word in "" ", rounding"; do
        low=$(least "$word" "$file") before=0
        [ "${low:-$total}" -lt "$total" ] && pass || fail "$name" "no budget$word makes it smaller than $total bytes"
        [ "$low" -le "$exact" ] && pass || fail "$name" "$low bytes with '$word', $exact without"
        for share in $shares; do
            under $share "$word"
        done
    done
    # What the word would give is said where nothing else fits.
    "$MDLC" --threads=2 --budget="$low" "$file" -o "$scratch/none.c" 2>"$scratch/err"
    case $? in
    0) [ "$exact" -le "$low" ] && pass || fail "$name" "without the word it takes $exact bytes at least, but fits $low" ;;
    3) grep -q ", rounding;' fits, in $low bytes" "$scratch/err" && pass || fail "$name" "without the word: $(head -n 1 "$scratch/err")" ;;
    *) fail "$name" "without the word: $(head -n 1 "$scratch/err")" ;;
    esac
done
# A ring gets rows that are made again: it holds the same ones.
cat >"$scratch/rows.mdl" <<'END'
use nn;
dim B = 64;
ring seen[100] { row: f32[64]; }
dataset digits {
    file f = "samples/data/digits.csv";
    x: f32[64] = f.columns(0..64) / 16;
    y: u8 in 0..10 = f.column(64);
}
model net(x: [B, 64]) -> [B, 10] {
    return x |> a: linear(64) |> gelu |> b: linear(64) |> gelu |> c: linear(10);
}
train fit of net on digits[B] {
    seen.push(2 * x - 1);
    loss mean(cross_entropy(net(2 * x - 1), y));
    optimizer sgd(lr = 0.1);
    steps 5;
}
END
low=$(least "" "$scratch/rows.mdl")
"$MDLC" --threads=2 "$scratch/rows.mdl" -o "$scratch/whole.c" && quickly "$scratch/whole.c" "$scratch/whole" &&
    "$MDLC" --threads=2 --budget="$low" "$scratch/rows.mdl" -o "$scratch/less.c" && quickly "$scratch/less.c" "$scratch/less" || fail "rows of a ring" "do not build"
[ "${low:-0}" -gt 0 ] && [ "$low" -lt "$(declared "$scratch/whole.c")" ] && pass || fail "rows of a ring" "no budget makes them smaller"
for program in whole less; do
    "$scratch/$program" --checkpoint "$scratch/$program.ck" --log none >"$scratch/log" 2>&1 || fail "rows of a ring" "$(head -n 1 "$scratch/log")"
done
same "rows of a ring" "$scratch/whole.ck" "$scratch/less.ck"
# More budgets than one by one: each is met, or refused with the least, which is met when asked for; less memory never
# takes less time (BUDGETS of them, 50 with LONG=1).
: "${BUDGETS:=$([ "${LONG:-0}" = 0 ] && echo 4 || echo 50)}"
curve() { # FILE OPTION...
    curve_name=${1##*/} whole=$(planned "$@")
    low=$("$MDLC" --threads=2 "$@" --budget=1 -o "$scratch/none.c" 2>&1 | sed -n 's/.*needs \([0-9]*\) bytes.*/\1/p')
    time=${whole#* } total=${whole% *} i=$BUDGETS
    [ -n "$low" ] && [ "$low" -lt "$total" ] || { fail "$curve_name" "the least is '$low' bytes, $total without a budget"; return; }
    while [ "$i" -ge 0 ]; do
        budget=$((low + (total - low) * i / BUDGETS))
        found=$(planned "$@" --budget=$budget)
        [ -n "$found" ] && [ "${found% *}" -le $budget ] && pass || fail "$curve_name in $budget" "not met: $found"
        [ "${found#* }" -ge "$time" ] && pass || fail "$curve_name in $budget" "${found#* } ns, $time with more bytes"
        [ -n "$found" ] && time=${found#* }
        i=$((i - 1))
    done
    [ "${found% *}" = "$low" ] && pass || fail "$curve_name" "the least, $low bytes, takes ${found% *}"
    found=$("$MDLC" --threads=2 "$@" --budget=$((low - 1)) -o "$scratch/none.c" 2>&1 | sed -n 's/.*needs \([0-9]*\) bytes.*/\1/p')
    [ "$found" = "$low" ] && pass || fail "$curve_name" "a byte less than $low is told to need '$found'"
}
curve tests/bench/gpt.mdl
curve tests/bench/unet.mdl
curve $model
if [ "${LONG:-0}" != 0 ]; then
    curve tests/unit/programs/04_resnet20.mdl -DB=8
    curve tests/unit/programs/06_chargru.mdl
    curve tests/unit/programs/07_lstm_lm.mdl
    curve tests/suites/feedback.mdl
fi
# A batch in parts of its rows: what an evaluation gives keeps its bits, sums over the rows of a train need the word.
file=tests/suites/parts.mdl
of_entry() { # KIND FIELD BUDGET
    "$MDLC" report --report=json --budget="$3" $file | tr '{,' '\n\n' | awk -F: -v kind="\"$1\"" -v field="\"$2\"" '
        $1 == "\"kind\"" { inside = $2 == kind }
        $1 == field && inside { print $2; exit }'
}
exact=$(least "" $file) low=$(least ", rounding" $file)
"$MDLC" --threads=3 $file -o "$scratch/whole.c" && quickly "$scratch/whole.c" "$scratch/whole" || fail parts "does not build"
"$MDLC" --threads=3 --budget="$low, rounding" $file -o "$scratch/less.c" 2>"$scratch/err" && quickly "$scratch/less.c" "$scratch/less" || fail parts "$(head -n 1 "$scratch/err")"
[ $((low * 2)) -le "$exact" ] && pass || fail parts "$low bytes in parts, $exact without"
[ "$(declared "$scratch/less.c")" -le "$low" ] && pass || fail parts "$(declared "$scratch/less.c") bytes declared, of $low"
for kind in train eval; do
    [ "$(of_entry $kind parts "1 GiB, rounding")" = 1 ] && pass || fail "parts of $kind" "without need"
    [ "$(of_entry $kind parts "$low, rounding")" -gt 1 ] && pass || fail "parts of $kind" "its rows are made at once"
done
for made in whole less; do
    check "parts, $made, trained" trained "$scratch/$made" "$scratch/$made.st"
    "$scratch/$made" fit --steps 3 --save "$scratch/$made.3" --log none >"$scratch/log" 2>&1 || fail "parts, $made" "$(head -n 1 "$scratch/log")"
done
"$scratch/stdiff" "$scratch/less.3" "$scratch/whole.3" 1e-4 >"$scratch/out" && pass || fail parts "$(grep -m 1 -v ok "$scratch/out")"
for seed in 0 1 2 3 4 5; do
    "$scratch/whole" fit --seed $seed --save "$scratch/$seed.st" --log none >"$scratch/log" 2>&1 || fail "parts, seed $seed" "$(head -n 1 "$scratch/log")"
    for made in whole less; do
        "$scratch/$made" eval --load "$scratch/$seed.st" --log json 2>&1 | grep '"event":"eval"' >"$scratch/$made.eval"
    done
    [ -s "$scratch/whole.eval" ] && pass || fail parts "no evaluation"
    same "an evaluation in parts, seed $seed" "$scratch/whole.eval" "$scratch/less.eval"
done
for threads in 1 2; do
    OMP_NUM_THREADS=$threads "$scratch/less" fit --save "$scratch/threads.st" --log none >"$scratch/log" 2>&1 || fail "parts, $threads threads" "$(head -n 1 "$scratch/log")"
    same "parts, $threads threads" "$scratch/less.st" "$scratch/threads.st"
done
for wrong in '1 GiB, round' '1 GiB,' ', rounding' 'rounding'; do
    "$MDLC" --budget="$wrong" $model -o "$scratch/none.c" 2>"$scratch/err"
    [ $? -eq 2 ] && grep -q "'160 MiB, rounding'" "$scratch/err" && pass || fail "--budget=$wrong" "$(head -n 1 "$scratch/err")"
done
summary budgets
