#!/bin/sh
# What the passes make of the samples and test programs: kernels, loops, copies, buffers, bytes of
# arena and their least possible number, FLOPs and bytes moved of every entry against structure.txt.
# A change of a pass that costs a kernel or a byte somewhere shows here; one that is meant rewrites
# the table (`make golden`, or this script with --golden).
set -u
. tests/lib.sh
table=tests/suites/structure.txt
for file in samples/*.mdl tests/parity/*.mdl tests/suites/*.mdl tests/cases/run/*.mdl tests/cases/emit/*.mdl tests/unit/programs/*.mdl; do
    # Programs of what is refused for now are tests of the front end.
    "$MDLC" --stats -o "$scratch/x.c" "$file" >"$scratch/stats" 2>"$scratch/err" || continue
    awk -v program="$file" -F '[.:] *' '
        NF == 3 && !($1 in seen) { seen[$1] = 1; entry[++n] = $1 }
        NF == 3 { value[$1, $2] = $3 }
        END {
            for (i = 1; i <= n; i++) {
                e = entry[i]
                print program, e, value[e, "kernels"], value[e, "loops"], value[e, "copies"], value[e, "buffers"],
                    value[e, "arena"], value[e, "lower_bound"], value[e, "flops"], value[e, "bytes_moved"]
            }
        }' "$scratch/stats"
done >"$scratch/table"
if [ "${1:-}" = --golden ]; then
    cmp -s "$scratch/table" $table || { cp "$scratch/table" $table && echo "wrote $table"; }
    exit 0
fi
# One case a line; a missing or new line fails too.
awk '
    NR == FNR { want[$1 " " $2] = $0; next }
    { key = $1 " " $2; if (want[key] == $0) passed++; else { failed++; print "FAIL " $0 "\n    not " (key in want ? want[key] : "in the table") }; met[key] = 1 }
    END {
        for (key in want) if (!(key in met)) { failed++; print "FAIL " key ": is not compiled any more" }
        print passed + 0, failed + 0 >"/dev/stderr"
    }' $table "$scratch/table" 2>"$scratch/counts"
read -r passed failed <"$scratch/counts"

# A reader has 3,600 lines of the digits at most, 9,000 with a main; what a few products would share takes more
# than it spares, many share it.
lines_of() { # MOST OPTION...
    most=$1
    shift
    "$MDLC" "$@" samples/digits.mdl -o "$scratch/digits.c" && [ "$(wc -l <"$scratch/digits.c")" -le "$most" ] && pass ||
        fail "digits $*" "$(wc -l <"$scratch/digits.c") lines, at most $most"
}
lines_of 3600 --no-main
grep -q '^MD_TILE_LARGE_' "$scratch/digits.c" && fail "few products" "share a loop" || pass
lines_of 9000
"$MDLC" --no-main tests/unit/programs/04_resnet20.mdl -o "$scratch/resnet.c"
[ "$(grep -c '^MD_TILE_LARGE_' "$scratch/resnet.c")" -ge 12 ] && pass || fail "many products" "do not share a loop"
summary structure
