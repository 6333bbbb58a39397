#!/bin/sh
# The same losses from every compiler and machine: each sample is built by each C compiler that is here,
# at several levels, as C++17, and for other processors (run under qemu-user), and trained for a few
# steps. Every printed loss must agree with that of the build that the header comment asks for within
# 1e-5. The short form, in the tests, builds digits and diabetes with most of them and the other samples
# with one; WIDE=1 builds all.
set -u
. tests/lib.sh
: "${WIDE:=0}"
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)

# NAME | COMMAND with options | what runs the program
builders() {
    echo "gcc-O2|gcc -O2 -fopenmp|"
    echo "gcc-O0|gcc -O0|"
    echo "gcc-O2-no-vectors|gcc -O2 -DMD_VBYTES=0|"
    # Vectors of 32 bytes, where the machine has them: other register tiles than those of 16 and 64.
    if grep -qw avx2 /proc/cpuinfo 2>/dev/null && grep -qw fma /proc/cpuinfo; then
        echo "gcc-O1-avx2|gcc -O1 -mavx2 -mfma|"
    fi
    echo "clang-O0|clang -O0|"
    echo "clang-O2|clang -O2|"
    echo "clang-O3-native|clang -O3 -march=native -ffp-contract=fast -fno-math-errno|"
    echo "g++-17|g++ -x c++ -std=c++17 -O1|"
    echo "clang++-17|clang++ -x c++ -std=c++17 -O1|"
    echo "tcc|tcc|"
    echo "aarch64|aarch64-linux-gnu-gcc -O1 -static|qemu-aarch64"
    echo "arm32|arm-linux-gnueabihf-gcc -O1 -static|qemu-arm"
}
in_short_form() { # SAMPLE BUILDER
    case $1:$2 in
    *:tcc | diabetes:gcc-O2 | diabetes:gcc-O2-no-vectors | diabetes:clang++-17) return 0 ;;
    digits:gcc-O0 | digits:gcc-O1-avx2 | digits:clang-O3-native | diabetes:g++-17 | digits:aarch64 | diabetes:arm32) return 0 ;;
    esac
    return 1
}

# One build and run; leaves the losses, or the reason why there are none.
cat >"$scratch/one.sh" <<'END'
sample=$1 train=$2 steps=$3 name=$4 build=$5 run=$6
out=$scratch/$sample.$name
[ -x "$out" ] || $build "$scratch/$sample.c" -lm -o "$out" >"$out.log" 2>&1 || { echo "build" >"$out.bad"; exit; }
# The programs find the sample's data from the root of the tree.
timeout 300 $run "$out" $train --steps "$steps" --seed 1 --log json --log-every 1 >"$out.json" 2>"$out.log" ||
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
    builders | while IFS='|' read -r name build run; do
        [ "$WIDE" != 0 ] || in_short_form "$sample" "$name" || continue
        have "${build%% *}" && { [ -z "$run" ] || have "$run"; } || continue
        printf '%s\0' "$sample" "$train" "$steps" "$name" "$build" "$run"
    done
done | xargs -0 -n 6 -P "$jobs" sh "$scratch/one.sh"

for sample in diabetes digits residual chars; do
    right=$scratch/$sample.first.losses
    builders >"$scratch/builders"
    while IFS='|' read -r name build run; do
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
            echo "$sample $name $worst" >>"$scratch/table"
        fi
    done <"$scratch/builders"
done
awk '{ if ($3 > worst[$2]) worst[$2] = $3; if (!($2 in n)) order[++k] = $2; n[$2]++ }
    END { for (i = 1; i <= k; i++) printf "    %-18s %d samples, worst difference %g\n", order[i], n[order[i]], worst[order[i]] }' "$scratch/table"
summary compilers
