"""The names that can stand at a cursor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal, TypeAlias

from collc.backends import TARGETS
from collc.frontends.coll import FAMILIES, OPERATORS, brought
from collc.frontends.coll.families import FUNCTIONS
from collc.frontends.coll.groups import GROUPS, signature
from collc.frontends.coll.kinds import DEFAULTS, DTYPES, OPTIONS, PREDEFINED
from collc.frontends.importing.formats import IMPORTS
from collc.frontends.units import UNITS
from collc.ir.collective import OPERATIONS
from collc.ir.frozen import frozen
from collc.passes import SCHEDULERS

from ..editors.rules import keywords
from ..registry.classes import pass_class, scheduler_pass, target_class
from ..registry.options import OptionHelp, describe
from .context import Context, context_at
from .names import Declared

__all__ = ["Item", "ItemKind", "completions", "options_of"]

ItemKind: TypeAlias = Literal["keyword", "name", "function", "option", "value", "unit"]

#: The keywords with which a declaration begins, and a statement of a body.
_DECLARATIONS = ("topology", "cluster", "collective", "schedule", "emit", "together", "param", "let", "function",
                 "define", "include", "import")  # fmt: skip
_STATEMENTS = (
    "param",
    "let",
    "function",
    "define",
    "rank",
    "switch",
    "link",
    "for",
    "if",
    "at",
    "send",
    "reduce",
    "call",
)
#: a pattern of the text before the cursor -> which names follow, a key of ``_NAMES``
_PLACES = (
    (r"\bschedule\s+\w+\s*(\[.*\])?\s*using\s+\Z", "schedulers"), (r"\bemit\s+\w+\s*(\[.*\])?\s*as\s+\Z", "targets"),
    (r"\bimport\s*\"\"\s*as\s+\Z", "imports"), (r"\b(schedule|emit)\s+\Z", "collectives of the file"),
    (r"\bcollective\s+\w+\s*(\[.*\])?\s*=\s*\Z", "collectives"), (r"[0-9]\s*\Z", "units"),
    (r"\b(topology|cluster|collective|param|let|function|define|rank|switch)\s+\Z", "nothing"),
    (r"\b(include|import)\s*\Z", "nothing"),
)  # fmt: skip


@frozen
class Item:
    """A name to offer: its kind, a few words beside it, and an explanation."""

    name: str
    kind: ItemKind
    detail: str = ""
    help: str = ""


def completions(text: str, offset: int, found: Iterable[Declared]) -> list[Item]:
    """Return the names that can stand at an offset, all of them: the editor chooses those that fit the word.

    ``found`` are the declarations of the file and of those that it includes.
    """
    context = context_at(text, offset)
    names = list(found)
    if context.quoted:
        return []
    if context.owners and (options := options_of(context.owners[-1])) is not None:
        return _in_options(context, options, names)
    if not context.before.strip():
        return _beginnings(context, names)
    for pattern, what in _PLACES:
        if re.search(pattern, context.before):
            return _named(what, names)
    return _of_expressions(names)


def options_of(owner: str) -> list[OptionHelp] | None:
    """Return the options in braces behind a text; None for braces of a body or a set.

    >>> [one.name for one in options_of("topology t = torus(3, 3) with ")]
    ['bandwidth', 'latency', 'reduction', 'launch']
    """
    if re.search(r"\bwith\s*\Z", owner):
        return [OptionHelp(name, "", "", help) for name, help in DEFAULTS.items()]
    if match := re.search(r"\busing\s+([\w-]+)\s*\Z", owner):
        return None if match[1] == "steps" else _options("scheduler", match[1])
    if match := re.search(r"\bemit\b.*\bas\s+([\w-]+)\s*\Z", owner, re.DOTALL):
        return _options("target", match[1])
    if re.search(r"\bcollective\s+\w+[^{]*=\s*[\w-]+\s+on\b", owner):
        return [OptionHelp(name, "|".join(_VALUES.get(name, ())), "", "") for name in OPTIONS]
    return None


_VALUES: dict[str, tuple[str, ...]] = {"op": tuple(OPERATIONS), "dtype": DTYPES}


@cache
def _options(what: str, name: str) -> list[OptionHelp]:
    """Return the options of a scheduler or target; none if it is unknown."""
    if what == "target":
        return describe(target_class(name)) if name in TARGETS else []
    if name == "auto":
        return describe(SCHEDULERS.load("auto"))
    return describe(pass_class(scheduler_pass(name))) if name in SCHEDULERS else []


def _in_options(context: Context, options: list[OptionHelp], names: list[Declared]) -> list[Item]:
    """Return names of options, or after a colon the choices of a value, and names for a value of any kind."""
    rest = context.before.rpartition(",")[2]
    name, colon, value = rest.partition(":")
    if not colon:
        return [Item(one.name, "option", one.kind, one.help) for one in options]
    if re.search(r"[0-9]\s*\Z", value):
        return _named("units", names)
    kinds = [one.kind.split("|") for one in options if one.name == name.strip()]
    choices = [word for word in (kinds[0] if kinds else ()) if re.fullmatch(r"[\w.-]+", word)]
    types = {"int", "text", "number", "none", "bool"}
    words = [word for word in choices if word not in types] + ["true", "false"] * ("bool" in choices)
    return [Item(word, "value") for word in words] or _of_expressions(names)


def _beginnings(context: Context, names: list[Declared]) -> list[Item]:
    """Return what a statement may begin with; in the braces of a set, what an expression may."""
    body = context.owners and re.search(
        r"^\s*(topology|for|if|else|define|together|at)\b|\bsteps\s*\Z", context.owners[-1]
    )
    if context.owners and not body:
        return _of_expressions(names)
    words = _STATEMENTS if body else _DECLARATIONS
    return [Item(word, "keyword") for word in words if word in keywords()]


def _named(what: str, names: list[Declared]) -> list[Item]:
    collectives = [one.name for one in names if one.kind == "collective"]
    kinds = [one.name for one in names if one.kind == "kind"]
    tables: dict[str, Mapping[str, str]] = {
        "schedulers": {name: one.summary for name, one in SCHEDULERS.items()},
        "targets": {name: entry[2] for name, entry in TARGETS.items()},
        "imports": {name: one.summary for name, one in IMPORTS.items()},
        "collectives": dict.fromkeys((*kinds, *PREDEFINED), "a collective"),
        "collectives of the file": dict.fromkeys(collectives, "a collective of this file"),
        "units": {unit: f"a unit of {measure}" for unit, (measure, _) in UNITS.items()},
        "nothing": {},
    }
    kind: ItemKind = "unit" if what == "units" else "name"
    return [Item(name, kind, detail) for name, detail in tables[what].items()]


def _of_expressions(names: list[Declared]) -> list[Item]:
    """Return what an expression, or the rest of a statement, may contain."""
    own = [
        Item(one.name, "name", f"a {one.kind} of this file") for one in names if one.kind not in ("collective", "kind")
    ]
    families = [Item(name, "function", *pair) for name, pair in {**FAMILIES, **brought(), **OPERATORS}.items()]
    functions = [Item(name, "function", shown) for name, shown in FUNCTIONS.items()]
    groups = [Item(name, "function", signature(name)) for name in GROUPS]
    words = ("on", "among", "using", "as", "with", "in", "by", "mod", "and", "or", "not", "from", "to", "of", "steps")
    found = [*own, *families, *functions, *groups, *(Item(word, "keyword") for word in words)]
    return list({one.name: one for one in reversed(found)}.values())[::-1]
