#!/bin/sh
# Programs for graphics processors (tests/cuda): over a host shim, under the address and undefined
# sanitizers, they train as the C target's programs do, whichever thread comes first; nvcc takes the
# same text without a warning, and where there is a device it runs there. A step of chars takes the
# shim some ten seconds, so its windows are shorter, and nvcc compiles for one machine; LONG=1 has
# whole windows and two machines.
set -u
. tests/lib.sh
: "${CXX:=c++}" "${LONG:=0}"
short="-D T=4" window=64 steps=8
machines="-gencode arch=compute_90,code=sm_90"
[ "$LONG" = 0 ] || short="" window=1024 steps=20 machines="$machines -gencode arch=compute_80,code=sm_80"

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || nvcc=
gpu=no
nvidia-smi >/dev/null 2>&1 && gpu=yes
# gcc 13 puts values for vectors of 64 bytes at places that are not aligned so when a frame lies on the
# heap, where ASan looks for uses of it behind its return.
ASAN_OPTIONS=detect_stack_use_after_return=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export ASAN_OPTIONS
sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
echo 'int main() { return 0; }' >"$scratch/empty.cc"

# agree NAME ONE OTHER: the same words and statuses, numbers within $within of each other.
within=1e-5
agree() {
    paste -d ' ' "$2" "$3" | awk -v within="$within" '
        NF != 6 || $1 != $4 || $2 != $5 { print "line " NR ": " $0; bad = 1 }
        {
            d = $3 - $6; m = $3 < 0 ? -$3 : $3
            d = d < 0 ? -d : d
            if (d > within * m && d > 1e-30) { print "line " NR ": " $0; bad = 1 }
        }
        END { exit bad || NR < '"$steps"' }' >"$scratch/agree" && pass || fail "$1" "$(head -n 3 "$scratch/agree")"
}

# model FILE TRAIN FIRST SECOND COUNT_1 COUNT_2 LIMIT DEFINES OPTIONS...
model() {
    file=$1 name=$(basename "$1" .mdl)
    defines="-DPREFIX=$name -DUPPER=$(echo "$name" | tr '[:lower:]' '[:upper:]') -DTRAIN=$2 -DFIRST=$3 -DSECOND=$4
        -DCOUNT_1=$5 -DCOUNT_2=$6 -DLIMIT=$7 $8"
    shift 8
    "$MDLC" "$@" --no-main "$file" -o "$scratch/$name.c" && "$MDLC" "$@" --no-main --target=cuda "$file" -o "$scratch/$name.cu" ||
        { fail "$name" "does not compile"; return; }
    host="$CXX -std=c++17 -ffp-contract=off -march=native"
    # shellcheck disable=SC2086
    $host -O0 $defines -DMODEL="\"$scratch/$name.c\"" tests/cuda/driver.cc -o "$scratch/$name.host" 2>"$scratch/err" &&
        "$scratch/$name.host" $steps >"$scratch/$name.expected" 2>/dev/null || { fail "$name: in C" "$(head -n 3 "$scratch/err")"; return; }
    # shellcheck disable=SC2086
    check "$name: over the shim" $host -O1 -g1 -Wall -Wextra -Werror $checks $defines -DMODEL="\"$scratch/$name.cu\"" \
        -include tests/cuda/shim.h tests/cuda/driver.cc -o "$scratch/$name.shim"
    "$scratch/$name.shim" $steps >"$scratch/$name.got" 2>"$scratch/err" || fail "$name: a run over the shim" "$(grep -v '^==.*makecontext' "$scratch/err" | head -n 3)"
    agree "$name: the losses of the C target" "$scratch/$name.expected" "$scratch/$name.got"
    "$scratch/$name.shim" 2 >"$scratch/$name.forth" 2>/dev/null
    SHIM_REVERSE=1 "$scratch/$name.shim" 2 >"$scratch/$name.back" 2>/dev/null
    same "$name: threads in another order" "$scratch/$name.forth" "$scratch/$name.back"
    if [ -n "$nvcc" ]; then
        # shellcheck disable=SC2086
        check "$name: nvcc" "$nvcc" -std=c++17 -Xcicc -O0 -Xptxas -O0 $machines \
            -Werror all-warnings -Xcompiler -Wall,-Wextra -c "$scratch/$name.cu" -o "$scratch/$name.o"
    else
        skip "$name: nvcc" "no nvcc on the path or in /usr/local/cuda/bin"
    fi
    if [ -z "$nvcc" ] || [ $gpu = no ]; then
        skip "$name: on a device" "no nvcc, or nvidia-smi finds no device"
        return
    fi
    # shellcheck disable=SC2086
    check "$name: for the device here" "$nvcc" -std=c++17 -O3 -arch=native -fmad=false $defines -DMODEL="\"$scratch/$name.cu\"" \
        -x cu tests/cuda/driver.cc -o "$scratch/$name.gpu"
    "$scratch/$name.gpu" $steps >"$scratch/$name.device" 2>"$scratch/$name.memory"
    agree "$name: the losses on a device" "$scratch/$name.expected" "$scratch/$name.device"
    [ "$(sed -n 's/^before: //p' "$scratch/$name.memory")" = "$(sed -n 's/^behind: //p' "$scratch/$name.memory")" ] && pass ||
        fail "$name: memory of the device" "$(tr '\n' ' ' <"$scratch/$name.memory")"
    if have compute-sanitizer; then
        check "$name: compute-sanitizer" compute-sanitizer --error-exitcode 1 "$scratch/$name.gpu" 2
    else
        skip "$name: compute-sanitizer" "it is not there"
    fi
}

if ! have "$CXX"; then
    skip cuda "no C++ compiler"
    summary cuda
    exit 0
fi
checks=
# shellcheck disable=SC2086
if $CXX $sanitize "$scratch/empty.cc" -o "$scratch/empty" 2>/dev/null && "$scratch/empty"; then
    checks=$sanitize
else
    skip "sanitizers" "$CXX has none"
fi
model samples/diabetes.mdl fit x y 4420 442 10 ""
# With a table of counts, which an evaluation keeps from batch to batch.
sed 's/^\( *\)metric acc = .*/&\n    c[i < 10, j < 10] = sum[b] f32(y[b] == i and argmax(logits)[b] == j);\n    metric macro = mean[k] (c[k, k] \/ max(sum[j] c[k, j], 1));/' samples/digits.mdl >"$scratch/digits.mdl"
model "$scratch/digits.mdl" fit x y 8192 128 10 -DHOLDOUT=macro
model samples/residual.mdl fit x y 4096 64 10 -DHOLDOUT=acc
# shellcheck disable=SC2086
model samples/chars.mdl fit tok tgt $window $window 256 -DHOLDOUT=bits $short
model tests/suites/device.mdl fit i y 1500 7500 7 ""
model tests/suites/sorting.mdl fit x y 1200 4 9 ""
# In 16 bits, where sums in another order (of tensor cores too) may round to the other side.
cp "$scratch/digits.mdl" "$scratch/digits_bf16.mdl"
cp "$scratch/digits.mdl" "$scratch/digits_f16.mdl"
within=3e-4
model "$scratch/digits_bf16.mdl" fit x y 8192 128 10 -DHOLDOUT=macro --precision=bf16,always
model "$scratch/digits_f16.mdl" fit x y 8192 128 10 -DHOLDOUT=macro --precision=f16,always
model tests/suites/device_half.mdl fit x y 1536 960 15360 ""
summary cuda
