"""Low-diameter networks of routers: Slim Fly, Jellyfish, Xpander.

The routers are the ranks, numbered from 0. With ``hosts``, they are switches ``router[i]``, each with that number of
ranks ``host[i, j]``. Links are ordered by router, then by neighbour. What is random depends on the seed only, and is
the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np

from collc.ir.diagnostic import error
from collc.ir.topology import Topology

from . import _sizes
from ._fields import field, prime_of
from ._sizes import HUGE, domain

__all__ = ["jellyfish", "slim_fly", "xpander"]

Edge = tuple[int, int]

_ATTEMPTS = 1000


def _network(name: str, routers: int, edges: Iterable[Edge], hosts: int) -> Topology:
    """Return the network of routers with a link each way for every edge, and with hosts below the routers."""
    links = np.array([end for a, b in edges for end in ((a, b), (b, a))], dtype=np.int64).reshape(-1, 2)
    links = links[np.lexsort((links[:, 1], links[:, 0]))]
    if not hosts:
        return Topology(name, routers, links[:, 0], links[:, 1])
    ranks = routers * hosts
    rank = np.arange(ranks)
    up = np.stack([rank, ranks + rank // hosts], axis=1)
    ends = np.concatenate([np.stack([up, up[:, ::-1]], axis=1).reshape(-1, 2), links + ranks])
    names = [f"host[{r}, {i}]" for r in range(routers) for i in range(hosts)] + [f"router[{r}]" for r in range(routers)]
    return Topology(name, ranks, ends[:, 0], ends[:, 1], routers, node_names=tuple(names))


def _network_size(routers: int, degree: int, hosts: int) -> tuple[int, int]:
    ranks = _sizes.prod([routers, hosts])
    return min(routers + ranks, HUGE), min(_sizes.prod([routers, degree]) + 2 * ranks, HUGE)


# ---- Slim Fly


def slim_fly(q: int, hosts: int = 0) -> Topology:
    """Return Slim Fly: 2 q^2 routers of diameter 2 (Besta and Hoefer, Slim Fly, 2014, section II-B).

    The graph of McKay, Miller and Siran: q = 4w + delta is a prime power, delta 1, 0 or -1, and every router has
    (3q - delta) / 2 links to others. Router (s, x, y) is number (s q + x) q + y. Routers (0, x, y) and (0, x, z) are
    linked if y - z is in a set X of powers of a primitive element, (1, m, c) and (1, m, e) if c - e is in a set X', and
    (0, x, y) and (1, m, c) if y = m x + c. 5 gives the Hoffman-Singleton graph.

    >>> slim_fly(5).num_ranks, slim_fly(5).degree, slim_fly(5).diameter
    (50, 7, 2)
    """
    elements = field(q)
    minus = elements.minus
    edges: list[Edge] = []
    for side, offsets in enumerate(_offsets(q)):
        for x in range(q):
            first = (side * q + x) * q
            edges += [
                (first + y, first + z) for y, z in combinations(range(q), 2) if elements.plus[y, minus[z]] in offsets
            ]
    for x in range(q):
        for m in range(q):
            ys = elements.plus[elements.times[m, x]]  # of every c
            edges += [(x * q + int(y), (q + m) * q + c) for c, y in enumerate(ys)]
    return _network("slim_fly", 2 * q * q, edges, hosts)


def _offsets(q: int) -> tuple[set[int], set[int]]:
    """Return the sets X and X': even and odd powers, for delta = -1 each with its negatives."""
    times = field(q).times
    powers = next(found for x in range(1, q) if len(found := _powers(x, times)) == q - 1)
    quarter, delta = divmod(q + 1, 4)
    if delta:  # q = 4w + 1, or q = 4w, whose last odd power is 1 again
        return set(powers[0::2]), {*powers[1::2], *powers[: q % 2 == 0]}
    even, odd = set(powers[0 : 2 * quarter : 2]), set(powers[1 : 2 * quarter : 2])
    minus = field(q).minus
    return even | {int(minus[x]) for x in even}, odd | {int(minus[x]) for x in odd}


def _powers(x: int, times: np.ndarray) -> list[int]:
    """Return 1, x, x^2, .. until a power is 1 again."""
    found = [1]
    while (power := int(times[found[-1], x])) != 1:
        found.append(power)
    return found


def slim_fly_size(q: int, hosts: int = 0) -> tuple[int, int]:
    if q >= 2**20:
        return HUGE, HUGE
    if prime_of(q) is None or q % 4 == 2:
        near = min((other for other in range(3, 2 * q + 6) if _fits(other)), key=lambda other: abs(other - q))
        message = f"found {q}, needed a prime power that is 0, 1 or 3 modulo 4"
        raise domain(message, f"write `{near}`, which gives {2 * near * near} routers", "q")
    delta = {0: 0, 1: 1, 3: -1}[q % 4]
    return _network_size(2 * q * q, (3 * q - delta) // 2, hosts)


def _fits(q: int) -> bool:
    return prime_of(q) is not None and q % 4 != 2


# ---- random graphs


class _Draws:
    """Random numbers by splitmix64 (Steele, Lea and Flood, 2014): 64-bit arithmetic, the same everywhere."""

    def __init__(self, seed: int):
        self.state = seed

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1."""
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        mixed = self.state
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> shift)) * factor % 2**64
        return (mixed ^ (mixed >> 31)) * bound >> 64

    def order(self, count: int) -> list[int]:
        """Return the numbers 0 .. count-1 in a random order."""
        items = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
        return items


def jellyfish(n: int, d: int, seed: int = 0, hosts: int = 0) -> Topology:
    """Return Jellyfish: a random connected graph of n routers with d links each (Singla et al., Jellyfish, 2012).

    Ends of links are paired at random; pairs that repeat a link or join a router with itself change partners with
    random others. Of a dense graph the links that it does not have are drawn. Raises C0331 where none is found.

    >>> net = jellyfish(20, 3, 7)
    >>> net.num_ranks, net.degree, net.is_connected
    (20, 3, True)
    """
    draws = _Draws(seed)
    if d == 2:
        ring = draws.order(n)
        return _network("jellyfish", n, zip(ring, ring[1:] + ring[:1], strict=True), hosts)
    return _first_connected("jellyfish", n, hosts, lambda: _regular(n, d, draws))


def _regular(n: int, d: int, draws: _Draws) -> list[Edge]:
    """Return the edges of a random graph of degree d, which need not be connected."""
    if 2 * d <= n - 1:
        return _paired(n, d, draws)
    absent = set(_paired(n, n - 1 - d, draws)) if d < n - 1 else set()
    return [edge for edge in combinations(range(n), 2) if edge not in absent]


def _paired(n: int, d: int, draws: _Draws) -> list[Edge]:
    """Return a random simple graph of degree d: ends paired at random, then faulty pairs change partners."""
    while True:
        ends = [end // d for end in draws.order(n * d)]
        pairs = list(zip(ends[::2], ends[1::2], strict=True))
        if _mend(pairs, draws):
            return sorted((min(pair), max(pair)) for pair in pairs)


def _mend(pairs: list[Edge], draws: _Draws) -> bool:
    """Exchange ends until no pair repeats another or joins a router with itself; return whether that was possible."""
    count: dict[Edge, int] = {}
    for a, b in pairs:
        count[min(a, b), max(a, b)] = count.get((min(a, b), max(a, b)), 0) + 1

    def faulty(a: int, b: int, most: int) -> bool:
        return a == b or count.get((min(a, b), max(a, b)), 0) > most

    for i in range(len(pairs)):
        for _ in range(_ATTEMPTS):
            a, b = pairs[i]
            if not faulty(a, b, 1):
                break
            j = draws.below(len(pairs))
            c, e = pairs[j]
            if i == j or (min(a, c), max(a, c)) == (min(b, e), max(b, e)) or faulty(a, c, 0) or faulty(b, e, 0):
                continue
            for x, y, change in ((a, b, -1), (c, e, -1), (a, c, 1), (b, e, 1)):
                count[min(x, y), max(x, y)] = count.get((min(x, y), max(x, y)), 0) + change
            pairs[i], pairs[j] = (a, c), (b, e)
        else:
            return False
    return True


def jellyfish_size(n: int, d: int, seed: int = 0, hosts: int = 0) -> tuple[int, int]:
    if d >= n:
        hint = f"write `{n - 1}`" if n > 2 else None
        raise domain(f"found degree {d} for {n} routers, needed less than {n}", hint, "d")
    if n * d % 2:
        message = f"found {n} routers of degree {d}, needed one of both to be even: every link has two ends"
        raise domain(message, f"write `{n + 1}`", "n")
    _check_seed(seed)
    return _network_size(n, d, hosts)


def xpander(d: int, lift: int, seed: int = 0, hosts: int = 0) -> Topology:
    """Return Xpander: a random lift of the complete graph of d + 1 routers (Valadarsky et al., Xpander, 2016).

    Every router of the complete graph becomes ``lift`` routers, and every link a random matching of the two groups:
    (d + 1) * lift routers of degree d, in groups without links inside. Router i of group g is g * lift + i. Raises
    C0331 where no connected one is found.

    >>> net = xpander(4, 6, 1)
    >>> net.num_ranks, net.degree, net.is_connected
    (30, 4, True)
    """
    draws = _Draws(seed)

    def lifted() -> list[Edge]:
        groups = combinations(range(d + 1), 2)
        return [(a * lift + i, b * lift + j) for a, b in groups for i, j in enumerate(draws.order(lift))]

    return _first_connected("xpander", (d + 1) * lift, hosts, lifted)


def xpander_size(d: int, lift: int, seed: int = 0, hosts: int = 0) -> tuple[int, int]:
    _check_seed(seed)
    return _network_size(_sizes.prod([d + 1, lift]), d, hosts)


def _check_seed(seed: int) -> None:
    if seed >= 2**64:
        raise domain("found a seed of more than 64 bits, needed less than 2^64", at="seed")


def _first_connected(name: str, routers: int, hosts: int, draw: Callable[[], list[Edge]]) -> Topology:
    """Return the first network of those drawn that is connected."""
    for _ in range(_ATTEMPTS):
        edges = draw()
        if _network(name, routers, edges, 0).is_connected:
            return _network(name, routers, edges, hosts)
    raise error("C0331", f"no connected graph was found for `{name}`", hint="take another seed or a larger degree")
