# help: reads `mdlc --help` for the scripts beside this one, which print completions of a shell.
#
# Gives command[1..commands], its text in command_text, and option[1..options] with option_text,
# option_arg ("" for a flag, "FILE", "=SIZE", "[=FORMAT]"), and option_of: the commands that alone have
# it, "" where it is not of a few. Options stand in the lines that begin with '-', and in the texts of commands.

# Words that an option may be given; the text of the help is prose. The tests try each word of an
# option's text on the compiler and compare.
function values_of(name) {
    if (name == "--precision") return "f32 f64 bf16 f16"
    if (name == "--blas") return "builtin openblas"
    if (name == "--runtime") return "used whole"
    if (name == "--checks") return "none nan canary nan,canary"
    if (name == "--target") return "c cuda"
    if (name == "--color") return "auto always never"
    if (name == "--format" || name == "--report") return "text json"
    if (name == "--dump") return "ast build match repeats orders turns lookups parts chunk precision grad operands simplify hoist clean factor unroll merge halo layout narrow sums fma eval_parts remat sink thin final again lower plan"
    return ""
}

# Of what stands in the list of options and in the text of a command, the list says what it is.
function new_option(name, arg, text, of) {
    if (!(name in option_text)) {
        option[++options] = name
        option_of[name] = of
    } else if (of != "") {
        if (option_of[name] != "" && !belongs(name, of))
            option_of[name] = option_of[name] " " of
        return
    }
    option_arg[name] = arg
    option_text[name] = text
    if (of == "")
        option_of[name] = ""
}

function all_commands(between,    text, i) {
    for (i = 1; i <= commands; i++)
        text = text (i > 1 ? between : "") command[i]
    return text
}

function belongs(name, of) {
    return index(" " option_of[name] " ", " " of " ") > 0
}

# "-MD, -MF FILE" are two, of which the first takes no FILE; "--budget=SIZE" is one.
function option_names(s, text,    part, n, i, name, arg) {
    n = split(s, part, ", ")
    for (i = 1; i <= n; i++) {
        name = part[i]
        arg = ""
        if (match(name, /\[?[= ]/)) {
            arg = substr(name, RSTART)
            name = substr(name, 1, RSTART - 1)
            sub(/^ /, "", arg)
        }
        new_option(name, arg, text, "")
    }
}

# Options in the text of a command: "--entry NAME", "--format=text|json".
function command_options(name, text,    word, n, i, at, arg) {
    n = split(text, word, " ")
    for (i = 1; i <= n; i++) {
        if (word[i] !~ /^--[a-z]/)
            continue
        at = word[i]
        sub(/[,;:.]$/, "", at)
        sub(/[,;:.]$/, "", word[i + 1])
        arg = ""
        if (match(at, /=/)) {
            arg = substr(at, RSTART)
            at = substr(at, 1, RSTART - 1)
        } else if (word[i + 1] ~ /^[A-Z]+([=.]|$)/) {
            arg = word[i + 1]
        }
        new_option(at, arg, "of '" name "'", name)
    }
}

function line_end(    head, text) {
    if (pending == "")
        return
    if (match(pending, /  +/) || (pending !~ /^-[^ ]*, -[^ ]*$/ && match(pending, / /))) {
        head = substr(pending, 1, RSTART - 1)
        text = substr(pending, RSTART + RLENGTH)
    } else {
        head = pending
        text = ""
    }
    if (head ~ /^-/) {
        option_names(head, text)
    } else {
        sub(/ .*/, "", head)
        command[++commands] = head
        command_text[head] = text
        command_options(head, text)
    }
    pending = ""
}

/^  [^ ]/ { line_end(); pending = substr($0, 3); next }
/^   / { sub(/^ +/, ""); pending = pending " " $0; next }
{ line_end() }
END { line_end() }

# What the argument of an option is: "files GLOB", "words W...", "none", or "text".
function argument(name,    arg) {
    arg = option_arg[name]
    if (arg == "") return "none"
    if (values_of(name) != "") return "words " values_of(name)
    if (name == "-H") return "files *.h"
    if (name == "-MF") return "files *.d"
    if (match(arg, /FILE\.[a-z]+/)) return "files *" substr(arg, RSTART + 4, RLENGTH - 4)
    if (arg ~ /FILE/) return "files *"
    return "text"
}
