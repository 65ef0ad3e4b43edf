"""Digraphs of small diameter on integers: Kautz, generalized Kautz and de Bruijn."""

from __future__ import annotations

import numpy as np

from collc.ir.topology import Topology

from . import _sizes
from ._sizes import domain

__all__ = ["debruijn", "generalized_kautz", "kautz"]


def kautz(d: int, n: int) -> Topology:
    """Return the Kautz digraph K(d,n), the line graph of K_{d+1} taken n times: d^n (d+1) ranks of degree d.

    Built as the generalized Kautz digraph of that size, to which it is isomorphic (Definition 16).

    >>> kautz(2, 2).num_ranks, kautz(2, 2).diameter
    (12, 3)
    """
    return generalized_kautz(d, d**n * (d + 1))


def kautz_size(d: int, n: int) -> tuple[int, int]:
    nodes = _sizes.prod([_sizes.power(d, n), d + 1])
    return nodes, _sizes.prod([nodes, d])


def generalized_kautz(d: int, m: int) -> Topology:
    """Return Pi_{d,m}: x is linked to -d x - a mod m for a = 1 .. d (Definition 16). Self-loops are kept.

    >>> generalized_kautz(4, 64).diameter
    3
    """
    ranks = np.arange(m)
    heads = (-d * ranks[:, None] - np.arange(1, d + 1)) % m
    return Topology("generalized_kautz", m, np.repeat(ranks, d), heads.ravel())


def generalized_kautz_size(d: int, m: int) -> tuple[int, int]:
    if m < d + 1:
        raise domain(f"found {m} ranks for degree {d}, needed at least {d + 1}", f"write `{d + 1}`", "m")
    return m, _sizes.prod([m, d])


def debruijn(d: int, n: int) -> Topology:
    """Return the de Bruijn digraph: words of n letters from d, x linked to its d left shifts. Self-loops are kept.

    >>> debruijn(2, 3).num_ranks, debruijn(2, 3).diameter
    (8, 3)
    """
    ranks = np.arange(d**n)
    heads = (d * ranks[:, None] + np.arange(d)) % d**n
    return Topology("debruijn", d**n, np.repeat(ranks, d), heads.ravel())


def debruijn_size(d: int, n: int) -> tuple[int, int]:
    nodes = _sizes.power(d, n)
    return nodes, _sizes.prod([nodes, d])
