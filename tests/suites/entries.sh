#!/bin/sh
# Programs with several entries over one store (entries.mdl): a host calls them and compares bytes,
# plainly built and under the sanitizers.
set -u
. tests/lib.sh

for name in entries stream; do
    "$MDLC" --no-main tests/suites/$name.mdl -o "$scratch/$name.c" -H "$scratch/$name.h" ||
        { fail $name "does not compile"; summary entries; exit 1; }
done
if $CC -O1 -Wall -Wextra -Werror -I"$scratch" tests/suites/stream.c "$scratch/stream.c" -lm -o "$scratch/stream"; then
    check stream "$scratch/stream"
else
    fail stream "does not build"
fi
for flags in "-O2 -Wall -Wextra -Werror" "-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all"; do
    # shellcheck disable=SC2086
    if ! $CC $flags -I. -I"$scratch" tests/suites/entries.c "$scratch/entries.c" -lm -o "$scratch/entries" 2>"$scratch/err"; then
        case $flags in
        *sanitize*) skip "entries $flags" "$(grep -m 1 error "$scratch/err")" ;;
        *) fail "entries $flags" "$(grep -m 1 error "$scratch/err")" ;;
        esac
        continue
    fi
    check "entries $flags" "$scratch/entries"
done
# The sample agent: a few thousand updates, the same bits twice, flat memory, inside its figure.
if BUILD=$scratch MDLC=$MDLC STEPS=14000 sh tests/dqn.sh >"$scratch/first" 2>"$scratch/err"; then
    "$scratch/dqn/dqn" 0 14000 >"$scratch/second"
    sed 's/, [0-9.]* s,/,/' "$scratch/first" >"$scratch/first.bits"
    sed 's/, [0-9.]* s,/,/' "$scratch/second" >"$scratch/second.bits"
    same "dqn twice" "$scratch/first.bits" "$scratch/second.bits"
    bytes=$(sed -n 's/.* declared \([0-9]*\) bytes.*/\1/p' "$scratch/first")
    [ "${bytes:-900001}" -le 900000 ] && pass || fail "dqn" "$bytes bytes declared, more than 900,000"
    # Every step but the first 10,000 and its updates, whose pages are there by then.
    grep -q 'growth 0 pages$' "$scratch/second" && pass || fail "dqn" "$(tail -n 1 "$scratch/second")"
else
    fail "dqn" "$(head -n 3 "$scratch/err")"
fi
summary entries
