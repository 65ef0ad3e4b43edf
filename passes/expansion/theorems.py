"""Costs of expansions by the theorems of section 5 and appendix D of the direct-connect paper, without schedules.

``T_L`` counts steps, ``T_B`` is bandwidth time in units of M/B, of an allgather (or reduce-scatter) on an N-rank,
d-regular base. :func:`predict` follows the operators that built a topology.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.topology import Topology

from .isomorphic import reverse_symmetry

__all__ = ["Prediction", "degree", "line", "optimum", "power", "predict", "product"]

Costs = tuple[int, Fraction]


def optimum(N: int) -> Fraction:
    """Return the least T_B of any allgather on N ranks (Theorem 4).

    >>> optimum(8)
    Fraction(7, 8)
    """
    return Fraction(N - 1, N)


def line(T_L: int, T_B: Fraction, N: int, d: int, n: int = 1) -> Costs:
    """Return T_L and an upper bound on T_B of the n-th line graph, of d^n N ranks (Corollary 7.1).

    For d = 1 the base is a ring, which is its own line graph; then T_L is an upper bound too.

    >>> line(2, Fraction(7, 8), 8, 4, 3)
    (5, Fraction(133, 128))
    """
    return T_L + n, T_B + sum((Fraction(1, d**k * N) for k in range(n)), Fraction(0))


def degree(T_L: int, T_B: Fraction, N: int, n: int) -> Costs:
    """Return T_L and T_B of the degree expansion G * n, of nN ranks and degree nd (Theorem 11); G * 1 is G.

    >>> degree(3, Fraction(3, 4), 4, 2)
    (4, Fraction(7, 8))
    """
    return T_L + (n > 1), T_B + Fraction(n - 1, n * N)


def power(T_L: int, T_B: Fraction, N: int, n: int) -> Costs:
    """Return T_L and T_B of the n-th Cartesian power, of N^n ranks and degree nd (Theorem 12).

    >>> power(1, Fraction(1, 2), 2, 10)
    (10, Fraction(1023, 1024))
    """
    return T_L * n, T_B if N == 1 else T_B / optimum(N) * optimum(N**n)


def product(factors: Sequence[tuple[int, Fraction, int]]) -> Costs | None:
    """Return T_L and T_B of the product of (T_L, T_B, N), if all factors are bandwidth-optimal (Theorem 13).

    The theorem is for breadth-first schedules of simple digraphs of more than one rank; otherwise the result is None.

    >>> product([(2, Fraction(4, 5), 5), (1, Fraction(1, 2), 2)])
    (3, Fraction(9, 10))
    >>> product([(2, Fraction(1), 5), (1, Fraction(1, 2), 2)])
    """
    ranks = 1
    for _, T_B, N in factors:
        ranks *= N
        if N < 2 or optimum(N) != T_B:
            return None
    return sum(T_L for T_L, _, _ in factors), optimum(ranks)


@attrs.frozen
class Prediction:
    """T_L and T_B of an expanded schedule; upper bounds if they are not ``exact``."""

    T_L: int
    T_B: Fraction
    exact: bool = True


def predict(topology: Topology, base: Callable[[Topology], Costs]) -> Prediction | None:
    """Return the cost of the expanded allgather of a topology; ``base`` returns the cost of one without operator.

    The result is None if no theorem applies: ranks of different degrees, products of factors that are not simple and
    bandwidth-optimal, bidirectional versions of topologies that are not isomorphic to their transpose. ``base`` also
    returns the costs of a product's factors, which must be those of breadth-first schedules.
    """
    return _predict(topology, base, False)


def _predict(topology: Topology, base: Callable[[Topology], Costs], flip: bool) -> Prediction | None:
    """Predict for a topology, or with ``flip`` for its transpose; expansions commute with transposing."""
    origin = topology.origin
    if origin is None:
        return Prediction(*base(topology.transpose() if flip else topology))
    match (origin.name, *origin.arguments):
        case "transpose", Topology() as inner:
            return _predict(inner, base, not flip)
        case "bidirectional", Topology() as inner:
            below = _predict(inner, base, flip)
            return below if below and reverse_symmetry(inner).nodes is not None else None
        case "product", Topology() as inner:
            return _predict(inner, base, flip)
        case "product", *_:
            return _product([f.transpose() if flip else f for f in origin.bases], base)
        case "line", Topology() as inner, *_ if inner.degree is not None:
            below = _predict(inner, base, flip)
            n = origin.times
            return below and Prediction(*line(below.T_L, below.T_B, inner.num_ranks, inner.degree, n), exact=False)
        case "degree", Topology() as inner, int(n) if inner.degree is not None:
            below = _predict(inner, base, flip)
            return below and Prediction(*degree(below.T_L, below.T_B, inner.num_ranks, n), below.exact)
        case "power", Topology() as inner, int(n) if inner.degree is not None:
            below = _predict(inner, base, flip)
            return below and Prediction(*power(below.T_L, below.T_B, inner.num_ranks, n), below.exact)
        case "line" | "degree" | "power", *_:
            return None
        case _:
            return Prediction(*base(topology.transpose() if flip else topology))


def _product(factors: Sequence[Topology], base: Callable[[Topology], Costs]) -> Prediction | None:
    if not all(_is_simple(factor) for factor in factors):
        return None
    costs = product([(*base(factor), factor.num_ranks) for factor in factors])
    return None if costs is None else Prediction(*costs)


def _is_simple(topology: Topology) -> bool:
    ends = topology.src.astype(np.int64) * topology.num_nodes + topology.dst
    return bool((topology.src != topology.dst).all()) and len(np.unique(ends)) == len(ends)
