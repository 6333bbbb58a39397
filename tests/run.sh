#!/bin/sh
# Runs every suite, JOBS at a time, and ends with one line: N passed, F failed, K skipped.
#
# Suites are the cmocka binaries of tests/unit and tests/runtime, the case folders (cases.sh) and
# the scripts of tests/suites. Each prints "NAME: N passed, F failed, K skipped" at its end; one
# that ends without that line counts as one failure. What a suite prints stays together. ONLY=TEXT
# runs those whose name holds the text, with EXACT=yes the one of that name.
set -u
: "${BUILD:=build}" "${JOBS:=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}"
# Threads sleep while they wait: spinning ones starve each other on a machine with other work.
export OMP_WAIT_POLICY=passive

# cmocka in TAP mode: "ok 1 - name", "not ok 2 - name", "not ok 3 # SKIP name".
binary() { # NAME PATH
    CMOCKA_MESSAGE_OUTPUT=TAP "$2" >"$log" 2>&1
    rc=$?
    skipped=$(grep -c '^[a-z ]*ok.*# *SKIP' "$log")
    failed=$(grep '^not ok' "$log" | grep -vc '# *SKIP')
    passed=$(grep '^ok' "$log" | grep -vc '# *SKIP')
    if [ "$rc" -ne 0 ] && [ "$failed" -eq 0 ]; then
        failed=1
        echo "FAIL $1: ended with status $rc"
    fi
    [ "$failed" -eq 0 ] || sed 's/^/    /' "$log" | grep -v '^    ok' | head -n 40
    # A skip says why.
    grep '^skip ' "$log" | sed "s|^skip |skip $1 |"
    if [ "$(grep -c '^skip ' "$log")" -lt "$skipped" ]; then
        failed=$((failed + 1))
        echo "FAIL $1: a test was skipped without a reason"
    fi
    closing="$1: $passed passed, $failed failed, $skipped skipped"
}

script() { # NAME PATH
    sh "$2" >"$log" 2>&1
    rc=$?
    closing=$(tail -n 1 "$log")
    counts=$(echo "$closing" | sed -n 's/^.*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
    if [ -z "$counts" ]; then
        cat "$log"
        closing="$1: ended with status $rc and without a count"
        counts="0 1 0"
    else
        sed '$d' "$log"
    fi
    # shellcheck disable=SC2086
    set -- $counts
    passed=$1 failed=$2 skipped=$3
}

if [ "${1:-}" = --one ]; then # NAME FOLDER
    log=$3/$(echo "$2" | tr / .)
    start=$(date +%s)
    case $2 in
    unit/* | runtime/*) binary "$2" "$BUILD/tests/$2" ;;
    cases) script "$2" tests/cases.sh ;;
    *) script "$2" "tests/suites/$2.sh" ;;
    esac >"$log.out"
    echo "$closing ($(($(date +%s) - start)) s)" >>"$log.out"
    echo "$passed $failed $skipped" >"$log.count"
    cat "$log.out"
    exit 0
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/mdlc-run.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

ls -A >"$folder/before"

# The longest first, so that none runs alone at the end; then scripts, which take longer than most binaries.
longest="cuda precision strict fuzz threads odd profile budgets scaler page unit/test_vjp_mutants no_master cmake package
    unit/test_lower flavours compilers init names sizes cnf unit/test_random what_if written_out"
{
    echo cases
    ls tests/suites/*.sh | sed 's|^tests/suites/||; s|\.sh$||'
    [ "${HAVE_CMOCKA:-}" != yes ] || ls tests/unit/test_*.c tests/runtime/test_*.c | sed 's|^tests/||; s|\.c$||'
} >"$folder/all"
printf '%s\n' $longest | grep -Fxf "$folder/all" | cat - "$folder/all" | awk '!seen[$0]++' |
    grep -F ${EXACT:+-x} -e "${ONLY:-}" >"$folder/list"
# What tests/lib.sh finds out about the compilers here holds for all of them.
QUICK=$(sh -c '. tests/lib.sh; echo "$QUICK"') && export QUICK
xargs -P "$JOBS" -I NAME sh "$0" --one NAME "$folder" <"$folder/list"

if [ "${HAVE_CMOCKA:-}" != yes ]; then
    for source in tests/unit/test_*.c tests/runtime/test_*.c; do
        echo "skip $source: cmocka is not installed (make deps)"
        echo "0 0 1" >"$folder/$(basename "$source").count"
    done
fi
# A suite that was cut off has left no count.
for name in $(cat "$folder/list"); do
    count=$folder/$(echo "$name" | tr / .).count
    [ -f "$count" ] || { echo "FAIL $name: did not end"; echo "0 1 0" >"$count"; }
done
# What a suite writes belongs in its scratch folder.
ls -A | comm -13 "$folder/before" - >"$folder/left"
while read -r name; do
    echo "FAIL $name: left behind by a suite"
    echo "0 1 0" >"$folder/left-$name.count"
done <"$folder/left"
cat "$folder"/*.count | awk '
    { passed += $1; failed += $2; skipped += $3 }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit !(failed == 0 && passed > 0) }'
