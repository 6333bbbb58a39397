#!/bin/sh
# `mdlc test`: derivatives of samples and of the library against finite differences, and the values
# of the library against those of PyTorch. One case a test block.
set -u
. tests/lib.sh

for file in samples/*.mdl tests/library/*.mdl; do
    blocks=$(grep -c '^test "' "$file")
    # Library values are compared in double, so the f64 build is what is tested there.
    case $file in tests/library/*) precision=f64 ;; *) precision=f32 ;; esac
    if "$MDLC" test --precision=$precision "$file" >"$scratch/log" 2>&1; then
        [ "$blocks" -gt 0 ] && passed=$((passed + blocks)) || fail "$file" "has no test block"
    else
        fail "$file"
        head -n 20 "$scratch/log" | sed 's/^/    /'
    fi
done
# Biases in front of normalisations over ten rows, whose tenth is rounded: gradients of next to nothing.
check "a tenth" "$MDLC" test tests/programs/deep.mdl
check "a sixth, behind another norm" "$MDLC" test tests/suites/two_norms.mdl
# A part of the library names nothing that it does not declare or use.
for part in lang/nn/*.mdl; do
    check "$part alone" "$MDLC" check "$part"
done
summary gradients
