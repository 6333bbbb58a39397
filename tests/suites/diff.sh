#!/bin/sh
# mdlc diff: what two reports differ in, the exit status that a build asks for, and files that are no reports.
set -u
. tests/lib.sh

report() { "$MDLC" report --format=json "$@" >"$scratch/$name.json" || fail "$name" "no report"; }
name=small && report --threads=2 samples/digits.mdl
name=large && report --threads=2 -DB=256 samples/digits.mdl
name=phases && report samples/mail.mdl
name=fewer && report -DB=16 samples/mail.mdl
total() { tr '{,' '\n\n' <"$1" | sed -n 's/^"total":\([0-9]*\).*/\1/p' | head -n 1; }
small=$(total "$scratch/small.json") large=$(total "$scratch/large.json")
more=$((large - small))

# says STATUS PATTERN ARGUMENT...: the exit status of a diff, and a line of what it prints
says() {
    status=$1 pattern=$2
    shift 2
    (cd "$scratch" && "$MDLC" diff "$@") >"$scratch/said" 2>&1
    code=$?
    [ $code -eq "$status" ] && grep -Eq -e "$pattern" "$scratch/said" && pass || fail "diff $*" "status $code: $(head -n 3 "$scratch/said" | tr '\n' '|')"
}
case $MDLC in /*) ;; *) MDLC=$PWD/$MDLC ;; esac
[ "$more" -gt 0 ] && pass || fail "reports" "the larger batch takes $large bytes, the smaller one $small"

# ---- numbers ----
says 0 "^  total  *$small  *$small\$" small.json small.json
[ "$(wc -l <"$scratch/said")" -eq 2 ] && pass || fail "a report beside itself" "$(cat "$scratch/said")"
says 1 "^  total  *$small  *$large  *\+$more  \+[0-9.]* %\$" small.json large.json
grep -q "^mdlc: the total has grown by $more bytes; --max-growth allows 0\$" "$scratch/said" && pass || fail growth "$(tail -n 1 "$scratch/said")"
for line in '^  arena ' '^train fit$' '^  FLOPs ' '^  bytes moved ' '^at the peak of train fit$' '^  fc1_linear  *32768|^  fc1_linear  *65536  *131072  *\+65536'; do
    grep -Eq "$line" "$scratch/said" && pass || fail "what grew" "no line '$line'"
done
says 0 "^  total  *$large  *$small  *-$more " large.json small.json
says 0 '^phases$' phases.json fewer.json
says 1 '^  phase 1 ' fewer.json phases.json
# Tensors by name: those of another optimizer come and go.
sed 's/optimizer adamw(.*);/optimizer sgd(lr = 0.1);/' samples/digits.mdl >"$scratch/sgd.mdl"
name=sgd && report --threads=2 "$scratch/sgd.mdl"
says 0 '^  fit.fc1.weight.m  *32768  *- ' small.json sgd.json
says 1 '^  fit.fc1.weight.m  *-  *32768 ' sgd.json small.json

# Two buffers of one name are two: those of two calls of a layer.
peak() { printf '{"version":1,"regions":{"total":5},"entries":[{"kind":"train","name":"fit","peak":{"live":[{"name":"h","bytes":%s},{"name":"h","bytes":%s}]}}]}' "$1" "$2"; }
peak 10 20 >"$scratch/twin.json"
peak 10 30 >"$scratch/twins.json"
says 0 '^  h  *20  *30  *\+10 ' twin.json twins.json
[ "$(grep -c '^  h ' "$scratch/said")" -eq 1 ] && pass || fail "buffers of one name" "$(cat "$scratch/said")"
# Many tensors of other names: pairs are found, not searched one by one.
many() { awk -v name="$1" 'BEGIN { printf "{\"version\":1,\"regions\":{\"total\":5},\"tensors\":["; for (i = 0; i < 100000; i++) printf "%s{\"name\":\"%s%d\",\"bytes\":%d}", i ? "," : "", name, i, i + 1; print "]}" }'; }
many of >"$scratch/many.json"
many to >"$scratch/others.json"
(cd "$scratch" && timeout 60 "$MDLC" diff many.json others.json) >"$scratch/said"
[ $? -eq 0 ] && [ "$(grep -c '^  [ot][fo][0-9]' "$scratch/said")" -eq 200000 ] && pass || fail "many tensors" "$(wc -l <"$scratch/said") lines"

# ---- what may grow ----
says 0 '^memory$' small.json large.json --max-growth=$more
says 1 "allows $((more - 1))\$" small.json large.json --max-growth=$((more - 1))
says 0 '^memory$' --max-growth=1GiB small.json large.json
says 0 '^memory$' small.json large.json --max-growth 100%
says 1 "allows $((small / 100))\$" small.json large.json --max-growth=1%
says 2 "wants a size such as '64 KiB' or a share such as '5%', got '-1'" small.json large.json --max-growth=-1
says 2 "got '5 percent'" small.json large.json --max-growth='5 percent'

# ---- JSON ----
(cd "$scratch" && "$MDLC" diff --format=json --max-growth=1GiB small.json large.json) >"$scratch/rows.json" 2>&1
[ $? -eq 0 ] && pass || fail JSON "$(cat "$scratch/rows.json")"
if have "${PYTHON:=python3}"; then
    "$PYTHON" - "$scratch" "$more" <<'END' >"$scratch/said" 2>&1 && pass || fail "JSON" "$(tail -n 1 "$scratch/said")"
import json, sys
folder, more = sys.argv[1], int(sys.argv[2])
rows = json.load(open(folder + "/rows.json"))
one, two = (json.load(open(f"{folder}/{n}.json")) for n in ("small", "large"))
assert rows["version"] == 1 and rows["grown"] is False and rows["allowed"] == 2 ** 30
assert rows["after"] - rows["before"] == more
pairs = {(r["section"], r["name"]): (r["before"], r["after"]) for r in rows["rows"]}
for name in ("io", "arena", "total"):
    assert pairs["memory", name] == (one["regions"][name], two["regions"][name]), name
for a, b in zip(one["entries"], two["entries"]):
    section = f"{a['kind']} {a['name']}"
    for key, name in (("flops", "FLOPs"), ("bytes_moved", "bytes moved"), ("steps", "steps")):
        assert pairs.get((section, name), (a[key], a[key])) == (a[key], b[key]), (section, name)
        assert (a[key] != b[key]) == ((section, name) in pairs), (section, name)
END
else
    skip "rows of the JSON" "no $PYTHON"
fi

# ---- what is no report ----
says 4 "cannot open 'none.json'" none.json small.json
says 4 "cannot open 'none.json'" small.json none.json
printf '{"version":1,"regions":{"total":5}' >"$scratch/cut.json"
says 4 "'cut.json' is no report of mdlc: byte 34: ',' or '}' is wanted" small.json cut.json
printf '{"version":2,"regions":{"total":5}}' >"$scratch/later.json"
says 4 "its version is 2, and this mdlc reads 1" later.json small.json
printf '{"version":1,"regions":{"total":5.5}}' >"$scratch/half.json"
says 4 "no 'regions.total'" half.json small.json
printf '{"version":1,"regions":{"total":-9223372036854775808}}' >"$scratch/below.json"
says 4 "no 'regions.total'" below.json small.json
printf '[1, 2]' >"$scratch/list.json"
says 4 "no 'version'" list.json small.json
: >"$scratch/empty.json"
says 4 'byte 0: a value is wanted' empty.json small.json
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "["; }' >"$scratch/deep.json"
says 4 'more than 64 levels' deep.json small.json
printf '{"version":1,"regions":{"total":5},"entries":{"a":[]},"tensors":[7,{"name":3},{"name":"w","bytes":"x"}],"phases":5}' >"$scratch/odd.json"
says 0 '^  total  *[0-9]*  *5 ' small.json odd.json
says 2 'wants two reports' small.json
says 2 "a third one is 'large.json'" small.json small.json large.json
says 2 "'--threads' means nothing to 'diff'" --threads=2 small.json small.json
summary diff
