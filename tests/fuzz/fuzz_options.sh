# Seeds of fuzz_options, into a folder.
exec sh tests/fuzz/readers.sh options "$1"
