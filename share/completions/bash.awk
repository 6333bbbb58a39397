# Completion for bash. Needs help.awk in front of it. '=' breaks words in bash, unless the user has
# changed that: both are handled.
END {
    print "# bash completion for mdlc, made from `mdlc --help`."
    print "_mdlc() {"
    print "    local current=${COMP_WORDS[COMP_CWORD]} option='' front='' i model='' command=''"
    print "    local before=${COMP_WORDS[COMP_CWORD - 1]}"
    print "    if [[ $current == = ]]; then"
    print "        option=$before current=''"
    print "    elif [[ $before == = && COMP_CWORD -ge 2 ]]; then"
    print "        option=${COMP_WORDS[COMP_CWORD - 2]}"
    print "        if [[ $option != -* && COMP_CWORD -ge 3 && ${COMP_WORDS[COMP_CWORD - 3]} == --in ]]; then"
    print "            option=--in"
    print "        fi"
    print "    elif [[ $current == --*=* ]]; then"
    print "        option=${current%%=*} front=$option= current=${current#*=}"
    print "    elif [[ $before == --report ]]; then"
    print "        option='' # it takes a value behind '=' alone"
    print "    else"
    print "        option=$before"
    print "    fi"
    print "    for ((i = 1; i < COMP_CWORD; i++)); do"
    printf "        case ${COMP_WORDS[i]} in\n        %s", all_commands(" | ")
    print ") [[ -n $command ]] || command=${COMP_WORDS[i]} ;;"
    print "        *.mdl) model=${COMP_WORDS[i]} ;;"
    print "        esac"
    print "    done"
    print "    compopt -o filenames 2>/dev/null"
    print "    case $option in"
    for (i = 1; i <= options; i++) {
        kind = argument(option[i])
        if (kind ~ /^words /)
            printf "    %s) compopt +o filenames 2>/dev/null\n        mapfile -t COMPREPLY < <(compgen -P \"$front\" -W '%s' -- \"$current\")\n        return ;;\n", \
                option[i], substr(kind, 7)
        else if (kind ~ /^files /)
            printf "    %s) mapfile -t COMPREPLY < <(compgen -d -- \"$current\"; compgen -f -X '!%s' -- \"$current\")\n        return ;;\n", \
                option[i], substr(kind, 7)
        else if (kind == "text")
            printf "    %s) return ;;\n", option[i]
    }
    print "    esac"
    print "    if [[ $current == -* ]]; then"
    print "        compopt +o filenames 2>/dev/null"
    printf "        local words='"
    for (i = 1; i <= options; i++) {
        name = option[i]
        if (option_of[name] == "")
            printf "%s%s%s", (k++ ? " " : ""), name, (option_arg[name] ~ /^=/ ? "=" : "")
    }
    print "'"
    print "        case $command in"
    for (i = 1; i <= commands; i++) {
        own = ""
        for (j = 1; j <= options; j++)
            if (belongs(option[j], command[i]))
                own = own " " option[j] (option_arg[option[j]] ~ /^=/ ? "=" : "")
        if (own != "")
            printf "        %s) words+='%s' ;;\n", command[i], own
    }
    print "        esac"
    print "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")"
    print "        [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null"
    print "        return"
    print "    fi"
    print "    if [[ $command == explain ]]; then"
    print "        compopt +o filenames 2>/dev/null"
    print "        mapfile -t COMPREPLY < <(compgen -W \"$(\"${COMP_WORDS[0]}\" explain 2>/dev/null | cut -d: -f1)\" -- \"$current\")"
    print "        return"
    print "    fi"
    print "    [[ -z $model ]] || return"
    print "    mapfile -t COMPREPLY < <("
    printf "        [[ -n $command ]] || compgen -W '%s", all_commands(" ")
    print "' -- \"$current\""
    print "        compgen -d -- \"$current\""
    print "        compgen -f -X '!*.mdl' -- \"$current\")"
    print "}"
    print "complete -F _mdlc mdlc"
}
