#!/bin/sh
# An emitted model inside another program (embed.c), under the address and undefined-behaviour
# sanitizers: it touches nothing outside the regions of the declared sizes.
set -u
. tests/lib.sh

"$MDLC" --no-main samples/digits.mdl -o "$scratch/digits.c" -H "$scratch/digits.h" ||
    { fail digits "does not compile"; summary embed; exit 1; }
# Not optimised: a sanitized tile kernel takes a compiler half a minute otherwise.
for flags in "-O1" "-O0 -g -march=native -fsanitize=address,undefined -fno-sanitize-recover=all"; do
    # shellcheck disable=SC2086
    if ! $CC $flags -I. -I"$scratch" -D_POSIX_C_SOURCE=200809L tests/suites/embed.c "$scratch/digits.c" -lm -o "$scratch/embed" 2>"$scratch/err"; then
        case $flags in
        *sanitize*) skip "embed $flags" "no sanitizers: $(grep -m 1 error "$scratch/err")" ;;
        *) fail "embed $flags" "$(grep -m 1 error "$scratch/err")" ;;
        esac
        continue
    fi
    check "embed $flags" "$scratch/embed"
done
summary embed
