"""Nodes that are left out: switches with a single host, and the parts of a network that were not chosen."""

from __future__ import annotations

from collections.abc import Mapping

from collc.ir.shown import counted, some

from .model import Draft

__all__ = ["keep_part", "leave_out_dead_ends"]


def keep_part(draft: Draft, part: Mapping[str, str], node: str) -> None:
    """Remove all nodes that are in another part than a node; a comment says so."""
    for table in (draft.ranks, draft.switches):
        for name in [name for name in table if part[name] != part[node]]:
            del table[name]
    draft.cables = [cable for cable in draft.cables if cable.a in draft]
    draft.note(f"only the part of the file with `{node}`")


def leave_out_dead_ends(draft: Draft) -> None:
    """Remove the switches that are linked to a single rank and to nothing else; a warning (C0942) names them.

    No message takes them, and schedulers refuse them. A switch beside a single switch is an open end, and stays.
    """
    neighbours: dict[str, set[str]] = {name: set() for name in draft.switches}
    for cable in draft.cables:
        for a, b in ((cable.a, cable.b), (cable.b, cable.a)):
            if a in neighbours:
                neighbours[a].add(b)
    dead = [name for name, others in neighbours.items() if len(others) == 1 and others <= draft.ranks.keys()]
    if dead:
        names = some([f"`{name}`" for name in dead])
        message = f"left out {counted(len(dead), 'switch')} with a single host: {names}"
        draft.note(message)
        draft.warn("C0942", message, draft.switches[dead[0]])
        removed = set(dead)
        draft.cables = [cable for cable in draft.cables if cable.a not in removed and cable.b not in removed]
        for name in dead:
            del draft.switches[name]
