#!/bin/sh
# Checks of the sources that no compiler makes: layering, sizes, words, format. Run from the root.
set -u
bad=0
complain() {
    echo "lint: $*"
    bad=$((bad + 1))
}

c_files=$(find lang compiler passes emit runtime tests -name '*.[ch]' -not -path 'tests/cases/*' | sort)
hand_written=$(find lang compiler passes emit runtime tests samples docs share -type f \
    \( -name '*.[chly]' -o -name '*.def' -o -name '*.mdl' -o -name '*.sh' -o -name '*.py' -o -name '*.md' -o \
    -name '*.awk' -o -name '*.cmake' -o -name '*.in' -o -name '*.vim' -o -name '*.mk' \) \
    -not -path 'tests/cases/*' | sort)

# Who may include whom: folder, then the folders whose headers it may name.
layer() { # FOLDER ALLOWED_PATTERN EXCEPT
    find "$1" -name '*.[chly]' | sort | while read -r file; do
        case " $3 " in *" $file "*) continue ;; esac
        sed -n 's/^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*/\1/p' "$file" | while read -r header; do
            printf '%s\n' "$header" | grep -Eq "$2" || echo "lint: $file must not include \"$header\""
        done
    done
}
layers=$(
    layer runtime '^runtime/' ""
    # The evaluator reads files and draws numbers with the same code as emitted programs.
    # The driver sees everything, and nobody sees the driver.
    nouns=$(find compiler/driver -name '*.[ch]' | tr '\n' ' ')
    layer compiler '^(compiler/[a-z_0-9]*\.(h|def)$|runtime/)' "$nouns"
    layer lang '^compiler/[a-z_0-9]*\.(h|def)$|^lang/|^parse\.h$|^lex\.h$' ""
    layer passes '^compiler/[a-z_0-9]*\.(h|def)$|^passes/|^runtime/(tile|blas|sort)_plan\.h$' ""
    layer emit '^compiler/[a-z_0-9]*\.(h|def)$|^emit/|^runtime/(tile|blas|format)\.h$' ""
)
if [ -n "$layers" ]; then
    echo "$layers"
    bad=$((bad + $(echo "$layers" | wc -l)))
fi

for file in $hand_written; do
    lines=$(wc -l <"$file")
    case $file in # tables and grammars have the length of what they list
    *.y | *.l | *.def | *.md | */defaults.txt) cap=1000 ;;
    runtime/tile_kernel.h) cap=900 ;; # a template, whose parts share macros that end with it
    *) cap=800 ;;
    esac
    if [ "$lines" -gt "$cap" ]; then
        complain "$file has $lines lines; the cap is $cap"
    elif [ "$lines" -gt 600 ]; then
        echo "lint: note: $file has $lines lines; about 600 is the aim"
    fi
done

# Files of one folder that call each other in a circle, however long the way: at most 3 together. What
# calls whom is read off the objects, so that a shared header hides nothing.
objects=${BUILD:-build}/obj/passes
if command -v nm >/dev/null 2>&1 && [ -f "$objects/lower/lower.o" ]; then
    circles=$(for source in passes/*.c passes/*/*.c; do
        name=${source#passes/} name=${name%.c}
        [ ! -f "$objects/$name.o" ] || nm "$objects/$name.o" | awk -v f="$name" '{ print f, $(NF - 1), $NF }'
    done | awk '
        $2 ~ /^[TDRB]$/ { home[$3] = $1 }
        $2 == "U" { use[++uses] = $1 " " $3 }
        { file[$1] = 1 }
        END {
            for (i = 1; i <= uses; i++) { split(use[i], u, " "); if (u[2] in home) reach[u[1], home[u[2]]] = 1 }
            for (k in file) for (i in file) if ((i, k) in reach) for (j in file) if ((k, j) in reach) reach[i, j] = 1
            for (i in file) {
                n = 0; list = ""
                for (j in file) if (i != j && (i, j) in reach && (j, i) in reach) { n++; list = list " " j }
                if (n > 2) print i ":" list
            }
        }' | sort)
    [ -z "$circles" ] || { echo "$circles"; complain "more than 3 files of passes call each other in a circle"; }
else
    echo "lint: note: nothing is built, so circles of files are not looked at"
fi

# Work left undone belongs in docs/status.md, not in the sources.
words='(^|[^A-Za-z])(TO''DO|FIX''ME|XX''X|NEEDS''WORK)([^A-Za-z]|$)|not imple''mented'
found=$(echo "$hand_written" | xargs grep -nE "$words" 2>/dev/null)
[ -z "$found" ] || { echo "$found"; complain "unfinished work is named in the sources"; }

# Paths of one machine mean nothing on another.
found=$(echo "$hand_written Makefile README.md CONTRIBUTING.md .ci/run" | xargs grep -nE '(/ho''me/|/ro''ot/|/wo''rk/)' 2>/dev/null)
[ -z "$found" ] || { echo "$found"; complain "a path of one machine"; }

# A switch on ops belongs to a column of the op table, the builder or the verifier.
found=$(echo "$c_files" | grep -vE '^tests/' | xargs grep -nE 'case OP_' 2>/dev/null |
    grep -vE '^(compiler/(op|graph|shape|eval[a-z_]*|verify|dump|fold)\.c|passes/(vjp[a-z_]*|lower/[a-z_]*|schedule/[a-z_]*|simplify|view|grad)\.c|emit/(cstyle|spell)[a-z_]*\.c):')
[ -z "$found" ] || { echo "$found"; complain "a switch on ops outside the op table's columns"; }

found=$(grep -nE '(^|[^a-z_])(assert|abort|exit) *\(' lang/*.c passes/*.c passes/*/*.c emit/*.c 2>/dev/null | grep -v static_assert)
[ -z "$found" ] || { echo "$found"; complain "lang, passes and emit end by diag_error or BUG only"; }
found=$(grep -nE '(^|[^a-z_])(malloc|calloc|realloc|free) *\(' lang/*.c passes/*.c passes/*/*.c emit/*.c 2>/dev/null)
[ -z "$found" ] || { echo "$found"; complain "memory of lang, passes and emit comes from arenas"; }

found=$(echo "$hand_written" | xargs grep -nE '[ 	]+$' 2>/dev/null | head -n 20)
[ -z "$found" ] || { echo "$found"; complain "trailing blanks"; }
found=$(echo "$c_files" | xargs awk '
    length($0) > 100 { if (!count[FILENAME]++) first[FILENAME] = FNR }
    END { for (f in count) print f ":" first[f] ": " count[f] " lines over 100 columns" }' | sort)
[ -z "$found" ] || { echo "$found"; complain "lines are too long"; }
found=$(find lang compiler passes emit runtime -name '*.h' | while read -r file; do
    grep -q '^#ifndef .*_H_*$' "$file" || echo "$file"
done)
[ -z "$found" ] || { echo "$found"; complain "headers without an include guard"; }

if command -v clang-format >/dev/null 2>&1; then
    version=$(clang-format --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
    if [ "${version:-0}" -ge 14 ]; then
        # Versions differ in small things, so this is a report, not a failure.
        for file in $c_files; do
            count=$(clang-format --dry-run "$file" 2>&1 | grep -c 'warning: code should be')
            [ "$count" -eq 0 ] || echo "lint: note: $file: clang-format would change $count places"
        done
    fi
fi

if [ "$bad" -eq 0 ]; then
    echo "lint: clean"
else
    echo "lint: $bad complaints"
    exit 1
fi
