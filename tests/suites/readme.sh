#!/bin/sh
# README.md tells the truth: its model text is the sample's, its C is what the compiler writes for it,
# its number of bytes is what the report says, and the folders and files that it names are there. With
# --golden its function of the train is written anew.
set -u
. tests/lib.sh

# Lines of the N-th fenced block, without leading blanks.
block() { awk -v n="$1" '/^```/ { k++; next } k == 2 * n - 1 { sub(/^ +/, ""); print }' README.md; }

# Every line of $2 stands in $3, blanks at its start aside.
holds() { # NAME LINES TEXT
    sed 's/^ *//' "$3" >"$scratch/text"
    while IFS= read -r line; do
        grep -qxF -- "$line" "$scratch/text" && pass || fail "$1" "not there: $line"
    done <"$2"
}

"$MDLC" samples/digits.mdl -o "$scratch/digits.c" || fail digits "does not compile"
"$MDLC" --no-main samples/digits.mdl -o "$scratch/digits_part.c" || fail digits "does not compile without a main"
sed -n '/^int digits_fit(.*{$/,/^}/p' "$scratch/digits_part.c" >"$scratch/fit"
if [ "${1:-}" = --golden ]; then
    awk -v fit="$scratch/fit" '
        /^```/ { k++ }
        k != 5 { print }
        /^```/ && k == 5 { print; while ((getline line <fit) > 0) { print line } }' README.md >"$scratch/readme" &&
        cp "$scratch/readme" README.md
    exit
fi
awk '/^```/ { k++; next } k == 5' README.md >"$scratch/shown"
same "the train in README.md" "$scratch/fit" "$scratch/shown"
block 1 >"$scratch/model"
block 2 >"$scratch/c"
holds "the model of README.md" "$scratch/model" samples/digits.mdl
holds "the C of README.md" "$scratch/c" "$scratch/digits.c"
total=$("$MDLC" report --format=json samples/digits.mdl | tr -d ' \n' | sed -n 's/.*"regions":{[^}]*"total":\([0-9]*\).*/\1/p')
grep -q "$(echo "$total" | sed -e :a -e 's/\(.*[0-9]\)\([0-9]\{3\}\)/\1,\2/;ta')" README.md && pass ||
    fail "the bytes of README.md" "the report says $total"
[ "$(wc -l <samples/digits.mdl)" -le 40 ] && pass || fail "digits.mdl" "has more than 40 lines"
grep -o '^| `[a-z]*/`' README.md | tr -d '|` ' >"$scratch/folders"
while IFS= read -r folder; do
    [ -d "$folder" ] && pass || fail "README.md" "no folder $folder"
done <"$scratch/folders"
grep -o '](\([A-Za-z/.]*\))' README.md | tr -d ']()' >"$scratch/links"
while IFS= read -r link; do
    [ -f "$link" ] && pass || fail "README.md" "no file $link"
done <"$scratch/links"
summary readme
