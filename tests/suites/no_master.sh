#!/bin/sh
# precision bf16(master = false): parameters in 16 bits (no_master.mdl), beside the same nets with parameters
# in f32: losses, bytes, files, threads, resumes, assignments, budgets, NaN; and why updates are rounded by draws.
set -u
. tests/lib.sh
. tests/losses.sh
model=tests/suites/no_master.mdl seed="--seed 3"

region() { # NAME FILE...: bytes of a region in the report
    region_name=$1
    shift
    "$MDLC" report --format=json "$@" | sed -n 's/.*"regions":.*"'"$region_name"'":\([0-9]*\).*/\1/p'
}

check "mdlc test" "$MDLC" test $model
"$MDLC" --dump=build $model >"$scratch/graph.mdl" && "$MDLC" --dump=build "$scratch/graph.mdl" >"$scratch/again.mdl" || fail dump "is not read"
same dump "$scratch/graph.mdl" "$scratch/again.mdl"

"$MDLC" $model -o "$scratch/short.c" && emitted "$scratch/short.c" "$scratch/short" $STRICT_FLAGS || { fail build "in 16 bits"; summary no_master; exit 1; }
"$MDLC" --precision=bf16 $model -o "$scratch/wide.c" && quickly "$scratch/wide.c" "$scratch/wide" || fail build "in f32"
sed '/precision bf16/d' $model >"$scratch/silent.mdl"
[ "$(region params_in_16_bits --precision="bf16(master = false)" "$scratch/silent.mdl")" = "$(region params_in_16_bits $model)" ] && pass || fail option "is not the clause"
"$MDLC" --precision=f32 $model -o - | grep -q 'md_bf16_drawn\|md_cut_bf16' && fail "--precision=f32" "does not override the clause" || pass

# Bytes: 2 for each parameter, each tensor from a multiple of 64 on. The average is f32.
"$scratch/short" info >"$scratch/info"
"$scratch/wide" info >"$scratch/wide.info"
bytes() { awk -v t="$2" -v r="$3" '$2 == t && $0 ~ " " r " " { for (i = 3; i < NF; i++) if ($(i + 1) == "bytes") n += $i } END { print n + 0 }' "$1"; }
all=$(bytes "$scratch/wide.info" F32 params)
[ "$all" -gt 100000 ] && [ "$(bytes "$scratch/info" BF16 params)" = $((all / 2)) ] && [ "$(bytes "$scratch/info" F32 params)" = 0 ] && pass || fail tensors "$(bytes "$scratch/info" BF16 params) bytes of $all"
[ "$(bytes "$scratch/info" F32 state)" = "$(bytes "$scratch/wide.info" F32 state)" ] && pass || fail state "is not that of f32"
[ "$(region params_in_16_bits $model)" = $((all / 2)) ] && [ "$(region params_in_16_bits --precision=bf16 $model)" = 0 ] && pass || fail report "says $(region params_in_16_bits $model)"
"$MDLC" report $model | grep -q "^  params .*; $((all / 2)) of it in 16 bits, f32 would take as many more" && pass || fail report "$("$MDLC" report $model | sed -n 2p)"

# Training: near that with masters, the same bits for any number of threads, and resumed.
run "$scratch/one" "$scratch/short" --threads 1
run "$scratch/twin" "$scratch/wide" --threads 1
near "beside parameters in f32" "$scratch/twin.loss" "$scratch/one.loss" 0.1
cmp -s "$scratch/one.loss" "$scratch/twin.loss" && fail rounding "changes nothing" || pass
end=$(grep '"event":"end"' "$scratch/one.log" | head -n 1)
[ "$(number "$end" peak_over_process_bytes)" -le "$(number "$end" bound_bytes)" ] && [ "$(number "$end" resident_growth_pages)" = 0 ] && pass || fail bound "$end"
for threads in 2 3; do
    run "$scratch/more" "$scratch/short" --threads $threads
    same "weights of $threads threads" "$scratch/one.st" "$scratch/more.st"
done
run "$scratch/begun" "$scratch/short" fit --steps 15 --checkpoint "$scratch/ck"
run "$scratch/all" "$scratch/short" fit --threads 1
seed=
run "$scratch/more" "$scratch/short" fit --resume "$scratch/ck"
seed="--seed 3"
same resumed "$scratch/all.st" "$scratch/more.st"

# Files: bf16 as it is; f32 to the nearest; and back.
head -c 4000 "$scratch/one.st" | grep -q '"net.fc.weight":{"dtype":"BF16"\|"fc.weight":{"dtype":"BF16"' && pass || fail weights "have no BF16"
run "$scratch/read" "$scratch/short" fit --load "$scratch/one.st" --steps 0
same "weights read and written" "$scratch/one.st" "$scratch/read.st"
run "$scratch/up" "$scratch/wide" fit --load "$scratch/one.st" --steps 0
run "$scratch/down" "$scratch/short" fit --load "$scratch/up.st" --steps 0
same "by way of f32" "$scratch/one.st" "$scratch/down.st"
run "$scratch/near" "$scratch/short" fit --load "$scratch/twin.st" --steps 0 && pass
if have python3; then
    check "f32 to the nearest" python3 tests/suites/near.py "$scratch/twin.st" "$scratch/near.st" 17
else
    skip "f32 to the nearest" "no python3"
fi

# Assignments of entries round to the nearest, whole sets too; a copy begins with the same values.
values() { sed -n 's/.*"name":"'"$2"'".*"values":\[\([^]]*\).*/\1/p' "$1" | tr ',' '\n'; }
"$scratch/short" halve --load "$scratch/one.st" --log json --checkpoint "$scratch/halved" >"$scratch/halve.log" 2>"$scratch/err" || fail halve "$(cat "$scratch/err")"
"$scratch/short" halve --resume "$scratch/halved" --log json >"$scratch/quarter.log" 2>"$scratch/err" || fail halve "$(cat "$scratch/err")"
values "$scratch/halve.log" w >"$scratch/w1"
values "$scratch/quarter.log" w >"$scratch/w2"
[ "$(wc -l <"$scratch/w1")" -ge 1023 ] && paste "$scratch/w1" "$scratch/w2" | awk '{ r = 0.3 * $1; if ($1 != 0 && ($2 / r - 1) ^ 2 > 0.0040 ^ 2) bad = 1; if ($2 != r) some = 1 } END { exit bad || !some }' && pass || fail halve "does not round to the nearest"
run "$scratch/start" "$scratch/short" fit --steps 0
if have python3; then
    PYTHONPATH=tests/suites python3 -c '
import random, npy, sys
random.seed(1)
npy.write(sys.argv[1] + "/tok.npy", "(16,)", [random.randrange(40) for _ in range(16)], "i", "<i4")
npy.write(sys.argv[1] + "/x.npy", "(16, 1, 12, 12)", [random.gauss(0, 1) for _ in range(16 * 144)], "f", "<f4")' "$scratch"
    in="--in tok=$scratch/tok.npy --in x=$scratch/x.npy"
    # shellcheck disable=SC2086
    "$scratch/short" look --load "$scratch/start.st" --log json $in >"$scratch/look.log" 2>"$scratch/err" || fail look "$(cat "$scratch/err")"
    values "$scratch/look.log" y >"$scratch/y"
    values "$scratch/look.log" z >"$scratch/z"
    [ "$(wc -l <"$scratch/y")" -ge 511 ] && paste "$scratch/y" "$scratch/z" | awk '{ d = $1 - $2; if (d * d > 1e-10 * (1 + $1 * $1)) bad = 1 } END { exit bad }' && pass || fail copy "begins with other values"
    # The evaluator gives what the program does.
    # shellcheck disable=SC2086
    "$MDLC" run --seed 3 --entry look $in $model | sed -n 's/^y .* = //p' | tr ' ' '\n' >"$scratch/e"
    paste "$scratch/y" "$scratch/e" | awk '{ d = $1 - $2; if (NF != 2 || d * d > 1e-9 * (1 + $1 * $1)) bad = 1 } END { exit bad || NR < 511 }' && pass || fail evaluator "differs"
    # The average in the place of the model is rounded, and near what the average itself gives.
    # shellcheck disable=SC2086
    "$scratch/short" look --resume "$scratch/ck" --weights avg --log json $in >"$scratch/look.log" 2>"$scratch/err" || fail "--weights" "$(cat "$scratch/err")"
    values "$scratch/look.log" y >"$scratch/y"
    values "$scratch/look.log" z >"$scratch/z"
    paste "$scratch/y" "$scratch/z" | awk '{ d = $1 - $2; if (d * d > 0.03 ^ 2 * (1 + $1 * $1)) bad = 1; if (d != 0) some = 1 } END { exit bad || !some || NR < 511 }' && pass || fail "--weights" "$(paste "$scratch/y" "$scratch/z" | tail -n 1)"
else
    skip copy "no python3"
fi

# A budget changes no bit; --checks=nan trains the same and names what spoils a weight.
least=$("$MDLC" report --threads=1 $model | sed -n 's/^  total *\([0-9]*\).*/\1/p')
if "$MDLC" --threads=1 --budget=$((least - 4000)) $model -o "$scratch/tight.c" 2>"$scratch/err" && quickly "$scratch/tight.c" "$scratch/tight"; then
    run "$scratch/tight1" "$scratch/tight" --threads 1
    same "by a budget" "$scratch/one.st" "$scratch/tight1.st"
else
    fail budget "$(head -n 1 "$scratch/err")"
fi
"$MDLC" --checks=nan $model -o "$scratch/traced.c" && quickly "$scratch/traced.c" "$scratch/traced" && run "$scratch/traced1" "$scratch/traced" --threads 1
near "--checks=nan" "$scratch/one.loss" "$scratch/traced1.loss" 0.1
sed 's/optimizer adamw(lr = 1e-3)/optimizer adamw(lr = sqrt(20.5 - f32(step)) * 1e-3)/' $model >"$scratch/spoiled.mdl"
"$MDLC" --checks=nan "$scratch/spoiled.mdl" -o "$scratch/spoiled.c" && quickly "$scratch/spoiled.c" "$scratch/spoiled" || fail spoiled "does not build"
"$scratch/spoiled" --threads 1 >"$scratch/spoiled.log" 2>&1
rc=$?
[ $rc = 4 ] && grep -qi 'nan' "$scratch/spoiled.log" && pass || fail spoiled "status $rc: $(tail -n 2 "$scratch/spoiled.log")"

# GPT-2: half of the weights and no gradient kept longer for it; all draws of updates by rows.
gpt2() { "$MDLC" --no-main --threads=2 --stats --precision="$1" tests/bench/gpt2.mdl -o "$scratch/gpt2.c" >"$scratch/gpt2.stats"; sed -n "s/^$2: //p" "$scratch/gpt2.stats"; }
whole=$(gpt2 bf16 params) arena=$(gpt2 bf16 gpt2_fit.arena)
[ "$(gpt2 "bf16(master=false)" params)" -le $((whole / 2 + 4096)) ] && [ "$(gpt2 "bf16(master=false)" gpt2_fit.arena)" -le $((arena * 101 / 100)) ] && pass || fail "GPT-2" "$(cat "$scratch/gpt2.stats")"
grep -q md_bf16_drawn "$scratch/gpt2.c" && ! grep -q 'md_bf16_drawn(.*md_rand_uniform' "$scratch/gpt2.c" && pass || fail "GPT-2" "draws one by one"

# Digits, all of their 660 steps: updates rounded by draws end where those of f32 do. Rounded to the nearest, small ones are lost.
sed 's/^    epochs 60;/    epochs 60; precision bf16(master = false);/; s/cosine(3e-3, warmup = 20)/LR/' samples/digits.mdl >"$scratch/digits.mdl"
for lr in 'cosine(3e-3, warmup = 20)' 1e-5; do
    name=$(echo "$lr" | tr -dc 'a-z0-9')
    sed "s/LR/$lr/" "$scratch/digits.mdl" >"$scratch/d.mdl"
    "$MDLC" "$scratch/d.mdl" -o "$scratch/d.c" && lightly emitted "$scratch/d.c" "$scratch/drawn" || fail digits "does not build"
    "$MDLC" --precision=f32 "$scratch/d.mdl" -o "$scratch/f.c" && lightly emitted "$scratch/f.c" "$scratch/full" || fail digits "does not build"
    sed 's/draw \* 65536.0f/0.5f * 65536.0f/' "$scratch/d.c" >"$scratch/nearest.c"
    cmp -s "$scratch/d.c" "$scratch/nearest.c" && fail nearest "is what was drawn" || pass
    lightly emitted "$scratch/nearest.c" "$scratch/nearest" || fail nearest "does not build"
    for kind in drawn full nearest; do
        "$scratch/$kind" --seed 3 --log json --log-every 1 2>/dev/null | sed -n 's/.*"event":"step".*"loss":\([^,}]*\).*/\1/p' | tail -n 50 |
            awk '{ n++; s += $1 } END { printf "%.5f\n", s / n }' >"$scratch/$name.$kind"
    done
    near=$(paste "$scratch/$name.full" "$scratch/$name.drawn" | awk '{ d = $2 / $1 - 1; print (d * d < 0.0001) }')
    [ "$near" = 1 ] && pass || fail "digits, lr $lr" "loss $(cat "$scratch/$name.drawn"), with masters $(cat "$scratch/$name.full")"
done
# At a small rate most updates are lost to the nearest, and the loss stays near log(10).
awk -v a="$(cat "$scratch/1e5.nearest")" -v b="$(cat "$scratch/1e5.full")" 'BEGIN { exit !(2.3026 - a < (2.3026 - b) / 2) }' && pass || fail nearest "$(cat "$scratch/1e5.nearest"), with masters $(cat "$scratch/1e5.full")"
summary no_master
