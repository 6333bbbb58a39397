#!/bin/sh
# Programs as somebody writes them who comes from PyTorch (tests/programs): each is trained five steps
# from the weights of its PyTorch twin, and every loss, metric and norm of a gradient is compared with
# the twin's in double precision: 1e-5 relative in the first step, 1e-4 later. One thread and two give
# the same bits. tests/programs/make_programs.py wrote the numbers.
#
# LONG=1 (make accept) runs all programs, built as their header comment says, and each twice more: in
# double, within 1e-9, and with guard bands around every buffer; and checks the gradients against finite
# differences. The short form compiles a third of them without optimization. PROGRAMS names those to run.
set -u
. tests/lib.sh
programs=tests/programs
: "${LONG:=}"

# The short form: of those that a C compiler is through with soonest, one of each kind.
SHORT="a2c bag charrnn crf ddpm dqn factor gan gat hyper infonce kalman linear_attention lm_stream logistic lora maml mlp physics
    ppo score siamese sinkhorn vqvae word2vec"
if [ -n "${PROGRAMS:-}" ]; then
    names=$PROGRAMS
elif [ -n "$LONG" ]; then
    names=$(ls $programs/*.mdl | sed 's|.*/||; s|\.mdl$||')
else
    names=$SHORT
    for name in $(ls $programs/*.mdl | sed 's|.*/||; s|\.mdl$||'); do
        case " $(echo $SHORT) " in *" $name "*) ;; *) left=${left:-}${left:+ }$name ;; esac
    done
    echo "left to make accept (LONG=1): $left; for all of them -O3, double precision, guard bands and gradcheck"
fi

# program NAME [OPTION...]: emits and builds it: $scratch/p
program() {
    program_name=$1
    shift
    "$MDLC" "$@" $programs/"$program_name".mdl -o "$scratch/p.c" && $build "$scratch/p.c" "$scratch/p" && return
    fail "$program_name" "does not build"
    return 1
}

# numbers LOG: the lines of a run as those of the reference, "TRAIN.NAME v v v v v".
numbers() {
    sed -n 's/"event":"step",//p; s/"event":"result",/"event":"result",/p' "$1" | awk '
        function put(name, value) { if (!(name in row)) order[++n] = name; row[name] = row[name] " " value }
        /"event":"result"/ {
            name = $0; sub(/.*"name":"/, "", name); sub(/".*/, "", name)
            values = $0; sub(/.*"values":\[/, "", values); sub(/\].*/, "", values); gsub(/,/, " ", values)
            put("probe." name, values)
            next
        }
        {
            gsub(/"metrics":\{/, ""); gsub(/[{}"]/, "")
            count = split($0, part, ",")
            train = part[1]; sub(/entry:/, "", train)
            for (i = 2; i <= count; i++) {
                split(part[i], pair, ":")
                if (pair[1] !~ /^(|step|epoch|lr|grad_norm)$/) put(train "." pair[1], pair[2])
            }
        }
        END { for (i = 1; i <= n; i++) print order[i] row[order[i]] }'
}

# compare NAME NUMBERS FIRST LATER: each number against the reference, of the results of `probe` the
# norm of the difference; a row on one side alone is wrong, too. Prints what is wrong; the last line is
# "worst FIRST LATER".
compare() {
    awk -v first="$3" -v later="$4" '
        function abs(x) { return x < 0 ? -x : x }
        NR == FNR { have[$1] = $0; next }
        {
            rows++
            want[$1] = 1
            n = split(have[$1], value, " ")
            if (n != NF) { print $1 ": " n - 1 " numbers for " NF - 1; next }
            if ($1 ~ /^probe\./) {
                d = size = 0
                for (i = 2; i <= NF; i++) { d += (value[i] - $i)^2; size += $i^2 }
                error = sqrt(d) / sqrt(size)
                if (!(error <= later)) print $1 ": off by " error
                if (error > worst[2]) worst[2] = error
                next
            }
            for (i = 2; i <= NF; i++) {
                error = abs(value[i] - $i) / (abs($i) > 1e-12 ? abs($i) : 1)
                limit = i == 2 ? first : later
                if (!(error <= limit)) print $1 ": step " i - 1 ": " value[i] " for " $i ", off by " error
                k = i == 2 ? 1 : 2
                if (error > worst[k]) worst[k] = error
            }
        }
        END {
            if (!rows) print "no rows"
            for (name in have) if (!(name in want)) print name ": has no reference"
            print "worst", worst[1] + 0, worst[2] + 0
        }' "$2" "$programs/$1.txt"
}

# trained NAME PROGRAM OUT [OPTION...]: five steps and the entry `probe`, if there is one: OUT.log,
# OUT.safetensors; with the weights in double where OUT ends with "wide".
trained() {
    trained_name=$1 trained_program=$2 trained_out=$3
    shift 3
    weights=$programs/$trained_name.safetensors
    case $trained_out in
    */wide)
        "$BUILD/tests/tools/stwide" "$weights" "$trained_out.weights" || fail "$trained_name" "no weights in double"
        weights=$trained_out.weights
        ;;
    esac
    "$trained_program" --load "$weights" --save "$trained_out.safetensors" --log json --log-every 1 "$@" >"$trained_out.log" 2>"$trained_out.err" </dev/null || {
        fail "$trained_name" "status $?: $(head -n 2 "$trained_out.err")"
        return 1
    }
    ! grep -q '^entry probe' "$programs/$trained_name.mdl" ||
        "$trained_program" probe --load "$trained_out.safetensors" --log json >>"$trained_out.log" 2>"$trained_out.err" || {
        fail "$trained_name probe" "status $?: $(head -n 2 "$trained_out.err")"
        return 1
    }
    sed 's/"seconds":[^,]*,//; /"event":"memory"/d; /"event":"end"/d' "$trained_out.log" >"$trained_out.steps"
}

# agrees NAME KIND OUT FIRST LATER
agrees() {
    numbers "$3.log" >"$3.numbers"
    compare "$1" "$3.numbers" "$4" "$5" >"$3.wrong"
    tail -n 1 "$3.wrong" | sed "s/^worst/$2 $1/" >>"$scratch/worst"
    if [ "$(wc -l <"$3.wrong")" = 1 ]; then
        pass
    else
        fail "$1, $2" "$(($(wc -l <"$3.wrong") - 1)) numbers"
        sed '$d; s/^/    /' "$3.wrong" | head -n 8
    fi
}

: >"$scratch/worst"
for name in $(ls $programs/*.mdl | sed 's|.*/||; s|\.mdl$||'); do # those that are left, too
    [ -f $programs/"$name".txt ] || fail "$name" "has no numbers"
done
for name in $names; do
    [ -f $programs/"$name".txt ] || continue
    build=quickly
    [ -z "$LONG" ] || build=emitted
    program "$name" || continue
    if trained "$name" "$scratch/p" "$scratch/one" --threads 1; then
        agrees "$name" f32 "$scratch/one" 1e-5 1e-4
        trained "$name" "$scratch/p" "$scratch/two" --threads 2 &&
            same "$name: two threads" "$scratch/one.steps" "$scratch/two.steps" &&
            same "$name: weights of two threads" "$scratch/one.safetensors" "$scratch/two.safetensors"
    fi
    [ -n "$LONG" ] || continue
    build=quickly
    ! grep -q '^test' $programs/"$name".mdl || check "$name: gradcheck" "$MDLC" test $programs/"$name".mdl
    program "$name" --precision=f64 && trained "$name" "$scratch/p" "$scratch/wide" && agrees "$name" f64 "$scratch/wide" 1e-9 1e-9
    program "$name" --checks=canary && trained "$name" "$scratch/p" "$scratch/out" && agrees "$name" canary "$scratch/out" 1e-5 1e-4
done

# A comparison that cannot fail shows nothing.
numbers "$scratch/one.log" | sed 's/^\([a-z.]*loss [0-9]*\.[0-9]\)/\11/' >"$scratch/planted"
compare "$name" "$scratch/planted" 1e-5 1e-4 | grep -q 'loss: step 1: .*off by' && pass || fail planted "a wrong loss is not noticed"
numbers "$scratch/one.log" | sed '/loss/d; s/\.grad_/.grads_/' >"$scratch/planted"
[ "$(compare "$name" "$scratch/planted" 1e-5 1e-4 | grep -cE 'loss: 0 numbers|grads_.*: has no reference')" -ge 2 ] && pass || fail planted "missing rows are not noticed"

sort -k1,1 "$scratch/worst" | awk '
    { if ($3 > first[$1]) { first[$1] = $3; a[$1] = $2 } if ($4 > later[$1]) { later[$1] = $4; b[$1] = $2 } n[$1]++ }
    END { for (k in n) printf "%s: %d programs, worst relative error %.1e in the first step (%s), %.1e later (%s)\n", k, n[k], first[k], a[k], later[k], b[k] }'
[ -z "${WORST:-}" ] || cat "$scratch/worst"
summary programs
