"""Arrival times: the step in which each node receives each type, so that all links can be equally busy.

The network is seen from one node, the source; symmetry gives every other source the same view. The source's shard
consists of *types*, parts of equal size. A node's *label* for a type is the step in which it receives that type. A
*job* is a pair (type, node): it may use any link from a node that already has the type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen

from .balance import links_of_mask

if TYPE_CHECKING:
    from random import Random

__all__ = ["Plan", "View", "grow_labels"]
Job = tuple[int, int]  # type, node


@frozen(eq=False)
class View:
    """A network seen from node 0: N nodes with ``width`` in-links each, at most 62 (loops left out).

    ``tails[u, k]`` is the node that in-link k of node u comes from; ``hops[v, u]`` the distance from v to u.
    """

    tails: Array
    hops: Array

    @property
    def num_nodes(self) -> int:
        """Nodes of the network."""
        return len(self.tails)

    @property
    def width(self) -> int:
        """In-links of a node."""
        return int(self.tails.shape[1])

    @property
    def diameter(self) -> int:
        """The largest number of hops from node 0; all nodes have the same."""
        return int(self.hops[0].max())

    def masks(self, usable: Array) -> Array:
        """Return as bits which in-links are usable; ``usable`` (.., width) is boolean."""
        bits: Array = usable @ (1 << np.arange(self.width, dtype=np.int64))
        return bits


@attrs.frozen
class Plan:
    """``types`` per shard, and ``most`` jobs of a link in a step.

    Without ``most`` all links get the same number in a step, the largest that they all can get.
    """

    types: int
    most: int | None = None


def grow_labels(view: View, plan: Plan, seed: int) -> Array | None:
    """Grow labels step by step; return them, shape (types, N), or None if this seed finds none.

    Labels are 0 at the source and 1 to the diameter elsewhere, and every node has an in-neighbour with a smaller
    label. Every step but the last takes as many jobs as the plan allows; the last step takes the rest, and may exceed
    the plan. Needed jobs come first (:func:`_needed_first`); the seed orders the others. Odd seeds prefer jobs with few
    usable links, which would otherwise crowd the last step.
    """
    from random import Random  # few networks need it

    labels = np.full((plan.types, view.num_nodes), -1, dtype=np.int64)
    labels[:, 0] = 0
    hops_left = np.repeat(view.hops[:1], plan.types, axis=0)  # hops to every node from the nearest that has the type
    random = Random(seed)
    for step in range(1, view.diameter):
        remaining = view.diameter - step
        jobs, masks = _jobs(view, labels, random, rare_first=seed % 2 == 1)
        links = _Links(view.width, _most_for_each(masks, view.width) if plan.most is None else plan.most)
        for i in _needed_first(view, jobs, hops_left, remaining):
            if links.take(masks[i]):
                kind, node = jobs[i]
                labels[kind, node] = step
                np.minimum(hops_left[kind], view.hops[node], out=hops_left[kind])
        if int(hops_left.max()) > remaining:
            return None
    labels[labels < 0] = view.diameter
    return labels


def _jobs(view: View, labels: Array, random: Random, rare_first: bool) -> tuple[list[Job], list[int]]:
    """Return the jobs that are possible next and the links of each, in the order of preference."""
    masks = view.masks((labels >= 0)[:, view.tails])
    masks[labels >= 0] = 0
    kinds, nodes = np.nonzero(masks)
    bits = masks[kinds, nodes].tolist()
    rank = [(mask.bit_count() if rare_first else 0, random.random()) for mask in bits]
    order = sorted(range(len(bits)), key=rank.__getitem__)
    pairs = list(zip(kinds.tolist(), nodes.tolist(), strict=True))
    return [pairs[i] for i in order], [bits[i] for i in order]


def _needed_first(view: View, jobs: list[Job], hops_left: Array, remaining: int) -> list[int]:
    """Return the order of the jobs, with the jobs first that some node needs to be reached in time.

    A node more than ``remaining`` hops from all nodes that have a type needs one of the jobs that bring the type near
    enough: a covering problem, solved greedily (most nodes first, ties in the given order).
    """
    needed: list[tuple[int, int]] = []  # - nodes brought near, job
    for kind in range(len(hops_left)):
        far = np.flatnonzero(hops_left[kind] > remaining)
        candidates = [i for i, job in enumerate(jobs) if job[0] == kind]
        if not len(far) or not candidates:
            continue
        nodes = np.array([jobs[i][1] for i in candidates])
        near = view.hops[np.ix_(nodes, far)] <= remaining
        gain = near.sum(axis=1)
        while gain[best := int(gain.argmax())]:
            needed.append((-int(gain[best]), candidates[best]))
            reached = np.flatnonzero(near[best])
            gain -= near[:, reached].sum(axis=1)
            near[:, reached] = False
    first = dict.fromkeys(i for _, i in sorted(needed))
    return [*first, *(i for i in range(len(jobs)) if i not in first)]


def _most_for_each(masks: list[int], width: int) -> int:
    """Return the largest number of jobs that every link can get, each job going to one link of its mask."""
    each = len(masks) // width
    while each:
        links = _Links(width, each)
        for mask in masks:
            links.take(mask)
        if sum(links.load) == each * width:
            break
        each = links.shortage()
    return each


class _Links:
    """Links that take up to ``each`` jobs; a taken job may move to another of its links to make room."""

    def __init__(self, width: int, each: int) -> None:
        self.each = each
        self.load = [0] * width
        self._jobs: list[dict[int, int]] = [{} for _ in range(width)]  # per link: mask -> number of jobs
        self._full = 0  # links that can never again make room, as bits

    def take(self, mask: int) -> bool:
        """Take a job that may use the links of ``mask``, if it fits beside the jobs taken before."""
        reached_by: dict[int, tuple[int, int]] = {}  # link -> (mask of the job to move there, the link it leaves or -1)
        queue = [(mask, -1)]
        for moving, leaves in queue:
            for link in links_of_mask(moving & ~self._full):
                if link in reached_by:
                    continue
                reached_by[link] = (moving, leaves)
                if self.load[link] < self.each:
                    self._move(reached_by, link)
                    return True
                queue += [(other, link) for other in self._jobs[link]]
        for link in reached_by:
            self._full |= 1 << link
        return False

    def _move(self, reached_by: dict[int, tuple[int, int]], link: int) -> None:
        self.load[link] += 1
        while link >= 0:
            mask, leaves = reached_by[link]
            self._jobs[link][mask] = self._jobs[link].get(mask, 0) + 1
            if leaves >= 0:
                self._jobs[leaves][mask] -= 1
                if not self._jobs[leaves][mask]:
                    del self._jobs[leaves][mask]
            link = leaves

    def shortage(self) -> int:
        """Return how many jobs each link of the scarcest set can get, rounded down; some link must have room.

        The links with room, and those whose jobs could move to them, are a set that holds every job able to use it.
        """
        scarce = sum(1 << k for k, load in enumerate(self.load) if load < self.each)
        while True:
            more = sum(1 << k for k, jobs in enumerate(self._jobs) if any(mask & scarce for mask in jobs))
            if not more & ~scarce:
                return sum(self.load[k] for k in links_of_mask(scarce)) // scarce.bit_count()
            scarce |= more
