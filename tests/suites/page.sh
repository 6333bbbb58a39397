#!/bin/sh
# mdlc report --format=html: the JSON in the page is the report's, names with markup do no harm, and a headless
# browser shows the figures of the JSON, for every plan.
set -u
. tests/lib.sh
: "${PYTHON:=python3}"
have "$PYTHON" || { skip "the page of a report" "no $PYTHON"; summary page; exit; }

cat >"$scratch/odd.mdl" <<'END'
use nn;
dim B = 8;
model m(x: [B, 3]) -> [B, 2] {
    @name("a</script><script>throw 1;<!--") param w: [3, 2] ~ normal(0, 1);
    h[b, j] = sum[i] x[b, i] * w[i, j];
    return h |> fc: linear(out = 2);
}
train fit(x: [B, 3], y: [B, 2]) of m { loss mean((m(x) - y)^2); optimizer adam(lr = 0.1); clip norm(1.0); steps 3; }
END
# page NAME OPTION... FILE: the page, and beside it the JSON
page() {
    page_name=$1
    shift
    "$MDLC" report --format=json --what-if "$@" >"$scratch/$page_name.json" 2>"$scratch/err" && pass || fail "$page_name" "$(head -n 1 "$scratch/err")"
    "$MDLC" report --format=html "$@" >"$scratch/$page_name.html" 2>"$scratch/err" && pass || fail "$page_name" "$(head -n 1 "$scratch/err")"
    "$PYTHON" - "$scratch/$page_name" <<'END' >"$scratch/said" 2>&1 && pass || fail "$page_name: its JSON" "$(tail -n 1 "$scratch/said")"
import html.parser, json, sys

class Scripts(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.text, self.id, self.links = {}, None, []
    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.id = attrs.get("id", "code") if tag == "script" else None
        self.links += [v for k, v in attrs.items() if k in ("src", "href")]
    def handle_data(self, data):
        if self.id:
            self.text[self.id] = self.text.get(self.id, "") + data
    def handle_endtag(self, tag):
        self.id = None

s = Scripts()
s.feed(open(sys.argv[1] + ".html").read())
want = json.load(open(sys.argv[1] + ".json"))
assert set(s.text) == {"report", "plans", "code"} and not s.links, (list(s.text), s.links)
assert json.loads(s.text["report"]) == want
plans = json.loads(s.text["plans"])
curve = want["what_if"]["curve"] if want["what_if"] else []
assert [p["report"]["regions"]["total"] for p in plans] == [c["total"] for c in curve]
for report in [want] + [p["report"] for p in plans]:
    for e in report["entries"]:
        ends = [b["offset"] + b["bytes"] for b in e["buffers"]]
        assert max(ends, default=0) == e["arena_bytes"], (e["name"], max(ends, default=0))
        for i, a in enumerate(e["buffers"]):
            assert 0 <= a["first"] <= a["last"] < e["steps"], a
            for b in e["buffers"][:i]:
                both = a["first"] <= b["last"] and b["first"] <= a["last"]
                apart = a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]
                assert not both or apart, (a, b)
        live = sum(b["bytes"] for b in e["buffers"] if b["first"] <= e["peak"]["step"] <= b["last"])
        assert live == sum(v["bytes"] for v in e["peak"]["live"]), e["name"]
        for b in e["buffers"]:
            assert b["why"] or b["role"] in ("derivative", "update", "value"), b
            assert (b["role"] == "workspace") == b["workspace"] and (b["kept"] or b["role"] != "saved"), b
        of = lambda v: (v["name"], v["bytes"], v["line"], v["layer"], v["role"])
        assert sorted(map(of, e["peak"]["live"])) == sorted(of(b) for b in e["buffers"] if b["first"] <= e["peak"]["step"] <= b["last"])
        assert all(v["why"].startswith(b["why"]) for v in e["peak"]["live"] for b in e["buffers"] if of(b) == of(v) and of(v)[4] != "value"), e["name"]
END
}
page digits samples/digits.mdl
page loops tests/programs/kalman.mdl
page odd "$scratch/odd.mdl"
page budget --budget=700000 samples/digits.mdl
printf 'entry twice(x: [4]) { return y = 2 * x; }\n' >"$scratch/entry.mdl"
page entry "$scratch/entry.mdl"
"$MDLC" report --format=html --budget=700000 samples/digits.mdl 2>&1 | cmp -s - "$scratch/budget.html" && pass || fail "the same page" "another one"
"$MDLC" --report=html samples/digits.mdl -o "$scratch/d.c" >"$scratch/said" 2>&1
[ $? -eq 2 ] && grep -q "mdlc report --format=html, not beside 'compile'" "$scratch/said" && pass || fail "beside a compile" "$(cat "$scratch/said")"

browser=
for tool in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || ! have $tool || browser=$tool
done
if [ -z "$browser" ]; then
    skip "the page in a browser" "no chromium"
    summary page
    exit
fi
for name in digits loops odd budget entry; do
    # Every plan and every entry is chosen before the page is read back, and errors are noted in it.
    "$PYTHON" - "$scratch/$name.html" "$scratch/$name.test.html" <<'END'
import sys
text = open(sys.argv[1]).read()
first = "<script>window.onerror = m => { document.documentElement.dataset.error = m; };</script>"
last = """<script>
const seen = [];
for (let k = plans.length - 1; k >= 0; k--) {
  choose(k);
  seen.push([k, at("planned").dataset.value, at("lives").querySelectorAll(".buffer").length,
             [...document.querySelectorAll(".point.chosen")].map(e => e.dataset.total)].join(":"));
}
document.body.dataset.seen = seen.join(" ");
document.body.dataset.parts = [...document.querySelectorAll(".part title")].map(e => e.textContent).join(" ");
report.entries.forEach((e, i) => { chosenEntry = i; showLives(); });
document.body.dataset.done = "yes";
</script>"""
text = text.replace("<head>", "<head>" + first).replace("</body>", last + "</body>")
open(sys.argv[2], "w").write(text)
END
    timeout 120 $browser --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/profile" --dump-dom "file://$scratch/$name.test.html" >"$scratch/dom" 2>/dev/null ||
        { fail "$name in a browser" "status $?"; continue; }
    "$PYTHON" - "$scratch/dom" "$scratch/$name" <<'END' >"$scratch/said" 2>&1 && pass || fail "$name in a browser" "$(tail -n 1 "$scratch/said")"
import json, re, sys
dom, name = open(sys.argv[1]).read(), sys.argv[2]
want = json.load(open(name + ".json"))
page = open(name + ".html").read()
plans = json.loads(re.search(r'id="plans">\n(.*?)\n</script>', page, re.S).group(1))
assert "data-error" not in dom, re.search(r'data-error="([^"]*)', dom).group(1)
body = re.search(r"<body[^>]*>", dom).group(0)
assert 'data-ready="yes"' in body and 'data-done="yes"' in body, body
assert re.search(r'id="total"[^>]*data-value="%d"' % want["regions"]["total"], dom)
for part in ("params", "state", "io", "arena"):
    assert re.search(r'data-region="%s" data-value="%d"' % (part, want["regions"][part]), dom), part
reports = [want] + [p["report"] for p in plans]
curve = want["what_if"]["curve"] if want["what_if"] else []
largest = max(want["entries"], key=lambda e: e["arena_bytes"])
seen = []
for k in reversed(range(len(reports))):
    e = [e for e in reports[k]["entries"] if (e["kind"], e["name"]) == (largest["kind"], largest["name"])][0]
    point = curve[k - 1]["total"] if len(curve) > 1 else ""
    seen.append("%d:%d:%d:%s" % (k, reports[k]["regions"]["total"], len(e["buffers"]), point))
assert 'data-seen="%s"' % " ".join(seen) in body, (body, seen)
points = re.findall(r'class="point[^"]*"[^>]*data-total="(\d+)" data-flops="(\d+)"', dom)
# The last entry that was chosen, block by block.
roles = re.findall(r'class="buffer"[^>]*data-role="([a-z]*)"', dom)
assert roles == [b["role"] for b in want["entries"][-1]["buffers"]], roles
# Parts of a train stand under its steps, in their order.
parts = [c["part"] for c in sorted(largest["calls"], key=lambda c: c["step"]) if c["part"]]
runs = [p for i, p in enumerate(parts) if i == 0 or parts[i - 1] != p]
shown = re.search(r'data-parts="([^"]*)"', body).group(1)
assert shown == " ".join(runs), (shown, runs)
assert points == [(str(c["total"]), str(c["flops"])) for c in curve] or len(curve) < 2, points
if want["what_if"]:
    table = re.search(r'<table id="what">(.*?)</table>', dom, re.S).group(1)
    for c in want["what_if"]["changes"]:
        assert 'data-value="%d"' % c["total"] in table, c
END
done
summary page
