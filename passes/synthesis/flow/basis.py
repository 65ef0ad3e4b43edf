"""The exact solution of a linear program's last basis: sparse elimination in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

__all__ = ["solve_sparse"]

_MOST_UPDATES = 400_000  # of entries; some seconds

Row = dict[int, Fraction]


def solve_sparse(rows: Sequence[Row], right: Sequence[Fraction]) -> list[Fraction] | None:
    """Return x with sum(row[j] * x[j]) = right for every row of a square system; entries that are 0 are left out.

    Returns None if the matrix is singular, or if elimination would take too long. The shortest row is eliminated first,
    by its rarest column.

    >>> solve_sparse([{0: Fraction(2), 1: Fraction(1)}, {1: Fraction(4)}], [Fraction(3), Fraction(4)])
    [Fraction(1, 1), Fraction(1, 1)]
    """
    system, values = [dict(row) for row in rows], list(right)
    places: dict[int, set[int]] = {j: set() for j in range(len(system))}
    for i, row in enumerate(system):
        for j in row:
            places[j].add(i)
    pending, order, updates = set(range(len(system))), list[tuple[int, int]](), 0
    while pending:
        i = min(pending, key=lambda i: (len(system[i]), i))
        pivot = system[i]
        if not pivot or updates > _MOST_UPDATES:
            return None
        j = min(pivot, key=lambda j: (len(places[j]), j))
        for k in pivot:
            places[k].discard(i)
        for other in sorted(places[j]):
            factor = system[other][j] / pivot[j]
            values[other] -= factor * values[i]
            _subtract(system[other], pivot, factor, places, other)
            updates += len(pivot)
        pending.discard(i)
        order.append((i, j))
    solution = [Fraction(0)] * len(system)
    for i, j in reversed(order):
        rest = sum((x * solution[k] for k, x in system[i].items() if k != j), Fraction(0))
        solution[j] = (values[i] - rest) / system[i][j]
    return solution


def _subtract(row: Row, pivot: Row, factor: Fraction, places: dict[int, set[int]], number: int) -> None:
    for k, x in pivot.items():
        new = row.get(k, Fraction(0)) - factor * x
        if new:
            row[k] = new
            places[k].add(number)
        else:
            row.pop(k, None)
            places[k].discard(number)
