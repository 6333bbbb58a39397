#!/bin/sh
# What is installed works where it has been moved to, and goes again: man pages without a warning,
# completions of bash, zsh and fish that know what the compiler takes, syntax of editors with the words
# of lang/word.c, the flags of emitted files in the files for build systems.
set -u
. tests/lib.sh
. tests/installed.sh
installed || { summary install; exit 1; }
mdlc=$prefix/bin/mdlc

# ---- the prefix ----
check "the compiler runs" "$mdlc" samples/digits.mdl -o "$scratch/digits.c"
version=$("$MDLC" --version | sed -n '1s/^mdlc //p')
for module in lang/*.mdl lang/*/*.mdl; do
    same "$module" "$module" "$prefix/share/mdlc/lib/${module#lang/}"
done
same "the module for Python" samples/hosts/mdlc_host.py "$prefix/share/mdlc/python/mdlc_host.py"
# Nothing installed knows where it was built or first put.
grep -rIl -e "$scratch/first" -e "$(pwd)" "$prefix" >"$scratch/paths"
[ ! -s "$scratch/paths" ] && pass || fail "a path of the build" "$(cat "$scratch/paths")"

# ---- flags: those of the header comment ----
wanted=$(sed -n 's/^ \*     cc \(.*\) digits\.c -lm -o digits$/\1/p' "$scratch/digits.c" | tr ' ' '\n' | grep -v -x -e -fopenmp | sort)
given=$(sed -n 's/^cflags_[a-z]*=//p' "$prefix/share/pkgconfig/mdlc.pc" | tr ' ' '\n' | sort)
[ -n "$wanted" ] && [ "$wanted" = "$given" ] && pass || fail "flags of mdlc.pc" "$given, not $wanted"
given=$(sed -n 's/^ *set(MDLC_DEFAULT_C_FLAGS[A-Z_]* \(-.*\))$/\1/p' "$prefix/share/cmake/mdlc/mdlcConfig.cmake" | tr ' ' '\n' | sort)
[ "$wanted" = "$given" ] && pass || fail "flags of mdlcConfig.cmake" "$given, not $wanted"

# ---- docs/building.md knows what there is ----
sed -n '/cmake_parse_arguments/,/)/p' share/cmake/mdlcAddModel.cmake | grep -oE '"[A-Z;]+"' | tr -d '"' | tr ';' '\n' >"$scratch/keywords"
sed -n 's/^\([a-z_]*\)=.*/\1/p' "$prefix/share/pkgconfig/mdlc.pc" | grep -vx prefix >>"$scratch/keywords"
[ "$(wc -l <"$scratch/keywords")" -ge 15 ] && pass || fail "keywords" "$(tr '\n' ' ' <"$scratch/keywords")"
while IFS= read -r keyword; do
    grep -qE "^\\|.*\`$keyword[ \`]" docs/building.md && pass || fail "docs/building.md" "does not know $keyword"
done <"$scratch/keywords"

# ---- man pages ----
for page in man1/mdlc.1 man5/mdl.5; do
    file=$prefix/share/man/$page
    if have mandoc; then
        mandoc -T lint -W warning "$file" >"$scratch/lint" 2>&1 && [ ! -s "$scratch/lint" ] && pass || fail "$page: mandoc" "$(head -n 3 "$scratch/lint")"
    else
        skip "$page: mandoc" "not installed"
    fi
    # In slim images `man` is a script that says so.
    if have man && have groff && man --version >/dev/null 2>&1; then
        LC_ALL=C.UTF-8 man --warnings -l "$file" 2>&1 >"$scratch/page" | grep -v '^man: ' >"$scratch/lint"
        [ -s "$scratch/page" ] && [ ! -s "$scratch/lint" ] && pass || fail "$page: man" "$(head -n 3 "$scratch/lint")"
    else
        skip "$page: man" "man or groff is not installed"
    fi
done
# Any awk makes the same pages.
for awk in mawk gawk original-awk "busybox awk"; do
    # shellcheck disable=SC2086
    $awk 'BEGIN { exit 0 }' 2>/dev/null || { skip "pages by $awk" "not installed"; continue; }
    date=$(sed -n 's/^\.TH MDL 5 \([^ ]*\) .*/\1/p' "$prefix/share/man/man5/mdl.5")
    $awk -v version="$version" -v date="$date" -f share/man/roff.awk -f share/man/mdl.awk docs/language.md >"$scratch/page"
    same "mdl(5) by $awk" "$prefix/share/man/man5/mdl.5" "$scratch/page"
    for shell in bash fish; do
        $awk -f share/completions/help.awk -f share/completions/$shell.awk "$BUILD/share/help.txt" >"$scratch/page"
        same "$shell by $awk" "$BUILD/share/mdlc.$shell" "$scratch/page"
    done
done
# Plain text of a page's source: what it says of options is what the help says.
plain() { sed -e 's/\\f[BRI]//g' -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/\\(dq/"/g' "$1"; }
plain "$prefix/share/man/man1/mdlc.1" >"$scratch/mdlc.1"
"$mdlc" --help >"$scratch/help"
grep -oE '^  [-a-z][^ ]*' "$scratch/help" | tr -d ', ' >"$scratch/tags"
[ "$(wc -l <"$scratch/tags")" -gt 20 ] && pass || fail "the help has few options" "$(wc -l <"$scratch/tags")"
while IFS= read -r word; do
    grep -qF -e "$word" "$scratch/mdlc.1" && pass || fail "mdlc(1)" "does not know $word"
done <"$scratch/tags"
for code in 0 1 2 3 4 70; do
    grep -qx "$code" "$scratch/mdlc.1" && pass || fail "mdlc(1)" "does not know the status $code"
done
for part in NAME SYNOPSIS DESCRIPTION COMMANDS OPTIONS 'EXIT STATUS' EXAMPLES 'SEE ALSO'; do
    [ "$(sed -n "/^\.SH $part\$/,/^\.SH/p" "$scratch/mdlc.1" | grep -vc '^\.SH')" -gt 0 ] && pass || fail "mdlc(1)" "nothing under $part"
done
plain "$prefix/share/man/man5/mdl.5" >"$scratch/mdl.5"
sed -n 's/^## *//p' docs/language.md >"$scratch/parts"
while IFS= read -r part; do
    grep -qxF ".SH $(printf '%s' "$part" | tr '[:lower:]' '[:upper:]')" "$scratch/mdl.5" && pass || fail "mdl(5)" "no section $part"
done <"$scratch/parts"

# ---- completions: bash ----
bash_file=$prefix/share/bash-completion/completions/mdlc
# complete WORD...: what bash offers for the last word, as it splits a line.
cat >"$scratch/complete.bash" <<'END'
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_mdlc
printf '%s\n' "${COMPREPLY[@]}"
END
complete() { PATH="$prefix/bin:$PATH" bash "$scratch/complete.bash" "$bash_file" "$@" | sort | tr '\n' ' '; }
offers() { # NAME EXPECTED WORD...
    offers_name=$1 offers_expected=$2
    shift 2
    offers_got=$(complete "$@")
    [ "$offers_got" = "$offers_expected" ] && pass || fail "bash: $offers_name" "'$offers_got', not '$offers_expected'"
}
mkdir -p "$scratch/files/folder"
touch "$scratch/files/net.mdl" "$scratch/files/other.c" "$scratch/files/x.npy"
here=$(pwd)
if have bash; then
    check "bash: its syntax" bash -n "$bash_file"
    offers "options" "--blas= --budget= " mdlc --b
    offers "values behind =" "openblas " mdlc --blas = op
    offers "values behind = where it breaks no words" "--blas=openblas " mdlc --blas=op
    offers "values as a word of their own" "canary nan nan,canary none " mdlc --checks ""
    offers "options of a command" "--calls --checks= --color= " mdlc run samples/digits.mdl --c
    offers "codes" "E0203 " mdlc explain E0203
    cd "$scratch/files" || exit 1
    case $MDLC in /*) ;; *) MDLC=$here/$MDLC ;; esac
    bash_file=$bash_file offers "models and folders" "folder net.mdl " mdlc check ""
    offers "arrays" "folder x.npy " mdlc run net.mdl --in x = ""
    offers "commands" "compile " mdlc comp
    cd "$here" || exit 1
    complete mdlc run net.mdl -- | tr ' ' '\n' | sed -n 's/=$//; /^--/p' >"$scratch/long"
    complete mdlc report net.mdl --f | tr ' ' '\n' | sed 's/=$//' >>"$scratch/long"
else
    skip "bash" "not installed"
fi
# ---- what options take: asked of the compiler itself ----
# takes OPTION VALUE: is that no mistake on the command line?
takes() {
    case $1 in
    --format | --report) "$mdlc" report "$1=$2" samples/diabetes.mdl ;;
    --target) "$mdlc" --no-main "$1=$2" samples/diabetes.mdl -o "$scratch/x.c" ;;
    --dump) "$mdlc" "$1=$2" samples/diabetes.mdl ;;
    *) "$mdlc" "$1=$2" samples/diabetes.mdl -o "$scratch/x.c" ;;
    esac >/dev/null 2>&1
}
echo 'END { print values_of(o) }' >"$scratch/values.awk"
for option in --precision --blas --runtime --checks --target --color --format --report --dump; do
    values=" $(awk -v o="$option" -f share/completions/help.awk -f "$scratch/values.awk" "$scratch/help") "
    [ "$values" != "  " ] && pass || fail "completion of $option" "has no values"
    for value in $values; do
        takes "$option" "$value" && pass || fail "completion of $option" "mdlc does not take '$value'"
    done
    # Words of the help and, for stages, of the message that lists them.
    {
        awk -v o="$option" 'index($0, "  " o) == 1 { on = 1; print; next } /^   / { if (on) print; next } { on = 0 }' "$scratch/help"
        [ "$option" != --dump ] || "$mdlc" --dump=none samples/diabetes.mdl 2>&1
        echo text json
    } | tr -cs 'a-z0-9_' '\n' | sort -u >"$scratch/words"
    while IFS= read -r word; do
        case "$values" in *" $word "*) continue ;; esac
        [ -z "$word" ] || ! takes "$option" "$word" && pass || fail "completion of $option" "mdlc takes '$word' too"
    done <"$scratch/words"
done

# ---- zsh, fish ----
if have zsh; then
    check "zsh: its syntax" zsh -n "$prefix/share/zsh/site-functions/_mdlc"
    # What a user sees behind `mdlc --bl` and Tab, in a terminal of zsh's own.
    cat >"$scratch/complete.zsh" <<'END'
zmodload zsh/zpty
cd $2
zpty shell 'zsh -f -i'
zpty -w shell "PS1=; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word; echo rea''dy"
zpty -r -m shell out '*ready*'
zpty -w -n shell "$3"$'\t'
zpty -w -n shell $'\C-a: \C-e; echo do\'\'ne\n'
zpty -r -m shell out $'*\ndone*'
print -r -- "$out"
zpty -d shell
END
    for pair in 'mdlc --bud|mdlc --budget=' 'mdlc --blas=o|mdlc --blas=openblas' 'mdlc check n|mdlc check net.mdl' 'mdlc expl|mdlc explain' \
        'mdlc --dump=hal|mdlc --dump=halo'; do
        timeout 60 zsh -f "$scratch/complete.zsh" "$prefix/share/zsh/site-functions" "$scratch/files" "${pair%%|*}" 2>&1 |
            sed "s/$(printf '\033')\\[[0-9;?]*[a-zA-Z]//g" >"$scratch/zsh"
        grep -qF -e "${pair##*|}" "$scratch/zsh" && pass || fail "zsh: ${pair%%|*}" "$(tr -d '\r' <"$scratch/zsh" | tail -n 3)"
    done
else
    skip "zsh" "not installed"
fi
if have fish; then
    fish_file=$prefix/share/fish/vendor_completions.d/mdlc.fish
    check "fish: its syntax" fish -n "$fish_file"
    for pair in 'mdlc --blas=o|--blas=openblas' 'mdlc --bud|--budget' 'mdlc run a.mdl --cal|--calls' 'mdlc expl|explain' 'mdlc check n|net.mdl' 'mdlc explain E020|E0203'; do
        (cd "$scratch/files" && PATH="$prefix/bin:$PATH" HOME=$scratch fish -c "source '$fish_file'; complete -C '${pair%%|*}'") >"$scratch/fish" 2>&1
        cut -f1 "$scratch/fish" | grep -qxF -e "${pair##*|}" -e "${pair##*|}=" && pass || fail "fish: ${pair%%|*}" "$(head -n 3 "$scratch/fish")"
    done
else
    skip "fish" "not installed"
fi
# Every option of bash's is one of the others.
if [ -s "$scratch/long" ]; then
    while IFS= read -r option; do
        grep -qF -e "'$option" -e "*$option" "$prefix/share/zsh/site-functions/_mdlc" && pass || fail "zsh" "does not know $option"
        grep -qF -e " -l ${option#--}" "$prefix/share/fish/vendor_completions.d/mdlc.fish" && pass || fail "fish" "does not know $option"
        "$mdlc" "$option" 2>&1 | grep -q 'unknown option' && fail "bash" "offers $option, which mdlc does not know" || pass
    done <"$scratch/long"
fi

# ---- editors ----
# The words of a class, from the table of the compiler.
class() { sed -n "s/^    {\"\([a-z]*\)\", WORD_$1, T_[A-Z]*},\$/\1/p" lang/word.c | sort -u; }
listed() { tr -cs 'a-z0-9' '\n' | sort -u | sed '/^$/d'; }
vim=$prefix/share/vim/vimfiles/syntax/mdl.vim grammar=$prefix/share/mdlc/vscode/mdl.tmLanguage.json
vim_words() { sed -n -e "s/^syntax keyword mdl$1 \(.*\)/\1/p" -e "s/^syntax match mdl$1 .*<%(\([a-z|]*\))>.*/\1/p" "$vim" | listed; }
grammar_words() { sed -n "s/.*\"$1\.mdl\", \"match\": \"[^\"]*(\([a-z0-9|]*\))\\\\\\\\b.*/\1/p" "$grammar" | listed; }
words() { # NAME EXPECTED GOT
    [ -n "$2" ] && [ "$2" = "$3" ] && pass || fail "$1" "$(printf '%s\n' "$3" | tr '\n' ' ')and not $(printf '%s\n' "$2" | tr '\n' ' ')"
}
folds='argmax argmin max mean min prod sum'
words "vim: reserved words" "$(class RESERVED)" "$({ vim_words Reserved; vim_words Fold; } | sort -u)"
words "vim: folds" "$(echo "$folds" | listed)" "$(vim_words Fold)"
words "grammar: reserved words" "$(class RESERVED)" "$({ grammar_words keyword.control; grammar_words support.function.fold; } | sort -u)"
for pair in ITEM:Item:storage.type.item INNER:Inner:storage.modifier HEAD:Head:keyword.other.head; do
    rest=${pair#*:}
    words "vim: ${pair%%:*}" "$(class "${pair%%:*}")" "$(vim_words "${rest%%:*}")"
    words "grammar: ${pair%%:*}" "$(class "${pair%%:*}")" "$(grammar_words "${rest#*:}")"
done
# `optimizer` is an item and a clause.
words "vim: clauses" "$({ class CLAUSE; echo optimizer; } | sort -u)" "$(vim_words Clause)"
words "grammar: clauses" "$({ class CLAUSE; echo optimizer; } | sort -u)" "$(grammar_words keyword.other.clause)"
units=$(sed -n 's/^UNIT  *//p' lang/lex.l)
grep -qF "%($units)" "$vim" && pass || fail "vim: units" "not $units"
grep -qF "($units)" "$grammar" && pass || fail "grammar: units" "not $units"
if have python3; then
    for file in "$grammar" "$prefix/share/mdlc/vscode/package.json" "$prefix/share/mdlc/vscode/language-configuration.json"; do
        check "$(basename "$file") is JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$file"
    done
else
    skip "JSON of the editors" "python3 is not installed"
fi
if have vim && vim --version | grep -q '+syntax'; then
    cat >"$scratch/net.mdl" <<'END'
use nn;
model net(x: [4]) -> [4] { return x |> fc1: linear(out = 4); }
train fit of net on d[B] {
    loss mean(net(x)^2); // a comment
    budget 160 MiB;
    steps = 3;
}
END
    cat >"$scratch/look.vim" <<END
syntax on
edit $scratch/net.mdl
redir! > $scratch/vim.out
echo &filetype
for [l, w] in [[1, 'use'], [2, 'return'], [2, 'fc1'], [3, 'train'], [3, 'on'], [4, 'loss'], [4, 'mean'], [4, 'comment'], [5, 'budget'], [5, '160'], [6, 'steps']]
    echo w synIDattr(synID(l, match(getline(l), '\<' . w) + 1, 1), 'name')
endfor
redir END
quit!
END
    FILES=$prefix/share/vim/vimfiles vim -u NONE -i NONE -n -es --cmd 'set nocompatible' \
        --cmd 'let &runtimepath = escape($FILES, " ") . "," . &runtimepath' --cmd 'filetype on' -S "$scratch/look.vim" \
        </dev/null >/dev/null 2>&1
    printf '%s\n' mdl 'use mdlItem' 'return mdlReserved' 'fc1 mdlLabel' 'train mdlItem' 'on mdlHead' 'loss mdlClause' 'mean mdlFold' \
        'comment mdlComment' 'budget mdlClause' '160 mdlNumber' 'steps ' >"$scratch/vim.expected"
    awk 'NF' "$scratch/vim.out" >"$scratch/vim.got"
    same "vim: what a text is made of" "$scratch/vim.expected" "$scratch/vim.got"
else
    skip "vim" "not installed, or without syntax"
fi

# ---- other ways to install, and removing ----
sed -i.bak 's|^bin/mdlc$|&\nshare/mdlc/of-an-older-version|' "$prefix/share/mdlc/manifest"
touch "$prefix/share/mdlc/of-an-older-version" "$prefix/bin/of somebody else"
check "an installation over another" plain_make install BUILD="$BUILD" PREFIX="$prefix"
[ ! -e "$prefix/share/mdlc/of-an-older-version" ] && pass || fail "a file that is no longer part of it stays"
check "uninstall" plain_make uninstall BUILD="$BUILD" PREFIX="$prefix"
rm -f "$prefix/share/mdlc/manifest.bak"
[ "$(find "$prefix" -type f)" = "$prefix/bin/of somebody else" ] && pass || fail "uninstall leaves" "$(find "$prefix" -type f | head -n 3)"
rm -r "$prefix"
stage="$scratch/a stage"
check "DESTDIR" plain_make install BUILD="$BUILD" DESTDIR="$stage" PREFIX=/opt/mdlc
[ -x "$stage/opt/mdlc/bin/mdlc" ] && pass || fail "DESTDIR" "no compiler there"
check "uninstall with DESTDIR" plain_make uninstall BUILD="$BUILD" DESTDIR="$stage" PREFIX=/opt/mdlc
[ -z "$(ls -A "$stage/opt/mdlc")" ] && pass || fail "uninstall leaves" "$(find "$stage/opt/mdlc" | head -n 3)"
plain_make uninstall BUILD="$BUILD" DESTDIR="$stage" PREFIX=/opt/mdlc >"$scratch/log" 2>&1 && fail "uninstall twice" "is silent" || pass
grep -q 'nothing to remove' "$scratch/log" && pass || fail "uninstall twice" "$(cat "$scratch/log")"
# One that was cut off can be removed as well.
rm -rf "$stage"
mkdir "$stage"
printf '644 LICENSE share/doc/one\n644 no-such-file share/doc/two\n' | sh share/install.sh install "$stage" >"$scratch/log" 2>&1 &&
    fail "an installation that was cut off" "says it is well" || pass
[ -f "$stage/share/doc/one" ] && pass || fail "an installation that was cut off" "installs nothing"
check "an installation that was cut off: removed" sh share/install.sh uninstall "$stage"
[ -z "$(ls -A "$stage")" ] && pass || fail "an installation that was cut off" "$(find "$stage")"
# Others may read it, whatever the umask.
(umask 077 && plain_make install BUILD="$BUILD" DESTDIR="$stage" PREFIX=/opt/mdlc >/dev/null 2>&1)
[ -z "$(find "$stage/opt/mdlc/share" ! -perm -044)" ] && pass || fail "umask 077" "$(find "$stage/opt/mdlc/share" ! -perm -044 | head -n 2)"
# A manifest is no way out of its folder.
mkdir -p "$stage/opt/mdlc/share/mdlc"
touch "$stage/kept"
printf 'bin/mdlc\n../../kept\n' >"$stage/opt/mdlc/share/mdlc/manifest"
plain_make uninstall BUILD="$BUILD" DESTDIR="$stage" PREFIX=/opt/mdlc >"$scratch/log" 2>&1 && fail "a manifest that leads out" "is taken" || pass
[ -e "$stage/kept" ] && pass || fail "a manifest that leads out" "a file outside is gone"
summary install
