#!/bin/sh
# The case folders: one model file a case, its sibling holds what is expected.
#
#   cases/error/X.mdl  X.err   standard error of a compile; exit status 1
#   cases/run/X.mdl    X.out   standard output of `mdlc run`; exit status 0
#   cases/stats/X.mdl          a comment `// stats: kernels=3 arena<=65536` against `mdlc --stats`
#   cases/emit/X.mdl   X.c     kernels and entries of the emitted file, without those that draw initial
#                              values; with `// part: whole` all of it but the runtime pieces
#
# A case may hold comment lines `// args: OPTIONS`, `// command: NAME` and `// exit: STATUS`.
# `cases.sh --golden` writes the siblings anew instead of comparing. Run from the root.
set -u
. tests/lib.sh
golden=no
[ "${1:-}" = --golden ] && golden=yes

directive() { # FILE NAME
    sed -n "s|^// $2: *||p" "$1" | head -n 1
}

# Compares or rewrites: settle NAME EXPECTED ACTUAL
settle() {
    if [ $golden = yes ]; then
        cmp -s "$2" "$3" || { cp "$3" "$2" && echo "wrote $2"; }
        pass
    elif [ ! -f "$2" ]; then
        fail "$1" "$2 is missing (make golden writes it)"
    else
        same "$1" "$2" "$3"
    fi
}

# Runs the compiler on a case: compile FILE DEFAULT_EXIT OPTION...; gives 1 on a wrong status.
compile() {
    case_file=$1 case_exit=$(directive "$1" exit)
    : "${case_exit:=$2}"
    shift 2
    # shellcheck disable=SC2046
    $MDLC "$@" $(directive "$case_file" args) "$case_file" >"$scratch/out" 2>"$scratch/err"
    case_rc=$?
    [ "$case_rc" -eq "$case_exit" ] && return 0
    fail "$case_file" "exit status $case_rc, expected $case_exit"
    head -n 5 "$scratch/err" | sed 's/^/    /'
    return 1
}

# Runtime pieces stand between marker lines; a golden that held them would change with them. Of the
# rest, kernels and entries are what a reader of a difference wants to see.
model_part() { # FILE [whole]
    awk '
        /^\/\* begin runtime\// { inside = 1 }
        /^\/\* ---- memory and files/ { inside = 0 }
        !inside { print }
        /^\/\* end runtime\// { inside = 0 }' "$1" |
        if [ "${2:-}" = whole ]; then cat; else awk '
            /^\/\* ---- runtime ---- / { exit }
            /^\/\* ---- model ---- \*\// { model = 1 }
            # The comment and the marker above a function go with it.
            /^\/\*/ || /^MD_LIST$/ { comment = comment $0 "\n"; next }
            /^[a-z].*\(/ { hidden = /^(static [a-z]+|int) [a-z0-9]+(_[a-z0-9]+)*_init(_[a-z0-9_]*)?\(/ }
            model && !hidden { printf "%s%s\n", comment, $0 }
            { comment = "" }'
        fi
}

# stats_hold "kernels=3 arena<=65536" FILE: prints what does not hold.
stats_hold() {
    awk -v wanted="$1" '
        { gsub(/[=:]/, " "); value[$1] = $2 }
        END {
            n = split(wanted, want, " ")
            for (i = 1; i <= n; i++) {
                if (!match(want[i], /(<=|>=|=|<|>)/)) { print "cannot read " want[i]; continue }
                name = substr(want[i], 1, RSTART - 1)
                sign = substr(want[i], RSTART, RLENGTH)
                bound = substr(want[i], RSTART + RLENGTH) + 0
                if (!(name in value)) { print name " is not printed"; continue }
                v = value[name] + 0
                if (sign == "=") ok = v == bound
                else if (sign == "<=") ok = v <= bound
                else if (sign == ">=") ok = v >= bound
                else if (sign == "<") ok = v < bound
                else ok = v > bound
                if (!ok) print name " is " v ", expected " sign " " bound
            }
        }' "$2"
}

for file in tests/cases/error/*.mdl; do
    [ -f "$file" ] || continue
    command=$(directive "$file" command)
    # shellcheck disable=SC2086
    compile "$file" 1 ${command:--o "$scratch/x.c"} && settle "$file" "${file%.mdl}.err" "$scratch/err"
done
for file in tests/cases/run/*.mdl; do
    [ -f "$file" ] || continue
    compile "$file" 0 run && settle "$file" "${file%.mdl}.out" "$scratch/out"
done
for file in tests/cases/stats/*.mdl; do
    [ -f "$file" ] || continue
    compile "$file" 0 --stats -o "$scratch/x.c" || continue
    wanted=$(directive "$file" stats)
    cat "$scratch/out" "$scratch/err" >"$scratch/stats"
    wrong=$(stats_hold "$wanted" "$scratch/stats")
    if [ -z "$wanted" ]; then
        fail "$file" "has no '// stats:' line"
    elif [ -n "$wrong" ]; then
        fail "$file" "$wrong"
    else
        pass
    fi
done
for file in tests/cases/emit/*.mdl; do
    [ -f "$file" ] || continue
    compile "$file" 0 --no-main -o "$scratch/x.c" || continue
    model_part "$scratch/x.c" "$(directive "$file" part)" >"$scratch/model.c"
    settle "$file" "${file%.mdl}.c" "$scratch/model.c"
done
summary cases
