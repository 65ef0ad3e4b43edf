"""An imported network as the text of a `.coll` file: names of the machine, units, a comment for every assumption."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import groupby

from .figures import bandwidth_text, decimal_text
from .model import Cable, Imported, Note

__all__ = ["comments", "identifier", "node_text", "time_text", "topology_text"]

_WIDTH = 100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: names that are written in quotes: keywords of the grammar, and the two constants
_KEYWORDS = re.compile(
    "topology|collective|cluster|schedule|emit|include|import|param|let|rank|switch|link|for|in|if|else|at|send|reduce|"
    "shard|part|of|from|to|on|using|as|with|mod|and|or|not|true|false"
)
_TIMES = (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))


def topology_text(network: Imported, name: str) -> str:
    """Return the declaration ``topology NAME { .. }`` of a network."""
    lines = [f"topology {name} {_times(network)}{{"]
    lines += _declared("rank", network.ranks)
    lines += _switches(network)
    for label, cables in groupby(network.cables, key=lambda cable: cable.label):
        lines += ["", *(f"  {line}" for line in comments([Note(label)]))] if label else [""]
        lines += [f"  {line}" for cable in cables for line in _links(cable, network.unit)]
    return "\n".join([*lines, "}", ""])


def _switches(network: Imported) -> Iterator[str]:
    """Yield the declarations of switches, in order; those that differ in what they do stand in separate statements."""
    powers = [
        ", ".join(name for name in ("multicast", "reduces") if switch in getattr(network, name))
        for switch in network.switches
    ]
    for power, group in groupby(zip(network.switches, powers, strict=True), key=lambda one: one[1]):
        yield from _declared("switch", [name for name, _ in group], f" : {power}" if power else "")


def _times(network: Imported) -> str:
    """Return the defaults that say gamma and epsilon, if the file has them."""
    times = [f"reduction: {bandwidth_text(1 / network.gamma, 'B/s')}"] if network.gamma else []
    times += [f"launch: {time_text(network.epsilon)}"] if network.epsilon else []
    return f"with {{ {', '.join(times)} }} " if times else ""


def comments(notes: Iterable[Note]) -> Iterator[str]:
    """Yield notes as comment lines; a note goes on with an indent."""
    for note in notes:
        text = " ".join("".join(c if c.isprintable() else " " for c in note.text).split())
        yield from textwrap.wrap(
            text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
        )


def node_text(name: str) -> str:
    """Return a node's name as the language writes it: an identifier as it stands, anything else in quotes.

    >>> node_text("mlx5_0"), node_text("leaf-1"), node_text("rank")
    ('mlx5_0', '"leaf-1"', '"rank"')
    """
    return name if _NAME.fullmatch(name) and not _KEYWORDS.fullmatch(name) else f'"{name}"'


def identifier(text: str, otherwise: str = "network") -> str:
    """Return a name of a topology for a text such as a file's stem.

    >>> identifier("n-001"), identifier("8xH100"), identifier("topology")
    ('n_001', '_8xH100', 'topology_')
    """
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or otherwise
    name = f"_{name}" if name[0].isdigit() else name
    return f"{name}_" if _KEYWORDS.fullmatch(name) else name


def _declared(kind: str, names: Iterable[str], powers: str = "") -> Iterator[str]:
    """Yield statements that declare nodes with these powers, as many on each as fit the width."""
    row = list[str]()
    for text in map(node_text, names):
        if row and len(f"  {kind} {', '.join([*row, text])}{powers};") > _WIDTH:
            yield f"  {kind} {', '.join(row)}{powers};"
            row = []
        row.append(text)
    if row:
        yield f"  {kind} {', '.join(row)}{powers};"


def _links(cable: Cable, unit: str) -> Iterator[str]:
    arrow = "<->" if cable.duplex else "->"
    attributes = bandwidth_text(cable.bandwidth, unit)
    if cable.latency:
        attributes += f", {time_text(cable.latency)}"
    statement = f"link {node_text(cable.a)} {arrow} {node_text(cable.b)} : {attributes};"
    for _ in range(cable.count):
        yield statement


def time_text(seconds: Fraction) -> str:
    """Return a time as the language writes it, exact.

    >>> time_text(Fraction(7, 10**7)), time_text(Fraction(1, 3 * 10**6))
    ('700 ns', '1 / 3 * 1 us')
    """
    for unit, scale in _TIMES:
        number = seconds * scale
        text = decimal_text(number)
        if text is not None and (number >= 1 or unit == "ns"):
            return f"{text} {unit}"
    number = seconds * 10**6
    return f"{number.numerator} / {number.denominator} * 1 us"
