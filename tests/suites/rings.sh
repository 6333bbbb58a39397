#!/bin/sh
# Rings that are too short: the message names them, in programs and in mdlc run; a train that pushes to
# the ring it samples fills it first, and ends with the same bytes when it is stopped and resumed.
set -u
. tests/lib.sh
run() { # OUT [ARG...]
    run_out=$1
    shift
    "$scratch/rings" "$@" >"$run_out" 2>"$scratch/err"
}

for checks in none nan canary; do
    if ! "$MDLC" --checks=$checks tests/suites/rings.mdl -o "$scratch/rings.c" ||
        ! $CC -O1 -Wall -Wextra -Werror -fopenmp "$scratch/rings.c" -lm -o "$scratch/rings"; then
        fail "rings $checks" "does not build"
        continue
    fi
    # Sixteen calls fill the ring of one row a call, three that of four; the clock goes on in them.
    run "$scratch/out" fit --checkpoint "$scratch/whole" && run "$scratch/held" held --resume "$scratch/whole"
    grep -q '^left out: 16 batches that filled a ring$' "$scratch/out" && pass || fail "fit $checks" "$(cat "$scratch/out" "$scratch/err")"
    grep -q '^n = 28$' "$scratch/held" && grep -q '^clock = 28$' "$scratch/held" && pass || fail "fit $checks" "$(cat "$scratch/held")"
    run "$scratch/out" again --checkpoint "$scratch/data"
    grep -q '^left out: 3 batches that filled a ring$' "$scratch/out" && [ "$(grep -c '^left out' "$scratch/out")" = 1 ] && pass || fail "again $checks" "$(cat "$scratch/out" "$scratch/err")"
    # Those that filled a ring and those that are no numbers are counted apart, also behind a resume.
    run "$scratch/spoilt" spoilt --skip-nonfinite 3 --checkpoint "$scratch/partly" && run "$scratch/json" spoilt --skip-nonfinite 3 --log json
    no_number=$(sed -n 's/^left out: \([0-9]*\) batches whose loss or gradient norm is no number$/\1/p' "$scratch/spoilt")
    [ "${no_number:-0}" -gt 1 ] && grep -q '^left out: 3 batches that filled a ring$' "$scratch/spoilt" &&
        grep -q "\"event\":\"end\".*\"skipped\":$((no_number + 3)),\"filled\":3," "$scratch/json" && pass || fail "two kinds $checks" "$(cat "$scratch/spoilt" "$scratch/err")"
    run "$scratch/out" spoilt --skip-nonfinite 3 --steps 5 --checkpoint "$scratch/part" && run "$scratch/out" spoilt --skip-nonfinite 3 --resume "$scratch/part"
    grep '^left out' "$scratch/spoilt" >"$scratch/want"
    grep '^left out' "$scratch/out" >"$scratch/got"
    same "two kinds $checks, resumed" "$scratch/want" "$scratch/got"
    for train in fit again; do
        [ $train = fit ] && whole=$scratch/whole || whole=$scratch/data
        run "$scratch/out" $train --steps 5 --checkpoint "$scratch/part" &&
            run "$scratch/out" $train --resume "$scratch/part" --checkpoint "$scratch/rest" --threads 1
        same "$train $checks: stopped and resumed" "$whole" "$scratch/rest"
    done
    exits "copies $checks" 1 "ring 'replay' holds 0 rows, and 2 are sampled (.*rings.mdl:37)" run "$scratch/out" copies
done
# The evaluator makes the same updates.
"$MDLC" run --entry fit --calls 3 tests/suites/rings.mdl | sed -n 's/^loss = //p' >"$scratch/want"
run "$scratch/out" fit --steps 3 --log json
sed -n 's/.*"event":"step".*"loss":\([-0-9.e]*\).*/\1/p' "$scratch/out" >"$scratch/got"
paste "$scratch/want" "$scratch/got" | awk '{ d = $1 / $2 - 1; if (d < 0) d = -d; if (!(d < 1e-5)) bad++; n++ } END { exit bad > 0 || n < 1 }' &&
    pass || fail "mdlc run" "$(paste "$scratch/want" "$scratch/got")"
exits "mdlc run copies" 2 "'copies': ring 'replay' holds 0 rows, and 2 are sampled" "$MDLC" run --entry copies tests/suites/rings.mdl 2>"$scratch/err"
# The dumped graph makes the same program.
"$MDLC" --dump=narrow tests/suites/rings.mdl >"$scratch/dump.mdl" && "$MDLC" --no-main --prefix ring_net "$scratch/dump.mdl" -o "$scratch/b.c" &&
    grep -q 'ring_net_fit_fill(' "$scratch/b.c" && pass || fail dump "no entry that fills"
summary rings
