#!/bin/sh
# Runs every suite and ends with one line: N passed, F failed, K skipped.
#
# Suites are the cmocka binaries of tests/unit and tests/runtime, the case folders (cases.sh) and
# the scripts of tests/suites. Each prints "NAME: N passed, F failed, K skipped" at its end; one
# that ends without that line counts as one failure.
set -u
: "${BUILD:=build}"
# Threads sleep while they wait: spinning ones starve each other on a machine with other work.
export OMP_WAIT_POLICY=passive
total_passed=0 total_failed=0 total_skipped=0
log=$(mktemp "${TMPDIR:-/tmp}/mdlc-run.XXXXXX") || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM

count() { # PASSED FAILED SKIPPED
    total_passed=$((total_passed + $1))
    total_failed=$((total_failed + $2))
    total_skipped=$((total_skipped + $3))
}

# cmocka in TAP mode: "ok 1 - name", "not ok 2 - name", "not ok 3 # SKIP name".
binary() { # NAME PATH
    CMOCKA_MESSAGE_OUTPUT=TAP "$2" >"$log" 2>&1
    binary_rc=$?
    binary_skipped=$(grep -c '^[a-z ]*ok.*# *SKIP' "$log")
    binary_failed=$(grep '^not ok' "$log" | grep -vc '# *SKIP')
    binary_passed=$(grep '^ok' "$log" | grep -vc '# *SKIP')
    if [ "$binary_rc" -ne 0 ] && [ "$binary_failed" -eq 0 ]; then
        binary_failed=1
        echo "FAIL $1: ended with status $binary_rc"
    fi
    [ "$binary_failed" -eq 0 ] || sed 's/^/    /' "$log" | grep -v '^    ok' | head -n 40
    echo "$1: $binary_passed passed, $binary_failed failed, $binary_skipped skipped"
    count "$binary_passed" "$binary_failed" "$binary_skipped"
}

script() { # NAME PATH
    script_start=$(date +%s)
    sh "$2" >"$log" 2>&1
    script_rc=$?
    sed '$d' "$log"
    counts=$(tail -n 1 "$log" |
        sed -n 's/^.*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
    if [ -z "$counts" ]; then
        tail -n 1 "$log"
        echo "$1: ended with status $script_rc and without a count"
        counts="0 1 0"
    else
        echo "$(tail -n 1 "$log") ($(($(date +%s) - script_start)) s)"
    fi
    # shellcheck disable=SC2086
    count $counts
}

only=${ONLY:-}
wanted() { case $1 in *"$only"*) return 0 ;; *) return 1 ;; esac; }

if [ "${HAVE_CMOCKA:-}" = yes ]; then
    for source in tests/unit/test_*.c tests/runtime/test_*.c; do
        [ -f "$source" ] || continue
        name=${source#tests/}
        name=${name%.c}
        wanted "$name" && binary "$name" "$BUILD/tests/$name"
    done
else
    for source in tests/unit/test_*.c tests/runtime/test_*.c; do
        [ -f "$source" ] || continue
        echo "skip $source: cmocka is not installed (make deps)"
        count 0 0 1
    done
fi
wanted cases && script cases tests/cases.sh
for suite in tests/suites/*.sh; do
    [ -f "$suite" ] || continue
    name=$(basename "$suite" .sh)
    wanted "$name" && script "$name" "$suite"
done

echo "$total_passed passed, $total_failed failed, $total_skipped skipped"
[ "$total_failed" -eq 0 ] && [ "$total_passed" -gt 0 ]
