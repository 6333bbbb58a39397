#!/bin/sh
# The files that mdlc writes. None falls on the model, its modules and data, on another output or on a
# standard stream's file; each is replaced as a whole or stays as it was, whatever fails meanwhile.
set -u
. tests/lib.sh
root=$(pwd)
case $MDLC in /*) ;; *) MDLC=$root/$MDLC ;; esac
here=$scratch/here
mkdir -p "$here/sub"
cd "$here" || exit 1
cat >net.mdl <<'X'
use part;
dataset rows { file f = "rows.csv"; x: f32[3] = f.columns(0..3); holdout every(3); }
model net(x: [b, 3]) -> [b, 1] { param w: [3] = 0; y[i, j < 1] = sum[k] twice(x)[i, k] * w[k]; return y; }
train fit of net on rows[2] { loss mean(net(x)^2); optimizer plain(lr = 0.1); steps 2; }
optimizer plain(p: [...], g: [...], lr: real) { p <- p - lr * g; }
X
echo 'op twice(x: [...]) -> [...] { return 2 * x; }' >part.mdl
echo 'entry e(x: [4]) { return x * 2; }' >solo.mdl
printf '1,2,3\n4,5,6\n7,8,9\n' >rows.csv
cp rows.csv sub/rows.csv
ln -s net.mdl link.mdl
ln -s "$here" around
ln net.mdl hard.mdl
mkdir "$scratch/was"
cp -a . "$scratch/was"
# As it was: no file changed, none came.
unchanged() {
    diff -r --no-dereference "$scratch/was" . >"$scratch/diff" && pass || { fail "$1" "$(head -n 3 "$scratch/diff")"; find . -type f -newer "$scratch/was" -name '*.[chd]' -delete; cp -a "$scratch/was/." .; }
}
# The build line at its top names the file.
text() { sed '/^ \*     cc /d' "$1" >"$1.text" && cmp -s whole.text "$1.text" && pass || fail "$2" "is another text"; }
refused() { # NAME CODE OPTION...: with one message, and nothing is written
    refused_name=$1 refused_code=$2
    shift 2
    "$MDLC" "$@" >"$scratch/out" 2>"$scratch/err"
    refused_rc=$?
    [ $refused_rc -eq 2 ] && [ "$(grep -c "\[$refused_code\]" "$scratch/err")" -eq 1 ] && [ "$(grep -c '\[E' "$scratch/err")" -eq 1 ] && pass ||
        fail "$refused_name" "status $refused_rc: $(head -n 2 "$scratch/err")"
    [ -s "$scratch/out" ] && fail "$refused_name" "something is printed" || pass
    unchanged "$refused_name"
}

# ---- what must not be written over ----
for path in net.mdl ./net.mdl sub/../net.mdl around/net.mdl "$here/net.mdl" link.mdl hard.mdl part.mdl rows.csv; do
    refused "-o $path" E0625 net.mdl -o "$path"
    refused "-H $path" E0625 net.mdl --stats -H "$path" -o x.c
    refused "-MF $path" E0625 net.mdl --report -MF "$path" -o x.c
done
cp net.mdl m.d && cp m.d "$scratch/was"
refused "-MD onto the model" E0625 m.d -MD -o m
refused "data beside the program" E0625 net.mdl -o sub/x.c -H sub/rows.csv
refused "the model by another path" E0625 "$here/net.mdl" -o net.mdl
refused "the model by its link" E0625 link.mdl -o net.mdl
refused "the model on standard input" E0625 /dev/stdin -o solo.mdl <solo.mdl
"$MDLC" net.mdl -o - 2>"$scratch/err" >>part.mdl
[ $? -eq 2 ] && grep -q E0625 "$scratch/err" && pass || fail "standard output into a module" "$(head -n 1 "$scratch/err")"
unchanged "standard output into a module"
# One output onto another: there already, or not yet.
ln -s new.c dangling
cp -a dangling "$scratch/was"
refused "-o and -H" E0626 net.mdl -o x.c -H ./x.c
refused "-o and -MF" E0626 net.mdl -o x.c -MF around/x.c
refused "-H and -MF" E0626 net.mdl -o y.c -H x.c -MF x.c
refused "-H and -MD" E0626 net.mdl -o y.c -H y.c.d -MD
refused "through a link to nothing" E0626 net.mdl -o dangling -H sub/../new.c
echo kept >there && ln there also && cp -a there also "$scratch/was"
refused "two names of a file" E0626 net.mdl -o there -H also
for stream in 1 2; do
    : >"$scratch/said"
    eval "\"\$MDLC\" net.mdl -o \"\$scratch/said\" $stream>>\"\$scratch/said\" 3>&1" 2>>"$scratch/said" # standard error either way
    [ $? -eq 2 ] && grep -q E0627 "$scratch/said" && pass || fail "the file of stream $stream" "$(head -n 2 "$scratch/said")"
done

# ---- what is no regular file ----
ok() { # NAME COMMAND...
    ok_name=$1
    shift
    "$@" 2>"$scratch/err" && pass || fail "$ok_name" "$(head -n 2 "$scratch/err")"
}
ok "/dev/null for all" "$MDLC" net.mdl -o /dev/null -H /dev/null -MF /dev/null
[ -c /dev/null ] && pass || fail "/dev/null" "is none any more"
"$MDLC" net.mdl -o whole.c -H whole.h || fail "plain" "does not compile"
"$MDLC" net.mdl -o y.c || fail "without a header" "does not compile"
sed '/^ \*     cc /d' y.c >whole.text
"$MDLC" net.mdl -o - | cat >y.c && text y.c "-o -"
"$MDLC" net.mdl -o /dev/stdout | cat >y.c && text y.c "-o /dev/stdout"
echo first >log
"$MDLC" net.mdl -o /dev/stdout >>log
[ "$(head -n 1 log)" = first ] && pass || fail "-o /dev/stdout" "what stood in the file before it is lost"
sed 1d log >y.c && text y.c "-o /dev/stdout >>"
"$MDLC" net.mdl -o /dev/fd/5 5>y.c && text y.c "-o /dev/fd/5"
mkfifo pipe
cat pipe >piped &
"$MDLC" net.mdl -o pipe
wait $!
text piped "-o to a pipe"
[ -p pipe ] && pass || fail "a pipe" "is replaced"

# ---- what stays of a file that is replaced ----
echo old >x.c
chmod 640 x.c
ln -s x.c to-x
"$MDLC" net.mdl -o to-x && text x.c "through a link"
[ -h to-x ] && pass || fail "a link" "is replaced"
[ "$(stat -c %a x.c)" = 640 ] && pass || fail "mode" "$(stat -c %a x.c)"
"$MDLC" net.mdl -o dangling && text new.c "a link to nothing"
(umask 027 && "$MDLC" net.mdl -o fresh.c)
[ "$(stat -c %a fresh.c)" = 640 ] && pass || fail "mode of a new file" "$(stat -c %a fresh.c)"
long=$(printf 'n%.0s' $(seq 250)).c
ok "a long name" "$MDLC" net.mdl -o "$long"
cp "$long" y.c && text y.c "a long name"
cp net.mdl messy.mdl && echo 'const   odd=1 ;' >>messy.mdl
"$MDLC" fmt messy.mdl >neat.mdl && ok "fmt in place" "$MDLC" fmt messy.mdl -o messy.mdl && same "fmt in place" neat.mdl messy.mdl
echo 'model (' >>messy.mdl && cp messy.mdl broken.mdl
"$MDLC" fmt messy.mdl -o messy.mdl 2>/dev/null && fail "fmt of a wrong file" "ends well" || same "fmt of a wrong file" broken.mdl messy.mdl
if have setpriv && [ "$(id -u)" = 0 ]; then
    chmod 777 . && echo precious >ro.c && chmod 444 ro.c && cp ro.c "$scratch/ro.c"
    chmod 711 "$scratch"
    cp "$MDLC" "$scratch/mdlc" && chmod 755 "$scratch/mdlc"
    setpriv --reuid=65534 --regid=65534 --clear-groups "$scratch/mdlc" net.mdl -o ro.c 2>"$scratch/err"
    [ $? -eq 4 ] && grep -q "cannot write 'ro.c': Permission denied" "$scratch/err" && pass || fail "a file that may not be written" "$(cat "$scratch/err")"
    same "a file that may not be written" "$scratch/ro.c" ro.c
else
    skip "a file that may not be written" "no setpriv, or not root"
fi

# ---- failures ----
stays() { # NAME PATTERN: x.c and x.h are the old ones, and nothing else came
    grep -q "$2" "$scratch/err" && pass || fail "$1" "$(head -n 2 "$scratch/err")"
    [ "$(cat x.c x.h)" = "old
old" ] && pass || fail "$1" "a file that was there is another one"
    [ -z "$(find . -name '*.tmp*')" ] && pass || { fail "$1" "left: $(find . -name '*.tmp*')"; find . -name '*.tmp*' -delete; }
}
echo old >x.c && echo old >x.h
(ulimit -f 8 && exec "$MDLC" net.mdl -o x.c -H x.h) 2>"$scratch/err"
[ $? -eq 4 ] && stays "files that may not grow" "cannot write 'x.c': File too large; the file is as it was" || fail "files that may not grow" "another status"
"$MDLC" net.mdl -o x.c -H none/x.h 2>"$scratch/err" && fail "no such folder" "ends well"
stays "no such folder" "cannot write 'none/x.h': No such file or directory"
"$MDLC" net.mdl -o x.c -H sub 2>"$scratch/err" && fail "a folder" "ends well"
stays "a folder" "cannot write 'sub': Is a directory"
if [ -w /dev/full ]; then
    for way in "-o /dev/full" "-o x.c -H x.h -MF /dev/full"; do
        # shellcheck disable=SC2086
        "$MDLC" net.mdl $way 2>"$scratch/err"
        [ $? -eq 4 ] && stays "$way" "cannot write '/dev/full': No space left on device" || fail "$way" "another status"
    done
    for words in "net.mdl -o -" "net.mdl --report" "net.mdl --stats" "net.mdl --dump=build" "fmt net.mdl" "explain E0205" "explain" "--help" "--version" \
        "net.mdl -o x.c -H x.h --report"; do
        # shellcheck disable=SC2086
        "$MDLC" $words >/dev/full 2>"$scratch/err"
        [ $? -eq 4 ] && grep -q 'cannot write standard output: No space left' "$scratch/err" && pass || fail "$words to a full disk" "$(head -n 1 "$scratch/err")"
    done
    stays "a report to a full disk" .
else
    skip "/dev/full" "there is none"
fi
if mkdir disk && mount -t tmpfs -o size=48k tmpfs disk 2>/dev/null; then
    echo old >disk/x.c
    "$MDLC" net.mdl -o disk/x.c -H disk/x.h 2>"$scratch/err"
    [ $? -eq 4 ] && grep -q "No space left on device; the file is as it was" "$scratch/err" && pass || fail "a full disk" "$(cat "$scratch/err")"
    [ "$(cat disk/x.c)" = old ] && [ "$(ls -A disk)" = x.c ] && pass || fail "a full disk" "$(ls -lA disk)"
    umount disk
else
    skip "a full disk" "no file system may be mounted here"
fi

# ---- at the same time ----
# Compiles of two models into one file while others read it: always one of the two, whole.
sed 's/steps 2/steps 3/' net.mdl >net3.mdl
"$MDLC" --prefix=net net3.mdl -o raced.c && cp raced.c whole3.c && "$MDLC" --prefix=net net.mdl -o raced.c && cp raced.c whole2.c
cmp -s whole2.c whole3.c && fail "two compiles" "of one text"
for model in net net3; do
    (for _ in 1 2 3 4 5 6 7 8; do "$MDLC" --prefix=net $model.mdl -o raced.c || echo failed; done) >"$scratch/$model.log" 2>&1 &
done
torn=0
for _ in $(seq 200); do
    cp raced.c seen.c
    cmp -s seen.c whole2.c || cmp -s seen.c whole3.c || torn=$((torn + 1))
done
wait
[ $torn -eq 0 ] && [ ! -s "$scratch/net.log" ] && [ ! -s "$scratch/net3.log" ] && pass || fail "two compiles" "$torn times no whole file; $(cat "$scratch"/net*.log)"
# Killed at any moment.
cp whole2.c raced.c
torn=0
for wait in 001 002 004 006 008 010 012 015 020 030; do
    "$MDLC" --prefix=net net3.mdl -o raced.c 2>/dev/null & child=$!
    sleep 0.$wait
    kill -KILL $child 2>/dev/null
    wait $child 2>/dev/null
    cmp -s raced.c whole2.c || cmp -s raced.c whole3.c || torn=$((torn + 1))
done
[ $torn -eq 0 ] && pass || fail "killed" "$torn times no whole file"
cd "$root" || exit 1
summary outputs
