"""The bottom-up search of section 5.4: expand bases until they have the requested nodes and degree.

Every size that can be expanded to the target has a frontier of candidates, computed once. The predictions of the
theorems prune candidates. The search measures the survivors at the target, because a real schedule may be better than
its prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import isqrt

from .bases import bases
from .exclude import NOTHING, Excluded
from .expand import Candidate, bidirectional, degree, line, power, product, prune

__all__ = ["BottomUp", "search_bottom_up"]

#: returns a candidate with its real costs: one candidate, two if each scheduler is better in something, or none
Measure = Callable[[Candidate], Iterable[Candidate]]
#: (nodes, degree) -> candidates
Frontier = Callable[[int, int], list[Candidate]]


class BottomUp:
    """The predicted frontiers by (nodes, degree) without excluded names, each computed at its first use."""

    def __init__(self, exclude: Excluded = NOTHING) -> None:
        self._exclude = exclude
        self._frontiers: dict[tuple[int, int], list[Candidate]] = {}
        self._factors: dict[tuple[int, int], list[Candidate]] = {}

    def frontier(self, nodes: int, links: int) -> list[Candidate]:
        """Return the candidates of this number of nodes and degree that no other can replace."""
        key = nodes, links
        if key not in self._frontiers:
            self._frontiers[key] = prune(self.candidates(nodes, links, self.frontier))
        return self._frontiers[key]

    def candidates(self, nodes: int, links: int, frontier: Frontier) -> Iterator[Candidate]:
        """Yield the bases of a size, and all expansions of the ``frontier`` of smaller sizes."""
        yield from self._bases(nodes, links)
        yield from (c for c in _expanded(nodes, links, frontier) if c and self._exclude.allows(c.expression))
        yield from self.factors(nodes, links)

    def _bases(self, nodes: int, links: int) -> Iterator[Candidate]:
        return (c for c in bases(nodes, links) if self._exclude.allows(c.expression))

    def factors(self, nodes: int, links: int) -> list[Candidate]:
        """Return the factors of fewest steps for Theorem 13: one of all candidates, one with links both ways."""
        key = nodes, links
        if key not in self._factors:
            found = [c for c in self._bases(nodes, links) if c.multiplies]
            self._factors[key] = prune([*found, *self._products(nodes, links)])
        return self._factors[key]

    def _products(self, nodes: int, links: int) -> Iterator[Candidate]:
        for first in _divisors(nodes):
            if not 1 < first <= nodes // first:
                continue
            for share in range(1, links):
                for one in self.factors(first, share):
                    for two in self.factors(nodes // first, links - share):
                        candidate = product((one, two))
                        if candidate is not None and self._exclude.allows(candidate.expression):
                            yield candidate


def _expanded(nodes: int, links: int, frontier: Frontier) -> Iterator[Candidate | None]:
    """Yield every expansion of one smaller candidate; None for those that do not exist."""
    if links > 1 and nodes % links == 0 and nodes // links > 1:
        for base in frontier(nodes // links, links):
            if not base.expression.startswith(("generalized_kautz", "debruijn")):  # closed under line graphs
                yield line(base)
    for n in range(2, links + 1):
        if links % n == 0 and nodes % n == 0 and nodes // n > 1:
            yield from (degree(base, n) for base in frontier(nodes // n, links // n))
        root = _root(nodes, n)
        if root > 1 and links % n == 0:
            yield from (power(base, n) for base in frontier(root, links // n))
    if links % 2 == 0:
        yield from (bidirectional(base) for base in frontier(nodes, links // 2) if not base.both_ways)


def search_bottom_up(
    nodes: int, links: int, known: dict[tuple[int, int], list[Candidate]], measure: Measure, exclude: Excluded = NOTHING
) -> list[Candidate]:
    """Return the measured frontier of one size, from expansions of the bases and of ``known``, by (nodes, degree).

    No candidate that is compared has an excluded name; the caller leaves such out of ``known``.
    """
    search = _predictions(exclude)

    def frontier(n: int, d: int) -> list[Candidate]:
        return prune([*known.get((n, d), ()), *search.frontier(n, d)])

    return _measured([*known.get((nodes, links), ()), *search.candidates(nodes, links, frontier)], measure)


@lru_cache(maxsize=1)
def _predictions(exclude: Excluded) -> BottomUp:
    """Return the predicted frontiers of this process, which all searches without these names share."""
    return BottomUp(exclude)


def _measured(found: Iterable[Candidate], measure: Measure) -> list[Candidate]:
    """Measure predictions one by one, most steps first; a measured candidate often replaces other predictions."""
    pool = list(found)  # unpruned: a candidate that a wrong prediction seemed to replace returns
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
