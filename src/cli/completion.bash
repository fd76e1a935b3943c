# bash completion of attune: commands, and the options that each command's --help lists; of
# attune plugins check its own options, and files that may be strategies.
_attune() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} i
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W 'run bench record surfaces sim top trace stragglers report plugins pin unpin knobs doctor slurm info version help' -- "$word")
        return
    fi
    # Behind "--" stands the user's own command.
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [ "${COMP_WORDS[i]}" = -- ]; then
            mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
            return
        fi
    done
    if [ "$command" = plugins ] && [ "$COMP_CWORD" -gt 2 ] && [ "${COMP_WORDS[2]}" = check ]; then
        case ${COMP_WORDS[COMP_CWORD - 1]}:$word in
        --options:* | --deadline:*) ;;
        *:-*) mapfile -t COMPREPLY < <(compgen -W '--options --deadline --json --help' -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -X '!*.so' -- "$word"
            compgen -d -- "$word") ;;
        esac
        return
    fi
    case $command:$COMP_CWORD:$word in
    plugins:2:[!-]* | plugins:2:) mapfile -t COMPREPLY < <(compgen -W check -- "$word") && return ;;
    plugins:2:-*) mapfile -t COMPREPLY < <(compgen -W '--plugin-path --json --help' -- "$word") && return ;;
    esac
    case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" "$command" --help 2>/dev/null |
        grep -Eo '(^|[ ,])--[a-z][a-z_-]*' | tr -d ' ,' | sort -u)" -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    esac
}
complete -o filenames -F _attune attune
