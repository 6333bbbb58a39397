# Shared by scripts that time programs: how each net of `make busy` is run.
# SECONDS_EACH says how long steps that are called by themselves run; others run as a whole.

train() { # PROGRAM THREADS STEPS [TRAIN]
    start=$(date +%s%N)
    "$1" ${4:-} --threads "$2" --steps "$3" --log none >/dev/null || exit 1
    echo "$start $(date +%s%N) $3" | awk '{ printf "%.3f\n", ($2 - $1) / $3 / 1000 }'
}

# step_time PROGRAM NET THREADS [mean]: microseconds a step.
step_time() {
    case $2 in
    diabetes) train "$1" "$3" 100000 ;;
    chars) train "$1" "$3" 200 ;;
    residual) train "$1" "$3" 500 ;;
    gan) train "$1" "$3" 1000 d ;;
    tune) train "$1" "$3" 1500 pre ;;
    *) OMP_NUM_THREADS=$3 "$1" "$SECONDS_EACH" ${4:+"$4"} ;;
    esac
}
