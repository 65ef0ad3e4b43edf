"""Polycirculants: networks on a ring of ranks that look the same after every shift by a period, both ways or one way.

They are the lifts of a small graph with voltages in a cyclic group (Gross and Tucker, Topological Graph Theory, 1987).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import Topology

from . import _sizes
from ._sizes import domain

__all__ = ["directed_polycirculant", "polycirculant"]


def polycirculant(n: int, *offsets: tuple[int, ...]) -> Topology:
    """Return the graph in which rank x is linked both ways to x + a for every a of set number x mod m, of m sets.

    So a shift of all ranks by m keeps the links. A link that is its own reverse after a shift, with a = n/2, counts
    once. The links of a rank are ordered by set, then by offset, those that start there before those that end there.

    >>> net = polycirculant(10, (2, 1), (4,))
    >>> net.num_ranks, net.degree, net.diameter
    (10, 3, 2)
    """
    period = len(offsets)
    steps: list[list[int]] = [[] for _ in range(period)]
    for rank, step in _links(n, offsets):
        steps[rank].append(step)
    return Topology("polycirculant", n, *_shifted(n, steps))


def directed_polycirculant(n: int, *offsets: tuple[int, ...]) -> Topology:
    """Return the digraph in which rank x has a link to x + a for every a of set number x mod m, of m sets.

    So a shift of all ranks by m keeps the links. The links of a rank are in the order of its offsets.

    >>> net = directed_polycirculant(10, (1, 4), (2, 5))
    >>> net.dst[:4].tolist(), net.degree, net.diameter
    ([1, 4, 3, 6], 2, 3)
    """
    return Topology("directed_polycirculant", n, *_shifted(n, offsets))


def _shifted(n: int, steps: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    """Return tails and heads of the links of the first ranks, by their steps, and of all shifts by their number."""
    period = len(steps)
    heads = [(rank + np.arange(0, n, period)[:, None] + np.array(own, dtype=np.int64)) % n
             for rank, own in enumerate(steps)]  # fmt: skip
    tails = [np.repeat(np.arange(rank, n, period), len(own)) for rank, own in enumerate(steps)]
    tail, head = np.concatenate(tails), np.concatenate([part.ravel() for part in heads])
    order = np.argsort(tail, kind="stable")
    return tail[order], head[order]


def _links(n: int, offsets: tuple[tuple[int, ...], ...]) -> Iterator[tuple[int, int]]:
    """Yield (rank, step) for every link of the first ranks, one of each set, to rank + step."""
    period = len(offsets)
    for rank, own in enumerate(offsets):
        for step in own:
            yield rank, step
            if step % period or 2 * step != n:
                yield (rank + step) % period, -step % n


def polycirculant_size(n: int, *offsets: tuple[int, ...]) -> tuple[int, int]:
    period = _period(n, offsets)
    seen = set[tuple[int, int]]()
    for link in _links(n, offsets):
        if link in seen:
            raise domain(_twice(n, period, link), "a set links both ways: leave out one of the two", "offsets", link[1])
        seen.add(link)
    return n, _sizes.prod([n // period, len(seen)])


def directed_polycirculant_size(n: int, *offsets: tuple[int, ...]) -> tuple[int, int]:
    period = _period(n, offsets)
    for own in offsets:
        if again := [step for place, step in enumerate(own) if step in own[:place]]:
            raise domain(f"found offset {again[0]} twice in a set", "an offset is one link", "offsets", again[0])
    return n, _sizes.prod([n // period, sum(map(len, offsets))])


def _period(n: int, offsets: tuple[tuple[int, ...], ...]) -> int:
    """Return the number of sets; raise if it does not divide n, or if an offset leads nowhere."""
    period = len(offsets)
    if n % period:
        near = [m for m in range(1, min(n, 64) + 1) if n % m == 0]
        hint = f"{n} ranks take {', '.join(map(str, near))} sets" + (", .." if n > 64 else "")
        raise domain(f"found {period} sets of offsets, needed a number that divides {n}", hint, "n")
    if not any(offsets):
        raise domain("found no offsets, needed at least one", at="offsets")
    for step in (step for own in offsets for step in own):
        if not 1 <= step < n:
            same = f"offset {step} is {step % n} modulo {n}" if step % n else None
            raise domain(f"found offset {step}, needed one from 1 to {n - 1}", same, "offsets", step)
    return period


def _twice(n: int, period: int, link: tuple[int, int]) -> str:
    rank, step = link
    return f"found the link of ranks {rank} and {(rank + step) % n} twice, as offset {step} of set {rank} and back"
