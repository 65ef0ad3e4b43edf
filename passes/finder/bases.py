"""The base topologies of the search: Tables 8 and 9 of the direct-connect paper, by number of nodes and degree.

The paper proves the costs of these: Table 9, distance-regular graphs (section F.3), rings and circulants of two offsets
(Theorem 22 and section E.1). The cost of generalized Kautz and de Bruijn digraphs, and of circulants of more offsets,
depends on the graph. Candidates have the bound of Theorem 21 until the evaluator computes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import gcd, isqrt

import attrs

from collc.ir.costs.bounds import moore_steps

from ..expansion.theorems import optimum
from .expand import Candidate, line_of

__all__ = ["DISTANCE_REGULAR", "bases", "can_be_bidirectional", "circulant_offsets"]

#: distance-regular graphs, Table 8 first: name -> (nodes, degree, diameter)
DISTANCE_REGULAR: dict[str, tuple[int, int, int]] = {
    "octahedron": (6, 4, 2), "paley9": (9, 4, 2), "k55-minus-matching": (10, 4, 3), "heawood-distance-3": (14, 4, 3),
    "petersen-line": (15, 4, 3), "4-cube": (16, 4, 4), "heawood-line": (21, 4, 3), "pg(2,3)": (26, 4, 3),
    "ag(2,4)-minus-class": (32, 4, 4), "odd4": (35, 4, 3), "tutte8-line": (45, 4, 4), "doubled-odd4": (70, 4, 7),
    "gq(3,3)": (80, 4, 4), "tutte12-line": (189, 4, 6), "gh(3,3)": (728, 4, 6), "cube": (8, 3, 3),
    "petersen": (10, 3, 2), "heawood": (14, 3, 3), "pappus": (18, 3, 4), "dodecahedron": (20, 3, 5),
    "desargues": (20, 3, 5), "coxeter": (28, 3, 4), "tutte8": (30, 3, 4), "foster": (90, 3, 8),
    "biggs-smith": (102, 3, 7), "tutte12": (126, 3, 6), "icosahedron": (12, 5, 3), "k66-minus-matching": (12, 5, 3),
    "folded-5-cube": (16, 5, 2), "5-cube": (32, 5, 5), "pg(2,4)": (42, 5, 3), "ag(2,5)-minus-class": (50, 5, 4),
    "odd5": (126, 5, 4), "gq(4,4)": (170, 5, 4), "doubled-odd5": (252, 5, 9), "j(5,2)": (10, 6, 2),
    "paley13": (13, 6, 2), "shrikhande": (16, 6, 2), "h(3,3)": (27, 6, 3), "folded-6-cube": (32, 6, 3),
    "pg(2,5)": (62, 6, 3), "gq(5,5)": (312, 6, 4), "odd6": (462, 6, 5), "hoffman-singleton": (50, 7, 2),
    "folded-7-cube": (64, 7, 3), "ag(2,7)-minus-class": (98, 7, 4), "paley17": (17, 8, 2), "pg(2,7)": (114, 8, 3),
    "ag(2,8)-minus-class": (128, 8, 4), "gq(7,7)": (800, 8, 4),
}  # fmt: skip

#: digraphs with bandwidth-optimal breadth-first schedules: expression -> (nodes, degree, T_L). They take no more steps
#: than Diamond and the modified de Bruijn graphs of Table 9 at the same sizes, and need no other scheduler.
DIAMOND_SUBSTITUTES: dict[str, tuple[int, int, int]] = {
    "directed_circulant(8, {1, 3})": (8, 2, 3),
    "line(directed_circulant(8, {1, 3}))": (16, 2, 4),
    "directed_circulant(9, {1, 3, 4})": (9, 3, 2),
}

_ATTEMPTS = 48  # sets of offsets tried for a circulant of more than two


def can_be_bidirectional(nodes: int, degree: int) -> bool:
    """Return whether every link of a graph of this size and degree can have a reverse: N*d must be even."""
    return nodes * degree % 2 == 0


def bases(nodes: int, degree: int) -> Iterator[Candidate]:
    """Yield every base topology of this number of nodes and degree."""
    if nodes < 2 or degree < 1:
        return
    yield from _complete(nodes, degree)
    yield from _rings(nodes, degree)
    yield from _circulants(nodes, degree)
    yield from _tables(nodes, degree)
    yield from _of_fields(nodes, degree)
    yield from _kautz(nodes, degree)


def _best(
    expression: str, nodes: int, degree: int, steps: int, *, both_ways: bool = False, simple: bool = True
) -> Candidate:
    """Return a candidate with a bandwidth-optimal breadth-first schedule."""
    return Candidate(expression, nodes, degree, steps, optimum(nodes), both_ways=both_ways, simple=simple)


def _complete(nodes: int, degree: int) -> Iterator[Candidate]:
    if degree == nodes - 1:
        yield _best(f"complete({nodes})", nodes, degree, 1, both_ways=True)
    if nodes == 2 * degree and degree > 1:
        yield _best(f"complete_bipartite({degree})", nodes, degree, 2, both_ways=True)
    if nodes == degree + 2 and degree > 1:
        yield _best(f"directed_circulant({nodes})", nodes, degree, 2)


def _rings(nodes: int, degree: int) -> Iterator[Candidate]:
    if nodes < 3:
        if nodes == 2 and degree > 1:
            yield _best(f"uniring(2, {degree})", 2, degree, 1, both_ways=True, simple=False)
        return
    ring = f"uniring({nodes}, {degree})" if degree > 1 else f"uniring({nodes})"
    yield _best(ring, nodes, degree, nodes - 1, simple=degree == 1)
    if degree % 2 == 0:
        ring = f"biring({nodes}, {degree})" if degree > 2 else f"biring({nodes})"
        yield _best(ring, nodes, degree, nodes // 2, both_ways=True, simple=degree == 2)


# ---- circulants


def _circulants(nodes: int, degree: int) -> Iterator[Candidate]:
    if degree % 2 or degree < 4 or nodes <= degree:
        return
    offsets, steps = circulant_offsets(nodes, degree // 2)
    if offsets:
        expression = f"circulant({nodes}, {{{', '.join(map(str, offsets))}}})"
        # Section F.4 proves it for two offsets; for more it is Conjecture 1.
        proved = len(offsets) <= 2
        yield Candidate(expression, nodes, degree, steps, optimum(nodes), exact=proved, both_ways=True)


@cache
def circulant_offsets(nodes: int, k: int) -> tuple[tuple[int, ...], int]:
    """Return k offsets of a circulant of small diameter, and the diameter; no offsets and 0 if there is none.

    Two offsets are optimal (Theorem 22). More come from a bounded search: powers of a stride near the k-th root, with
    variations that depend only on the arguments.

    >>> circulant_offsets(16, 2)
    ((3, 4), 3)
    """
    if 2 * k >= nodes:
        return (), 0
    if k == 2 and nodes > 6:
        m = _ceil_half_root(nodes)
        return (m, m + 1), m
    found: tuple[int, tuple[int, ...]] | None = None
    for offsets in _offset_sets(nodes, k):
        steps = _circulant_diameter(nodes, offsets, found[0] if found else nodes)
        if steps is not None and (found is None or steps < found[0]):
            found = steps, offsets
            if steps <= max(2, moore_steps(nodes, 2 * k)):
                break
    return (found[1], found[0]) if found else ((), 0)


def _ceil_half_root(n: int) -> int:
    """Return the least m with 2 m^2 + 2 m + 1 >= n, which is ceil((-1 + sqrt(2 n - 1)) / 2)."""
    m = (isqrt(2 * n - 1) - 1) // 2
    while 2 * m * m + 2 * m + 1 < n:
        m += 1
    return m


def _offset_sets(nodes: int, k: int) -> Iterator[tuple[int, ...]]:
    """Yield at most ``_ATTEMPTS`` sets of k different offsets below half the nodes."""
    half = (nodes - 1) // 2
    if half == k:
        yield tuple(range(1, k + 1))
        return
    state = 12345 + nodes * 31 + k
    root = round(nodes ** (1 / k))  # only the start of the search: no cost depends on it
    for attempt in range(_ATTEMPTS if k <= 4 else _ATTEMPTS // 3):
        chosen = {1}
        for place in range(1, k):
            state = (state * 1103515245 + 12345) % 2**31
            around = max(root, 2) ** place
            spread = 0 if attempt == 0 else (state >> 8) % (2 * around + 1) - around
            value = (around + spread) if attempt % 2 == 0 or attempt == 1 else (state >> 8) % nodes
            value = min(value % nodes, -value % nodes)
            while value == 0 or value > half or value in chosen:
                value = value % half + 1
            chosen.add(value)
        yield tuple(sorted(chosen))


def _circulant_diameter(nodes: int, offsets: tuple[int, ...], most: int) -> int | None:
    """Return the diameter, or None if it is at least ``most``; sets of ranks are the bits of an integer."""
    if gcd(nodes, *offsets) > 1:
        return None
    everything = (1 << nodes) - 1
    reached = fresh = 1
    for steps in range(most):
        if reached == everything:
            return steps
        spread = 0
        for offset in offsets:
            spread |= fresh << offset | fresh >> (nodes - offset) | fresh >> offset | fresh << (nodes - offset)
        fresh = spread & everything & ~reached
        reached |= fresh
    return None


# ---- graphs of single sizes


def _tables(nodes: int, degree: int) -> Iterator[Candidate]:
    for name, (size, links, steps) in DISTANCE_REGULAR.items():
        if (size, links) == (nodes, degree):
            yield _best(f'distance_regular("{name}")', nodes, degree, steps, both_ways=True)
    for expression, (size, links, steps) in DIAMOND_SUBSTITUTES.items():
        if (size, links) == (nodes, degree):
            yield attrs.evolve(_best(expression, nodes, degree, steps), inner=line_of(expression))


# ---- large graphs of small diameters


def _of_fields(nodes: int, degree: int) -> Iterator[Candidate]:
    """Yield the graphs of McKay, Miller and Siran, and quotients of generalized polygons without a spare link."""
    q = isqrt(nodes // 2)
    # (3q - delta) / 2 links: delta is q mod 4 as 1, 0 or -1
    if 2 * q * q == nodes and q > 2 and q % 4 != 2 and _is_prime_power(q) and degree == (3 * q + q % 4 // 2) // 2:
        yield _bounded(f"slim_fly({q})", nodes, degree, 2)
    q = degree - 1
    for n, prime in ((3, q), (4, 2), (6, 3)):
        if nodes == sum(q**k for k in range(n)) and nodes * degree % 2 == 0 and _is_prime_power(q):
            exponent = next((k for k in range(1, q) if prime**k == q), 0)
            if n == 3 or exponent % 2:
                yield _bounded(f"polarity({n}, {q})", nodes, degree, n - 1)


def _bounded(expression: str, nodes: int, degree: int, steps: int) -> Candidate:
    """Return a candidate whose bandwidth time is not known before it is built."""
    return Candidate(
        expression, nodes, degree, steps, 2 * optimum(nodes), exact=False, both_ways=True, slack=Fraction(2)
    )  # fmt: skip


def _is_prime_power(q: int) -> bool:
    least = next((p for p in range(2, isqrt(q) + 1) if q % p == 0), q)
    while q > 1 and q % least == 0:
        q //= least
    return q == 1 and least > 1


# ---- Kautz and de Bruijn


def _kautz(nodes: int, degree: int) -> Iterator[Candidate]:
    if degree < 2 or nodes <= degree + 1:
        return  # with N = d + 1 it is the complete graph
    steps = _kautz_diameter(nodes, degree)
    yield Candidate(
        f"generalized_kautz({degree}, {nodes})", nodes, degree, steps, 2 * optimum(nodes), exact=False,
        loops=nodes % (degree + 1) != 0, simple=nodes % (degree + 1) == 0, slack=Fraction(2),
    )  # fmt: skip
    if degree**steps == nodes:
        yield Candidate(
            f"debruijn({degree}, {steps})", nodes, degree, steps, 2 * optimum(nodes), exact=False, loops=True,
            simple=False, slack=Fraction(2),
        )  # fmt: skip


def _kautz_diameter(nodes: int, degree: int) -> int:
    """Return the diameter of the generalized Kautz digraph: the least k with d^k >= N, or one less for d^m (d^b +
    1), b odd.
    """
    k = 0
    while degree**k < nodes:
        k += 1
    short = any(nodes == degree ** (k - 1 - b) * (degree**b + 1) for b in range(1, k, 2))
    return k - 1 if short else k
