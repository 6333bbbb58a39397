#!/bin/sh
# --blas=openblas: products go through the library, and the losses are those of the built-in tile but
# for rounding. LONG=1: all samples.
set -u
. tests/lib.sh
: "${LONG:=0}"

printf 'void cblas_sgemm(void);\nint main(void) { cblas_sgemm(); return 0; }\n' >"$scratch/have.c"
if $CC "$scratch/have.c" -lopenblas -o "$scratch/have" 2>/dev/null; then
    "$MDLC" samples/digits.mdl -D drop=0 -o "$scratch/own.c" && quickly "$scratch/own.c" "$scratch/own" &&
        "$MDLC" --blas=openblas -D drop=0 samples/digits.mdl -o "$scratch/library.c" &&
        $CC $EMITTED_FLAGS -O0 "$scratch/library.c" -lopenblas -lm -o "$scratch/library" && pass || fail "digits does not build"
    grep -q 'md_blas_run_f32(&' "$scratch/library.c" && pass || fail "no product goes through the library"
    grep -q 'md_blas_run_f32(&' "$scratch/own.c" && fail "the library is used without being asked for" || pass
    check "strict" "$CC" $STRICT_FLAGS -fsyntax-only "$scratch/library.c"
    for name in own library; do
        OPENBLAS_NUM_THREADS=1 "$scratch/$name" --steps 20 --log json --log-every 1 |
            sed -n 's/.*"step":\([0-9]*\).*"loss":\([^,}]*\).*/\1 \2/p' >"$scratch/$name.log"
    done
    paste -d' ' "$scratch/own.log" "$scratch/library.log" |
        awk '{ e = $2 / $4 - 1; if (e > 1e-4 || e < -1e-4) bad++; n++ } END { exit !(n >= 20 && !bad) }' &&
        pass || fail "losses differ" "$(tail -n 1 "$scratch/own.log") and $(tail -n 1 "$scratch/library.log")"
    # What holds with the built-in products holds with the library's, but for memory of its own.
    for file in samples/*.mdl; do
        name=$(basename "$file" .mdl)
        case $LONG$name in 1* | 0digits | 0residual | 0chars) ;; *) skip "$name with the library" "LONG=1 (make accept) has it"; continue ;; esac
        "$MDLC" --blas=openblas --no-main "$file" -o "$scratch/$name.c" &&
            $CC -O0 -fopenmp -Wvla -Werror -c "$scratch/$name.c" -o "$scratch/$name.o" || { fail "$name" "does not build"; continue; }
        symbols "$name" "$scratch/$name.o" 'cblas_[sd]gemm'
    done
    export OPENBLAS_NUM_THREADS=1
    suite() { # NAME CASES; none: those of the suite
        env LONG=0 FLAGS=--blas=openblas LIBS=-lopenblas CHECKS="ratios mapping frames" CASES="$2" \
            EMITTED_FLAGS="-O1 -march=native -fopenmp" sh "tests/suites/$1.sh" >"$scratch/suite.log"
        grep -v ' passed, ' "$scratch/suite.log"
        counts=$(tail -n 1 "$scratch/suite.log" | tr -dc '0-9 ')
        # shellcheck disable=SC2086
        set -- $counts
        passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    }
    if [ "$LONG" = 1 ]; then
        suite bounds ""
        suite memory ""
    else
        suite bounds "digits: residual:"
        suite memory "digits::200 residual::60"
        skip "memory of diabetes and chars with the library" "LONG=1 (make accept) has it"
    fi
else
    skip "openblas" "the library is not installed"
fi
summary blas
