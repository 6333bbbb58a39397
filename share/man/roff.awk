# roff: Markdown as our pages use it, to the macros of man(7).
#
# Headings, paragraphs, lists, code blocks, tables (a row is a tag with its text), and in the text
# `code`, **bold**, *italic* and [links](). Used by mdl.awk and mdlc.awk, which say what is printed.

# Characters that mean something to roff, and those that it would set otherwise than they are.
function roff_text(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    gsub(/'/, "\\(aq", s)
    gsub(/`/, "\\(ga", s)
    gsub(/\^/, "\\(ha", s)
    gsub(/~/, "\\(ti", s)
    gsub(/"/, "\\(dq", s)
    return s
}

function roff_plain(s) {
    gsub(/\\\|/, "|", s)
    return roff_text(s)
}

# A line of text may not begin with a control character.
function roff_line(s) {
    sub(/^\./, "\\\\\\&.", s)
    return s
}

# A line of Markdown with its marks.
function roff_inline(s,    out, at, rest) {
    out = ""
    while (match(s, /`[^`]+`|\*\*[^*]+\*\*|\*[^* ][^*]*\*|\[[^]]+\]\([^)]*\)/)) {
        out = out roff_plain(substr(s, 1, RSTART - 1))
        at = substr(s, RSTART, RLENGTH)
        rest = substr(s, RSTART + RLENGTH)
        if (at ~ /^`/) {
            out = out "\\fB" roff_plain(substr(at, 2, length(at) - 2)) "\\fR"
        } else if (at ~ /^\*\*/) {
            out = out "\\fB" roff_plain(substr(at, 3, length(at) - 4)) "\\fR"
        } else if (at ~ /^\*/) {
            out = out "\\fI" roff_plain(substr(at, 2, length(at) - 2)) "\\fR"
        } else {
            sub(/\]\(.*/, "", at)
            out = out roff_inline(substr(at, 2))
        }
        s = rest
    }
    return out roff_plain(s)
}

function roff_head(name, section, what) {
    printf ".TH %s %s %s \"mdlc %s\"\n", toupper(name), section, date, version
    printf ".SH NAME\n%s \\- %s\n", name, what
}

function roff_heading(level, s) {
    roff_end()
    sub(/^#+ */, "", s)
    s = roff_text(s)
    print (level == 1 ? ".SH " toupper(s) : ".SS " s)
    fresh = 1
}

# A span of code may go over the end of a line, so a paragraph is set as one.
function roff_end(    s) {
    if (paragraph == "")
        return
    s = roff_inline(paragraph)
    if (before != "")
        print before
    else if (!fresh)
        print ".PP"
    print roff_line(s)
    paragraph = before = ""
    fresh = 0
}

# The cells of a row of a table into cell[1..n]. A bar in a cell has a backslash.
function roff_cells(s, cell,    n, i) {
    gsub(/\\\|/, "\001", s)
    sub(/^ *\| */, "", s)
    sub(/ *\| *$/, "", s)
    n = split(s, cell, / *\| */)
    for (i = 1; i <= n; i++)
        gsub("\001", "|", cell[i])
    return n
}

# A row: the first cell is the tag. The head of a table is a line of its own.
function roff_row(s, head,    cell, n, i, text) {
    n = roff_cells(s, cell)
    text = ""
    for (i = 2; i <= n; i++)
        if (cell[i] != "")
            text = text (text == "" ? "" : "; ") cell[i]
    if (head) {
        if (cell[1] text != "")
            printf "%s\\fI%s\\fR\n", (fresh ? "" : ".PP\n"), roff_text(cell[1] (cell[1] == "" || text == "" ? "" : ": ") text)
        return
    }
    print ".TP\n" roff_line(roff_inline(cell[1]))
    print (text == "" ? "\\&" : roff_line(roff_inline(text)))
    fresh = 0
}

# One line of a page. `fresh`: a heading is in front, which makes a paragraph begin.
function roff_markdown(s) {
    if (s ~ /^ *```/) {
        roff_end()
        print (code ? ".EE\n.RE" : (fresh ? "" : ".PP\n") ".RS 4\n.EX")
        code = !code
        fresh = 0
    } else if (code) {
        s = roff_text(s)
        print (s == "" ? "\\&" : roff_line(s))
    } else if (s ~ /^#/) {
        roff_heading(s ~ /^## / ? 1 : 2, s)
    } else if (s ~ /^ *\|[-| ]*\|$/) {
        return # the rule below the head of a table
    } else if (s ~ /^ *\|/) {
        roff_end()
        roff_row(s, !table)
        table = 1
        return
    } else if (s ~ /^ *$/) {
        roff_end()
    } else if (s ~ /^ *- /) {
        roff_end()
        before = ".IP \\(bu 2"
        sub(/^ *- /, "", s)
        paragraph = s
    } else {
        sub(/^ +/, "", s)
        paragraph = paragraph (paragraph == "" ? "" : " ") s
    }
    table = 0
}
