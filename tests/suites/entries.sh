#!/bin/sh
# Programs with several entries over one store (entries.mdl): a host calls them and compares bytes,
# plainly built and under the sanitizers.
set -u
. tests/lib.sh

"$MDLC" --no-main tests/suites/entries.mdl -o "$scratch/entries.c" -H "$scratch/entries.h" ||
    { fail entries "does not compile"; summary entries; exit 1; }
for flags in "-O2 -Wall -Wextra -Werror" "-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all"; do
    # shellcheck disable=SC2086
    if ! $CC $flags -I"$scratch" tests/suites/entries.c "$scratch/entries.c" -lm -o "$scratch/entries" 2>"$scratch/err"; then
        case $flags in
        *sanitize*) skip "entries $flags" "$(grep -m 1 error "$scratch/err")" ;;
        *) fail "entries $flags" "$(grep -m 1 error "$scratch/err")" ;;
        esac
        continue
    fi
    check "entries $flags" "$scratch/entries"
done
summary entries
