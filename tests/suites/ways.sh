#!/bin/sh
# The nets that `make bench` measures, compiled in all the ways that options give, and the models of the suites
# in the least memory that a budget may give them: the checker of plans takes each, and the C for one thread is C.
# LONG=1 (make accept): also the samples and the nets of tests/unit/programs, and the C of all of them is C; and the
# programs of tests/programs.
set -u
. tests/lib.sh
: "${LONG:=}"

sources=$(ls tests/bench/*.mdl)
[ -z "$LONG" ] || sources="$sources $(ls samples/*.mdl tests/unit/programs/*.mdl)"
[ -n "$LONG" ] || echo "left to make accept (LONG=1): samples, nets of tests/unit/programs and tests/programs, and the C compiler's word on what is for more than one thread"

# One way a line.
cat >"$scratch/ways" <<'END'
--threads=1
--threads=3 --precision=f64
--threads=1 --precision=f64
--precision=bf16
--precision=bf16,always --threads=1
--precision=bf16,always --for=znver4
--precision=bf16(master=false)
--precision=bf16(master=false),always --threads=1
--precision=f16 --for=x86-64-v3
--checks=nan
--checks=canary --threads=1
--profile
--profile --precision=f64 --threads=1
--blas=openblas --threads=1
--runtime=whole --line
--target=cuda --no-main
--target=cuda --no-main --precision=bf16
END
for source in $sources; do
    case $source in */00_nn.mdl) continue ;; esac # a library
    while read -r way; do
        # shellcheck disable=SC2086
        "$MDLC" $way "$source" -o "$scratch/way.c" 2>"$scratch/err" </dev/null
        rc=$?
        # The budget of a source may not do for f64, and a target may lack a kind of loop.
        [ $rc = 0 ] || grep -q '\[E06\(01\|13\|14\)\]$' "$scratch/err" && pass || fail "$source $way" "status $rc: $(head -n 1 "$scratch/err")"
        case "$LONG:$rc:$way" in
        1:0:*cuda* | 1:0:*openblas*) ;; # suites/cuda, suites/openblas
        1:0:* | :0:--threads=1) # loops are joined otherwise where there is one thread
            check "$source $way: C" "$CC" -std=c11 -march=native -fopenmp -Wall -Wextra -Werror -fsyntax-only "$scratch/way.c"
            ;;
        esac
    done <"$scratch/ways"
done
for source in tests/suites/*.mdl $([ -z "$LONG" ] || ls tests/programs/*.mdl); do
    "$MDLC" --budget=1 "$source" -o "$scratch/way.c" 2>"$scratch/err"
    rc=$? least=$(sed -n 's/.* needs \([0-9]*\) bytes.*/\1/p' "$scratch/err" | head -n 1)
    [ $rc = 3 ] && [ -n "$least" ] && pass || fail "$source --budget=1" "status $rc: $(head -n 1 "$scratch/err")"
    check "$source --budget=$least" "$MDLC" --budget="${least:-0}" "$source" -o "$scratch/way.c"
done
summary ways
