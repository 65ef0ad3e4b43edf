"""Breadth-first schedules with delayed arrivals: bandwidth-optimal where parallel links make plain BFB fall short.

Why BFB falls short. In its first step every neighbour receives a whole shard. Where the source reaches one neighbour by two parallel
links and another by one, the two carry half a shard each and the one a whole shard: the links are not equally busy,
so T_B is above (N-1)/N. The two-parallel-links dimension of a torus with a side of 2 costs 1/N in this way.

What is relaxed. The number of steps stays the diameter D, but a node may receive (a part of) a shard later than its distance from
the source. Cut every shard in types of equal size, and give every node for every type a label: the step in which it receives it, at
least one in-neighbour having a smaller label. Then in step t a node may divide each job (a type of a shard due at t) in any way
among its in-links from nodes with smaller labels, since those have all of it by then: steps and nodes are
independent of each other, and the least load of the busiest link is the balance problem of :mod:`.balance`, as in
BFB (LP (1) of the direct-connect paper), which is the case of one type labelled by distance.

What is proved and what is searched. On a network with a regular abelian symmetry one source's labels, translated, serve all sources, and
link k of every rank carries the same load. So T_B = d/N * (sum over steps of the busiest link's load), exactly, from
one node's balance; a schedule is returned only where that is less than BFB's, and it is bandwidth-optimal when the
sum is (N-1)/d, that is when all links are equally busy in every step. Finding labels is a search with bounded effort
(:mod:`.labels`) which may miss. It cannot always succeed: a ring of m >= 3 times one side of 2 has no such schedule in D steps.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import attrs
import numpy as np

from collc.ir.arrays import fit
from collc.ir.collective import Collective
from collc.ir.schedule import Action, Schedule
from collc.ir.topology import Topology, Translations

from .balance import Balance, balance
from .labels import View, grow_labels

__all__ = ["relaxed_breadth_first"]

Array = np.ndarray[Any, np.dtype[Any]]

_ATTEMPTS = 400  # for one plan
_EFFORT = 100_000  # nodes labelled, all types and attempts together; past it a plan gets only _ALWAYS attempts
_ALWAYS = 4
_MOST_TYPES = 12


def relaxed_breadth_first(topology: Topology, collective: Collective) -> Schedule | None:
    """Return an allgather in as many steps as the diameter with a smaller T_B than BFB's, or nothing.

    Nothing is returned where the method does not apply (not an allgather; no ``symmetry``, switches, links that differ, no parallel
    links, more than 62 links a node, not connected), where BFB is optimal already, and where the search finds nothing better.
    The result depends on the arguments only: no clock, no floating point in any decision.
    """
    view, slots = _view(topology, collective)
    if view is None:
        return None
    plain = _total(view, view.hops[:1].astype(np.int64))
    least = Fraction(view.num_nodes - 1, view.width)
    if plain == least or len(np.unique(view.tails[0])) == view.width:
        return None
    labels = _best_labels(view, plain, least)
    return None if labels is None else _schedule(topology, collective, view, slots, labels)


def _view(topology: Topology, collective: Collective) -> tuple[View, list[int]] | tuple[None, None]:
    """Return the network seen from rank 0, and which of a rank's links its in-links are; nothing where that does not serve all ranks."""
    n = topology.num_ranks
    if (
        collective.kind != "allgather" or topology.symmetry is None or n < 2
        or not (topology.is_direct and topology.is_uniform and topology.is_connected)
    ):  # fmt: skip
        return None, None
    heads = topology.dst.astype(np.int64).reshape(n, -1)
    slots = np.flatnonzero(heads[0] != 0)
    if len(slots) > 62:
        return None, None
    tails = np.empty((n, len(slots)), dtype=np.int64)
    for k, slot in enumerate(slots):
        tails[heads[:, slot], k] = np.arange(n)
    return View(tails, topology.distances), slots.tolist()


def _best_labels(view: View, plain: Fraction, least: Fraction) -> Array | None:
    """Grow labels by one plan after the other, from several seeds each; return the best whose loads add up to less than ``plain``."""
    best, spent = None, 0
    for types, most, goal in _plans(view, least):
        if goal >= plain:
            continue
        for seed in range(_ATTEMPTS):
            spent += types * view.num_nodes
            if spent > _EFFORT and seed >= _ALWAYS:
                break
            labels = grow_labels(view, types, most, seed)
            if labels is not None and (total := _total(view, labels)) < plain:
                best, plain = labels, total
            if plain <= goal:
                break
    return best


def _plans(view: View, least: Fraction) -> list[tuple[int, int | None, Fraction]]:
    """Return what to try: how many types, how many jobs a link may get in a step, and the sum of loads it may lead to.

    First the optimum: all links equally busy. The first step, in which a neighbour's parallel links share one job of each type, decides how
    many types that takes. Then constant rates, the smallest first.
    """
    parallel = int(np.unique(view.tails[0], return_counts=True)[1].max())
    rates = {Fraction(most, types): types for types in range(_MOST_TYPES, 1, -1) for most in range(1, types)}
    slow = [
        (types, int(rate * types), rate * view.diameter)
        for rate, types in sorted(rates.items())
        if rate * view.diameter > least
    ]
    return [(parallel, None, least), *slow]


def _total(view: View, labels: Array) -> Fraction:
    """Return the load of the busiest link, added up over the steps, in shards."""
    steps = range(1, int(labels.max()) + 1)
    return sum((share.load for share, _, _ in _balanced(view, labels, steps)), Fraction(0)) / len(labels)


def _balanced(view: View, labels: Array, steps: range) -> list[tuple[Balance, Array, Array]]:
    """Divide every step's jobs optimally; returns for each step the division and its jobs' types and nodes."""
    result = []
    for step in steps:
        kinds, nodes = np.nonzero(labels == step)
        masks = view.masks(labels[kinds[:, None], view.tails[nodes]] < step)
        order = np.argsort(masks, kind="stable")
        known, counts = np.unique(masks, return_counts=True)
        histogram = tuple(zip(known.tolist(), counts.tolist(), strict=True))
        result.append((balance(histogram), kinds[order], nodes[order]))
    return result


def _schedule(
    topology: Topology, collective: Collective, view: View, slots: list[int], labels: Array
) -> Schedule:
    """Return the schedule in which every rank's shard travels as the labels say, moved by translation."""
    divided = _balanced(view, labels, range(1, view.diameter + 1))
    types = len(labels)
    unit = lcm(1, *(share.parts for share, _, _ in divided))
    pieces = [_pieces(share, kinds, nodes, unit) for share, kinds, nodes in divided]
    step = np.repeat(np.arange(len(pieces)), [len(p) for p in pieces])
    node, slot, lo, hi = np.concatenate(pieces).T
    ranks = np.arange(topology.num_ranks)
    assert isinstance(topology.symmetry, Translations)
    tail = topology.symmetry.translate(ranks[None, :], view.tails[node, slot][:, None])
    degree = topology.num_links // topology.num_ranks
    route = tail * degree + np.array(slots)[slot][:, None]

    def spread(column: Array) -> Array:
        narrow = column.astype(fit(0, int(column.max(initial=0))))
        return np.repeat(narrow, topology.num_ranks)

    return Schedule(
        topology, collective, unit * types, step=spread(step),
        action=np.full(route.size, Action.COPY, dtype=np.uint8), shard=np.tile(ranks, len(step)),
        lo=spread(lo), hi=spread(hi), route=route.ravel(), scheduler="bfb",
    )  # fmt: skip


def _pieces(share: Balance, kinds: Array, nodes: Array, unit: int) -> Array:
    """Return one step's transfers of shard 0 as rows (node, in-link, lo, hi) in parts of 1/(types * unit) shard; adjoining ones joined."""
    scale = unit // share.parts
    first = kinds[share.job] * unit
    rows = np.stack([nodes[share.job], share.slot, first + share.lo * scale, first + share.hi * scale], axis=1)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    joins = (rows[1:, :2] == rows[:-1, :2]).all(axis=1) & (rows[1:, 2] == rows[:-1, 3])
    start = np.flatnonzero(np.concatenate([[True], ~joins]))
    end = np.append(start[1:], len(rows)) - 1
    return np.column_stack([rows[start, :3], rows[end, 3]])
