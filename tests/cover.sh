#!/bin/sh
# Lists the lines that no test ran, file by file, from a build made with --coverage.
#     cover.sh BUILD_FOLDER [MOST_LINES_A_FILE]
set -u
build=${1:?build folder}
most=${2:-40}
total=$(mktemp) || exit 1
trap 'rm -f "$total"' EXIT

echo
echo "coverage: lines that no test ran"
for folder in lang compiler passes emit; do
    for data in "$build/obj/$folder"/*.gcda; do
        [ -f "$data" ] || continue
        name=$folder/$(basename "$data" .gcda).c
        # gcov prints every source of the object; headers are left to the files that own them.
        gcov -t "$data" 2>/dev/null | awk -F: -v name="$name" -v most="$most" -v total="$total" '
            { count = $1; line = $2; gsub(/ /, "", count); gsub(/ /, "", line) }
            line == "0" { if ($3 == "Source") source = $4; next }
            source != name || count == "-" { next }
            { all++ }
            count ~ /#####|=====/ {
                missed++
                if (missed <= most) { text = $0; sub(/^[^:]*:[^:]*:/, "", text); print name ":" line ":" text }
            }
            END {
                if (!all) exit
                if (missed > most) print name ": and " missed - most " more"
                printf "%s: %d of %d lines run, %.1f %%\n", name, all - missed, all, 100 * (all - missed) / all
                print all - missed, all >> total
            }'
    done
done
awk '{ run += $1; all += $2 } END { if (all) printf "coverage: %d of %d lines, %.1f %%\n", run, all, 100 * run / all }' "$total"
