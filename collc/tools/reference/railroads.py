"""Railroad diagrams of the grammar: SVG files, light and dark, that show what may follow what.

They need the package ``railroad-diagrams``, of the extras ``docs`` and ``test``.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from .grammar import Either, Leaf, Node, Repeat, Row, Rule

__all__ = ["STYLE", "diagram"]

#: a part of a diagram; Any: its package has no types, and may not be installed
Drawn: TypeAlias = Any

#: the width, in pixels, after which a rule goes on in its next row: a page shows it without making it smaller
_WIDEST = 540

_COLORS = (("#fff", "#222", "#eaf2fb", "#fdf1e5"), ("#16181c", "#e4e4e4", "#1d2b3a", "#3a2a1a"))
_RULES = (
    "svg{{background:{0}}}path{{fill:none;stroke:{1};stroke-width:1.5}}text{{font:14px monospace;text-anchor:middle;"
    "fill:{1}}}rect{{stroke:{1};stroke-width:1.5;fill:{2}}}.terminal rect{{fill:{3}}}.terminal text{{font-weight:bold}}"
)
STYLE = f"{_RULES.format(*_COLORS[0])}@media screen and (prefers-color-scheme:dark){{{_RULES.format(*_COLORS[1])}}}"


def diagram(rule: Rule) -> str:
    """Return the text of the SVG file of a rule."""
    import railroad

    rows: list[list[Drawn]] = [[]]
    for item in _items(rule.body, rule.name):
        if rows[-1] and sum(part.width for part in [*rows[-1], item]) > _WIDEST:
            rows.append([])
        rows[-1].append(item)
    drawn = [railroad.Sequence(*row) for row in rows]
    whole = drawn[0] if len(drawn) == 1 else railroad.Stack(*drawn)
    text = io.StringIO()
    railroad.Diagram(whole, type="complex").writeStandalone(text.write, STYLE)
    return text.getvalue().replace("/* <![CDATA[ */\n", "").replace("\n/* ]]> */\n", "").rstrip() + "\n"


def _items(node: Node, rule: str) -> list[Drawn]:
    """Return what stands in a row, where `a ("," a)*` is one loop with `,` on its other side."""
    import railroad

    found: list[Drawn] = []
    parts = _parts(node)
    for place, part in enumerate(parts):
        separator = _separator(parts[place - 1], part) if place else None
        if separator is None:
            found.append(_drawn(part, rule))
        else:
            found[-1] = railroad.OneOrMore(_drawn(parts[place - 1], rule), _drawn(separator, rule))
    return found


def _parts(node: Node) -> tuple[Node, ...]:
    """Return the parts of a row; of alternatives, what all of them begin with, and the alternatives of the rest.

    `a b | a c` is `a (b | c)`.
    """
    if not isinstance(node, Either):
        return node.parts if isinstance(node, Row) else (node,)
    alternatives = [_parts(part) for part in node.parts]
    columns = takewhile(lambda column: all(part == column[0] for part in column), zip(*alternatives, strict=False))
    shared = tuple(column[0] for column in columns)
    if not shared or shared in alternatives:
        return (node,)
    return (*shared, Either(tuple(Row(parts[len(shared) :]) for parts in alternatives)))


def _separator(before: Node, node: Node) -> Node | None:
    """Return what stands between repetitions of ``before``, if that is what the node says."""
    match node:
        case Repeat(part=Row(parts=(separator, again)), sign="*") if again == before:
            return separator
    return None


def _drawn(node: Node, rule: str) -> Drawn:
    import railroad

    match node:
        case Leaf(text=text, kind=kind):
            return railroad.Terminal(text) if kind == "fixed" else railroad.NonTerminal(text)
        case Repeat(part=part, sign=sign):
            several = {"*": railroad.ZeroOrMore, "+": railroad.OneOrMore, "?": railroad.Optional}
            return several[sign](_in_row(part, rule))
        case Either(parts=parts):
            return _choice(parts, rule)
    return _in_row(node, rule)


def _in_row(node: Node, rule: str) -> Drawn:
    import railroad

    items = _items(node, rule)
    return items[0] if len(items) == 1 else railroad.Sequence(*items)


def _choice(nodes: Sequence[Node], rule: str) -> Drawn:
    """Return alternatives; those that begin with the rule itself are a loop: `a: b | a SIGN b` is `b (SIGN b)*`."""
    import railroad

    listed = [_parts(node) for node in nodes]
    again = [parts for parts in listed if parts[0] == Leaf(rule, "rule") and len(parts) > 2]
    first = _either([_in_row(Row(parts), rule) for parts in listed if parts not in again])
    if not again:
        return first
    return railroad.OneOrMore(first, _either([_in_row(Row(parts[1:-1]), rule) for parts in again]))


def _either(drawn: Sequence[Drawn]) -> Drawn:
    import railroad

    return drawn[0] if len(drawn) == 1 else railroad.Choice(0, *drawn)
