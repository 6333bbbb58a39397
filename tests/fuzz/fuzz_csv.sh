# Seeds of fuzz_csv, into a folder.
exec sh tests/fuzz/readers.sh csv "$1"
