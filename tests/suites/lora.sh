#!/bin/sh
# samples/lora.mdl: adapters beside the layers of a net that stays as it is: what they are called in files, that the
# base keeps its bytes, what a step updates and keeps, files that hold a part of the weights, and merging.
set -u
. tests/lib.sh
built lora || { fail lora "does not build"; summary lora; exit 0; }
cp "$program" "$scratch/lora"
base=fc1,fc2,head
run() { "$scratch/lora" "$@" --log none --seed 1 >"$scratch/log" 2>&1 || { fail "$*" "$(cat "$scratch/log")"; return 1; }; }
run base --save "$scratch/base.st" --save-only $base
run adapt --load "$scratch/base.st" --only $base --save "$scratch/adapter.st" --save-only base_model
names() { LC_ALL=C tr -c '[:print:]' '\n' <"$1" | tr '"' '\n' | grep -E '\.(weight|bias)$' | sort; }
names "$scratch/adapter.st" >"$scratch/got"
for layer in fc1 fc2 head; do
    echo "base_model.model.$layer.lora_A.weight"
    echo "base_model.model.$layer.lora_B.weight"
done | sort >"$scratch/want"
same "names of adapters" "$scratch/want" "$scratch/got"
names "$scratch/base.st" | tr '\n' ' ' >"$scratch/got"
echo "fc1.bias fc1.weight fc2.bias fc2.weight head.bias head.weight " | tr -d '\n' >"$scratch/want"
same "names of the base" "$scratch/want" "$scratch/got"
# The base keeps every byte while adapters learn.
run adapt --load "$scratch/base.st" --only $base --save "$scratch/kept.st" --save-only $base
cmp -s "$scratch/base.st" "$scratch/kept.st" && pass || fail "base" "its bytes have changed"
# Of rows 0 to 9, B of them: what base, base with new adapters, with trained ones, merged and from one whole file gives.
python3 - "$scratch/x.npy" <<'P' || skip rows "no python3"
import struct, sys
rows = [line.split(",")[:64] for line in open("samples/data/digits.csv") if line[0].isdigit()][:128]
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (128, 64), }"
head += " " * (117 - len(head)) + "\n"
open(sys.argv[1], "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + b"".join(struct.pack("<f", float(v) / 16) for row in rows for v in row))
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
# Where peft is installed (MDLC_PEFT names a python that has it) it loads what the sample saved.
if [ -n "${MDLC_PEFT:-}" ] && "$MDLC_PEFT" -c 'import peft' 2>/dev/null; then
    check "read by peft" "$MDLC_PEFT" tests/parity/peft_files.py read "$scratch/base.st" "$scratch/x.npy" "$scratch/adapter.st" "$scratch/trained.npy"
else
    skip "read by peft" "no MDLC_PEFT=python with peft"
fi
# Without adapters in the text: the base alone, whose numbers are those of step 0 exactly, and which reads what was merged.
sed '/@name/d; /= low[123]:/d; s/gelu(y\([12]\) + a[12])/gelu(y\1)/; s/return y3 + a3/return y3/; /freeze/d; /low[123]/d
    /^entry merge/,/^}/d; /^train adapt/,/^}/d; /gradcheck(adapt)/d' samples/lora.mdl >"$scratch/plain.mdl"
if "$MDLC" "$scratch/plain.mdl" -o "$scratch/plain.c" 2>"$scratch/err" && emitted "$scratch/plain.c" "$scratch/plain"; then
    "$scratch/plain" logits --load "$scratch/base.st" --in x="$scratch/x.npy" --out "$scratch/plain.npy"
    cmp -s "$scratch/plain.npy" "$scratch/new.npy" && pass || fail "step 0" "is not the base"
    "$scratch/plain" logits --load "$scratch/merged.st" --in x="$scratch/x.npy" --out "$scratch/read.npy"
    cmp -s "$scratch/read.npy" "$scratch/merged.npy" && pass || fail "merged" "gives other numbers in the base alone"
else
    fail "the base alone" "$(cat "$scratch/err")"
fi
python3 - "$scratch" <<'P' && pass || fail "merged" "is not what base and adapters give"
import struct, sys
def read(name):
    data = open("%s/%s.npy" % (sys.argv[1], name), "rb").read()
    return struct.unpack("<1280f", data[-5120:])
a, b = read("trained"), read("merged")
size = max(map(abs, a))
sys.exit(not (max(abs(x - y) for x, y in zip(a, b)) <= 1e-6 * size and size > 1))
P
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
wrong 2 "second file beside --load" adapt --with "$scratch/adapter.st"
wrong 1 "cannot open" adapt --load "$scratch/both.st" --with "$scratch/absent.st"
wrong 1 "tensor .* is missing" adapt --load "$scratch/base.st"
sed 's/lora_A/lora_X/' "$scratch/adapter.st" >"$scratch/odd.st"
wrong 1 "unknown tensor 'base_model.model.fc1.lora_X.weight'" adapt --load "$scratch/both.st" --with "$scratch/odd.st"
summary lora
