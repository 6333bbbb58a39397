#!/bin/sh
# --checks=canary: a kernel that writes outside its buffer is caught behind that very step and the
# buffer is named; a kernel that leaves bytes unwritten shows; the address sanitizer stops the access
# itself. The damaged kernels are emitted ones with a bound that the environment changes. That whole
# programs keep their numbers is for builds.sh.
set -u
. tests/lib.sh

cat >"$scratch/fault.c" <<'END_OF_FAULT'
#include <stdlib.h>
int fault(int number);
int fault(int number) {
    const char *text = getenv("FAULT");
    return text != NULL && atoi(text) == number;
}
END_OF_FAULT
# damage FILE FUNCTION FROM TO: replaces the first FROM in that function.
damage() {
    awk -v start="$2(" -v from="$3" -v to="$4" '
        index($0, start) == 1 { inside = 1; print "int fault(int number);" }
        inside && (at = index($0, from)) > 0 {
            $0 = substr($0, 1, at - 1) to substr($0, at + length(from))
            inside = 0
            done = 1
        }
        { print }
        END { exit !done }' "$1" >"$scratch/damaged" && mv "$scratch/damaged" "$1" || fail "$2" "has no '$3' to change"
}
damage_all() { # FILE
    damage "$1" "static void tiny_linear_gelu" "i < 8;" "i < 8 + fault(1) - fault(5);"
    damage "$1" "static void tiny_x" "int64_t i = 0;" "int64_t i = -fault(2);"
    damage "$1" "int tiny_again" "i0 * 40" "(i0 + fault(3)) * 40"
    damage "$1" "static void tiny_w_linear_back" "i < 8;" "i < 8 + fault(4);"
}
run() { # FAULT PROGRAM TRAIN
    FAULT=$1 "$scratch/$2" "$3" --log json >"$scratch/log" 2>"$scratch/err"
    rc=$?
}
is_built() { [ -x "$scratch/$1" ] || { fail "$1" "$(grep -m 1 error "$scratch/$1.err")"; return 1; }; }

"$MDLC" tests/suites/tiny.mdl -o "$scratch/plain.c" && "$MDLC" --checks=canary tests/suites/tiny.mdl -o "$scratch/bands.c" &&
    "$MDLC" --no-main --checks=canary tests/suites/tiny.mdl -o "$scratch/tiny.c" -H "$scratch/tiny.h" || fail tiny "does not compile"
for form in plain bands tiny; do damage_all "$scratch/$form.c"; done
# A build with the sanitizer beside each plain one.
for form in plain bands; do
    $CC -O0 -Wall -Wextra -Werror "$scratch/$form.c" "$scratch/fault.c" -lm -o "$scratch/$form" 2>"$scratch/$form.err" &
    compiler=$([ $form = plain ] && echo gcc || echo clang)
    if ! have $compiler; then
        skip "bands with the sanitizer of $compiler" "not installed"
    else
        $compiler -O0 -g1 -fsanitize=address "$scratch/bands.c" "$scratch/fault.c" -lm -o "$scratch/$compiler" 2>"$scratch/$compiler.err"
    fi
    wait
done

# FAULT|TRAIN|what the message says
while IFS='|' read -r number train message; do
    is_built bands || break
    run "$number" bands "$train"
    [ $rc = 70 ] && grep -qF "step 1 of '$train': $message" "$scratch/err" && ! grep -q '"event":"step"' "$scratch/log" &&
        pass || fail "fault $number" "status $rc, $(head -n 1 "$scratch/err")"
done <<'END_OF_FAULTS'
1|fit|step 0 of function 'tiny_fit' wrote behind buffer 'gelu' of the arena: byte 0 of
2|again|step 0 of function 'tiny_again' wrote in front of buffer 'h' of the arena: byte 60 of
3|again|step 2 of function 'tiny_again' wrote behind buffer 'x_2' of the arena: byte 0 of
4|again|step 11 of function 'tiny_again' wrote behind buffer 'h' of the arena: byte 0 of
END_OF_FAULTS
if is_built bands && is_built plain; then
    for train in fit again; do
        run 0 bands $train
        [ $rc = 0 ] && pass || fail "$train without a fault" "status $rc, $(head -n 1 "$scratch/err")"
    done
    run 5 bands fit
    [ $rc = 4 ] && pass || fail "unwritten bytes" "status $rc, $(head -n 1 "$scratch/err")"
    for number in 1 5; do # what nobody would have seen
        run $number plain fit
        [ $rc = 0 ] && pass || fail "fault $number without bands" "status $rc, $(head -n 1 "$scratch/err")"
    done
fi
for compiler in gcc clang; do
    [ -s "$scratch/$compiler.err" ] && skip "bands with the sanitizer of $compiler" "$(head -n 1 "$scratch/$compiler.err")"
    [ -x "$scratch/$compiler" ] || continue
    run 0 $compiler again
    [ $rc = 0 ] && pass || fail "$compiler without a fault" "$(grep -m 1 ERROR "$scratch/err")"
    run 3 $compiler again
    grep -q 'use-after-poison' "$scratch/err" && grep -q 'in tiny_x' "$scratch/err" && pass ||
        fail "bands with the sanitizer of $compiler" "$(grep -m 1 ERROR "$scratch/err")"
done

# shellcheck disable=SC2086
if $CC $STRICT_FLAGS -I"$scratch" tests/suites/canary.c "$scratch/tiny.c" "$scratch/fault.c" -lm -o "$scratch/embedded" 2>"$scratch/err"; then
    check "in another program" env FAULT=1 "$scratch/embedded"
    FAULT=0 "$scratch/embedded" >/dev/null && fail "in another program" "sees damage where there is none" || pass
else
    fail "in another program" "$(grep -m 1 error "$scratch/err")"
fi

for wrong in nans canary,nans nans,canary canar '' canary, none,canary; do
    "$MDLC" --checks="$wrong" tests/suites/tiny.mdl -o "$scratch/x.c" 2>"$scratch/err"
    rc=$?
    [ $rc = 2 ] && grep -q 'checks' "$scratch/err" && pass || fail "--checks=$wrong" "status $rc"
done
"$MDLC" --checks=canary --checks=none tests/suites/tiny.mdl -o "$scratch/x.c" && cp "$scratch/x.c" "$scratch/none.c" &&
    "$MDLC" tests/suites/tiny.mdl -o "$scratch/x.c" && cmp -s "$scratch/none.c" "$scratch/x.c" &&
    ! grep -q md_canary_ "$scratch/x.c" && pass || fail "--checks=none" "is not the default"
summary canary
