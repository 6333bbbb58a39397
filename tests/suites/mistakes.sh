#!/bin/sh
# What goes wrong in the first hour: wrong command lines, missing and damaged data, wrong weights, a
# full disk. Each ends with its documented status, before step 0 where it can, and one clear message.
set -u
. tests/lib.sh

# status NAME EXPECTED COMMAND...: the exit status, and something on standard error.
status() {
    status_name=$1 status_want=$2
    shift 2
    "$@" >"$scratch/out" 2>"$scratch/err"
    status_rc=$?
    if [ $status_rc -ne "$status_want" ]; then
        fail "$status_name" "exit status $status_rc, expected $status_want: $(head -n 1 "$scratch/err")"
    elif [ ! -s "$scratch/err" ]; then
        fail "$status_name" "no message"
    else
        pass
    fi
}
says() { # NAME PATTERN: of the last message
    grep -q "$2" "$scratch/err" && pass || fail "$1" "no '$2' in: $(head -n 1 "$scratch/err")"
}

# The compiler.
status "no file" 2 "$MDLC"
status "unknown option" 2 "$MDLC" --frobnicate samples/digits.mdl
status "missing model" 4 "$MDLC" samples/nothing.mdl -o "$scratch/x.c"
status "folder that is not there" 4 "$MDLC" samples/digits.mdl -o "$scratch/none/x.c"
status "budget" 3 "$MDLC" --budget=100kB samples/digits.mdl -o "$scratch/x.c"
says "budget: its id" E0601
status "prefix" 2 "$MDLC" --prefix=2fast samples/digits.mdl -o "$scratch/x.c"
says "prefix: its id" E0701
status "prefix that is a word of C" 2 "$MDLC" --prefix=int samples/digits.mdl -o "$scratch/x.c"
says "prefix that is a word of C: its id" E0701
for word in nan fma log2f double_t EOF MD; do
    status "prefix $word, of C's headers" 2 "$MDLC" --prefix=$word samples/digits.mdl -o "$scratch/x.c"
done
status "prefix whose codes are macros" 2 "$MDLC" --prefix=r samples/digits.mdl -o "$scratch/x.c"
status "unknown -D" 1 "$MDLC" -D Q=3 samples/digits.mdl -o "$scratch/x.c"
printf 'model net(x: [4, 8]) -> [4, 2] {\n    return head: linear(y, out = 2);\n}\n' >"$scratch/bad.mdl"
status "unknown name" 1 "$MDLC" "$scratch/bad.mdl" -o "$scratch/x.c"
if [ -w /dev/full ]; then
    status "full disk for the output" 4 "$MDLC" samples/digits.mdl -o /dev/full
else
    skip "full disk for the output" "no /dev/full"
fi

# The emitted program.
built digits || { fail digits "does not build"; summary mistakes; exit 1; }
run=$program
status "unknown option of the program" 2 "$run" --frobnicate
status "missing data" 1 "$run" --data digits=none.csv
says "missing data: names the file" none.csv
head -n 700 samples/data/digits.csv >"$scratch/cut.csv"
printf '1,2,3\n' >>"$scratch/cut.csv"
status "short row" 1 "$run" --steps 1 --data "digits=$scratch/cut.csv"
says "short row: names the row" 701
sed '5s/,[0-9]*$/,10/' samples/data/digits.csv >"$scratch/range.csv"
status "label out of range" 1 "$run" --steps 1 --data "digits=$scratch/range.csv"
says "label out of range: names the row" 5
sed '7s/^[0-9]*,/abc,/' samples/data/digits.csv >"$scratch/word.csv"
status "a word for a number" 1 "$run" --steps 1 --data "digits=$scratch/word.csv"
says "a word for a number: names the row" 7
head -n 100 samples/data/digits.csv >"$scratch/few.csv"
status "fewer rows than a batch" 1 "$run" --steps 1 --data "digits=$scratch/few.csv"
head -n 4 samples/data/digits.csv >"$scratch/four.csv"
status "no row to hold out" 1 "$run" --steps 1 --data "digits=$scratch/four.csv"
says "no row to hold out: names the rule" "4 rows; 'holdout every(5)' of data set 'digits' holds none"

printf 'model net(x: u8[b, 2]) -> [b, 2] { param w: [2] = 1; y[i, j] = f32(x[i, j]) * w[j]; return y; }
dataset d { file f = "d.txt"; x: u8[2] = f.window(2); }
train fit of net on d[2] { loss mean(net(x)^2); optimizer plain(lr = 0.1); steps 1; }
optimizer plain(p: [...], g: [...], lr: real) { p <- p - lr * g; }
' >"$scratch/window.mdl"
if lightly built "$scratch/window.mdl"; then
    status "windows of a table" 1 "$program" --data "d=samples/data/digits.csv"
    says "windows of a table: names what is read" "digits.csv: this program reads .npy, text and raw elements"
    status "a text shorter than a batch" 1 "$program" --data "d=/dev/null"
else
    fail "windows of a table" "does not build"
fi
# A path without an ending may stand for any format, so this program reads tables too.
sed 's/"d.txt"/"d"/' "$scratch/window.mdl" >"$scratch/windows.mdl"
if lightly built "$scratch/windows.mdl"; then
    status "windows of a table that is read" 1 "$program" --data "d=samples/data/digits.csv"
    says "windows of a table that is read: names it" "a table, but field 'x'"
else
    fail "windows of a table that is read" "does not build"
fi

# A program reads the formats that its model names.
for file in rows.npy rows-idx1-ubyte rows.idx rows.csv.gz rows.txt rows.md rows.bin rows.u8 rows.u16 rows.i32 rows; do
    cp samples/data/digits.csv "$scratch/$file"
    status "$file for a table" 1 "$run" --steps 1 --data "digits=$scratch/$file"
    says "$file for a table: names it, what is read and the cure" \
        "$file: this program reads .csv; convert the file, or give the data in the model a path with its ending"
done

status "weights of another model" 1 "$run" --steps 1 --load tests/parity/losses.txt
"$run" --steps 1 --seed 1 --log none --save "$scratch/good.safetensors" >/dev/null 2>&1
head -c 5000 "$scratch/good.safetensors" >"$scratch/cut.safetensors"
status "weights cut short" 1 "$run" --steps 1 --load "$scratch/cut.safetensors"
sed 's/fc1\.weight/fc9.weight/' "$scratch/good.safetensors" >"$scratch/name.safetensors"
status "weights with another name" 1 "$run" --steps 1 --load "$scratch/name.safetensors"
says "weights with another name: names it" 'fc[19].weight'
status "no such folder to save in" 1 "$run" --steps 1 --save "$scratch/none/out.safetensors"

# A save that runs out of room leaves the old file: the limit on file size stands for the full disk.
cp "$scratch/good.safetensors" "$scratch/keep.safetensors"
(
    ulimit -f 20
    trap '' XFSZ
    exec "$run" --steps 2 --seed 5 --log none --save "$scratch/keep.safetensors" >"$scratch/out" 2>"$scratch/err"
)
full_rc=$?
[ $full_rc -eq 1 ] && pass || fail "no room to save" "exit status $full_rc"
cmp -s "$scratch/good.safetensors" "$scratch/keep.safetensors" && pass || fail "no room to save" "the old file is damaged"
summary mistakes
