#!/bin/sh
# The line that a terminal shows of a run: its form, that it never fills a line of the terminal, that
# other lines stand by themselves, and that there is none where nobody draws over lines. Terminals come
# from Python.
set -u
. tests/lib.sh
: "${PYTHON:=python3}"
sed 's/train fit of/train fit(lr: real = 3e-3) of/; s/cosine(3e-3,/cosine(lr,/' samples/digits.mdl >"$scratch/rate.mdl"
lightly built "$scratch/rate.mdl" || { fail rate "does not build"; summary progress; exit 1; }
return_=$(printf '\r') escape=$(printf '\033')

# ---- no terminal ----
"$program" --steps 40 >"$scratch/plain" 2>&1 </dev/null || fail plain "does not run"
[ "$(grep -c '^step ' "$scratch/plain")" = 40 ] && ! grep -q "[$return_$escape]" "$scratch/plain" && pass || fail plain "$(tail -n 3 "$scratch/plain")"

have "$PYTHON" && "$PYTHON" -c 'import pty, termios' 2>/dev/null || { skip "lines of terminals" "no $PYTHON with terminals"; summary progress; exit; }
# shown STATUS COLUMNS ARGUMENT...: what a terminal shows of a run; its frames, one a line.
shown() {
    shown_status=$1 shown_columns=$2
    shift 2
    TERM=${TERMINAL-xterm} "$PYTHON" -B tests/suites/terminal.py "$shown_columns" "$scratch/shown" "$@"
    shown_rc=$?
    tr -d '\n' <"$scratch/shown" | tr '\r' '\n' | sed -n "s/$escape\\[K\$//p" | grep . >"$scratch/frames"
    [ $shown_rc -eq "$shown_status" ] && pass || fail "$*" "status $shown_rc: $(tail -n 1 "$scratch/shown")"
}
# fit NAME COLUMNS: every frame is of one line that is not full.
fit() {
    fit_most=$(awk '{ if (length > most) most = length } END { print most + 0 }' "$scratch/frames")
    [ "$fit_most" -gt 0 ] && [ "$fit_most" -lt "$2" ] && pass || fail "$1: width" "$fit_most of $2 columns: $(head -n 1 "$scratch/frames")"
}
form() { # NAME PATTERN: of every frame
    [ -s "$scratch/frames" ] && ! grep -Evq "$2" "$scratch/frames" && pass || fail "$1: form" "$(grep -Ev "$2" "$scratch/frames" | head -n 1)"
}
time='([0-9]+:)?[0-9]+:[0-9][0-9]<([0-9]+:)?[0-9]+:[0-9][0-9]' rate='[0-9.]+[kM]? (steps/s|s/step)'
bar='^ *[0-9]+% \[#* *\]' loss='  loss [0-9.]+(e-?[0-9]+)?'

shown 0 100 "$program" --steps 300 --eval-every 150
fit "100 columns" 100
form "100 columns" "$bar +[0-9]+/300  epoch [0-9]+$loss(  acc [0-9.]+)?(  lr [-0-9.e]+|  grad_norm [-0-9.e]+)?  $time  $rate\$"
# The bar is as full as the count says; the first frame is of the first step.
awk '{ open = index($0, "["); close_ = index($0, "]"); full = gsub("#", "#"); split(substr($0, close_ + 1), of, "/")
       if (full != int((close_ - open - 1) * of[1] / 300) || $1 + 0 != int(100 * of[1] / 300)) bad = 1
       of[1] += 0; if (NR == 1 && of[1] != 1) bad = 1
       if (bad && !said++) print }
     END { exit bad || NR == 0 }' "$scratch/frames" >"$scratch/wrong" && pass || fail "the bar" "$(cat "$scratch/wrong")"
# Lines begin on lines of their own: what is drawn is taken away first, and no step has a line but the last.
for line in "eval at step 150: " "step 300  epoch 27  loss" "eval at step 300: " "300 steps in "; do
    tr '\r' '\n' <"$scratch/shown" | grep -q "^\\($escape\\[K\\)*$line" && pass || fail "terminal: a line" "$line"
done
[ "$(tr '\r' '\n' <"$scratch/shown" | grep -c "^\\($escape\\[K\\)*step ")" = 1 ] && pass || fail "terminal: lines of steps"
# Narrower ones have less on it.
shown 0 80 "$program" --steps 300
fit "80 columns" 80
form "80 columns" "$bar +[0-9]+/300  (epoch [0-9]+)?$loss(  acc [0-9.]+)?  $time  $rate\$"
shown 0 40 "$program" --steps 300
fit "40 columns" 40
form "40 columns" "^ *[0-9]+% +[0-9]+/300$loss(  acc [0-9.]+)?(  $time)?\$"
shown 0 9 "$program" --steps 300
fit "9 columns" 9
form "9 columns" '^ *[0-9]+/300$'
shown 0 4 "$program" --steps 300
[ ! -s "$scratch/frames" ] && pass || fail "4 columns" "$(head -n 1 "$scratch/frames")"
# A terminal that does not know its size.
COLUMNS=40 shown 0 0 "$program" --steps 300
fit "COLUMNS" 40
COLUMNS=none shown 0 0 "$program" --steps 300
fit "no COLUMNS" 80
form "no COLUMNS" "$bar"
# Messages stand behind the line.
shown 4 80 "$program" --steps 300 --set lr=1e30
form "NaN" "$bar"
grep -q "^rate: error: the loss of 'fit' became NaN in step" "$scratch/shown" && pass || fail "NaN: a line of its own" "$(tail -n 2 "$scratch/shown")"
tr -d '\n' <"$scratch/shown" | tr '\r' '\n' | grep -B 1 '^rate: error' | head -n 1 | grep -q "$escape\\[K\$" && pass || fail "NaN: the line in front"
shown 4 80 "$program" --steps 300 --set lr=1e30 --skip-nonfinite 3
grep -q "^rate: warning: the loss of 'fit' became NaN" "$scratch/shown" && grep -q '^rate: error: ' "$scratch/shown" && pass || fail "warning" "$(tail -n 3 "$scratch/shown")"
SIGNAL_AT="loss" shown 130 80 "$program" --steps 100000000
tr '\r' '\n' <"$scratch/shown" | grep -q "^\\($escape\\[K\\)*[0-9]* steps in " && pass || fail "interrupted" "$(tail -n 2 "$scratch/shown")"
# Trains that take turns, and one behind another.
sed 's/^phase .*//' samples/gan.mdl >"$scratch/gan.mdl"
grep -q '^phase' samples/gan.mdl || fail gan "has no phase"
lightly built gan && shown 0 100 "$program" --steps 100
fit "turns" 100
form "turns" "$bar +[0-9]+/100  d.loss [-0-9.e]+(  [a-z.]+ [-0-9.e]+)*  $time  $rate\$"
grep -q '  g.loss ' "$scratch/frames" && pass || fail "turns" "$(head -n 1 "$scratch/frames")"
lightly built tune && shown 0 100 "$program" --steps 20
form "phases" "$bar  [a-z]+: +[0-9]+/20  "
# Where nothing may be drawn over.
lightly built "$scratch/rate.mdl"
plain() { # NAME ARGUMENT...
    plain_name=$1
    shift
    shown 0 80 "$program" --steps 40 "$@"
    tr -d '\n' <"$scratch/shown" | sed "s/$return_\$//; s/$return_/\n/g" >"$scratch/lines"
    ! grep -q "$escape" "$scratch/shown" && pass || fail "$plain_name" "something is drawn"
}
TERMINAL=dumb plain "TERM=dumb"
[ "$(grep -c '^step ' "$scratch/lines")" = 40 ] && pass || fail "TERM=dumb" "$(head -n 3 "$scratch/lines")"
TERMINAL='' plain "TERM empty"
plain "JSON" --log json
plain "no log" --log none
[ ! -s "$scratch/shown" ] && pass || fail "no log" "$(head -n 1 "$scratch/shown")"
summary progress
