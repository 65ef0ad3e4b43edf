"""What lark makes of the grammar: terminals, rules and the LALR table, as the parser's loop reads them.

The tables are shipped (``grammar.json``), so that no command waits for lark to make them anew. They say which text of
the grammar they are of; where that has changed, lark makes them.
``python -m collc.frontends.coll.tables grammar.json`` writes them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from lark import Lark

__all__ = ["END", "STARTS", "Rule", "Tables", "made", "printed", "tables"]

#: The terminal after the last one of a text.
END = "$END"
#: What a text may be.
STARTS = ("file", "expression")


@attrs.frozen
class Rule:
    """``symbol`` is made of ``size`` values, by the builder's method ``action``.

    The method takes the values at the places in ``children``, where -1 stands for nothing; the value at ``repeated``
    is a list, whose values are put in its place. Without an action the values are collected in a list, where
    ``symbol`` begins with ``__``, or there is one value and nothing to do.
    """

    symbol: str
    size: int
    action: str | None
    children: tuple[int, ...]
    repeated: int | None


@attrs.frozen
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


def _grammar() -> str:
    return resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")


def _digest(grammar: str) -> str:
    return hashlib.sha256(grammar.encode()).hexdigest()


@cache
def tables() -> Tables:
    """Return the tables of the grammar: those that are shipped, or made anew where the grammar is another."""
    grammar = _grammar()
    shipped = resources.files(__package__).joinpath("grammar.json")
    found = json.loads(shipped.read_text(encoding="utf-8")) if shipped.is_file() else {}
    return _read(found if found.get("grammar") == _digest(grammar) else made(grammar))


def _read(found: Mapping[str, Any]) -> Tables:
    actions, gotos = found["actions"], found["gotos"]
    return Tables(
        terminals=found["terminals"], ignored=frozenset(found["ignored"]),
        rules=tuple(Rule(name, size, action, tuple(at), many) for name, size, action, at, many in found["rules"]),
        actions=tuple(actions[a] for a, _ in found["states"]), gotos=tuple(gotos[g] for _, g in found["states"]),
        starts={name: (first, last) for name, (first, last) in found["starts"].items()},
    )  # fmt: skip


# ---- making them


def made(grammar: str) -> dict[str, Any]:
    """Return the tables of a grammar as JSON has them; states are numbered as they are found from the starts."""
    from lark import Lark

    lark = Lark(grammar, parser="lalr", start=list(STARTS), keep_all_tokens=True, maybe_placeholders=True)
    table: Any = lark.parser.parser._parse_table
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
    lexer: Any = lark.parser.lexer
    lexers = {id(one): one for one in [*lexer.lexers.values(), lexer.root_lexer]}.values()
    assert not any(one.scanner and one.callback for one in lexers), "a terminal's text is another terminal's too"
    return {t.name: t.pattern.to_regexp() for t in lexer.root_lexer.terminals}


def _numbered(table: Any) -> dict[int, int]:
    """Return a number for every state, in the order of a search from the starts, whatever order lark has."""
    found = dict.fromkeys(table.start_states[start] for start in STARTS)
    pending = list(found)
    for state in pending:
        fresh = [to for _, to in _shifts(table.states[state]) if to not in found]
        found.update(dict.fromkeys(fresh))
        pending += dict.fromkeys(fresh)
    return {state: number for number, state in enumerate(found)}


def _shifts(row: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(symbol, to) for symbol, (kind, to) in sorted(row.items()) if isinstance(to, int)]


def _row(row: Mapping[str, Any], number: Mapping[int, int], rules: Mapping[Any, int]) -> tuple[Any, Any]:
    cells = {s: number[to] if isinstance(to, int) else -1 - rules[to] for s, (_, to) in sorted(row.items())}
    terminals = {s: to for s, to in cells.items() if s.isupper() or s == END}
    return terminals, {s: to for s, to in cells.items() if s not in terminals}


def _distinct(rows: Sequence[Any]) -> list[Any]:
    return [row for i, row in enumerate(rows) if row not in rows[:i]]


def _action(rule: Any) -> str | None:
    if rule.origin.name.startswith("__") or (rule.options.expand1 and rule.alias is None):
        return None
    return str(rule.alias or rule.origin.name)


def _children(rule: Any) -> list[int]:
    """Return the places of a rule's values, with -1 where an optional part that is absent would be."""
    there = list(range(len(rule.expansion)))
    absent = rule.options.empty_indices or [False] * len(there)
    return [-1 if empty else there.pop(0) for empty in absent]


def _repeated(rule: Any) -> int | None:
    return next((i for i, symbol in enumerate(rule.expansion) if symbol.name.startswith("__")), None)


def printed(found: Mapping[str, Any]) -> str:
    """Return the tables as the text that is shipped, a row of a table a line."""
    text = json.dumps(found, separators=(",", ":"))
    return text.replace('],"', '],\n"').replace("},{", "},\n{").replace("],[", "],\n[") + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(printed(made(_grammar())), encoding="utf-8")
