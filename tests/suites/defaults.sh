#!/bin/sh
# The defaults of the library are what tests/library/defaults.txt says, and are used: a call without
# the argument is the same graph as one with the default, and another graph than one with another value.
# test_library looks that the table has every default.
set -u
. tests/lib.sh
table=tests/library/defaults.txt

# program CALL: the model file in which the call stands, on stdout.
program() {
    inputs='x: [6, 4], t: [6, 4], s: [6], q: [2, 3, 4], q4: [3, 4], line: [2, 4, 7], image: [2, 4, 6, 6], y: i32[6] in 0..4,
        h4: [2, 4, 3, 4], cube: [2, 4, 3, 4, 5], q8: [2, 3, 8], pairs: bool[2, 3, 3]'
    value=x optimizer='optimizer sgd(lr = 0.1)' drawn='~ normal(0, 1)'
    case $1 in
    optimizer*) optimizer=$1 ;;
    lr*) optimizer="optimizer sgd($1)" ;;
    '~'*) drawn=$1 ;;
    *) value=$1 ;;
    esac
    cat <<END
use nn;
model net($inputs) -> f32 {
    param w: [5, 4] $drawn;
    value = $value;
    return mean(value) * mean(w);
}
train fit($inputs) of net {
    loss net(x, t, s, q, q4, line, image, y, h4, cube, q8, pairs);
    $optimizer;
    steps 20;
}
END
}

# graph CALL ARGUMENT FILE: the call's graph with this argument, "" for none.
graph() {
    program "$(printf '%s\n' "$1" | sed "s|(@|($2|; s|@|${2:+, }$2|")" >"$scratch/$3.mdl"
    "$MDLC" --dump=simplify "$scratch/$3.mdl" >"$scratch/$3.graph" 2>"$scratch/err"
}

# used NAME PARAM VALUE OTHER CALL: whether the three graphs are as the table says; says why not. Rows of one
# call have its graph without an argument once.
plain_of=
used() {
    { [ "$plain_of" = "$5" ] || { plain_of= && graph "$5" "" plain && plain_of=$5; }; } && graph "$5" "$2 = $3" given && graph "$5" "$2 = $4" other || {
        echo "$1.$2: $(head -n 1 "$scratch/err")"
        return 1
    }
    cmp -s "$scratch/plain.graph" "$scratch/given.graph" || { echo "$1.$2: the default is not $3"; return 1; }
    ! cmp -s "$scratch/plain.graph" "$scratch/other.graph" || { echo "$1.$2: $3 and $4 are the same"; return 1; }
}

grep -v '^#' $table | awk -F ' *\\| *' '{
    split($1, key, " "); value = $1; sub(/^[^ ]* [^ ]* /, "", value); other = $2
    if (split($2, pair, " : ") == 2) { value = pair[1]; other = pair[2] }
    print key[1] "|" key[2] "|" value "|" other "|" $3
}' >"$scratch/rows"
while IFS='|' read -r name param value other call; do
    used "$name" "$param" "$value" "$other" "$call" >"$scratch/wrong" && pass || fail "$(cat "$scratch/wrong")"
done <"$scratch/rows"

# A row that cannot fail shows nothing.
used group_norm eps 1e-4 1e-6 "group_norm(image, 2@)" | grep -q "the default is not 1e-4" && pass ||
    fail planted "a wrong default is not noticed"
used sgd dampening 0 0.1 "optimizer sgd(lr = 0.1@)" | grep -q "0 and 0.1 are the same" && pass ||
    fail planted "a default without effect is not noticed"
summary defaults
