#!/bin/sh
# Several hundred damaged, odd and hostile files given to an emitted program that is built with
# sanitizers, and saves while system calls fail, files may not grow and the program is killed.
# tests/tools/hostile.c says what must hold. SEED and KILLS may be set.
set -u
. tests/lib.sh

sanitize="-O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all"
echo 'int main(void) { return 0; }' >"$scratch/empty.c"
# shellcheck disable=SC2086
$CC $sanitize "$scratch/empty.c" -o "$scratch/empty" 2>/dev/null && "$scratch/empty" ||
    { skip hostile "$CC has no sanitizers"; summary hostile; exit; }
have objcopy || { skip hostile "no objcopy"; summary hostile; exit; }
for library in -static-libasan -static-libubsan; do # start faster, where they are there
    # shellcheck disable=SC2086
    $CC $sanitize $library "$scratch/empty.c" -o "$scratch/empty" 2>/dev/null && sanitize="$sanitize $library"
done

rename=
for call in $(sed -n 's/^[a-z].*fault_\([a-z]*\)(.*{$/\1/p' tests/suites/faults.c); do
    rename="$rename --redefine-sym $call=fault_$call"
done
# shellcheck disable=SC2086
"$MDLC" tests/suites/hostile.mdl -o "$scratch/hostile.c" &&
    $CC $sanitize -c "$scratch/hostile.c" -o "$scratch/hostile.o" &&
    objcopy $rename "$scratch/hostile.o" &&
    $CC $sanitize "$scratch/hostile.o" tests/suites/faults.c -lm -o "$scratch/hostile" ||
    { fail hostile "does not build"; summary hostile; exit 1; }

for part in 0 1; do
    mkdir "$scratch/$part"
    "$BUILD/tests/tools/hostile" "$scratch/$part" "$scratch/hostile" "${SEED:-1}" $part 2 "${KILLS:-20}" \
        >"$scratch/log$part" 2>&1 &
done
wait
for part in 0 1; do
    sed '$d' "$scratch/log$part"
    counts=$(sed -n '$s/^hostile: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$scratch/log$part")
    # shellcheck disable=SC2086
    set -- $counts
    if [ $# -eq 3 ]; then
        passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    else
        fail "hostile, part $part" "$(tail -n 1 "$scratch/log$part")"
    fi
done

# A disk that is full: a small file system of its own, which root may mount.
disk() {
    mkdir "$scratch/disk" && mount -t tmpfs -o size=16k tmpfs "$scratch/disk" 2>/dev/null || return
    cp "$scratch/0/good.st" "$scratch/disk/w.st"
    head -c 100000 /dev/zero >"$scratch/disk/filler" 2>/dev/null
    "$scratch/hostile" fit --data "table=$scratch/0/good.csv" --log none --save "$scratch/disk/w.st" 2>"$scratch/err"
    disk_rc=$?
    cmp "$scratch/0/good.st" "$scratch/disk/w.st" >"$scratch/cmp" 2>&1
    disk_cmp=$?
    ls "$scratch/disk" >"$scratch/ls"
    umount "$scratch/disk"
    [ $disk_rc -eq 1 ] && grep -q 'No space left on device; the file is as it was' "$scratch/err" && pass ||
        fail "full disk" "status $disk_rc, $(cat "$scratch/err")"
    [ $disk_cmp -eq 0 ] && pass || fail "full disk: the old file" "$(cat "$scratch/cmp")"
    [ "$(wc -l <"$scratch/ls")" -eq 2 ] && pass || fail "full disk: left" "$(cat "$scratch/ls")"
}
disk
[ -n "${disk_rc:-}" ] || skip "full disk" "no file system may be mounted here"
summary hostile
