"""Growing arrival times: which node receives what in which step, so that all links can be equally busy.

The network is seen from one node, the source; symmetry gives every other source the same view. The source's shard is
cut in *types* of equal size, and a node's *label* for a type is the step in which it receives it. One *job* is one
(type, node): it may come over any link from a node that has that type already.
"""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
import numpy as np

__all__ = ["View", "grow_labels"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class View:
    """A network seen from node 0: N nodes with ``width`` in-links each (loops left out).

    ``tails[u, k]`` is the node that in-link k of node u comes from; ``hops[v, u]`` the distance from v to u.
    """

    tails: Array
    hops: Array

    @property
    def num_nodes(self) -> int:
        return len(self.tails)

    @property
    def width(self) -> int:
        return self.tails.shape[1]

    @property
    def diameter(self) -> int:
        return int(self.hops[0].max())

    def masks(self, usable: Array) -> Array:
        """Return the usable in-links of every node as bits; ``usable`` (.., N, width) is boolean, ``width`` below 63."""
        return usable @ (1 << np.arange(self.width, dtype=np.int64))


def grow_labels(view: View, types: int, most: int | None, seed: int) -> Array | None:
    """Grow labels step by step; return them, shape (types, N), or nothing where this seed leads nowhere.

    In every step but the last, no link gets more than ``most`` jobs; without ``most``, all links get the same number, as many
    as they can all get. The last step takes what is left. Labels are 0 at the source and 1 to the diameter elsewhere, and every node has an in-neighbour
    with a smaller label: so no step comes after the breadth-first schedule's last. Which of the possible jobs are
    taken is decided first by need (:func:`_needed_first`), then by ``seed``: odd seeds prefer jobs with few links to choose from,
    because they would crowd the last step.
    """
    labels = np.full((types, view.num_nodes), -1, dtype=np.int64)
    labels[:, 0] = 0
    left = np.repeat(view.hops[:1], types, axis=0)  # hops to every node from the nearest that has the type
    random = Random(seed)
    for step in range(1, view.diameter):
        masks = view.masks((labels >= 0)[:, view.tails])
        masks[labels >= 0] = 0
        jobs = np.argwhere(masks)
        for kind, node in _choose(view, jobs, masks, left, view.diameter - step, most, random, seed % 2 == 1):
            labels[kind, node] = step
            np.minimum(left[kind], view.hops[node], out=left[kind])
        if int(left.max()) > view.diameter - step:
            return None
    labels[labels < 0] = view.diameter
    return labels


def _choose(
    view: View,
    jobs: Array,
    masks: Array,
    left: Array,
    remaining: int,
    most: int | None,
    random: Random,
    rare_first: bool,
) -> list[tuple[int, int]]:
    """Choose as many jobs as the links can take, ``remaining`` steps before the last; earlier ones of the order first."""
    pairs: list[tuple[int, int]] = [(int(k), int(u)) for k, u in jobs]
    bits = [int(masks[pair]) for pair in pairs]
    each = _most_for_each(bits, view.width) if most is None else most
    rank = [(m.bit_count() if rare_first else 0, random.random()) for m in bits]
    order = sorted(range(len(pairs)), key=rank.__getitem__)
    links = _Links(view.width, each)
    return [
        pairs[i] for i in _needed_first(view, [pairs[i] for i in order], order, left, remaining) if links.take(bits[i])
    ]


def _most_for_each(bits: list[int], width: int) -> int:
    """Return the largest number of jobs that every link can get, each job going to one of its links."""
    each = len(bits) // width
    while each:
        links = _Links(width, each)
        for mask in bits:
            links.take(mask)
        if sum(links.load) == each * width:
            break
        each = links.shortage()
    return each


def _needed_first(view: View, pairs: list[tuple[int, int]], order: list[int], left: Array, remaining: int) -> list[int]:
    """Reorder jobs: those without which some node cannot be reached in time come first.

    A node further than ``remaining`` from all that have a type needs one of the jobs that bring the type near enough: a
    covering problem, solved greedily (most nodes first, ties in the given order).
    """
    needed: list[tuple[int, int, int]] = []  # (- nodes brought near, place in pairs, job)
    for kind in range(len(left)):
        far = np.flatnonzero(left[kind] > remaining)
        places = [i for i, pair in enumerate(pairs) if pair[0] == kind]
        near = view.hops[np.ix_([pairs[i][1] for i in places], far)] <= remaining
        gain = near.sum(axis=1)
        while len(gain) and (best := int(gain.argmax())) >= 0 and gain[best]:
            needed.append((-int(gain[best]), places[best], order[places[best]]))
            gain -= near[:, near[best]].sum(axis=1)
            near[:, near[best].copy()] = False
    needed.sort()
    first = dict.fromkeys(job for _, _, job in needed)
    return [*first, *(job for job in order if job not in first)]


class _Links:
    """Links that take up to ``each`` jobs; a job taken may be moved to another of its links to make room."""

    def __init__(self, width: int, each: int) -> None:
        self.each = each
        self.load = [0] * width
        self._jobs: list[dict[int, int]] = [{} for _ in range(width)]  # per link: mask -> number of jobs
        self._full = 0  # links that will never again have room, as bits

    def take(self, mask: int) -> bool:
        """Take a job that may use the links of ``mask``, if the links can still have it together with all before."""
        came: dict[int, tuple[int, int]] = {}
        queue = [(mask, -1)]
        for here, via in queue:
            for link in _bits(here & ~self._full):
                if link in came:
                    continue
                came[link] = (here, via)
                if self.load[link] < self.each:
                    self._move(came, link)
                    return True
                queue += [(other, link) for other in self._jobs[link]]
        for link in came:
            self._full |= 1 << link
        return False

    def _move(self, came: dict[int, tuple[int, int]], link: int) -> None:
        self.load[link] += 1
        while link >= 0:
            mask, via = came[link]
            self._jobs[link][mask] = self._jobs[link].get(mask, 0) + 1
            if via >= 0:
                self._jobs[via][mask] -= 1
                if not self._jobs[via][mask]:
                    del self._jobs[via][mask]
            link = via

    def shortage(self) -> int:
        """Return how many jobs each link of the scarcest set can get at most; call it when some link has room.

        Links with room, and links whose jobs could move to those, form a set that all jobs able to use it are in.
        """
        scarce = sum(1 << k for k, load in enumerate(self.load) if load < self.each)
        while True:
            more = sum(1 << k for k, jobs in enumerate(self._jobs) if any(mask & scarce for mask in jobs))
            if not more & ~scarce:
                break
            scarce |= more
        return sum(self.load[k] for k in _bits(scarce)) // scarce.bit_count()


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
