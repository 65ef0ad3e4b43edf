"""Cycles through all ranks of a torus: one always, two without a common link in two dimensions where sizes allow.

Two cycles of an r x c torus exist by this construction where r = c k and gcd(r, c - 1) = 1 (Bae and Bose, Edge disjoint
Hamiltonian cycles in k-ary n-cubes and hypercubes, 2003). The first goes along row after row, each shifted by one;
the second takes all links that the first leaves.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from collc.ir.arrays import Array

__all__ = ["one_cycle", "two_cycles", "two_exist"]


def two_exist(rows: int, columns: int) -> bool:
    """Return whether both cycles of :func:`two_cycles` exist with rows and columns as given."""
    return columns > 1 and rows % columns == 0 and gcd(rows, columns - 1) == 1


def two_cycles(shape: tuple[int, ...]) -> list[Array] | None:
    """Return two cycles through all ranks of a 2-D torus that share no link, or None if the sizes do not allow it.

    >>> [cycle.tolist() for cycle in two_cycles((2, 2))]
    [[0, 1, 3, 2], [0, 2, 3, 1]]
    """
    if len(shape) != 2:
        return None
    rows, columns = shape
    if two_exist(rows, columns):
        return [i * columns + j for i, j in _disjoint_cycles(rows, columns)]
    if two_exist(columns, rows):
        return [i * columns + j for j, i in _disjoint_cycles(columns, rows)]
    return None


def _disjoint_cycles(rows: int, columns: int) -> list[tuple[Array, Array]]:
    at = np.arange(rows * columns)
    first = (at // columns, (at - at // columns) % columns)
    i, j, visited = 0, 0, []
    for _ in range(rows * columns):
        visited.append((i, j))
        if (i + j + 1) % columns:  # the first cycle goes down in column -i - 1 of row i only
            i = (i + 1) % rows
        else:
            j = (j + 1) % columns
    second = np.array(visited)
    return [first, (second[:, 0], second[:, 1])]


def one_cycle(shape: tuple[int, ...], flipped: bool = False) -> Array:
    """Return a cycle through all ranks of a torus, each a neighbour of the one before.

    It uses wrap-around links only if all sizes are odd. Then ``flipped`` chooses where: in a cycle through all but the
    last dimension, or in the last.

    >>> one_cycle((2, 3)).tolist()
    [0, 1, 2, 5, 4, 3]
    """
    cycle = np.arange(shape[0])
    for size in shape[1:]:
        ranks = cycle[:, None] * size + np.arange(size)[None, :]
        upright = len(cycle) % 2 == 0 or (size % 2 == 1 and flipped)
        cycle = _snake(ranks if upright else ranks.T)
    return cycle


def _snake(ranks: Array) -> Array:
    """Return the cycle back and forth along the rows of a table; the first column leads back to the start.

    With an odd number of rows the last one ends far from the first column: rows must have wrap-around links.
    """
    inner = ranks[:, 1:].copy()
    inner[1::2] = inner[1::2, ::-1]
    return np.concatenate([ranks[0, :1], inner.ravel(), ranks[:0:-1, 0]])
