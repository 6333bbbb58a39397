#!/bin/sh
# samples/lora.mdl: adapters beside the layers of a net that stays as it is: what they are called in files, that the
# base keeps its bytes, what a step updates and keeps, files that hold a part of the weights, and merging. They go to
# peft and come from it, where $PYTHON has it: tests/parity/peft_lora.py.
set -u
. tests/lib.sh
: "${PYTHON:=python3}"
built lora || { fail lora "does not build"; summary lora; exit 0; }
cp "$program" "$scratch/lora"
base=fc1,fc2,head
run() { "$scratch/lora" "$@" --log none --seed 1 >"$scratch/log" 2>&1 || { fail "$*" "$(cat "$scratch/log")"; return 1; }; }
run base --save "$scratch/base.st" --save-only $base
run adapt --load "$scratch/base.st" --only $base --save "$scratch/adapter.st" --save-only base_model
names() { LC_ALL=C tr -c '[:print:]' '\n' <"$1" | tr '"' '\n' | grep -E '\.(weight|bias)$' | sort; }
# Names and shapes of a file of adapters are those that peft writes.
as_in_peft() { # NET FILE
    tr -c '[:print:]' '\n' <"$2" | grep -o '"[^"]*":{"dtype":"F32","shape":\[[0-9,]*\]' |
        sed "s/^\"\([^\"]*\)\".*\[\(.*\)\]/$1 \1 \2/; s/,/ /g" | LC_ALL=C sort >"$scratch/got"
    grep "^$1 " tests/parity/lora_names.txt >"$scratch/want"
    same "names of adapters: $1" "$scratch/want" "$scratch/got"
}
as_in_peft lora "$scratch/adapter.st"
names "$scratch/base.st" | tr '\n' ' ' >"$scratch/got"
echo "fc1.bias fc1.weight fc2.bias fc2.weight head.bias head.weight " | tr -d '\n' >"$scratch/want"
same "names of the base" "$scratch/want" "$scratch/got"
# The base keeps every byte while adapters learn.
run adapt --load "$scratch/base.st" --only $base --save "$scratch/kept.st" --save-only $base
cmp -s "$scratch/base.st" "$scratch/kept.st" && pass || fail "base" "its bytes have changed"
# Of rows 0 to 9, B of them: what base, base with new adapters, with trained ones, merged and from one whole file gives.
have "$PYTHON" || skip rows "no $PYTHON"
! have "$PYTHON" || "$PYTHON" - "$scratch" <<'P' || fail rows "their script fails"
import math, struct, sys
def write(name, shape, values):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % shape
    head += " " * (117 - len(head)) + "\n"
    data = b"".join(struct.pack("<f", v) for v in values)
    open("%s/%s.npy" % (sys.argv[1], name), "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
rows = [line.split(",")[:64] for line in open("samples/data/digits.csv") if line[0].isdigit()][:128]
write("x", (128, 64), [float(v) / 16 for row in rows for v in row])
write("stack_x", (4, 16), [math.sin(3 * i) for i in range(64)])
write("stack_y", (4, 10), [math.cos(5 * i) for i in range(40)])
P
logits() { # NAME OPTION...
    logits_name=$1
    shift
    run logits "$@" --in x="$scratch/x.npy" --out "$scratch/$logits_name.npy"
}
logits new --load "$scratch/base.st" --only $base
logits trained --load "$scratch/base.st" --only $base --with "$scratch/adapter.st"
run merge --load "$scratch/base.st" --only $base --with "$scratch/adapter.st" --save "$scratch/merged.st" --save-only $base
run merge --load "$scratch/base.st" --only $base --with "$scratch/adapter.st" --save "$scratch/whole.st"
logits merged --load "$scratch/merged.st" --only $base
logits whole --load "$scratch/whole.st"
run adapt --load "$scratch/base.st" --only $base --save "$scratch/both.st"
logits both --load "$scratch/both.st"
cmp -s "$scratch/trained.npy" "$scratch/both.npy" && pass || fail "two files" "are not the one that both were saved in"
cmp -s "$scratch/merged.npy" "$scratch/whole.npy" && pass || fail "merged" "what is left of the adapters adds something"
# A file that peft saved, of random adapters beside the weights of --seed 1, and what its net gives (tests/parity).
run base --steps 0 --save "$scratch/first.st" --save-only $base
logits peft --load "$scratch/first.st" --only $base --with tests/parity/peft_adapter.safetensors
apart() { # FILE FILE: the largest difference of two tables of numbers
    python3 -c 'import struct, sys
a, b = (struct.unpack("<1280f", open(f, "rb").read()[-5120:]) for f in sys.argv[1:])
print(max(abs(x - y) for x, y in zip(a, b)), max(map(abs, a)))' "$1" "$2"
}
apart tests/parity/peft_out.npy "$scratch/peft.npy" >"$scratch/apart"
awk '{ exit !($1 <= 1e-5 && $2 > 0.1) }' "$scratch/apart" && pass || fail "adapters of peft" "$(cat "$scratch/apart")"
logits bare --load "$scratch/first.st" --only $base
apart "$scratch/bare.npy" "$scratch/peft.npy" | awk '{ exit !($1 > 0.03) }' && pass || fail "adapters of peft" "change nothing"
names tests/parity/peft_adapter.safetensors >"$scratch/want"
names "$scratch/adapter.st" >"$scratch/got"
same "names of peft" "$scratch/want" "$scratch/got"
# Without adapters in the text: the base alone, whose numbers are those of step 0 exactly, and which reads what was merged.
sed '/@name/d; /= low[123]:/d; s/gelu(y\([12]\) + a[12])/gelu(y\1)/; s/return y3 + a3/return y3/; /freeze/d; /low[123]/d
    /^entry merge/,/^}/d; /^train adapt/,/^}/d; /gradcheck(adapt)/d' samples/lora.mdl >"$scratch/plain.mdl"
if "$MDLC" "$scratch/plain.mdl" -o "$scratch/plain.c" 2>"$scratch/err" && lightly emitted "$scratch/plain.c" "$scratch/plain"; then
    "$scratch/plain" logits --load "$scratch/base.st" --in x="$scratch/x.npy" --out "$scratch/plain.npy"
    cmp -s "$scratch/plain.npy" "$scratch/new.npy" && pass || fail "step 0" "is not the base"
    "$scratch/plain" logits --load "$scratch/merged.st" --in x="$scratch/x.npy" --out "$scratch/read.npy"
    cmp -s "$scratch/read.npy" "$scratch/merged.npy" && pass || fail "merged" "gives other numbers in the base alone"
else
    fail "the base alone" "$(cat "$scratch/err")"
fi
near() { # A B SHARE: two results differ by a share of the largest number at most
    "$PYTHON" - "$scratch/$1.npy" "$scratch/$2.npy" "$3" <<'P'
import struct, sys
def read(name):
    data = open(name, "rb").read()
    body = data[10 + struct.unpack("<H", data[8:10])[0]:]
    return struct.unpack("<%df" % (len(body) // 4), body)
a, b = read(sys.argv[1]), read(sys.argv[2])
size = max(map(abs, a))
off = max(abs(x - y) for x, y in zip(a, b))
print("off by %.2g of %.3g" % (off, size))
sys.exit(not (len(a) == len(b) and off <= float(sys.argv[3]) * size and size > 1))
P
}
near trained merged 1e-6 >/dev/null && pass || fail "merged" "is not what base and adapters give"
# Adapters alone have gradients and slots: 4 (64 + 128) + 4 (128 + 128) + 4 (128 + 10) numbers of 28,466.
"$MDLC" report samples/lora.mdl >"$scratch/report"
grep -A 1 '^train adapt' "$scratch/report" | grep -q 'updates 2344 of 28466 weights' && pass || fail "what is updated" "$(grep updates "$scratch/report")"
sed '/^train base/,/^}/d; /gradcheck(base)/d' samples/lora.mdl >"$scratch/adapt.mdl"
"$MDLC" --stats "$scratch/adapt.mdl" -o "$scratch/adapt.c" >"$scratch/stats"
awk -F ': ' '$1 == "state" { state = $2 } END { slots = 2 * 4 * 2344; exit !(state >= slots && state <= slots + 1024) }' "$scratch/stats" &&
    pass || fail "slots" "$(grep '^state' "$scratch/stats")"
# It has learned: the base knows five of ten.
accuracy() { number "$("$scratch/lora" eval adapt "$@" --log json | grep '"event":"eval"')" acc; }
awk -v a="$(accuracy --load "$scratch/base.st" --only $base)" -v b="$(accuracy --load "$scratch/base.st" --only $base --with "$scratch/adapter.st")" \
    'BEGIN { exit !(a < 0.55 && b > 0.93) }' && pass || fail "accuracy" "before and after"
# What is not so is said.
wrong() { # STATUS PATTERN OPTION...
    wrong_status=$1 wrong_pattern=$2
    shift 2
    exits "$*" "$wrong_status" "$wrong_pattern" sh -c '"$@" 2>"$0" >/dev/null' "$scratch/err" "$scratch/lora" "$@"
}
wrong 2 "save-only says what" adapt --save-only base_model
wrong 2 "no weights under 'nothing'" adapt --save "$scratch/x.st" --save-only nothing
wrong 2 "no weights under 'fc9'" adapt --load "$scratch/both.st" --only base_model,fc9
wrong 2 "second file beside --load" adapt --with "$scratch/adapter.st"
wrong 1 "cannot open" adapt --load "$scratch/both.st" --with "$scratch/absent.st"
wrong 1 "tensor .* is missing" adapt --load "$scratch/base.st"
sed 's/lora_A/lora_X/' "$scratch/adapter.st" >"$scratch/odd.st"
wrong 1 "unknown tensor 'base_model.model.fc1.lora_X.weight'" adapt --load "$scratch/both.st" --with "$scratch/odd.st"
# ---- peft ----
# A stack, whose base keeps the names and the order of axes of its own file: so is what adapters are called.
lightly built tests/suites/adapters.mdl || fail stack "does not build"
cp "$program" "$scratch/stack"
stack() { # COMMAND OPTION...
    "$scratch/stack" "$@" --in x="$scratch/stack_x.npy" --log none >"$scratch/log" 2>&1 || fail "stack $*" "$(cat "$scratch/log")"
}
stack fit --in y="$scratch/stack_y.npy" --steps 0 --save "$scratch/stack_base.st" --save-only h,head
stack fit --in y="$scratch/stack_y.npy" --steps 20 --load "$scratch/stack_base.st" --only h,head --save "$scratch/stack_adapter.st" --save-only base_model
as_in_peft adapters "$scratch/stack_adapter.st"
stack out --load "$scratch/stack_base.st" --only h,head --with "$scratch/stack_adapter.st" --out "$scratch/stack_trained.npy"

folder() { "$PYTHON" -B samples/pytorch/peft_folder.py "$@" >"$scratch/log" 2>"$scratch/err"; }
folder "$scratch/adapter.st" 4 "$scratch/folder" && same "a folder for peft" "$scratch/adapter.st" "$scratch/folder/adapter_model.safetensors" ||
    fail "a folder for peft" "$(cat "$scratch/err")"
folder "$scratch/stack_adapter.st" 12 "$scratch/stack_folder" || fail "a folder for peft" "$(cat "$scratch/err")"
exits "a folder of no adapters" 1 "'fc1.weight' is no weight of an adapter" folder "$scratch/base.st" 4 "$scratch/none"
exits "a folder of no weights" 1 "no safetensors file" folder "$scratch/x.npy" 4 "$scratch/none"
exits "a folder without alpha" 1 "ALPHA is a number" folder "$scratch/adapter.st" nan "$scratch/none"
sed 's/fc1.lora_B/fc0.lora_B/' "$scratch/adapter.st" >"$scratch/halves.st"
exits "a folder of halves" 1 "halves of some" folder "$scratch/halves.st" 4 "$scratch/none"

peft() { # NAME ARGUMENT...: of tests/parity/peft_lora.py
    peft_name=$1
    shift
    "$PYTHON" -B tests/parity/peft_lora.py "$@" >"$scratch/said" 2>&1 && pass || fail "$peft_name" "$(tail -n 3 "$scratch/said")"
}
if "$PYTHON" -c "import peft, torch, transformers" 2>/dev/null; then
    peft "adapters to peft" read lora "$scratch/base.st" "$scratch/folder" "$scratch/x.npy" "$scratch/trained.npy"
    peft "adapters of a stack to peft" read adapters "$scratch/stack_base.st" "$scratch/stack_folder" "$scratch/stack_x.npy" "$scratch/stack_trained.npy"
    for kind in float32 bfloat16; do
        peft "peft saves in $kind" write lora "$scratch/base.st" "$scratch/theirs" "$scratch/x.npy" "$scratch/want.npy" $kind
        logits got --load "$scratch/base.st" --only $base --with "$scratch/theirs/adapter_model.safetensors"
        near want got 1e-5 >"$scratch/said" && pass || fail "adapters of peft in $kind" "$(cat "$scratch/said")"
        peft "peft saves a stack in $kind" write adapters "$scratch/stack_base.st" "$scratch/theirs" "$scratch/stack_x.npy" "$scratch/want.npy" $kind
        stack out --load "$scratch/stack_base.st" --only h,head --with "$scratch/theirs/adapter_model.safetensors" --out "$scratch/got.npy"
        near want got 1e-5 >"$scratch/said" && pass || fail "adapters of peft for a stack in $kind" "$(cat "$scratch/said")"
    done
    # A scale of another alpha is seen.
    folder "$scratch/adapter.st" 8 "$scratch/folder"
    "$PYTHON" -B tests/parity/peft_lora.py read lora "$scratch/base.st" "$scratch/folder" "$scratch/x.npy" "$scratch/trained.npy" >"$scratch/said" 2>&1 &&
        fail "another alpha" "gives the same" || { grep -q 'outputs differ' "$scratch/said" && pass || fail "another alpha" "$(tail -n 3 "$scratch/said")"; }
else
    skip "adapters to and from peft" "$PYTHON has no peft"
fi
summary lora
