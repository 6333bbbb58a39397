# losses: what suites that compare runs of a train share; needs tests/lib.sh and the options of every run
# in $seed.

# run OUT PROGRAM [OPTION...]: its losses, a line each, and its weights.
run() {
    run_out=$1 run_program=$2
    shift 2
    "$run_program" $seed --log json --log-every 1 --save "$run_out.st" "$@" >"$run_out.log" 2>"$scratch/err" </dev/null ||
        fail "$run_program $*" "$(head -n 1 "$scratch/err")"
    sed -n 's/.*"event":"step".*"loss":\([^,}]*\).*/\1/p' "$run_out.log" >"$run_out.loss"
}
# near NAME FILE FILE LIMIT: as many numbers, each within the limit of the other's size.
near() {
    paste "$2" "$3" | awk -v t="$4" '{ d = $1 - $2; if (NF != 2 || !(d * d <= t * t * $1 * $1)) bad = 1 } END { exit bad || NR < 5 }' && pass ||
        fail "$1" "$(paste "$2" "$3" | tail -n 1)"
}
