"""The text of ``collc find --expand-to``: larger topologies, and the cables to change for one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collc.ir.shown import counted

from ..tools.larger import chosen
from ..tools.recabling import ADDED, KEPT, REMOVED
from .table import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..tools.finding import Frontier
    from ..tools.larger import Expansion
    from ..tools.recabling import Recabling

__all__ = ["growth_text"]

_MOST_SHOWN = 8  # nodes, and cables of each kind; the tables have all


def growth_text(base: Frontier, found: Sequence[Expansion]) -> str:
    """Return the table that follows the frontier, and how to get to the largest topology."""
    if base.best is None:
        return ""
    rows = [
        (str(one.row.nodes), str(one.row.T_L), str(one.row.T_B), "<->" if one.row.bidirectional else "->",
         str(one.grown.kept), str(one.grown.bound), one.grown.labelling, one.row.expression)
        for one in found
    ]  # fmt: skip
    head = ("nodes", "T_L", "T_B", "links", "kept", "at most", "labelling", "topology")
    links = found[0].grown.links if found else 0
    title = f"\nlarger topologies, and how many of the {links} links of {base.best.expression} they keep\n"
    largest = chosen(found)
    changes = "" if largest is None else _recabling(largest)
    return title + table(rows, head=head, right=(0, 1, 4, 5), indent="  ") + changes


def _recabling(one: Expansion) -> str:
    """Return what to do to get to a larger topology."""
    changes = one.recabling
    kept = counted(changes.count(KEPT), "cable")
    text = f"\nfrom {one.base} to {one.row.expression}: {kept} kept, {changes.count(REMOVED)} removed,"
    text += f" {changes.count(ADDED)} added\n"
    moved = [f"{old} -> {new}" for old, new in enumerate(changes.place) if old != new]
    new = [str(node) for node in range(changes.nodes) if node not in changes.old]
    lines = [("new numbers", _some(moved, "places") or "none, nodes keep theirs"), ("new nodes", _some(new, "places"))]
    lines += [(f"{verb} NODE:PORT", _cables(changes, change)) for verb, change in (("remove", REMOVED), ("add", ADDED))]
    return text + table(lines, indent="  ")


def _cables(changes: Recabling, change: str) -> str:
    """Return the cables with a change, each as the numbers before of its nodes, or the new node, with the ports."""
    old = changes.old

    def end(node: int, port: int) -> str:
        return f"{old[node]}:{port}" if node in old else f"new {node}:{port}"

    listed = [
        f"{end(one.node, one.port)} {one.direction} {end(one.peer, one.peer_port)}"
        for one in changes.cables if one.change == change
    ]  # fmt: skip
    return _some(listed, "recabling") or "none"


def _some(listed: Sequence[str], name: str) -> str:
    """Return the first items, and where the others are."""
    text = ", ".join(listed[:_MOST_SHOWN])
    more = len(listed) - _MOST_SHOWN
    return f"{text}, and {more} more (--table {name})" if more > 0 else text
