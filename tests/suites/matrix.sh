#!/bin/sh
# One net in many settings, each a compile of the same source: what a setting adds to the state or the
# batch is known by hand, the report must say the same, and what a running program has mapped is what
# the report says, to the byte. LONG=1 runs every setting, else a few.
set -u
. tests/lib.sh
cat >"$scratch/matrix.mdl" <<'END'
use nn;
dim B = 128, K = 10;
const way = 0, fixed = false, clipped = false, parts = 1, averaged = false, drop = 0.0;
dataset digits {
    file f = "samples/data/digits.csv";
    x: f32[64] = f.columns(0..64) / 16;
    y: u8 in 0..K = f.column(64);
}
model net(x: [B, 64]) -> [B, K] {
    return x |> fc1: linear(128) |> gelu |> dropout(drop) |> fc2: linear(128) |> gelu |> head: linear(K);
}
state avg = net;
train fit of net on digits[B] {
    loss mean(cross_entropy(net(x), y));
    when way == 0 { optimizer sgd(lr = 0.1); }
    when way == 1 { optimizer sgd(lr = 0.1, momentum = 0.9); }
    when way == 2 { optimizer adamw(lr = 1e-3); }
    when way == 3 { optimizer adamw(lr = 1e-3, amsgrad = true); }
    when way == 4 { optimizer rmsprop(lr = 1e-3, centered = true, momentum = 0.9); }
    when way == 5 { optimizer adagrad(lr = 1e-2); }
    when way == 6 { optimizer lion(lr = 1e-4); }
    when way == 7 { optimizer lamb(lr = 1e-3); }
    when way == 8 { optimizer lars(lr = 1e-2); }
    when way == 9 { optimizer muon(lr = 1e-2) on rank >= 2; optimizer sgd(lr = 1e-2); }
    when way == 10 { optimizer adafactor(lr = 1e-2); }
    when way == 11 { optimizer adamw8(lr = 1e-3); }
    when fixed { freeze net.fc1; }
    when clipped { clip norm(1.0); }
    when averaged { ema avg = 0.99; }
    when parts > 1 { accumulate parts; }
    steps 1_000_000;
}
END

# bytes NAME: of the line of regions of the report in hand.
bytes() { sed -n 's/.*"regions".*"'"$1"'":\([0-9]*\).*/\1/p' "$scratch/report"; }

# The writable mapping between two that nothing may touch is the program's memory.
mapped() { # PID
    awk '{ split($1, at, "-"); pair[NR] = at[1] " " at[2]; kind[NR] = $2 }
        END {
            for (i = 2; i < NR; i++)
                if (kind[i - 1] ~ /^---p/ && kind[i] ~ /^rw-p/ && kind[i + 1] ~ /^---p/) print pair[i]
        }' "/proc/$1/maps"
}

kept_short=0 # bytes of parameters that 16 bits do not take

# setting NAME STATE IO OPTION...: bytes that it adds to the state and the batch of plain SGD.
setting() {
    name=$1 state=$2 io=$3
    shift 3
    "$MDLC" report --format=json "$@" "$scratch/matrix.mdl" >"$scratch/report" || { fail "$name" "does not compile"; return; }
    if [ "$name" = plain ]; then
        plain_state=$(bytes state) plain_io=$(bytes io) plain_params=$(bytes params)
    fi
    [ "$(bytes state)" = $((plain_state + state)) ] && pass || fail "$name" "state $(bytes state), not $((plain_state + state))"
    [ "$(bytes io)" = $((plain_io + io)) ] && pass || fail "$name" "batch $(bytes io), not $((plain_io + io))"
    [ "$(bytes total)" = $(($(bytes params) + $(bytes state) + $(bytes io) + $(bytes arena))) ] &&
        [ "$(bytes params)" = $((plain_params - kept_short)) ] && pass || fail "$name" "the sum"
    case "$name ${LONG:-0}" in plain*|"adamw 0"|"accumulate 4 0"|"bf16 0"|"f16 clipped 0"|"no masters 0"|*" 1") ;; *) return ;; esac
    [ -r /proc/self/maps ] || { skip "$name, measured" "no /proc here"; return; }
    "$MDLC" "$@" "$scratch/matrix.mdl" -o "$scratch/matrix.c" && $QUICK -O0 "$scratch/matrix.c" -lm -o "$scratch/matrix" ||
        { fail "$name" "does not build"; return; }
    : >"$scratch/log" # the program may not have come to empty it when it is looked at
    "$scratch/matrix" --log json --log-every 1 --threads 1 >"$scratch/log" 2>&1 </dev/null &
    pid=$!
    tries=0
    until grep -q '"event":"step"' "$scratch/log" || ! kill -0 $pid 2>/dev/null || [ $tries -ge 1200 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    mapped $pid >"$scratch/maps"
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
    page=$(getconf PAGESIZE)
    want=$(((($(bytes total) + page - 1) / page) * page))
    while read -r from to; do
        [ $((0x$to - 0x$from)) = $want ] && echo found
    done <"$scratch/maps" | grep -q found && pass || fail "$name" "no mapping of $want bytes: $(cat "$scratch/maps")"
}

# All parameters, each from a multiple of 64 bytes on; the matrices among them.
all=$((32768 + 512 + 65536 + 512 + 5120 + 64)) matrices=$((32768 + 65536 + 5120))
batch=$((128 * 64 * 4 + 128))
setting plain 0 0
setting momentum $all 0 -D way=1
setting adamw $((2 * all)) 0 -D way=2
setting amsgrad $((3 * all)) 0 -D way=3
setting rmsprop $((3 * all)) 0 -D way=4
setting adagrad $all 0 -D way=5
setting lion $all 0 -D way=6
setting lamb $((2 * all)) 0 -D way=7
setting lars $all 0 -D way=8
setting muon $matrices 0 -D way=9
# A row and a column for a matrix, all of a vector.
setting adafactor $((512 + 256 + 512 + 512 + 64 + 512 + 512 + 512 + 64)) 0 -D way=10
# A byte for each element, a scale for each 256, of two moments.
setting adamw8 $((2 * (8192 + 128 + 16384 + 128 + 1280 + 64 + 128 + 64 + 256 + 64 + 64 + 64))) 0 -D way=11
setting frozen $((2 * (all - 32768 - 512))) 0 -D way=2 -D fixed=true
setting clipped $((2 * all)) 64 -D way=2 -D clipped=true
# The second set is kept where it is used.
setting averaged $((3 * all)) 0 -D way=2 -D averaged=true
setting "accumulate 2" $((2 * all)) $batch -D way=2 -D parts=2
setting "accumulate 4" $((2 * all)) $((3 * batch)) -D way=2 -D parts=4
setting dropout $((2 * all)) 0 -D way=2 -D drop=0.1
# Rounding adds to neither; f16 two numbers of its scaler and the results loss_scale and grad_norm, each from a
# multiple of 64 bytes on. A clip has the norm already. What saved values win is in the arena.
setting "adamw, one thread" $((2 * all)) 0 -D way=2 --threads=1
single=$(bytes arena)
setting "bf16, one thread" $((2 * all)) 0 -D way=2 --precision="bf16, always" --threads=1
[ "$(bytes arena)" -lt $((single * 2 / 3)) ] && pass || fail bf16 "an arena of $(bytes arena) bytes, in f32 $single"
setting bf16 $((2 * all)) 0 -D way=2 --precision="bf16, always"
setting f16 $((2 * all + 128)) 128 -D way=2 --precision="f16, always"
setting "f16 clipped" $((2 * all + 128)) 128 -D way=2 -D clipped=true --precision="f16, always"
setting "bf16 clipped" $((2 * all)) 64 -D way=2 -D clipped=true --precision="bf16, always"
# Parameters in 16 bits, with a moving average in f32: 2 bytes less for each, the least being 64 for a tensor.
kept_short=$((16384 + 256 + 32768 + 256 + 2560 + 0))
setting "no masters" $((2 * all)) 64 -D way=2 -D clipped=true --precision="bf16(master=false)"
setting "no masters, averaged" $((3 * all)) 0 -D way=2 -D averaged=true --precision="bf16(master=false)"
setting "no masters, accumulate 4" $((2 * all)) $((3 * batch)) -D way=2 -D parts=4 --precision="bf16(master=false), always"
setting "no masters, frozen" $((2 * (all - 32768 - 512))) 0 -D way=2 -D fixed=true --precision="bf16(master=false)"
way=3
for extra in $((3 * all)) $((3 * all)) $all $all $((2 * all)) $all $matrices; do
    setting "no masters, way $way" $extra 0 -D way=$way --precision="bf16(master=false)"
    way=$((way + 1))
done
kept_short=0
for half in bf16 f16; do
    own=$([ $half = f16 ] && echo 128 || echo 0)
    setting "$half plain SGD" $own $own --precision="$half, always"
    setting "$half frozen" $((2 * (all - 32768 - 512) + own)) $own -D way=2 -D fixed=true --precision="$half, always"
    setting "$half averaged" $((3 * all + own)) $own -D way=2 -D averaged=true --precision="$half, always"
    setting "$half accumulate 4" $((2 * all + own)) $((3 * batch + own)) -D way=2 -D parts=4 --precision="$half, always"
    setting "$half dropout" $((2 * all + own)) $own -D way=2 -D drop=0.1 --precision="$half, always"
    way=3
    for extra in $((3 * all)) $((3 * all)) $all $all $((2 * all)) $all $matrices; do
        setting "$half way $way" $((extra + own)) $own -D way=$way --precision="$half, always"
        way=$((way + 1))
    done
done
summary matrix
