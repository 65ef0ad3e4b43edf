"""The completion script of bash; it needs bash 3.2 or later, and no package of completions."""

from __future__ import annotations

from collections.abc import Mapping

from .offers import Command, Offer, Option

__all__ = ["script"]

_START = """# Completion of collc for bash. `collc completion bash` writes it.

_collc() {
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=compile
    local option= joined= prefix= words= kind= value= separated= at line
    COMPREPLY=()
    cur=${cur#[\\'\\"]}
    cur=${cur//\\\\/}
"""

#: Without a verb, options are those of ``compile``.
_VERB = """    case ${COMP_WORDS[1]} in
        %s) ((COMP_CWORD > 1)) && verb=${COMP_WORDS[1]} ;;
    esac
"""

#: What follows ``--`` is a command of the system, and then its own words.
_AFTER_DASHES = """    for ((at = 1; at < COMP_CWORD; at++)); do
        [[ ${COMP_WORDS[at]} == -- ]] || continue
        kind=files
        case $verb in
%s        esac
        ((COMP_CWORD > at + 1)) && kind=files
        _collc_reply
        return
    done
"""

#: Bash splits a word at ``=``, unless the user has changed COMP_WORDBREAKS.
_OPTION = """    if [[ $cur == --*=* ]]; then
        option=${cur%%=*} joined=1 prefix=${cur%%=*}= cur=${cur#*=}
    elif [[ $cur == = ]]; then
        option=$before joined=1 cur=
    elif [[ $before == = ]] && ((COMP_CWORD > 2)); then
        option=${COMP_WORDS[COMP_CWORD-2]} joined=1
    else
        option=$before
    fi
    ((COMP_CWORD == 1)) && [[ -z $joined ]] && option=
"""

_END = """    if [[ -n $value ]]; then
        [[ $value == optional && -z $joined ]] || { _collc_reply; return; }
    fi
    words= kind= separated=
    [[ -n $joined ]] && return
    if [[ $cur == -* ]]; then
        case $verb in
%s        esac
        _collc_reply
        return
    fi
    case $verb in
%s    esac
    _collc_reply
}

_collc_reply() {
    if [[ -n $separated && $cur == *,* ]]; then
        prefix=$prefix${cur%%,*},
        cur=${cur##*,}
    fi
    COMPREPLY=($(compgen -W "$words" -P "$prefix" -- "$cur"))
    local flag=
    case $kind in
        files) flag=-f ;;
        folders) flag=-d ;;
        commands) flag=-c ;;
    esac
    [[ -n $flag ]] || return 0
    [[ $flag != -c ]] && type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null
    while IFS= read -r line; do
        COMPREPLY+=("$prefix$line")
    done < <(compgen "$flag" -- "$cur")
}

complete -F _collc collc
"""


def script(commands: list[Command]) -> str:
    """Return the script."""
    verbs = "|".join(command.name for command in commands)
    parts = [
        _START,
        _VERB % verbs,
        _AFTER_DASHES % "".join(f"            {c.name}) kind=commands ;;\n" for c in commands if c.runs_command),
        _OPTION,
        "    case $option in\n", *_values(commands), "    esac\n",
        _first(commands),
        _END % ("".join(map(_options, commands)), "".join(map(_arguments, commands))),
    ]  # fmt: skip
    return "".join(parts)


def _first(commands: list[Command]) -> str:
    """Return what completes the first word: a verb, or a file."""
    words = " ".join(command.name for command in commands)
    test = "((COMP_CWORD == 1)) && [[ $cur != -* ]]"
    return f"    if {test}; then\n        words='{words}' kind=files\n        _collc_reply\n        return\n    fi\n"


def _values(commands: list[Command]) -> list[str]:
    """Return a branch for all options that take the same values; values may differ from verb to verb."""
    settings: dict[str, dict[str, list[str]]] = {}
    for command in commands:
        for option in command.options:
            for name in option.names if option.offer is not None else ():
                settings.setdefault(name, {}).setdefault(_setting(option), []).append(command.name)
    alike: dict[str, list[str]] = {}
    for name, found in settings.items():
        alike.setdefault(str(found) if len(found) > 1 else next(iter(found)), []).append(name)
    return [_branch("|".join(names), settings[names[0]]) for names in alike.values()]


def _branch(names: str, settings: Mapping[str, list[str]]) -> str:
    """Return the branch for some options: one setting, or one for each group of verbs."""
    if len(settings) == 1:
        return f"        {names}) {next(iter(settings))} ;;\n"
    inner = "".join(f"            {'|'.join(verbs)}) {setting} ;;\n" for setting, verbs in settings.items())
    return f"        {names}) case $verb in\n{inner}        esac ;;\n"


def _setting(option: Option) -> str:
    """Return the assignments for the value of an option."""
    return f"value={'optional' if option.optional else 'needed'}{_assigned(option.offer or Offer())}"


def _assigned(offer: Offer) -> str:
    kind = "files" if offer.files else "folders" if offer.folders else ""
    words = " ".join(word for word, _ in offer.words)
    return (
        (f" words='{words}'" if words else "")
        + (f" kind={kind}" if kind else "")
        + (" separated=1" if offer.separated else "")
    )


def _options(command: Command) -> str:
    words = " ".join(word for option in command.options for word in _forms(option))
    return f"            {command.name}) words='{words}' ;;\n"


def _forms(option: Option) -> list[str]:
    """Return the words of an option: its names; if it has only a letter and choices, each choice joined to it."""
    if option.offer and option.offer.words and all(len(name) == 2 for name in option.names):
        return [f"{name}{word}" for name in option.names for word, _ in option.offer.words]
    return [*option.names]


def _arguments(command: Command) -> str:
    assigned = _assigned(command.arguments).strip()
    return f"        {command.name}) {assigned or ':'} ;;\n"
