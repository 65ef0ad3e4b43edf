"""Incidence graphs of finite geometries: projective and affine planes, generalized quadrangles and hexagons.

Each function returns edges (point, line), two columns; points are numbered from 0, lines after them. Geometries have
order (q, q): q + 1 points on a line and q + 1 lines through a point.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array

from ._fields import Field, field, points

__all__ = ["biaffine_plane", "hexagon", "projective_plane", "quadrangle"]


def projective_plane(q: int) -> Array:
    """Return the incidence of PG(2,q): a point and a line are vectors whose dot product is 0."""
    at = points(q, 2)
    return _incident(field(q).dot(at[:, None], at) == 0)


def biaffine_plane(q: int) -> Array:
    """Return the incidence of AG(2,q) without its vertical lines: point (x, y) lies on line (m, b) if y = m x + b."""
    numbers = field(q)
    x, y = np.divmod(np.arange(q * q), q)
    value = numbers.plus[numbers.times[x[:, None], x], y]  # the line's numbers are (m, b) in the same order
    return _incident(value == y[:, None])


def quadrangle(q: int) -> Array:
    """Return the incidence of W(q): points of PG(3,q), and lines that a symplectic form vanishes on.

    The form is x0 y1 - x1 y0 + x2 y3 - x3 y2 (Payne and Thas, Finite Generalized Quadrangles, 3.1.1).
    """
    numbers, at = field(q), points(q, 3)
    turned = np.stack([at[:, 1], numbers.minus[at[:, 0]], at[:, 3], numbers.minus[at[:, 2]]], axis=1)
    return _lines(q, at, numbers.dot(at[:, None], turned) == 0)


#: pairs of Grassmann coordinates that are equal on the lines of the hexagon
_TITS = (((1, 2), (3, 4)), ((5, 4), (3, 2)), ((2, 0), (3, 5)), ((6, 5), (3, 0)), ((0, 1), (3, 6)), ((4, 6), (3, 1)))


def hexagon(q: int) -> Array:
    """Return the incidence of the split Cayley hexagon H(q), for q of at most 3.

    Its points are those of the quadric x0 x4 + x1 x5 + x2 x6 = x3^2 of PG(6,q), its lines those of the quadric whose
    Grassmann coordinates satisfy Tits' six equations (Van Maldeghem, Generalized Polygons, 2.4.13).
    """
    numbers, at = field(q), points(q, 6)
    form = numbers.dot(at[:, :3], at[:, 4:])
    at = at[form == numbers.times[at[:, 3], at[:, 3]]]
    # x and y are on a line of the quadric if x0 y4 + x4 y0 + x1 y5 + .. = 2 x3 y3
    paired = numbers.dot(at[:, None], at[:, [4, 5, 6, 3, 0, 1, 2]])
    middle = numbers.times[at[:, 3, None], at[:, 3]]
    joined = paired == numbers.plus[numbers.plus[middle, middle], middle]  # paired has x3 y3 once
    for left, right in _TITS:
        joined &= _grassmann(numbers, at, *left) == _grassmann(numbers, at, *right)
    return _lines(q, at, joined)


def _grassmann(numbers: Field, at: Array, i: int, j: int) -> Array:
    """Return x_i y_j - x_j y_i for all pairs of points x, y."""
    one, two = numbers.times[at[:, i, None], at[:, j]], numbers.times[at[:, j, None], at[:, i]]
    return numbers.plus[one, numbers.minus[two]]


def _incident(table: Array) -> Array:
    point, line = np.nonzero(table)
    return np.stack([point, line + len(table)], axis=1)


def _lines(q: int, at: Array, joined: Array) -> Array:
    """Return the incidence of points and the lines through pairs of joined points, ordered by their first two points.

    The line through x and y has the points y and x + c y, for every c.
    """
    numbers, weights = field(q), q ** np.arange(at.shape[1] - 1, -1, -1)
    number = {code: i for i, code in enumerate((at @ weights).tolist())}
    lines = []
    for one, two in zip(*np.nonzero(np.triu(joined, 1)), strict=True):
        combined = numbers.plus[at[one], numbers.times[np.arange(q)[:, None], at[two]]]
        on_it = sorted([number[code] for code in (_normal(numbers, combined) @ weights).tolist()] + [int(two)])
        if on_it[:2] == [one, two]:
            lines.append(on_it)
    rows = np.array(lines)
    return np.stack([rows.ravel(), np.repeat(np.arange(len(rows)) + len(at), q + 1)], axis=1)


def _normal(numbers: Field, vectors: Array) -> Array:
    """Scale vectors so that the first entry that is not 0 is 1."""
    first = np.take_along_axis(vectors, np.argmax(vectors != 0, axis=1)[:, None], axis=1)
    normal: Array = numbers.times[np.argmax(numbers.times[first[:, 0]] == 1, axis=1)[:, None], vectors]
    return normal
