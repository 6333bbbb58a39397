#!/bin/sh
# Each sample as a person would use it: check, emit, build, train a little, save, evaluate, predict.
# The sizes in the report, in the emitted header and in the running program are the same numbers.
set -u
. tests/lib.sh

# In a report or log line: the first number behind "total".
total_of_report() { tr -d ' \n' <"$1" | sed -n 's/.*"regions":{[^}]*"total":\([0-9]*\).*/\1/p'; }
total_of_header() {
    awk '/^#define [A-Z0-9_]*_(PARAMS|STATE|IO|ARENA)_BYTES / {
        name = $2; sub(/_BYTES$/, "", name); n = split(name, part, "_")
        if (n > 1 && part[n] != "") { v = $3; gsub(/[^0-9]/, "", v); size[part[n]] = v } }
        END { print size["PARAMS"] + size["STATE"] + size["IO"] + size["ARENA"] }' "$1"
}

sample() { # NAME TRAIN STEPS
    name=$1 train=$2 steps=$3
    check "$name: check" "$MDLC" check "samples/$name.mdl"
    check "$name: emit and build" built "$name"
    [ -x "$program" ] || return
    check "$name: report" "$MDLC" report "samples/$name.mdl"
    "$MDLC" report --format=json "samples/$name.mdl" >"$scratch/report.json" || fail "$name: report --format=json"
    check "$name: info" "$program" info

    if "$program" $train --steps "$steps" --seed 1 --log json --save "$scratch/$name.safetensors" \
        >"$scratch/log" 2>"$scratch/err"; then
        pass
    else
        fail "$name: training" "$(head -n 1 "$scratch/err")"
        return
    fi
    end=$(grep '"event":"end"' "$scratch/log")
    memory=$(grep '"event":"memory"' "$scratch/log")
    first=$(grep '"event":"step"' "$scratch/log" | head -n 1)
    awk -v a="$(number "$first" loss)" -v b="$(number "$end" loss)" 'BEGIN { exit !(b != "" && b + 0 < a + 0) }' &&
        pass || fail "$name: loss" "from $(number "$first" loss) to $(number "$end" loss) in $steps steps"
    run=$(number "$memory" total) report=$(total_of_report "$scratch/report.json") header=$(total_of_header "$program.h")
    [ -n "$run" ] && [ "$run" = "$report" ] && [ "$run" = "$header" ] && pass ||
        fail "$name: total" "run $run, report $report, header $header"
    bound=$(number "$end" bound_bytes) peak=$(number "$end" peak_over_process_bytes)
    [ "${peak:-0}" -gt 0 ] && pass || fail "$name: no measured peak in the log"
    [ "$(number "$end" resident_growth_pages)" = 0 ] && pass ||
        fail "$name: resident memory grew by $(number "$end" resident_growth_pages) pages (bound $bound, peak $peak)"

    # The same run again gives the same bytes; another seed does not.
    "$program" $train --steps "$steps" --seed 1 --log none --save "$scratch/again.safetensors" >/dev/null 2>&1
    cmp -s "$scratch/$name.safetensors" "$scratch/again.safetensors" && pass || fail "$name: a second run differs"
    "$program" $train --steps 3 --seed 1 --log none --save "$scratch/one.safetensors" >/dev/null 2>&1
    "$program" $train --steps 3 --seed 2 --log none --save "$scratch/two.safetensors" >/dev/null 2>&1
    cmp -s "$scratch/one.safetensors" "$scratch/two.safetensors" && fail "$name: the seed changes nothing" || pass
}

sample digits "" 110
if [ -f "$scratch/digits.safetensors" ]; then
    check "digits: eval" "$program" eval --load "$scratch/digits.safetensors" --log json
    grep -q '"rows":359' "$scratch/check.log" && pass || fail "digits: eval does not use all 359 rows"
fi
sample diabetes fit 2000
if [ -f "$scratch/log" ]; then
    "$program" adam_fit --steps 20000 --seed 1 --log json >"$scratch/log" 2>/dev/null
    line=$(grep '"event":"end"' "$scratch/log")
    awk -v m="$(number "$line" loss)" 'BEGIN { e = m / 2859.69634758675 - 1; exit !(m != "" && e < 1e-5 && e > -1e-5) }' &&
        pass || fail "diabetes: adamw ends at $(number "$line" loss)"
    "$program" fit --steps 20000 --seed 1 --log json >"$scratch/log" 2>/dev/null
    line=$(grep '"event":"end"' "$scratch/log")
    awk -v m="$(number "$line" loss)" 'BEGIN { e = m / 2859.69634758675 - 1; exit !(m != "" && e < 1e-5 && e > -1e-5) }' &&
        pass || fail "diabetes: sgd ends at $(number "$line" loss)"
fi
sample residual "" 60
sample chars "" 60
summary samples
