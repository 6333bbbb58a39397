# Seeds of fuzz_text, into a folder.
exec sh tests/fuzz/readers.sh text "$1"
