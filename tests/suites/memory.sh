#!/bin/sh
# No allocation and no new page in a step: calls of the allocator (by any library) and of mmap are
# counted in a short and in a long run, evaluation, logging, points to plot and saving included; the number of
# mappings and of resident pages is compared too.
set -u
. tests/lib.sh

[ -r /proc/self/maps ] || { skip memory "no /proc here"; summary memory; exit; }
watch=-Wl,--wrap=main,--wrap=mmap,--wrap=munmap,--wrap=mprotect
run() { # NAME TRAIN STEPS THREADS: calls and mappings in a run
    rm -f "$scratch/hooks"
    # shellcheck disable=SC2086
    HOOK_OUT=$scratch/hooks "$scratch/$1" $2 --steps "$3" --threads "$4" --seed 1 \
        --eval-every $(($3 < 2000 ? 5 : 500)) --save-every $(($3 < 2000 ? 5 : 1000)) --log json --save "$scratch/out.safetensors" --plot "$scratch/out.html" >"$scratch/log" 2>"$scratch/err" || return 1
    sed -n '/^calls/p; /^maps/p' "$scratch/hooks" | tr '\n' ' '
}

# LONG=1 (make accept): a million steps of the tiny net, ten thousand of the others, two threads.
: "${LONG:=0}"
: "${CASES:=digits::200 diabetes:fit:2000 residual::60 chars::30}"
teams="1 2 3"
[ "$LONG" != 1 ] || { CASES="digits::10000 diabetes:fit:1000000 residual::10000 chars::10000" teams=2; }
hold() { # MODEL ARGUMENTS STEPS
    name=$(basename "$1" .mdl)
    built "$1" $FLAGS || { fail "$name" "does not build"; return; }
    # shellcheck disable=SC2086
    $CC -O1 -fopenmp "$program.o" tests/suites/hooks.c $watch $LIBS -lm -o "$scratch/$name" || { fail "$name" "does not link"; return; }
    for threads in $teams; do
        few=$(run "$name" "$2" 10 $threads) && many=$(run "$name" "$2" "$3" $threads) ||
            { fail "$name with $threads threads" "$(head -n 1 "$scratch/err")"; continue; }
        [ "$LONG" != 1 ] || echo "$name: $many in $3 steps"
        # One call at least: main maps its memory. Nothing more in the longer run.
        case $few in "calls 0 "*) fail "$name: nothing was counted" ;; esac
        # A library may map as it likes, but calls no allocator.
        [ -z "$LIBS" ] || few=${few%% maps*} many=${many%% maps*}
        [ "$few" = "$many" ] && pass || fail "$name with $threads threads" "$few in 10 steps, $many in $3"
        growth=$(number "$(grep '"event":"end"' "$scratch/log")" resident_growth_pages)
        [ "$growth" = 0 ] && pass || fail "$name with $threads threads: resident memory grew by $growth pages"
        end=$(grep '"event":"end"' "$scratch/log")
        [ -n "$LIBS" ] || [ "$(number "$end" peak_over_process_bytes)" -le "$(number "$end" bound_bytes)" ] && pass ||
            fail "$name with $threads threads" "peak $(number "$end" peak_over_process_bytes), bound $(number "$end" bound_bytes)"
    done
}
for case in $CASES; do
    rest=${case#*:}
    hold "${case%%:*}" "${rest%%:*}" "${rest#*:}"
done
[ -z "$FLAGS" ] || { summary memory; exit; }

# One binary for any number of steps, any seed and rate: a long run begins as a short one does, and
# another seed or rate gives other numbers.
sed 's/train fit of/train fit(lr: real = 3e-3) of/; s/cosine(3e-3,/cosine(lr,/' samples/digits.mdl >"$scratch/rate.mdl"
lightly built "$scratch/rate.mdl" || fail rate "does not build"
losses() { # OPTION...
    "$program" "$@" --log json --log-every 1 --threads 1 | sed -n 's/.*"event":"step".*"loss":\([^,}]*\).*/\1/p'
}
for settings in "--seed 1" "--seed 9223372036854775807" "--seed 1 --set lr=0.01" "--seed 1 --set lr=1e-30"; do
    # shellcheck disable=SC2086
    losses $settings --steps 10 >"$scratch/short"
    # shellcheck disable=SC2086
    losses $settings --steps 200 | head -n 10 >"$scratch/long"
    [ "$(wc -l <"$scratch/short")" = 10 ] && same "10 of 200 steps, $settings" "$scratch/short" "$scratch/long"
    cat "$scratch/short" >>"$scratch/losses"
done
# The loss before the first update knows no rate.
[ "$(sort -u "$scratch/losses" | wc -l)" = 38 ] && pass || fail "seeds and rates" "$(sort -u "$scratch/losses" | wc -l) losses, not 38"

# Rows of data that are worth a team each are read before there is one; loops with fewer parts than
# the team has threads do not change its size.
{
    printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 65536), }"
    head -c 262144 /dev/zero | tr '\0' A
} >"$scratch/rows.npy"
lightly hold tests/suites/wide.mdl "fit --data rows=$scratch/rows.npy" 40

# That the counters see what they are there for: a call of the allocator, a mapping, a page a step.
while IFS='|' read -r fault text; do
    "$MDLC" samples/diabetes.mdl -o "$scratch/fault.c" &&
        sed "s#k->step++;#k->step++; $text#" "$scratch/fault.c" >"$scratch/faulty.c" &&
        ! cmp -s "$scratch/fault.c" "$scratch/faulty.c" &&
        $CC -O0 "$scratch/faulty.c" tests/suites/hooks.c $watch -lm -o "$scratch/faulty" || { fail "$fault" "does not build"; continue; }
    few=$(run faulty fit 10 1) && many=$(run faulty fit 40 1) || { fail "$fault" "$(head -n 1 "$scratch/err")"; continue; }
    growth=$(number "$(grep '"event":"end"' "$scratch/log")" resident_growth_pages)
    case $fault in
    page) [ "$growth" -gt 30 ] ;;
    calls) [ "${few%% maps*}" != "${many%% maps*}" ] ;;
    *) [ "${few#*maps}" != "${many#*maps}" ] ;;
    esac && pass || fail "$fault" "$few in 10 steps, $many in 40, $growth pages: nothing is seen"
done <<'END'
calls|free(malloc(64));
maps|(void)mmap(NULL, 4096, r->made % 2 != 0 ? PROT_READ : PROT_NONE, MAP_PRIVATE + MAP_ANONYMOUS, -1, 0);
page|{ static char *at; if (at == NULL) { at = (char *)md_map(400000); } at[r->made * 4096] = 1; }
END
summary memory
