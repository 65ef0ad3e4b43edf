"""Networks for tests, built from their definitions with plain loops; independent of the language's families."""

from __future__ import annotations

from itertools import product
from math import prod

from collc.ir.topology import Topology

__all__ = ["circulant", "complete", "de_bruijn", "generalized_kautz", "hypercube", "one_way_ring", "torus"]


def torus(*sizes: int) -> Topology:
    """A torus; a dimension of size 2 has two parallel links each way."""
    links = []
    for at in product(*(range(s) for s in sizes)):
        for axis, size in enumerate(sizes):
            for way in (1, -1) if size > 1 else ():
                to = (*at[:axis], (at[axis] + way) % size, *at[axis + 1 :])
                links.append((_number(at, sizes), _number(to, sizes)))
    return Topology.from_links("torus", prod(sizes), links)


def _number(at: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    rank = 0
    for x, size in zip(at, sizes, strict=True):
        rank = rank * size + x
    return rank


def hypercube(n: int) -> Topology:
    return Topology.from_links("hypercube", 2**n, [(r, r ^ 1 << i) for r in range(2**n) for i in range(n)])


def complete(m: int) -> Topology:
    return Topology.from_links("complete", m, [(a, b) for a in range(m) for b in range(m) if a != b])


def circulant(m: int, *offsets: int) -> Topology:
    links = [(r, (r + w * a) % m) for r in range(m) for a in offsets for w in (1, -1)]
    return Topology.from_links("circulant", m, links)


def one_way_ring(m: int) -> Topology:
    return Topology.from_links("ring", m, [(r, (r + 1) % m) for r in range(m)])


def generalized_kautz(d: int, m: int) -> Topology:
    return Topology.from_links("kautz", m, [(x, (-d * x - a) % m) for x in range(m) for a in range(1, d + 1)])


def de_bruijn(d: int, n: int) -> Topology:
    return Topology.from_links("de Bruijn", d**n, [(x, (d * x + a) % d**n) for x in range(d**n) for a in range(d)])
