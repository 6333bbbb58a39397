#!/bin/sh
# Differential equations that are looked at on the way: emitted programs give what the evaluator gives, in
# both precisions, with guard bands, and with any number of threads; a loop that meets its maximum is named by its line.
set -u
. tests/lib.sh
python3 -c 1 2>/dev/null || { skip ode "no python3"; summary ode; exit 0; }
python3 - "$scratch" <<'P'
import struct, sys
for name, values in (("y", [0.3, 1.2]), ("x", [0.3, -1.2, 0.8])):
    for kind, code in (("f32", "f"), ("f64", "d")):
        head = "{'descr': '<f%d', 'fortran_order': False, 'shape': (%d,), }" % (int(kind[1:]) // 8, len(values))
        head += " " * (117 - len(head)) + "\n"
        with open("%s/%s.%s.npy" % (sys.argv[1], name, kind), "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%d%s" % (len(values), code), *values))
P
scalar() { # FILE VALUE: an array of rank 0
    python3 -c 'import struct, sys
head = "{\x27descr\x27: \x27<f8\x27, \x27fortran_order\x27: False, \x27shape\x27: (), }"
head += " " * (117 - len(head)) + "\n"
open(sys.argv[1], "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<d", float(sys.argv[2])))' "$1" "$2"
}
scalar "$scratch/k.npy" 4
scalar "$scratch/h.npy" 20
numbers() { sed 's/ *[fiu][0-9]*\[[0-9, ]*\]//; s/ *\[[0-9, ]*\]//' "$1"; }
# close NAME BOUND: the numbers of want and got, line by line
close() {
    numbers "$scratch/want" >"$scratch/a" && numbers "$scratch/got" >"$scratch/b"
    paste -d ' ' "$scratch/a" "$scratch/b" | awk -v bound="$2" '
        { n = NF / 2; if ($1 != $(n + 1)) bad++
          for (i = 3; i <= n; i++) { d = $i - $(n + i); if (d < 0) d = -d; s = $i < 0 ? -$i : $i; if (!(d <= bound * (1 + s))) bad++; count++ } }
        END { exit bad > 0 || count < 5 }' && pass || { fail "$1" "$(paste "$scratch/a" "$scratch/b" | head -n 20)"; }
}
for kind in f32 f64; do
    [ $kind = f32 ] && bound=2e-5 || bound=1e-8
    for checks in none canary; do
        "$MDLC" --precision=$kind --checks=$checks tests/suites/ode.mdl -o "$scratch/ode.c" &&
            $CC -O2 $STRICT_FLAGS -fopenmp "$scratch/ode.c" -lm -o "$scratch/ode" || { fail "ode $kind $checks" "does not build"; continue; }
        for threads in 1 2; do
            "$scratch/ode" way --in y="$scratch/y.$kind.npy" --set k=4 --threads $threads >"$scratch/got" 2>"$scratch/err" || fail "way $kind" "$(cat "$scratch/err")"
            "$MDLC" run --precision=$kind --entry way --in y="$scratch/y.$kind.npy" --in k="$scratch/k.npy" tests/suites/ode.mdl >"$scratch/want"
            close "way $kind $checks, $threads threads" $bound
        done
        "$scratch/ode" down --set h=20 >"$scratch/got" 2>"$scratch/err" || fail "down $kind" "$(cat "$scratch/err")"
        "$MDLC" run --precision=$kind --entry down --in h="$scratch/h.npy" tests/suites/ode.mdl >"$scratch/want"
        close "down $kind $checks" $bound
        exits "over $kind $checks" 4 "met its maximum with its condition still true (ode.mdl:$(grep -n 'while e' tests/suites/ode.mdl | cut -d : -f 1))" \
            sh -c "\"$scratch/ode\" over --set h=20 2>\"$scratch/err\" >\"$scratch/out\""
        "$scratch/ode" over --set h=0.5 >"$scratch/got" && grep -q '^e = ' "$scratch/got" && pass || fail "over $kind" "a call behind one that was ended"
    done
done
exits "mdlc run" 1 "met its maximum.*ode.mdl:$(grep -n 'while e' tests/suites/ode.mdl | cut -d : -f 1)" sh -c "\"$MDLC\" run --entry over --in h=\"$scratch/h.npy\" tests/suites/ode.mdl 2>\"$scratch/err\" >\"$scratch/out\""
# The sample finds what its data were made with, up to their noise, and how long a swing takes.
built ode_fit && "$program" --seed 1 --log json --save "$scratch/fit.w" >"$scratch/fit.log" && "$program" found --load "$scratch/fit.w" >"$scratch/found" &&
    "$program" period --load "$scratch/fit.w" --set angle=1 >>"$scratch/found" || fail "sample" "does not run"
awk -v rms="$(number "$(grep '"event":"eval"' "$scratch/fit.log" | tail -n 1)" rms)" '
    function off(x, y) { return x < y ? (y - x) / y : (x - y) / y }
    { got[$1] = $3 }
    END { exit !(off(got["k"], 9) < 0.005 && off(got["c"], 0.3) < 0.03 && off(got["period"], 2.2341) < 0.003 && off(rms, 0.02) < 0.1) }' "$scratch/found" && pass || fail "sample" "$(cat "$scratch/found")"
# A linear equation, whose solution, density and derivatives are known: beside its exponential and a solver in Python, the order of the
# method, and every bit with and without checkpoints. (The evaluator prints 9 digits; test_ode compares all of them.)
linear() { # KIND K STEPS
    "$MDLC" -D STEPS="$3" --precision="$1" tests/suites/linear.mdl -o "$scratch/linear.c" && quickly "$scratch/linear.c" "$scratch/linear" &&
        "$scratch/linear" solve --in x="$scratch/x.$1.npy" --set k="$2"
}
known() { # NAME KIND K FILE STEPS...
    known_name=$1
    shift
    python3 tests/suites/linear.py "$@" >"$scratch/off" 2>&1 && [ ! -s "$scratch/off" ] && pass || fail "linear, $known_name" "$(cat "$scratch/off")"
}
scalar "$scratch/k.npy" 0.7
"$MDLC" run --entry solve --in x="$scratch/x.f32.npy" --in k="$scratch/k.npy" tests/suites/linear.mdl >"$scratch/evaluated"
known "evaluated" f32 0.7 "$scratch/evaluated" 20
for kind in f32 f64; do
    linear $kind 0.7 20 >"$scratch/emitted"
    known "$kind" $kind 0.7 "$scratch/emitted" 20
done
linear f64 2 80 >"$scratch/coarse"
linear f64 2 160 >"$scratch/fine"
known "order" f64 2 "$scratch/coarse" 80 "$scratch/fine" 160
# The dumped graph gives the same.
"$MDLC" --precision=f64 --dump=fma tests/suites/ode.mdl >"$scratch/dump.mdl" && "$MDLC" --precision=f64 --prefix ode "$scratch/dump.mdl" -o "$scratch/dump.c" && quickly "$scratch/dump.c" "$scratch/dump" &&
    "$scratch/dump" down --set h=20 >"$scratch/got"
close dumped 1e-8
summary ode
