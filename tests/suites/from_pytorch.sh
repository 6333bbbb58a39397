#!/bin/sh
# docs/from-pytorch.md: each program in .mdl is taken from the page, compiled and run from the weights
# and on the rows of its twin in PyTorch, and reports the twin's losses (tests/from_pytorch/make.py
# runs the twins, which stand on the page too).
set -u
. tests/lib.sh
page=docs/from-pytorch.md
kept=tests/from_pytorch

# The programs as NN.mdl in the folder; their numbers on stdout.
awk -v folder="$scratch" '
    /^## [0-9]+\. / { number = sprintf("%02d", $2 + 0); next }
    /^```mdl$/ && number != "" { file = folder "/" number ".mdl"; next }
    /^```$/ { if (file != "") { close(file); print number; file = "" } next }
    file != "" { print > file }' $page >"$scratch/numbers"

# off NUMBER LOSSES: what is wrong with the losses; the first within 1e-5, the others within 1e-4.
off() {
    awk -v number="$1" -v losses="$2" '
        $1 == number {
            found = 1
            n = split(losses, have, " ")
            if (n != NF - 1) { print n " losses for " NF - 1; exit }
            for (i = 1; i <= n; i++) {
                d = have[i] - $(i + 1); d = d < 0 ? -d : d
                size = $(i + 1) < 0 ? -$(i + 1) : $(i + 1)
                if (!(d <= (i == 1 ? 1e-5 : 1e-4) * (size > 0.1 ? size : 0.1)))
                    print "loss " i " is " have[i] ", that of PyTorch " $(i + 1)
            }
        }
        END { if (!found) print "PyTorch has no such program" }' $kept/losses.txt
}

while read -r number; do
    name=$(sed -n "s/^## ${number#0}\\. //p" $page)
    "$MDLC" "$scratch/$number.mdl" -o "$scratch/$number.c" 2>"$scratch/err" &&
        quickly "$scratch/$number.c" "$scratch/$number" || {
        fail "$number $name" "$(head -n 1 "$scratch/err")"
        continue
    }
    set --
    for file in "$kept/$number".*.npy; do
        input=${file#"$kept/$number."}
        set -- "$@" --in "${input%.npy}=$file"
    done
    "$scratch/$number" fit "$@" --load "$kept/$number.safetensors" --steps 3 --log-every 1 --log json \
        >"$scratch/log" 2>"$scratch/err" </dev/null || {
        fail "$number $name" "$(head -n 1 "$scratch/err")"
        continue
    }
    losses=$(sed -n 's/.*"event":"step".*"loss":\([-+0-9.eE]*\).*/\1/p' "$scratch/log" | tr '\n' ' ')
    wrong=$(off "$number" "$losses")
    [ -z "$wrong" ] && pass || fail "$number $name" "$wrong"
done <"$scratch/numbers"
[ "$(wc -l <"$scratch/numbers")" -ge 30 ] && [ "$(wc -l <"$scratch/numbers")" = "$(wc -l <$kept/losses.txt)" ] && pass ||
    fail "$page" "has $(wc -l <"$scratch/numbers") programs"
# A row that cannot fail shows nothing.
[ -n "$(off 01 "0.51536882 0.36565673 0.27")" ] && [ -n "$(off 99 "1 2 3")" ] && pass ||
    fail planted "a wrong loss is not noticed"
summary from_pytorch
