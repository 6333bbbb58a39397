# mdl: the man page mdl(5) from docs/language.md. Needs roff.awk in front of it.
FNR == 1 {
    roff_head("mdl", 5, "the language of models that mdlc compiles")
    print ".SH DESCRIPTION"
    fresh = 1
    next
}
# Contents, which a man page has no links for.
/^Contents:/ { contents = 1 }
contents {
    contents = NF > 0
    next
}
{
    # Numbers of sections are kept: the text refers to them.
    roff_markdown($0)
}
END {
    roff_end()
    print ".SH SEE ALSO\n.BR mdlc (1)"
}
