"""The parsing tables of the grammar: terminals, rules and the LALR table, built by lark.

The tables are shipped (``grammar.json``), so that no command has to wait for lark. They have a checksum of the
grammar's text; if the text has changed, lark builds them again.
``python -m collc.frontends.coll.tables grammar.json`` writes them.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from collc.ir.frozen import frozen

if TYPE_CHECKING:
    from lark import Lark
    from lark.grammar import Rule as LarkRule

    _Cells: TypeAlias = Mapping[str, tuple[object, int | LarkRule]]

__all__ = ["END", "STARTS", "Rule", "Tables", "build_tables", "tables", "tables_text"]

T = TypeVar("T")
#: The terminal after the last one of a text.
END = "$END"
#: The start symbols: what a text may be.
STARTS = ("file", "expression")


@frozen
class Rule:
    """``symbol`` is built from ``size`` values by the builder's method ``action``.

    The method takes the values at the places in ``children``, where -1 means None; the value at ``repeated`` is a list,
    whose values replace it. Without an action, the values are collected in a list if ``symbol`` begins with ``__``;
    otherwise there is one value, and it stays.
    """

    symbol: str
    size: int
    action: str | None
    children: tuple[int, ...]
    repeated: int | None


@frozen
class Tables:
    """``terminals`` are regular expressions, first choice first; states and rules are numbers.

    ``actions[state]`` leads from a terminal to the next state, or to ``-1 - rule``; ``gotos[state]`` from a symbol to
    the next state. ``starts`` are, for every start, its first state and the one in which it is complete.
    """

    terminals: Mapping[str, str]
    ignored: frozenset[str]
    rules: tuple[Rule, ...]
    actions: tuple[Mapping[str, int], ...]
    gotos: tuple[Mapping[str, int], ...]
    starts: Mapping[str, tuple[int, int]]


def _beside(name: str) -> str:
    """Return the text of a file beside this one; "" if there is none."""
    path = os.path.join(os.path.dirname(__file__), name)
    if not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def _grammar() -> str:
    return _beside("grammar.lark")


def _digest(grammar: str) -> int:
    """Return a checksum, which finds a change of the grammar; hashlib and pathlib would take milliseconds to load."""
    return zlib.crc32(grammar.encode())


@cache
def tables() -> Tables:
    """Return the tables of the grammar: the shipped ones, or new ones if the grammar has changed."""
    grammar = _grammar()
    shipped = _beside("grammar.json")
    found = json.loads(shipped) if shipped else {}
    return _read(found if found.get("grammar") == _digest(grammar) else build_tables(grammar))


# Any: JSON, of the form that ``build_tables`` gives it
def _read(found: Mapping[str, Any]) -> Tables:
    actions, gotos = found["actions"], found["gotos"]
    return Tables(
        terminals=found["terminals"], ignored=frozenset(found["ignored"]),
        rules=tuple(Rule(name, size, action, tuple(at), many) for name, size, action, at, many in found["rules"]),
        actions=tuple(actions[a] for a, _ in found["states"]), gotos=tuple(gotos[g] for _, g in found["states"]),
        starts={name: (first, last) for name, (first, last) in found["starts"].items()},
    )  # fmt: skip


# ---- building them


def build_tables(grammar: str) -> dict[str, object]:
    """Return the tables of a grammar as JSON values; states are numbered in the order of a search from the starts."""
    from lark import Lark

    lark = Lark(grammar, parser="lalr", start=list(STARTS), keep_all_tokens=True, maybe_placeholders=True)
    table: Any = lark.parser.parser._parse_table  # Any: lark does not declare its type
    number = _numbered(table)
    rules = {rule: i for i, rule in enumerate(lark.rules)}
    rows = [_row(table.states[state], number, rules) for state in number]
    actions, gotos = ([row[side] for row in rows] for side in (0, 1))
    return {
        "grammar": _digest(grammar),
        "terminals": _terminals(lark),
        "ignored": sorted(lark.ignore_tokens),
        "starts": {s: [number[table.start_states[s]], number[table.end_states[s]]] for s in STARTS},
        "rules": [
            [rule.origin.name, len(rule.expansion), _action(rule), _children(rule), _repeated(rule)]
            for rule in lark.rules
        ],
        "actions": _distinct(actions),
        "gotos": _distinct(gotos),
        "states": [[_distinct(actions).index(a), _distinct(gotos).index(g)] for a, g in rows],
    }


def _terminals(lark: Lark) -> dict[str, str]:
    """Return the terminals as a lexer of lark's tries them."""
    lexer: Any = lark.parser.lexer  # Any: a private type of lark
    lexers = {id(one): one for one in [*lexer.lexers.values(), lexer.root_lexer]}.values()
    assert not any(one.scanner and one.callback for one in lexers), "a terminal's text is another terminal's too"
    return {t.name: t.pattern.to_regexp() for t in lexer.root_lexer.terminals}


# Any: as in ``build_tables``
def _numbered(table: Any) -> dict[int, int]:
    """Return a number for every state, in the order of a search from the starts, whatever order lark has."""
    found = dict.fromkeys(table.start_states[start] for start in STARTS)
    pending = list(found)
    for state in pending:
        fresh = [to for _, to in _shifts(table.states[state]) if to not in found]
        found.update(dict.fromkeys(fresh))
        pending += dict.fromkeys(fresh)
    return {state: number for number, state in enumerate(found)}


def _shifts(row: _Cells) -> list[tuple[str, int]]:
    return [(symbol, to) for symbol, (kind, to) in sorted(row.items()) if isinstance(to, int)]


def _row(
    row: _Cells, number: Mapping[int, int], rules: Mapping[LarkRule, int]
) -> tuple[dict[str, int], dict[str, int]]:
    cells = {s: number[to] if isinstance(to, int) else -1 - rules[to] for s, (_, to) in sorted(row.items())}
    terminals = {s: to for s, to in cells.items() if s.isupper() or s == END}
    return terminals, {s: to for s, to in cells.items() if s not in terminals}


def _distinct(rows: Sequence[T]) -> list[T]:
    return list({repr(row): row for row in rows}.values())  # rows have sorted cells


def _action(rule: LarkRule) -> str | None:
    if rule.origin.name.startswith("__") or (rule.options.expand1 and rule.alias is None):
        return None
    return str(rule.alias or rule.origin.name)


def _children(rule: LarkRule) -> list[int]:
    """Return the places of a rule's values, with -1 for an absent optional part."""
    there = list(range(len(rule.expansion)))
    absent = rule.options.empty_indices or [False] * len(there)
    return [-1 if empty else there.pop(0) for empty in absent]


def _repeated(rule: LarkRule) -> int | None:
    return next((i for i, symbol in enumerate(rule.expansion) if symbol.name.startswith("__")), None)


def tables_text(found: Mapping[str, object]) -> str:
    """Return the tables as the shipped text, one row of a table per line."""
    text = json.dumps(found, separators=(",", ":"))
    return text.replace('],"', '],\n"').replace("},{", "},\n{").replace("],[", "],\n[") + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as written:
        written.write(tables_text(build_tables(_grammar())))
