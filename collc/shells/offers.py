"""What can stand on a command line: for each verb its options, and the words, files or folders that complete them.

The value's name in the help (``FILE``, ``TARGET``) decides what completes an option.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from .tables import TABLES

if TYPE_CHECKING:
    from ..cli.arguments import Opt, Verb

__all__ = ["ARGUMENTS", "FREE", "LISTED", "NAMED", "VALUES", "Command", "Offer", "Option", "commands"]


class Offer(NamedTuple):
    """What completes a word: ``words`` with their meanings, ``files``, ``folders``, ``commands`` of the system.

    ``title`` names the value. If ``separated``, several words follow each other with commas.
    """

    title: str = ""
    words: tuple[tuple[str, str], ...] = ()
    files: bool = False
    folders: bool = False
    commands: bool = False
    separated: bool = False


class Option(NamedTuple):
    """One option: its names, its help in one line, and the offer for its value (None: it takes none).

    A value that is ``optional`` can only be joined by ``=``. A ``repeatable`` option may stand several times.
    """

    names: tuple[str, ...]
    help: str
    offer: Offer | None = None
    optional: bool = False
    repeatable: bool = False


class Command(NamedTuple):
    """One verb: its options, the offer for its arguments, and whether a command of the system follows ``--``."""

    name: str
    summary: str
    options: tuple[Option, ...]
    arguments: Offer
    runs_command: bool = False


#: a rule: words, ``@TABLE`` for the names of a table, ``@files``, ``@folders``; ``,`` first: several with commas
Rule = tuple[str, ...]

_FILES: Rule = ("@files",)
_TOPOLOGY: Rule = ("@topologies", "@files")

#: name of an option's value in the help -> what completes it
VALUES: dict[str, Rule] = {
    "FILE": _FILES, "OUT": _FILES, "DIR": ("@folders",), "NAME|DIR": ("mpich", "openmpi", "impi", "@folders"),
    "TARGET": ("@targets",), "PASSES": (",", "@passes"), "PASS|all": ("@passes", "all"), "KIND": ("@collectives",),
    "TOPOLOGY": _TOPOLOGY, "SCHEDULER": ("@schedulers",), "MIX|WORKLOAD": ("@workloads", "@files"),
    "N|best": ("best",), "SIZES|auto": ("auto",), "ENGINE": ("processes", "dask:tcp://", "mpi"),
    "PLACES": (",", "in", "out"), "OPS": (",", "sum", "max", "min", "prod", "user"), "TYPES": (",", "@dtypes", "all"),
}  # fmt: skip

#: options whose value has a name that does not say what completes it
NAMED: dict[str, Rule] = {
    "--disable-pass": ("@passes",), "--format": ("@imports",), "--runtime": ("@runtimes",), "-MT": (),
}  # fmt: skip

#: names of values that only the user knows: numbers, quantities, names of a file
FREE = frozenset({
    "NAME=VALUE", "N", "NAME", "SIZES", "SIZE", "TIME", "RATE", "TIME|RATE", "D", "PARTS", "PARTS:RATE", "FACTOR",
    "RANK", "MODEL", "TIERS", "LIST", "PATTERN", "N,N", "SECONDS", "NAMES", "NAME=LOG", "NAME=V1,V2", "E", "S", "J",
})  # fmt: skip

#: argument of a verb in the help -> what completes it
ARGUMENTS: dict[str, Rule] = {
    "FILE": _FILES, "FILE...": _FILES, "[FILE...]": _FILES, "PLAN": _FILES, "[CODE]": ("@codes",),
    "[NAME|EXPRESSION|FILE]": _TOPOLOGY, "[WORKLOAD]": ("@workloads", "@files"), "[TOPOLOGY...]": _TOPOLOGY,
    "--": (), "COMMAND...": (),
}  # fmt: skip

#: verb -> the table that it lists, for its argument ``[NAME]``
LISTED = {"targets": "@targets", "passes": "@passes", "schedulers": "@schedulers", "schema": "@schemas",
          "formats": "@formats"}  # fmt: skip

#: Words that need no quotes in any shell; a plugin's name with other characters is not offered.
_PLAIN = re.compile(r"[A-Za-z0-9_.+-]+")


def commands(
    verbs: Mapping[str, Verb], tables: Mapping[str, Callable[[], Mapping[str, str]]] = TABLES
) -> list[Command]:
    """Return the verbs with all that completes their words."""
    read = cache(lambda name: tuple((word, text) for word, text in tables[name]().items() if _PLAIN.fullmatch(word)))
    return [_command(verb, read) for verb in verbs.values()]


_Read = Callable[[str], tuple[tuple[str, str], ...]]


def _command(verb: Verb, read: _Read) -> Command:
    options = tuple(_option(opt, read) for _, group in verb.groups for opt in group)
    rules = [rule for word in verb.positional for rule in _argument(verb.name, word)]
    title = " ".join(word for word in verb.positional if word != "--")
    return Command(verb.name, verb.summary, options, _offer(title, dict.fromkeys(rules), read), "--" in verb.positional)


def _argument(verb: str, word: str) -> Rule:
    """Return the rule of an argument; words that the help lists complete themselves."""
    inner = word.strip("[]")
    if inner.islower():
        return tuple(inner.split("|"))
    return (LISTED[verb],) if inner == "NAME" else ARGUMENTS[word]


def _option(opt: Opt, read: _Read) -> Option:
    help = " ".join(opt.help.split())
    if opt.kind == "flag":
        return Option(opt.names, help)
    named = [NAMED[name] for name in opt.names if name in NAMED]
    rule = opt.choices or (named[0] if named else VALUES.get(opt.metavar, ()))
    offer = _offer(opt.metavar or "|".join(opt.choices), rule, read)
    return Option(opt.names, help, offer, opt.kind == "joined", opt.kind in ("list", "words"))


def _offer(title: str, rules: Iterable[str], read: _Read) -> Offer:
    given = list(rules)
    words: dict[str, str] = {}
    for rule in given:
        if rule[0] == "@" and rule[1:] not in ("files", "folders"):
            words.update(read(rule[1:]))
        elif rule[0] not in "@,":
            words[rule] = ""
    return Offer(title, tuple(words.items()), "@files" in given, "@folders" in given, separated="," in given)
