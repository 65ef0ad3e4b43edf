"""YAML of ASTRA-sim's analytical network: a product of rings, complete graphs and switches.

ASTRA-sim numbers NPUs with the first dimension fastest, collc's families with the last: a torus(4, 2) has the
dimensions 2 and 4. The writer finds the dimensions from the links, and writes a network only if the product of its
dimensions has exactly these links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product as cartesian
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from collc.ir.links import LinkClass
from collc.ir.shown import clipped, counted

from .values import decimal_text, refused, require_printable

if TYPE_CHECKING:
    from collc.ir.diagnostic import CollcError
    from collc.ir.topology import Topology

__all__ = ["Dimension", "dimensions", "write"]

#: the most dimensions that are tried
_MOST_DIMENSIONS = 6
#: the most ranks: factorizations are tried one by one
_MOST_RANKS = 1 << 16


class Dimension(NamedTuple):
    """One dimension: ``Ring``, ``FullyConnected`` or ``Switch`` of a number of NPUs, and its links."""

    kind: str
    size: int
    link: LinkClass


def write(topology: Topology, giga: int = 10**9, unit: str = "GB/s") -> str:
    """Return the YAML; raise C0780 for a network that is no such product, or whose numbers are no decimals.

    Names of nodes, gamma and epsilon have no place in it. A bandwidth is in ``giga`` bytes a second, called ``unit``.
    """
    require_printable((topology.name,), "ASTRA-sim")
    if topology.unit != "B/s":
        raise refused(
            "ASTRA-sim", "its links have no bandwidth in B/s", "add `with { bandwidth: 25 GB/s, latency: 1 us }`"
        )
    found = dimensions(topology)
    if found is None:
        raise _no_product(topology)
    rates = [_decimal(one.link.bandwidth / giga, "bandwidth", unit) for one in found]
    latencies = [_decimal(one.link.latency * 10**9, "latency", "ns") for one in found]
    title = f"{clipped(topology.name)}: {counted(topology.num_ranks, 'rank')}"
    lines = [
        f"# {title}", f"topology: {_list([one.kind for one in found])}",
        f"npus_count: {_list([str(one.size) for one in found])}", f"bandwidth: {_list(rates)}  # {unit}",
        f"latency: {_list(latencies)}  # ns",
    ]  # fmt: skip
    return "\n".join([*lines, ""])


def _no_product(topology: Topology) -> CollcError:
    found = f"{counted(topology.num_ranks, 'rank')} and {counted(topology.num_switches, 'switch')}"
    reason = f"its links are no product of rings, complete graphs and switches ({found})"
    return refused("ASTRA-sim", reason, "`--as nodelink` writes any network")


def _list(items: Sequence[str]) -> str:
    return f"[ {', '.join(items)} ]"


def _decimal(value: Fraction, what: str, unit: str) -> str:
    text = decimal_text(value)
    if text is None:
        raise refused("ASTRA-sim", f"a {what} of {value} {unit} is no decimal")
    return text


# ---- dimensions


def dimensions(topology: Topology) -> tuple[Dimension, ...] | None:
    """Return the dimensions whose product has the same links, fewest first; None if there are none.

    >>> from collc.frontends.coll import topology
    >>> [(one.kind, one.size) for one in dimensions(topology("torus(4, 3)"))]
    [('Ring', 3), ('Ring', 4)]
    """
    ranks = topology.num_ranks
    if not 2 <= ranks <= _MOST_RANKS or not topology.num_links:
        return None
    links = _links(topology)
    out = {(end, link) for src, end, link in links if src == 0}
    for sizes in sorted(_factorizations(ranks), key=lambda sizes: (len(sizes), sizes)):
        found = _typed(out, sizes)
        if found is not None and Counter(_product_links(found)) == links:
            return found
    return None


Link = tuple[object, object, LinkClass]


def _links(topology: Topology) -> Counter[Link]:
    """Return the links; a switch is the set of the ranks that it joins, so its number does not matter."""
    reached: dict[int, set[int]] = {node: set() for node in range(topology.num_ranks, topology.num_nodes)}
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True))
    for src, dst, _ in ends:
        for switch, other in ((src, dst), (dst, src)):
            if switch in reached:
                reached[switch].add(other)
    ends_of: list[object] = [*range(topology.num_ranks), *(frozenset(each) for each in reached.values())]
    return Counter((ends_of[src], ends_of[dst], topology.classes[kind]) for src, dst, kind in ends)


def _factorizations(number: int, most: int = _MOST_DIMENSIONS) -> Iterator[tuple[int, ...]]:
    """Yield the ordered factorizations into factors of at least 2."""
    yield (number,)
    if most > 1:
        for first in range(2, number // 2 + 1):
            if number % first == 0:
                yield from ((first, *rest) for rest in _factorizations(number // first, most - 1))


def _typed(out: set[tuple[object, LinkClass]], sizes: Sequence[int]) -> tuple[Dimension, ...] | None:
    """Return the kinds of the dimensions of these sizes, by the links ``out`` of rank 0; None if one fits no kind."""
    found = []
    for place, size in enumerate(sizes):
        stride = prod(sizes[:place])
        line = frozenset(stride * k for k in range(size))
        kind = _kind(out, line, stride, size)
        if kind is None:
            return None
        found.append(Dimension(*kind))
    return tuple(found)


def _kind(
    out: set[tuple[object, LinkClass]], line: frozenset[int], stride: int, size: int
) -> tuple[str, int, LinkClass] | None:
    """Return the kind of a dimension by the links out of rank 0 along its line."""
    along = [(end, link) for end, link in out if end in line or end == line]
    if len({link for _, link in along}) != 1:
        return None
    ends, link = {end for end, _ in along}, along[0][1]
    if ends == {line}:
        return "Switch", size, link
    if size > 2 and ends == {stride, stride * (size - 1)}:
        return "Ring", size, link
    return ("FullyConnected", size, link) if ends == line - {0} else None


def _product_links(found: Sequence[Dimension]) -> Iterator[Link]:
    """Yield the links of a product of dimensions, each once."""
    sizes = [one.size for one in found]
    strides = [prod(sizes[:place]) for place in range(len(sizes))]
    for place in cartesian(*(range(size) for size in sizes)):
        rank = sum(map(int.__mul__, place, strides))
        for one, stride, at in zip(found, strides, place, strict=True):
            start = rank - stride * at
            yield from _line_links(one, rank, at, start, stride)


def _line_links(one: Dimension, rank: int, at: int, start: int, stride: int) -> Iterator[Link]:
    """Yield the links between a rank and its line in one dimension."""
    if one.kind == "Switch":
        switch = frozenset(start + stride * k for k in range(one.size))
        yield rank, switch, one.link
        yield switch, rank, one.link
        return
    steps = (1, one.size - 1) if one.kind == "Ring" else range(1, one.size)
    for step in steps:
        yield rank, start + stride * ((at + step) % one.size), one.link
