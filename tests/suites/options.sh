#!/bin/sh
# The compiler's command line: what each option does, and what each refuses. The messages of commands
# that are nearly right are in errors.sh, those of the emitted program in mistakes.sh.
set -u
. tests/lib.sh

# is NAME STATUS PATTERN COMMAND...: the exit status, and a line of what was printed.
is() {
    is_name=$1 is_status=$2 is_pattern=$3
    shift 3
    "$@" >"$scratch/said" 2>&1
    is_rc=$?
    [ $is_rc -eq "$is_status" ] && grep -qe "$is_pattern" "$scratch/said" && pass ||
        fail "$is_name" "status $is_rc: $(head -n 2 "$scratch/said")"
}

mkdir "$scratch/a b"
model="$scratch/a b/small #\$.mdl"
cat >"$model" <<'END'
use nn;
dim N = 3;
const scale = 2;
entry main(x: [N], k: i32[2, N] in 0..4, c: f64) {
    return y = x * scale, z = sum(k), c = c;
}
entry draw() { return u = uniform(0, 1, [4]); }
END
cat >"$scratch/tests.mdl" <<'END'
test "holds" { expect 1 + 1 == 2; }
test "does not" { expect 1 + 1 == 3; }
END
printf 'use nn;\ndim N = 2;\nmodel m(x: [N, 3]) -> [N, 3] { param w: [3] = 1; y[n, i] = x[n, i] * w[i]; return y; }\n' >"$scratch/slope.mdl"
printf 'train t(x: [N, 3]) of m { loss mean(select(m(x) - x > 0, m(x), x)); optimizer sgd(lr = 0.1); }\n' >>"$scratch/slope.mdl"
printf 'test "kink" { expect gradcheck(t) < 1e-9; }\n' >>"$scratch/slope.mdl"

# ---- values that are no values ----
while IFS='|' read -r name pattern words; do
    # shellcheck disable=SC2086
    is "$name" 2 "$pattern" "$MDLC" $words "$model"
done <<'END'
no precision|--precision wants f32, f64, f16, bf16 or 'bf16(master=false)', behind the last three perhaps ', always', got 'f7'|--precision f7
no override|-D wants NAME=VALUE, got 'N'|-DN
no binding|--in wants NAME=FILE.npy, got 'x='|run --in x=
no report|unknown report format 'xml'|report --format=xml
a page beside a compile|mdlc report --format=html, not beside 'compile'|--report=html
no size|--budget wants a size such as '160 MiB' or '160 MiB, rounding', got 'much'|--budget=much
a size with another unit|got '3miles'|--budget=3miles
no library|--blas is builtin or openblas, got 'mkl'|--blas=mkl
no number of threads|--threads wants a number from 1 to 1024, got '0'|--threads=0
no colour|--color is auto, always or never, got 'red'|--color=red
C and dependencies in one|more than one of -o, -H and -MF would go to standard output|-MD -o -
C and header in one|more than one of -o, -H and -MF would go to standard output|-o - -H -
a file of a check|'-o' does not go with 'check', which writes no such file: it prints to standard output|check -o none.c
a header of a check|'-H' does not go with 'check'|check -H none.h
a file of a report|'-o' does not go with 'report'|report -o none.txt
a file of tests|'-o' does not go with 'test'|test -o none.txt
a file of a run|'-o' does not go with 'run'|run -o none.npy
dependencies of a run|'-MD' does not go with 'run'|run -MD
rules of no file|-MP adds to a dependency file: give -MD or -MF too|-MP
dependencies of a layout|'-MF' does not go with 'fmt', which writes no such file$|fmt -MF none.d -o -
an entry of a check|'--entry' means nothing to 'check'|check --entry predict
an input of a compile|'--in' means nothing to 'compile'|--in x=x.npy
calls of a test|'--calls' means nothing to 'test'|test --calls=2
a seed of a report|'--seed' means nothing to 'report'|report --seed 1
a format of a run|'--format' means nothing to 'run'|run --format=json
a dump of a layout|'--dump' means nothing to 'fmt'|fmt --dump=build
counts of a check|'--stats' means nothing to 'check'|check --stats
a file of a dump|'-o' does not go with '--dump'|--dump=lower -o none.txt
no seed|--seed wants a number from 0 to 18446744073709551615, got 'one'|run --seed one
a seed below 0|--seed wants a number from 0 to 18446744073709551615, got '-1'|run --seed=-1
a seed of 65 bits|--seed wants a number from 0 to 18446744073709551615, got '18446744073709551616'|run --seed 18446744073709551616
no calls|--calls wants a positive number, got '0'|run --calls=0
a main of a device|--target=cuda writes no main: add --no-main|--target=cuda
a target of a run|'--target' means nothing to 'run'|run --target=cuda
threads of a device|'--threads' does not go with '--target=cuda'|--target=cuda --no-main --threads=2
a library of a device|'--blas' does not go with '--target=cuda'|--blas=openblas --target=cuda --no-main
a band of a device|'--checks=canary' does not go with '--target=cuda'|--target=cuda --no-main --checks=canary
a note of a device|'--checks=nan' does not go with '--target=cuda'|--target=cuda --no-main --checks=nan
a header of a device|'-H' does not go with '--target=cuda'|--target=cuda --no-main -H none.h
a runtime of a device|'--runtime' does not go with '--target=cuda'|--target=cuda --no-main --runtime=whole
a machine of a device|'--for' does not go with '--target=cuda'|--target=cuda --no-main --for=native
no target|unknown target 'pdf'|--target=pdf
no checks|--checks is none, or a list of nan and canary, got 'all'|--checks=all
no check in a list|got 'nan,all'|--checks=nan,all
no stage|there is no stage 'tree'; stages: ast build match repeats orders turns lookups parts chunk precision grad operands simplify hoist clean factor unroll merge halo layout narrow sums fma eval_parts remat sink thin final again lower plan|--dump=tree
a machine of a layout|'--for' means nothing to 'fmt'|fmt --for=native
a compiler of a check|'--cc' means nothing to 'check'|check --cc gcc
libraries of a report|'--libs' means nothing to 'report'|report --libs
data of a compile|'--data' means nothing to 'compile'|--data d.csv
a list of a check|'--list' means nothing to 'check'|check --list
force of a layout|'--force' means nothing to 'fmt'|fmt --force
a slip|did you mean '--threads'|--thread=2
a slip of a flag|did you mean '--no-main'|--nomain
END
is "a report of a device" 0 'mirror of the results on the host' "$MDLC" report --target=cuda "$model"
is "no value" 2 "a value is missing after '-o'" "$MDLC" "$model" -o
is "no file" 2 "no model file given" "$MDLC" --threads=2
is help 0 "^  -D NAME=VALUE " "$MDLC" --help
is "help: flags" 0 "^  flags  *the options for a C compiler" "$MDLC" --help
is version 0 "^mdlc [0-9]" "$MDLC" --version

# ---- version ----
# The first line is for programs; each of the others has its key once and depends on the build alone.
"$MDLC" --version >"$scratch/version" && "$MDLC" --version >"$scratch/version2" && same "the same version" "$scratch/version" "$scratch/version2"
[ "$(sed -n 1p "$scratch/version")" = "mdlc $(sed -n 's/^#define MDLC_VERSION "\(.*\)"$/\1/p' compiler/version.h)" ] && pass || fail "the first line of --version"
sed -n '2,$s/:.*//p' "$scratch/version" | tr '\n' ' ' >"$scratch/keys"
[ "$(cat "$scratch/keys")" = "built by build threads targets blas modules licence " ] && pass || fail "the lines of --version" "$(cat "$scratch/keys")"
grep -qx 'threads: 8' "$scratch/version" && grep -qx 'targets: c cuda' "$scratch/version" && grep -qx 'blas: builtin openblas' "$scratch/version" && pass ||
    fail "what --version says of options"
modules=$(find lang -name '*.mdl' | sed 's|^lang/||; s|\.mdl$||; s|/|.|g' | LC_ALL=C sort | tr '\n' ' ')
grep -qx "modules: ${modules% }" "$scratch/version" && pass || fail "the modules of --version" "not $modules"
case $BUILD in
build) grep -qx 'build: usual' "$scratch/version" ;;
*asan) grep -qx 'build: sanitizers (address undefined)' "$scratch/version" ;;
*odd*) grep -qx 'build: odd sizes' "$scratch/version" ;;
*cover) grep -qx 'build: coverage' "$scratch/version" ;;
*) grep -q '^build: ' "$scratch/version" ;;
esac && pass || fail "the kind of build in --version" "$(grep '^build' "$scratch/version")"

# ---- flags ----
# one NAME EXPECTED WORD...: exactly one line, and nothing beside it.
one() {
    one_name=$1 one_line=$2
    shift 2
    "$MDLC" flags "$@" >"$scratch/said" 2>&1
    one_rc=$?
    printf '%s\n' "$one_line" >"$scratch/line"
    [ $one_rc -eq 0 ] && cmp -s "$scratch/line" "$scratch/said" && pass || fail "flags: $one_name" "status $one_rc: $(cat "$scratch/said")"
}
while IFS='|' read -r name pattern words; do
    # shellcheck disable=SC2086
    is "flags: $name" 2 "$pattern" "$MDLC" flags $words
    [ "$(grep -c '^mdlc: ' "$scratch/said")" -eq 1 ] && pass || fail "flags: $name" "more than one message"
done <<'END'
an unknown machine|--for knows no machine 'mips'; it knows native, generic, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, znver4, aarch64$|--for=mips
no machine|--for knows no machine ''|--for=
an unknown compiler|--cc knows no C compiler 'msvc'; it knows cc, gcc, clang, tcc, nvcc|--cc=msvc
a version alone|--cc knows no C compiler '-12'|--cc=-12
a machine of another|'--for=x86-64-v3' means nothing to 'nvcc': native and generic do|--for=x86-64-v3 --cc=nvcc
a library of a device|'--blas' does not go with '--cc=nvcc'|--cc=nvcc --blas=openblas
a library of its own|--blas is builtin or openblas, got 'mkl'|--blas=mkl
a file|'flags' takes options alone, got 'net.mdl'|net.mdl
a file behind --|'flags' takes options alone, got '--libs'|-- --libs
an output|'-o' does not go with 'flags', which writes no such file: it prints to standard output|-o flags.txt
a dim|'-D' means nothing to 'flags'|-DN=2
a precision|'--precision' means nothing to 'flags'|--precision=f64
threads|'--threads' means nothing to 'flags'|--threads 4
a slip|did you mean '--libs'|--lib
no value|a value is missing after '--for'|--for
END
# What `init` refuses is in init.sh.
while IFS='|' read -r name pattern words; do
    # shellcheck disable=SC2086
    is "init: $name" 2 "$pattern" "$MDLC" init $words
    [ "$(grep -c '^mdlc: ' "$scratch/said")" -eq 1 ] && pass || fail "init: $name" "more than one message"
done <<'END'
a second template|one template at a time; a second one is 'images'|text images
a dim|'-D' means nothing to 'init'|text -D N=2
a budget|'--budget' means nothing to 'init'|text --budget=1MiB
a library|'--blas' means nothing to 'init'|text --blas=openblas
a machine|'--for' means nothing to 'init'|text --for=native
a header|'-H' does not go with 'init', which writes no such file$|text -H x.h
dependencies|'-MD' does not go with 'init', which writes no such file$|text -MD
no data|a value is missing after '--data'|--data
a slip|did you mean '--force'|text --forced
END
is "init: almost" 2 "there is no command 'inti'; did you mean 'init'" "$MDLC" inti
is "help: init" 0 "^  init \[TEMPLATE\]  *write a new model" "$MDLC" --help
is "flags: almost" 2 "there is no command 'flag'; did you mean 'flags'" "$MDLC" flag
usual=$("$MDLC" flags)
libs=$("$MDLC" flags --libs)
generic=$(printf '%s' "$usual" | sed 's/ -march=native//')
one usual "$usual" --for native
one generic "$generic" --for=generic
case $generic in *march* | *native*) fail "flags: generic" "$generic" ;; *) pass ;; esac
one x86-64-v3 "$(printf '%s' "$usual" | sed 's/=native/=x86-64-v3/')" --for=x86-64-v3
one "a compiler with a folder, a target and a version" "$usual" --cc=/usr/bin/aarch64-linux-gnu-gcc-12.2
one "a compiler of C++" "$usual" --cc clang++-19
one libraries -lm --libs
one "libraries for BLAS" "-lopenblas -lm" --libs --blas=openblas
one "a compiler without options" "-O2" --cc=tcc
# Header comments, README.md and the tests have the same text.
"$MDLC" "$model" -o "$scratch/out.c" && grep -qxF " *     cc $usual out.c $libs -o out" "$scratch/out.c" && pass || fail "flags and the header comment"
"$MDLC" --blas=openblas "$model" -o "$scratch/out.c" && grep -qxF " *     cc $usual out.c $("$MDLC" flags --blas=openblas --libs) -o out" "$scratch/out.c" && pass ||
    fail "flags and the header comment with BLAS"
"$MDLC" --target=cuda --no-main "$model" -o "$scratch/out.cu" && grep -qxF " *     nvcc $("$MDLC" flags --cc=nvcc) out.cu -c -o out.o" "$scratch/out.cu" && pass ||
    fail "flags and the header comment of a device"
grep -qxF "cc $usual train.c $libs -o train" README.md && pass || fail "flags and README.md"
grep -qF "EMITTED_FLAGS:=$usual}" tests/lib.sh && pass || fail "flags and tests/lib.sh"
# Compilers take them, without a warning.
"$MDLC" samples/diabetes.mdl -o "$scratch/train.c"
# shellcheck disable=SC2046
check "flags: a build" $CC $("$MDLC" flags) "$scratch/train.c" -o "$scratch/train" $("$MDLC" flags --libs)
check "flags: a run" "$scratch/train" --steps 2
"$MDLC" "$model" -o "$scratch/out.c"
machines=$("$MDLC" flags --for=none 2>&1 | sed -n 's/.*it knows //p' | tr -d ,)
for machine in $machines; do
    case $machine:$(uname -m) in
    native:* | generic:*) compilers="gcc clang tcc" ;;
    x86-64*:x86_64) compilers="gcc clang" ;;
    aarch64:aarch64) compilers="gcc clang aarch64-linux-gnu-gcc" ;;
    aarch64:*) compilers="aarch64-linux-gnu-gcc" ;;
    *) compilers= ;;
    esac
    for compiler in $compilers; do
        have $compiler || { skip "flags: $compiler for $machine" "not installed"; continue; }
        words=$("$MDLC" flags --cc=$compiler --for=$machine)
        # shellcheck disable=SC2086
        echo 'int main(void) { return 0; }' | $compiler $words -x c -c - -o "$scratch/try.o" 2>/dev/null ||
            { skip "flags: $compiler for $machine" "an old version, or one without OpenMP"; continue; }
        # shellcheck disable=SC2086
        check "flags: $compiler for $machine" $compiler $words -Wall -Werror -c "$scratch/out.c" -o "$scratch/out.o"
    done
done

# ---- output ----
check "a file behind --" "$MDLC" -o "$scratch/out.c" -- "$model"
check "a size with a blank" "$MDLC" --budget "1 MiB" "$model" -o "$scratch/out.c"
grep -q '^ \* Options: --threads=8 --budget=1048576$' "$scratch/out.c" && pass || fail "the budget in the header comment"
is "a budget of the command line has a place" 3 'small #.*mdl:4:1: error: needs .* more than --budget=10 \[E0601\]' \
    "$MDLC" --budget=10 "$model" -o "$scratch/out.c"
is "a fraction of a unit" 3 E0601 "$MDLC" --budget=0.01kB "$model" -o "$scratch/out.c"
is "json: what -D says" 0 '"define":{"N":"5","scale":"1 +\\u000a2"}' \
    "$MDLC" report --format=json -D N=5 "-Dscale=1 +
2" "$model"
for stage in ast build match repeats orders turns lookups parts chunk precision grad operands simplify hoist clean factor unroll merge halo layout narrow sums fma eval_parts remat sink thin final again lower plan; do
    is "--dump=$stage" 0 . "$MDLC" --dump=$stage "$model"
done
is "a model from standard input" 4 "read from a file; '/dev/stdin'" "$MDLC" check -
is "fmt" 0 '^entry main(x: \[N\], k: i32\[2, N\] in 0..4, c: f64) {$' "$MDLC" fmt "$model"
cp "$model" "$scratch/odd.mdl"
echo 'const   odd=1 ;' >>"$scratch/odd.mdl"
"$MDLC" fmt "$scratch/odd.mdl" -o "$scratch/even.mdl" && "$MDLC" fmt "$scratch/even.mdl" >"$scratch/again.mdl"
same "fmt of what fmt wrote" "$scratch/even.mdl" "$scratch/again.mdl"
echo 'entry e(x: [4]) { return y; }' >"$scratch/wrong.mdl"
is "colours" 1 "$(printf '\033')\[" "$MDLC" --color=always check "$scratch/wrong.mdl"
is "no colours" 1 "^[^$(printf '\033')]*E0205" "$MDLC" --color=never check "$scratch/wrong.mdl"

# ---- dependencies ----
printf '%s: \\\n  %s/a\\ b/small\\ \\#$$.mdl\n' "$scratch/a\\ b/out.c" "$scratch" >"$scratch/expected.d"
"$MDLC" -MD "$model" -o "$scratch/a b/out.c" && same "-MD" "$scratch/expected.d" "$scratch/a b/out.c.d"
# Modules are read by the compile, data files by the program. With -MP a module that is gone is no error of make.
printf 'dim N = 3;\nop twice(x: [N]) -> [N] { return 2 * x; }\n' >"$scratch/a b/part.mdl"
printf 'use nn;\nuse part;\ndataset d { file f = "none.csv"; x: f32[3] = f.columns(0..3); }\n' >"$scratch/a b/whole.mdl"
printf 'entry main(x: [N]) { return twice(x); }\n' >>"$scratch/a b/whole.mdl"
whole=$scratch/a\\\ b/whole.mdl part=$scratch/a\\\ b/part.mdl
printf '%s: \\\n  %s \\\n  %s\n%s:\n' "$scratch/whole.c" "$whole" "$part" "$part" >"$scratch/expected.d"
"$MDLC" "$scratch/a b/whole.mdl" -MF "$scratch/whole.d" -o "$scratch/whole.c" 2>/dev/null
sed '$d' "$scratch/expected.d" >"$scratch/shorter.d"
same "-MF, with a module" "$scratch/shorter.d" "$scratch/whole.d"
"$MDLC" "$scratch/a b/whole.mdl" -MF "$scratch/whole.d" -MP -o "$scratch/whole.c" 2>/dev/null
same "-MP, with a module" "$scratch/expected.d" "$scratch/whole.d"
"$MDLC" samples/digits.mdl -MF "$scratch/digits.d" -o "$scratch/digits.c"
printf '%s: \\\n  samples/digits.mdl\n' "$scratch/digits.c" >"$scratch/expected.d"
same "-MF, with data files" "$scratch/expected.d" "$scratch/digits.d"
is "-MD without a file" 0 '^small_[^:]*\.c: ' "$MDLC" -MD "$model"

# ---- run ----
# npy NAME TYPE SHAPE OCTAL: an array of little-endian numbers.
npy() {
    npy_head="{'descr': '<$2', 'fortran_order': False, 'shape': ($3), }"
    # shellcheck disable=SC2059
    { printf '\223NUMPY\1\0'; printf "\\$(printf %03o ${#npy_head})\\0%s$4" "$npy_head"; } >"$scratch/$1.npy"
}
npy x f4 3, '\0\0\200\077\0\0\0\100\0\0\100\100'                                 # 1 2 3
npy k u1 '1, 2, 3' '\0\1\2\3\2\1'
npy big u1 '2, 3' '\0\1\2\4\2\1'
npy c f8 '' '\0\0\0\0\0\0\004\100'                                               # 2.5
npy wide i8 '2, 3' '\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0'
in="--in x=$scratch/x.npy --in c=$scratch/c.npy"
# shellcheck disable=SC2086
{
    is "run" 0 '^y f32\[3\] = 2 4 6$' "$MDLC" run $in --in "k=$scratch/k.npy" "$model"
    is "run: an integer" 0 '^z = 9$' "$MDLC" run $in --in "k=$scratch/k.npy" "$model"
    is "run: an input too few" 2 "'main' needs the input 'k': give --in k=FILE.npy" "$MDLC" run $in "$model"
    is "run: an unknown input" 2 "'main' has no input 'q'" "$MDLC" run $in --in q=a.npy "$model"
    is "run: no such file" 4 "input 'k': .*none.npy" "$MDLC" run $in --in k=none.npy "$model"
    is "run: another shape" 2 "input 'k': .*another shape" "$MDLC" run $in --in "k=$scratch/x.npy" "$model"
    is "run: out of range" 2 "element 3 of .* is 4, outside 0..4" "$MDLC" run $in --in "k=$scratch/big.npy" "$model"
    is "run: too wide" 4 "element 0 is 4294967296, which i32 cannot hold" "$MDLC" run $in --in "k=$scratch/wide.npy" "$model"
}
is "run: no such entry" 2 "no train or entry 'mian'" "$MDLC" run --entry mian "$model"
echo 'const a = 1;' >"$scratch/nothing.mdl"
is "run: nothing to run" 2 "the file has no train and no entry to run" "$MDLC" run "$scratch/nothing.mdl"
# Equal seeds draw the same, each call draws anew.
for seed in 5 5 6; do "$MDLC" run --entry=draw --seed $seed --calls 2 "$model"; done >"$scratch/draws"
[ "$(wc -l <"$scratch/draws")" -eq 6 ] && [ "$(sort -u "$scratch/draws" | wc -l)" -eq 4 ] && pass ||
    fail "run: seed and calls" "$(cat "$scratch/draws")"

# ---- test ----
is "test: what fails is named" 1 'FAILED "does not": the expectation at .*tests.mdl:2:26 does not hold' "$MDLC" test "$scratch/tests.mdl"
is "test: the rest goes on" 1 'ok "holds": 1 expectation$' "$MDLC" test "$scratch/tests.mdl"
is "test: a derivative at a kink" 1 'FAILED "kink": gradcheck(t): .* m.w: analytic' "$MDLC" test "$scratch/slope.mdl"
# Equal derivatives of equal parameters, which cancel along a direction of -1 and 1.
cat >"$scratch/equal.mdl" <<'END'
op wrong(x: [...]) -> [...] { return x * x; } adjoint (u: [...]) { return 100 * u; }
model net() -> f32 { param w: [2] = 1; return sum(wrong(w)); }
optimizer plain(p: [...], g: [...], lr: real) { p <- p - lr * g; }
train fit() of net { loss net(); optimizer plain(lr = 0.1); steps 3; }
test "equal" { expect gradcheck(fit) < 1e-5; }
END
for seed in 0 1 2 3; do
    is "test: wrong derivatives that are equal, seed $seed" 1 'FAILED "equal": gradcheck(fit): .* net.w: analytic' \
        "$MDLC" test --seed $seed "$scratch/equal.mdl"
done
is "test: none" 0 "no test blocks in" "$MDLC" test "$scratch/nothing.mdl"

summary options
