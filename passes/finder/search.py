"""The bottom-up search of section 5.4: bases, expanded until they have the nodes and the degree asked for.

Every size that can be expanded to the target has its frontier of candidates, found once. Candidates are pruned by what
the theorems predict; what survives at the target is measured, since the real schedule may be better than predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import isqrt

from .bases import bases
from .expand import Candidate, bidirectional, degree, line, power, product, prune

__all__ = ["BottomUp", "grow"]

#: a candidate with its real costs: one candidate, two where either scheduler is better in something, or none
Measure = Callable[[Candidate], Iterable[Candidate]]
#: (nodes, degree) -> candidates
Frontier = Callable[[int, int], list[Candidate]]


class BottomUp:
    """Frontiers by (nodes, degree) as the theorems predict them, each found when first asked for."""

    def __init__(self) -> None:
        self._frontiers: dict[tuple[int, int], list[Candidate]] = {}
        self._factors: dict[tuple[int, int], list[Candidate]] = {}

    def frontier(self, nodes: int, links: int) -> list[Candidate]:
        """Return the candidates of so many nodes and this degree that no other can stand for."""
        key = nodes, links
        if key not in self._frontiers:
            self._frontiers[key] = prune(self.candidates(nodes, links, self.frontier))
        return self._frontiers[key]

    def candidates(self, nodes: int, links: int, frontier: Frontier) -> Iterator[Candidate]:
        """Yield the bases of a size, and what one expansion makes of the ``frontier`` of smaller ones."""
        yield from bases(nodes, links)
        yield from filter(None, _expanded(nodes, links, frontier))
        yield from self.factors(nodes, links)

    def factors(self, nodes: int, links: int) -> list[Candidate]:
        """Return the candidates of fewest steps that Theorem 13 takes as factors: one of all, one linked both ways."""
        key = nodes, links
        if key not in self._factors:
            found = [c for c in bases(nodes, links) if c.multiplies]
            self._factors[key] = prune([*found, *self._products(nodes, links)])
        return self._factors[key]

    def _products(self, nodes: int, links: int) -> Iterator[Candidate]:
        for first in _divisors(nodes):
            if not 1 < first <= nodes // first:
                continue
            for share in range(1, links):
                for one in self.factors(first, share):
                    for two in self.factors(nodes // first, links - share):
                        made = product((one, two))
                        if made is not None:
                            yield made


def _expanded(nodes: int, links: int, frontier: Frontier) -> Iterator[Candidate | None]:
    """Yield what one expansion of one smaller candidate gives."""
    if links > 1 and nodes % links == 0 and nodes // links > 1:
        for base in frontier(nodes // links, links):
            if not base.expression.startswith(("generalized_kautz", "debruijn")):  # whose line graphs are such again
                yield line(base)
    for n in range(2, links + 1):
        if links % n == 0 and nodes % n == 0 and nodes // n > 1:
            yield from (degree(base, n) for base in frontier(nodes // n, links // n))
        root = _root(nodes, n)
        if root > 1 and links % n == 0:
            yield from (power(base, n) for base in frontier(root, links // n))
    if links % 2 == 0:
        yield from (bidirectional(base) for base in frontier(nodes, links // 2) if not base.both_ways)


def grow(nodes: int, links: int, known: dict[tuple[int, int], list[Candidate]], measure: Measure) -> list[Candidate]:
    """Return the measured frontier of one size, in which the bases and ``known`` ones, by (nodes, degree), are
    expanded.
    """
    search = _predictions()

    def frontier(n: int, d: int) -> list[Candidate]:
        return prune([*known.get((n, d), ()), *search.frontier(n, d)])

    return _measured([*known.get((nodes, links), ()), *search.candidates(nodes, links, frontier)], measure)


@lru_cache(maxsize=1)
def _predictions() -> BottomUp:
    """The predicted frontiers of this process: they depend on nothing, so all searches share them."""
    return BottomUp()


def _measured(found: Iterable[Candidate], measure: Measure) -> list[Candidate]:
    """Measure predictions one by one, most steps first; what is known then often makes others needless."""
    pool = list(found)  # all of them: what one prediction seemed to beat comes back where it does not come true
    while True:
        left = prune(pool)
        guess = next((c for c in reversed(left) if not c.exact), None)
        if guess is None:
            return left
        pool.remove(guess)
        pool += measure(guess)


def _divisors(n: int) -> list[int]:
    small = [k for k in range(1, isqrt(n) + 1) if n % k == 0]
    return sorted({*small, *(n // k for k in small)})


def _root(nodes: int, n: int) -> int:
    """Return the integer whose n-th power is ``nodes``, or 0."""
    guess = round(nodes ** (1 / n))
    return next((r for r in (guess - 1, guess, guess + 1) if r > 1 and r**n == nodes), 0)
