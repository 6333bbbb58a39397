#!/bin/sh
# `make busy`: steps on two threads while something else keeps a processor busy.
#
# The nets of `make bench`, a GRU and the samples with a main, each with 1 and 2 threads, on the machine
# as it is and beside one process that never sleeps, with GNU's OpenMP and with LLVM's where clang has
# one. Means, since a median hides the steps that had to wait. Fails where two threads beside the busy
# process take more than 1.3 times what one takes.
#
# NETS and COMPILERS choose, SECONDS_EACH says how long. PROGRAMS=FOLDER keeps the programs, or finds them
# there; with BUILD_ONLY=1 nothing is timed.
set -u
. tests/lib.sh
. tests/bench/train.sh
: "${NETS:=digits mlp dqn wide gru diabetes chars residual gan tune}" "${COMPILERS:=gcc clang}"
: "${SECONDS_EACH:=1}" "${PROGRAMS:=$scratch}" "${BUILD_ONLY:=}"
unset OMP_WAIT_POLICY GOMP_SPINCOUNT KMP_BLOCKTIME
busy=
trap '[ -z "$busy" ] || kill "$busy"; rm -rf "$scratch"' EXIT

# compiled NAME MODEL [FLAG...]: $program, made unless it is there. What is behind `--` goes to the C compiler.
compiled() {
    program=$PROGRAMS/$1.$compiler
    [ ! -x "$program" ] || return 0
    compiled_name=$1 compiled_model=$2
    shift 2
    # shellcheck disable=SC2086
    case $compiled_model in
    samples/*) "$MDLC" "$compiled_model" -o "$program.c" && $compiler $EMITTED_FLAGS "$program.c" -lm -o "$program" ;;
    *)
        "$MDLC" --no-main --prefix net "${compiled_model#step:}" -o "$program.c" -H "$PROGRAMS/net.h" &&
            $compiler $EMITTED_FLAGS -D_POSIX_C_SOURCE=200809L -std=gnu11 -I"$PROGRAMS" '-DMODEL_HEADER="net.h"' -DMODEL=net \
                '-DM(x)=net_##x' '-DM_MACRO(x)=NET_##x' "$@" tests/bench/step.c "$program.c" -lm -o "$program"
        ;;
    esac || { fail "$compiler $compiled_name" "it does not build"; return 1; }
}

run() { step_time "$program" "$name" "$1" mean; } # THREADS

echo "compiler  net       idle 1     idle 2     busy 1     busy 2   microseconds a step; ratio of the last two"
for name in $NETS; do
    for compiler in $COMPILERS; do
        echo 'int main(void) { return 0; }' >"$scratch/try.c"
        $compiler -fopenmp "$scratch/try.c" -o "$scratch/try" 2>/dev/null || { skip "$compiler" "no OpenMP"; continue; }
        case $name in
        digits) compiled digits step:samples/digits.mdl -DBATCH=128 -DWIDTH=64 -DCLASSES=10 ;;
        mlp) compiled mlp step:tests/bench/mlp.mdl -DBATCH=64 -DWIDTH=784 -DCLASSES=10 ;;
        dqn) compiled dqn step:tests/bench/dqn.mdl -DBATCH=128 -DWIDTH=10 -DCLASSES=2 ;;
        wide) compiled wide step:tests/bench/wide.mdl -DBATCH=64 -DWIDTH=4 -DCLASSES=4 ;;
        gru) compiled gru step:tests/bench/gru.mdl -DBATCH=64 -DWIDTH=4096 -DCLASSES=10 ;;
        lenet) compiled lenet step:tests/bench/lenet.mdl -DBATCH=64 -DWIDTH=784 -DCLASSES=10 ;;
        resnet) compiled resnet step:tests/bench/resnet.mdl -DBATCH=32 -DWIDTH=3072 -DCLASSES=10 ;;
        mobile) compiled mobile step:tests/bench/mobile.mdl -DBATCH=32 -DWIDTH=3072 -DCLASSES=10 ;;
        *) compiled "$name" "samples/$name.mdl" ;;
        esac || continue
        [ -z "$BUILD_ONLY" ] || continue
        idle1=$(run 1) idle2=$(run 2)
        sh -c 'while :; do :; done' &
        busy=$!
        busy1=$(run 1) busy2=$(run 2)
        kill "$busy"
        wait "$busy" 2>/dev/null
        busy=
        echo "$compiler $name $idle1 $idle2 $busy1 $busy2" |
            awk '{ printf "%-8s %-9s %10.1f %10.1f %10.1f %10.1f   %.2f\n", $1, $2, $3, $4, $5, $6, $6 / $5; exit $6 > 1.3 * $5 }' &&
            pass || fail "$compiler $name" "two threads are slower than one beside a busy process"
    done
done
summary busy
