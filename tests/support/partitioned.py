"""All partitions of the ranks of a small network, and the most time that one proves for an allreduce."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from collc.ir.topology import Topology

__all__ = ["ends", "partitions", "slow_partition"]


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    first, *rest = items
    for found in partitions(rest):
        yield [[first], *found]
        for i, part in enumerate(found):
            yield [*found[:i], [first, *part], *found[i + 1 :]]


def ends(net: Topology) -> list[tuple[int, int, Fraction]]:
    return [(int(a), int(b), net.bandwidth(i)) for i, (a, b) in enumerate(zip(net.src, net.dst, strict=True))]


def slow_partition(net: Topology) -> Fraction:
    """The largest 2 (p-1) / bandwidth over all partitions of the ranks, with any switches for each part."""
    links, switches = ends(net), range(net.num_ranks, net.num_nodes)

    def width(part: list[int], inward: bool) -> Fraction:
        found = []
        for chosen in product((False, True), repeat=net.num_switches):
            inside = {*part, *(w for w, given in zip(switches, chosen, strict=True) if given)}
            out = [w for a, b, w in links if (a in inside) != (b in inside) and ((b if inward else a) in inside)]
            found.append(sum(out, Fraction(0)))
        return min(found)

    best = Fraction(0)
    for parts in partitions(list(range(net.num_ranks))):
        for inward in (False, True) if len(parts) > 1 else ():
            total = sum((width(part, inward) for part in parts), Fraction(0))
            best = max(best, Fraction(2 * (len(parts) - 1)) / total)
    return best
