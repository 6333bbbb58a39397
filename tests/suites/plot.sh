#!/bin/sh
# `--plot FILE.html` of emitted programs: the page is well-formed and needs nothing else, its points are
# those of the table, thinned in bounded memory that the report shows; what cannot be written is refused
# before step 0, and a run that fails leaves the old page.
set -u
. tests/lib.sh
: "${PYTHON:=python3}"
page=$scratch/page.html

# values NAME KIND [FILE]: the points of a chart's curve, a step and a value a line.
values() {
    awk -v name="<title>$1 by step</title>" -v kind="class=\"$2\" d=" '
        /<svg/ { on = 0 } $0 == name { on = 1 }
        on && index($0, kind) { sub(/.*data-values="/, ""); sub(/ ?"\/>.*/, ""); gsub(/ /, "\n"); gsub(/,/, " "); if ($0 != "") print }' "${3:-$page}"
}
whole() { # NAME: a page from end to end, of nothing but itself
    head -n 1 "$page" | grep -q '^<!DOCTYPE html>$' && tail -n 1 "$page" | grep -q '^</html>$' && pass || fail "$1: whole" "$(tail -n 1 "$page")"
    grep -Eq 'https?:|src=|href=|@import|nan|inf' "$page" && fail "$1: alone" "$(grep -Eo '.{20}(https?:|src=|href=|@import|nan|inf).*' "$page" | head -n 1)" || pass
    have "$PYTHON" || { skip "$1: well-formed" "no $PYTHON"; return; }
    check "$1: well-formed" "$PYTHON" -c '
import sys, html.parser, xml.dom.minidom
text = open(sys.argv[1], encoding="utf-8").read()
page = xml.dom.minidom.parseString(text.replace("<!DOCTYPE html>", "", 1))
assert page.documentElement.tagName == "html" and len(page.getElementsByTagName("svg")) == text.count("<svg")
class Depth(html.parser.HTMLParser):
    open = []
    def handle_starttag(self, tag, attributes): self.open.append(tag)
    def handle_startendtag(self, tag, attributes): pass
    def handle_endtag(self, tag): assert self.open.pop() == tag, tag
depth = Depth(); depth.feed(text); depth.close()
assert depth.open == []
' "$page"
}

# ---- points ----
built digits || { fail digits "does not build"; summary plot; exit 1; }
table() { # COLUMN EVENT: of the table
    awk -F, -v column="$1" -v event="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i } $1 == event { print $2, $at }' "$scratch/table"
}
# Fewer steps than points: all of them; evaluations too.
"$program" --steps 100 --eval-every 20 --log none --log csv="$scratch/table" --log-every 1 --plot "$page" || fail "100 steps" "does not run"
whole "100 steps"
for column in loss acc grad_norm lr; do
    values $column train >"$scratch/points"
    table $column step >"$scratch/expected"
    same "100 steps: $column" "$scratch/expected" "$scratch/points"
done
for column in loss acc; do
    values $column eval >"$scratch/points"
    table $column eval >"$scratch/expected"
    [ "$(wc -l <"$scratch/points")" = 5 ] && same "100 steps: evaluations of $column" "$scratch/expected" "$scratch/points"
done
[ "$(grep -c '<svg' "$page")" = 4 ] && [ "$(grep -c validation "$page")" = 2 ] && pass || fail "charts" "$(grep -c '<svg' "$page")"
for text in '<h1>digits</h1>' '<h2>fit</h2>' '<p>digits.mdl, 100 steps, 9 epochs</p>' '>step</text>' '<title>lr by step</title>' 'prefers-color-scheme: dark'; do
    grep -qF "$text" "$page" && pass || fail "the page" "no $text"
done
# Every point has its place: the path has as many, inside the frame.
sed -n 's/.*class="train" d="\([^"]*\)".*/\1/p' "$page" | head -n 1 | sed 's/h0//g; s/[ML]/\n/g' | awk '
    NF == 2 { n++; if ($1 < 64 || $1 > 624 || $2 < 40 || $2 > 220 || $1 <= last) bad = 1; last = $1 } END { exit bad || n != 100 }' && pass || fail "places"
# More: every second one and the last, of those of the table.
"$program" --log none --log csv="$scratch/table" --log-every 1 --plot "$page" || fail "660 steps" "does not run"
values loss train >"$scratch/points"
table loss step | awk '$1 % 2 == 1 || $1 == 660' >"$scratch/expected"
same "660 steps" "$scratch/expected" "$scratch/points"
# Many more: no more points, and no larger page.
lightly built samples/hosts/regress.mdl && "$program" fit --steps 40000 --eval-every 30 --log none --plot "$page" || fail "40,000 steps" "does not run"
whole "40,000 steps"
for kind in train eval; do
    values loss $kind >"$scratch/points"
    [ "$(wc -l <"$scratch/points")" -le 513 ] && [ "$(wc -l <"$scratch/points")" -ge 257 ] && [ "$(tail -n 1 "$scratch/points" | cut -d' ' -f1)" = 40000 ] && pass ||
        fail "40,000 steps: $kind" "$(wc -l <"$scratch/points") points"
    awk 'NR > 2 && $1 != 40000 && $1 - last != by { bad = 1 } { by = $1 - last; last = $1 } END { exit bad }' "$scratch/points" && pass || fail "40,000 steps: $kind" "steps of other lengths"
done
[ "$(wc -c <"$page")" -lt 200000 ] && pass || fail "40,000 steps" "$(wc -c <"$page") bytes"

# ---- memory ----
# Rows of the step and its values, 513 of them; in whole pages on a line of its own.
lightly built digits
bytes=$(((513 * 8 * (1 + 4) + 63) / 64 * 64 + (513 * 8 * (1 + 2) + 63) / 64 * 64)) size=$(getconf PAGESIZE)
bytes=$(((bytes + size - 1) / size * size))
"$program" --steps 1000 --log json --plot "$page" >"$scratch/log"
[ "$(number "$(grep '"memory"' "$scratch/log")" plot)" = $bytes ] && pass || fail "memory: JSON" "$(grep -o '"plot":[0-9]*' "$scratch/log"), not $bytes"
end=$(grep '"end"' "$scratch/log")
[ "$(number "$end" peak_over_process_bytes)" -le "$(number "$end" bound_bytes)" ] && [ "$(number "$end" resident_growth_pages)" = 0 ] && pass || fail "memory" "$end"
"$program" --steps 3 --plot "$page" | tr -d , | grep -Eq "^  plot  *$bytes  points of --plot\$" && pass || fail "memory: text"
"$program" --steps 3 --log json | grep -q '"plot"' && fail "memory: without" "a line" || pass

# ---- what is not a number, names, many values ----
cat >"$scratch/a<b>&\"c.mdl" <<'END'
use nn;
model net(x: [4]) -> [4] { param w: [4] = 1; y[i] = x[i] * w[i]; return y; }
train fit(x: [4]) of net {
    loss mean(net(x)^2);
    metric gaps = 0.0 / f32(step % 4);
    metric far = 1.0 / f32(step % 4);
    metric same = 3.0;
    metric never = 0.0 / 0.0 * sum(x);
    metric falls = exp(-f32(step));
    optimizer sgd(lr = 0.01);
    steps 40;
}
END
"$MDLC" --prefix odd "$scratch/a<b>&\"c.mdl" -o "$scratch/odd.c" && quickly "$scratch/odd.c" "$scratch/odd" || fail odd "does not build"
printf '\223NUMPY\001\000v\000%-117s\n\0\0\200?\0\0\200?\0\0\200?\0\0\200?' "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }" >"$scratch/x.npy"
"$scratch/odd" --in x="$scratch/x.npy" --log none --plot "$page" || fail odd "does not run"
whole odd
for name in gaps far; do
    values $name train >"$scratch/points"
    awk '$1 % 4 == 0 { bad = 1 } END { exit bad || NR != 30 }' "$scratch/points" && pass || fail "gaps of $name" "$(wc -l <"$scratch/points") points: $(head -n 4 "$scratch/points" | tr '\n' ';')"
done
[ "$(values gaps train | sort -u -k2 | wc -l)" = 1 ] && pass || fail "gaps: zeros"
awk '/<title>gaps/ { on = 1 } on && /class="train" d=/ { exit gsub(/M/, "M") != 10 }' "$page" && pass || fail "gaps: pieces"
grep -q '<title>never' "$page" && fail "never a number" "has a chart" || pass
values same train | awk '$2 != 3 { exit 1 } END { exit NR != 40 }' && pass || fail "one value"
# Several orders of magnitude: powers of ten.
awk '/<title>falls/ { on = 1 } on && /">1e-05</ { found = 1 } END { exit !found }' "$page" && pass || fail "powers of ten" "$(sed -n '/<title>falls/,/svg>/p' "$page" | grep grid | head -n 2)"
grep -qF '<p>a&lt;b&gt;&amp;&quot;c.mdl, 40 steps</p>' "$page" && pass || fail "escapes" "$(grep '^<p>' "$page")"
{
    printf 'use nn;\nmodel net(x: [4]) -> [4] { param w: [4] = 1; y[i] = x[i] * w[i]; return y; }\n'
    printf 'train fit(x: [4]) of net { loss mean(net(x)^2); optimizer sgd(lr = 0.01); steps 3;\n'
    for i in $(seq 40); do echo "metric m$i = $i.0 * sum(x);"; done
    echo '}'
} >"$scratch/many.mdl"
"$MDLC" "$scratch/many.mdl" -o "$scratch/many.c" && quickly "$scratch/many.c" "$scratch/many" &&
    "$scratch/many" --in x="$scratch/x.npy" --log none --plot "$page" || fail many "does not run"
[ "$(grep -c '<svg' "$page")" = 32 ] && grep -q '; 10 further values are not drawn' "$page" && pass || fail "many values" "$(grep '^<p>' "$page")"

# ---- several trains ----
lightly built gan && "$program" --steps 30 --log none --plot "$page" || fail gan "does not run"
whole "turns"
[ "$(grep '^<h2>' "$page" | tr '\n' ' ')" = '<h2>d</h2> <h2>g</h2> ' ] && [ "$(grep -c '<title>loss by step' "$page")" = 2 ] && pass || fail "turns" "$(grep '^<h2>' "$page")"
lightly built tune && "$program" --steps 20 --log none --plot "$page" || fail tune "does not run"
[ "$(grep -c '^<h2>' "$page")" = 2 ] && pass || fail "phases" "$(grep '^<h2>' "$page")"

# ---- what cannot be written, runs that fail ----
sed 's/train fit of/train fit(lr: real = 3e-3) of/; s/cosine(3e-3,/cosine(lr,/' samples/digits.mdl >"$scratch/rate.mdl"
lightly built "$scratch/rate.mdl" || fail rate "does not build"
fit() { "$program" --log none "$@" 2>"$scratch/err"; }
echo old >"$page"
kept() { [ "$(cat "$page")" = old ] && [ -z "$(find "$scratch" -name 'page.html?*')" ] && pass || fail "$1" "the page has changed"; }
before() { # NAME STATUS TEXT PLOT: refused before step 0, and nothing is saved
    exits "$1" "$2" "$3" fit --steps 3 --save "$scratch/none.w" --plot "$4"
    [ ! -e "$scratch/none.w" ] && pass || { fail "$1" "a step was made"; rm -f "$scratch/none.w"; }
}
before "no folder" 1 "cannot write '$scratch/no/page.html': No such file" "$scratch/no/page.html"
mkdir "$scratch/folder"
before "a folder" 1 "cannot write '$scratch/folder': " "$scratch/folder"
before "the weights" 2 "[-]-save $scratch/none.w and --plot $scratch/none.w are one file" "$scratch/none.w"
before "the data" 2 "are one file" samples/data/digits.csv
before "no name" 2 "\-\-plot needs a value: FILE.html" ""
exits "an evaluation" 2 "\-\-plot makes no sense here" fit eval --load x --plot "$page"
if [ -w /dev/full ]; then
    exits "a full disk" 1 "cannot write '/dev/full': No space left" fit --steps 3 --save "$scratch/some.w" --plot /dev/full
    [ -e "$scratch/some.w" ] && pass || fail "a full disk" "the weights are lost"
else
    skip "a full disk" "no /dev/full"
fi
exits "NaN" 4 "became NaN" fit --steps 30 --set lr=1e30 --plot "$page"
kept NaN
fit --steps 0 --save "$scratch/none.w" --plot "$page" && kept "no step" || fail "no step" "$(cat "$scratch/err")"
fit --steps 3 --load "$scratch/none" --plot "$page" && fail "no weights" "run" || kept "no weights"
# interrupt SIGNAL: a run that has made steps.
interrupt() {
    : >"$scratch/log" # the program may not have come to empty it when it is looked at
    "$program" --steps 100000000 --log-every 1 --plot "$page" >"$scratch/log" 2>"$scratch/err" &
    pid=$!
    tries=0
    until grep -q '^step 3 ' "$scratch/log" || ! kill -0 $pid 2>/dev/null || [ $tries -ge 1200 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    kill -"$1" $pid
    wait $pid
}
interrupt KILL 2>/dev/null
kept "killed"
for signal in TERM:143 INT:130; do
    echo old >"$page"
    if [ ${signal%%:*} = INT ]; then # what a shell starts in the background ignores it
        have "$PYTHON" || { skip "interrupted" "no $PYTHON"; continue; }
        SIGNAL_AT="step 3 " TERM=dumb "$PYTHON" -B tests/suites/terminal.py 80 "$scratch/log" "$program" --steps 100000000 --log-every 1 --plot "$page"
    else
        interrupt ${signal%%:*}
    fi
    rc=$?
    values loss train >"$scratch/points"
    [ $rc -eq ${signal##*:} ] && [ "$(wc -l <"$scratch/points")" -ge 3 ] && pass || fail "$signal" "status $rc, $(wc -l <"$scratch/points") points"
    whole "$signal"
done

# ---- programs without ----
"$MDLC" --no-main samples/digits.mdl -o "$scratch/none.c" && ! grep -q 'md_plot\|--plot' "$scratch/none.c" && pass || fail "--no-main" "has a plot"
printf 'entry twice(x: [2]) { return y = x * 2; }\n' >"$scratch/none.mdl"
"$MDLC" "$scratch/none.mdl" -o "$scratch/none.c" && ! grep -q 'md_plot_[a-l]\|md_curves\|FILE.html' "$scratch/none.c" && pass || fail "no train" "has a plot"
summary plot
