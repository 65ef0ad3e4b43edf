"""Cayley graphs of abelian groups: every rank has the same links, translated by the rank's coordinates.

Rank r's links are numbers r*d .. r*d+d-1, one for each generator, always in the same order, so the group's translations
keep links and their places: :class:`collc.ir.topology.Translations` holds by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

import numpy as np

from collc.ir.topology import Topology, Translations

from . import _sizes
from ._sizes import domain

__all__ = [
    "biring", "circulant", "complete", "complete_bipartite", "directed_circulant", "hamming", "hypercube",
    "hyperx", "shifted_ring", "torus", "uniring",
]  # fmt: skip

_MAX_DIMENSIONS = 32


def _translated(name: str, shape: Sequence[int], generators: Sequence[Sequence[int]]) -> Topology:
    """Return the graph in which every rank r has the links r -> r + g, one for each generator g in turn."""
    symmetry = Translations(tuple(shape))
    size, degree = prod(shape), len(generators)
    ranks = np.arange(size)
    heads = np.empty((size, degree), dtype=np.int64)
    for place, generator in enumerate(generators):
        step = 0
        for coordinate, length in zip(generator, shape, strict=True):
            step = step * length + coordinate % length
        heads[:, place] = symmetry.translate(ranks, np.array(step))
    return Topology(name, size, np.repeat(ranks, degree), heads.ravel(), symmetry=symmetry)


def _unit(axis: int, dimensions: int, step: int) -> tuple[int, ...]:
    return (0,) * axis + (step,) + (0,) * (dimensions - axis - 1)


# ---- complete and Hamming graphs


def complete(m: int) -> Topology:
    """Return K_m: every rank linked to every other (Table 9 of the direct-connect paper).

    >>> complete(5).degree, complete(5).diameter
    (4, 1)
    """
    return _translated("complete", (m,), [(step,) for step in range(1, m)])


def complete_size(m: int) -> tuple[int, int]:
    return m, m * (m - 1)


def complete_bipartite(d: int) -> Topology:
    """Return K_d,d: ranks 0 .. d-1 on one side, d .. 2d-1 on the other, each linked to all across (Table 9)."""
    return _translated("complete_bipartite", (2, d), [(1, step) for step in range(d)])


def complete_bipartite_size(d: int) -> tuple[int, int]:
    return 2 * d, 2 * d * d


def hamming(n: int, q: int) -> Topology:
    """Return H(n,q): words of n letters from q, linked where exactly one letter differs (Table 9).

    >>> hamming(2, 3).num_ranks, hamming(2, 3).degree
    (9, 4)
    """
    return _translated("hamming", (q,) * n, [_unit(axis, n, step) for axis in range(n) for step in range(1, q)])


def hamming_size(n: int, q: int) -> tuple[int, int]:
    nodes = _sizes.power(q, n)
    return nodes, _sizes.prod([nodes, n, q - 1])


def hyperx(*sizes: int) -> Topology:
    """Return the regular HyperX of these sizes with one rank a switch: linked where exactly one coordinate differs.

    The product of complete graphs (Ahn et al., HyperX, 2009); H(n,q) where all sizes are q.

    >>> hyperx(3, 5).num_ranks, hyperx(3, 5).degree, hyperx(3, 5).diameter
    (15, 6, 2)
    """
    axes = len(sizes)
    steps = [_unit(axis, axes, step) for axis, size in enumerate(sizes) for step in range(1, size)]
    return _translated("hyperx", sizes, steps)


def hyperx_size(*sizes: int) -> tuple[int, int]:
    if len(sizes) > _MAX_DIMENSIONS:
        raise domain(f"found {len(sizes)} dimensions, needed at most {_MAX_DIMENSIONS}")
    nodes = _sizes.prod(sizes)
    return nodes, _sizes.prod([nodes, sum(size - 1 for size in sizes)])


def hypercube(n: int) -> Topology:
    """Return the n-cube: words of n bits, linked where one bit differs."""
    return _translated("hypercube", (2,) * n, [_unit(axis, n, 1) for axis in range(n)])


def hypercube_size(n: int) -> tuple[int, int]:
    nodes = _sizes.power(2, n)
    return nodes, _sizes.prod([nodes, n])


# ---- tori


def torus(*sizes: int) -> Topology:
    """Return the torus of these sizes, 2D-regular for D dimensions larger than 1.

    A dimension of size 2 has two parallel links each way, one of size 1 none.

    >>> torus(3, 3, 2).degree, torus(5, 7).diameter
    (6, 5)
    """
    dimensions = len(sizes)
    steps = [
        _unit(axis, dimensions, direction) for axis in range(dimensions) if sizes[axis] > 1 for direction in (1, -1)
    ]
    return _translated("torus", sizes, steps)


def torus_size(*sizes: int) -> tuple[int, int]:
    if len(sizes) > _MAX_DIMENSIONS:
        raise domain(f"found {len(sizes)} dimensions, needed at most {_MAX_DIMENSIONS}")
    nodes = _sizes.prod(sizes)
    return nodes, _sizes.prod([nodes, 2 * sum(size > 1 for size in sizes)])


# ---- rings and circulants


def uniring(m: int, d: int = 1) -> Topology:
    """Return UniRing(d,m): d parallel rings in one direction (Table 9)."""
    return _translated("uniring", (m,), [(1,)] * d)


def uniring_size(m: int, d: int = 1) -> tuple[int, int]:
    return m, m * d


def biring(m: int, d: int = 2) -> Topology:
    """Return BiRing(d,m): d/2 parallel rings in both directions (Table 9). Two ranks have d parallel links each way."""
    return _translated("biring", (m,), [(1,), (-1,)] * (d // 2))


def biring_size(m: int, d: int = 2) -> tuple[int, int]:
    if d % 2:
        raise domain(f"found degree {d}, needed an even one: each ring has a link both ways", f"write `{d + 1}`", "d")
    return m, m * d


def shifted_ring(m: int) -> Topology:
    """Return two rings in both directions, the second in strides p: the least p >= 2 with gcd(p, m) = 1.

    The superposition of two rings that the direct-connect paper compares with (section 8.2).
    """
    stride = next(p for p in range(2, m + 2) if gcd(p, m) == 1)
    return _translated("shifted_ring", (m,), [(1,), (-1,), (stride,), (-stride,)])


def shifted_ring_size(m: int) -> tuple[int, int]:
    return m, 4 * m


def circulant(m: int, offsets: tuple[int, ...]) -> Topology:
    """Return C(m, {a_1, .., a_k}): rank i linked to i + a and i - a for each a (Definition 18), 2k-regular.

    Where 2a = m both links of a pair end at the same rank; both are kept.

    >>> circulant(7, (2, 3)).degree, circulant(7, (2, 3)).diameter
    (4, 2)
    """
    return _translated("circulant", (m,), [(direction * a,) for a in offsets for direction in (1, -1)])


def circulant_size(m: int, offsets: tuple[int, ...]) -> tuple[int, int]:
    _check_offsets(m, offsets)
    return m, 2 * m * len(offsets)


def directed_circulant(m: int, offsets: tuple[int, ...] | None = None) -> Topology:
    """Return the digraph in which rank i is linked to i + a for each offset a.

    Without offsets they are 1 .. m-2: the directed circulant of Table 9, of degree d on d + 2 ranks, in which each rank
    lacks one link only and the one rank not reached is fed by all d others in the second step.

    >>> directed_circulant(6).degree, directed_circulant(6).diameter
    (4, 2)
    """
    steps = range(1, m - 1) if offsets is None else offsets
    return _translated("directed_circulant", (m,), [(a,) for a in steps])


def directed_circulant_size(m: int, offsets: tuple[int, ...] | None = None) -> tuple[int, int]:
    if offsets is None:
        if m < 3:
            raise domain(f"found {m} ranks and no offsets, needed at least 3 ranks", at="m")
        return m, m * (m - 2)
    _check_offsets(m, offsets)
    return m, m * len(offsets)


def _check_offsets(m: int, offsets: tuple[int, ...]) -> None:
    if not offsets:
        raise domain("found no offsets, needed at least one", at="offsets")
    for offset in offsets:
        if not 1 <= offset < m:
            hint = f"offset {offset} is {offset % m} modulo {m}" if offset % m else None
            raise domain(f"found offset {offset}, needed one from 1 to {m - 1}", hint, "offsets", offset)
