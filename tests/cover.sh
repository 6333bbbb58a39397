#!/bin/sh
# Lists the lines that no test ran, file by file, from a build made with --coverage, and fails when
# lang, passes or emit run less than LEAST percent of theirs. docs/coverage.md says what is not run.
#     cover.sh BUILD_FOLDER [MOST_LINES_A_FILE]
# Lines that hold BUG( are not counted: they run when the compiler is wrong, and say so.
set -u
build=${1:?build folder}
most=${2:-40}
: "${LEAST:=95}"
total=$(mktemp) || exit 1
trap 'rm -f "$total"' EXIT

# one OBJECT SOURCE: its lines that did not run, and one line of figures.
one() {
    # gcov prints every source of the object; headers are left to the files that own them.
    gcov -t "$build/obj/$1.gcda" 2>/dev/null | awk -F: -v name="$2" -v most="$most" -v total="$total" '
        { count = $1; line = $2; gsub(/ /, "", count); gsub(/ /, "", line) }
        line == "0" { if ($3 == "Source") source = $4; next }
        source != name || count == "-" { next }
        /[^A-Za-z_]BUG\(/ { bugs++; next }
        { all++ }
        count ~ /#####|=====/ {
            missed++
            if (missed <= most) { text = $0; sub(/^[^:]*:[^:]*:/, "", text); print name ":" line ":" text }
        }
        END {
            if (!all) exit
            if (missed > most) print name ": and " missed - most " more"
            printf "%s: %d of %d lines run, %.1f %%\n", name, all - missed, all, 100 * (all - missed) / all
            folder = name; sub(/\/.*/, "", folder)
            print folder, all - missed, all, bugs + 0 >> total
        }'
}

echo
echo "coverage: lines that no test ran"
for folder in lang compiler passes passes/plan emit; do
    for source in "$folder"/*.c; do
        one "${source%.c}" "$source"
    done
done
one gen/lex lang/lex.l
one gen/parse lang/parse.y

awk -v least="$LEAST" '
    function row(name, all) { printf "coverage: %-9s %5d of %5d lines, %5.1f %%, %3d with BUG( not counted\n", name, run[name], all, 100 * run[name] / all, bugs[name] }
    { run[$1] += $2; run["all"] += $2; all[$1] += $3; all["all"] += $3; bugs[$1] += $4; bugs["all"] += $4 }
    END {
        n = split("lang compiler passes emit all", names, " ")
        for (i = 1; i <= n; i++) {
            name = names[i]
            if (!all[name]) { print "coverage: " name ": nothing was counted"; bad = 1; continue }
            row(name, all[name])
            if (name ~ /^(lang|passes|emit)$/ && 100 * run[name] < least * all[name]) {
                print "coverage: " name " is below " least " %"
                bad = 1
            }
        }
        exit bad
    }' "$total"
