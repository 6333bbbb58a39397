# Reads what faults.c logged of a program that saves: is each file on the disk before it gets the name
# that it is to have, and its folder behind that? Prints what is not so, and at the end how many files
# got the name GOAL (a part of it).
$1 == "open" {
    path[$2] = $3
    sub(/.\/$/, substr($3, length($3) - 1, 1), path[$2]) # a folder may be named with its slash
    of[$3] = $2
    dirty[$2] = 0
    folder[$2] = 0
}
$1 == "write" { dirty[$2] = 1 }
$1 == "fsync" {
    dirty[$2] = 0
    for (to in waits)
        if (path[$2] == waits[to]) delete waits[to]
}
$1 == "link" || $1 == "rename" {
    from = $2
    sub(/^\/proc\/self\/fd\//, "", from)
    if ($1 == "link") { fd = from; of[$3] = fd } else { fd = of[$2]; of[$3] = fd }
    if (index($3, goal) && $3 !~ /\.(old|tmp[^\/]*)$/) {
        count++
        if (fd == "") print $3 ": nobody wrote it"
        else if (dirty[fd]) print $3 ": gets its name before it is on the disk"
        place = $3
        if (!sub(/\/[^\/]*$/, "", place)) place = "."
        waits[$3] = place
    }
}
END {
    for (to in waits) print to ": its folder is not synced"
    print count + 0 " in place"
}
