"""Breadth-first schedules with delayed arrivals: bandwidth-optimal where parallel links unbalance plain BFB.

Why BFB is not optimal. In its first step every neighbour receives a whole shard. If the source has two parallel links
to one neighbour and one link to another, the two carry half a shard each and the one a whole shard. The links are not
equally busy, so T_B is above (N-1)/N. A torus loses 1/N in this way for every side of 2, beside sides of 3 or more.

What is relaxed. The number of steps stays the diameter D, but a node may receive (a part of) a shard later than its
distance from the source. Every shard consists of types, parts of equal size. For every type every node has a label, the
step in which it receives the type, and an in-neighbour with a smaller label. In step t a node may divide each of its
jobs (a type of a shard due at t) freely among its in-links from nodes with smaller labels, since those have all of it
by then. So nodes and steps are independent, and the least load of the busiest link is the problem of :mod:`.balance`.
BFB (LP (1) of the direct-connect paper) is the case of one type labelled by distance.

What is exact and what is searched. Under a regular abelian symmetry the labels of one source, translated, serve all,
and link k of every rank carries the same load; so T_B is d/N times the sum over steps of the busiest link's load at
one node, exactly. The sum is at least (N-1)/d, with equality only if all links are equally busy in every step. The
search returns a schedule only if its T_B is less than BFB's. It has bounded effort (:mod:`.labels`) and may miss the
best labels; on tori of three and more sides it finds the optimum (tested, not proved).

What is impossible. On a ring of m = 2h+1 nodes times one side of 2, no schedule in D = h+1 steps keeps all links
equally busy. Such a schedule moves no data twice, so the m rungs (pairs of parallel links) carry (N-1)/2 = m - 1/2
shards, no rung more than one. The node beside the one h hops along the ring is D hops from the source. Only data that
first went h hops along the ring, without a pause, use their rung. In step 1 the rung at the source carries at most one
shard, so every link at most 1/2: at most half of the data use that rung. The same holds for h hops in the other
direction, so the rungs carry at most m - 1. The best schedule found has the same rate in all steps: T_B = 1 - 1/m^2,
and 1 - 2/(m(m+1)) for even m, where BFB has 1. A shard then has m or m+1 types, up to :data:`_MOST_TYPES`.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from collc.ir.arrays import Array, distinct
from collc.ir.collective import Collective
from collc.ir.group import Translations
from collc.ir.ragged import owners
from collc.ir.schedule import Action, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import Topology

from .balance import Balance, balance
from .labels import Plan, View, grow_labels

__all__ = ["relaxed_breadth_first"]

_ATTEMPTS = 128  # seeds for one plan
_EFFORT = 80_000  # labels grown, over all attempts; beyond it only the first plan continues, to _ALWAYS attempts
_ALWAYS = 8
_PER_ATTEMPT = 60  # fixed cost of an attempt, in labels
_MOST_TYPES = 12
_MOST_RANKS = 4096  # beyond, a search takes minutes and saves less than one part in N


def relaxed_breadth_first(topology: Topology, collective: Collective) -> SymmetricSchedule | None:
    """Return the template of an allgather in as many steps as the diameter with a smaller T_B than BFB's, or None.

    Returns None if the method does not apply (not an allgather; no abelian ``symmetry``; switches; links that differ;
    more than 62 links or 4,096 ranks; not connected; no parallel links), if BFB is optimal already, and if the search
    finds no better schedule. The result depends on the arguments alone: no clock, no floating point in any decision.
    """
    view, slots = _view(topology, collective)
    if view is None:
        return None
    plain = _total(view, view.hops[:1].astype(np.int64))
    labels = _best_labels(view, plain)
    return None if labels is None else _schedule(topology, collective, view, slots, labels)


def _view(topology: Topology, collective: Collective) -> tuple[View | None, Array]:
    """Return the network seen from rank 0, and for each in-link its place among the links of the rank it comes from."""
    n = topology.num_ranks
    none = np.zeros(0, dtype=np.int64)
    if collective.kind != "allgather" or not isinstance(topology.symmetry, Translations) or not 2 <= n <= _MOST_RANKS:
        return None, none
    if not (topology.is_direct and topology.is_uniform and topology.is_connected):
        return None, none
    heads = topology.dst.astype(np.int64).reshape(n, -1)
    slots = np.flatnonzero(heads[0] != 0)  # without loops
    if len(slots) > 62 or len(distinct(heads[0, slots])) == len(slots):
        return None, none
    tails = np.empty((n, len(slots)), dtype=np.int64)
    for k, slot in enumerate(slots):
        tails[heads[:, slot], k] = np.arange(n)
    return View(tails, _distances(topology, topology.symmetry)), slots


def _distances(topology: Topology, symmetry: Translations) -> Array:
    """Return the hops from v to u at [v, u] (int16): those from rank 0, translated."""
    ranks, hops = np.arange(topology.num_ranks), topology.hops_from(0).astype(np.int16)
    return np.stack([hops[symmetry.multiply(back, ranks)] for back in symmetry.inverse(ranks)])


# ---- labels


def _best_labels(view: View, plain: Fraction) -> Array | None:
    """Try the plans in order, with several seeds each; return the labels with the least total below ``plain``."""
    best, spent = None, 0
    for plan, goal in _plans(view):
        for seed in range(_ATTEMPTS):
            if plain <= goal or (spent > _EFFORT and (plan.most is not None or seed >= _ALWAYS)):
                break
            spent += plan.types * view.num_nodes + _PER_ATTEMPT
            labels = grow_labels(view, plan, seed)
            if labels is not None and (total := _total(view, labels)) < plain:
                best, plain = labels, total
    return best


def _plans(view: View) -> list[tuple[Plan, Fraction]]:
    """Return the plans to try, each with the least total of loads it can reach.

    First the optimum, all links equally busy: in the first step the links to one neighbour share one job of every
    type, so it takes as many types as there are parallel links. Then the same rate in all steps, the smallest first.
    """
    least = Fraction(view.num_nodes - 1, view.width)
    parallel = int(np.unique(view.tails[0], return_counts=True)[1].max())
    rates = sorted({Fraction(most, types) for types in range(2, _MOST_TYPES + 1) for most in range(1, types)})
    steady = [(Plan(r.denominator, r.numerator), r * view.diameter) for r in rates]
    return [(Plan(parallel), least), *(p for p in steady if p[1] > least)]


def _total(view: View, labels: Array) -> Fraction:
    """Return the load of the busiest link, in shards, added up over the steps."""
    return sum((share.load for share, _, _ in _balanced(view, labels)), Fraction(0)) / len(labels)


def _balanced(view: View, labels: Array) -> list[tuple[Balance, Array, Array]]:
    """Divide the jobs of every step optimally; return for each step the division and its jobs' types and nodes."""
    result = []
    for step in range(1, view.diameter + 1):
        kinds, nodes = np.nonzero(labels == step)
        masks = view.masks(labels[kinds[:, None], view.tails[nodes]] < step)
        order = np.argsort(masks, kind="stable")
        known, counts = np.unique(masks, return_counts=True)
        histogram = tuple(zip(known.tolist(), counts.tolist(), strict=True))
        result.append((balance(histogram), kinds[order], nodes[order]))
    return result


# ---- columns


def _schedule(topology: Topology, collective: Collective, view: View, slots: Array, labels: Array) -> SymmetricSchedule:
    """Return the schedule in which every rank's shard travels by the labels of rank 0, translated."""
    degree = topology.num_links // topology.num_ranks
    divided = _balanced(view, labels)
    unit = lcm(1, *(share.parts for share, _, _ in divided))
    rows = [_joined_rows(share, kinds, nodes, unit) for share, kinds, nodes in divided]
    node, link, lo, hi = np.concatenate(rows).T
    step = owners([len(p) for p in rows])
    seed = Schedule(
        topology, collective, unit * len(labels), step=step, action=step * 0 + Action.COPY, shard=step * 0, lo=lo,
        hi=hi, route=view.tails[node, link] * degree + slots[link], scheduler="bfb",
    )  # fmt: skip
    return SymmetricSchedule(seed)


def _joined_rows(share: Balance, kinds: Array, nodes: Array, unit: int) -> Array:
    """Return one step's transfers of shard 0 as rows (node, in-link, lo, hi), adjoining intervals joined.

    Intervals count in parts of which a type has ``unit``.
    """
    scale = unit // share.parts
    first = kinds[share.job] * unit
    rows = np.stack([nodes[share.job], share.slot, first + share.lo * scale, first + share.hi * scale], axis=1)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    joins = (rows[1:, :2] == rows[:-1, :2]).all(axis=1) & (rows[1:, 2] == rows[:-1, 3])
    start = np.flatnonzero(np.concatenate([[True], ~joins]))
    end = np.append(start[1:], len(rows)) - 1
    return np.column_stack([rows[start, :3], rows[end, 3]])
