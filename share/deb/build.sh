#!/bin/sh
# Builds $BUILD/mdlc_VERSION_ARCH.deb from an installation into a folder: dpkg-deb is all it needs.
# BUILD, VERSION and MAKE come from the environment; ARCH names a machine other than this one.
set -eu
command -v dpkg-deb >/dev/null 2>&1 || { echo "make deb: dpkg-deb is not here: it comes with Debian and its kin" >&2; exit 1; }
: "${ARCH:=$(dpkg --print-architecture)}"
stage=$(mktemp -d "$BUILD/deb.XXXXXX")
trap 'rm -rf "$stage"' EXIT
root=$stage/root
umask 022

env -u MAKEFLAGS -u MFLAGS "$MAKE" --no-print-directory -s BUILD="$BUILD" DESTDIR="$root" PREFIX=/usr \
    ZSHDIR=share/zsh/vendor-completions install >/dev/null
# dpkg has a list of its own.
rm "$root/usr/share/mdlc/manifest"
gzip -9n "$root"/usr/share/man/man?/*
"${STRIP:-strip}" "$root/usr/bin/mdlc" 2>/dev/null || :

# What the binary needs, where the tool that knows is here.
needs=libc6
if command -v dpkg-shlibdeps >/dev/null 2>&1 && [ "$ARCH" = "$(dpkg --print-architecture)" ]; then
    mkdir -p "$stage/debian"
    printf 'Source: mdlc\n\nPackage: mdlc\nArchitecture: any\n' >"$stage/debian/control"
    found=$(cd "$stage" && dpkg-shlibdeps -O root/usr/bin/mdlc 2>/dev/null | sed -n 's/^shlibs:Depends=//p') || found=
    needs=${found:-$needs}
fi
mkdir "$root/DEBIAN"
sed -e "s/@VERSION@/$VERSION/" -e "s/@ARCH@/$ARCH/" -e "s/@DEPENDS@/$needs/" \
    -e "s/@SIZE@/$(du -sk "$root/usr" | cut -f1)/" share/deb/control.in >"$root/DEBIAN/control"
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum) >"$root/DEBIAN/md5sums"
package=$BUILD/mdlc_${VERSION}_$ARCH.deb
dpkg-deb --root-owner-group --build "$root" "$stage/mdlc.deb" >/dev/null
mv "$stage/mdlc.deb" "$package"
echo "$package"
