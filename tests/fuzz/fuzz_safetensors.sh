# Seeds of fuzz_safetensors, into a folder.
exec sh tests/fuzz/readers.sh safetensors "$1"
