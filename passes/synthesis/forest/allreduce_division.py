"""From bandwidths of roots and arcs to whole numbers of trees on links, and the exact check of those."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import gcd, lcm

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.bypass import Bypass
from collc.ir.graph.cuts import FlowNetwork
from collc.ir.topology import Topology

from .allreduce_classes import Classes
from .division import Division

__all__ = ["Shares", "alike_division", "division_holds", "equal_division", "spread", "whole_division", "whole_trees"]

#: multiples of the fewest trees with these roots that are tried before all bandwidths are whole
_MULTIPLES = 8
_MANY = 2  # trees a rank, from which fewer are tried


@attrs.frozen
class Shares:
    """A solution of the allreduce program: bandwidths of every class of roots and of every column, in whole units."""

    roots: tuple[Fraction, ...]
    held: tuple[Fraction, ...]


def whole_division(
    topology: Topology, found: Classes, shares: Shares, multicast: Collection[int] = (), reduces: Collection[int] = ()
) -> Division:
    """Return the fewest trees with these shares: few if whole trees on links are enough, else as many as it takes.

    Raises ValueError if the shares are no solution.
    """
    for times in _numbers_of_trees(found, shares):
        whole = _at(topology, found, shares, times)
        if whole is not None and division_holds(topology, whole, multicast, reduces):
            return _fewer(topology, _smallest(whole), multicast, reduces)
    raise ValueError("the shares of roots and links are no allreduce")


def alike_division(topology: Topology, found: Classes, shares: Shares) -> Division | None:
    """Return few trees with these shares, equal ones of equivalent ranks; None if the shares are no solution."""
    for times in _numbers_of_trees(found, shares):
        whole = _at(topology, found, shares, times)
        if whole is not None and division_holds(topology, whole):
            return _smallest(whole)
    return None


def whole_trees(found: Classes, shares: Shares) -> int:
    """Return the fewest trees of equal shares that fill all links exactly."""
    per_unit = _filling(found, shares)
    return sum(int(x * per_unit) * int(count) for x, count in zip(shares.roots, found.count, strict=True))


def _numbers_of_trees(found: Classes, shares: Shares) -> Iterator[Fraction]:
    """Yield trees per unit of bandwidth: small multiples of the fewest with whole roots, then all bandwidths whole."""
    common = lcm(*(x.denominator for x in shares.roots))
    fewest = Fraction(common, gcd(*(int(x * common) for x in shares.roots)))
    yield from (times * fewest for times in range(1, _MULTIPLES + 1))
    yield _filling(found, shares)


def _filling(found: Classes, shares: Shares) -> Fraction:
    """Return the least number of trees per unit of bandwidth at which all roots and links have whole numbers."""
    numbers = [*shares.roots, *shares.held, *_parts(found, shares)]
    common = lcm(*(number.denominator for number in numbers))
    return Fraction(common, gcd(*(int(number * common) for number in numbers)))


def _parts(found: Classes, shares: Shares) -> set[Fraction]:
    """Return the bandwidths of arcs per whole unit of their width: of parallel links, each has as many units."""
    return {
        shares.held[column] / width
        for half in (0, 1)
        for column, width in set(zip(found.column[half].tolist(), found.width, strict=True))
    }


def _at(topology: Topology, found: Classes, shares: Shares, times: Fraction) -> Division | None:
    """Return the division of ``times`` trees for a unit, links rounded down; None if parallel links hold too few."""
    held = [int(c * times) for c in shares.held]
    per_unit = times * found.scale
    whole = [int(kind.bandwidth * per_unit) for kind in topology.classes]
    free = [whole[kind] for kind in topology.link_class.tolist()]
    both = []
    for half in (0, 1):
        part = spread(topology, found, [held[c] for c in found.column[half].tolist()], free)
        if part is None:
            return None
        both.append(part)
    roots = [int(x * times) for x in shares.roots]
    return Division(
        tuple(roots[kind] for kind in found.node[: found.num_ranks].tolist()), tuple(both[1]), tuple(both[0]), per_unit
    )


def spread(topology: Topology, found: Classes, held: Sequence[int], free: list[int]) -> list[int] | None:
    """Return the trees of every link, taken from what is free on parallel links in order; None if too few are free."""
    code = found.arcs[0] * topology.num_nodes + found.arcs[1]
    ends = topology.src.astype(np.int64) * topology.num_nodes + topology.dst
    arcs = np.where(topology.src == topology.dst, -1, np.searchsorted(code, ends)).tolist()
    left, spread = list(held), [0] * topology.num_links
    for link, arc in enumerate(arcs):
        if arc >= 0:
            spread[link] = min(left[arc], free[link])
            left[arc] -= spread[link]
            free[link] -= spread[link]
    return None if any(left) else spread


def _fewer(topology: Topology, division: Division, multicast: Collection[int], reduces: Collection[int]) -> Division:
    """Return about as many trees as ranks, if there are more: equivalent ranks then root one tree more or less.

    Only the roots are rounded, to sums along the ranks: so neighbours together, as those of a box, keep their amount.
    """
    ranks, tried = len(division.roots), 0
    common = gcd(division.trees, *division.inward, *division.outward)
    for part in range(1, common) if division.trees > _MANY * ranks else ():
        share = Fraction(part, common)
        if 2 * division.trees * share >= ranks and tried < _MULTIPLES:
            sums = [int(total * share) for total in accumulate(division.roots, initial=0)]
            inward, outward = (tuple(int(n * share) for n in row) for row in (division.inward, division.outward))
            roots = tuple(b - a for a, b in pairwise(sums))
            found = Division(roots, inward, outward, division.per_unit * share)
            if division_holds(topology, found, multicast, reduces):
                return _smallest(found)
            tried += 1
    return division


def _smallest(division: Division) -> Division:
    common = gcd(*division.roots, *division.inward, *division.outward)
    roots, inward, outward = (
        tuple(n // common for n in row) for row in (division.roots, division.inward, division.outward)
    )
    return Division(roots, inward, outward, division.per_unit / common)


def equal_division(topology: Topology) -> Division:
    """Return the division of the best reduce-scatter and the best allgather with equal shards, one after the other.

    Every link holds as many whole trees as its bandwidth. Raises C0301 unless every rank reaches every other.
    """
    from .capacities import link_capacities
    from .optimum import optimum

    supply = [1] * topology.num_ranks
    gather = optimum(topology, supply)
    scatter = gather if topology.reverse_links is not None else optimum(topology.transpose(), supply)
    k = lcm(gather.k, scatter.k)
    outward = [k // gather.k * trees for trees in link_capacities(topology, gather.per_unit)]
    inward = [k // scatter.k * trees for trees in link_capacities(topology, scatter.per_unit)]
    loops = (topology.src == topology.dst).tolist()
    rows = [[0 if loop else n for loop, n in zip(loops, row, strict=True)] for row in (inward, outward)]
    per_unit = k * (gather.per_unit / gather.k + scatter.per_unit / scatter.k)
    return Division((k,) * topology.num_ranks, tuple(rows[0]), tuple(rows[1]), per_unit)


# ---- the exact check


def division_holds(
    topology: Topology, division: Division, multicast: Collection[int] = (), reduces: Collection[int] = ()
) -> bool:
    """Return whether links hold the trees, switches pass them on, and every cut lets them through, exactly.

    Nothing is taken from the search: cuts are those of flows from all roots to every rank.
    """
    rows = (division.inward, division.outward)
    if min(division.roots, default=0) < 0 or min(min(row, default=0) for row in rows) < 0:
        return False
    budget = [kind.bandwidth * division.per_unit for kind in topology.classes]
    kinds = topology.link_class.tolist()
    if any(a + b > budget[kind] for a, b, kind in zip(*rows, kinds, strict=True)):
        return False
    return (
        _passes(topology, division.outward, frozenset(multicast), 1)
        and _passes(topology, division.inward, frozenset(reduces), -1)
        and _spans(topology.num_nodes, topology.src, topology.dst, division.outward, division.roots)
        and (
            _is_mirrored(topology, division)
            or _spans(topology.num_nodes, topology.dst, topology.src, division.inward, division.roots)
        )
    )


def _is_mirrored(topology: Topology, division: Division) -> bool:
    """Return whether inward trees have of every link what outward trees have of its reverse: cuts are the same then."""
    back = topology.reverse_links
    return back is not None and list(division.inward) == [division.outward[link] for link in back.tolist()]


def _passes(topology: Topology, held: Sequence[int], able: frozenset[int], sign: int) -> bool:
    """Return whether as many trees enter each switch as leave it; at switches ``able``, leave (-1: enter) more."""
    surplus = [0] * topology.num_nodes
    for tail, head, trees in zip(topology.src.tolist(), topology.dst.tolist(), held, strict=True):
        surplus[tail] += trees
        surplus[head] -= trees
    switches = range(topology.num_ranks, topology.num_nodes)
    return all(sign * surplus[w] >= 0 if w in able else not surplus[w] for w in switches)


def _spans(nodes: int, tails: Array, heads: Array, held: Sequence[int], roots: Sequence[int]) -> bool:
    network = FlowNetwork(nodes, Bypass(len(roots), nodes, tails.tolist(), heads.tolist()).arcs(held))
    return not network.violated([*roots, *[0] * (nodes - len(roots))], range(len(roots)))
