# Seeds of fuzz_npy, into a folder.
exec sh tests/fuzz/readers.sh npy "$1"
