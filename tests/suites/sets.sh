#!/bin/sh
# All that persists, from the command line of an emitted program (sets.mdl): entries, evaluations and
# trains see what a checkpoint holds and hand it on; averages can be evaluated; initial weights of any
# seed; weights of the other precision; files that must not fall on each other.
set -u
. tests/lib.sh
root=$(pwd)
case $MDLC in /*) ;; *) MDLC=$root/$MDLC ;; esac

cat >"$scratch/host.c" <<'X'
#include "sets.h"
#include <stdio.h>
#include <stdlib.h>
static _Alignas(SETS_ALIGN) unsigned char params[SETS_PARAMS_BYTES], state[SETS_STATE_BYTES], io[SETS_IO_BYTES], arena[SETS_ARENA_BYTES];
static int put(void *user, const void *data, size_t bytes) { return fwrite(data, 1, bytes, user) != bytes; }
int main(int argc, char **argv) {
    sets m;
    sets_memory mem = {params, state, io, arena, sizeof params, sizeof state, sizeof io, sizeof arena};
    return argc != 2 || sets_bind(&m, &mem) || sets_init(&m, strtoull(argv[1], NULL, 10)) || sets_save(&m, SETS_SAVE_PARAMS, put, stdout);
}
X
"$MDLC" tests/suites/sets.mdl -o "$scratch/sets.c" && $CC -O1 "$scratch/sets.c" -lm -o "$scratch/sets" &&
    "$MDLC" --precision=f64 tests/suites/sets.mdl -o "$scratch/wide.c" && $CC -O0 "$scratch/wide.c" -lm -o "$scratch/wide" &&
    "$MDLC" --no-main tests/suites/sets.mdl -o "$scratch/library.c" -H "$scratch/sets.h" --prefix=sets &&
    $CC -O0 -I"$scratch" "$scratch/host.c" "$scratch/library.c" -lm -o "$scratch/host" || { fail sets "does not build"; summary sets; exit 1; }
cd "$scratch" || exit 1
# npy NAME SHAPE NUMBERS OCTAL: so many f4 of the same four bytes.
npy() {
    npy_head="{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }"
    # shellcheck disable=SC2059
    { printf '\223NUMPY\1\0'; printf "\\$(printf %03o ${#npy_head})\\0%s" "$npy_head"; for npy_i in $(seq "$3"); do printf "$4"; done; } >"$1.npy"
}
npy x '4, 3' 12 '\0\0\200\077' # 1
npy row '1, 3' 3 '\0\0\000\101' # 8
run() { ./sets "$@" >said 2>err || { fail "$*" "status $?: $(head -n 1 err)"; return 1; }; }
# gives NAME A B: what two calls print, but for the name of the result.
gives() { [ -s "$2" ] && cmp -s "$2" "$3" && pass || fail "$1" "$(head -n 1 "$2" | cut -c 1-60), not $(head -n 1 "$3" | cut -c 1-60)"; }
differs() { cmp -s "$2" "$3" && fail "$1" "the same" || pass; }
call() { # FILE ENTRY OPTION...: its results
    call_file=$1
    shift
    run "$@" && cp said "$call_file"
}
run fit --seed 5 --log none --checkpoint ck --save w

# ---- entries over a checkpoint ----
call seen look --resume ck
grep -q '^n = 6$' seen && grep -q '^best = 7$' seen && grep -q '^counts \[3\] = 6 6 6$' seen && pass || fail "rings and states" "$(cat seen)"
call model predict --in x=x.npy --resume ck
call avg averaged --in x=x.npy --resume ck
call target targeted --in x=x.npy --resume ck
call plain predict --in x=x.npy --load w
gives "the weights of a checkpoint" model plain
differs "the averages" avg model && differs "the target" target model && differs "the target and the averages" target avg
# An entry that changes nothing hands all of it on, to the byte; one that does, only that.
run look --resume ck --checkpoint same && same "a checkpoint handed on" ck same
run note --set v=2 --resume ck --checkpoint noted && call seen look --resume noted && grep -q '^best = 9$' seen && pass || fail "a state" "$(cat seen)"
call again averaged --in x=x.npy --resume noted && gives "the averages beside it" avg again
run put --in x=row.npy --resume noted --checkpoint noted && call seen look --resume noted && grep -q ' 8 8 8' seen && grep -q '^best = 9$' seen && pass || fail "a ring" "$(cat seen)"
call older look --resume noted.old && grep -q '^best = 9$' older && pass || fail "the checkpoint before" "$(cat older)"
differs "the ring before" older seen
run sync --resume ck --checkpoint synced && call again targeted --in x=x.npy --resume synced && gives "a second set that is assigned" again model
call again averaged --in x=x.npy --resume synced && gives "the other set" again avg
call one draw --resume ck --checkpoint drawn && call two draw --resume drawn && call three draw --resume ck && differs "draws go on" one two && gives "draws from the same place" one three
# The train goes on behind an entry as if there had been none.
run fit --seed 5 --log none --steps 3 --checkpoint half && run look --resume half --checkpoint half && run fit --log none --resume half --checkpoint half && same "a train behind an entry" ck half
./sets put --in x=row.npy --resume w --checkpoint x.ck 2>err && fail "weights to resume" "are taken" || { grep -q "^sets: error: w: a file of weights, not a checkpoint of 'put'" err && pass || fail "weights to resume" "$(cat err)"; }
[ -f x.ck ] && fail "weights to resume" "a checkpoint is written" || pass
head -c 3000 ck >cut && cp ck cut.old
./sets averaged --in x=x.npy --resume cut >again 2>err && grep -q "going on from 'cut.old'$" err && gives "the checkpoint before, by an entry" avg again || fail "the checkpoint before" "$(cat err)"

# ---- a program without weights, trains and draws ----
printf 'ring r[3] { v: f32; }\nentry add(v: f32) { r.push(v); }\nentry all() { return v = r.v; }\n' >ring.mdl
"$MDLC" ring.mdl -o ring.c && $CC -O0 ring.c -lm -o ring || fail ring "does not build"
./ring add --set v=4 --checkpoint r.ck && ./ring add --set v=5 --resume r.ck --checkpoint r.ck && ./ring all --resume r.ck >said 2>err
grep -q '^v \[3\] = 4 5 0$' said && pass || fail "a ring alone" "$(cat said err)"

# ---- what --load takes ----
call again averaged --in x=x.npy --load ck && gives "averages of a checkpoint" avg again
call again targeted --in x=x.npy --load ck && gives "the target of a checkpoint" target again
call again averaged --in x=x.npy --load w && gives "averages that a file does not have" model again
call again look --load ck && grep -q '^n = 0$' again && pass || fail "a ring" "is loaded as weights"
run fit --log none --load ck --steps 0 --checkpoint new && call again targeted --in x=x.npy --resume new && gives "a new run from a checkpoint" target again
# ---- averages in place of the weights ----
call again predict --in x=x.npy --load ck --weights avg && gives "--weights" avg again
call again predict --in x=x.npy --resume ck --weights=avg && gives "--weights of a resume" avg again
run publish --resume ck --save p.w && call again predict --in x=x.npy --load p.w && gives "averages as weights" avg again
run fit --log none --load ck --weights avg --steps 0 --save p2.w && same "averages as weights, by --steps 0" p.w p2.w
evaluated() { ./sets eval --log json "$@" 2>err | sed -n 's/"step":6/"step":0/; /"event":"eval"/p'; }
# The loss has the target in it, which comes with a checkpoint.
run publish --resume ck --checkpoint published
evaluated --load ck --weights avg >said && evaluated --load published >want && gives "eval of averages" said want
evaluated --load ck >want && differs "eval of averages" said want
evaluated --resume ck >said && gives "eval of a checkpoint" said want
exits "a set that the file lacks" 1 "^sets: error: w: does not have the second set 'avg': tensor 'mdlc.avg.fc1.weight' is missing" sh -c './sets predict --in x=x.npy --load w --weights avg 2>err >said'
exits "no such set" 2 "the model has no second set 'av'; there are: target avg" sh -c './sets predict --in x=x.npy --load ck --weights av 2>err'
exits "a set without a file" 2 "takes a second set of a checkpoint: --load FILE" sh -c './sets fit --weights avg 2>err'
exits "a set of a model without" 2 "unknown option '--weights'" sh -c './ring all --weights avg 2>err'

# ---- no step, and any seed ----
for seed in 0 1 9223372036854775807 9223372036854775808 18446744073709551615; do
    ./host $seed >by_library || fail "the library, seed $seed"
    run --log none --seed $seed --steps 0 --save initial && same "initial weights, seed $seed" by_library initial
    cat initial >>initials
    run --log none --seed $seed --steps 2 --checkpoint two && run --log none --resume two --checkpoint three --steps 5 && run --log none --seed $seed --steps 5 --checkpoint five && same "resumed, seed $seed" five three
done
[ "$(split -b "$(wc -c <initial)" initials part. && cksum part.* | cut -d' ' -f1 | sort -u | wc -l)" = 5 ] && pass || fail "seeds" "two of them give the same weights"
run --log none --seed 5 --epochs 0 --checkpoint zero && run --log none --resume zero --checkpoint zero && same "from no step on" ck zero
./sets --seed 5 --steps 0 --log json >said && grep -q '"event":"end".*"steps":0,.*"loss":null' said && pass || fail "the log of no step" "$(cat said)"
for seed in -1 18446744073709551616 99999999999999999999 1.5 0x10 ""; do
    exits "seed '$seed'" 2 "^sets: error: --seed needs a " sh -c "./sets --steps 1 --seed '$seed' 2>err"
done
for seed in 9223372036854775808 18446744073709551615; do
    { "$MDLC" run --entry draw --seed $seed "$root/tests/suites/sets.mdl" && ./sets draw --load w --seed $seed; } |
        awk 'NR == 1 { split($0, a) } NR == 2 { for (i = 4; i <= 7; i++) n += a[i] - $i < 1e-6 && $i - a[i] < 1e-6 && $i > 0 } END { exit n != 4 }' && pass ||
        fail "the evaluator, seed $seed" "draws others"
done

# ---- the other precision ----
wide() { ./wide "$@" >said 2>err || fail "f64: $*" "$(head -n 1 err)"; }
wide predict --in x=x.npy --load w --save wide.w && grep -aq '"F64"' wide.w && pass || fail "weights of f32" "are not saved as f64"
call again predict --in x=x.npy --load wide.w --save w2 && gives "weights of f64" model again
same "there and back" w w2
wide averaged --in x=x.npy --load ck && cp said wide.avg
awk '{ for (i = 1; i <= NF; i++) print $i }' avg >left && awk '{ for (i = 1; i <= NF; i++) print $i }' wide.avg >right
paste left right | awk '$1 ~ /^-?[0-9.e-]+$/ { d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5) bad = 1; n++ } END { exit bad || n < 8 }' && pass || fail "averages of f32" "$(cat wide.avg)"
./wide fit --resume ck 2>err && fail "a checkpoint of f32" "is resumed" ||
    { grep -q "^sets: error: ck: does not fit 'sets': tensor 'fc1.weight' is F32\[8, 3\] in the file and F64\[8, 3\] in the model (a run goes on in its own precision" err && [ "$(grep -o 'own precision' err | wc -l)" = 1 ] && pass || fail "a checkpoint of f32" "$(cat err)"; }

# ---- a refused load names the file and the tensor ----
refused() { # NAME MESSAGE FILE
    ./sets predict --in x=x.npy --load "$3" >said 2>err
    [ $? -eq 1 ] && grep -qF "sets: error: $3: does not fit 'sets': $2" err && pass || fail "$1" "$(cat err)"
}
LC_ALL=C sed 's/"fc2.bias"/"fc9.bias"/' w >other && refused "another name" "unknown tensor 'fc9.bias'; tensor 'fc2.bias' is missing" other
LC_ALL=C sed 's/"fc2.bias":{"dtype":"F32"/"fc2.bias":{"dtype":"I32"/' w >other && refused "another type" "tensor 'fc2.bias' is I32[2] in the file and F32[2] in the model" other
LC_ALL=C sed 's/"fc1.weight":{"dtype":"F32","shape":\[8,3\]/"fc1.weight":{"dtype":"F32","shape":[3,8]/' w >other && refused "another shape" "tensor 'fc1.weight' is F32[3, 8] in the file and F32[8, 3] in the model" other
LC_ALL=C sed 's/"mdlc.avg.fc2.bias":{"dtype":"F32","shape":\[2\]/"mdlc.avg.fc2.bias":{"dtype":"F32","shape":[ ]/' ck >other
refused "a second set of another shape" "tensor 'mdlc.avg.fc2.bias' is F32[] in the file and F32[2] in the model" other

# ---- files apart ----
apart() { # NAME MESSAGE OPTION...
    apart_name=$1 apart_text=$2
    shift 2
    cp ck ck.kept && cp x.npy x.kept
    ./sets "$@" >said 2>err
    [ $? -eq 2 ] && grep -qF -e "$apart_text" err && pass || fail "$apart_name" "$(head -n 1 err)"
    cmp -s ck ck.kept && cmp -s x.npy x.kept && pass || { fail "$apart_name" "a file is another one"; cp ck.kept ck; cp x.kept x.npy; }
}
ln -s ck to-ck && mkdir -p sub
apart "save and checkpoint" "--save one and --checkpoint sub/../one are one file" --save one --checkpoint sub/../one
apart "save and best" "--save one and --best ./one are one file" --eval-every 2 --save one --best ./one
apart "a table" "--checkpoint ck and --log csv to-ck are one file" --resume ck --checkpoint ck --log csv=to-ck
apart "a plot" "--log csv sub/../one and --plot one are one file" --log csv=sub/../one --plot one
apart "a plot onto an input" "--plot ck and --resume ck are one file" --resume ck --plot ck
apart "what the checkpoint keeps" "--save one.old and the file that --checkpoint keeps, one.old are one file" --save one.old --checkpoint one
apart "weights onto the checkpoint" "--save to-ck and --resume ck are one file" --resume ck --save to-ck
apart "a result onto its input" "--out x.npy and --in x.npy are one file" predict --load w --in x=x.npy --out x.npy
apart "a result onto the weights" "--out to-ck and --load ck are one file" predict --load ck --in x=x.npy --out to-ck
run predict --load w --in x=x.npy --save w && same "weights onto themselves" w2 w
cp w w.table && cp "$root/samples/data/digits.csv" digits.csv
"$MDLC" "$root/samples/digits.mdl" -o digits.c && $CC -O0 digits.c -lm -o digits && cp digits.csv digits.kept
./digits --steps 1 --data digits=digits.csv --save ./digits.csv 2>err
[ $? -eq 2 ] && grep -q -- "--save ./digits.csv and the data digits.csv are one file" err && cmp -s digits.csv digits.kept && pass || fail "weights onto the data" "$(cat err)"
cd "$root" || exit 1
summary sets
