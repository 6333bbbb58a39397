#!/bin/sh
# The tarball of `make dist` builds what the tree builds, with what belongs to it and nothing else; the
# package of `make deb` installs into a root of its own, trains the sample from there, and goes again.
set -u
. tests/lib.sh
. tests/installed.sh
version=$("$MDLC" --version | sed -n '1s/^mdlc //p')

# ---- dist ----
check "make dist" plain_make dist BUILD="$BUILD"
tarball=$BUILD/mdlc-$version.tar.gz
tree="$scratch/a tree/mdlc-$version"
in_tree() { plain_make -C "$tree" BUILD=build "$@"; } # whatever was built here, and how
mkdir "$scratch/a tree"
if tar xzf "$tarball" -C "$scratch/a tree"; then
    for name in Makefile README.md LICENSE lang/nn.mdl share/share.mk tests/run.sh; do
        same "dist: $name" "$name" "$tree/$name"
    done
    [ ! -e "$tree/build" ] && [ ! -e "$tree/.git" ] && pass || fail "dist" "holds what was built"
    # Without optimisation: it is the same program.
    check "dist: it builds" in_tree -j2 OPT=-O0 CC="$CC" all shared
    mkdir "$scratch/here" "$scratch/there"
    "$MDLC" samples/digits.mdl -o "$scratch/here/digits.c"
    (cd "$tree" && build/mdlc samples/digits.mdl -o "$scratch/there/digits.c")
    same "dist: the same C" "$scratch/here/digits.c" "$scratch/there/digits.c"
    check "dist: it installs" in_tree OPT=-O0 CC="$CC" install PREFIX="$scratch/from dist"
    check "dist: the installed compiler" "$scratch/from dist/bin/mdlc" check samples/digits.mdl
    # A tarball of what came out of it has the same files.
    check "dist: of a tree that is no repository" in_tree dist GIT_DIR=none
    tar tzf "$tarball" | grep -v '/$' | sort >"$scratch/list"
    tar tzf "$tree/build/mdlc-$version.tar.gz" | grep -v '/$' | sort >"$scratch/list.again"
    same "dist: its files" "$scratch/list" "$scratch/list.again"
    if tar --version 2>/dev/null | grep -q GNU; then
        for turn in first second; do
            check "dist: with SOURCE_DATE_EPOCH" in_tree dist SOURCE_DATE_EPOCH=1
            mv "$tree/build/mdlc-$version.tar.gz" "$scratch/$turn.tar.gz"
            touch "$tree/README.md"
        done
        same "dist: the same bytes with SOURCE_DATE_EPOCH" "$scratch/first.tar.gz" "$scratch/second.tar.gz"
    else
        skip "dist: the same bytes" "tar is not GNU tar"
    fi
else
    fail "dist" "$tarball does not unpack"
fi

# ---- deb ----
if have dpkg-deb && have dpkg; then
    plain_make deb BUILD="$BUILD" >"$scratch/deb.log" 2>&1 && pass || fail "make deb" "$(tail -n 3 "$scratch/deb.log")"
    package=$(tail -n 1 "$scratch/deb.log")
    field() { dpkg-deb -f "$package" "$1"; }
    [ "$(field Package) $(field Version) $(field Architecture)" = "mdlc $version $(dpkg --print-architecture)" ] && pass ||
        fail "deb: its name" "$(field Package) $(field Version)"
    field Depends | grep -q 'libc6' && pass || fail "deb: what it needs" "$(field Depends)"
    dpkg-deb -c "$package" | awk '{ print $1, $2, $6 }' >"$scratch/contents"
    awk '$2 != "root/root" || $1 !~ /^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x)$/' "$scratch/contents" >"$scratch/odd"
    [ ! -s "$scratch/odd" ] && pass || fail "deb: owners and rights" "$(head -n 2 "$scratch/odd")"
    for file in bin/mdlc share/man/man1/mdlc.1.gz share/man/man5/mdl.5.gz share/doc/mdlc/copyright share/cmake/mdlc/mdlcConfig.cmake \
        share/pkgconfig/mdlc.pc share/zsh/vendor-completions/_mdlc; do
        grep -q " \./usr/$file\$" "$scratch/contents" && pass || fail "deb" "has no usr/$file"
    done
    awk '$3 !~ /^\.\/(usr\/.*)?$/' "$scratch/contents" >"$scratch/odd"
    [ ! -s "$scratch/odd" ] && pass || fail "deb: outside of usr" "$(head -n 2 "$scratch/odd")"

    root=$scratch/root
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
    : >"$root/var/lib/dpkg/status"
    packaged() { dpkg --root="$root" --force-not-root --force-depends --force-script-chrootless --no-triggers --log=/dev/null "$@"; }
    installed_by=dpkg
    if [ "$(id -u)" = 0 ]; then
        check "deb: installed" packaged -i "$package"
        dpkg --root="$root" -s mdlc 2>/dev/null | grep -q '^Status: .* installed' && pass || fail "deb: installed" "dpkg does not know it"
    else
        skip "deb: installed by dpkg" "only root may give files to root; unpacked instead"
        installed_by=unpacking
        check "deb: unpacked" dpkg-deb -x "$package" "$root"
    fi
    check "deb: sums" sh -c "cd '$root' && dpkg-deb --ctrl-tarfile '$(cd "$(dirname "$package")" && pwd)/$(basename "$package")' | tar xOf - ./md5sums | md5sum -c --quiet"
    # The demo from there: compile, build, train.
    "$root/usr/bin/mdlc" samples/digits.mdl -o "$scratch/train.c" && emitted "$scratch/train.c" "$scratch/train" &&
        "$scratch/train" --log json >"$scratch/log" && pass || fail "deb: the demo" "does not run"
    awk -v acc="$(sed -n 's/.*"event":"end".*"acc":\([0-9.]*\).*/\1/p' "$scratch/log")" 'BEGIN { exit !(acc > 0.95) }' && pass ||
        fail "deb: the demo" "$(tail -n 1 "$scratch/log")"
    if [ $installed_by = dpkg ]; then
        check "deb: removed" packaged -P mdlc
        [ -z "$(find "$root" -path "$root/var" -prune -o -type f -print)" ] && [ ! -e "$root/usr/share/mdlc" ] && pass ||
            fail "deb: removed" "$(find "$root" -path "$root/var" -prune -o -print | head -n 3)"
    fi
else
    skip "deb" "dpkg is not here"
fi
# ---- a compiler for another machine ----
if [ "${LONG:-0}" != 1 ]; then
    skip "cross: a compiler for aarch64" "LONG=1 (make accept) has it"
elif cross_here; then
    other="BUILD=$scratch/other CC=$CROSS-gcc HOSTCC=$CC OPT=-O0 RUN_MDLC=$MDLC"
    # shellcheck disable=SC2086
    check "cross: make install" plain_make $other PREFIX="$scratch/for other" install
    is_aarch64 "$scratch/for other/bin/mdlc" && pass || fail "cross" "the compiler is not for aarch64"
    mkdir "$scratch/far" "$scratch/near"
    check "cross: it runs" qemu-aarch64 -L /usr/$CROSS "$scratch/for other/bin/mdlc" samples/digits.mdl -o "$scratch/far/digits.c"
    "$MDLC" samples/digits.mdl -o "$scratch/near/digits.c"
    same "cross: the same C" "$scratch/near/digits.c" "$scratch/far/digits.c"
    if have dpkg-deb && have dpkg; then
        # shellcheck disable=SC2086
        check "cross: make deb" plain_make $other ARCH=arm64 STRIP=$CROSS-strip deb
        [ "$(dpkg-deb -f "$scratch/other/mdlc_${version}_arm64.deb" Architecture)" = arm64 ] && pass || fail "cross: make deb" "not for arm64"
    else
        skip "cross: deb" "dpkg is not here"
    fi
else
    skip "cross: a compiler for aarch64" "$CROSS-gcc or qemu-aarch64 is not installed"
fi
summary package
