"""Matrix games solved exactly: the mix of routings with the least largest load, and the prices that prove it.

A routing is a row of integers, its load on every class of links. A mix of routings has the mean of their loads; its
largest entry is to be small. Prices on the classes (at least 0, adding up to 1) prove a bound: no mix beats the
cheapest routing at these prices. The best mix and the best prices meet (linear programming duality; von Neumann).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

__all__ = ["Game"]


class Game:
    """A game that routings join one after another.

    The tableau maximizes sum y, so that every class has sum y_i * load_i <= 1; the value of the game is 1 / sum y. All
    entries are integers over one denominator, the last pivot (Edmonds' integer pivoting). The least numbers decide
    entering and leaving columns (Bland), so it always ends.
    """

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.routings: list[list[int]] = []
        self._known: set[tuple[int, ...]] = set()
        # the basis: class k's slack has number k, routing i has number classes + i
        self._basis = list(range(classes))
        self._denominator = 1
        # rows: the inverse basis, then the right-hand side; the last row has the prices, then the objective
        self._rows = [[int(i == k) for i in range(classes)] + [1] for k in range(classes)]
        self._prices = [0] * (classes + 1)

    def join(self, loads: Sequence[int]) -> bool:
        """Add a routing; return whether it is new."""
        key = tuple(int(x) for x in loads)
        if key in self._known:
            return False
        self._known.add(key)
        self.routings.append(list(key))
        return True

    def solve(self) -> Fraction:
        """Return the value of the game: the largest load of the best mix."""
        while (entering := self._entering()) is not None:
            self._pivot(*entering)
        return Fraction(self._denominator, self._prices[-1])

    @property
    def prices(self) -> list[int]:
        """The best prices, up to a common factor."""
        return self._prices[:-1]

    @property
    def mix(self) -> list[Fraction]:
        """The best mix: the share of every routing."""
        mix = [Fraction(0)] * len(self.routings)
        for number, row in zip(self._basis, self._rows, strict=True):
            if number >= self.classes:
                mix[number - self.classes] = Fraction(row[-1], self._prices[-1])
        return mix

    def _entering(self) -> tuple[int, list[int], int] | None:
        """Return the first column that improves the objective, as (number, column times denominator, gain)."""
        for k, price in enumerate(self._prices[:-1]):
            if price < 0:
                return k, [row[k] for row in self._rows], -price
        prices = self._prices
        for i, loads in enumerate(self.routings):
            gain = self._denominator - sum(p * x for p, x in zip(prices, loads, strict=False))
            if gain > 0:
                column = [sum(a * x for a, x in zip(row, loads, strict=False)) for row in self._rows]
                return self.classes + i, column, gain
        return None

    def _pivot(self, number: int, column: list[int], gain: int) -> None:
        rows, old = self._rows, self._denominator
        candidates = [i for i, x in enumerate(column) if x > 0]
        leaving = min(candidates, key=lambda i: (Fraction(rows[i][-1], column[i]), self._basis[i]))
        pivot, chosen = column[leaving], rows[leaving]
        for i, row in enumerate(rows):
            if i != leaving:
                factor = column[i]
                rows[i] = [(pivot * a - factor * b) // old for a, b in zip(row, chosen, strict=True)]
        self._prices = [(pivot * a + gain * b) // old for a, b in zip(self._prices, chosen, strict=True)]
        self._basis[leaving], self._denominator = number, pivot
