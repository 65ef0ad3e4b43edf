"""Comparing the result of a pass with the requested network and collective.

A pass keeps the network: a pass that schedules on the transpose reverses its result. It keeps the collective unless
:meth:`~collc.passes.base.Pass.turned` declares another.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collc.ir.collective import Collective
from collc.ir.shown import brief
from collc.ir.topology import Topology

__all__ = ["describe", "other_collective", "other_network"]


def describe(collective: Collective, other: Collective) -> str:
    """Return a collective in words, with each field in which another differs.

    >>> describe(Collective("allreduce", 4), Collective("allreduce", 4, op="max"))
    'allreduce over 4 ranks, op sum'
    """
    root = f" with root {collective.root}" if collective.root is not None else ""
    text = f"{collective.name}{root} over {collective.num_ranks} ranks"
    for field in ("op", "dtype", "size", "members", "weights", "pre", "post"):
        value, other_value = getattr(collective, field), getattr(other, field)
        if value != other_value:
            text += f", no {field}" if value is None else f", {field} {_text(value)}"
    return text


def _text(value: object) -> str:
    return value if isinstance(value, str) else brief(value)


def other_collective(requested: Collective, found: Collective) -> str:
    """Return how a collective differs from the requested one; "" if it does not."""
    if requested == found:
        return ""
    return f"found {describe(found, requested)}; requested {describe(requested, found)}"


def other_network(requested: Topology, found: Topology) -> str:
    """Return how a network differs from the requested one, apart from names; "" if it does not."""
    if requested is found:
        return ""
    wrong = next(_differences(requested, found), None)
    return "" if wrong is None else f"another network: {wrong}"


def _differences(requested: Topology, found: Topology) -> Iterator[str]:
    for field, noun in (("num_ranks", "ranks"), ("num_switches", "switches"), ("num_links", "links")):
        number, expected = getattr(found, field), getattr(requested, field)
        if number != expected:
            yield f"found {number} {noun}, requested {expected}"
    if requested.unit != found.unit:
        yield f"found bandwidths in {found.unit}, requested {requested.unit}"
    apart = np.flatnonzero((requested.src != found.src) | (requested.dst != found.dst))
    if len(apart):
        link = int(apart[0])
        yield f"found link {link} {_ends(found, link)}, requested {_ends(requested, link)}"
    if requested.classes == found.classes and np.array_equal(requested.link_class, found.link_class):
        return
    for field in ("bandwidth", "latency"):
        pairs = zip(_of_links(found, field), _of_links(requested, field), strict=True)
        for link, (value, expected) in enumerate(pairs):
            if value != expected:
                yield f"found {field} {value} of link {link}, requested {expected}"


def _ends(topology: Topology, link: int) -> str:
    return f"from {int(topology.src[link])} to {int(topology.dst[link])}"


def _of_links(topology: Topology, field: str) -> list[object]:
    known = [getattr(kind, field) for kind in topology.classes]
    return [known[number] if number < len(known) else "of no class" for number in topology.link_class.tolist()]
