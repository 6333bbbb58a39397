# Shared by the suites that use mdlc from where it is installed; sourced behind lib.sh.

# A make of its own, whatever make runs the suite.
plain_make() { env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u INNER make --no-print-directory "$@"; }

# installed: $prefix, with blanks in its name and moved after the installation.
installed() {
    if ! plain_make install BUILD="$BUILD" PREFIX="$scratch/first place/mdlc" >"$scratch/install.log" 2>&1; then
        fail "make install" "$(tail -n 3 "$scratch/install.log")"
        return 1
    fi
    mkdir -p "$scratch/an other place"
    mv "$scratch/first place/mdlc" "$scratch/an other place/mdlc" && rmdir "$scratch/first place"
    prefix="$scratch/an other place/mdlc"
}

# stamp, then newer FOLDER: the names of files there that were written since.
stamp() {
    touch "$scratch/stamp"
    sleep 0.02 # of a clock's tick, so that what comes next is later
}
newer() { find "$1" -type f -newer "$scratch/stamp" -exec basename {} \; | sort | tr '\n' ' '; }

# wrote NAME FOLDER YES NO: since the stamp the files whose names match YES were written, none that match NO.
wrote() {
    wrote_list=$(newer "$2")
    wrote_bad=
    for wrote_one in $3; do
        case " $wrote_list" in *" $wrote_one "*) ;; *) wrote_bad="$wrote_bad $wrote_one was not written;" ;; esac
    done
    for wrote_one in $4; do
        case " $wrote_list" in *" $wrote_one "*) wrote_bad="$wrote_bad $wrote_one was written;" ;; esac
    done
    [ -z "$wrote_bad" ] && pass || fail "$1" "$wrote_bad"
}

# A processor other than this one: its compiler, and what runs its programs.
CROSS=aarch64-linux-gnu
cross_here() { have $CROSS-gcc && have qemu-aarch64; }
is_aarch64() { [ "$(od -An -tu1 -j18 -N2 "$1" | tr -d ' ')" = 1830 ]; }

# A message at its place, as editors read it.
placed() { # NAME LOG FILE
    grep -Eq "(^|[/ ])$3:[0-9]+:[0-9]+: error: needs [0-9]+ bytes, [0-9]+ more than --budget=[0-9]+ \[E0601\]" "$2" && pass ||
        fail "$1" "no message at a place: $(tail -n 5 "$2")"
}
