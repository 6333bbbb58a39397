#!/bin/sh
# The compiler built in hostile ways. What it emits must not depend on how its memory is laid out, on
# the order of its tables or of its files; a failed allocation is one message and leaves no file.
set -u
. tests/lib.sh
: "${FUZZ_BUILD:=build/fuzz}"

# ---- arenas of one block a chunk, poisoned; other hashes; sanitizers ----
for file in samples/*.mdl tests/library/*.mdl tests/suites/*.mdl tests/cases/emit/*.mdl; do
    # shellcheck disable=SC2046
    set -- $(sed -n 's|^// args: *||p' "$file")
    # A library of tests alone has nothing to emit.
    "$MDLC" "$@" "$file" -o "$scratch/usual.c" >"$scratch/usual.out" 2>&1 || { rm -f "$scratch/usual.c"; continue; }
    "$FUZZ_BUILD/mdlc" "$@" "$file" -o "$scratch/usual.2.c" >"$scratch/hostile.out" 2>&1
    usual=$?
    sed 's/usual\.2/usual/g' "$scratch/usual.2.c" >"$scratch/hostile.c"
    [ $usual -eq 0 ] && cmp -s "$scratch/usual.c" "$scratch/hostile.c" && pass ||
        fail "$file with hostile arenas" "$(head -n 3 "$scratch/hostile.out")"
done

# ---- another order of the files ----
# shellcheck disable=SC2046
if $CC $(find "$BUILD/obj/lang" "$BUILD/obj/compiler" "$BUILD/obj/passes" "$BUILD/obj/emit" "$BUILD/obj/gen" -name '*.o' | sort -r) \
    -lm -o "$scratch/reversed" 2>"$scratch/err"; then
    for name in digits chars; do
        "$MDLC" "samples/$name.mdl" -o "$scratch/$name.c" && cp "$scratch/$name.c" "$scratch/usual.c"
        "$scratch/reversed" "samples/$name.mdl" -o "$scratch/$name.c"
        same "$name by a compiler linked the other way round" "$scratch/usual.c" "$scratch/$name.c"
    done
else
    skip "another order of the files" "$(head -n 1 "$scratch/err")"
fi

# ---- allocations that fail ----
# shellcheck disable=SC2046
if $CC -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc tests/suites/fail_alloc.c \
    $(find "$BUILD/obj/lang" "$BUILD/obj/compiler" "$BUILD/obj/passes" "$BUILD/obj/emit" "$BUILD/obj/gen" -name '*.o') \
    -lm -o "$scratch/failing" 2>"$scratch/err"; then
    ALLOC_COUNT=$scratch/count "$scratch/failing" samples/chars.mdl -o "$scratch/out.c"
    count=$(cat "$scratch/count")
    [ "${count:-0}" -gt 20 ] && pass || fail "allocations are not counted" "$count"
    at=1 step=$((count / 60 + 1)) wrong=
    while [ $at -le "$count" ]; do
        rm -f "$scratch/out.c"
        FAIL_AT=$at "$scratch/failing" samples/chars.mdl -o "$scratch/out.c" >"$scratch/out" 2>"$scratch/err"
        rc=$?
        # What is left is nothing, and the reason stands on the last line.
        [ $rc -ne 0 ] && [ $rc -lt 100 ] && [ -s "$scratch/err" ] && [ ! -e "$scratch/out.c" ] ||
            wrong="$wrong $at:$rc$([ -e "$scratch/out.c" ] && echo ' leaves a file')"
        at=$((at + step))
    done
    [ -z "$wrong" ] && pass || fail "a failed allocation" "number and status:$wrong; $(head -n 2 "$scratch/err")"
else
    skip "allocations that fail" "no --wrap here"
fi

summary flavours
