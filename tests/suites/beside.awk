# Numbers beside what they have to be: awk -f beside.awk WANTED PRINTED
#
# A line is a name and its values; one word alone says which entry the lines behind it are of. What
# mdlc or a program prints of types and shapes is passed over. -v tolerance=T of the largest value of
# a line and 1, -v derived=T of names that begin with d or g, -v least=N lines at least, -v more=yes:
# lines that are not wanted may be there. Prints what is off and gives 1.
{ sub(/ f(32|64)/, ""); sub(/ ?\[[^]]*\] =/, " "); sub(/ = /, " ") }
NF == 1 { entry = $1; next }
FNR == NR { want[entry " " $1] = $0; n++; next }
!((entry " " $1) in want) {
    if (more != "yes") { print entry " " $0 " is not wanted"; bad++ }
    next
}
{
    k = split(want[entry " " $1], w, " ")
    off = k != NF
    scale = 1
    for (i = 2; i <= k; i++) {
        m = w[i] < 0 ? -w[i] : w[i]
        scale = m > scale ? m : scale
    }
    within = ($1 ~ /^[dg]/ ? derived : tolerance) * scale
    for (i = 2; i <= k && !off; i++) {
        d = w[i] - $i
        off = !((d < 0 ? -d : d) <= within)
    }
    if (off) { print entry " " $0 ", not " want[entry " " $1]; bad++ }
    seen++
}
END {
    if (seen != n || n < least) { print seen + 0 " values of " n + 0; bad++ }
    exit bad > 0
}
