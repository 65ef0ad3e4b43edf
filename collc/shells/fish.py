"""The completion script of fish."""

from __future__ import annotations

from .offers import Command, Offer, Option

__all__ = ["script"]

_START = """# Completion of collc for fish. `collc completion fish` writes it.

function __collc_verb
    set -l words (commandline -opc)
    if set -q words[2]; and contains -- $words[2] %s
        echo $words[2]
    else
        echo compile
    end
end

function __collc_first
    test (count (commandline -opc)) -eq 1
end

function __collc_using
    not __collc_first; and contains -- (__collc_verb) $argv
end

function __collc_file
    contains -- (__collc_verb) compile
end

function __collc_before
    set -l word (commandline -ct | string replace -r '^-[^=]*=' '' | string replace -r '[^,]*$' '')
    echo "$word"
end

complete -c collc -f
complete -c collc -n __collc_first -F
"""


def script(commands: list[Command]) -> str:
    """Return the script."""
    lines = [_START % " ".join(command.name for command in commands)]
    lines += [
        f"complete -c collc -n __collc_first -a {command.name} -d {quoted(command.summary)}\n" for command in commands
    ]
    for command in commands:
        lines.append(f"\n# {command.name}\n")
        lines += _words(command.name, command.arguments)
        lines += [_option(command.name, option) for option in command.options]
    return "".join(lines)


def quoted(text: str) -> str:
    r"""Return a text in single quotes.

    >>> print(quoted("a user's"))
    'a user\'s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _words(verb: str, offer: Offer) -> list[str]:
    """Return the lines for the arguments of a verb."""
    using = f"complete -c collc -n '__collc_using {verb}'"
    files = [f"{using} -F\n"] if offer.files else []
    return files + ([f"{using} -a {_listed(offer)}\n"] if offer.words else [])


def _option(verb: str, option: Option) -> str:
    test = f"__collc_using {verb}"
    if verb == "compile":
        test = "__collc_file"  # `collc -t` has no verb
    names = " ".join(map(_name, option.names))
    return f"complete -c collc -n {quoted(test)} {names}{_value(option)} -d {quoted(option.help)}\n"


def _name(name: str) -> str:
    if name.startswith("--"):
        return f"-l {name[2:]}"
    return f"-s {name[1:]}" if len(name) == 2 else f"-o {name[1:]}"


def _value(option: Option) -> str:
    """Return the flags of ``complete`` for the value of an option; an optional value has no flag ``-r``."""
    offer = option.offer
    if offer is None:
        return ""
    needed = "" if option.optional else " -r"
    place = " -F" if offer.files else " -a '(__fish_complete_directories)'" if offer.folders else ""
    return f"{needed}{place}" + (f" -a {_listed(offer)}" if offer.words else "")


def _listed(offer: Offer) -> str:
    """Return the words with their meanings, as ``complete -a`` takes them; lists continue what stands before."""
    if offer.separated:
        return quoted(f"(__collc_before)(printf '%s\\n' {' '.join(word for word, _ in offer.words)})")
    tokens = (f"{word}\\t{quoted(meaning)}" if meaning else word for word, meaning in offer.words)
    return quoted(" ".join(tokens))
