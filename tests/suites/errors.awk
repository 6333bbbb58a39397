# Every place in C sources that gives a diagnostic its number: awk -f errors.awk FILE...
#
# Comments go, the rest becomes tokens. diag_error and diag_warn take a number; so does each function
# that hands its own parameter `int id` on to one that does. A call of one of these with a literal
# number gives the line
#     CODE <tab> FILE:LINE <tab> TEXT
# with E0214 or W0262 as CODE and the strings behind the number as TEXT. A number that is neither literals nor such an `id` is a
# fault, because the list would not be whole: a line `fault` and exit status 1.
FNR == 1 { comment = 0 }
{
    rest = $0
    while (rest != "") {
        if (comment) {
            end = index(rest, "*/")
            rest = end ? substr(rest, end + 2) : ""
            comment = !end
            continue
        }
        if (!match(rest, /^("([^"\\]|\\.)*"|'([^'\\]|\\.)*'|[A-Za-z0-9_]+|[ \t]+)/))
            RLENGTH = 1
        word = substr(rest, 1, RLENGTH)
        two = substr(rest, 1, 2)
        if (two == "//")
            break
        comment = two == "/*"
        rest = substr(rest, comment ? 3 : RLENGTH + 1)
        if (!comment && word !~ /^[ \t]/) {
            token[++n] = word
            at[n] = FILENAME ":" FNR
        }
    }
}

# The ')' of the '(' at i; from[k] and to[k] get the tokens of argument k.
function arguments(i, depth, k, open) {
    count = depth = 0
    open = i
    for (k = i; k <= n; k++) {
        if (token[k] ~ /^[][(){},]$/ && token[k] != ",")
            depth += token[k] ~ /^[[({]$/ ? 1 : -1
        if (depth == 0 || (depth == 1 && token[k] == ",")) {
            from[count] = open + 1
            to[count++] = k - 1
            open = k
        }
        if (depth == 0)
            return k
    }
    return n
}

# Functions with a parameter `int id`, and where their bodies lie.
function find_functions(i, k, stop, depth) {
    for (i = 2; i < n; i++) {
        if (token[i] != "(" || token[i - 1] !~ /^[A-Za-z_]/ || !(i in holds_id))
            continue
        stop = arguments(i)
        for (k = 0; k < count; k++)
            if (to[k] - from[k] == 1 && token[from[k]] == "int" && token[to[k]] == "id") {
                place[token[i - 1]] = k
                declared[i] = 1
                depth = token[stop + 1] == "{" ? 1 : 0
                for (stop += 2; depth > 0; stop++) {
                    depth += (token[stop] == "{") - (token[stop] == "}")
                    owner[stop] = token[i - 1]
                }
            }
    }
}

# Looks at all calls of functions that give numbers; the last time it prints them.
function visit(last, i, k, a, text, given, number, grown) {
    for (i = 2; i < n; i++) {
        if (token[i] != "(" || !(token[i - 1] in gives) || (i in declared))
            continue
        arguments(i)
        a = place[token[i - 1]]
        if (from[a] == to[a] && token[from[a]] == "id" && owner[i] in place) {
            grown += !(owner[i] in gives)
            gives[owner[i]] = gives[token[i - 1]]
            continue
        }
        if (!last)
            continue
        text = given = ""
        for (k = from[a]; k <= to[a]; k++)
            given = given token[k]
        for (k = to[a] + 1; k <= to[count - 1]; k++)
            if (token[k] ~ /^"/)
                text = text substr(token[k], 2, length(token[k]) - 2)
        # A literal, or a choice between two.
        if (given !~ /^([^?]*[?][0-9]+:)?[0-9]+$/) {
            print "fault\t" at[i] "\tthe number of this message cannot be read"
            status = 1
            continue
        }
        sub(/^.*[?]/, "", given)
        split(given, number, ":")
        for (k = 1; k in number; k++)
            printf "%s%04d\t%s\t%s\n", gives[token[i - 1]], number[k], at[i], text
    }
    return grown
}

END {
    for (i = 3; i <= n; i++)
        if (token[i] == "id" && token[i - 1] == "int") {
            depth = 0
            for (k = i; k > 0 && depth <= 0; k--)
                depth += (token[k] == "(") - (token[k] == ")")
            holds_id[k + 1] = 1
        }
    find_functions()
    gives["diag_error"] = "E"
    gives["diag_warn"] = "W"
    while (visit(0))
        ;
    visit(1)
    exit status
}
