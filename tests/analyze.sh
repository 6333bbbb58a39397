#!/bin/sh
# Static analysis: gcc -fanalyzer and clang-tidy (.clang-tidy) over the compiler, and gcc over programs
# that it emits, which hold the runtime: minutes and 3 GB for the smallest. A finding that is none stands in tests/analyze.known, one line each:
#     FILE <tab> CHECK <tab> SOURCE LINE <tab> REASON        (FILE is "emitted" in emitted programs)
# Any other finding fails, and so does a line there that no tool reports any more. ONLY=TEXT takes the
# files whose name holds the text.
set -u
: "${BUILD:=build}" "${MDLC:=$BUILD/mdlc}" "${JOBS:=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}"
: "${ONLY:=}"
out=$BUILD/analyze
rm -rf "$out"
mkdir -p "$out"
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -I. -I$BUILD/gen"
export flags out

# One tool on one file: FILE:LINE:COLUMN and [CHECK] of each warning, as FILE <tab> LINE <tab> CHECK.
cat >"$out/one.sh" <<'END'
tool=$1 file=$2
case $tool in
gcc) gcc $flags -O0 -fopenmp -fanalyzer -Wall -Wextra -c "$file" -o /dev/null 2>&1 ;;
tidy) clang-tidy --quiet --config-file=.clang-tidy "$file" -- $flags 2>/dev/null ;;
esac | tee "$out/$tool.$(echo "$file" | tr / .).log" |
    sed -n "s!^\([^ :]*\):\([0-9]*\):[0-9]*: \(warning\|error\): .*\[\([^][]*\)\]\$!\1\t\2\t\4!p" |
    sed "s|^$PWD/||; s|^\./||"
END

have() { command -v "$1" >/dev/null 2>&1; }
tools=
for tool in gcc clang-tidy; do
    have $tool && tools="$tools $tool" || echo "skip $tool: not installed (MDLC_DEPS_OPTIONAL=1 make deps)"
done
[ -n "$tools" ] || exit 1

# Each tool must see a planted fault, or its silence means nothing.
cat >"$out/planted.c" <<'END'
#include <stdlib.h>
int planted(int n);
int planted(int n) {
    int *p = malloc(sizeof *p);
    if (n > 3)
        free(p);
    free(p);
    return n;
}
END
bad=0
for tool in $tools; do
    sh "$out/one.sh" "${tool#clang-}" "$out/planted.c" | grep -q -i 'free\|malloc' ||
        { echo "analyze: $tool does not see the planted fault"; bad=1; }
done

"$MDLC" samples/diabetes.mdl -o "$out/diabetes.c" || bad=1
"$MDLC" --checks=canary samples/diabetes.mdl -o "$out/canary.c" || bad=1
ls lang/*.c compiler/*.c compiler/driver/*.c passes/*.c passes/*/*.c emit/*.c >"$out/sources"
{
    for tool in $tools; do
        sed "s|^|${tool#clang-} |" "$out/sources"
        [ $tool != gcc ] || printf 'gcc %s\n' "$out/diabetes.c" "$out/canary.c"
    done
} | grep -F -e "$ONLY" | xargs -P "$JOBS" -n 2 sh "$out/one.sh" | sort -u >"$out/places"

# Places become FILE <tab> CHECK <tab> SOURCE LINE, which other lines may move.
while IFS="$(printf '\t')" read -r file line check; do
    text=$(sed -n "${line}s/^[[:space:]]*//p" "$file")
    case $file in "$out"/*) file=emitted ;; esac
    printf '%s\t%s\t%s\n' "$file" "${check%,-warnings-as-errors}" "$text"
done <"$out/places" | sort -u >"$out/found"
grep -v '^#' tests/analyze.known | cut -f 1-3 | sort -u >"$out/known"
comm -23 "$out/found" "$out/known" >"$out/new"
[ -s "$out/new" ] && { sed 's/^/analyze: /' "$out/new"; bad=1; }
if [ -z "$ONLY" ] && [ "$tools" = " gcc clang-tidy" ]; then
    comm -13 "$out/found" "$out/known" >"$out/gone"
    [ -s "$out/gone" ] && { sed 's/^/analyze: no longer found: /' "$out/gone"; bad=1; }
fi
echo "analyze:$tools: $(wc -l <"$out/new") new findings, $(wc -l <"$out/found") in all, logs in $out"
exit $bad
