#!/bin/sh
# A whole training step on a microcontroller: the emitted C, without a library, linked into 256 KiB of memory, trains
# a convolutional net in an emulator (a Cortex-M7 of qemu) and learns what the same program learns on this machine.
set -u
. tests/lib.sh
model=tests/suites/cortex.mdl

"$MDLC" --no-main --threads=1 --prefix=tiny $model -o "$scratch/tiny.c" -H "$scratch/tiny.h" 2>"$scratch/err" && pass || fail "emit" "$(head -n 1 "$scratch/err")"
awk -F, 'NR == 1 { print "#include <stdint.h>\nstatic const uint8_t pixel[] = {" }
    { for (i = 1; i <= 64; i++) printf "%s,", $i; print ""; l = l $65 "," }
    END { printf "};\nstatic const uint8_t label[] = {%s};\nenum { ROWS = %d };\n", l, NR }' samples/data/digits.csv >"$scratch/digits.h"
field() { sed -n "s/^$2 \(-*[0-9]*\)\$/\1/p" "$1"; }

# shellcheck disable=SC2086
$CC -std=c11 -O2 -ffp-contract=off -DHOSTED -I"$scratch" tests/suites/cortex.c "$scratch/tiny.c" -lm -o "$scratch/hosted" 2>"$scratch/err" &&
    "$scratch/hosted" >"$scratch/host" && pass || fail "on this machine" "$(head -n 1 "$scratch/err")"
[ "$(field "$scratch/host" code)" = 0 ] && [ "$(field "$scratch/host" right)" -ge $(($(field "$scratch/host" rows) * 85 / 100)) ] && pass || fail "on this machine" "$(tr '\n' ' ' <"$scratch/host")"

headers() { echo '#include <math.h>' | arm-none-eabi-gcc -fsyntax-only -x c - 2>/dev/null; }
if ! have arm-none-eabi-gcc || ! headers || ! have qemu-system-arm; then
    skip "in an emulator" "no arm-none-eabi-gcc with its headers and qemu-system-arm"
    summary cortex
    exit
fi
arm-none-eabi-gcc -std=c11 -O2 -mcpu=cortex-m7 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16 -ffp-contract=off -fno-math-errno -ffreestanding -nostdlib \
    -I"$scratch" -T tests/suites/cortex.ld tests/suites/cortex.c "$scratch/tiny.c" -lgcc -o "$scratch/tiny.elf" 2>"$scratch/err" &&
    pass || { fail "256 KiB" "$(head -n 3 "$scratch/err")"; summary cortex; exit; }
timeout 300 qemu-system-arm -M mps2-an500 -nographic -monitor none -serial none -semihosting-config enable=on,target=native \
    -kernel "$scratch/tiny.elf" >"$scratch/board" 2>&1
if [ "$(field "$scratch/board" code)" = 0 ]; then
    pass
else
    fail "in an emulator" "$(tr '\n' ' ' <"$scratch/board")"
    summary cortex
    exit
fi
# It needs what was declared, and a stack within what the file says.
declared=$(sed -n 's/^ \*   total *\([0-9]*\).*/\1/p' "$scratch/tiny.c")
stack=$(sed -n 's/^ \* and at most \([0-9]*\) bytes of stack.*/\1/p' "$scratch/tiny.c")
[ "$(field "$scratch/board" bytes)" = "$declared" ] && pass || fail "bytes" "$(field "$scratch/board" bytes), declared are $declared"
used=$(field "$scratch/board" stack)
[ "${used:-0}" -gt 0 ] && [ "$used" -le $((stack + 512)) ] && pass || fail "stack" "$used bytes, declared are $stack and the host's own"
# It learns, and as this machine does: losses within 1e-4, eight of the held-out rows aside.
near() { # NAME MOST
    a=$(field "$scratch/board" "$1") b=$(field "$scratch/host" "$1")
    awk -v a="$a" -v b="$b" -v most="$2" 'BEGIN { exit !(a != "" && a - b <= most && b - a <= most) }' && pass || fail "$1" "$a, on this machine $b"
}
near first 100
near right 8
[ "$(field "$scratch/board" last)" -lt $(($(field "$scratch/board" first) / 4)) ] && pass || fail "loss" "$(tr '\n' ' ' <"$scratch/board")"
echo "$((declared + used)) of 262144 bytes, $(field "$scratch/board" right) of $(field "$scratch/board" rows) held-out rows right"
summary cortex
