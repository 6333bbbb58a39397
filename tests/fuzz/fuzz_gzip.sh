# Seeds of fuzz_gzip, into a folder.
exec sh tests/fuzz/readers.sh gzip "$1"
