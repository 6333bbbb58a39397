#!/bin/sh
# Runs everything that makes inputs at random, for as long as is asked: MINUTES=n JOBS=2 make soak.
#
# Each line of the table below gets the same time, in turns of a third of its share, JOBS of them at
# once; the next turn is always that of a line with the least time behind it, so none waits for the end
# because others run over their turn. Findings (a crash, a fault of a target's own check, a hang, too
# much memory, a failed test) do not end it: inputs and logs are in build/soak/findings. A table ends
# it, and status 1 if there were findings. SEED=n starts elsewhere. What fuzzing has learned
# (build/soak/corpus) is kept for the next time.
set -u
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}" "${FUZZ:=build/fuzz}" "${LIBFUZZER:=}"
: "${MINUTES:=10}" "${JOBS:=2}" "${SEED:=$(date +%s)}" "${ONLY:=}"
export SEED

# One line a thing: NAME COMMAND. A new generator is one more line; a new file tests/fuzz/fuzz_NAME.c
# has its line already.
#
# `target NAME`: a fuzz target. Its seeds are what tests/fuzz/fuzz_NAME.sh FOLDER makes, or the model
# texts of the tree without such a script.
# `seeded PROGRAM [NAME=VALUE...]`: a program (or a script *.sh) that ends by itself, run again and again
# with another SEED (also as MDLC_SEED), and with SECONDS for those that can use them up in one run; a
# status other than 0 is a finding. `executions N` in its output counts. It makes fewer than 1000 inputs
# of SEED, SEED + 1 and so on, but for those with SECONDS.
table() {
    for source in tests/fuzz/fuzz_*.c; do
        name=$(basename "$source" .c)
        echo "$name target ${name#fuzz_}"
    done
    cat <<END
mutants seeded $BUILD/tests/unit/test_mutants MUTANTS=2
dump_mutants seeded $BUILD/tests/unit/test_dump_mistakes MUTANTS=3
random_passes seeded $BUILD/tests/unit/test_passes MDLC_PROGRAMS=200
random_kernels seeded $BUILD/tests/unit/test_lower MDLC_COUNT=40
random_ops seeded $BUILD/tests/unit/test_ops
random_texts seeded $BUILD/tests/unit/test_random_text
random_graphs seeded $BUILD/tests/unit/test_random
random_plans seeded $BUILD/tests/unit/test_plan_random
random_notation seeded tests/suites/slices.sh PART=notation COUNT=20
END
}

work=build/soak
findings=$work/findings
rm -rf "$work/run"
mkdir -p "$findings" "$work/run" "$work/seeds"
export FINDINGS=$findings
table | grep -e "$ONLY" >"$work/run/table"
count=$(wc -l <"$work/run/table")
[ "$count" -gt 0 ] || { echo "soak: nothing is called '$ONLY'"; exit 2; }
total=$((MINUTES * 60))
# Not shorter: libFuzzer begins each turn with all it has learned.
slice=$((total * JOBS / count / 3))
[ "$slice" -ge 5 ] || slice=5
[ "$slice" -le 300 ] || slice=300
begin=$(date +%s)
end=$((begin + total))
echo "soak: $count lines, $MINUTES min, $JOBS jobs, turns of $slice s, SEED=$SEED, $([ -n "$LIBFUZZER" ] && echo libFuzzer || echo driver)"

# Seconds of this turn that are left.
left() { [ -n "$stopping" ] && echo 0 || echo $((deadline - $(date +%s))); }

# run LIMIT COMMAND...: its output goes to $log. A signal to the worker ends the command too.
run() {
    timeout -k 10 "$@" >"$log" 2>&1 &
    child=$!
    wait $child
    run_status=$?
    child=
    return $run_status
}

result() { # SECONDS EXECUTIONS COVERAGE FINDINGS
    echo "$line $1 $2 $3 $4" >>"$work/run/results"
}

# Keeps the end of a log, and notes what kinds of faults it tells of, without what differs from run
# to run.
found() {
    found_log=$findings/$line-$(cksum <"$log" | cut -d' ' -f1).log
    tail -c 20000 "$log" >"$found_log"
    grep -hE 'internal fault at|^finding: |^FAIL |runtime error: |^SUMMARY: |out of memory|^not ok |: status [0-9]+$' "$log" |
        sed -e 's/0x[0-9a-f]*//g' -e 's/SEED=[0-9]*//g' -e 's/^==[0-9]*== *//' -e 's/ *$//' | cut -c1-150 |
        sort -u | head -n 5 | sed "s|^|$line: |" >>"$work/run/kinds"
}

target_run() { # NAME SEEDS OPTION...
    target_binary=$FUZZ/tests/fuzz/fuzz_$1 target_seeds=$2
    shift 2
    if [ -n "$LIBFUZZER" ]; then
        run $(($(left) + 180)) "$target_binary" "$@" -print_final_stats=1 "-dict=$work/seeds/words" \
            "$work/corpus/$line" "$target_seeds"
    else
        run $(($(left) + 180)) "$target_binary" "$@" "$target_seeds"
    fi
}

target() { # NAME
    target_seeds=$work/seeds/$1
    [ -d "$target_seeds" ] || target_seeds=$work/seeds/mdl
    mkdir -p "$work/corpus/$line"
    while [ "$(left)" -ge 2 ]; do
        target_start=$(date +%s)
        target_run "$1" "$target_seeds" "-max_total_time=$(left)" "-seed=$SEED" -timeout=30 -rss_limit_mb=2048 \
            -max_len=20000 "-artifact_prefix=$findings/$1-"
        target_status=$?
        target_runs=$(sed -n 's/^stat::number_of_executed_units: *//p; s/^driver: .* executions \([0-9]*\).*/\1/p' "$log" | tail -n 1)
        target_cov=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
        target_found=$(sed -n 's/^driver: .* findings \([0-9]*\)$/\1/p' "$log" | tail -n 1)
        if [ $target_status -eq 0 ] || [ -n "$stopping" ]; then
            target_found=0
        else
            found
        fi
        result $(($(date +%s) - target_start)) "${target_runs:-0}" "${target_cov:-0}" "${target_found:-1}"
        SEED=$((SEED + 1))
    done
}

seeded() { # PROGRAM [NAME=VALUE...]
    seeded_program=$1
    shift
    case $seeded_program in *.sh) set -- "$@" sh ;; esac
    while [ "$(left)" -ge 1 ]; do
        seeded_start=$(date +%s) seeded_found=0
        run 1800 env CMOCKA_MESSAGE_OUTPUT=TAP "SEED=$SEED" "MDLC_SEED=$SEED" "SECONDS=$(left)" \
            "$@" "$seeded_program"
        seeded_status=$?
        if [ $seeded_status -ne 0 ] && [ -z "$stopping" ]; then
            echo "SEED=$SEED $* $seeded_program: status $seeded_status" >>"$log"
            seeded_found=$(sed -n 's/.*findings \([0-9]*\).*/\1/p' "$log" | tail -n 1)
            [ "${seeded_found:-0}" -gt 0 ] || seeded_found=1
            found
        fi
        seeded_runs=$(sed -n 's/.*executions \([0-9]*\).*/\1/p' "$log" | tail -n 1)
        result $(($(date +%s) - seeded_start)) "${seeded_runs:-1}" 0 $seeded_found
        SEED=$((SEED + 1000))
    done
}

# Of the lines one with the least seconds behind it, those of turns that now run counted in full; the first
# in the table of several. Workers take turns in choosing. Prints its number and that of the turn.
choose() { # WORKER
    until mkdir "$work/run/choosing" 2>/dev/null; do sleep 0.1; done
    rm -f "$work/run/now.$1"
    echo >>"$work/run/turns"
    : >>"$work/run/results"
    chosen=$(cat "$work/run"/now.* 2>/dev/null | cat "$work/run/results" - | awk '
        NR == FNR { name[NR] = $1; lines = NR; next }
        { used[$1] += $2 }
        END { best = 1; for (i = 2; i <= lines; i++) if (used[name[i]] < used[name[best]]) best = i; print best }
    ' "$work/run/table" -)
    echo "$(sed -n "${chosen}s/ .*//p" "$work/run/table") $slice" >"$work/run/now.$1"
    echo "$chosen $(wc -l <"$work/run/turns")"
    rmdir "$work/run/choosing"
}

worker() { # NUMBER
    stopping='' child='' log=$work/run/log.$1 number=$1
    trap 'stopping=1; [ -z "$child" ] || { kill "$child"; wait "$child"; }' TERM
    trap '' INT
    while [ -z "$stopping" ] && [ "$(date +%s)" -lt "$end" ]; do
        # shellcheck disable=SC2046
        set -- $(choose "$number")
        deadline=$(($(date +%s) + slice))
        [ "$deadline" -le "$end" ] || deadline=$end
        SEED=$((first_seed + 1000000 * $2))
        # shellcheck disable=SC2046
        set -- $(sed -n "$1p" "$work/run/table")
        line=$1
        shift
        "$@"
    done
}

report() {
    echo
    sort "$work/run/results" 2>/dev/null | awk '
        BEGIN { printf "%-20s %8s %12s %8s %8s\n", "what", "seconds", "executions", "cov", "findings" }
        { s[$1] += $2; n[$1] += $3; if ($4 > c[$1]) c[$1] = $4; f[$1] += $5; if (!($1 in at)) { at[$1] = ++k; name[k] = $1 } }
        END { for (i = 1; i <= k; i++) { w = name[i]
                  printf "%-20s %8d %12d %8s %8d\n", w, s[w], n[w], c[w] ? c[w] : "-", f[w]; all += f[w]; t += s[w]; e += n[w] }
              printf "%-20s %8d %12d %8s %8d\n", "all", t, e, "", all }'
    cut -d' ' -f1 "$work/run/table" | while read -r name; do
        grep -q "^$name " "$work/run/results" 2>/dev/null || echo "soak: $name had no turn; give it more MINUTES"
    done
    if [ -s "$work/run/kinds" ]; then
        echo "soak: kinds of findings, and how often; inputs and logs are in $findings"
        sort "$work/run/kinds" | uniq -c | sort -rn | head -n 50
    fi
    echo "soak: SEED=$first_seed, $((($(date +%s) - begin) / 60)) min"
}

workers=
stop() {
    trap '' INT TERM
    # shellcheck disable=SC2086
    kill $workers 2>/dev/null
    wait
    report
    exit 130
}
trap stop INT TERM

first_seed=$SEED
sh tests/fuzz/corpus.sh "$work/seeds/mdl" || exit 2
"$FUZZ/tests/fuzz/words" >"$work/seeds/words" || exit 2
for script in tests/fuzz/fuzz_*.sh; do
    [ -f "$script" ] || continue
    name=$(basename "$script" .sh)
    sh "$script" "$work/seeds/${name#fuzz_}" || { echo "soak: $script failed"; exit 2; }
done
slot=0
while [ $slot -lt "$JOBS" ]; do
    worker $slot &
    workers="$workers $!"
    slot=$((slot + 1))
done
wait
report
! awk '{ n += $5 } END { exit n == 0 }' "$work/run/results"
