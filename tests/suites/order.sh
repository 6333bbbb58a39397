#!/bin/sh
# What is on the disk when: a file that a program saves, and one that mdlc writes, is synced before it
# gets its name, and its folder behind that. System calls are those of faults.c, which logs them;
# order.awk reads the log. The same programs without the sync must be noticed.
set -u
. tests/lib.sh
have objcopy || { skip order "no objcopy"; summary order; exit; }
rename=
for call in $(sed -n 's/^[a-z].*fault_\([a-z]*\)(.*{$/\1/p' tests/suites/faults.c); do
    rename="$rename --redefine-sym $call=fault_$call"
done

# follow LOG GOAL COUNT: what order.awk says of it.
follow() { awk -v goal="$2" -f tests/suites/order.awk "$1" >"$scratch/said"; [ "$(cat "$scratch/said")" = "$3 in place" ]; }
# ordered NAME GOAL COUNT COMMAND...: files with that name, so often put in place, each in order; in
# all the ways in which a system gives a file its name.
ordered() {
    ordered_name=$1 ordered_goal=$2 ordered_count=$3
    shift 3
    for way in FAULT_NAMED= "FAULT=none 1 1" "FAULT=linkat 1 1"; do
        [ "$way" = FAULT_NAMED= ] && way=FAULT_NAMED=1
        rm -f "$scratch/log"
        env "$way" FAULT_LOG="$scratch/log" "$@" >"$scratch/out" 2>"$scratch/err" || { fail "$ordered_name, $way" "$(head -n 1 "$scratch/err")"; continue; }
        follow "$scratch/log" "$ordered_goal" "$ordered_count" && pass || fail "$ordered_name, $way" "$(cat "$scratch/said")"
    done
}
# planted NAME GOAL COMMAND...: without a sync the log says so.
planted() {
    planted_name=$1 planted_goal=$2 planted_count=$3 planted_says=$4
    shift 4
    rm -f "$scratch/log"
    FAULT_LOG="$scratch/log" "$@" >"$scratch/out" 2>"$scratch/err" || fail "$planted_name" "$(head -n 1 "$scratch/err")"
    follow "$scratch/log" "$planted_goal" "$planted_count"
    grep -q "$planted_says" "$scratch/said" && pass || fail "$planted_name" "is not noticed"
}

# ---- emitted programs ----
# program NAME SED...: $scratch/NAME, its source as the script leaves it.
program() {
    sed "$2" "$scratch/hostile.c" >"$scratch/$1.c" && $CC -O0 -c "$scratch/$1.c" -o "$scratch/$1.o" && objcopy $rename "$scratch/$1.o" &&
        $CC "$scratch/$1.o" tests/suites/faults.c -lm -o "$scratch/$1" || { fail "$1" "does not build"; summary order; exit 1; }
}
"$MDLC" tests/suites/resume.mdl -o "$scratch/hostile.c" || fail order "does not compile"
program saves ''
program unsynced '/^MD_COLD int md_out_complete/,/^}/s/fsync(o->fd)/0/'
program bare '/^MD_COLD void md_out_sync_folder/,/^}/s/fsync(fd)/0/'
cmp -s "$scratch/saves.c" "$scratch/unsynced.c" && fail "a program without a sync" "is the program" || pass
cmp -s "$scratch/saves.c" "$scratch/bare.c" && fail "a program without a sync of the folder" "is the program" || pass
mkdir "$scratch/to"
fit="fit --steps 6 --log none"
# shellcheck disable=SC2086
{
    ordered "weights" /to/w 1 "$scratch/saves" $fit --save "$scratch/to/w"
    ordered "weights again" /to/w 3 "$scratch/saves" $fit --save "$scratch/to/w" --save-every 2
    ordered "a checkpoint" /to/c 3 "$scratch/saves" $fit --checkpoint "$scratch/to/c" --save-every 2
    FAULT_LOG="$scratch/log" "$scratch/saves" $fit --eval-every 2 --best "$scratch/to/b"
    follow "$scratch/log" /to/b 0 && fail "the best weights" "none" || { grep -q '^[1-3] in place$' "$scratch/said" && [ "$(wc -l <"$scratch/said")" = 1 ]; } && pass ||
        fail "the best weights" "$(cat "$scratch/said")"
    planted "weights that are not synced" /to/w 1 "gets its name before" "$scratch/unsynced" $fit --save "$scratch/to/w"
    planted "a checkpoint that is not synced" /to/c 1 "gets its name before" "$scratch/unsynced" $fit --checkpoint "$scratch/to/c"
    planted "a folder that is not synced" /to/w 1 "folder is not synced" "$scratch/bare" $fit --save "$scratch/to/w"
}

# ---- the compiler ----
# Its own object, with the calls renamed, in front of the library.
object=$BUILD/obj/compiler/driver/output.o sanitize=
if [ -f "$object" ] && [ -f "$BUILD/libmdlc.a" ] && [ -f "$BUILD/obj/compiler/driver/main.o" ]; then
    nm "$object" | grep -q __asan && sanitize="$sanitize -fsanitize=address,undefined"
    nm "$object" | grep -q __gcov && sanitize="$sanitize --coverage"
    # shellcheck disable=SC2086
    objcopy $rename "$object" "$scratch/output.o" && $CC $sanitize "$BUILD/obj/compiler/driver/main.o" "$scratch/output.o" tests/suites/faults.c \
        "$BUILD/libmdlc.a" -lm -o "$scratch/mdlc" || fail "mdlc" "does not build"
    ordered "mdlc" /to/x 3 "$scratch/mdlc" tests/suites/resume.mdl -o "$scratch/to/x.c" -H "$scratch/to/x.h" -MD
    ordered "mdlc fmt" /to/f 1 "$scratch/mdlc" fmt tests/suites/resume.mdl -o "$scratch/to/f.mdl"
    # A file that fails late leaves those before it as they were.
    for call in "fsync 3 5" "write 3 28" "close 1 5"; do
        echo old >"$scratch/to/x.c"
        echo old >"$scratch/to/x.h"
        FAULT="$call" "$scratch/mdlc" tests/suites/resume.mdl -o "$scratch/to/x.c" -H "$scratch/to/x.h" -MD 2>"$scratch/err"
        order_rc=$?
        case $call in close*) wanted=x.h ;; *) wanted="x.c x.h" ;; esac
        for name in $wanted; do
            [ "$(cat "$scratch/to/$name")" = old ] && pass || fail "mdlc: $call" "$name is another"
        done
        [ $order_rc -eq 4 ] && grep -q '^mdlc: cannot write .*; the file is as it was$' "$scratch/err" && pass || fail "mdlc: $call" "status $order_rc: $(cat "$scratch/err")"
        [ -z "$(find "$scratch/to" -name '*.tmp*')" ] && pass || fail "mdlc: $call" "left: $(ls "$scratch/to")"
    done
else
    skip "mdlc" "its objects are not there"
fi
summary order
