"""Rounds between boxes: a matrix of integers as a sum of matchings, each times a weight (Birkhoff and von Neumann).

Let S be the largest sum of a row or a column. The matrix is filled up until all these sums are S. Then its positive
entries contain a perfect matching, and so do those of what is left after any multiple of a matching is taken out. So
the weights of the rounds add up to S, the least that the busiest box has to send or receive. The filler is not sent.

Large rounds come first: a matching is sought among the entries of at least a threshold, which is halved when there is
none. A matching is kept from round to round; only rows whose entry falls below the threshold are matched again.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, distinct
from collc.ir.frozen import frozen

__all__ = ["Rounds", "box_rounds", "filled"]


@frozen(eq=False)
class Rounds:
    """Rounds of a matrix: box i sends ``amount[r, i]`` to box ``target[r, i]`` in round r, of weight ``weight[r]``.

    Every row of ``target`` is a permutation. ``amount[r, i]`` is at most ``weight[r]``, and 0 on the diagonal.
    """

    target: Array
    amount: Array
    weight: Array

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return int(self.weight.sum())


def filled(matrix: Array) -> Array:
    """Return the matrix with integers added until all rows and columns have the largest of their sums.

    >>> filled(np.array([[0, 5], [2, 0]])).tolist()
    [[0, 5], [5, 0]]
    """
    full = matrix.astype(np.int64)
    total = max(int(full.sum(axis=0).max(initial=0)), int(full.sum(axis=1).max(initial=0)))
    rows, columns = (total - full.sum(axis=axis) for axis in (1, 0))
    row = column = 0
    while row < len(full) and column < len(full):
        more = min(int(rows[row]), int(columns[column]))
        full[row, column] += more
        rows[row] -= more
        columns[column] -= more
        row, column = row + int(rows[row] == 0), column + int(columns[column] == 0)
    return full


def box_rounds(matrix: Array) -> Rounds:
    """Return at most n^2 - 2n + 2 rounds that send an n x n matrix of integers (0 or more; its diagonal stays).

    The sum of their weights is the largest sum of a row or a column, which no rounds can be below. If all entries are
    equal, a rotation of the boxes maps each round to itself: then a schedule is that of one box.
    """
    real = matrix.astype(np.int64)
    np.fill_diagonal(real, 0)
    if len(real) > 1 and len(distinct(real[~np.eye(len(real), dtype=bool)])) == 1 and real.any():
        return _turned(real)
    left = filled(real)
    matching = _Matching(left)
    targets, weights = list[list[int]](), list[int]()
    while (found := matching.next()) is not None:
        targets.append(found[0])
        weights.append(found[1])
    n = len(real)
    target = np.array(targets, dtype=np.int64).reshape(-1, n)
    weight = np.array(weights, dtype=np.int64)
    return Rounds(target, _sent(real, target, weight), weight)


def _turned(real: Array) -> Rounds:
    """Return the rounds of equal entries: in round r box i sends to box i + r + 1."""
    n = len(real)
    target = (np.arange(n) + np.arange(1, n)[:, None]) % n
    amount = np.full(target.shape, real[0, 1])
    return Rounds(target, amount, amount[:, 0])


def _sent(real: Array, target: Array, weight: Array) -> Array:
    """Return what every box sends in each round: the first of its entry's rounds carry data, the last carry filler."""
    n = len(real)
    place = (np.arange(n) * n + target).ravel()
    order = np.argsort(place, kind="stable")
    each = np.repeat(weight, n)[order]
    ends = np.cumsum(each)
    first = np.searchsorted(place[order], place[order])
    before = ends - each - (ends - each)[first]
    amount = np.empty(len(place), dtype=np.int64)
    amount[order] = np.clip(real.ravel()[place[order]] - before, 0, each)
    return amount.reshape(target.shape)


class _Matching:
    """The perfect matchings of what is left of a filled matrix, each with the largest weight that it may take out."""

    def __init__(self, full: Array):
        self.left: list[list[int]] = full.tolist()
        size = len(self.left)
        self.of_row, self.of_column = [-1] * size, [-1] * size
        largest = int(full.max(initial=0))
        self.threshold = 1 << max(largest.bit_length() - 1, 0) if largest else 0
        self.columns: list[int] = []  # of every row, the columns with an entry of at least the threshold, as bits
        self._look()

    def next(self) -> tuple[list[int], int] | None:
        """Take the next matching out, and return the column of each row, and its weight; None if nothing is left."""
        while self.threshold:
            if all(self._match(row) for row in range(len(self.left)) if self.of_row[row] < 0):
                return self._take()
            self.threshold //= 2
            self._look()
        return None

    def _look(self) -> None:
        bits = [1 << column for column in range(len(self.left))]
        self.columns = [
            sum([bit for bit, entry in zip(bits, row, strict=True) if entry >= self.threshold]) for row in self.left
        ]

    def _take(self) -> tuple[list[int], int]:
        target = self.of_row.copy()
        weight = min([row[column] for row, column in zip(self.left, target, strict=True)])
        for number, (row, column) in enumerate(zip(self.left, target, strict=True)):
            row[column] -= weight
            if row[column] < self.threshold:
                self.columns[number] &= ~(1 << column)
                self.of_row[number] = self.of_column[column] = -1
        if not any(map(any, (self.left[0],))):  # all rows have one sum
            self.threshold = 0
        return target, weight

    def _match(self, row: int) -> bool:
        """Match a free row by an augmenting path, breadth first; return whether there is one."""
        seen, parent, front = 0, dict[int, int](), [row]
        for at in front:
            new = self.columns[at] & ~seen
            seen |= new
            while new:
                bit = new & -new
                new ^= bit
                column = bit.bit_length() - 1
                parent[column] = at
                if self.of_column[column] < 0:
                    self._augment(column, parent)
                    return True
                front.append(self.of_column[column])
        return False

    def _augment(self, column: int, parent: dict[int, int]) -> None:
        while column >= 0:
            row = parent[column]
            before = self.of_row[row]
            self.of_row[row], self.of_column[column] = column, row
            column = before
