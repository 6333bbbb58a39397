#!/bin/sh
# Sums of every form against sums in double: 1,024 and 131,072 terms (with LONG=1 also 2^20 and 10^7),
# of loops 1,024 and 20,000. Each error stays below one bound, whatever the number of terms.
set -u
. tests/lib.sh
sizes="1024:1024:1024 131072:4096:20000"
[ "${LONG:-0}" = 0 ] || sizes="$sizes 1048576:4096:100000 10485760:3000:200000"
for size in $sizes; do
    terms=${size%%:*} rest=${size#*:}
    rows=${rest%%:*} turns=${rest#*:}
    if "$MDLC" --prefix net -D N="$terms" -D P="$rows" -D L="$turns" --no-main tests/suites/sums.mdl -o "$scratch/net.c" -H "$scratch/net.h" &&
        emitted "$scratch/net.c" "$scratch/net.o" -c && $CC -O2 -DN="$terms" -DP="$rows" -DL="$turns" -I"$scratch" tests/suites/sums.c "$scratch/net.o" -fopenmp -lm -o "$scratch/sums"; then
        "$scratch/sums" >"$scratch/out" 2>&1
        status=$?
        grep FAIL "$scratch/out" | sed 's/^FAIL/   /'
        read -r _ checked _ failed_ <<END
$(tail -n 1 "$scratch/out")
END
        [ $status = 0 ] && [ "${checked:-0}" -gt $((2 * terms)) ] && pass || fail "$terms terms" "${failed_:-?} sums are off, exit status $status"
        echo "$terms terms, worst: $(grep -v '^FAIL\|^checked' "$scratch/out" | sort -g -k3 | tail -n 1 | sed 's/\(.*\) \(.*\) /\1, \2: /')"
    else
        fail "$terms terms" "does not build"
    fi
done

# Beyond the range of the type, and with terms that are no numbers: what a plain sum gives.
if "$MDLC" tests/suites/sums_over.mdl -o "$scratch/over.c" && emitted "$scratch/over.c" "$scratch/over"; then
    while read -r entry value; do
        printf '%s [2] = V V\n' running scattered looped | sed "s/V/$value/g" >"$scratch/wanted"
        "$scratch/over" "$entry" 2>"$scratch/err" | sed 's/-nan/nan/g' >"$scratch/given"
        same "sums of $entry terms" "$scratch/wanted" "$scratch/given"
    done <<END
large inf
below -inf
infinite inf
undefined nan
END
else
    fail "sums out of range" "does not build"
fi

# The largest and the least of long rows, which are lanes of keys (md_key_of_f32).
if "$MDLC" tests/suites/extremes.mdl -o "$scratch/ends.c" && emitted "$scratch/ends.c" "$scratch/ends"; then
    grep -q 'md_max_key(md_key_of_f32(' "$scratch/ends.c" && pass || fail "extremes" "no keys"
    while read -r entry most least above below; do
        printf '%s [2] = %s\n' most "$most $most" least "$least $least" above "$above $above" below "$below $below" >"$scratch/wanted"
        "$scratch/ends" "$entry" 2>"$scratch/err" | sed 's/-nan/nan/g' >"$scratch/given"
        same "extremes: $entry" "$scratch/wanted" "$scratch/given"
    done <<END
plain 687 -400 699 -400
negative -1 -1088 -1 -1100
infinite inf -inf inf -inf
lowest -inf -inf -inf -inf
undefined nan nan nan nan
roots nan nan nan nan
END
else
    fail "extremes" "does not build"
fi
summary sums
