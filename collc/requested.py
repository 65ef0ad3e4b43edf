"""Is what a pass left for the network and the collective that were asked for?

A pass keeps the network, whatever it does on the way: what is scheduled on the transpose is turned round before it
leaves. It keeps the collective but for what :meth:`~collc.passes.base.Pass.turned` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from collc.ir.collective import Collective
from collc.ir.topology import Topology

__all__ = ["describe", "other_collective", "other_network"]

Array = np.ndarray[Any, np.dtype[Any]]


def describe(collective: Collective, other: Collective) -> str:
    """Return a collective in words, with all in which another differs.

    >>> describe(Collective("allreduce", 4), Collective("allreduce", 4, op="max"))
    'allreduce over 4 ranks, op sum'
    """
    root = f" with root {collective.root}" if collective.root is not None else ""
    said = f"{collective.kind}{root} over {collective.num_ranks} ranks"
    for field in ("op", "dtype", "size"):
        mine, theirs = getattr(collective, field), getattr(other, field)
        if mine != theirs:
            said += f", no {field}" if mine is None else f", {field} {mine}"
    return said


def other_collective(asked: Collective, found: Collective) -> str:
    """Return in what a collective differs from the one asked for; nothing where it does not."""
    if asked == found:
        return ""
    return f"it is for {describe(found, asked)}; asked for is {describe(asked, found)}"


def other_network(asked: Topology, found: Topology) -> str:
    """Return in what a network differs from the one asked for, names aside; nothing where it does not."""
    if asked is found:
        return ""
    wrong = next(_differences(asked, found), None)
    return "" if wrong is None else f"it is for another network: {wrong}"


def _differences(asked: Topology, found: Topology) -> Iterator[str]:
    for field, noun in (("num_ranks", "ranks"), ("num_switches", "switches"), ("num_links", "links")):
        mine, theirs = getattr(asked, field), getattr(found, field)
        if mine != theirs:
            yield f"{theirs} {noun}, asked for are {mine}"
    if asked.unit != found.unit:
        yield f"bandwidths in {found.unit}, asked for is {asked.unit}"
    apart = np.flatnonzero((asked.src != found.src) | (asked.dst != found.dst))
    if len(apart):
        link = int(apart[0])
        yield f"link {link} runs {_ends(found, link)}, asked for is {_ends(asked, link)}"
    if asked.classes == found.classes and np.array_equal(asked.link_class, found.link_class):
        return
    for field in ("bandwidth", "latency"):
        mine, theirs = _of_links(asked, field), _of_links(found, field)
        for link, (wanted, made) in enumerate(zip(mine, theirs, strict=True)):
            if wanted != made:
                yield f"{field} {made} of link {link}, asked for is {wanted}"


def _ends(topology: Topology, link: int) -> str:
    return f"from {int(topology.src[link])} to {int(topology.dst[link])}"


def _of_links(topology: Topology, field: str) -> list[Any]:
    known = [getattr(kind, field) for kind in topology.classes]
    return [known[number] if number < len(known) else "of no class" for number in topology.link_class.tolist()]
