# mdlc: the man page mdlc(1) from `mdlc --help` and README.md. Needs roff.awk in front of it.

function tag(name, text) {
    print ".TP\n\\fB" roff_text(name) "\\fR"
    print (text == "" ? "\\&" : roff_line(roff_text(text)))
}

# ---- the help ----
FNR == NR && FNR == 1 {
    roff_head("mdlc", 1, "compiler for the training of neural networks")
    sub(/^usage: mdlc */, "")
    print ".SH SYNOPSIS\n.B mdlc\n" roff_line(roff_text($0))
    next
}
FNR == NR && /^[a-z]+:$/ {
    sub(/:$/, "")
    help = help_at[$0] = ++helps
    title[help] = toupper($0)
    next
}
FNR == NR && /^exit: / {
    sub(/^exit: /, "")
    codes = $0
    next
}
FNR == NR && /^  [^ ]/ {
    line[help] = line[help] substr($0, 3) "\n"
    next
}
FNR == NR && /^   / {
    sub(/^ +/, "")
    sub(/\n$/, " ", line[help])
    line[help] = line[help] $0 "\n"
    next
}

# ---- README.md: what it is, and what is done by hand ----
/^#/ { part = $0; paragraphs = 0 }
/^```/ {
    fence = !fence
    if (part == "## Try it" && by_hand)
        example = example $0 "\n"
    if (!fence)
        by_hand = 0
    next
}
fence {
    if (part == "## Try it" && by_hand)
        example = example sub_build($0) "\n"
    next
}
/^By hand:$/ { by_hand = 1 }
/^# / { next }
part ~ /^# / && NF && !told { about = about $0 "\n"; next }
about != "" { told = 1 }
/^The emitted file needs none/ { behind = 1 }
behind && NF == 0 { behind = 0 }
behind {
    gsub(/ \(\[[0-9]+\]\([^)]*\)\)/, "") # decisions, which are not installed
    notes = notes $0 "\n"
}

function sub_build(s) {
    sub(/^build\//, "", s)
    return s
}

function markdown(s,    n, i, part) {
    n = split(s, part, "\n")
    for (i = 1; i < n; i++)
        roff_markdown(part[i])
    roff_end()
}

END {
    print ".SH DESCRIPTION"
    fresh = 1
    markdown(about)
    for (i = 1; i <= helps; i++) {
        print ".SH " title[i]
        n = split(line[i], row, "\n")
        for (k = 1; k < n; k++) {
            # A tag ends at two blanks; one that is too long for that at a word that is none.
            if (!match(row[k], /  +/) && row[k] !~ /^-[^ ]*, -[^ ]*$/)
                match(row[k], / +/)
            if (RSTART > 0)
                tag(substr(row[k], 1, RSTART - 1), substr(row[k], RSTART + RLENGTH))
            else
                tag(row[k], "")
        }
    }
    print ".SH EXIT STATUS"
    n = split(codes, row, ", ")
    for (k = 1; k <= n; k++)
        tag(substr(row[k], 1, index(row[k], " ") - 1), substr(row[k], index(row[k], " ") + 1))
    print ".SH EXAMPLES"
    fresh = 1
    markdown(example)
    markdown(notes)
    print ".SH SEE ALSO\n.BR mdl (5)"
}
