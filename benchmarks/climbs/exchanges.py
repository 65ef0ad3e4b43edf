"""Annealing of any networks, by exchanges of the ends of links, in all shifts by a period at once."""

from __future__ import annotations

import ctypes

import numpy as np

from collc.frontends import coll
from collc.passes.finder.database import Row

from .compiled import FAR, library
from .search import Search

__all__ = ["Exchanges", "ring", "without_nodes"]

_HEAT = (4.0, 0.5)  # pairs of nodes: the first and the last temperature of an annealing
_WARM = (1.0, 0.25)  # the same, of a network that is nearly good
_DRAWS = 100  # tries to pair ends of links
_SHUFFLES = 20  # exchanges for each link of the first network
_POLISH = 2000  # exchanges that lower the bandwidth time of a network that was found


class Exchanges(Search):
    """The search among networks of any links."""

    def exchanges(self, periods: int, tries: int) -> None:
        """Anneal networks of every period up to ``periods`` to fewer steps than known, for each a number of times."""
        for m in (m for m in range(2, min(periods, self.nodes) + 1) if self.nodes % m == 0 and m * self.degree > 8):
            for _ in range(tries):
                while self.least > self.bound:
                    start = ring(self.nodes, self.degree)
                    if not self._exchange(m, self.least - 1, start, _HEAT, _SHUFFLES * m * self.degree):
                        break

    def shrunk(self, base: Row, tries: int) -> None:
        """Anneal what is left of a larger network of fewer steps than known, if some nodes are removed."""
        if not self.bound <= base.T_L < self.least:
            return
        heads = coll.topology(base.expression).dst.reshape(base.nodes, -1)
        for _ in range(tries):
            start = without_nodes(heads, base.nodes - self.nodes, np.random.Generator(np.random.PCG64(self.seed())))
            if start is not None and self._exchange(self.nodes, base.T_L, start, _WARM, 0):
                return

    def _exchange(self, m: int, target: int, heads: np.ndarray, heat: tuple[float, float], shuffles: int) -> bool:
        """Anneal a network of period m, shuffled first; return whether it has at most ``target`` steps then."""
        hot, cold = (int(1024 * pairs) for pairs in heat)
        steps = ctypes.c_int()
        load = int(library().exchange(
            self.nodes, m, self.degree, target, self.evaluations, _POLISH, hot, cold, shuffles, self.seed(),
            heads.ctypes.data, ctypes.byref(steps),
        ))  # fmt: skip
        if load < FAR:
            self.add(steps.value, load, periodic(heads, m))
        return load < FAR


def ring(nodes: int, degree: int) -> np.ndarray:
    """Return the neighbours of nodes on a ring, shape (N, d): the nearest ones, for odd d also the opposite one."""
    steps = [step for near in range(1, degree // 2 + 1) for step in (near, -near)] + [nodes // 2] * (degree % 2)
    heads: np.ndarray = (np.arange(nodes)[:, None] + steps) % nodes
    return heads.astype(np.int32)


def without_nodes(heads: np.ndarray, fewer: int, random: np.random.Generator) -> np.ndarray | None:
    """Return the neighbours, shape (N, d), without some nodes that are linked to each other: a random one, and
    neighbours. The ends of their links are linked in random pairs; None if this soon gives no network.
    """
    removed = [int(random.integers(len(heads)))]
    removed += heads[removed[0]][: fewer - 1].tolist()
    place = np.cumsum(~np.isin(np.arange(len(heads)), removed)) - 1
    ends = [end for node in removed for end in heads[node].tolist() if end not in removed]
    for _ in range(_DRAWS):
        found = {node: set(own.tolist()) - set(removed) for node, own in enumerate(heads) if node not in removed}
        pairs = random.permutation(ends).reshape(-1, 2).tolist()
        for one, two in pairs:
            found[one].add(two)
            found[two].add(one)
        if all(len(own - {node}) == heads.shape[1] for node, own in found.items()):
            return place[np.array([sorted(own) for own in found.values()])].astype(np.int32)
    return None


def periodic(heads: np.ndarray, m: int) -> str:
    """Return the expression of a network that a shift by m keeps, from the neighbours of its nodes, shape (N, d)."""
    nodes = len(heads)
    sets: list[list[int]] = [[] for _ in range(m)]
    for node in range(m):
        for step in sorted((int(head) - node) % nodes for head in heads[node]):
            if (step, node) <= (-step % nodes, (node + step) % m):
                sets[node].append(step)
    return f"polycirculant({nodes}, {', '.join('{' + ', '.join(map(str, own)) + '}' for own in sets)})"
