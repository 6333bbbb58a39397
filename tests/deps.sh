#!/bin/sh
# Installs what a build and its tests need and is not here yet, through the system's package
# manager. Says what it does; does nothing, at once, when nothing is missing.
#
# Needed: a C compiler, make, flex, bison (3.7 or newer), cmocka, zlib.
# Optional (MDLC_DEPS_OPTIONAL=1 installs them too): other compilers (clang, g++, tcc, for aarch64, arm
# and Cortex-M), qemu-user, qemu-system-arm, python3, openblas, valgrind; what an installation is tried with: cmake, ninja, meson,
# pkg-config, mandoc, zsh, fish, vim; chromium, which opens the page of a report. Without them the tests that use them are skipped and say so.
set -u

have() { command -v "$1" >/dev/null 2>&1; }

has_header() {
    have "${CC:-cc}" && printf '%s\n' "#include <stdarg.h>" "#include <stddef.h>" \
        "#include <stdint.h>" "#include <setjmp.h>" "#include <$1>" |
        "${CC:-cc}" -fsyntax-only -x c - >/dev/null 2>&1
}

bison_is_new() {
    have bison && bison --version | awk 'NR == 1 {
        split($NF, v, "."); exit !(v[1] > 3 || (v[1] == 3 && v[2] >= 7)) }'
}

has_blas() { has_header cblas.h || has_header openblas/cblas.h || has_header x86_64-linux-gnu/cblas.h; }

missing=''
optional=''
have "${CC:-cc}" || missing="$missing compiler"
have make || missing="$missing make"
have flex || missing="$missing flex"
bison_is_new || missing="$missing bison"
has_header cmocka.h || missing="$missing cmocka"
has_header zlib.h || missing="$missing zlib"
have clang || optional="$optional clang"
have python3 || optional="$optional python"
have valgrind || optional="$optional valgrind"
has_blas || optional="$optional openblas"
have g++ || optional="$optional c++"
have tcc || optional="$optional tcc"
have qemu-arm || optional="$optional qemu"
have aarch64-linux-gnu-gcc || optional="$optional aarch64"
have aarch64-linux-gnu-g++ || optional="$optional aarch64-c++"
have arm-linux-gnueabihf-gcc || optional="$optional arm32"
have ninja || optional="$optional ninja"
{ have arm-none-eabi-gcc && echo '#include <math.h>' | arm-none-eabi-gcc -fsyntax-only -x c - >/dev/null 2>&1; } ||
    optional="$optional cortex-m" # its headers are a package of their own
have qemu-system-arm || optional="$optional qemu-system-arm"
for tool in cmake meson pkg-config mandoc zsh fish vim chromium; do
    have $tool || optional="$optional $tool"
done

if [ "${MDLC_DEPS_OPTIONAL:-0}" != 0 ]; then
    want="$missing$optional"
else
    want="$missing"
    [ -z "$optional" ] || echo "deps: optional, not installed:$optional (MDLC_DEPS_OPTIONAL=1 make deps)"
fi
if [ -z "$want" ]; then
    echo "deps: nothing is missing"
    exit 0
fi

if have apt-get; then manager=apt
elif have dnf; then manager=dnf
elif have pacman; then manager=pacman
elif have brew; then manager=brew
else
    echo "deps: missing:$want" >&2
    echo "deps: none of apt-get, dnf, pacman and brew was found; please install these by hand" >&2
    exit 1
fi

# One row a thing: its package under apt, dnf, pacman, brew.
package() {
    case $1 in
    compiler) set -- "gcc libc6-dev" "gcc glibc-devel" gcc gcc ;;
    make) set -- make make make make ;;
    flex) set -- flex flex flex flex ;;
    bison) set -- bison bison bison bison ;;
    cmocka) set -- libcmocka-dev libcmocka-devel cmocka cmocka ;;
    zlib) set -- zlib1g-dev zlib-devel zlib zlib ;;
    clang) set -- clang clang clang llvm ;;
    valgrind) set -- valgrind valgrind valgrind valgrind ;;
    python) set -- python3 python3 python python ;;
    openblas) set -- libopenblas-dev openblas-devel openblas openblas ;;
    c++) set -- g++ gcc-c++ gcc gcc ;;
    tcc) set -- "tcc libc6-dev" tcc tcc tcc ;;
    qemu) set -- qemu-user qemu-user qemu-user qemu ;;
    aarch64) set -- "gcc-aarch64-linux-gnu libc6-dev-arm64-cross" gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc aarch64-elf-gcc ;;
    aarch64-c++) set -- g++-aarch64-linux-gnu gcc-c++-aarch64-linux-gnu aarch64-linux-gnu-gcc aarch64-elf-gcc ;;
    cortex-m) set -- "gcc-arm-none-eabi libnewlib-arm-none-eabi" "arm-none-eabi-gcc-cs arm-none-eabi-newlib" \
        "arm-none-eabi-gcc arm-none-eabi-newlib" "arm-none-eabi-gcc arm-none-eabi-newlib" ;;
    qemu-system-arm) set -- qemu-system-arm qemu-system-arm qemu-system-arm qemu ;;
    ninja) set -- ninja-build ninja-build ninja ninja ;;
    pkg-config) set -- pkg-config pkgconf-pkg-config pkgconf pkgconf ;;
    vim) set -- vim vim-enhanced vim vim ;;
    cmake | meson | mandoc | zsh | fish | chromium) set -- "$1" "$1" "$1" "$1" ;;
    arm32) set -- "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross" gcc-arm-linux-gnu arm-linux-gnueabihf-gcc arm-none-eabi-gcc ;;
    esac
    case $manager in
    apt) echo "$1" ;;
    dnf) echo "$2" ;;
    pacman) echo "$3" ;;
    brew) echo "$4" ;;
    esac
}

sudo=
if [ "$manager" != brew ] && [ "$(id -u)" != 0 ]; then
    if ! have sudo; then
        echo "deps: missing:$want; not root and no sudo here, please install them by hand" >&2
        exit 1
    fi
    sudo=sudo
fi

updated=0
install() {
    echo "deps: $manager installs: $*"
    case $manager in
    apt)
        if [ "$updated" = 0 ]; then
            # The lists may be absent or old: the first failure refreshes them, once.
            if $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
                --no-install-recommends "$@" >/dev/null 2>&1; then
                return 0
            fi
            updated=1
            echo "deps: apt-get update"
            $sudo apt-get update -qq || return 1
        fi
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
            --no-install-recommends "$@" >/dev/null ;;
    dnf) $sudo dnf install -y -q "$@" ;;
    pacman) $sudo pacman -S --needed --noconfirm "$@" ;;
    brew) brew install "$@" ;;
    esac
}

if [ -n "$missing" ]; then
    list=
    for thing in $missing; do list="$list $(package "$thing")"; done
    # shellcheck disable=SC2086
    install $list || { echo "deps: could not install:$list" >&2; exit 1; }
fi
if [ "${MDLC_DEPS_OPTIONAL:-0}" != 0 ]; then
    for thing in $optional; do
        # shellcheck disable=SC2046
        install $(package "$thing") || echo "deps: optional $thing could not be installed; going on"
    done
fi
bison_is_new || { echo "deps: bison 3.7 or newer is needed, found: $(bison --version | head -n 1)" >&2; exit 1; }
echo "deps: done"
