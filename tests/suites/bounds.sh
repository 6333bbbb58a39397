#!/bin/sh
# The printed bound is what a run maps and all it needs. The regions are one mapping of exactly the
# printed size between two pages that cannot be touched; the bytes in it are used; a run fits into
# the printed address space, and with one page less it refuses before step 0; frames stay inside the
# printed stack; the plan reaches the least possible size of its order.
set -u
. tests/lib.sh

[ -r /proc/self/maps ] || { skip bounds "no /proc here"; summary bounds; exit; }
watch=-Wl,--wrap=main,--wrap=mmap,--wrap=munmap,--wrap=mprotect
page=$(getconf PAGESIZE 2>/dev/null || echo 4096)

hook() { sed -n "s/^$1 //p" "$scratch/hooks"; }
memory() { number "$(grep '"event":"memory"' "$scratch/log")" "$1"; }
run() { # NAME TRAIN THREADS [OPTION...]: three steps with an evaluation, orders for hooks.c in the environment
    rm -f "$scratch/hooks"
    run_name=$1 run_train=$2 run_threads=$3
    shift 3
    HOOK_OUT=$scratch/hooks "$scratch/$run_name" $run_train --steps 3 --eval-every 2 --seed 1 \
        --threads "$run_threads" --log json "$@" >"$scratch/log" 2>"$scratch/err"
}

mapping() { # NAME TRAIN
    run "$1" "$2" 2 || { fail "$1" "$(head -n 1 "$scratch/err")"; return; }
    expected=$(($(memory total) + $(memory pad)))
    [ "$(hook mapped)" = "$expected" ] && pass || fail "$1: mapping" "$(hook mapped) bytes, printed $expected"
    [ "$(hook guards)" = 1 ] && pass || fail "$1: no closed page on both sides of the mapping"
    found="$(hook before) $(hook first) $(hook last) $(hook after)"
    [ "$found" = "1 0 0 1" ] && pass || fail "$1: guards" "faults before, at both ends, after: $found"
}

# The address space is limited to what it is when main starts, and what is printed.
limits() { # NAME TRAIN
    limit "$1" "$2" 1
    limit "$1" "$2" 2
    limit "$1" "$2" 2 --plot "$scratch/limit.html"
}
limit() { # NAME TRAIN THREADS [OPTION...]
    run "$@" || { fail "$1" "$(head -n 1 "$scratch/err")"; return; }
    plot=$(memory plot) profile=$(memory profile)
    space=$(($(memory total) + $(memory pad) + $(memory data) + $(memory reserved) + ${plot:-0} + ${profile:-0}))
    [ $# -eq 3 ] || [ "${plot:-0}" -gt 0 ] && pass || fail "$1: points to plot" "are not printed"
    HOOK_LIMIT=$space run "$@" && pass ||
        fail "$1: $3 threads in $space bytes of address space" "$(head -n 1 "$scratch/err")"
    HOOK_LIMIT=$((space - page)) run "$@"
    rc=$?
    if [ $rc -ne 5 ] || grep -q '"event":"step"' "$scratch/log"; then
        fail "$1: $3 threads and a page less" "status $rc, $(head -n 1 "$scratch/err")"
    else
        grep -qi 'memory' "$scratch/err" && pass ||
            fail "$1: message" "$(head -n 1 "$scratch/err")"
    fi
}

# Bytes of the arena that hold what they held before the run, whatever that was.
unused() { # NAME TRAIN
    for fill in 165 90; do
        HOOK_FILL=$fill HOOK_DUMP=$scratch/$fill run "$1" "$2" 8 || { fail "$1: filled" "$(head -n 1 "$scratch/err")"; return; }
    done
    arena=$(memory arena)
    before=$(($(memory params) + $(memory state) + $(memory io)))
    for fill in 165 90; do
        tail -c +$((before + 1)) "$scratch/$fill" | head -c "$arena" >"$scratch/arena.$fill"
    done
    never=$(cmp -l "$scratch/arena.165" "$scratch/arena.90" | awk '$2 == 245 && $3 == 132' | wc -l)
    buffers=$("$MDLC" report $FLAGS --format=json "samples/$1.mdl" | grep -c '"why"')
    most=$((arena / 100 + 64 * buffers))
    [ "$never" -le "$most" ] && pass || fail "$1: arena" "$never of $arena bytes are never written, allowed $most"
}

# within NAME ROOTS STACK: the frames below these functions of $program; leaves the chain in $found.
within() {
    found=''
    [ -s "$program.ci" ] || { skip "$1: frames" "no call graph from $CC"; return; }
    found=$(awk -v roots="$2" -f tests/suites/stack.awk "$program.ci")
    case $found in
    [0-9]*) [ "${found%% *}" -le "$3" ] && pass || fail "$1: frames" "$found is above $3" ;;
    *) fail "$1: frames" "$found" ;;
    esac
}
frames() { # NAME, after a run
    within "$1" "$(sed -n "s/^[a-z].*[ *]\($1_[a-z0-9_]*\)(.*;\$/\1/p" "$program.h" | tr '\n' ' ')" "$(memory stack_per_thread)"
}

ratios() { # NAME
    "$MDLC" report $FLAGS --format=json "samples/$1.mdl" | tr ',' '\n' | awk -F: '
        /"arena_bytes"/ { arena = $2 }
        /"lower_bound_bytes"/ { n++; if (arena > 1.05 * $2) { print arena " for at least " $2; bad = 1 } }
        END { exit bad || n == 0 }' >"$scratch/ratios" && pass || fail "$1: arena" "$(cat "$scratch/ratios")"
}

# The suite of a library asks for some of these alone: what it maps itself is its own affair.
: "${CHECKS:=ratios mapping frames limits unused}" "${CASES:=digits: diabetes:fit chars: residual:}"
for case in $CASES; do
    name=${case%%:*} train=${case#*:}
    built "$name" $FLAGS || { fail "$name" "does not build"; continue; }
    # shellcheck disable=SC2086
    $CC -O1 -fopenmp "$program.o" tests/suites/hooks.c $watch $LIBS -lm -o "$scratch/$name" || { fail "$name" "does not link"; continue; }
    for check in $CHECKS; do
        $check "$name" "$train"
    done
done
[ -z "$FLAGS" ] || { summary bounds; exit; }

# What packs operands of 16 bits keeps parts of them in its frames.
for half in bf16 f16; do
    program=$scratch/frames
    "$MDLC" --no-main --precision="$half, always" tests/suites/frames.mdl -o "$program.c" -H "$program.h" 2>"$scratch/err" ||
        fail "halves in $half" "$(head -n 1 "$scratch/err")"
    # shellcheck disable=SC2086
    (cd "$scratch" && $CC $EMITTED_FLAGS -fcallgraph-info=su -c frames.c -o frames.o 2>/dev/null) || :
    "$MDLC" report --precision="$half, always" --format=json tests/suites/frames.mdl | tr ',' '\n' | grep '"stack_per_thread"' >"$scratch/stack"
    within "halves in $half" frames_fit "$(sed 's/[^0-9]//g' "$scratch/stack")"
    case $found in
    '' | *frames_fit*md_tile*) ;;
    *) fail "halves in $half: frames" "$found" ;;
    esac
done

# The stacks of threads: as OMP_STACKSIZE cuts them, and with LLVM's OpenMP library.
if built diabetes; then
    $CC -O1 -fopenmp "$program.o" tests/suites/hooks.c $watch -lm -o "$scratch/gnu" || fail "OMP_STACKSIZE" "does not link"
    for size in 16M " 300 k "; do
        export OMP_STACKSIZE="$size"
        limits gnu fit
    done
    unset OMP_STACKSIZE
    if have clang && clang -O0 -fopenmp "$program.c" tests/suites/hooks.c $watch -lm -o "$scratch/llvm" 2>/dev/null; then
        limits llvm fit
    else
        skip "LLVM's OpenMP library" "not installed"
    fi
else
    fail diabetes "does not build"
fi

arena=$("$MDLC" --threads=1 report --format=json samples/digits.mdl | sed -n 's/.*"arena":\([0-9]*\),"total".*/\1/p')
[ "${arena:-999999}" -le 560000 ] && pass || fail "digits with one thread: arena ${arena:-unknown}"
summary bounds
