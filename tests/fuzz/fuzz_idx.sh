# Seeds of fuzz_idx, into a folder.
exec sh tests/fuzz/readers.sh idx "$1"
