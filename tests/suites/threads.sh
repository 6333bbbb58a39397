#!/bin/sh
# The same bits with 1, 2 and 3 threads, and three threads really run.
set -u
. tests/lib.sh

for case in "digits::60" "diabetes:fit:300" "residual::30" "chars::20" "tests/suites/nested.mdl::20"; do
    source=${case%%:*} rest=${case#*:}
    name=$(basename "$source" .mdl)
    train=${rest%%:*} steps=${rest#*:}
    built "$source" || { fail "$name" "does not build"; continue; }
    for threads in 1 2 3; do
        "$program" $train --steps "$steps" --seed 3 --threads $threads --log json \
            --save "$scratch/$name.$threads" >"$scratch/log" 2>"$scratch/err" || fail "$name with $threads threads" "$(head -n 1 "$scratch/err")"
        # Losses and metrics; times and sizes differ by nature.
        sed -n 's/.*"step":\([0-9]*\).*\("loss":[^,}]*\).*/\1 \2/p' "$scratch/log" >"$scratch/$name.$threads.log"
    done
    for threads in 2 3; do
        cmp -s "$scratch/$name.1" "$scratch/$name.$threads" && pass || fail "$name: weights differ with $threads threads"
        [ -s "$scratch/$name.1.log" ] && cmp -s "$scratch/$name.1.log" "$scratch/$name.$threads.log" && pass ||
            fail "$name: losses differ with $threads threads"
    done
done

if [ ! -r /proc/self/status ]; then
    skip "three threads" "no /proc here"
elif built digits; then
    "$program" --steps 20000 --threads 3 --log none >/dev/null 2>&1 &
    pid=$!
    seen=0 tries=0
    while [ $tries -lt 200 ] && kill -0 $pid 2>/dev/null; do
        now=$(sed -n 's/^Threads:[^0-9]*//p' "/proc/$pid/status" 2>/dev/null)
        [ "${now:-0}" -le $seen ] || seen=$now
        [ $seen -lt 3 ] || break
        tries=$((tries + 1))
        sleep 0.02
    done
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $seen -eq 3 ] && pass || fail "three threads" "saw $seen"
fi
summary threads
