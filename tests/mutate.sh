#!/bin/sh
# What the tests notice: COUNT small wrong changes of the passes and of the checks of types and
# shapes, one at a time, each built and run against the suites until one of them fails.
#
#     COUNT=240 SEED=1 JOBS=2 sh tests/mutate.sh          (make mutants)
#
# Each job works in a copy of the tracked files. A change whose object code is the same is not a
# change and is left out; so is one that does not compile. The rest is killed (by the suite named)
# or survives. Emitted programs that were built before are not built again. The table is
# $BUILD/mutants/result, the closing line the score. A run that was cut off goes on where it stopped
# when COUNT and SEED are the same. PLACES=FILE takes the changes from a file, lines as the tool
# prints them, such as the survivors of an earlier run; FROM="lang/ode.c" draws them from these
# files; SUITES="cases unit/test_plan" runs these alone. QUICK=1 stops behind the unit tests of
# seconds and the cases: its score is a lower bound. Status 0 when at least LEAST per cent are killed.
set -u
: "${BUILD:=build}" "${COUNT:=220}" "${SEED:=1}" "${JOBS:=2}" "${LEAST:=85}" "${CC:=cc}" "${QUICK:=0}"
out=$BUILD/mutants
tool=$BUILD/tests/tools/mutate
: "${FROM:=$(ls passes/*.c passes/*/*.c lang/ode*.c) compiler/shape.c compiler/times.c compiler/driver/recompute.c lang/arith.c lang/dims.c lang/notation.c lang/access.c lang/bind.c lang/fold.c lang/loop.c lang/scan.c}"
mkdir -p "$out"
CACHE=$(pwd)/$out/cache REAL=$CC cached=$(pwd)/tests/tools/cached_cc.sh
export CACHE REAL
# shellcheck disable=SC2086
if [ -n "${PLACES:-}" ]; then
    cp "$PLACES" "$out/places.new"
else
    "$tool" -s "$SEED" -c "$COUNT" $FROM >"$out/places.new"
fi
# The suites have seeds and counts of these names: they run as they do in `make test`.
unset SEED COUNT
# Data beside the tree is beside its copies too.
[ ! -d ../shared ] || ln -sfn "$(cd ../shared && pwd)" "$out/shared"
cmp -s "$out/places.new" "$out/places" || {
    rm -f "$out"/result.*
    cp "$out/places.new" "$out/places"
}

# What is run against a change, from the quickest to the slowest. Suites that take minutes, or have
# nothing to do with the file, are left out: the score is what these few notice, and no more.
units() {
    ls tests/unit/test_*.c | sed 's|tests/||; s|\.c$||' |
        awk '/test_(parse|mutants|base)$/ { next }
             /test_(ops|library|alloc)$/ { $2 = 1 } /test_(dump|plan_random|vjp_mutants|module)$/ { $2 = 3 }
             /test_share$/ { $2 = 4 } /test_(again|plan_budget)$/ { $2 = 4 } /test_(lower|random)$/ { $2 = 5 }
             { print $2 + 0, $1 } END { print 0, "cases"; print 0, "structure" }' | sort -n | cut -d ' ' -f 2
}
quick_suites() { # FILE
    if [ -n "${SUITES:-}" ]; then
        echo "$SUITES" | tr ' ' '\n'
        return
    fi
    units | grep -vE 'test_(random|lower)$'
    case $1 in lang/*) echo errors ;; esac
}
# Sanitizers and arenas of one block a chunk see what reads beside an array.
slow_suites() {
    echo flavours
    units | grep -E 'test_(random|lower)$'
}
# These build and run emitted programs. The same text behaves as it did before.
emitted_suites() {
    printf 'threads\nbounds\ngradients\nsamples\nparity\n'
}
digest() {
    for options in --stats "--no-main --precision=f64"; do
        for file in samples/*.mdl tests/library/*.mdl tests/parity/*.mdl tests/bench/*.mdl tests/suites/*.mdl tests/cases/*/*.mdl tests/unit/programs/*.mdl; do
            # shellcheck disable=SC2046,SC2086
            timeout -k 5 30 build/mdlc $options $(sed -n 's|^// args: *||p' "$file") "$file" -o build/digest.c 2>&1
            cat build/digest.c 2>/dev/null
            rm -f build/digest.c
        done
    done | cksum
}

tools=$(ls tests/tools/*.c | sed 's|^|build/|; s|\.c$||')
build() { # TARGET...
    make -s BUILD=build OPT=-O1 WERROR= "$@" >build.log 2>&1
}

# Prints the first of the suites on standard input that fails, or nothing.
first_to_fail() {
    while read -r suite; do
        case $suite in
        unit/*) build "build/tests/$suite" ;;
        flavours) make -s WERROR=-w build/mdlc fuzzers >build.log 2>&1 ;;
        *) build build/mdlc $tools ;;
        esac
        # A wrong pass may never end, or ask for all the memory there is. The later suites run
        # sanitizers, which need address space; the early ones have met such a change by then.
        (
            ulimit -t 100
            case $suite in
            unit/test_lower | unit/test_random) ;;
            unit/* | cases) ulimit -v 6000000 ;;
            esac
            BUILD=build MDLC=build/mdlc CC=$cached HAVE_CMOCKA=yes EXACT=yes ONLY=$suite \
                timeout -k 5 900 sh tests/run.sh >run.log 2>&1
        ) || {
            echo "$suite"
            break
        }
    done
}

# Prints the suite that notices the change in the tree, or nothing.
killer() { # FILE
    by=$(quick_suites "$1" | first_to_fail)
    [ -n "$by" ] || [ "$QUICK" != 0 ] || by=$(slow_suites | first_to_fail)
    if [ -z "$by" ] && [ "$QUICK" = 0 ] && [ "$(digest)" != "$(cat right.digest 2>/dev/null)" ]; then
        by=$(emitted_suites | first_to_fail)
    fi
    echo "$by"
}

job() { # NUMBER
    tree=$out/tree$1
    rm -rf "$tree"
    mkdir -p "$tree"
    git ls-files | tar cf - -T - | tar xf - -C "$tree"
    place=0
    while read -r file number line rest; do
        place=$((place + 1))
        [ $((place % JOBS)) -eq "$1" ] || continue
        ! grep -q "^$place " "$out"/result.* 2>/dev/null || continue
        (
            cd "$tree" || exit 1
            object=build/obj/${file%.c}.o
            if [ ! -f right.done ]; then
                # shellcheck disable=SC2086
                build build/mdlc $tools && by=$(killer "$file") && [ -z "$by" ] || {
                    echo "mutants: the sources as they are fail: ${by:-the build}" >&2
                    exit 1
                }
                digest >right.digest
                : >right.done
            fi
            cp "$file" right.c
            build "$object" && cp "$object" right.o
            "../../../$tool" -n "$number" right.c >"$file"
            if ! build "$object"; then
                verdict=invalid
            elif cmp -s "$object" right.o; then
                verdict=same
            else
                by=$(killer "$file")
                verdict=${by:+killed:$by}
            fi
            cp right.c "$file"
            echo "$place ${verdict:-survived} $file:$line $rest"
        ) </dev/null >>"$out/result.$1" || exit 1
    done <"$out/places"
}

j=0
while [ $j -lt "$JOBS" ]; do
    job $j &
    j=$((j + 1))
done
trap 'kill $(jobs -p) 2>/dev/null' INT TERM
wait
sort -n "$out"/result.[0-9]* >"$out/result"
grep ' survived ' "$out/result"
awk -v least="$LEAST" '
    $2 ~ /^killed/ { killed++ } $2 == "survived" { survived++ } $2 == "same" { same++ } $2 == "invalid" { invalid++ }
    END {
        all = killed + survived
        printf "mutants: %d of %d killed, %.1f %%; %d without effect, %d do not compile\n",
            killed, all, all ? 100 * killed / all : 0, same, invalid
        exit !(all && 100 * killed >= least * all)
    }' "$out/result"
