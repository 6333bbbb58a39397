#!/bin/sh
# readers.sh TARGET FOLDER: the inputs that fuzzing of a reader of files begins with, one file each:
# the files of tests/tools/hostile.c, valid and damaged.
set -u
: "${BUILD:=build}"
mkdir -p "$2" && exec "$BUILD/tests/tools/hostile" --files "$1" "$2"
