#!/bin/sh
# Data sets as a person uses them: parts of the rows, normalised fields, rows without a file, and files
# that are larger than the memory that the run may take (LONG=1: 2 GiB).
set -u
. tests/lib.sh

cd_run() { (cd "$scratch/run" && "$program" "$@"); }
mkdir -p "$scratch/run"

# Files above 16 MiB, and with LONG=1 above what is usual, are read as they are needed.
mib=64 limit=-DMD_FILE_IN_MEMORY=16777216
[ "${LONG:-0}" = 1 ] && mib=2048 limit=
program=$scratch/data
check "emit" "$MDLC" tests/suites/data.mdl -o "$program.c"
# shellcheck disable=SC2086
check "build" quickly "$program.c" "$program" $limit
[ -x "$program" ] || { summary data; exit 1; }

# Rows 0 .. 99 hold their own number; a file of test rows holds 1000 and 2000.
awk 'BEGIN { for (i = 0; i < 100; i++) print i }' >"$scratch/run/rows.csv"
printf '1000\n2000\n' >"$scratch/run/test.csv"

check "train" cd_run fit --steps 1 --save w.st

# What a part must be, by the words of language.md: part_sums K_TEST K_HELD gives "ROWS SUM" of train,
# validation and test.
part_sums() {
    awk -v t="$1" -v h="$2" 'BEGIN {
        for (i = 0; i < 100; i++) {
            part = "train"
            if (t > 0 && i % t == t - 1) part = "test"
            else if (h > 0 && j++ % h == h - 1) part = "validation"
            rows[part]++; sum[part] += i
        }
        print "train", rows["train"], sum["train"]
        print "validation", rows["validation"], sum["validation"]
        print "test", rows["test"] + 0, sum["test"] + 0 }'
}
parts_of() { # TRAIN [OPTION...]: what the program says
    for part in train validation test; do
        line=$(cd_run eval "$@" --load w.st --part "$part" --log json 2>/dev/null | grep '"event":"eval"') || continue
        case $line in *"\"part\":\"$part\""*) ;; *) echo "another part" ;; esac
        echo "$part $(number "$line" rows) $(number "$line" total)"
    done
}

part_sums 3 4 >"$scratch/want"
parts_of fit >"$scratch/have"
same "parts by rules" "$scratch/want" "$scratch/have"

{ part_sums 0 5 | grep -v test; echo test 2 3000; } >"$scratch/want"
parts_of fit_files >"$scratch/have"
same "validation by a rule, test rows from a file" "$scratch/want" "$scratch/have"

# A file of its own takes the place of a rule; an empty place is no file, and in front the model's stays.
{ part_sums 3 0 | grep train; echo validation 2 3000; part_sums 3 0 | grep test; } >"$scratch/want"
parts_of fit --data f=rows.csv,test.csv >"$scratch/have"
same "a file in place of a rule" "$scratch/want" "$scratch/have"
parts_of fit --data f=,test.csv >"$scratch/have"
same "beside the model's rows to train on" "$scratch/want" "$scratch/have"
{ part_sums 0 4 | grep -v test; echo test 2 3000; } >"$scratch/want"
parts_of fit --data f=rows.csv,,test.csv >"$scratch/have"
same "test rows by --data" "$scratch/want" "$scratch/have"
part_sums 0 5 | grep -v test >"$scratch/want"
parts_of fit_files --data g=rows.csv >"$scratch/have"
same "no test rows by --data" "$scratch/want" "$scratch/have"

# Without --part the held-out rows are meant, in `eval` and at the end of a train, which looks at no
# test row.
cd_run eval fit --load w.st --log json | grep '"event":"eval"' >"$scratch/eval"
cd_run fit --log json | grep '"event":"eval"' >>"$scratch/eval"
[ "$(grep -c '"part":"validation","rows":16' "$scratch/eval")" = 2 ] && pass || fail "the usual part is validation"

refused() { # NAME STATUS TEXT OPTION...
    name=$1 want=$2 words=$3
    shift 3
    cd_run "$@" >"$scratch/out" 2>"$scratch/err"
    rc=$?
    [ $rc = "$want" ] && grep -q -e "$words" "$scratch/err" && pass ||
        fail "$name" "status $rc: $(head -n 1 "$scratch/err")"
}
refused "a part that is none" 2 "takes train|validation|test, not 'tset'" eval fit --part tset
refused "a part without rows" 2 "data set 'files' has no such rows" eval fit_files --load w.st --data g=rows.csv --part test
refused "a part in a train" 2 "makes no sense here" fit --part test
printf '1\n2\n' >"$scratch/run/few.csv"
refused "a rule that gives no test row" 1 "2 rows; 'holdout test = every(3)' of data set 'rows'" \
    eval fit --load w.st --data f=few.csv

# ---- normalised fields --------------------------------------------------------------------------

# Columns of very different sizes, exact in f32; the second never changes. table SEED >FILE
table() {
    awk -v s="$1" 'BEGIN { srand(s); for (i = 0; i < 60; i++)
        printf "%.12g,7,%.12g,%d\n", 1e3 + int(64 * rand()) / 64, int(1024 * (rand() - 0.5)) / 1048576, i * i }'
}
table 1 >"$scratch/run/table.csv"
table 2 >"$scratch/run/table2.csv"
# The constants by two passes in double over the rows that are left to train on.
constants() { # FILE
    awk -F, '{ i = NR - 1 }
        i % 3 == 2 || j++ % 4 == 3 { next }
        { n++; for (k = 1; k <= 4; k++) { x[n, k] = $k; sum[k] += $k / 2
            if (n == 1 || $k < low[k]) low[k] = $k
            if (n == 1 || $k > top[k]) top[k] = $k } }
        END {
            for (k = 1; k <= 3; k++) printf "%.9g ", sum[k] / n
            for (k = 1; k <= 3; k++) {
                v = 0
                for (i = 1; i <= n; i++) v += (x[i, k] / 2 - sum[k] / n) ^ 2
                printf "%.9g ", (v > 0 ? sqrt(v / n) : 1)
            }
            for (k = 1; k <= 4; k++) printf "%.9g ", low[k]
            for (k = 1; k <= 4; k++) printf "%.9g ", (top[k] > low[k] ? top[k] - low[k] : 1)
            print "" }' "$1"
}
of_program() { # LOADED: the constants in a weights file, and two rows normalised by them
    rm -f "$scratch/run/in.npy"
    for c in centre spread low range; do
        cd_run normal --load "$1" --in z=rows.npy --log none --out $c=$c.npy --out n=n.npy
        od -An -v -t f4 -j 128 "$scratch/run/$c.npy" | tr '\n' ' '
    done
    echo
}
# near NAME WANT HAVE TOLERANCE: two lists of numbers
near() {
    printf '%s\n%s\n' "$2" "$3" | awk -v t="$4" '
        NR == 1 { n = split($0, a) }
        NR == 2 { m = split($0, b); bad = n != m || n == 0
            for (i = 1; i <= n; i++) { d = a[i] - b[i]; if (d < 0) d = -d
                s = a[i] < 0 ? -a[i] : a[i]; if (d > t * (s > 1e-4 ? s : 1e-4)) bad = 1 } }
        END { exit bad || NR != 2 }' && pass || fail "$1" "want $2, have $3"
}
{ printf '\223NUMPY\001\000\166\000'
  printf '%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }"
  printf '\000\000\000\000\001\000\000\000\002\000\000\000\003\000\000\000\004\000\000\000\005\000\000\000'
} >"$scratch/run/rows.npy"

check "train on normalised rows" cd_run fit_scaled --steps 1 --save scaled.st
near "constants of the rows to train on" "$(constants "$scratch/run/table.csv")" "$(of_program scaled.st)" 2e-6
near "rows of a prediction" "$(od -An -v -t f4 -j 128 "$scratch/run/n.npy" | tr '\n' ' ')" \
    "$(of_program scaled.st | awk '{ for (i = 0; i < 6; i++) printf "%.9g ", (i - $(1 + i % 3)) / $(4 + i % 3) }')" 1e-5
line=$(cd_run eval fit_scaled --load scaled.st --part train --log json | grep eval)
rows=$(number "$line" rows)
near "normalised rows have mean 0 and deviation 1" "0 0 1 0 1" "$(printf '%s' "$line" | awk -v n="$rows" \
    -v z0="$(number "$line" z0)" -v z1="$(number "$line" z1)" -v zz="$(number "$line" zz)" \
    -v least="$(number "$line" least)" -v most="$(number "$line" most)" '
    { r = sqrt(z0 * z0) / n; print (r < 0.1 ? 0 : r), z1, (zz / n / 2 > 0.98 && zz / n / 2 < 1.02), 0, \
      (least > 0 && least < n && most > 0 && most < n) }')" 1e-6

# An evaluation of loaded weights normalises by what the training saw, not by the rows it is given;
# a resumed run goes on with the same numbers; weights without constants get those of the rows.
before=$(of_program scaled.st)
cd_run fit_scaled --steps 2 --checkpoint a.ck --log none
cd_run fit_scaled --steps 4 --resume a.ck --data h=table2.csv --save b.st --log none
[ "$(of_program b.st)" = "$before" ] && pass || fail "a resumed run has other constants"
cd_run fit_scaled --steps 1 --load scaled.st --data h=table2.csv --save b.st --log none
[ "$(of_program b.st)" = "$before" ] && pass || fail "a run from weights has other constants"
cd_run fit_scaled --steps 1 --load scaled.st --only w --data h=table2.csv --save b.st --log none
near "--only the model: constants anew" "$(constants "$scratch/run/table2.csv")" "$(of_program b.st)" 2e-6
cd_run fit_scaled --steps 1 --load w.st --save b.st --log none
[ "$(of_program b.st)" = "$before" ] && pass || fail "weights without constants"

# ---- rows without a file ------------------------------------------------------------------------

made() { cd_run "$@" --log json 2>/dev/null | grep "\"event\":\"eval\""; }
cd_run fit_made --steps 1 --save made.st --log none
made eval fit_made --load made.st --part train >"$scratch/made"
made eval fit_made --load made.st --part train --seed 7 --threads 2 >"$scratch/again"
same "the rows depend on no seed of the run and on no thread" "$scratch/made" "$scratch/again"
# 15,000 rows: sums by the row exactly, moments within five deviations.
line=$(cat "$scratch/made")
for one in "rows 15000 0" "order $((20000 * 19999 / 2 - 5000 * (4 * 4999 + 6) / 2)) 100" "mean_v 2 0.012" \
    "square_v 4.25 0.05" "mean_c 1.5 0.046" "cross 4 0.062" "mean_s 0 1e-5" "square_s 1 1e-5"; do
    set -- $one
    awk -v a="$(number "$line" "$1")" -v b="$2" -v t="$3" 'BEGIN { d = a - b; exit !(a != "" && d <= t && -d <= t) }' &&
        pass || fail "rows without a file: $1" "$(number "$line" "$1"), expected $2 within $3"
done
prints=$(cd_run fit_made --steps 40 --log json --log-every 1 | sed -n 's/.*"print":\([^,}]*\).*/\1/p' | sort -u | wc -l)
[ "$prints" -ge 40 ] && pass || fail "rows without a file: $prints different batches of 40"
memory=$(cd_run fit_made --steps 1 --log json | grep '"event":"memory"')
[ "$(number "$memory" data)" -le 65536 ] && pass || fail "rows without a file take $(number "$memory" data) bytes"
refused "a path for rows without a file" 2 "has no such name" fit_made --data r=rows.csv
refused "--set where the source names nothing" 2 "the source says which" fit_made --set lr=1

# ---- files larger than memory -------------------------------------------------------------------

bytes=$((mib * 1048576))
# Tokens below 1000, all over the file; of 2 GiB in three places.
LC_ALL=C awk 'BEGIN { srand(3); for (i = 0; i < 32768; i++) printf "%c%c", 1 + int(126 * rand()), 1 + int(2 * rand()) }' \
    >"$scratch/tokens"
while [ "$(wc -c <"$scratch/tokens")" -lt 1048576 ]; do
    cat "$scratch/tokens" "$scratch/tokens" >"$scratch/twice" && mv "$scratch/twice" "$scratch/tokens"
done
truncate -s $bytes "$scratch/run/big.u16"
at=0
while [ $at -lt $mib ]; do
    dd if="$scratch/tokens" of="$scratch/run/big.u16" bs=1048576 seek=$at conv=notrunc 2>/dev/null
    at=$((at + (mib > 64 ? 1023 : 1)))
done
# Rows of 64 floats: zeros but for row 4, which is held out, and the last one, which is not.
rows=$((mib * 4096))
{ printf '\223NUMPY\001\000\166\000'
  printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($rows, 64), }"; } >"$scratch/run/wide.npy"
truncate -s $((128 + bytes)) "$scratch/run/wide.npy"
floats() { # BYTES_OF_ONE ROW
    i=0
    while [ $i -lt 64 ]; do printf "$1"; i=$((i + 1)); done |
        dd of="$scratch/run/wide.npy" bs=128 seek=$((1 + 2 * $2)) conv=notrunc 2>/dev/null
}
floats '\000\000\200\100' 4
floats '\000\000\000\100' $((rows - 1))

# flat NAME LOG: what the run took stays within what it printed, whatever the file holds
flat() {
    memory=$(grep '"event":"memory"' "$2") end=$(grep '"event":"end"' "$2")
    [ "$(number "$memory" files)" -ge $bytes ] && pass || fail "$1: the table has no line for the file"
    [ "$(number "$memory" data)" -le 1048576 ] && pass || fail "$1: data takes $(number "$memory" data) bytes"
    [ "$(number "$end" peak_over_process_bytes)" -le "$(number "$end" bound_bytes)" ] && pass ||
        fail "$1: peak $(number "$end" peak_over_process_bytes) over the bound $(number "$end" bound_bytes)"
    [ "$(number "$end" peak_rss_bytes)" -le 16777216 ] && pass ||
        fail "$1: $(number "$end" peak_rss_bytes) bytes resident"
    [ "$(number "$end" resident_growth_pages)" = 0 ] && pass || fail "$1: resident memory grew"
}
cd_run fit_tokens --steps 300 --log-every 1 --log json >"$scratch/tokens.log" 2>"$scratch/err" && pass ||
    fail "tokens of a large file" "$(head -n 1 "$scratch/err")"
flat "tokens of a large file" "$scratch/tokens.log"
cd_run fit_wide --steps 300 --log json --save wide.st >"$scratch/wide.log" 2>"$scratch/err" && pass ||
    fail "rows of a large file" "$(head -n 1 "$scratch/err")"
flat "rows of a large file" "$scratch/wide.log"
for one in "validation 128" "train 64"; do
    set -- $one
    line=$(cd_run eval fit_wide --load wide.st --part $1 --log json | grep '"event":"eval"')
    [ "$(number "$line" told)" = "$2" ] && pass || fail "rows of a large file: $1" "$line"
done
cd_run fit_files --steps 3 --log json >"$scratch/held.log"
(failed=0 && flat planted "$scratch/held.log" >/dev/null && [ $failed -eq 0 ]) &&
    fail "a run that holds its file in memory passes for one that does not" || pass
steps() { grep '"event":"step"' "$1" >"$1.steps"; }
steps "$scratch/tokens.log"
[ "$(grep -c '"loss":0,.*"told":[1-9]' "$scratch/tokens.log.steps")" -ge $((mib > 64 ? 1 : 300)) ] && pass ||
    fail "targets are the tokens behind" "$(head -n 1 "$scratch/tokens.log.steps")"

# A file that another process cuts short while it is in use: a message, or nothing from memory.
cut_short() { # STATUS STEPS
    : >"$scratch/cut.log" # the program may not have come to empty it when it is looked at
    (cd "$scratch/run" && exec timeout 100 "$program" fit_tokens --steps "$2" --log-every 1000 --log json) >"$scratch/cut.log" 2>"$scratch/err" &
    run=$!
    until grep -q '"event":"step"' "$scratch/cut.log" 2>/dev/null || ! kill -0 $run 2>/dev/null; do sleep 0.02; done
    truncate -s 1000 "$scratch/run/big.u16"
    wait $run
    rc=$?
    [ $rc = "$1" ] && pass || fail "a file that is cut short" "status $rc: $(head -n 1 "$scratch/err")"
}
cut_short 1 2000000000
grep -q "cannot read 'big.u16' at byte [0-9]*: it is shorter than it was when it was opened" "$scratch/err" && pass ||
    fail "a file that is cut short" "$(head -n 1 "$scratch/err")"
truncate -s 8388608 "$scratch/run/big.u16"
cut_short 0 100000

# Streams: row b of a batch goes on where row b of the batch before ended, also from micro-batch to micro-batch and
# behind a resume; 104 windows of the 730 tokens are 20 batches of 5 rows, each row with 140 tokens to itself.
awk 'BEGIN { for (i = 0; i < 730; i++) printf "\\%03o\\%03o", i % 256, i / 256 }' >"$scratch/octal"
# shellcheck disable=SC2059
printf "$(cat "$scratch/octal")" >"$scratch/count.u16"
head -c 200 "$scratch/count.u16" >"$scratch/held.u16"
for micro in 1 2; do
    "$MDLC" -D MICRO=$micro tests/suites/lanes.mdl -o "$scratch/lanes.c" && quickly "$scratch/lanes.c" "$scratch/lanes" ||
        { fail "streams, $micro micro-batches" "does not build"; continue; }
    lanes() { "$scratch/lanes" --data f="$scratch/count.u16,$scratch/held.u16" --threads 1 "$@" 2>"$scratch/err"; }
    lanes --log-every 1 --log json --checkpoint "$scratch/lanes.whole" >"$scratch/lanes.log" || fail streams "$(cat "$scratch/err")"
    sed -n 's/.*"event":"step".*"gap":\([-0-9.e]*\),"ahead":\([-0-9.e]*\),"first":\([-0-9.e]*\).*/\1 \2 \3/p' "$scratch/lanes.log" |
        awk -v m=$micro '
            { start = (NR - 1) % (20 / m) == 0
              if ((start ? $1 == 0 : $1 != 0) || $2 != 0 || $3 != 283 + (m == 2 ? 3.5 : 0) + 7 * m * ((NR - 1) % (20 / m))) bad++ }
            END { exit bad > 0 || NR != 40 / m }' && pass || fail "streams, $micro micro-batches" "$(grep -c step "$scratch/lanes.log") steps: $(head -n 4 "$scratch/lanes.log")"
    lanes --log none --steps 7 --checkpoint "$scratch/lanes.part" && lanes --log none --resume "$scratch/lanes.part" --checkpoint "$scratch/lanes.part"
    same "streams resumed, $micro micro-batches" "$scratch/lanes.whole" "$scratch/lanes.part"
done
# As many rows as fit for every field, whichever is declared last: the first declared one needs a token more, or goes
# further from row to row. A range is checked in rows, not between them.
printf '%s' "$(awk 'BEGIN { for (i = 1; i <= 50; i++) printf "%c", 64 + i }')" >"$scratch/letters.txt"
fields() { # NAME ROWS FIELDS
    cat >"$scratch/fields.mdl" <<END
use nn;
dim B = 1, T = 5;
dataset d { file f = "letters.txt"; $3 shuffle false; }
model net(x: u8[B, T] in 0..256) -> [B, T, 4] { return x |> e: embedding(256, 4); }
train fit of net on d[B] {
    loss mean(net(x)^2);
    last[j] = sum[b] f32(y[b, j]);
    metric least = min[j] last[j];
    optimizer sgd(lr = 0.0); epochs 1;
}
END
    "$MDLC" "$scratch/fields.mdl" -o "$scratch/fields.c" && quickly "$scratch/fields.c" "$scratch/fields" ||
        { fail "rows that fit: $1" "does not build"; return; }
    "$scratch/fields" --data f="$scratch/letters.txt" --log json --log-every 1 --threads 1 >"$scratch/fields.log" 2>"$scratch/err"
    got=$(grep -c '"event":"step"' "$scratch/fields.log") least=$(sed -n 's/.*"least":\([0-9]*\).*/\1/p' "$scratch/fields.log" | sort -n | head -n 1)
    [ "$got" = "$2" ] && [ "${least:-0}" -ge 65 ] && pass || fail "rows that fit: $1" "$got rows, the least letter is ${least:-none} $(head -n 1 "$scratch/err")"
}
fields "the later word first" 9 'y: u8[T] in 65..115 = f.window(T, offset = 1); x: u8[T] in 0..256 = f.window(T);'
fields "the later word last" 9 'x: u8[T] in 0..256 = f.window(T); y: u8[T] in 65..115 = f.window(T, offset = 1);'
fields "streams" 9 'y: u8[T] in 0..256 = f.stream(T, offset = 1); x: u8[T] in 0..256 = f.stream(T);'
fields "two strides" 10 'x: u8[T] in 0..256 = f.window(T); y: u8[T] in 0..256 = f.window(T, stride = 1);'
fields "windows and records" 10 'x: u8[T] in 0..256 = f.window(T); y: u8[1] in 0..256 = f;'
fields "records and windows" 10 'y: u8[1] in 0..256 = f; x: u8[T] in 0..256 = f.window(T);'
printf '%s' "$(awk 'BEGIN { for (i = 1; i <= 50; i++) printf "%c", i % 7 == 4 ? 33 : 64 + i }')" >"$scratch/letters.txt"
fields "gaps that no row reads" 8 'x: u8[T] in 0..256 = f.window(T); y: u8[1] in 65..115 = f.window(1, stride = 7);'

# A language model whose state goes on from batch to batch (tests/unit/programs), on text that says the next token.
"$MDLC" -D B=4 -D T=5 -D V=50 -D H=16 -D L=1 --prefix lm tests/unit/programs/07_lstm_lm.mdl -o "$scratch/lm.c" 2>/dev/null &&
    quickly "$scratch/lm.c" "$scratch/lm" || fail "language model" "does not build"
awk 'BEGIN { for (i = 0; i < 1200; i++) printf "\\%03o\\000", (i * 7 + int(i / 9)) % 50 }' >"$scratch/octal"
# shellcheck disable=SC2059
printf "$(cat "$scratch/octal")" >"$scratch/ptb.u16"
"$scratch/lm" --data f="$scratch/ptb.u16" --epochs 30 --log json --threads 1 >"$scratch/lm.log" 2>"$scratch/err"
sed -n 's/.*"event":"end".*"loss":\([0-9.]*\),.*/\1/p' "$scratch/lm.log" | awk '{ n++; if ($1 < 3.0) good++ } END { exit !(n == 1 && good == 1) }' && pass || fail "language model" "$(tail -n 1 "$scratch/lm.log" | cut -c 1-200) $(cat "$scratch/err")"

# A model that names no held-out rows has no function for them: what asks for them is refused, not left out.
grep -v 'metric' tests/suites/lanes.mdl | sed 's/"count.u16", "held.u16"/"count.u16"/' >"$scratch/blind.mdl"
"$MDLC" "$scratch/blind.mdl" -o "$scratch/blind.c" && quickly "$scratch/blind.c" "$scratch/blind" || fail "no held-out rows" "does not build"
blind() { "$scratch/blind" --data f="$scratch/count.u16$1" --steps 1 --log none $2 2>"$scratch/err"; }
blind "" "" && pass || fail "no held-out rows" "$(cat "$scratch/err")"
exits "rows that nothing evaluates" 2 "evaluates no validation rows" blind ",$scratch/held.u16" ""
exits "test rows that nothing evaluates" 2 "evaluates no test rows" blind ",,$scratch/held.u16" ""
exits "evaluations of no rows" 0 "warning: --eval-every: no train of this run has held-out rows" blind "" "--eval-every 1"

# The tables of a dumped graph are those of its source.
tables() { sed -n '/^static const md_file/,/^static const md_entry/p' "$1" | grep -v '^ *//*'; }
"$MDLC" --dump=build tests/suites/data.mdl >"$scratch/dumped.mdl" &&
    "$MDLC" --prefix data "$scratch/dumped.mdl" -o "$scratch/dumped.c" || fail "a dumped graph"
tables "$program.c" >"$scratch/want"
tables "$scratch/dumped.c" >"$scratch/have"
same "data sets of a dumped graph" "$scratch/want" "$scratch/have"
# Records have the shape of the field, axes of 1 aside, or one of both is flat; also those that are computed with.
for row in f 'f * 2'; do
    cat >"$scratch/shapes.mdl" <<END
use nn;
dataset d { file f = "shapes.npy"; x: f32[4, 4] = $row; }
model net(x: [b, 4, 4]) -> [b] { param w: f32 = 1; y[i] = w * sum[a, c] x[i, a, c]; return y; }
train fit of net on d[2] { loss mean(net(x)^2); optimizer sgd(lr = 0.001); steps 2; }
END
    program=$scratch/shapes
    "$MDLC" "$program.mdl" -o "$program.c" && quickly "$program.c" "$program"
    for shape in '4, 4:0' '16:0' '1, 4, 4:0' '4, 1, 4:0' '8, 2:1' '2, 8:1' '2, 2, 4:1'; do
        { printf '\223NUMPY\001\000\166\000'
          printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (20, ${shape%:*}), }"; } >"$scratch/run/shapes.npy"
        truncate -s $((128 + 1280)) "$scratch/run/shapes.npy"
        cd_run fit --log none >"$scratch/out" 2>&1
        [ $? -eq "${shape#*:}" ] && { [ "${shape#*:}" = 0 ] || grep -q "records of shape \[${shape%:*}\]; field 'x' of data set 'd' takes \[4, 4\]" "$scratch/out"; } &&
            pass || fail "records of ${shape%:*}, $row" "$(cat "$scratch/out")"
    done
done
summary data
