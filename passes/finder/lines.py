"""Compute the cost of BFB on L(G) taken k times, from G alone, and search for the best line graphs of a size.

A node of L^k(G) is a walk of k links in G. Its distance from another node is the least shift that makes one walk
continue the other. Let b be the walk b_0 .. b_k, and A_s the walks whose last k-s links are the first of b: b is s
shifts after them. Two such sets are disjoint, or one contains the other (if b overlaps itself). So inclusion counts the
walks at exactly s shifts, s <= k. Every other walk ends at a node v other than b_0. Its distance is that of v from b_0
plus k, over the same in-links. So the masks of G, weighted, give the histograms.

Theorem 10 of the direct-connect paper predicts T_B(G) plus a geometric series. The walks in A_s for s < k are not sent
a second time after their ends, so the exact cost, which this module computes, can be less.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import error
from collc.ir.ragged import nth_in_group
from collc.ir.topology import Topology

from .cayley import Candidate, candidates
from .evaluate import MOST_TABLED, Evaluator, busiest, in_masks, load_unit
from .exclude import NOTHING, Excluded
from .found import Found, pareto

__all__ = ["line_cost", "line_cost_cayley", "search_lines"]

_MOST_TRIED = 600  # bases evaluated for one number of steps and one k
_FEW_STEPS = 2  # steps that a base may have above the least


@attrs.frozen
class _Base:
    """G as seen from one node b_0.

    ``hops`` and ``masks`` have shape (N,): distances from all nodes, and in-links on shortest paths. ``walks`` (W, k+1)
    are the nodes of all walks of k links from b_0, ``links`` (W, k) their links, and ``slots`` (W, k) the place of each
    link among the in-links of its head.
    """

    degree: int
    hops: Array
    masks: Array
    walks: Array
    links: Array
    slots: Array


def line_cost(topology: Topology, times: int) -> tuple[int, Fraction]:
    """Return (T_L, T_B) of an allgather by BFB on the line graph taken ``times`` times (at least 1), exactly.

    The topology has d links into and out of every rank. Raises C0301 and C0575 like
    :func:`collc.passes.finder.evaluate.bfb_cost`.
    """
    degree = topology.degree
    if degree is None or not topology.is_direct or not topology.is_uniform or not 1 <= degree <= MOST_TABLED:
        raise error(
            "C0575",
            f"the finder cannot evaluate line graphs of `{topology.name}`",
            notes=[f"needed: no switches, equal links, and one degree of at most {MOST_TABLED}"],
            hint="`collc cost` prints the cost of a schedule on any topology",
        )
    topology.require_connected("an allgather")
    nodes = topology.num_ranks
    roots = np.arange(1 if topology.symmetry is not None else nodes)
    hops, masks, _ = in_masks(topology, roots)
    _, links = topology.in_links
    slots = np.empty(topology.num_links, dtype=np.int64)
    slots[links] = nth_in_group(topology.dst[links])
    depth = int(topology.distances.max())
    worst = np.zeros(times + depth, dtype=np.int64)
    for root in roots:
        walks, taken = _walks(topology, int(root), times)
        base = _Base(degree, hops[root], masks[root].astype(np.int64), walks, taken, slots[taken])
        worst = np.maximum(worst, _loads(base, depth))
    return _cost(worst, degree, nodes, times)


def line_cost_cayley(evaluator: Evaluator, generators: Array, times: int) -> tuple[int, Fraction] | None:
    """Return the same for a Cayley digraph, or None if it is not connected; ``generators`` has shape (d,)."""
    degree, nodes = len(generators), evaluator.nodes
    hops, masks = evaluator.search(generators[None], nodes)
    if (hops < 0).any():
        return None
    walks = np.zeros((1, 1), dtype=np.int64)
    slots = np.zeros((1, 0), dtype=np.int64)
    table = evaluator.times(generators)
    for _ in range(times):
        label = np.tile(np.arange(degree), len(walks))
        walks, slots = np.repeat(walks, degree, axis=0), np.repeat(slots, degree, axis=0)
        walks = np.column_stack([walks, table[label, walks[:, -1]]])
        slots = np.column_stack([slots, label])
    # the identity is to v what v^-1 is to the identity
    there = evaluator.inverse
    base = _Base(
        degree, hops[0, there].astype(np.int64), masks[0, there].astype(np.int64),
        walks, walks[:, :-1] * degree + slots, slots,
    )  # fmt: skip
    depth = int(base.hops.max())
    return _cost(_loads(base, depth), degree, nodes, times)


def _cost(loads: Array, degree: int, nodes: int, times: int) -> tuple[int, Fraction]:
    """Return (T_L, T_B). T_L is k + diameter, except for a ring, which is its own line graph."""
    bandwidth = Fraction(degree * int(loads.sum()), load_unit(degree) * nodes * degree**times)
    return int(np.flatnonzero(loads).max(initial=-1)) + 1, bandwidth


def _walks(topology: Topology, root: int, times: int) -> tuple[Array, Array]:
    """Return the nodes and the links of all walks of ``times`` links from a node."""
    start, links = topology.out_links
    degree = topology.degree or 0
    walks = np.full((1, 1), root, dtype=np.int64)
    taken = np.zeros((1, 0), dtype=np.int64)
    for _ in range(times):
        place = np.tile(np.arange(degree), len(walks))
        walks, taken = np.repeat(walks, degree, axis=0), np.repeat(taken, degree, axis=0)
        taken = np.column_stack([taken, links[start[walks[:, -1]] + place]])
        walks = np.column_stack([walks, topology.dst[taken[:, -1]]])
    return walks, taken


def _loads(base: _Base, depth: int) -> Array:
    """Return for every step 1 .. k + depth the busiest link's load, in load units, at the worst walk b from b_0."""
    count, times = base.links.shape
    near, fresh = _near(base)
    result = np.empty(times + depth, dtype=np.int64)
    result[:times] = near.max(axis=0) * load_unit(base.degree)
    size, scale = 1 << base.degree, base.degree**times
    away = base.hops > 0
    whole = np.bincount(base.masks[away] * depth + base.hops[away] - 1, minlength=size * depth).reshape(size, depth)
    result[times:] = busiest(whole, base.degree) * scale
    # walks that arrived earlier reduce the load of a step only if they do so for every b
    ends = base.walks[:, :0:-1]  # after 0, 1, .. shifts
    steps, masks = base.hops[ends], base.masks[ends]
    for step in range(1, depth + 1):
        lighter = steps == step
        if lighter.any(axis=1).all():
            table = np.repeat(whole[:, step - 1 : step] * scale, count, axis=1)
            rows, shifts = np.nonzero(lighter)
            np.subtract.at(table, (masks[rows, shifts], rows), fresh[rows, shifts])
            result[times + step - 1] = busiest(table, base.degree).max()
    return result


def _near(base: _Base) -> tuple[Array, Array]:
    """Count walks by shifts: the most over one in-link at s = 1 .. k, and all walks at s = 0 .. k-1; both (W, k).

    A walk at s shifts or less arrives over in-link j if its link before b_0 is j. A set A_r within A_s is subtracted
    from the link of b at that place.
    """
    count, times = base.links.shape
    fresh = np.zeros((count, times + 1), dtype=np.int64)
    fresh[:, 0] = 1
    near = np.zeros((count, times), dtype=np.int64)
    rows = np.arange(count)
    for shifts in range(1, times + 1):
        by_link = np.full((count, base.degree), base.degree ** (shifts - 1), dtype=np.int64)
        for fewer in range(shifts):
            by = shifts - fewer  # b shifted by this number of links overlaps itself if A_fewer lies in A_shifts
            inside = base.walks[:, times - shifts] == base.walks[:, times - fewer]
            inside &= (base.links[:, by : by + times - shifts] == base.links[:, : times - shifts]).all(axis=1)
            by_link[rows, base.slots[:, by - 1]] -= np.where(inside, fresh[:, fewer], 0)
        fresh[:, shifts] = by_link.sum(axis=1)
        near[:, shifts - 1] = by_link.max(axis=1)
    return near, fresh


# ---- the search


def search_lines(
    nodes: int, degree: int, *, evaluations: int = 20000, seed: int = 0, exclude: Excluded = NOTHING
) -> list[Found]:
    """Return the Pareto frontier of line graphs, taken any number of times, of Cayley digraphs that a search finds.

    Every size of bases gets this number of evaluations. The same arguments give the same result.
    """
    times = [k for k in range(1, nodes) if degree > 1 and nodes % degree**k == 0 and nodes // degree**k > degree]
    found: list[Found] = []
    for k in times:
        bases = candidates(
            nodes // degree**k, degree, evaluations=evaluations, seed=seed, spend_all=True, exclude=exclude
        )
        found += _lines(bases, k)
    return pareto(found)


def _lines(bases: list[Candidate], times: int) -> Iterator[Found]:
    evaluators: dict[str, Evaluator] = {}
    for base in _promising(bases):
        evaluator = evaluators.setdefault(base.group.expression, Evaluator(base.group))
        cost = line_cost_cayley(evaluator, np.array(base.generators, dtype=np.int64), times)
        if cost is None:
            continue
        expression = base.found(False).expression
        text = f"line({expression}, {times})" if times > 1 else f"line({expression})"
        degree = len(base.generators)
        yield Found(text, base.group.order * degree**times, degree, cost[0], cost[1], cost[0], False)


def _promising(bases: list[Candidate]) -> Iterator[Candidate]:
    """Yield the bases of few steps with the least T_B of each number of steps, unless one of fewer steps has less.

    Many have equal cost; only their line graphs differ.
    """
    least = min((base.T_L for base in bases), default=0)
    lightest: Fraction | None = None
    for steps in range(least, least + _FEW_STEPS + 1):
        same = sorted((base for base in bases if base.T_L == steps), key=lambda one: one.T_B)
        if not same or (lightest is not None and same[0].T_B > lightest):
            continue
        yield from (one for one in same[:_MOST_TRIED] if lightest is None or one.T_B <= lightest)
        lightest = same[0].T_B
