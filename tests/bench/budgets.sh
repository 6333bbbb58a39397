#!/bin/sh
# `make bench-budgets`: what a budget costs in time, as reports tell it and as it is measured.
#
# Seven trains, each without a budget, with 75 and 50 % of what a budget can do without, and with the
# least; their programs run in turn, on THREADS threads (1), ROUNDS times (5), and the shortest run of
# each counts. A row says how much longer a step takes than without a budget, told and measured, and how
# far that is off. NETS chooses, SHARES says which budgets, SECONDS_EACH how long a run lasts, RUNNER a
# command that runs programs. Nothing fails: machines are noisy, and a row that stands out is to be run again alone.
set -u
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}" "${CC:=cc}" "${THREADS:=1}" "${ROUNDS:=5}" "${SECONDS_EACH:=1}"
: "${NETS:=blocks gpt resnet unet chargru lstm feedback}" "${SHARES:=75 50 0}" "${RUNNER:=}"
. tests/bench/train.sh
out=$BUILD/budgets
rm -rf "$out"
mkdir -p "$out"
flags=$("$MDLC" flags)

# told FILE OPTION...: total and predicted nanoseconds of its train.
told() {
    "$MDLC" report --report=json --threads="$THREADS" "$@" | tr '{,' '\n\n' | awk -F: '
        $1 == "\"total\"" && !total { total = $2 + 0 }
        $1 == "\"kind\"" { inside = $2 == "\"train\"" }
        $1 == "\"predicted_ns\"" && inside { print total, $2 + 0; exit }'
}
least() { # FILE
    "$MDLC" --threads="$THREADS" --budget=1 "$1" -o "$out/none.c" 2>&1 | sed -n 's/.*needs \([0-9]*\) bytes.*/\1/p'
}
# compiled PROGRAM: of $file, with what the driver of steps needs, or (no `batch`) with a main.
compiled() {
    program=$1
    shift
    if [ -n "$batch" ]; then
        # shellcheck disable=SC2086
        "$MDLC" --no-main --prefix net --threads="$THREADS" "$@" "$file" -o "$program.c" -H "$out/net.h" &&
            $CC $flags -D_POSIX_C_SOURCE=200809L -std=gnu11 -I"$out" '-DMODEL_HEADER="net.h"' -DMODEL=net '-DM(x)=net_##x' \
                '-DM_MACRO(x)=NET_##x' "-DBATCH=$batch" "-DWIDTH=$width" "-DCLASSES=$classes" tests/bench/step.c "$program.c" -lm -o "$program"
    else
        # shellcheck disable=SC2086
        "$MDLC" --threads="$THREADS" "$@" "$file" -o "$program.c" && $CC $flags "$program.c" -lm -o "$program"
    fi
}
# Microseconds of a step; a run with a main, less one of a few steps, which begins as it does.
timed() { # PROGRAM
    if [ -n "$batch" ]; then
        OMP_NUM_THREADS=$THREADS $RUNNER "$1" "$SECONDS_EACH"
    else
        (
            cd "$out" || exit 1 # where its data are
            program=./${1##*/} few=$((steps / 10)) begin=$(date +%s%N)
            # shellcheck disable=SC2086
            $RUNNER "$program" fit $input --threads "$THREADS" --steps $few --log none >/dev/null || exit 1
            middle=$(date +%s%N)
            # shellcheck disable=SC2086
            $RUNNER "$program" fit $input --threads "$THREADS" --steps "$steps" --log none >/dev/null || exit 1
            echo "$begin $middle $(date +%s%N) $((steps - few))" | awk '{ printf "%.3f\n", ($3 - $2 - ($2 - $1)) / $4 / 1000 }')
    fi
}
lowest() { sort -n "$1" | head -n 1; }

# Words for the text model, and what the net that is fed its output begins with: the values do not matter.
awk 'BEGIN { srand(1); for (i = 0; i < 200000; i++) printf "%c", 97 + int(26 * rand()) }' >"$out/tinyshakespeare.txt"
{
    printf "\223NUMPY\1\0v\0"
    printf "%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': (32, 4), }"
    head -c 512 /dev/zero | tr '\0' '>'
} >"$out/x.npy"

echo "net        budget       bytes    told us   measured us    told  measured    off"
for name in $NETS; do
    batch='' width='' classes='' steps='' input=''
    file=tests/bench/$name.mdl
    case $name in
    blocks) file=tests/suites/budgets.mdl steps=2000 ;;
    gpt) batch=12 width=65 classes=10 ;;
    resnet) batch=32 width=3072 classes=10 ;;
    unet) batch=8 width=12288 classes=2 ;;
    lstm) batch=32 width=129 classes=10 ;;
    gru) batch=64 width=4096 classes=10 ;;
    chargru) file=tests/unit/programs/06_chargru.mdl steps=40 ;;
    feedback) file=tests/suites/feedback.mdl steps=10000 input="--in x=x.npy" ;;
    *) echo "no net is called $name" >&2 && exit 2 ;;
    esac
    whole=$(told "$file") low=$(least "$file")
    total=${whole% *} sides=none
    compiled "$out/$name.none" || exit 1
    echo "$whole" >"$out/$name.none.told"
    for share in $SHARES; do
        [ "$low" -lt "$total" ] || continue # it takes the least as it is
        budget=$((low + (total - low) * share / 100))
        told "$file" --budget=$budget >"$out/$name.$share.told"
        compiled "$out/$name.$share" --budget=$budget || exit 1
        sides="$sides $share"
    done
    round=0
    while [ $round -lt "$ROUNDS" ]; do
        for side in $sides; do
            timed "$out/$name.$side" >>"$out/$name.$side.us" || exit 1
        done
        round=$((round + 1))
    done
    for side in $sides; do
        echo "$name $side $(cat "$out/$name.none.told") $(lowest "$out/$name.none.us") $(cat "$out/$name.$side.told") $(lowest "$out/$name.$side.us")" | awk '{
            told = $7 / $4; is = $8 / $5
            printf "%-10s %6s %11d %10.1f %13.1f %7.3f %9.3f %+5.1f%%\n", $1, $2 == "none" ? "none" : $2 "%", $6, $7 / 1000, $8, told, is, (told / is - 1) * 100 }'
    done
done
