# The worst chain of frames below some functions, from a call graph of gcc (-fcallgraph-info=su).
# With -v roots="f g": prints "bytes chain", or "recursion chain" where a chain meets itself. Parts,
# blocks and copies of products and epilogues are called through pointers, bodies of parallel regions by the OpenMP library.
function field(line, key,    at) {
    at = index(line, key ": \"")
    line = substr(line, at + length(key) + 3)
    return substr(line, 1, index(line, "\"") - 1)
}
function plain(title) {
    sub(/^.*:/, "", title)
    return title
}
function edge(from, to) {
    if (!((from, to) in known)) {
        known[from, to] = 1
        callee[from, count[from]++] = to
    }
}
function worst(f,    i, most, most_chain, to) {
    if (state[f] == 2) return below[f]
    state[f] = 1
    most = 0
    most_chain = ""
    for (i = 0; i < count[f]; i++) {
        to = callee[f, i]
        if (state[to] == 1) {
            if (recursion == "") recursion = f " -> " to
            continue
        }
        if (worst(to) > most) {
            most = below[to]
            most_chain = chain[to]
        }
    }
    state[f] = 2
    below[f] = frame[f] + most
    chain[f] = f "(" frame[f] + 0 ") " most_chain
    return below[f]
}
/^node:/ {
    name = plain(field($0, "title"))
    if (match($0, /[0-9]+ bytes \(/)) frame[name] = substr($0, RSTART, RLENGTH) + 0
    names[name] = 1
    if ($0 ~ /bytes \(dynamic\)/) unbounded = unbounded " " name
}
/^edge:/ {
    from = plain(field($0, "sourcename"))
    to = plain(field($0, "targetname"))
    if (to == "__indirect_call") indirect[from] = 1
    else edge(from, to)
}
END {
    for (name in names) {
        at = index(name, "._omp_fn")
        if (at > 0) {
            outer = substr(name, 1, at - 1)
            for (f in names) if (f == outer || index(f, outer ".") == 1) if (f !~ /_omp_fn/) edge(f, name)
        }
    }
    for (f in indirect) {
        if (f ~ /^md_tile_run/) {
            for (name in names) if (name ~ /_part($|\.)/ && name !~ /_omp_fn|^md_/) edge(f, name)
        } else if (f ~ /^md_tile|_part($|\.)/) {
            for (name in names) if (name ~ /_(epilogue|copy|tile_block)($|\.)/) edge(f, name)
        }
    }
    n = split(roots, root, " ")
    for (i = 1; i <= n; i++) {
        if (!(root[i] in names)) {
            print "missing " root[i]
            exit
        }
        if (worst(root[i]) > most) {
            most = below[root[i]]
            best = chain[root[i]]
        }
    }
    if (recursion != "") print "recursion " recursion
    else if (unbounded != "") print "unbounded" unbounded
    else print most " " best
}
