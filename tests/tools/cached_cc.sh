#!/bin/sh
# A C compiler that remembers: CACHE=folder REAL=cc cached_cc.sh ARGUMENT...
#
# The same options, preprocessed texts and objects give the bytes that they gave before. For runs
# that build the same emitted programs again and again (tests/mutate.sh). What it cannot know is
# left to the compiler: other outputs than one file, input from a pipe, a build that fails.
: "${CACHE:?}" "${REAL:=cc}"
out='' last='' options='' objects=''
for argument; do
    case $last in -o) out=$argument ;; esac
    case $argument in
    -E | -M* | -fsyntax-only | - | -###) exec $REAL "$@" ;;
    -o) ;;
    -I*) ;;
    -*) options="$options $argument" ;;
    *.o | *.a | *.so) [ "$last" = -o ] || objects="$objects $argument" ;;
    *.c | *.cc | *.cpp) [ -f "$argument" ] || exec $REAL "$@" ;;
    *) [ "$last" = -o ] || options="$options $argument" ;;
    esac
    last=$argument
done
[ -n "$out" ] || exec $REAL "$@"

# Without -o, -c and what only a linker knows, the rest preprocesses.
texts() {
    skip=''
    for argument; do
        shift
        case $skip$argument in
        1*) skip='' ;;
        -o) skip=1 ;;
        -c | -l* | *.o | *.a | *.so) ;;
        *) set -- "$@" "$argument" ;;
        esac
    done
    case " $* " in *.c\ * | *.cc\ * | *.cpp\ *) $REAL -E -P "$@" ;; esac
}
# shellcheck disable=SC2086
key=$({ echo "$REAL$options" && texts "$@" && cat /dev/null $objects; } 2>/dev/null | sha256sum | cut -c1-40)
kept=$CACHE/$key side=${out%.o}.ci
if [ ! -f "$kept" ]; then
    $REAL "$@" || exit
    mkdir -p "$CACHE"
    [ ! -f "$side" ] || cp "$side" "$kept.ci"
    cp "$out" "$kept.$$" && mv "$kept.$$" "$kept"
    exit 0
fi
[ ! -f "$kept.ci" ] || cp "$kept.ci" "$side"
cp "$kept" "$out"
