#!/bin/sh
# The outside of emitted programs: weights that PyTorch wrote load as they are and give its outputs,
# what is saved opens in Python, the names of `@name` hold in all files, and the hosts of samples/hosts
# train a model as its own main does. The files of tests/parity come from make_interop.py. What needs
# Python or a C++ compiler is skipped where it is absent.
set -u
. tests/lib.sh
parity=tests/parity
: "${PYTHON:=python3}"

# numbers FILE.npy: its f32 elements, one a line.
numbers() {
    od -An -v -tf4 -w4 -j $((10 + $(od -An -tu2 -j8 -N2 "$1"))) "$1" | tr -d ' '
}

# near NAME FILE REFERENCE: arrays with the same header whose elements differ by at most 1e-5.
near() {
    cmp -s -n 128 "$2" "$3" || { fail "$1" "another type or shape"; return; }
    numbers "$2" >"$scratch/left" && numbers "$3" >"$scratch/right"
    near_worst=$(paste "$scratch/left" "$scratch/right" | awk '
        NF != 2 { bad = 1 }
        { d = $1 - $2; d = d < 0 ? -d : d; worst = d > worst ? d : worst; most += $2 * $2 }
        END { print bad || !most || !(worst <= 1e-5) ? "no, by " worst : "yes" }')
    [ "$near_worst" = yes ] && pass || fail "$1" "$near_worst"
}
says() { # NAME STATUS TEXT COMMAND...: the last line of standard error
    says_name=$1 says_status=$2 says_text=$3
    shift 3
    "$@" >/dev/null 2>"$scratch/err"
    [ $? -eq "$says_status" ] && tail -n 1 "$scratch/err" | grep -qF -e "$says_text" && pass || fail "$says_name" "$(tail -n 1 "$scratch/err")"
}
program() { # NAME OPTION...: samples/pytorch/NAME.mdl as $scratch/NAME
    program_name=$1
    shift
    "$MDLC" "$@" samples/pytorch/"$program_name".mdl -o "$scratch/$program_name.c" && quickly "$scratch/$program_name.c" "$scratch/$program_name" ||
        { fail "$program_name" "does not build"; summary interop; exit 1; }
    check "$program_name: test" "$MDLC" test samples/pytorch/"$program_name".mdl
    check "$program_name: strict" $CC $STRICT_FLAGS -fsyntax-only "$scratch/$program_name.c"
    # What the names say stands in a dumped graph too.
    "$MDLC" "$@" --dump=build samples/pytorch/"$program_name".mdl >"$scratch/dump.mdl" &&
        "$MDLC" --dump=build "$scratch/dump.mdl" >"$scratch/dump" || fail "$program_name" "is not dumped"
    same "$program_name: dump" "$scratch/dump.mdl" "$scratch/dump"
}

# ---- weights of PyTorch ----
program gpt2 -D T=8 -D V=32 -D C=16 -D H=2 -D S=12
program lenet -D wide=8
gpt() { "$scratch/gpt2" "$@"; }
gpt predict --load $parity/gpt2.safetensors --in tok=$parity/gpt2_tok.npy --out "$scratch/gpt2.npy" \
    --save "$scratch/gpt2.safetensors" || fail gpt2 "does not run"
near gpt2 "$scratch/gpt2.npy" $parity/gpt2_out.npy
"$scratch/lenet" predict --load $parity/lenet.safetensors --in x=$parity/lenet_x.npy --out "$scratch/lenet.npy" \
    --save "$scratch/lenet.safetensors" || fail lenet "does not run"
near lenet "$scratch/lenet.npy" $parity/lenet_out.npy
# What is saved are the same tensors, and no others.
for net in gpt2 lenet; do
    check "$net: saved" "$BUILD/tests/tools/stdiff" "$scratch/$net.safetensors" $parity/$net.safetensors 0
    check "$net: no others" "$BUILD/tests/tools/stdiff" $parity/$net.safetensors "$scratch/$net.safetensors" 0
done
# That a wrong weight, and blocks in another order, would be seen.
LC_ALL=C sed 's/h\.0\.ln_1/h.9.ln_1/; s/h\.1\.ln_1/h.0.ln_1/; s/h\.9\.ln_1/h.1.ln_1/' $parity/gpt2.safetensors >"$scratch/planted"
gpt predict --load "$scratch/planted" --in tok=$parity/gpt2_tok.npy --out "$scratch/planted.npy" || fail planted "does not run"
(near planted "$scratch/planted.npy" $parity/gpt2_out.npy) | grep -q 'FAIL planted: no, by' && pass || fail planted "blocks in another order are not seen"

# ---- names ----
gpt info >"$scratch/info"
grep -q '^  h\.{}\.attn\.c_attn\.weight .*\[2, 48, 16\].* weight, transposed in files$' "$scratch/info" && pass || fail info "$(grep c_attn.weight "$scratch/info")"
grep -q '^  mdlc\.tune\.block\.attn\.c_attn\.weight\.m ' "$scratch/info" && pass || fail info "a slot has another name"
LC_ALL=C sed 's/h\.1\.ln_1\.bias/h.2.ln_1.bias/' $parity/gpt2.safetensors >"$scratch/other"
says "an unknown block" 1 "unknown tensor 'h.2.ln_1.bias'; tensor 'h.1.ln_1.bias' is missing" \
    gpt predict --load "$scratch/other" --in tok=$parity/gpt2_tok.npy
says "of no block" 2 "the model has no weights under 'h.2'" \
    gpt predict --load $parity/gpt2.safetensors --only h.2 --in tok=$parity/gpt2_tok.npy
# One block of a file; the other is drawn.
gpt predict --load "$scratch/other" --only h.0 --seed 3 --in tok=$parity/gpt2_tok.npy --out "$scratch/x.npy" --save "$scratch/part" || fail only "does not load"
"$BUILD/tests/tools/stdiff" "$scratch/part" $parity/gpt2.safetensors 0 >"$scratch/diff"
[ "$(grep -c "^ok *h\.0\." "$scratch/diff")" = 12 ] && [ "$(grep -c "^ok *h\.1\." "$scratch/diff")" = 0 ] && pass || fail only "$(cat "$scratch/diff")"

# ---- layers ----
# fc1: two products of 2 * 32 * 20 * 48 (forward, weight), 32 * 48 for the bias and for its gradient.
# fc2: three products of 2 * 32 * 48 * 10 (also its input), 32 * 10 twice. net: relu and its derivative
# of 32 * 48, whose result is kept. The rest: 32 * 10 differences, squares and additions, a factor, and
# two for each of 1,498 parameters; what is kept are the differences.
"$MDLC" tests/suites/layers.mdl -o "$scratch/layers.c" && quickly "$scratch/layers.c" "$scratch/layers" &&
    "$scratch/layers" info >"$scratch/info" || fail layers "does not run"
sed -n "/^layers in a step of 'fit'/,/^\$/p" "$scratch/info" | sed '1,2d; /^$/d; s/^ *//; s/\([0-9]\),/\1_/; s/  */ /g' >"$scratch/costs"
cat >"$scratch/expected" <<'END'
net [32_ 10] 0 6144 3072
net.fc1 [32_ 48] 1008 0 125952
net.fc2 [32_ 10] 490 0 92800
outside of layers 0 1280 3957
END
same "layers" "$scratch/expected" "$scratch/costs"
# In loops, too, the layers together are the entry.
for net in gpt2 lenet; do
    "$scratch/$net" info | awk '
        /^layers in a/ { of = $6; gsub(/[^a-z]/, "", of) }
        /^entries/ { entries = 1 }
        NF == 0 { entries = 0 }
        entries && NR > 3 { flops[$1] = $4 }
        of != "" && /^$/ { exit }
        of != "" && $NF ~ /^[0-9]+$/ { sum += $NF; bytes += $(NF - 1) }
        END { exit !(sum > 100000 && sum == flops[of] && bytes > 1000) }' && pass || fail "$net: layers" "are not the entry"
done

# ---- lookups ----
# Of a table of 32,000 bytes four rows are read. SGD clears the gradient, reads it and the table and
# writes the table; Adam's clip reads the gradient once more, and its update two slots both ways.
"$MDLC" report tests/suites/table.mdl >"$scratch/report"
grep -q '^  the gradient of net.table is zero but in rows that were looked up; 128000 bytes a step are for all rows of its table of 32000$' "$scratch/report" &&
    grep -q '^  the gradient of net.table .*; 288000 bytes a step' "$scratch/report" && pass || fail "lookups" "$(grep gradient "$scratch/report")"
"$MDLC" report --format=json tests/suites/table.mdl >"$scratch/report"
[ "$(tr -d '\n' <"$scratch/report" | grep -o '"sparse_gradients":\[{"layer":"net.table","table_bytes":32000,"swept_bytes":[0-9]*}\]' | grep -o '[0-9]*}' | tr -d '\n')" = '128000}288000}' ] &&
    pass || fail "lookups: JSON" "$(grep -o '"sparse_gradients":[^]]*' "$scratch/report")"
# Nor of what is made dense by another use, nor of rows that no data choose.
"$MDLC" report tests/suites/lookups.mdl >"$scratch/report" || fail "lookups" "no report"
[ "$(grep -c 'looked up' "$scratch/report")" = 2 ] && [ "$(grep -c 'gradient of looked.e is zero' "$scratch/report")" = 2 ] &&
    pass || fail "lookups: dense" "$(grep 'looked up' "$scratch/report")"
"$MDLC" report tests/suites/layers.mdl | grep -q 'looked up' && fail "lookups" "in a program without" || pass

# ---- checkpoints ----
# The weights in them have the names of files too: one loads as weights, and a resume gives the bytes
# of a run that was not stopped.
cp $parity/gpt2_tok.npy "$scratch/next.npy"
tune() { gpt tune --in tok=$parity/gpt2_tok.npy --in next="$scratch/next.npy" --log none "$@"; }
tune --steps 6 --load $parity/gpt2.safetensors --save "$scratch/six" --checkpoint "$scratch/six.c" &&
    tune --steps 2 --load $parity/gpt2.safetensors --checkpoint "$scratch/two.c" --save "$scratch/two" &&
    tune --steps 6 --resume "$scratch/two.c" --save "$scratch/again" --checkpoint "$scratch/again.c" || fail checkpoint "does not run"
same resume "$scratch/six" "$scratch/again"
same "resume: checkpoint" "$scratch/six.c" "$scratch/again.c"
gpt predict --load "$scratch/two.c" --in tok=$parity/gpt2_tok.npy --out "$scratch/c.npy" --save "$scratch/c" || fail "weights of a checkpoint" "do not load"
same "weights of a checkpoint" "$scratch/two" "$scratch/c"
cmp -s "$scratch/two" "$scratch/six" && fail "six steps" "give the weights of two" || pass

# ---- hosts ----
# The emitted main's own run, and programs that train the same rows in the same order by the library.
hosts=samples/hosts table=samples/data/diabetes.csv
"$MDLC" --threads=1 $hosts/regress.mdl -o "$scratch/main.c" && $CC -O0 "$scratch/main.c" -lm -o "$scratch/main" &&
    "$MDLC" --no-main --threads=1 --report=json $hosts/regress.mdl -o "$scratch/regress.c" -H "$scratch/regress.h" >"$scratch/regress.json" &&
    $CC -O0 -fPIC -c "$scratch/regress.c" -o "$scratch/regress.o" &&
    "$scratch/main" --log none --save "$scratch/main.w" || fail hosts "do not build"
# figures NAME WEIGHTS: what a host printed of its evaluation against `eval` of its weights.
figures() {
    "$scratch/main" eval --load "$2" --log json >"$scratch/eval"
    sed -n 's/^\([0-9]*\) rows: loss \(.*\), r2 \(.*\)$/\1 \2 \3/p' "$scratch/said" >"$scratch/figures"
    echo "$(number "$(cat "$scratch/eval")" rows) $(number "$(cat "$scratch/eval")" loss) $(number "$(cat "$scratch/eval")" r2)" |
        paste -d ' ' "$scratch/figures" - | awk '
            function off(a, b) { return a - b > 1e-7 * b || b - a > 1e-7 * b }
            NF == 6 && $1 == 88 && $1 == $4 && $2 > 0 && $3 > 0 && !off($2, $5) && !off($3, $6) { good = 1 }
            END { exit !good }' && pass || fail "$1" "$(cat "$scratch/said" "$scratch/eval")"
}
if have g++ && "$scratch/main" info >/dev/null; then
    check "a host in C++" g++ -std=c++17 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -O0 -I"$scratch" \
        $hosts/regress.cpp "$scratch/regress.o" -lm -o "$scratch/host"
    "$scratch/host" $table "$scratch/host.w" >"$scratch/said" 2>&1 && pass || fail "a host in C++" "$(cat "$scratch/said")"
    same "a host in C++: weights" "$scratch/main.w" "$scratch/host.w"
    figures "a host in C++: evaluation" "$scratch/host.w"
    "$scratch/host" "$scratch/none.csv" "$scratch/host.w" >/dev/null 2>&1 && fail "a host without its table" "ends well" || pass
else
    skip "a host in C++" "no g++"
fi

# ---- Python ----
python() { # NAME MODULES
    have "$PYTHON" || { skip "$1" "no $PYTHON"; return 1; }
    "$PYTHON" -c "import $2" 2>/dev/null || { skip "$1" "no Python package of: $2"; return 1; }
}
if python "safetensors" "safetensors, numpy"; then
    check "safetensors" "$PYTHON" tests/suites/interop.py "$scratch/gpt2.safetensors" $parity/gpt2.safetensors
    check "safetensors: a checkpoint" "$PYTHON" tests/suites/interop.py "$scratch/two.c" "$scratch/two"
    LC_ALL=C sed 's/"F32"/"F23"/' "$scratch/two" >"$scratch/damaged"
    "$PYTHON" tests/suites/interop.py "$scratch/damaged" "$scratch/two" >/dev/null 2>&1 && fail "safetensors: a damaged file" "opens" || pass
fi
if python "a host in Python" "ctypes"; then
    $CC -shared "$scratch/regress.o" -lm -o "$scratch/regress.so" || fail "a host in Python" "no shared library"
    "$PYTHON" -B $hosts/regress.py "$scratch/regress.so" "$scratch/regress.json" $table "$scratch/python.w" >"$scratch/said" 2>&1 && pass ||
        fail "a host in Python" "$(cat "$scratch/said")"
    same "a host in Python: weights" "$scratch/main.w" "$scratch/python.w"
    figures "a host in Python: evaluation" "$scratch/python.w"
    mkdir "$scratch/types" "$scratch/saved"
    "$MDLC" --no-main --report=json tests/suites/host.mdl -o "$scratch/types/host.c" >"$scratch/types/host.json" &&
        $CC -O0 -fPIC -shared "$scratch/types/host.c" -lm -o "$scratch/types/host.so" || fail "a host in Python: types" "no shared library"
    "$PYTHON" -B tests/suites/host.py "$scratch/types/host.so" "$scratch/types/host.json" "$scratch/saved" >"$scratch/said" 2>&1 && pass ||
        fail "a host in Python: types" "$(tail -n 3 "$scratch/said")"
    grep -q '^without numpy$' "$scratch/said" && skip "a host in Python: arrays of numpy" "no Python package numpy"
fi
summary interop
