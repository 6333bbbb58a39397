#!/bin/sh
# mdlc report --what-if: each row is what a report of the changed program says; budgets of the curve are met to the
# byte, less memory never for less work; the largest batch fits and the next one does not.
set -u
. tests/lib.sh
: "${PYTHON:=python3}"
have "$PYTHON" || { skip "what changes would do" "no $PYTHON"; summary what_if; exit; }

# numbers OPTION... FILE: total, FLOPs of the train, or the exit status of a report
numbers() {
    "$MDLC" report --format=json "$@" >"$scratch/one.json" 2>/dev/null || { echo "status $?"; return; }
    "$PYTHON" -c '
import json, sys
r = json.load(open(sys.argv[1]))
print(r["regions"]["total"], [e["flops"] for e in r["entries"] if e["kind"] == "train" and e["name"] == sys.argv[2]][0])' "$scratch/one.json" fit
}
# what_if NAME OPTION... FILE: the rows, one a line, as TOTAL FLOPS FITS CHANGE
what_if() {
    what_name=$1
    shift
    "$MDLC" report --format=json --what-if "$@" >"$scratch/$what_name.json" 2>"$scratch/err" || { fail "$what_name" "$(head -n 1 "$scratch/err")"; return 1; }
    "$PYTHON" -c '
import json, sys
w = json.load(open(sys.argv[1]))["what_if"]
line = lambda s, text: print(s["total"], s.get("flops", "-"), s["fits"], text)
for s in w["changes"]: line(s, s["change"])
if "largest_batch" in w: line(w["largest_batch"], "largest " + w["largest_batch"]["change"])
for s in w["curve"]: line(s, "curve %d%s" % (s["budget"], ", rounding" if s["rounding"] else ""))
for a, b in zip(w["curve"], w["curve"][1:]):
    assert a["total"] <= b["total"], (a, b)
for i, s in enumerate(w["curve"]):
    assert all(b["flops"] > s["flops"] for b in w["curve"][:i] if s["rounding"] or not b["rounding"]), s
assert w["curve"] and all(s["total"] == s["budget"] for s in w["curve"])' "$scratch/$what_name.json" >"$scratch/$what_name.rows" 2>"$scratch/err" &&
        pass || fail "$what_name" "$(tail -n 1 "$scratch/err")"
}
# row NAME CHANGE OPTION... FILE: that row has the numbers of this report
row() {
    row_name=$1 row_change=$2
    shift 2
    want="$(numbers "$@") True $row_change"
    grep -qxF -e "$want" "$scratch/$row_name.rows" && pass || fail "$row_name: $row_change" "$want, not $(grep -F -e "$row_change" "$scratch/$row_name.rows")"
}

# ---- digits ----
model=samples/digits.mdl
batch=$(sed -n 's/^dim B = \([0-9]*\).*/\1/p' $model)
sed 's/budget [^;]*;//' $model >"$scratch/free.mdl"
cp -r samples/data "$scratch/" 2>/dev/null
sed 's/clip([^;]*;//; s/clip [^;]*;//' "$scratch/free.mdl" >"$scratch/noclip.mdl"
sed 's/optimizer adamw(.*);/optimizer sgd(lr = 0.1);/' "$scratch/free.mdl" >"$scratch/sgd.mdl"
sed 's/optimizer adamw/accumulate 2; optimizer adamw/' "$scratch/free.mdl" >"$scratch/parts.mdl"
what_if free "$scratch/free.mdl"
row free "-D B=$((batch / 2))" -DB=$((batch / 2)) "$scratch/free.mdl"
row free "-D B=$((2 * batch))" -DB=$((2 * batch)) "$scratch/free.mdl"
row free "accumulate 2; -D B=$((batch / 2)): the same rows in two parts" -DB=$((batch / 2)) "$scratch/parts.mdl"
row free "without clip" "$scratch/noclip.mdl"
row free "optimizer sgd(lr = 0.1): no slots" "$scratch/sgd.mdl"
row free "--precision=bf16" --precision=bf16 "$scratch/free.mdl"
row free "--precision='bf16(master=false)'" --precision="bf16(master=false)" "$scratch/free.mdl"
row free "--threads=1" --threads=1 "$scratch/free.mdl"
grep -q largest "$scratch/free.rows" && fail "no budget" "a largest batch" || pass
total=$(numbers "$scratch/free.mdl")
grep -qxF "$total True curve ${total% *}" "$scratch/free.rows" && pass || fail "no budget" "the curve does not end with $total"

# ---- a budget: the largest batch; loops; -D already given ----
budget=900000
what_if within --budget=$budget "$scratch/free.mdl"
most=$(sed -n 's/.*largest -D B=//p' "$scratch/within.rows")
row within "largest -D B=$most" --budget=$budget -DB="$most" "$scratch/free.mdl"
[ "$(numbers --budget=$budget -DB=$((most + 1)) "$scratch/free.mdl")" = "status 3" ] && pass || fail "the largest batch" "$((most + 1)) fits too"
what_if given -DB=32 "$scratch/free.mdl"
row given "-D B=64" -DB=64 "$scratch/free.mdl"
what_if loops tests/programs/kalman.mdl
for point in $(sed -n 's/.* True curve \([0-9]*\)$/\1/p' "$scratch/loops.rows"); do
    row loops "curve $point" --budget="$point" tests/programs/kalman.mdl
done
[ "$(grep -c curve "$scratch/loops.rows")" -ge 4 ] && pass || fail "budgets of loops" "$(cat "$scratch/loops.rows")"

# ---- the caller gives the rows: the batch is the dimension of all first extents ----
cat >"$scratch/given_rows.mdl" <<'END'
use nn;
dim T = 6, B = 4;
model m(x: [B, T]) -> [B, T] { return x |> fc: linear(out = T); }
train fit(x: [B, T], y: [B, T], rate: f32) of m { loss mean((m(x) - y)^2); optimizer sgd(lr = rate); steps 3; }
END
sed 's/optimizer/accumulate 2; optimizer/' "$scratch/given_rows.mdl" >"$scratch/given_parts.mdl"
what_if caller "$scratch/given_rows.mdl"
row caller "-D B=2" -DB=2 "$scratch/given_rows.mdl"
row caller "-D B=8" -DB=8 "$scratch/given_rows.mdl"
row caller "accumulate 2; -D B=2: the same rows in two parts" -DB=2 "$scratch/given_parts.mdl"
sed 's/y: \[B, T\]/y: [T, B]/; s/ - y)/ - transpose(y))/' "$scratch/given_rows.mdl" >"$scratch/neither.mdl"
what_if neither "$scratch/neither.mdl"
grep -q -e '-D' "$scratch/neither.rows" && fail "no batch" "$(cat "$scratch/neither.rows")" || pass

# ---- text, and programs without a train ----
"$MDLC" report --what-if --budget=$budget "$scratch/free.mdl" >"$scratch/said"
grep -q "^what if: each change of 'fit' by itself, planned\$" "$scratch/said" && grep -q '  -D B=2*[0-9]*$' "$scratch/said" && pass || fail text "$(tail -n 5 "$scratch/said")"
printf 'entry twice(x: [4]) { return y = 2 * x; }\n' >"$scratch/entry.mdl"
"$MDLC" report --what-if "$scratch/entry.mdl" | grep -q 'trains nothing' && pass || fail "no train" "no word of it"
"$MDLC" report --what-if --format=json "$scratch/entry.mdl" | "$PYTHON" -c 'import json, sys; assert json.load(sys.stdin)["what_if"] is None' && pass || fail "no train" "JSON"
printf 'entry twice(x: [4]) { return y = 2 * z; }\n' >"$scratch/wrong.mdl"
"$MDLC" report --what-if "$scratch/wrong.mdl" >"$scratch/said" 2>&1
[ $? -eq 1 ] && [ "$(grep -c error "$scratch/said")" -eq 1 ] && pass || fail "an error" "$(cat "$scratch/said")"
"$MDLC" check --what-if $model >"$scratch/said" 2>&1
[ $? -eq 2 ] && pass || fail "a check" "$(cat "$scratch/said")"
summary what_if
