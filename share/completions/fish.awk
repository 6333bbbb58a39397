# Completion for fish. Needs help.awk in front of it.
function quoted(s) {
    gsub(/\\/, "\\\\", s)
    gsub(/'/, "\\'", s)
    return "'" s "'"
}
END {
    print "# fish completion for mdlc, made from `mdlc --help`."
    print "complete -c mdlc -f"
    print "complete -c mdlc -k -a '(__fish_complete_suffix .mdl)'"
    for (i = 1; i <= commands; i++)
        printf "complete -c mdlc -n __fish_use_subcommand -a %s -d %s\n", command[i], quoted(command_text[command[i]])
    print "complete -c mdlc -n '__fish_seen_subcommand_from explain' -x -a '(mdlc explain 2>/dev/null | string replace \": \" \\t)'"
    for (i = 1; i <= options; i++) {
        name = option[i]
        kind = argument(name)
        line = "complete -c mdlc"
        if (option_of[name] != "")
            line = line " -n '__fish_seen_subcommand_from " option_of[name] "'"
        if (name ~ /^--/)
            line = line " -l " substr(name, 3)
        else if (length(name) == 2)
            line = line " -s " substr(name, 2)
        else
            line = line " -o " substr(name, 2)
        if (kind ~ /^words /)
            line = line (option_arg[name] ~ /^\[/ ? " -f -a '" : " -x -a '") substr(kind, 7) "'"
        else if (kind ~ /^files /)
            line = line " -r -F"
        else if (kind == "text")
            line = line " -x"
        print line " -d " quoted(option_text[name])
    }
}
