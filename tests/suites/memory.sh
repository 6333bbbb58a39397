#!/bin/sh
# No allocation and no new page in a step: calls of the allocator and of mmap are counted in a short
# and in a long run (evaluation, logging and saving included), and resident pages are compared.
set -u
. tests/lib.sh

wrap=-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=mmap,--wrap=munmap
calls() { # NAME TRAIN STEPS: the number of calls in a run
    rm -f "$scratch/calls"
    WRAP_OUT=$scratch/calls "$scratch/$1" $2 --steps "$3" --seed 1 --eval-every 5 --log json \
        --save "$scratch/out.safetensors" >"$scratch/log" 2>"$scratch/err" || return 1
    cat "$scratch/calls"
}

for case in "digits::200" "diabetes:fit:2000" "residual::60" "chars::30"; do
    name=${case%%:*} rest=${case#*:}
    train=${rest%%:*} long=${rest#*:}
    "$MDLC" "samples/$name.mdl" -o "$scratch/$name.c" &&
        emitted "$scratch/$name.c" "$scratch/$name" tests/suites/wrap.c $wrap ||
        { fail "$name" "does not build"; continue; }
    few=$(calls $name "$train" 10) && many=$(calls $name "$train" "$long") || { fail "$name" "$(head -n 1 "$scratch/err")"; continue; }
    # One call at least: main maps its memory. Nothing more in the longer run.
    [ "${few:-0}" -gt 0 ] && [ "$few" = "$many" ] && pass ||
        fail "$name: calls of the allocator" "$few in 10 steps, $many in $long"
    growth=$(number "$(grep '"event":"end"' "$scratch/log")" resident_growth_pages)
    [ "$growth" = 0 ] && pass || fail "$name: resident memory grew by $growth pages"
done
summary memory
