#!/bin/sh
# What a change does to emitted programs: compiles every sample and small program with the compiler of
# BASE (any commit; the last one if not given) and with the one built here, and shows what differs.
#
#     BASE=REV sh tests/replay.sh          (make replay BASE=REV)
#
# One line a program that differs: lines taken out and put in, and the statistics that moved. The
# whole difference stands in $BUILD/replay/diff. Runtime pieces are compared once, not in every
# program. With SAME=1 any difference is status 1: what a commit marked [same] must not have.
#
# With RUN=1 programs that differ are built and run as well, those of tests/programs too: five steps, the
# weights compared byte for byte. Other bits are status 1: a change of text must not have them.
set -u
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}" "${SAME:=0}" "${RUN:=}" "${CC:=cc}"
. tests/base.sh
out=$BUILD/replay
mkdir -p "$out/was" "$out/is"

# emit COMPILER FOLDER FILE: the program without runtime pieces, and the statistics of its plans.
emit() {
    name=$(basename "$3" .mdl)
    # shellcheck disable=SC2046
    "$1" $(sed -n 's|^// args: *||p' "$3") --stats "$3" -o "$out/$name.c" >"$2/$name.stats" 2>"$2/$name.err" ||
        { cp "$2/$name.err" "$2/$name.c"; return; }
    awk '/^\/\* begin runtime\// { inside = 1 } !inside { print } /^\/\* end runtime\// { inside = 0 }' \
        "$out/$name.c" >"$2/$name.c"
}

# weights COMPILER FILE OUT: what five steps of its first train leave, also as words.
weights() {
    # shellcheck disable=SC2046
    "$1" $(sed -n 's|^// args: *||p' "$2") "$2" -o "$out/run.c" >/dev/null 2>&1 &&
        $CC -O1 -march=native -fopenmp -ffp-contract=off "$out/run.c" -lm -o "$out/run" 2>/dev/null || return 1
    train=$("$out/run" --help 2>/dev/null | sed -n 's/^  \([a-z_0-9]*\) *train$/\1/p' | head -n 1)
    timeout 60 "$out/run" ${train:+"$train"} --steps 5 --seed 1 --log none --save "$3" >/dev/null 2>&1
}

: >"$out/diff"
all=0 differ=0 ran=0 bits=0
for file in samples/*.mdl tests/bench/*.mdl tests/library/*.mdl tests/suites/*.mdl tests/cases/emit/*.mdl tests/cases/stats/*.mdl \
    ${RUN:+tests/programs/*.mdl}; do
    [ -f "$file" ] || continue
    emit "$old" "$out/was" "$file"
    emit "$MDLC" "$out/is" "$file"
    all=$((all + 1))
    cmp -s "$out/was/$name.c" "$out/is/$name.c" && cmp -s "$out/was/$name.stats" "$out/is/$name.stats" && continue
    differ=$((differ + 1))
    diff -u "$out/was/$name.c" "$out/is/$name.c" >"$out/one"
    cat "$out/one" >>"$out/diff"
    moved=$(paste "$out/was/$name.stats" "$out/is/$name.stats" | awk '
        $1 == $3 && $2 != $4 && $1 !~ /\./ { printf ", %s %s to %s", $1, $2, $4 }')
    echo "$file: $(grep -c '^-[^-]' "$out/one") lines out, $(grep -c '^+[^+]' "$out/one") in$moved"
    rm -f "$out/was.weights" "$out/is.weights"
    if [ -n "$RUN" ] && weights "$old" "$file" "$out/was.weights"; then
        weights "$MDLC" "$file" "$out/is.weights"
        ran=$((ran + 1))
        cmp -s "$out/was.weights" "$out/is.weights" || { bits=$((bits + 1)); echo "$file: other weights"; }
    fi
done
pieces=$(git diff --stat "$rev" -- runtime | tail -n 1)
echo "replay: $differ of $all programs differ from $(git log -1 --format='%h %s' "$rev")${pieces:+; runtime pieces:$pieces}"
[ "$differ" -eq 0 ] || echo "replay: the difference is in $out/diff"
[ -z "$RUN" ] || echo "replay: of those, $ran were run, $bits end with other weights"
[ "$bits" -eq 0 ] && { [ "$SAME" = 0 ] || [ "$differ" -eq 0 ]; }
