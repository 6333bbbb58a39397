#!/bin/sh
# install.sh install ROOT <LIST; install.sh uninstall ROOT
#
# LIST has a line "MODE SOURCE DESTINATION" for each file, the destination relative to ROOT, which is
# $DESTDIR$PREFIX. What was put there, and the folders that were made for it, stand in a manifest of
# the installation: uninstall removes those and nothing else, wherever ROOT has been moved to, and an
# install over another one removes what it no longer has.
set -eu
umask 022
command=$1 root=${2%/}
manifest=$root/share/mdlc/manifest

# Nothing outside of ROOT, whatever the manifest says.
inside() {
    case /$1/ in
    //* | */../*) echo "install: $manifest names '$1', which is not below $root" >&2; exit 1 ;;
    esac
}

# folder PATH: makes it, and notes which of its parts are new.
folder() {
    [ ! -d "$root/$1" ] || return 0
    case $1 in */*) folder "${1%/*}" ;; esac
    mkdir "$root/$1"
    echo "$1/" >>"$new"
}

# An installation that ends early is in the manifest too, as far as it went, beside what was there.
cut_off() {
    [ ! -f "$manifest" ] || cat "$manifest" >>"$new"
    [ ! -d "${manifest%/*}" ] || awk '!seen[$0]++' "$new" >"$manifest" || :
    rm -f "$new"
}

do_install() {
    mkdir -p "$root"
    new=$(mktemp "${TMPDIR:-/tmp}/mdlc-install.XXXXXX")
    trap cut_off EXIT
    [ ! -f "$manifest" ] || grep '/$' "$manifest" >"$new" || :
    folder share/mdlc
    echo share/mdlc/manifest >>"$new"
    while read -r mode source to; do
        folder "${to%/*}"
        install -m "$mode" "$source" "$root/$to"
        echo "$to" >>"$new"
    done
    if [ -f "$manifest" ]; then
        grep -v '/$' "$manifest" | while IFS= read -r old; do
            inside "$old"
            grep -qxF -- "$old" "$new" || rm -f "$root/$old"
        done
    fi
    install -m 644 "$new" "$manifest"
    trap - EXIT
    rm -f "$new"
    echo "mdlc is installed in ${root:-/}"
}

do_uninstall() {
    [ -f "$manifest" ] || { echo "install: there is no $manifest: nothing to remove" >&2; exit 1; }
    grep -v '/$' "$manifest" | while IFS= read -r file; do
        inside "$file"
    done
    folders=$(grep '/$' "$manifest" | sort -r)
    grep -v '/$' "$manifest" | while IFS= read -r file; do
        rm -f "$root/$file"
    done
    # Folders that hold something of others stay.
    printf '%s\n' "$folders" | while IFS= read -r made; do
        [ -z "$made" ] || { inside "${made%/}"; rmdir "$root/$made" 2>/dev/null || :; }
    done
    echo "mdlc is removed from ${root:-/}"
}

case $command in
install) do_install ;;
uninstall) do_uninstall ;;
esac
