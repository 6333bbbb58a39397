#!/bin/sh
# A frozen encoder of texts of MiniLM-L6's shape (six layers, 384 wide, twelve heads, 30,522 words: 89.6 MB) in front of a
# small classifier: what it gives beside PyTorch, the bound of both phases, and memory that goes back to the system.
set -u
. tests/lib.sh
have python3 || { skip encoder "no python3"; summary encoder; exit 0; }
python3 -B - "$scratch" <<'P' || { fail encoder "its data are not written"; summary encoder; exit 1; }
import random, sys
sys.path.insert(0, 'tests/suites')
import npy
random.seed(1)
rows, labels, tok, n = [], [], [], []
for i in range(14):
    words = [random.randint(0, 15260) + 15261 * (i % 2) for _ in range(32)]
    rows += [random.randint(3, 32)] + words
    labels.append(i % 2)
    if i < 4:
        n.append(rows[-33])
        tok += words
npy.write(sys.argv[1] + "/mails.npy", "(14, 33)", rows, "i", "<i4")
npy.write(sys.argv[1] + "/labels.npy", "(14,)", labels, "B", "|u1")
npy.write(sys.argv[1] + "/tok.npy", "(4, 32)", tok, "H", "<u2")
npy.write(sys.argv[1] + "/n.npy", "(4,)", n, "i", "<i4")
P
small="-D B=4 -D T=32 -D N=16"
{ cat tests/unit/programs/10_bert_phases.mdl; echo 'entry code(tok: u16[B, T] in 0..V, n: i32[B] in 1..T+1) { return bert(tok, n); }'; } >"$scratch/encoder.mdl"
# shellcheck disable=SC2086
if ! "$MDLC" $small "$scratch/encoder.mdl" -o "$scratch/encoder.c" || ! lightly emitted "$scratch/encoder.c" "$scratch/encoder"; then
    fail encoder "does not build"
    summary encoder
    exit 1
fi
run() { "$scratch/encoder" "$@" --data f="$scratch/mails.npy" --data g="$scratch/labels.npy" 2>"$scratch/err"; }

# The weights of --seed 1 are the same everywhere, so what PyTorch gives of them is a file (tests/parity/make_encoder.py).
run encode --steps 0 --seed 1 --save "$scratch/all.st" --log none && "$scratch/encoder" code --load "$scratch/all.st" --in tok="$scratch/tok.npy" --in n="$scratch/n.npy" --out "$scratch/code.npy" --log none ||
    fail "codes" "$(cat "$scratch/err")"
apart() {
    python3 -c 'import struct, sys
a, b = (struct.unpack("<1536f", open(f, "rb").read()[-6144:]) for f in sys.argv[1:])
print(max(abs(x - y) for x, y in zip(a, b)), sum(x * x for x in b))' "$1" "$2"
}
apart tests/parity/encoder_out.npy "$scratch/code.npy" >"$scratch/apart"
echo "encoder: $(cut -d ' ' -f 1 "$scratch/apart") from PyTorch's codes"
awk '{ exit !($1 <= 1e-5 && $2 > 3.999 && $2 < 4.001) }' "$scratch/apart" && pass || fail "codes" "differ by $(cat "$scratch/apart")"

# Both phases. The bound is that of the larger one, with the hand-over in it, and what the system counts at most.
run --seed 1 --epochs fit=40 --log json --log-every 100000 --save "$scratch/head.st" --save-only head >"$scratch/log" || fail "both phases" "$(cat "$scratch/err")"
event() { grep "\"event\":\"$1\"" "$scratch/log" | sed -n "${2:-1}p"; }
page=$(getconf PAGESIZE)
first=$(number "$(event phase 1)" total) second=$(number "$(event phase 2)" total)
bound=$(number "$(event end 1)" bound_bytes) peak=$(number "$(event end 2)" peak_over_process_bytes)
echo "encoder: phases of $first and $second bytes, bound $bound, peak $peak"
[ "$(number "$(event memory)" total)" = "$first" ] && [ "$first" -le "$bound" ] && [ "$bound" -le $((first + 12 * page)) ] && [ "$second" -le 400000 ] && pass ||
    fail "bound" "$bound, phases of $first and $second"
[ "$peak" -gt 85000000 ] && [ "$peak" -le "$bound" ] && pass || fail "peak" "$peak, bound $bound"
encoder=$(($(wc -c <"$scratch/all.st") / page * page - 120000))
given=$(number "$(event released)" bytes) left=$(number "$(event released)" resident_bytes)
[ "${given:-0}" -ge "$encoder" ] && pass || fail "released" "${given:-nothing} of $encoder bytes"
[ "${left:-0}" -gt 0 ] && [ $(($(number "$(event end 1)" peak_rss_bytes) - left)) -ge $((given - 16 * page)) ] && pass || fail "resident" "$left behind the switch"
[ "$(number "$(event end 2)" resident_growth_pages)" = 0 ] && pass || fail "resident" "grows in the second phase"
awk -v loss="$(number "$(event end 2)" loss)" 'BEGIN { exit !(loss > 0 && loss < 0.4) }' && pass || fail "classifier" "does not learn: $(event end 2)"
# The second phase has no offset of the encoder.
# shellcheck disable=SC2086
"$MDLC" --no-main $small "$scratch/encoder.mdl" -o "$scratch/host.c" && awk '/^int encoder_fit\(.*{$/ { inside = 1; n++ } inside && /bert|word|encoder_block/ { n = 9 } /^}/ { inside = 0 } END { exit n != 1 }' "$scratch/host.c" && pass ||
    fail "encoder_fit" "knows of the encoder"
# A train in front of what it reads is refused.
sed 's/phase encode then fit;/phase fit then encode;/' "$scratch/encoder.mdl" >"$scratch/wrong.mdl"
# shellcheck disable=SC2086
"$MDLC" check $small "$scratch/wrong.mdl" >"$scratch/err" 2>&1
[ $? -eq 1 ] && grep -q "error: .*ring\|error: .*cache" "$scratch/err" && pass || fail "order of phases" "$(cat "$scratch/err")"
summary encoder
