"""Quotients of generalized polygons by a polarity: large graphs of diameter 2, 3 and 5.

A polarity exchanges points and lines, and keeps incidence. The quotient has a rank for each point, linked to the points
of the line that the polarity gives it (Delorme, Grands graphes de degre et diametre donnes, 1985). That of a plane is
PolarFly (Lakhotia et al., 2022).
"""

from __future__ import annotations

from itertools import product

import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import Topology

from . import _sizes
from ._fields import Field, field, prime_of
from ._sizes import HUGE, domain

__all__ = ["polarity"]

#: n of a generalized n-gon -> the prime whose odd powers are its orders; 0: all prime powers are
_PRIMES = {3: 0, 4: 2, 6: 3}
#: prime powers above this have more ranks than any limit
_MOST = 2**20


def polarity(n: int, q: int) -> Topology:
    """Return the quotient of a generalized n-gon of order q by a polarity: 1 + q + .. + q^(n-1) ranks, diameter n - 1.

    n is 3 (the projective plane PG(2,q), q a prime power), 4 (the quadrangle W(q), q an odd power of 2) or 6 (the
    hexagon H(q), q an odd power of 3). Points and lines have coordinates: vectors of fewer than n elements of the field
    of q elements (Van Maldeghem, Generalized Polygons, 3.2 to 3.5 and 7.2). Ranks are these vectors, by length. A rank
    has q + 1 links. Absolute points lie on their own line. In place of the link to itself, each is linked to another,
    in pairs in order of rank. If their number is odd, the last one keeps the link to itself.

    >>> net = polarity(3, 5)
    >>> net.num_ranks, net.degree, net.diameter
    (31, 6, 2)
    """
    heads = _neighbours(n, q)
    rank = np.arange(len(heads))[:, None]
    own = np.flatnonzero((heads == rank).any(axis=1))
    pairs = own[: len(own) // 2 * 2].reshape(-1, 2)
    other = rank[:, 0].copy()
    other[pairs] = pairs[:, ::-1]
    heads = np.sort(np.where(heads == rank, other[:, None], heads), axis=1)
    return Topology("polarity", len(heads), np.repeat(rank[:, 0], q + 1), heads.ravel())


def _neighbours(n: int, q: int) -> Array:
    """Return the ranks of the lines through every point, shape (N, q + 1)."""
    numbers, powers = field(q), _powers(n, q)
    found = []
    for length in range(n):
        points = np.array(list(product(range(q), repeat=length)), dtype=np.int64).reshape(q**length, length)
        shorter = _ranks(points[:, : max(length - 1, 0)], powers, q)
        every = np.arange(q)
        longer = np.concatenate(
            [np.repeat(points[:, None], q, axis=1), np.broadcast_to(every[:, None], (len(points), q, 1))], axis=2
        )
        lines = longer if length < n - 1 else _opposite(numbers, points[:, None], every[None])
        found.append(np.concatenate([shorter[:, None], _ranks(lines, powers, q)], axis=1))
    return np.concatenate(found)


def _opposite(numbers: Field, point: Array, k: Array) -> Array:
    """Return the line whose first coordinate is k, through a point of the most coordinates; both broadcast."""
    plus, times, minus = numbers.plus, numbers.times, numbers.minus
    a, last = point[..., 0], point[..., -1]
    ak = times[a, k]
    b = plus[last, minus[ak]]
    if point.shape[-1] == 2:
        return np.stack(np.broadcast_arrays(k, minus[b]), axis=-1)  # y + y' = x x'
    middle = point[..., 1]
    aak = times[a, ak]
    if point.shape[-1] == 3:
        return np.stack(np.broadcast_arrays(k, b, plus[aak, middle]), axis=-1)
    third, fourth, aaak = point[..., 2], point[..., 3], times[a, aak]
    return np.stack(np.broadcast_arrays(
        k, b, plus[plus[times[k, aaak], fourth], minus[times[k, middle]]],
        plus[plus[aak, third], times[a, last]], plus[aaak, middle],
    ), axis=-1)  # fmt: skip


def _powers(n: int, q: int) -> tuple[Array, Array]:
    """Return x^t and x^(1/t) of every element x, where t t is the prime of the field; for n = 3 the element itself."""
    every = np.arange(q)
    prime, half = _PRIMES[n], 1
    if not prime:
        return every, every
    while prime * half * half < q:
        half *= prime
    return _power(q, prime * half), _power(q, half)


def _power(q: int, exponent: int) -> Array:
    every = np.arange(q)
    result: Array = every
    for _ in range(exponent - 1):
        result = field(q).times[result, every]
    return result


def _ranks(lines: Array, powers: tuple[Array, Array], q: int) -> Array:
    """Return the ranks whose lines these are; the last axis has their coordinates.

    Coordinates have two kinds, alternately. The last one of each line has the same kind.
    """
    length = lines.shape[-1]
    rank: Array = np.zeros(lines.shape[:-1], dtype=np.int64)
    for place in range(length):
        # a point's first coordinate is of the kind t if it has an odd number of them
        back = powers[1] if (length - place) % 2 else powers[0]
        rank = rank * q + back[lines[..., place]]
    rank += sum(q**shorter for shorter in range(length))
    return rank


def polarity_size(n: int, q: int) -> tuple[int, int]:
    if n not in _PRIMES:
        raise domain(f"found n = {n}, needed 3, 4 or 6", "write 3 for diameter 2, 4 for diameter 3, 6 for 5", "n")
    if q >= _MOST:
        return HUGE, HUGE
    if not _fits(n, q):
        kind = {0: "a prime power", 2: "an odd power of 2", 3: "an odd power of 3"}[_PRIMES[n]]
        near = min((other for other in range(2, 9 * q + 9) if _fits(n, other)), key=lambda other: abs(other - q))
        ranks = sum(near**length for length in range(n))
        raise domain(f"found {q}, needed {kind}", f"write `{near}`, which gives {ranks} ranks", "q")
    ranks = _sizes.prod([(q**n - 1) // (q - 1)])
    return ranks, _sizes.prod([ranks, q + 1])


def _fits(n: int, q: int) -> bool:
    prime = prime_of(q)
    if not _PRIMES[n] or prime != _PRIMES[n]:
        return prime is not None and not _PRIMES[n]
    exponent = next(k for k in range(1, 20 + 1) if prime**k >= q)
    return exponent % 2 == 1
