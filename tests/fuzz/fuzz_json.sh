# Seeds of fuzz_json, into a folder.
exec sh tests/fuzz/readers.sh json "$1"
