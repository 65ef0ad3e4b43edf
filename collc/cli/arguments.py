"""Command lines: options before or after the file, as compilers take them.

Written by hand because argparse accepts abbreviations of options with one dash, has no options whose value
can only be joined (``--dump-ir[=PASS]``), and its messages differ between versions of Python.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from .tasks import EXAMPLES

__all__ = ["Opt", "Verb", "check_outputs", "expand_response_files", "help_text", "parse", "usage", "usage_error"]

_MAX_NESTING = 10


class Opt(NamedTuple):
    """One option; ``kind`` is ``flag``, ``value``, ``list`` (repeatable), ``words`` (a list; more values may
    follow the first) or ``joined`` (value optional, by ``=``).

    If it ``writes``, its value is an output, or a folder of outputs.
    """

    names: tuple[str, ...]
    help: str
    kind: str = "flag"
    metavar: str = ""
    default: object = None
    choices: tuple[str, ...] = ()
    convert: Callable[[str, str], object] | None = None
    shown_as: str = ""
    writes: bool = False

    @property
    def dest(self) -> str:
        """The longest name, as an attribute."""
        return max(self.names, key=len).lstrip("-").replace("-", "_")

    @property
    def shown(self) -> str:
        """How help prints the names and the value."""
        if self.shown_as or self.kind == "flag":
            return self.shown_as or ", ".join(self.names)
        value = self.metavar or "|".join(self.choices)
        if self.kind == "joined":
            return f"{self.names[-1]}[={value}]"
        tail = f"={value}" if self.names[-1].startswith("--") else f" {value}"
        return ", ".join(self.names) + tail


class Verb(NamedTuple):
    """One verb: its module, its positional arguments (``FILE``, ``FILE...``, ``[CODE]``), its options.

    If ``--`` is among the positional arguments, a command follows it. A ``silent`` verb prints nothing unless
    an option asks for it.
    """

    name: str
    module: str
    summary: str
    positional: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Opt, ...]], ...]
    details: str = ""
    silent: bool = False


def usage_error(message: str, hint: str | None = None, code: str = "C0001") -> Exception:
    """Return the error for a command line that cannot be understood (exit status 2)."""
    from collc.ir.diagnostic import error

    return error(code, message, hint=hint, exit_status=2)


# ---- @file


def expand_response_files(arguments: Sequence[str], depth: int = 0) -> list[str]:
    """Replace every ``@file`` by the arguments in the file, split as by a shell; what follows ``--`` stays."""
    expanded: list[str] = []
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*expanded, *arguments[place:]]
        if len(argument) > 1 and argument.startswith("@"):
            expanded += _from_file(argument[1:], depth)
        else:
            expanded.append(argument)
    return expanded


def _from_file(path: str, depth: int) -> list[str]:
    from ..files.texts import read_text

    if depth >= _MAX_NESTING:
        raise usage_error(f"response files nest deeper than {_MAX_NESTING}: `@{path}`")
    try:
        words = shlex.split(read_text(path), comments=True)
    except ValueError as problem:
        raise usage_error(f"response file `{path}`: {str(problem).lower()}", "quote arguments as for a shell") from None
    return expand_response_files(words, depth + 1)


# ---- parsing


def parse(verb: Verb, arguments: Sequence[str]) -> SimpleNamespace:
    """Return the options by name and the positional arguments as ``files``; raise C0001 for errors in them."""
    options = {name: opt for _, group in verb.groups for opt in group for name in opt.names}
    values: dict[str, Any] = {}  # Any: results of the options' conversions
    for opt in options.values():
        values[opt.dest] = [] if opt.kind in ("list", "words") else False if opt.kind == "flag" else opt.default
    positional: list[str] = []
    command: list[str] = []
    rest = list(arguments)
    separate: dict[int, str] = {}
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            (command if "--" in verb.positional else positional).extend(rest)
            break
        if argument == "-" or not argument.startswith("-"):
            positional.append(argument)
            continue
        opt, name, value = _option(argument, options)
        if opt.kind == "joined" and value is None:
            separate[len(positional)] = name
        _store(values, opt, name, _value(opt, name, value, rest))
        while opt.kind == "words" and value is None and rest and not rest[0].startswith("-"):
            _store(values, opt, name, _value(opt, name, None, rest))
    if not (values.get("help") or values.get("version")):
        _check_positional(verb, positional, separate)
    return SimpleNamespace(**values, files=positional, command=command)


def _option(argument: str, options: dict[str, Opt]) -> tuple[Opt, str, str | None]:
    """Return the option an argument names, the name, and the value joined to it."""
    if argument in options:
        return options[argument], argument, None
    name, joined, value = argument.partition("=")
    if joined and name in options:
        return options[name], name, value
    if not argument.startswith("--"):
        fits = [
            n
            for n, o in options.items()
            if o.kind in ("value", "list", "words") and argument.startswith(n) and n[1] != "-"
        ]
        if fits:
            name = max(fits, key=len)
            return options[name], name, argument[len(name) :]
    from .foreign import option_hint

    raise usage_error(f"unknown option `{name}`", option_hint(name, options))


def _value(opt: Opt, name: str, value: str | None, rest: list[str]) -> object:
    if opt.kind == "flag":
        if value is not None:
            raise usage_error(f"option `{name}` takes no value, found `{value}`")
        return True
    if value is None and opt.kind != "joined":
        if not rest:
            raise usage_error(f"option `{name}` needs a value: {opt.metavar or ', '.join(opt.choices)}")
        value = rest.pop(0)
    text = value or ""
    if opt.choices and text not in opt.choices:
        from collc.ir.diagnostic import nearest

        raise usage_error(
            f"option `{name}` needs one of {', '.join(opt.choices)}, found `{text}`",
            nearest(text, opt.choices),
        )
    return opt.convert(text, name) if opt.convert else text


# Any: as in parse
def _store(values: dict[str, Any], opt: Opt, name: str, value: object) -> None:
    if opt.kind in ("list", "words", "joined"):
        values[opt.dest] = [*(values[opt.dest] or []), value]
    else:
        values[opt.dest] = value


def _check_positional(verb: Verb, found: list[str], separate: Mapping[int, str]) -> None:
    """Raise C0001 for too few or too many arguments; ``separate`` are options before one whose value ``=`` joins."""
    before = verb.positional[: verb.positional.index("--")] if "--" in verb.positional else verb.positional
    least = sum(not word.startswith("[") for word in before)
    most = None if any(word.endswith(("...", "...]")) for word in before) else len(before)
    need = " ".join(verb.positional)
    if len(found) < least:
        raise usage_error(f"`collc {verb.name}` needs {need}", f"write `collc {verb.name} {need}`")
    if most is not None and len(found) > most:
        extra = found[most]
        hint = None
        if most in separate:
            hint = f"a value follows `=`: write `{separate[most]}={extra}`"
        if most and extra and re.fullmatch(r"[\w./-]+\.coll", extra):
            hint = "give one file at a time"
        raise usage_error(f"`collc {verb.name}` takes {need or 'no arguments'}, found also `{extra}`", hint)


def check_outputs(verb: Verb, options: SimpleNamespace) -> None:
    """Raise C0001, C0004, C0005 or C0021 if an option names an output that cannot be written, before any work is done.

    No two options may name one file, and only one output may have standard output.
    """
    from ..files.texts import STDOUT, check_writable, is_folder

    given = [(opt, getattr(options, opt.dest)) for _, group in verb.groups for opt in group if opt.writes]
    places = [(opt, place) for opt, value in given for place in (value if isinstance(value, list) else [value])]
    for opt, place in places:
        if place:
            _check_output(opt, place, options.files)
    check_writable(place for opt, place in places if place and opt.names[-1] != "-MF" and not is_folder(place))
    first = next((opt for opt, place in places if place == STDOUT and _is_beside(opt)), None)
    if first is not None and _prints_more(verb, options, STDOUT):
        message = f"{first.names[-1]} - and the output of this command would both write to standard output"
        raise usage_error(message, "write one of them to a file")


def _is_beside(opt: Opt) -> bool:
    """Return whether an option names a file beside the output of its verb; the profile has its own check."""
    return opt.names[-1] not in ("-o", "-MF", "--csv", "--markdown", "--profile")


def _prints_more(verb: Verb, options: SimpleNamespace, stdout: str) -> bool:
    """Return whether a verb prints its output, or its options ask for it; only verbs that compile print none."""
    if not verb.silent:
        return True
    tables = [place for name in ("csv", "markdown") for place in getattr(options, name, None) or ()]
    named = [getattr(options, name, None) for name in ("o", "MF")]
    printed = any(getattr(options, name, None) for name in ("json", "M", "table"))
    return printed or "" in tables or stdout in (*tables, *named)


def _check_output(opt: Opt, place: str, inputs: Sequence[str]) -> None:
    from ..files.texts import check_folder, check_writable, is_folder

    if opt.metavar == "OUT" and is_folder(place):
        check_folder(place)
    else:
        check_writable([place], inputs)


# ---- help


def help_text(verb: Verb) -> str:
    """Return the help of a verb."""
    lines = [f"usage: {usage(verb)}", "", verb.summary, ""]
    if verb.details:
        lines += [verb.details.strip("\n"), ""]
    if examples := EXAMPLES.get(verb.name):
        lines += ["Examples:", *(f"  {command}" for command in examples), ""]
    for title, group in verb.groups:
        lines.append(f"{title}:")
        lines += _option_lines(group)
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def usage(verb: Verb) -> str:
    """Return how a command line of a verb is written."""
    before, dashes, after = " ".join(verb.positional).partition("--")
    words = ["collc", verb.name, before.strip(), "[OPTIONS]", dashes + after]
    return " ".join(word for word in words if word)


def _option_lines(group: Iterable[Opt]) -> list[str]:
    lines = []
    for opt in group:
        first, *more = opt.help.split("\n")
        if len(opt.shown) > 26:
            lines.append(f"  {opt.shown}")
            lines.append(f"  {'':26}  {first}")
        else:
            lines.append(f"  {opt.shown:26}  {first}")
        lines += [f"  {'':26}  {line}" for line in more]
    return lines
