#!/bin/sh
# find_package(mdlc) and mdlc_add_model from an installation that was moved, with blanks in all paths:
# with each generator that is here the sample project builds in parallel, passes its tests, and builds
# again what depends on what was touched and nothing else; a budget that is too small ends the build
# with a message at its place; every keyword does what it says; for another processor under an emulator.
set -u
. tests/lib.sh
. tests/installed.sh
if ! have cmake || ! cmake --version | awk 'NR == 1 { split($3, v, "."); exit !(v[1] > 3 || v[2] >= 20) }'; then
    skip cmake "cmake 3.20 or newer is not installed"
    summary cmake
    exit 0
fi
installed || { summary cmake; exit 1; }
export CMAKE_BUILD_PARALLEL_LEVEL=2 CC
unset CFLAGS CXXFLAGS LDFLAGS 2>/dev/null
# A make that runs this suite hands flags on to the one that cmake calls.
unset MAKEFLAGS MFLAGS MAKELEVEL 2>/dev/null
log=$scratch/log

configure() { cmake -S "$source" -B "$build" -G "$generator" "-DCMAKE_PREFIX_PATH=$prefix" "$@" >"$log" 2>&1; }
build() { cmake --build "$build" "$@" >"$log" 2>&1; }
step() { # NAME COMMAND...
    step_name="$generator: $1"
    shift
    "$@" && pass || fail "$step_name" "$(tail -n 5 "$log")"
}

generators='Unix Makefiles'
have ninja && generators="$generators:Ninja" || skip "Ninja" "not installed"
IFS=:
for generator in $generators; do
    unset IFS
    source="$scratch/$generator/a project" build="$scratch/$generator/a build"
    mkdir -p "$source"
    cp samples/build/cmake/* "$source"
    step configure configure -DMDLC_C_FLAGS=-O0 # it is built often; "keywords" has the usual flags
    step build build
    step "tests of the project" ctest --test-dir "$build" --output-on-failure >"$log" 2>&1
    "$build/train" >"$scratch/said" && grep -q '^spiral: [0-9]* of 400 right' "$scratch/said" && pass || fail "$generator: train" "$(cat "$scratch/said")"
    report=$build/mdlc/spiral/spiral.report.json
    bytes=$(sed -n 's/^spiral: .* \([0-9]*\) bytes$/\1/p' "$scratch/said")
    tr -d '\n ' <"$report" | grep -q "\"define\":{\"HIDDEN\":\"24\"}.*\"total\":$bytes[,}]" && pass || fail "$generator: the report" "$(head -c 300 "$report")"

    # What is built again.
    stamp
    step "nothing to do" build
    wrote "$generator: nothing to do" "$build" "" "spiral.c spiral.h train.c.o train spiral_program"
    stamp
    touch "$source/blocks.mdl"
    step "a module that is used" build
    wrote "$generator: a module that is used" "$build" "spiral.c spiral.h spiral.report.json spiral.c.o train.c.o train spiral_program" ""
    stamp
    touch "$source/train.c" "$source/other.mdl"
    step "what is not the model" build
    wrote "$generator: what is not the model" "$build" "train.c.o train" "spiral.c spiral.h spiral.c.o"
    stamp
    touch "$source/spiral.mdl"
    step "the model" build
    wrote "$generator: the model" "$build" "spiral.c spiral.c.o" ""
    stamp
    touch "$prefix/bin/mdlc"
    step "another compiler" build
    wrote "$generator: another compiler" "$build" "spiral.c" ""
    stamp
    step "nothing to do at the end" build
    wrote "$generator: nothing to do at the end" "$build" "" "spiral.c spiral.h train.c.o train spiral_program"

    # Mistakes end the build, and one that is put right goes on.
    sed 's/BUDGET "256 KiB"/BUDGET "4 KiB"/' samples/build/cmake/CMakeLists.txt >"$source/CMakeLists.txt"
    build && fail "$generator: a budget that is too small" "builds" || pass
    placed "$generator: a budget that is too small" "$log" spiral.mdl
    grep -q '"regions"' "$report" && pass || fail "$generator: a budget that is too small" "leaves no report"
    cp samples/build/cmake/CMakeLists.txt "$source"
    step "the budget put right" build
    sed 's/budget 256 KiB/budget 4 KiB/' samples/build/cmake/spiral.mdl >"$source/spiral.mdl"
    build --target spiral_program && fail "$generator: a budget of the model" "builds" || pass
    grep -Eq 'spiral\.mdl:[0-9]+:5: error: needs [0-9]+ bytes, [0-9]+ more than the budget of 4096 \[E0601\]' "$log" && pass || fail "$generator: a budget of the model" "$(tail -n 5 "$log")"
    echo 'layer' >>"$source/blocks.mdl"
    cp samples/build/cmake/spiral.mdl "$source"
    build && fail "$generator: a mistake in a module" "builds" || pass
    grep -Eq 'blocks\.mdl:[0-9]+:[0-9]+: error: ' "$log" && pass || fail "$generator: a mistake in a module" "$(tail -n 5 "$log")"
    # A module that is no longer there nor used.
    rm "$source/blocks.mdl"
    { sed '/^use blocks/d' samples/build/cmake/spiral.mdl; sed '/^use nn/d' samples/build/cmake/blocks.mdl; } >"$source/spiral.mdl"
    step "a module that is gone" build
done
generator='Unix Makefiles'
! have ninja || generator=Ninja

# ---- keywords, and consumers in C++ ----
source=$scratch/keywords build=$scratch/keywords/build
mkdir -p "$source/app"
cp samples/build/cmake/*.mdl samples/build/cmake/train.c "$source"
languages=C cxx=
if have c++; then
    languages='C CXX' cxx=yes
else
    skip "a program in C++" "c++ is not installed"
fi
cat >"$source/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(keywords LANGUAGES $languages)
find_package(mdlc 0.1 REQUIRED CONFIG)
mdlc_add_model(one SOURCE spiral.mdl PREFIX spiral THREADS 1 FLAGS -O1 -DMARK=1)
mdlc_add_model(two SOURCE spiral.mdl PREFIX other SHARED SPLIT 2 OPTIONS --precision=f64 --checks=nan DEFINES HIDDEN=8 B=20)
set(MDLC_C_FLAGS "-O1 -DMARK=2")
set(MDLC_C_FLAGS_NATIVE "")
mdlc_add_model(three SOURCE spiral.mdl PREFIX third REPORT)
get_target_property(report three MDLC_REPORT)
file(WRITE "\${CMAKE_BINARY_DIR}/report" "\${report}\n")
add_executable(train train.c)
target_link_libraries(train PRIVATE one m)
add_subdirectory(app)
END
if [ -n "$cxx" ]; then
    cat >"$source/app/both.cpp" <<'END'
#include "other.h"
#include "third.h"
#include <cstdio>
static_assert(sizeof(other_fit_out::loss) == 8 && sizeof(third_fit_out::loss) == 4, "precision");
#ifdef _OPENMP
#error "the model's OpenMP reaches its users"
#endif
int main() { return other_bind(nullptr, nullptr) == OTHER_ERR_ARGUMENT && third_init(nullptr, 0) == THIRD_ERR_ARGUMENT ? 0 : 1; }
END
    printf 'add_executable(both both.cpp)\ntarget_link_libraries(both PRIVATE two three)\n' >"$source/app/CMakeLists.txt"
else
    : >"$source/app/CMakeLists.txt"
fi
step "keywords: configure" configure -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_VISIBILITY_PRESET=hidden
step "keywords: build" build
check "keywords: a program" "$build/train"
[ -z "$cxx" ] || check "keywords: two models in C++" "$build/app/both"
[ -f "$(cat "$build/report")" ] && pass || fail "keywords: MDLC_REPORT" "$(cat "$build/report")"
line() { tr -d '\n' <"$build/compile_commands.json" | tr '}' '\n' | grep "$1"; }
line one/spiral.c | grep -q -e '-ffp-contract=off .*-O1 .*-DMARK=1' && pass || fail "keywords: FLAGS stand behind" "$(line one/spiral.c)"
line one/spiral.c | grep -q -e '-march=native' && pass || fail "keywords: the machine's own flags" "$(line one/spiral.c)"
line three/third.c | grep -q -e '-O1 -DMARK=2' && pass || fail "keywords: MDLC_C_FLAGS" "$(line three/third.c)"
line three/third.c | grep -q -e '-ffp-contract' -e '-march' && fail "keywords: MDLC_C_FLAGS" "$(line three/third.c)" || pass
line two/other.2.c | grep -q -e '-ffp-contract=off' && pass || fail "keywords: SPLIT" "$(line two/other)"
line one/spiral.c | grep -q fopenmp && fail "keywords: THREADS 1 builds with OpenMP" || pass
line train.c | grep -q -e -O3 -e fopenmp -e MARK && fail "keywords: a program gets the model's flags" "$(line train.c)" || pass
grep -q 'Options: --threads=1 ' "$build/mdlc/one/spiral.c" && pass || fail "keywords: THREADS" "$(sed -n 3p "$build/mdlc/one/spiral.c")"
if echo 'int main(void) { return 0; }' | $CC -x c - -lopenblas -o "$scratch/blas" 2>/dev/null; then
    sed -i.bak 's/PREFIX third/& BLAS/' "$source/CMakeLists.txt"
    step "keywords: BLAS" build
    grep -q -e '--blas=openblas' "$build/mdlc/three/third.c" && pass || fail "keywords: BLAS" "$(sed -n 3p "$build/mdlc/three/third.c")"
else
    skip "keywords: BLAS" "OpenBLAS is not installed"
fi

# ---- mistakes in a CMakeLists.txt have a message ----
source=$scratch/mistakes
mkdir "$source"
cp "$scratch/keywords/spiral.mdl" "$source"
while IFS='|' read -r name arguments message; do
    build=$scratch/mistakes/$name
    printf 'cmake_minimum_required(VERSION 3.20)\nproject(m LANGUAGES %s)\nfind_package(mdlc REQUIRED)\nmdlc_add_model(%s)\n' \
        "$([ "$name" = "no C" ] && echo NONE || echo C)" "$arguments" >"$source/CMakeLists.txt"
    configure && fail "$name" "is taken" || pass
    tr -s ' \n' '  ' <"$log" | grep -qF "$message" && pass || fail "$name" "$(tail -n 6 "$log")"
done <<'END'
no source|net BUDGET 1MiB|SOURCE is missing, the model file
no such file|net SOURCE none.mdl|none.mdl'
no keyword|net SOURCE spiral.mdl MAINE|'MAINE' is no keyword
no value|net SOURCE spiral.mdl BUDGET|a value is missing behind BUDGET
main and library|net SOURCE spiral.mdl MAIN SHARED|MAIN makes an executable
no C|net SOURCE spiral.mdl|write project(... LANGUAGES C
END
build=$scratch/mistakes/version
printf 'cmake_minimum_required(VERSION 3.20)\nproject(m LANGUAGES C)\nfind_package(mdlc 99 REQUIRED)\n' >"$source/CMakeLists.txt"
configure && fail "a version to come" "is found" || pass
build=$scratch/mistakes/compiler
printf 'cmake_minimum_required(VERSION 3.20)\nproject(m LANGUAGES C)\nfind_package(mdlc REQUIRED)\n' >"$source/CMakeLists.txt"
configure -DMDLC_EXECUTABLE=/dev/null && fail "a compiler that does not run" "is taken" || pass
tr -s ' \n' '  ' <"$log" | grep -qF "'/dev/null' does not run on this machine: give -DMDLC_EXECUTABLE=PATH" && pass || fail "a compiler that does not run" "$(tail -n 6 "$log")"
# By the PATH alone.
build=$scratch/mistakes/path
check "found by the PATH" env PATH="$prefix/bin:$PATH" cmake -S "$source" -B "$build"

# ---- for another processor ----
if cross_here; then
    source="$scratch/$generator/a project" build=$scratch/cross
    cp samples/build/cmake/* "$source"
    cat >"$scratch/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER $CROSS-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/$CROSS)
set(CMAKE_FIND_ROOT_PATH /usr/$CROSS)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
END
    cmake -S "$source" -B "$build" -G "$generator" -DCMAKE_TOOLCHAIN_FILE="$scratch/toolchain.cmake" -Dmdlc_DIR="$prefix/share/cmake/mdlc" >"$log" 2>&1 &&
        pass || fail "cross: configure" "$(tail -n 5 "$log")"
    step "cross: build" build
    is_aarch64 "$build/train" && pass || fail "cross" "train is not for aarch64"
    grep -q march=native "$build/build.ninja" 2>/dev/null && fail "cross" "-march=native of another machine" || pass
    ctest --test-dir "$build" --output-on-failure >"$log" 2>&1 && pass || fail "cross: tests under qemu" "$(tail -n 10 "$log")"
    # An installation for the other processor in the sysroot: the compiler of this machine is taken.
    cp -R "$prefix" "$scratch/sysroot"
    cp "$build/train" "$scratch/sysroot/bin/mdlc"
    PATH="$prefix/bin:$PATH" cmake -S "$source" -B "$scratch/cross2" -G "$generator" -DCMAKE_TOOLCHAIN_FILE="$scratch/toolchain.cmake" \
        -Dmdlc_DIR="$scratch/sysroot/share/cmake/mdlc" >"$log" 2>&1 && pass || fail "cross: a compiler in the sysroot" "$(tail -n 5 "$log")"
else
    skip "cross: aarch64" "$CROSS-gcc or qemu-aarch64 is not installed"
fi
summary cmake
