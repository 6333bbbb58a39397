#!/bin/sh
# The sample projects for make and Meson, and pkg-config, from an installation that was moved: they build
# in parallel, run, build again what depends on what was touched and nothing else, and end with the
# message of a budget that is too small; for another processor under an emulator.
set -u
. tests/lib.sh
. tests/installed.sh
installed || { summary projects; exit 1; }
unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS CXXFLAGS CPPFLAGS LDFLAGS 2>/dev/null
export PKG_CONFIG_PATH="$prefix/share/pkgconfig" PKG_CONFIG_PATH_FOR_BUILD="$prefix/share/pkgconfig"
log=$scratch/log
quick="-O0 -fopenmp" # where it is built often

# ---- pkg-config ----
pkg=no
if have pkg-config; then
    pkg=yes
    [ "$(pkg-config --modversion mdlc)" = "$("$MDLC" --version | sed -n '1s/^mdlc //p')" ] && pass || fail "pkg-config" "another version"
    for pair in prefix:bin/mdlc library:nn.mdl python:mdlc_host.py; do
        # A blank in a path has a backslash in front.
        path=$(pkg-config --variable="${pair%%:*}" mdlc | tr -d '\\')
        [ -e "$path/${pair#*:}" ] && pass || fail "pkg-config: ${pair%%:*}" "$path"
    done
    check "pkg-config: the compiler" "$(pkg-config --variable=mdlc mdlc | tr -d '\\\\')" --version
    [ "$(pkg-config --libs mdlc | tr -d ' ')" = -lm ] && pass || fail "pkg-config: libraries" "$(pkg-config --libs mdlc)"
    # A model by hand with these flags.
    "$prefix/bin/mdlc" --no-main samples/build/make/vote.mdl -o "$scratch/vote.c" -H "$scratch/vote.h"
    # shellcheck disable=SC2046
    check "pkg-config: a program" $CC $(pkg-config --variable=cflags_model mdlc) $(pkg-config --variable=cflags_native mdlc) -I"$scratch" \
        samples/build/make/vote.c "$scratch/vote.c" $(pkg-config --libs mdlc) -o "$scratch/vote"
    check "pkg-config: it runs" "$scratch/vote"
else
    skip "pkg-config" "not installed"
fi

# ---- the programs themselves ----
for pair in cmake/spiral:train make/vote:vote; do
    model=samples/build/${pair%%:*}
    "$prefix/bin/mdlc" --no-main "$model.mdl" -o "$scratch/model.c" -H "$scratch/$(basename "$model").h"
    # shellcheck disable=SC2086
    check "strict: ${pair##*:}.c" $CC $STRICT_FLAGS -I"$scratch" -fsyntax-only "$(dirname "$model")/${pair##*:}.c"
done

# ---- make ----
export PATH="$prefix/bin:$PATH"
project=$scratch/make
mkdir "$project"
cp samples/build/make/* "$project"
make_it() { env -u MDLC make -C "$project" CC="$CC" "$@" >"$log" 2>&1; }
touched() { # NAME TOUCHED YES NO: the make behind it writes files of YES, and none of NO
    stamp
    for touched_one in $2; do touch "$project/$touched_one"; done
    make_it -j2 MODEL_FLAGS="$quick" && pass || fail "make: $1" "$(tail -n 5 "$log")"
    wrote "make: $1" "$project" "$3" "$4"
}
if [ $pkg = yes ]; then
    make_it -j2 && pass || fail "make" "$(tail -n 5 "$log")"
    grep -q -e '-O3 -ffp-contract=off .*-march=native .*vote_model.c' "$log" && pass || fail "make: flags of pkg-config" "$(cat "$log")"
    "$project/vote" >"$scratch/said" && grep -q '^vote: [0-9]* of 512 right' "$scratch/said" && pass || fail "make: vote" "$(cat "$scratch/said")"
    make_it clean && [ "$(ls "$project" | wc -l)" -eq "$(ls samples/build/make | wc -l)" ] && pass || fail "make clean" "$(ls "$project")"
fi
make_it -j4 MODEL_FLAGS="$quick" && pass || fail "make: in parallel" "$(tail -n 5 "$log")"
[ "$(grep -c 'mdlc --no-main' "$log")" -eq 1 ] && pass || fail "make: in parallel" "the model is compiled $(grep -c 'mdlc --no-main' "$log") times"
check "make: vote" "$project/vote"
touched "nothing to do" "" "" "vote_model.c vote.h vote.o vote"
touched "a module that is used" parts.mdl "vote_model.c vote.h vote_model.o vote.o vote" ""
touched "what is not the model" "vote.c other.mdl" "vote.o vote" "vote_model.c vote.h vote_model.o"
touched "the model" vote.mdl "vote_model.c vote.o vote" ""
sed "s/64 KiB/4 KiB/" samples/build/make/Makefile >"$project/Makefile"
touch "$project/vote.mdl"
make_it && fail "make: a budget that is too small" "builds" || pass
placed "make: a budget that is too small" "$log" vote.mdl
cp samples/build/make/Makefile "$project"
make_it MODEL_FLAGS="$quick" && pass || fail "make: the budget put right" "$(tail -n 5 "$log")"
rm "$project/parts.mdl"
{ sed '/^use parts/d' samples/build/make/vote.mdl; cat samples/build/make/parts.mdl; } >"$project/vote.mdl"
make_it MODEL_FLAGS="$quick" && pass || fail "make: a module that is gone" "$(tail -n 5 "$log")"
check "make: vote behind it" "$project/vote"
if cross_here; then
    mkdir "$scratch/cross make"
    cp samples/build/make/* "$scratch/cross make"
    env -u MDLC make -C "$scratch/cross make" CC=$CROSS-gcc MODEL_FLAGS="-O2 -fopenmp" >"$log" 2>&1 && pass || fail "make: cross" "$(tail -n 5 "$log")"
    is_aarch64 "$scratch/cross make/vote" && pass || fail "make: cross" "vote is not for aarch64"
    check "make: cross, under qemu" qemu-aarch64 -L /usr/$CROSS "$scratch/cross make/vote"
else
    skip "make: cross" "$CROSS-gcc or qemu-aarch64 is not installed"
fi

# ---- Meson ----
if ! have meson || ! have ninja || [ $pkg = no ] || ! have c++; then
    skip "meson" "meson, ninja, pkg-config or c++ is not installed"
    summary projects
    exit 0
fi
project="$scratch/meson project" build="$scratch/meson build"
mkdir "$project"
cp samples/build/meson/* "$project"
turn() { # NAME: a build
    ninja -C "$build" -j2 >"$log" 2>&1 && pass || fail "meson: $1" "$(tail -n 5 "$log")"
}
CC=$CC meson setup "$build" "$project" >"$log" 2>&1 && pass || fail "meson setup" "$(tail -n 5 "$log")"
turn "build"
meson test -C "$build" >"$log" 2>&1 && pass || fail "meson test" "$(tail -n 10 "$log")"
"$build/wave" >"$scratch/said" && grep -q '^wave: off by 0\.0[0-9]* in the mean' "$scratch/said" && pass || fail "meson: wave" "$(cat "$scratch/said")"
ninja -C "$build" -t commands | grep -q -e '-O3 -ffp-contract=off .*wave.c$' && pass || fail "meson: flags" "$(ninja -C "$build" -t commands | grep 'wave\.c$')"
stamp
turn "nothing to do"
wrote "meson: nothing to do" "$build" "" "wave.c wave.h wave"
stamp
touch "$project/curve.mdl"
turn "a module that is used"
wrote "meson: a module that is used" "$build" "wave.c wave.h wave.cpp.o libnet.a wave" ""
stamp
touch "$project/wave.cpp" "$project/other.mdl"
turn "what is not the model"
wrote "meson: what is not the model" "$build" "wave.cpp.o wave" "wave.c wave.h libnet.a"
sed -i.bak 's/--budget=64 KiB/--budget=4 KiB/' "$project/meson.build"
ninja -C "$build" >"$log" 2>&1 && fail "meson: a budget that is too small" "builds" || pass
placed "meson: a budget that is too small" "$log" wave.mdl
if cross_here && have $CROSS-g++; then
    cp samples/build/meson/meson.build "$project"
    cat >"$scratch/cross.ini" <<END
[binaries]
c = '$CROSS-gcc'
cpp = '$CROSS-g++'
ar = '$CROSS-ar'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '/usr/$CROSS']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'armv8'
endian = 'little'
END
    build="$scratch/meson cross"
    meson setup "$build" "$project" --cross-file "$scratch/cross.ini" >"$log" 2>&1 && pass || fail "meson: cross setup" "$(tail -n 5 "$log")"
    turn "cross build"
    is_aarch64 "$build/wave" && pass || fail "meson: cross" "wave is not for aarch64"
    meson test -C "$build" >"$log" 2>&1 && pass || fail "meson: cross, tests under qemu" "$(tail -n 10 "$log")"
else
    skip "meson: cross" "$CROSS-gcc, $CROSS-g++ or qemu-aarch64 is not installed"
fi
summary projects
