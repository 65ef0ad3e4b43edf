"""Grids that are no plain tori: meshes, and twisted tori and cubes."""

from __future__ import annotations

from math import prod

import numpy as np

from collc.ir.arrays import Array
from collc.ir.group import Twisted
from collc.ir.topology import Topology

from ._sizes import domain
from .cayley import hypercube, hypercube_size, torus_size

__all__ = ["mesh", "twisted_hypercube", "twisted_torus"]


def _coordinates(sizes: tuple[int, ...]) -> Array:
    """Return the coordinates of every rank, one row a rank."""
    return np.stack(np.unravel_index(np.arange(prod(sizes)), sizes), axis=1).astype(np.int64)


def mesh(*sizes: int) -> Topology:
    """Return the grid of these sizes: ranks linked both ways to their neighbours, without wrap-around.

    >>> mesh(3, 3).num_links, mesh(3, 3).diameter
    (24, 4)
    """
    at = _coordinates(sizes)
    heads, kept = [], []
    for axis, size in enumerate(sizes):
        stride = prod(sizes[axis + 1 :])
        for direction, inside in ((1, at[:, axis] < size - 1), (-1, at[:, axis] > 0)):
            heads.append(np.arange(len(at)) + direction * stride)
            kept.append(inside)
    keep = np.stack(kept, axis=1)
    ranks = np.broadcast_to(np.arange(len(at))[:, None], keep.shape)
    return Topology("mesh", len(at), ranks[keep], np.stack(heads, axis=1)[keep])


def mesh_size(*sizes: int) -> tuple[int, int]:
    nodes, _ = torus_size(*sizes)
    return nodes, sum(2 * (nodes // size) * (size - 1) for size in sizes)


def twisted_torus(*sizes: int) -> Topology:
    """Return the torus of sizes k and 2k in which wrapping round a short dimension shifts by k in every long one.

    Rectangular 2k x k (Camara et al., Twisted Torus Topologies, 2010), and in three dimensions the face-centred
    (2k x k x k) and body-centred (2k x 2k x k) lattices, as pods of 3D-torus machines are twisted.

    >>> twisted_torus(8, 4).degree, twisted_torus(8, 4).diameter
    (4, 4)
    """
    group = Twisted(sizes)
    ranks, steps = np.arange(group.order), [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    generators = np.array([element for step in steps for element in (step, int(group.inverse(step)))])
    heads = group.translate(generators, ranks[:, None])
    links = np.repeat(ranks, len(generators))
    return Topology("twisted_torus", group.order, links, heads.ravel(), symmetry=group)


def twisted_torus_size(*sizes: int) -> tuple[int, int]:
    short = min(sizes)
    if short < 2 or set(sizes) != {short, 2 * short}:
        found = ", ".join(str(size) for size in sizes)
        message = f"found sizes {found}, needed sizes k and 2k, some of each, k at least 2"
        raise domain(message, "as in `twisted_torus(8, 4)`")
    return torus_size(*sizes)


def twisted_hypercube(n: int) -> Topology:
    """Return the n-cube with two opposite links of the square 0, 1, 3, 2 replaced by its diagonals.

    Its diameter is n - 1 (Esfahanian, Ni and Sagan, The twisted n-cube, 1991).
    """
    cube = hypercube(n)
    heads = cube.dst.astype(np.int64).reshape(-1, n)
    heads[:4, n - 1] = [3, 2, 1, 0]
    return Topology("twisted_hypercube", cube.num_ranks, cube.src, heads.ravel())


def twisted_hypercube_size(n: int) -> tuple[int, int]:
    return hypercube_size(n)
