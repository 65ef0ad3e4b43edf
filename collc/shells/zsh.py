"""The completion script of zsh, for a folder of ``fpath`` or for ``source``."""

from __future__ import annotations

from .offers import Command, Offer, Option

__all__ = ["script"]

_START = """#compdef collc
# Completion of collc for zsh. `collc completion zsh` writes it.

_collc() {
  local curcontext="$curcontext" verb=compile
  local -a verbs
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    verbs=(
%s    )
    _describe -t verbs verb verbs
    _files
    return
  fi
  case $words[2] in
    %s) verb=$words[2]; shift words; (( CURRENT-- )) ;;
  esac
  case $verb in
%s  esac
}
"""

_END = """
if [[ $funcstack[1] == _collc ]]; then
  _collc "$@"
else
  compdef _collc collc
fi
"""

#: What follows ``--`` is a command of the system.
_AFTER_DASHES = """      integer dashes=${words[(i)--]}
      if (( dashes < CURRENT )); then
        shift $dashes words
        (( CURRENT -= dashes ))
        _normal
        return
      fi
"""


def script(commands: list[Command]) -> str:
    """Return the script."""
    functions: dict[Offer, str] = {}
    verbs = "".join(f"      {quoted(f'{c.name}:{c.summary}')}\n" for c in commands)
    branches = "".join(_branch(command, functions) for command in commands)
    body = _START % (verbs, "|".join(command.name for command in commands), branches)
    return body + "".join(_function(name, offer) for offer, name in functions.items()) + _END


def quoted(text: str) -> str:
    r"""Return a text in single quotes.

    >>> print(quoted("a user's"))
    'a user'\''s'
    """
    return "'" + text.replace("'", "'\\''") + "'"


def _branch(command: Command, functions: dict[Offer, str]) -> str:
    specs = [spec for option in command.options for spec in _specs(option, functions)]
    if command.arguments.title:
        specs.append(quoted(f"*:{_plain(command.arguments.title)}:{_action(command.arguments, functions)}"))
    lines = " \\\n        ".join(specs)
    before = _AFTER_DASHES if command.runs_command else ""
    return f"    {command.name})\n{before}      _arguments \\\n        {lines}\n      ;;\n"


def _specs(option: Option, functions: dict[Offer, str]) -> list[str]:
    """Return the specifications of an option for ``_arguments``, one for each of its names."""
    apart = "" if option.repeatable else f"({' '.join(option.names)})"
    star = "*" if option.repeatable else ""
    found = []
    for name in option.names:
        value = ""
        form = name
        if option.offer is not None:
            colons = "::" if option.optional else ":"
            value = f"{colons}{_plain(option.offer.title)}:{_action(option.offer, functions)}"
            form = f"{name}=-" if option.optional else f"{name}=" if name.startswith("--") else f"{name}+"
        found.append(quoted(f"{apart}{star}{form}[{_plain(option.help)}]{value}"))
    return found


def _plain(text: str) -> str:
    """Return a text for a place between brackets or colons."""
    return text.replace("\\", "").replace("[", "(").replace("]", ")").replace(":", "\\:")


def _action(offer: Offer, functions: dict[Offer, str]) -> str:
    if not offer.words:
        return "_files" if offer.files else "_files -/" if offer.folders else " "
    untitled = offer._replace(title="")
    return functions.setdefault(untitled, f"_collc_{len(functions) + 1}")


def _function(name: str, offer: Offer) -> str:
    """Return a function that adds the words of an offer, and its files or folders."""
    if offer.separated:
        values = " ".join(quoted(f"{word}[{_plain(meaning)}]" if meaning else word) for word, meaning in offer.words)
        return f"\n{name}() {{\n  _values -s , word {values}\n}}\n"
    lines = "".join(f"    {quoted(f'{word}:{meaning}' if meaning else word)}\n" for word, meaning in offer.words)
    more = "  _files\n" if offer.files else "  _files -/\n" if offer.folders else ""
    return f"\n{name}() {{\n  local -a found\n  found=(\n{lines}  )\n  _describe -t words word found\n{more}}}\n"
