#!/bin/sh
# Every message has a code, every code a page in docs/errors and a case; the examples of the pages
# do what they say; `mdlc explain` prints the pages.
#
# The codes are read from the sources (errors.awk), so that a new message without a page or a case
# fails here. A page holds one example behind "Wrong:" and one behind "Right:", in a fence ```mdl
# (a model file: tests are run, right trains and entries compiled, anything else checked) or ```sh
# (commands in an empty folder with `mdlc` on the path and `samples` beside). The wrong one gives its
# code and no other, the right one no message at all.
set -u
. tests/lib.sh
root=$(pwd)
case $MDLC in /*) ;; *) MDLC=$root/$MDLC ;; esac
# Frames under ASan or without optimisation are several times as large, and E0361 nests 2000 levels of calls and expressions.
case $BUILD in *asan* | *cover*) ulimit -s 65536 ;; esac

# audit SITES PAGES CASES EXAMPLES OTHERS: prints what is missing. SITES is the output of errors.awk,
# PAGES a folder of pages, CASES one of expected messages. Where one model file cannot show a mistake
# a case is also the example of a page that is a command (in the folder EXAMPLES), and for memory,
# options, files and dumped graphs (600 and up) the code in one of the tests OTHERS.
audit() {
    ls "$2" | sed -n 's/\.md$//p' >"$scratch/pages"
    cat "$3"/*.err 2>/dev/null | grep -o '\[[EW][0-9]*\]' | tr -d '[]' | sort -u >"$scratch/cases"
    ls "$4" | sed -n 's/\.wrong\.sh$//p' >>"$scratch/cases"
    # shellcheck disable=SC2086
    cat $5 /dev/null | grep -oE '[EW]0[67][0-9]{2}|, [89][0-9]{2}[})]' | # the table of dumped graphs has numbers
        sed 's/^, \(.*\).$/E0\1/' | sort -u >>"$scratch/cases"
    cut -f 1 "$1" | sort -u >"$scratch/codes"
    awk -F '\t' '
        $1 == "fault" { print $2 ": " $3; next }
        ($1 in text) && text[$1] != $3 {
            print $1 ": two meanings, \"" text[$1] "\" at " place[$1] " and \"" $3 "\" at " $2
        }
        { text[$1] = $3; place[$1] = $2 }' "$1"
    awk -v pages="$scratch/pages" -v cases="$scratch/cases" -v folder="$2" '
        BEGIN {
            while ((getline line <pages) > 0) page[line] = 1
            while ((getline line <cases) > 0) tested[line] = 1
        }
        $1 == "fault" { next }
        { code[$1] = 1 }
        !($1 in page) { print $1 ": no page " folder "/" $1 ".md" }
        !($1 in tested) { print $1 ": no case expects it" }
        END { for (p in page) if (!(p in code)) print p ": a page for a code that nothing prints" }' "$scratch/codes"
}

# split PAGES FOLDER: the examples of all pages as FOLDER/CODE.wrong.mdl and so on, and in FOLDER/list
# a line `COMMAND FILE` for each; prints what is wrong with the form of a page.
split() {
    : >"$2/list"
    awk -v folder="$2" '
        function finish() {
            if (code != "" && (!seen["wrong"] || !seen["right"]))
                print code ": the page needs one example behind Wrong: and one behind Right:"
            split("", seen)
        }
        FNR == 1 {
            finish()
            code = FILENAME
            gsub(/^.*\/|\.md$/, "", code)
            part = ""
            inside = 0
            if (index($0, "# " code ": ") != 1)
                print code ": the page does not begin with \"# " code ": title\""
        }
        /^Wrong:$/ { part = "wrong" }
        /^Right:$/ { part = "right" }
        /^```/ {
            inside = !inside
            if (inside && part != "") {
                language = substr($0, 4)
                if (language != "mdl" && language != "sh")
                    print code ": a fence of neither mdl nor sh"
                if (seen[part]++)
                    print code ": two examples behind " part
                file = folder "/" code "." part "." language
                command = language == "sh" ? "sh" : "check"
                printf "" >file
            } else if (part != "") {
                print command, file >(folder "/list")
                close(file)
                part = ""
            }
            next
        }
        inside && part != "" {
            print >file
            if (command != "sh" && /^test "/)
                command = "test"
            else if (command == "check" && /^(train|entry) / && (part == "right" || code ~ /^.0[67]/))
                command = "compile"
        }
        END { finish() }' "$1"/*.md
}

# play LIST: runs each example, `COMMAND FILE`; prints what its place on the page does not promise.
play() {
    while read -r play_command play_file; do
        if [ "$play_command" = sh ]; then
            rm -rf "$scratch/play"
            mkdir "$scratch/play"
            ln -s "$root/samples" "$scratch/play/samples"
            (cd "$scratch/play" && PATH=$scratch/bin:$PATH sh "$play_file") >/dev/null 2>"$play_file.said"
        else
            play_out=/dev/null
            [ "$play_command" = compile ] || play_out=
            "$MDLC" "$play_command" "$play_file" ${play_out:+-o $play_out} >/dev/null 2>"$play_file.said"
        fi
        echo "$? $play_file"
    done <"$1" | awk '{
        name = $2
        sub(/^.*\//, "", name)
        code = substr(name, 1, index(name, ".") - 1)
        said = first = ""
        while ((getline line <($2 ".said")) > 0) {
            first = first == "" ? line : first
            if (match(line, /\[[EW][0-9]+\]$/)) {
                given = substr(line, RSTART + 1, RLENGTH - 2)
                if (index(" " said " ", " " given " ") == 0)
                    said = said (said == "" ? "" : " ") given
            }
        }
        close($2 ".said")
        wrong = name ~ /\.wrong\./
        if (wrong && said != code)
            print name ": gives \"" said "\", status " $1 ": " first
        else if (wrong && code ~ /^E/ && ($1 < 1 || $1 > 9))
            print name ": ends with status " $1
        else if (!wrong && ($1 != 0 || first != ""))
            print name ": ends with status " $1 ": " first
    }'
}

sources="lang/*.[chly] compiler/*.[ch] compiler/driver/*.[ch] passes/*.[ch] passes/*/*.[ch] emit/*.[ch]"
# test_base.c invents codes.
others=$(ls tests/unit/*.c tests/suites/*.sh | grep -vE "errors.sh|test_base.c")
mkdir "$scratch/bin" "$scratch/examples"
ln -s "$MDLC" "$scratch/bin/mdlc"

# The codes, their pages and cases.
# shellcheck disable=SC2086
awk -f tests/suites/errors.awk $sources >"$scratch/sites"
codes=$(cut -f 1 "$scratch/sites" | sort -u | grep -c '^[EW]')
[ "$codes" -gt 300 ] && pass || fail "codes" "only $codes were found in the sources"
split docs/errors "$scratch/examples" >"$scratch/faults"
audit "$scratch/sites" docs/errors tests/cases/error "$scratch/examples" "$others" >>"$scratch/faults"
bad=$(cut -d : -f 1 "$scratch/faults" | sort -u | grep -cxf "$scratch/codes")
passed=$((passed + codes - bad))

# The examples.
play "$scratch/examples/list" >"$scratch/misplayed"
passed=$((passed + $(wc -l <"$scratch/examples/list") - $(wc -l <"$scratch/misplayed")))
cat "$scratch/misplayed" >>"$scratch/faults"
while read -r line; do fail "$line"; done <"$scratch/faults"

# explain prints them: the list, and each page with its examples set off instead of fenced.
"$MDLC" explain >"$scratch/list" && pass || fail "explain" "status $?"
awk 'FNR == 1 { sub(/^# /, ""); print }' docs/errors/E*.md docs/errors/W*.md >"$scratch/titles"
same "explain: the list" "$scratch/titles" "$scratch/list"
awk 'FNR == 1 { sub(/^# /, "") } /^```/ { inside = !inside; next } { print (inside && $0 != "" ? "    " : "") $0 }' \
    docs/errors/E*.md docs/errors/W*.md >"$scratch/expected"
while IFS=: read -r code title; do "$MDLC" explain "$code"; done <"$scratch/titles" >"$scratch/out" 2>&1
same "explain: the pages" "$scratch/expected" "$scratch/out"
for form in E0205 e0205 205 0205 W0205; do
    "$MDLC" explain $form 2>&1 | grep -q '^E0205: ' && pass || fail "explain $form"
done
for form in E9999 frob E 20500 ''; do
    "$MDLC" explain "$form" >"$scratch/out" 2>"$scratch/said"
    [ $? -eq 2 ] && grep -q "no message with the code '$form'" "$scratch/said" && [ ! -s "$scratch/out" ] && pass ||
        fail "explain '$form'" "$(cat "$scratch/said")"
done

# Command lines that are nearly right name the cure.
says() { # STATUS PATTERN ARGUMENT...
    says_status=$1 says_pattern=$2
    shift 2
    (cd "$scratch/play" && "$MDLC" "$@" >"$scratch/out" 2>"$scratch/said")
    [ $? -eq "$says_status" ] && grep -q "$says_pattern" "$scratch/said" && pass || fail "mdlc $*" "$(cat "$scratch/said")"
}
rm -rf "$scratch/play"
mkdir "$scratch/play"
: >"$scratch/play/empty.mdl"
says 2 "no command 'chekc'; did you mean 'check'?" chekc empty.mdl
says 2 "no command 'chekc'; did you mean 'check'?" chekc
says 2 "no command 'trian': the program" trian empty.mdl
says 2 "no command 'frobnicate'" frobnicate empty.mdl
says 2 "a second one is 'b.mdl'" a.mdl b.mdl
says 2 "no command 'fit': the program" fit
says 4 "cannot open './fit'" ./fit
says 4 "cannot open 'frobnicate'" frobnicate
says 1 "'empty.mdl' has no train and no entry.*E0603" empty.mdl -o empty.c
says 2 'wants two reports' diff a.mdl
if [ -w /dev/full ]; then
    "$MDLC" samples/digits.mdl -o - 2>"$scratch/said" >/dev/full
    [ $? -eq 4 ] && grep -q 'write standard output' "$scratch/said" && pass || fail "full standard output" "$(cat "$scratch/said")"
    "$MDLC" explain 2>"$scratch/said" >/dev/full
    [ $? -eq 4 ] && grep -q 'write standard output' "$scratch/said" && pass || fail "full output of explain" "$(cat "$scratch/said")"
else
    skip "full standard output" "no /dev/full"
fi

# The audit itself: each planted fault is found, and nothing else.
mkdir "$scratch/planted" "$scratch/planted/pages" "$scratch/planted/cases"
cat >"$scratch/planted/a.c" <<'END'
/* diag_error(d, loc, 990, "a comment"); */
void diag_error(Diag *diag, Loc loc, int id, const char *fmt, ...);
void diag_warn(Diag *diag, Loc loc, int id, const char *fmt, ...);
void wrap(Diag *d, int id, Loc loc) {
    diag_error(d, loc, id, "%s", text_of("a, (b"));
}
void other(Thing *t, int id);
void f(Diag *d, Loc loc) {
    diag_error(d, loc, 201, "all is well, %s", "diag_error(d, loc, 991, ...)");
    wrap(d, a ? 202 : 203, loc);
    diag_warn(d, loc, 204, "without page");
    diag_error(d, loc, 205, "without case");
    diag_error(d, loc, 206, "one");
    diag_error(d, loc, 206, "an" "other");
    diag_error(d, loc, chosen(7), "of unknown number");
    other(t, 992);
}
END
awk -f tests/suites/errors.awk "$scratch/planted/a.c" >"$scratch/planted/sites"
for code in E0201 E0202 E0203 E0205 E0206 E0207; do
    printf '# %s: a title\n\nWrong:\n\n```mdl\nx\n```\n\nRight:\n\n```mdl\ny\n```\n' $code >"$scratch/planted/pages/$code.md"
done
printf '# E0201 no colon\n\nWrong:\n\n```mdl\nx\n```\n' >"$scratch/planted/pages/E0201.md"
for code in E0201 E0202 E0203 W0204 E0206; do
    echo "a.mdl:1:1: error: m [$code]" >"$scratch/planted/cases/$code.err"
done
mkdir "$scratch/planted/examples"
{
    split "$scratch/planted/pages" "$scratch/planted/examples"
    audit "$scratch/planted/sites" "$scratch/planted/pages" "$scratch/planted/cases" "$scratch/planted/examples" ""
} | sed "s|$scratch/planted/||g" | sort >"$scratch/planted/found"
cat >"$scratch/planted/expected" <<'END'
E0201: the page does not begin with "# E0201: title"
E0201: the page needs one example behind Wrong: and one behind Right:
E0205: no case expects it
E0206: two meanings, "one" at a.c:13 and "another" at a.c:14
E0207: a page for a code that nothing prints
W0204: no page pages/W0204.md
a.c:15: the number of this message cannot be read
END
same "planted faults" "$scratch/planted/expected" "$scratch/planted/found"
for name in E0205.right E0206.wrong; do echo 'const a = b;' >"$scratch/planted/$name.mdl"; done
echo 'const a = 1;' >"$scratch/planted/E0205.wrong.mdl"
printf 'const a = b;\nop f(x: [4]) -> [4] { return y; }\n' >"$scratch/planted/E0203.wrong.mdl"
echo 'mdlc explain 205; exit 1' >"$scratch/planted/E0205.right.sh"
for file in "$scratch"/planted/*.mdl; do echo "check $file"; done >"$scratch/planted/list"
echo "sh $scratch/planted/E0205.right.sh" >>"$scratch/planted/list"
[ "$(play "$scratch/planted/list" | wc -l)" -eq 5 ] && pass || fail "planted examples" "$(play "$scratch/planted/list")"
summary errors
