# Completion for zsh. Needs help.awk in front of it.
function quoted(s) {
    gsub(/'/, "'\\''", s)
    return "'" s "'"
}
function described(s) {
    gsub(/\\/, "\\\\", s)
    gsub(/\[/, "\\[", s)
    gsub(/\]/, "\\]", s)
    gsub(/:/, "\\:", s)
    return s
}
END {
    print "#compdef mdlc"
    print "# zsh completion for mdlc, made from `mdlc --help`."
    print "_mdlc_first() {"
    print "    local -a commands=("
    for (i = 1; i <= commands; i++)
        print "        " quoted(command[i] ":" described(command_text[command[i]]))
    print "    )"
    print "    _alternative 'commands:command:{ _describe -t commands command commands }' 'models:model:_files -g \"*.mdl\"'"
    print "}"
    print "_mdlc_rest() {"
    print "    if (( words[(I)explain] )); then"
    print "        local -a codes=(${(f)\"$(${words[1]} explain 2>/dev/null)\"})"
    print "        _describe -t codes message codes"
    print "    else"
    print "        _files -g '*.mdl'"
    print "    fi"
    print "}"
    print "_mdlc() {"
    print "    _arguments -S \\"
    for (i = 1; i <= options; i++) {
        name = option[i]
        arg = option_arg[name]
        kind = argument(name)
        action = ""
        if (kind ~ /^words /)
            action = "(" substr(kind, 7) ")"
        else if (kind ~ /^files /)
            action = "_files" (kind == "files *" ? "" : " -g \"" substr(kind, 7) "\"")
        what = arg
        gsub(/[^A-Za-z]/, " ", what)
        sub(/^ +/, "", what)
        spec = ((name == "-D" || name == "--in") ? "*" : "") name
        if (arg ~ /^\[/)
            spec = spec "=-[" described(option_text[name]) "]::" tolower(what) ":" action
        else if (arg != "")
            spec = spec (name ~ /^--/ ? "=" : name ~ /^-.$/ ? "+" : "") "[" described(option_text[name]) "]:" tolower(what) ":" action
        else
            spec = spec "[" described(option_text[name]) "]"
        print "        " quoted(spec) " \\"
    }
    print "        '1: :_mdlc_first' '2: :_mdlc_rest'"
    print "}"
    print "_mdlc \"$@\""
}
