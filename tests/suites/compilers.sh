#!/bin/sh
# The same bits from every compiler and machine: each sample is built by each C compiler that is here,
# at several levels, as C++17, with vectors of several widths, and for other processors (run under
# qemu-user), and trained for a few steps. All machines that round a multiply-add once end with the same
# weights, byte for byte, and so do all that round it twice; every printed loss of the second kind
# agrees with that of the first within 1e-5. The short form, in the tests, builds digits and diabetes
# with most of them and the other samples with one; WIDE=1 builds all.
set -u
. tests/lib.sh
: "${WIDE:=0}"
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)

# NAME | once or twice: how a multiply-add is rounded | COMMAND with options | what runs the program
builders() {
    # Vectors of 32 bytes, where the machine has them: other register tiles than those of 16 and 64.
    if grep -qw avx2 /proc/cpuinfo 2>/dev/null && grep -qw fma /proc/cpuinfo; then
        echo "gcc-O1-avx2|once|gcc -O1 -mavx2 -mfma -ffp-contract=off|"
        echo "gcc-O0-fma|once|gcc -O0 -mfma -ffp-contract=off -DMD_VBYTES=0|"
        echo "clang-O2-avx2|once|clang -O2 -mavx2 -mfma|"
        echo "clang-O3-native|once|clang -O3 -march=native -ffp-contract=off -fno-math-errno|"
        echo "g++-17-avx2|once|g++ -x c++ -std=c++17 -O2 -mavx2 -mfma -ffp-contract=off|"
    fi
    echo "aarch64|once|aarch64-linux-gnu-gcc -O1 -ffp-contract=off -static|qemu-aarch64"
    echo "gcc-O2|twice|gcc -O2 -fopenmp|"
    echo "gcc-O0|twice|gcc -O0|"
    echo "gcc-O2-no-vectors|twice|gcc -O2 -DMD_VBYTES=0|"
    echo "clang-O0|twice|clang -O0|"
    echo "clang-O2|twice|clang -O2|"
    echo "g++-17|twice|g++ -x c++ -std=c++17 -O1|"
    echo "clang++-17|twice|clang++ -x c++ -std=c++17 -O1|"
    echo "tcc|twice|tcc|"
    echo "arm32|twice|arm-linux-gnueabihf-gcc -O1 -static|qemu-arm"
}
in_short_form() { # SAMPLE BUILDER
    case $1:$2 in
    *:tcc | diabetes:gcc-O2 | diabetes:gcc-O2-no-vectors | diabetes:clang++-17) return 0 ;;
    digits:gcc-O0 | digits:gcc-O1-avx2 | digits:clang-O3-native | diabetes:g++-17 | digits:aarch64 | diabetes:arm32) return 0 ;;
    diabetes:gcc-O0-fma | residual:clang-O2-avx2 | chars:g++-17-avx2) return 0 ;;
    esac
    return 1
}

# One build and run; leaves the losses, or the reason why there are none.
cat >"$scratch/one.sh" <<'END'
sample=$1 train=$2 steps=$3 name=$4 build=$5 run=$6
out=$scratch/$sample.$name
[ -x "$out" ] || $build "$scratch/$sample.c" -lm -o "$out" >"$out.log" 2>&1 || { echo "build" >"$out.bad"; exit; }
# The programs find the sample's data from the root of the tree.
timeout 300 $run "$out" $train --steps "$steps" --seed 1 --log json --log-every 1 --save "$out.weights" \
    >"$out.json" 2>"$out.log" ||
    { echo "run" >"$out.bad"; exit; }
sed -n 's/.*"event":"step".*"loss":\([^,}]*\).*/\1/p; s/.*"event":"end".*"loss":\([^,}]*\).*/\1/p' "$out.json" >"$out.losses"
END
export scratch

for case in "diabetes:fit:200" "digits::8" "residual::4" "chars::3"; do
    sample=${case%%:*} rest=${case#*:}
    train=${rest%%:*} steps=${rest#*:}
    built "$sample" || { fail "$sample" "does not build"; continue; }
    cp "$program.c" "$scratch" && cp "$program" "$scratch/$sample.first"
    printf '%s\0' "$sample" "$train" "$steps" first - ""
    builders | while IFS='|' read -r name rounds build run; do
        [ "$WIDE" != 0 ] || in_short_form "$sample" "$name" || continue
        have "${build%% *}" && { [ -z "$run" ] || have "$run"; } || continue
        printf '%s\0' "$sample" "$train" "$steps" "$name" "$build" "$run"
    done
done | xargs -0 -n 6 -P "$jobs" sh "$scratch/one.sh"

for sample in diabetes digits residual chars; do
    right=$scratch/$sample.first.losses
    $CC $EMITTED_FLAGS -dM -E - </dev/null 2>/dev/null | grep -q '__FP_FAST_FMAF\|__FMA__' &&
        cp "$scratch/$sample.first.weights" "$scratch/$sample.once"
    builders >"$scratch/builders"
    while IFS='|' read -r name rounds build run; do
        [ "$WIDE" != 0 ] || in_short_form "$sample" "$name" || continue
        out=$scratch/$sample.$name
        if ! have "${build%% *}"; then
            skip "$sample with $name" "${build%% *} is not installed"
        elif [ -n "$run" ] && ! have "$run"; then
            skip "$sample with $name" "$run is not installed"
        elif [ -f "$out.bad" ]; then
            fail "$sample with $name: $(cat "$out.bad")" "$(head -n 3 "$out.log")"
        else
            worst=$(paste "$right" "$out.losses" | awk '
                NF != 2 { print "count"; exit }
                { d = $1 - $2; d = d < 0 ? -d : d; s = $1 < 0 ? -$1 : $1; r = d / (s > 1e-30 ? s : 1e-30) }
                r > worst { worst = r }
                END { if (NF == 2) print worst + 0 }')
            awk -v w="$worst" 'BEGIN { exit !(w != "" && w != "count" && w <= 1e-5) }' && pass ||
                fail "$sample with $name" "losses differ by $worst"
            [ -f "$scratch/$sample.$rounds" ] || cp "$out.weights" "$scratch/$sample.$rounds"
            cmp -s "$scratch/$sample.$rounds" "$out.weights" && pass ||
                fail "$sample with $name" "other weights than the builds before it"
            echo "$sample $name $worst" >>"$scratch/table"
        fi
    done <"$scratch/builders"
done
awk '{ if ($3 > worst[$2]) worst[$2] = $3; if (!($2 in n)) order[++k] = $2; n[$2]++ }
    END { for (i = 1; i <= k; i++) printf "    %-18s %d samples, worst difference %g\n", order[i], n[order[i]], worst[order[i]] }' "$scratch/table"
summary compilers
