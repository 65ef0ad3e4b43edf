"""The proved bandwidth of a solution of the allreduce program: rounded to fractions, repaired, checked by flows."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.cuts import FlowNetwork

from .allreduce_network import Half, Net
from .allreduce_rounding import whole

__all__ = ["reached"]

_DENOMINATORS = (100, 1000, 20_000)


def reached(net: Net, roots: Array, held: list[Array], arc_flows: list[list[Array]]) -> Fraction:
    """Return the bandwidth of an existing allreduce: mostly that of the solution, or a value near it, or 0.

    ``roots`` is x of every kind of rank. Per half ``held`` is c of every kind of pair, and ``arc_flows`` are the flows
    of every first rank along its arcs (empty without switches). All values have the same unit of bandwidth, best one in
    which they are fractions of small denominators; the result is in the topology's unit.
    """
    return max((_reached(net, roots, held, arc_flows, most) for most in _DENOMINATORS), default=Fraction(0))


def _reached(net: Net, roots: Array, held: list[Array], arc_flows: list[list[Array]], most: int) -> Fraction:
    (x, *rest), denominator = whole([roots, *held, *(flow for half in arc_flows for flow in half)], most)
    load, carried, flows = [0] * len(net.width), rest[: len(held)], iter(rest[len(held) :])
    for half, c in zip(net.halves, carried, strict=True):
        if net.is_direct:
            for kind, budget in zip(half.pair_kind.tolist(), half.budget.tolist(), strict=True):
                load[budget] += c[kind]
        else:
            _deliver(net, half, c, flows, load)
    used = max(amount / width for amount, width in zip(load, net.width, strict=True)) / denominator
    if not used or not any(x):
        return Fraction(0)
    part = min(_part(net, half, x, c) for half, c in zip(net.halves, carried, strict=True))
    together = sum(amount * count for amount, count in zip(x, net.count.tolist(), strict=True))
    return Fraction(part * together / denominator / used)


def _deliver(net: Net, half: Half, held: list[int], flows: Iterator[list[int]], load: list[int]) -> None:
    """Lower ``held`` to the delivered flow, to 0 if a switch sends more than it receives; add up the load."""
    for rank, count in zip(net.first.tolist(), net.count.tolist(), strict=True):
        balance = [0] * net.num_nodes
        for arc, amount in zip(half.usable_arcs(rank, net.num_ranks).tolist(), next(flows), strict=True):
            balance[half.arcs[0][arc]] -= amount
            balance[half.arcs[1][arc]] += amount
            load[half.budget[arc]] += count * amount
        sound = min(balance[net.num_ranks :]) >= 0
        for pair in np.flatnonzero(half.pairs[0] == rank).tolist():
            kind = half.pair_kind[pair]
            held[kind] = min(held[kind], balance[half.pairs[1][pair]]) if sound else 0


def _part(net: Net, half: Half, roots: list[int], held: list[int]) -> Fraction:
    """Return the largest part of the roots' data that reaches every rank within what pairs hold (Newton on cuts)."""
    supply = [roots[kind] for kind in net.kind.tolist()]
    pairs = zip(half.pairs[0].tolist(), half.pairs[1].tolist(), half.pair_kind.tolist(), strict=True)
    arcs = [(tail, head, held[kind]) for tail, head, kind in pairs]
    network, part = FlowNetwork(net.num_ranks, arcs), Fraction(1)
    while part:
        network.refill((tail, head, width * part.denominator) for tail, head, width in arcs)
        cuts = network.violated([amount * part.numerator for amount in supply], net.first.tolist())
        if not cuts:
            return part
        inside = set(cuts[0].nodes)
        leaving = sum(width for tail, head, width in arcs if tail in inside and head not in inside)
        part = Fraction(leaving, sum(supply[rank] for rank in inside))
    return part
