#!/bin/sh
# `mdlc init`: every template compiles without a message, in canonical layout, and trains as it is
# written; tables of all kinds become models that their programs read; damaged tables, unknown columns
# and files that are there already end with one message and nothing written.
#
# The last part makes tables out of odd pieces (SEED=n, COUNT=n): whatever `init` takes, the program of
# the model that it writes must take too.
set -u
. tests/lib.sh
root=$(pwd)
case $MDLC in /*) ;; *) MDLC=$root/$MDLC ;; esac
: "${SEED:=1}" "${COUNT:=30}"
[ "${LONG:-0}" != 1 ] || COUNT=2000
cd "$scratch" || exit 1
ln -s "$root/samples" samples

build="$CC -O1 -march=native"

# sound NAME MODEL: in canonical layout, and compiled without a message.
sound() {
    "$MDLC" fmt "$2" >laid_out 2>&1
    same "$1: layout" "$2" laid_out
    "$MDLC" "$2" -o sound.c >said 2>&1 && [ ! -s said ] && pass || fail "$1: compile" "$(head -n 3 said)"
}
# writes NAME WORD...: init ends well and leaves made.mdl, which is sound.
writes() {
    writes_name=$1
    shift
    rm -f made.mdl
    "$MDLC" init "$@" -o made.mdl >said 2>err || { fail "$writes_name" "$(head -n 3 err)"; return 1; }
    [ ! -s said ] || fail "$writes_name" "says something on standard output"
    sound "$writes_name" made.mdl
}
# trains NAME [OPTION...]: builds and runs made.mdl; the line of its end is in $line.
trains() {
    trains_name=$1
    shift
    # shellcheck disable=SC2086
    if "$MDLC" made.mdl -o made.c && $build made.c -lm -o made 2>said && ./made --log json "$@" >log 2>said; then
        line=$(tail -n 1 log)
        pass
    else
        line=
        fail "$trains_name: train" "$(head -n 3 said)"
    fi
}
# least NAME METRIC VALUE: the metric of $line is at least so much.
least() { number "$line" "$2" | awk -v v="$3" '{ exit !($1 >= v) } END { exit NR != 1 }' && pass || fail "$1" "$2: $line"; }
holds() { grep -qF -- "$2" made.mdl && pass || fail "$1" "not there: $2"; }
notes() { grep -qF -- "$2" err && pass || fail "$1" "not said: $2: $(cat err)"; }

# ---- the samples' data, as the documentation has it ----
"$MDLC" init --data samples/data/diabetes.csv -o d.mdl 2>err || fail "diabetes" "$(cat err)"
sound "diabetes" d.mdl
# shellcheck disable=SC2046
check "diabetes: build" sh -c '"$1" d.mdl -o d.c && $2 $("$1" flags) d.c -o d $("$1" flags --libs)' sh "$MDLC" "$CC"
line=$(./d --log json --seed 1 2>err | tail -n 1)
# Least squares on the same rows reaches 0.447.
least "diabetes: R2 of held-out rows" R2 0.42
writes "digits" --data samples/data/digits.csv && holds "digits: its kind" "K = 10" && notes "digits: constants" "column 1 is 0 in every row"
trains "digits" --seed 1
least "digits: held-out rows that are read right" acc 0.95
(cd "$scratch" && rm -f digits.mdl && "$MDLC" init --data samples/data/digits.csv 2>err) && [ -f digits.mdl ] && pass || fail "the usual name"
writes "chars" --data samples/data/chars.txt && trains "chars" --epochs 1
least "chars: bits of a character" steps 90
number "$line" bits | awk '{ exit !($1 < 5.5) }' && pass || fail "chars: bits" "$line"

# ---- templates without data ----
"$MDLC" init --list >list
[ "$(sed 's/ .*//' list | tr '\n' ' ')" = "classifier images regression text " ] && pass || fail "--list" "$(cat list)"
for template in $(sed 's/ .*//' list); do
    rm -f $template.mdl
    check "$template" "$MDLC" init $template
    sound "$template" $template.mdl
    "$MDLC" init $template -o - >said 2>err && cmp -s said $template.mdl && [ ! -s err ] && pass || fail "$template to standard output"
done
awk 'BEGIN { srand(1); for (i = 0; i < 400; i++) { k = i % 3; printf "%g,%g,%g,%g,%d\n", k + rand(), rand(), -k + rand(), rand() - k, k } }' >four.csv
cp classifier.mdl made.mdl && trains "classifier" --data f=four.csv --seed 1 && least "classifier" acc 0.9
cp regression.mdl made.mdl && trains "regression" --data f=four.csv --seed 1 && least "regression" R2 0.6
cp text.mdl made.mdl && trains "text" --data f=samples/data/chars.txt --steps 3 && least "text" steps 3
# Pictures of one white bar, whose height is the class.
for k in 0 1 2 3 4 5 6 7 8 9; do
    { head -c $((56 * k)) /dev/zero; head -c 56 /dev/zero | tr '\0' '\377'; head -c $((728 - 56 * k)) /dev/zero; } >picture.$k
done
pictures() { # NAME TENS OCTAL: IDX files of so many pictures
    { printf "\\0\\0\\10\\3\\0\\0\\$3\\0\\0\\0\\34\\0\\0\\0\\34"; for _ in $(seq "$2"); do cat picture.?; done; } >"$1-images-idx3-ubyte"
    { printf "\\0\\0\\10\\1\\0\\0\\$3"; for _ in $(seq "$2"); do printf '\0\1\2\3\4\5\6\7\10\11'; done; } >"$1-labels-idx1-ubyte"
}
pictures train 64 '2\200' && pictures t10k 10 '0\144'
cp images.mdl made.mdl && trains "images" --seed 1 && least "images" acc 0.9

# ---- tables ----
# These run for moments: tcc builds in one, where it is there.
quick="$CC -O0"
! have tcc || quick=tcc
build=$quick
# What the columns are is told from the values; the program reads what init has read.
printf '\357\273\277"x, y", "say ""hi""" ,label\r\n 1,"2.5",1\r\n"2",-1e2,2\r\n3,.5,3\r\n4,4,1\r\n5,0,2\r\n7,7,3\r\n8,1,1\r\n9,2,2\r\n1,9,3\r\n2,2,1\r\n' >odd.csv
writes "quotes, a mark, CR LF and labels from 1" --data odd.csv && trains "odd table" --steps 2
notes "labels from 1" "10 rows and a header; column 3 'label' is taken for 3 classes, from 2 others"
holds "labels from 1" "y: u8 in 0..K = u8(f.column(2) - 1);"
holds "labels from 1" "return label = argmax(p) + 1, prob = p;"
holds "a name in quotes" "// 1 'say \"hi\"', -100..9"
printf 'id,name,a,b,gap,const,y\n1,Smith,1,2,3,7,1.5\n2,Jones,2,3,,7,2.5\n3,1e39,3,4,5,7,0\n4,L,5,5,5,7,-1\n' >left.csv
writes "columns that are left out" --data left.csv && trains "columns that are left out" --steps 2
notes "a text" "column 2 'name' is left out: 'Smith' in line 2 is no number"
notes "a gap" "column 5 'gap' is left out: the cell in line 3 is empty"
notes "a constant" "column 6 'const' is 7 in every row and teaches nothing"
holds "a text" "// Left out is column 1 'name': 'Smith' in line 2 is no number."
holds "a constant" "// Of no use, because it is the same in every row: column 5."
holds "what is left" "x2: f32[2] = standardize(f.columns(2..4));"
holds "few rows" "// Too few rows to hold some out"
grep -q 'x3' made.mdl && fail "a constant column alone" "is a field" || pass
printf '1e39,1,2\n2,2,3\n3,3,5\n' >huge.csv
writes "a number that f32 does not hold" --data huge.csv && notes "a number that f32 does not hold" "column 1 is left out: '1e39' in line 1 is too large for f32"
trains "a number that f32 does not hold" --steps 1
writes "a target by its name" --data left.csv --target b && holds "a target by its name" "y: f32 = standardize(f.column(3));  // 'b', 2..5"
trains "a target by its name" --steps 1
writes "a target by its number" --data left.csv --target=1 && holds "a target by its number" "f.column(0)"
writes "classes as a number" regression --data samples/data/digits.csv && holds "classes as a number" "dim B = 128, N = 64;"
printf '1,2\n2,0\n3,5\n4,9\n' >few.csv
writes "a number as classes" classifier --data few.csv && holds "a number as classes" "K = 10;" && trains "a number as classes" --steps 1
awk 'BEGIN { for (i = 0; i < 300; i++) print i % 256 + 1 ",", i }' | awk -F, '{ print $2 "," $1 }' >many.csv
writes "256 classes" classifier --data many.csv && holds "256 classes" "K = 256;" && trains "256 classes" --steps 1
awk 'BEGIN { for (i = 0; i < 300; i++) print i "," i }' >count.csv
writes "a count is no class" --data count.csv && holds "a count is no class" "y: f32"
printf 'red,1,2\nblue,2,3\ngreen,4,4\n' >texts.csv
writes "a text in a table without a header" --data texts.csv && notes "a text in a table without a header" "3 rows; column 3 is taken"
trains "a text in a table without a header" --steps 1
awk 'BEGIN { for (r = 0; r < 20; r++) { for (i = 0; i < 400; i++) printf "%d,", (r * 7 + i) % 11; print r % 2 } }' >wide.csv
writes "400 columns" --data wide.csv && trains "400 columns" --steps 1
{ printf 'a\tb\nc\001\177\377*/,{{path}},y\n'; printf '1,2,3\n2,3,5\n3,4,7\n'; } | sed '1s/^/"/; 2s/,/",/' >names.csv
writes "names of odd letters" --data names.csv && trains "names of odd letters" --steps 1
awk 'BEGIN { for (i = 0; i < 30000; i++) print i % 7 ",text," i % 3 }' >long.csv
writes "long" --data long.csv && notes "long" "30000 rows; column 3 is taken for 3 classes, from 1 other"

# The entry takes rows as they stand in the table: the columns that were kept, before standardize, and
# gives labels as they stand there. floats NAME OCTAL: one row of two f32.
floats() {
    { printf '\223NUMPY\1\0\166\0'; printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }"; printf "$2"; } >"$1.npy"
}
floats two '\0\0\0\100\0\0\200\077'   # 2 1
floats three '\0\0\100\100\0\0\200\077' # 3 1
awk 'BEGIN { print "kind,name,noise,label"; for (i = 0; i < 200; i++) print i % 3 + 1 ",n" i "," i * 7 % 5 "," i % 3 + 1 }' >labels.csv
writes "labels" --data labels.csv && trains "labels" --seed 1 --save labels.st && least "labels" acc 1
for row in two three; do
    ./made predict --load labels.st --in x=$row.npy --out label=label.npy --log none 2>err || fail "labels: predict" "$(cat err)" >&2
    tail -c 4 label.npy | od -An -t d4 | tr -d ' '
done >said
printf '2\n3\n' >expected
same "labels of rows" expected said
awk 'BEGIN { print "x,name,noise,y"; for (i = 0; i < 200; i++) print i % 8 ",n" i "," i * 7 % 5 "," 1000 * (i % 8) + 50000 }' >units.csv
writes "units" --data units.csv && trains "units" --seed 1 --save units.st && least "units" R2 0.98
for row in two three; do
    ./made predict --load units.st --in x=$row.npy --out y=y.npy --log none 2>err || fail "units: predict" "$(cat err)" >&2
    tail -c 4 y.npy | od -An -t f4
done | awk '{ d = $1 - (51000 + 1000 * NR); if (d < 0) d = -d; bad += d > 300 } END { exit bad || NR != 2 }' && pass || fail "units of the column"

# Names that need marks in a string of the language, in C and in make.
mkdir -p 'odd * dir' "$(printf 'tab\there')"
for name in 'a b.csv' 'quote"s.csv' "apostrophe's.csv" 'back\slash.csv' 'end\\.csv' 'odd * dir/??/x.csv' '$HOME #%d.csv' '-dash.csv' 'ümlaut.csv' \
    "$(printf 'tab\there/x.csv')" "$(printf 'line\nend.csv')" "$(printf 'byte\377\001.csv')" '.csv' 'a.b.csv'; do
    mkdir -p 'odd * dir/??'
    cp few.csv "./$name"
    rm -f made.mdl
    # Behind `=` a dash is no option.
    writes "$name" --data="$name" && trains "$name" --steps 1
    # shellcheck disable=SC2086
    check "$name in C" $CC $STRICT_FLAGS -fsyntax-only made.c
done
rm -f -- -dash.mdl '.csv.mdl'
"$MDLC" init --data=-dash.csv 2>err && [ -f ./-dash.mdl ] && "$MDLC" init --data=.csv 2>err && [ -f ./.csv.mdl ] && pass || fail "usual names of odd data" "$(cat err)"

# ---- what is refused ----
# refused NAME STATUS PATTERN WORD...: one message, and no file.
refused() {
    refused_name=$1 refused_status=$2 refused_words=$3
    shift 3
    rm -f made.mdl
    "$MDLC" init "$@" >said 2>err
    refused_rc=$?
    [ $refused_rc -eq "$refused_status" ] && grep -q -e "$refused_words" err && [ "$(grep -c '^mdlc: ' err)" -eq 1 ] && pass ||
        fail "$refused_name" "status $refused_rc: $(head -n 3 err | cut -c1-300)"
    [ ! -s said ] && [ ! -e made.mdl ] && pass || fail "$refused_name" "something was written"
}
# What stands behind a name is printf's; the file is t.csv.
while IFS='|' read -r name pattern text; do
    # shellcheck disable=SC2059
    printf "$text" >t.csv
    refused "$name" 1 "^mdlc: t.csv:* *$pattern" --data t.csv -o made.mdl
done <<'LIST'
no bytes|the file is empty|
blank lines|the file is empty|\n\r\n\n
a mark alone|the file is empty|\357\273\277
a header alone|a header and no rows|a,b,y\n
one row|one row alone|1,2,3\n
a header and a row|one row alone|a,b,y\n1,2,3\n
a NUL|2:2: a NUL byte|a,y\n1,2\0003\n
NULs|1:1: a NUL byte|\0\0\0\0
UTF-16|text in UTF-16|\377\376a\0,\0
a quote without end|2:2: a quoted cell does not end|a,y\n1,"2\n3,4\n
a quote without end in a header|1:1: a quoted cell does not end|"a,y\n1,2\n
more behind a quote|2:1: a quoted cell does not end|a,y\n"1"2,3\n
a row too short|3: 1 columns, but the first row has 2|a,y\n1,2\n3\n
a row too long|3: 3 columns, but the first row has 2|a,y\n1,2\n3,4,5\n
one column|one column alone: a model needs|y\n1\n2\n
semicolons|one column alone, with ';' or tabs inside: cells are separated by commas|a;y\n1;2\n2;3\n
tabs|one column alone, with ';' or tabs inside|1\t2\n2\t3\n
a text to say|column 2 'y' is what the model should say, but 'red' in line 2 is no number|a,y\n1,red\n2,blue\n
a gap to say|column 2 is what the model should say, but the cell in line 2 is empty|1,2\n2,\n3,4\n
a constant to say|column 2 'y' is what the model should say, but it is 5 in every row|a,y\n1,5\n2,5\n
texts beside it|no column beside the target teaches anything: in column 1 'a' 'p' in line 2 is no number|a,y\np,1\nq,2\n
constants alone|no column beside the target teaches anything: all others are the same|a,y\n1,1\n1,2\n
a header of no names|the first line is no row of numbers|(a),(y)\n1,2\n2,3\n
names and texts|column 2 'what' is what the model should say, but 'q' in line 2 is no number|name,what\np,q\nr,s\n
gaps in every column|column 2 'y' is what the model should say, but the cell in line 2 is empty|a,y\n1,\n,2\n
a number behind a header of signs|the first line is no row of numbers|#,name,%%\n1,p,2\n2,q,3\n
LIST
awk 'BEGIN { for (i = 0; i < 1000000; i++) printf "1,"; print 2 }' >t.csv
refused "a million columns" 1 "t.csv:1: more than 65536 columns" --data t.csv -o made.mdl
awk 'BEGIN { printf "\""; for (i = 0; i < 3000000; i++) printf "x"; }' >t.csv
refused "a cell of 3 MB without end" 1 "t.csv:1:1: a quoted cell" --data t.csv -o made.mdl
awk 'BEGIN { for (r = 0; r < 3; r++) { for (i = 0; i < 65; i++) printf "%d,x,", r; print r } }' >t.csv
refused "numbers and texts in turn" 1 "in 65 groups" --data t.csv -o made.mdl
printf '1st,2nd\n1,2\n3,4\n' >t.csv
refused "a header that no program knows" 1 "the first line is no row of numbers" --data t.csv -o made.mdl
head -c 128 samples/data/chars.txt >short.txt
refused "a short text" 1 "short.txt: 128 bytes; the template needs at least 129" --data short.txt -o made.mdl
refused "no classes" 1 "column 11 'target' holds integers from 25 to 346; classes are integers" classifier --data samples/data/diabetes.csv -o made.mdl
printf '7,1\n8,.5\n9,2\n1,0\n2,1\n3,2\n4,0\n5,1\n6,2\n' >t.csv
refused "labels with a fraction" 1 "column 2 holds numbers from 0 to 2; classes are integers" classifier --data t.csv -o made.mdl
"$MDLC" init --data t.csv -o number.mdl >said 2>&1 && grep -q "column 2 is taken for a number" said && pass || fail "a number with a fraction" "$(cat said)"
printf 'a,b,b,y\n1,2,3,4\n5,6,7,8\n' >t.csv
refused "no such column" 2 "t.csv: there is no column 'c'; the columns are 1 'a', 2 'b', 3 'b', 4 'y'" --data t.csv --target c -o made.mdl
refused "column 0" 2 "there is no column '0'" --data t.csv --target 0 -o made.mdl
refused "column 5" 2 "there is no column '5'" --data t.csv --target 5 -o made.mdl
refused "no name" 2 "there is no column ''" --data t.csv --target= -o made.mdl
refused "two columns of a name" 2 "columns 2 and 3 are both named 'b'; give --target the number" --data t.csv --target b -o made.mdl
refused "no such file" 4 "cannot open 'none.csv': No such file" --data none.csv -o made.mdl
refused "no such text" 4 "cannot open 'none.txt': No such file" --data none.txt -o made.mdl
mkdir -p folder.csv && refused "a folder" 4 "cannot read 'folder.csv': not a regular file" --data folder.csv -o made.mdl
refused "another ending" 2 "table.tsv: a table has a name that ends in .csv" --data table.tsv -o made.mdl
refused "another ending for a template" 2 "t.txt: template 'regression' reads a table" regression --data t.txt -o made.mdl
refused "a table as text" 2 "template 'text' reads characters" text --data t.csv -o made.mdl
cp t10k-images-idx3-ubyte pictures && refused "pictures as text" 2 "template 'text' reads characters" text --data pictures -o made.mdl
refused "data of images" 2 "template 'images' reads two files" images --data t.csv -o made.mdl
refused "no template" 2 "there is no template 'tree'; templates: classifier, images, regression, text" tree -o made.mdl
refused "nothing to begin with" 2 "name a template, or '--data FILE.csv'; templates: " -o made.mdl
refused "a target without data" 2 "'--target' names a column of '--data FILE.csv'" text --target 3 -o made.mdl
refused "a target of a text" 2 "'--target' means nothing to a text" --data short.txt --target 3 -o made.mdl
refused "a list and a template" 2 "'--list' takes nothing beside it" text --list
refused "a folder that is not there" 4 "cannot write 'none/made.mdl': No such file" text -o none/made.mdl
refused "a folder as the model" 4 "cannot write 'folder.csv': Is a directory" text -o folder.csv
cp t.csv kept.csv
refused "the model in place of its data" 2 "would replace 't.csv'" --data t.csv -o t.csv --force
same "the data" kept.csv t.csv

# A file that is there stays, unless --force says so.
echo mine >mine.mdl
refused "a file that is there" 4 "'mine.mdl' is there already: '-o FILE' gives the model another name, '--force' replaces" text -o mine.mdl
[ "$(cat mine.mdl)" = mine ] && pass || fail "a file that is there" "was changed"
refused "a file that is there, under its usual name" 4 "'digits.mdl' is there already" --data samples/data/digits.csv
"$MDLC" init text -o mine.mdl --force 2>err && same "--force" text.mdl mine.mdl
if [ -w /dev/full ]; then
    "$MDLC" init text -o - >/dev/full 2>err
    [ $? -eq 4 ] && grep -q "No space left" err && pass || fail "a full disk" "$(cat err)"
else
    skip "a full disk" "no /dev/full"
fi

# ---- tables of odd pieces ----
tables() { # TURN: a table on standard output
    awk -v seed="$((SEED * 10000 + $1))" 'BEGIN {
        n = split("0 1 2 3 0 1 7 -4 2.5 1e3 -0 +5 .5 5. 1e39 1e-45 1e999 nan inf 0x10 \"3\" \"\" \"a,b\" name _x 12abc 99999999999 ", piece, " ")
        srand(seed)
        columns = 2 + int(3 * rand()); rows = 1 + int(14 * rand()); odd = int(4 * rand()) / 40
        if (rand() < 0.5) { for (c = 0; c < columns; c++) printf "%s%s", c ? "," : "", "c" c; print "" }
        for (r = 0; r < rows; r++) {
            for (c = 0; c < columns - (rand() < odd / 8); c++) {
                cell = rand() < odd ? piece[1 + int(n * rand())] : c == columns - 1 ? int(3 * rand()) : int(1000 * rand()) / 8
                printf "%s%s", c ? "," : "", rand() < odd / 2 ? "" : cell
            }
            printf "%s", rand() < 0.1 ? "\r\n" : "\n"
        }
        if (rand() < 0.05) printf "\"" }'
}
taken=0
for turn in $(seq "$COUNT"); do
    tables "$turn" >t.csv
    "$MDLC" init --data t.csv -o made.mdl --force >said 2>err
    rc=$?
    if [ $rc -eq 1 ]; then
        [ "$(grep -c '^mdlc: t.csv' err)" -eq 1 ] && pass || fail "odd pieces, turn $turn of SEED=$SEED" "$(cat err)"
    elif [ $rc -ne 0 ]; then
        fail "odd pieces, turn $turn of SEED=$SEED" "status $rc: $(cat err)"
    elif "$MDLC" --threads=1 made.mdl -o made.c >said 2>&1 && [ ! -s said ] && $quick made.c -lm -o made 2>said && ./made --steps 1 --log none >said 2>&1; then
        taken=$((taken + 1))
        pass
    else
        fail "odd pieces, turn $turn of SEED=$SEED" "the program: $(head -n 2 said)"
    fi
done
[ $((4 * taken)) -ge "$COUNT" ] && pass || fail "odd pieces" "$taken of $COUNT tables were taken: too few to show anything"
summary "init: SEED=$SEED, $taken of $COUNT odd tables taken"
