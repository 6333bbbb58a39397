#!/bin/sh
# dist.sh BUILD NAME: BUILD/NAME.tar.gz with the files of the repository as they are here, those that
# git ignores aside; in a tree that is no repository, with all but what was built.
set -eu
build=$1 name=$2
mkdir -p "$build"
stage=$(mktemp -d "$build/dist.XXXXXX")
trap 'rm -rf "$stage"' EXIT
files() {
    if [ -e .git ] && git ls-files >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard
    else
        find . \( -path ./.git -o -path ./build -o -path "./${build#./}" \) -prune -o -type f -print | sed 's|^\./||'
    fi
}
files | LC_ALL=C sort -u | while IFS= read -r file; do
    [ ! -f "$file" ] || printf '%s\n' "$file" # one that is removed may still be known to git
done >"$stage/list"
mkdir "$stage/$name"
tar cf - -T "$stage/list" | tar xf - -C "$stage/$name"
# The same files give the same bytes, where tar can do that.
same="--sort=name --owner=0 --group=0 --numeric-owner --mtime=@${SOURCE_DATE_EPOCH:-0}"
[ -n "${SOURCE_DATE_EPOCH:-}" ] && tar $same -cf /dev/null "$stage/list" 2>/dev/null || same=
# shellcheck disable=SC2086
tar $same -cf - -C "$stage" "$name" | gzip -9n >"$stage/tar.gz"
mv "$stage/tar.gz" "$build/$name.tar.gz"
echo "$build/$name.tar.gz"
