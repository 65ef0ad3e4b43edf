"""Linear programs in whole numbers, solved exactly: HiGHS finds the basis, integers solve it.

The basis that floating point finds is solved again by p-adic lifting (Dixon), and both the values and the prices are
checked against every row and column in exact arithmetic. If that fails, the simplex method in fractions decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import isqrt, lcm

import attrs
import numpy as np

from collc.ir.arrays import Array

from ...solver import run

__all__ = ["LinearProgram", "Vertex", "solve_exactly", "whole"]

#: primes below 2^21: the products of a row of a million digits fit into 64 bits
_PRIMES = (2097143, 2097133, 2097131, 2097097, 2097091)
_DENOMINATOR = 10_000  # of fractions that are guessed
_LARGE = 12  # bits of numbers that the solver gets unscaled


@attrs.frozen
class Vertex:
    """An optimum: the value of every column, the price of every row. Both prove each other's optimality."""

    values: tuple[Fraction, ...]
    prices: tuple[Fraction, ...]


class LinearProgram:
    """Maximize ``objective`` over columns of at least 0, whose rows are at most (or equal to) whole numbers.

    All right-hand sides are at least 0; rows may be added between solutions. ``unit`` is the size of usual values: the
    solver counts in it.
    """

    def __init__(self, objective: Sequence[int], unit: int = 1) -> None:
        import highspy

        self.objective, self.unit = list(objective), unit
        self.rows: list[Array] = []
        self.most: list[int] = []
        self.equal: list[bool] = []
        self._infinity = highspy.kHighsInf
        self._solver = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            self._solver.setOptionValue(option, value)
        columns = len(self.objective)
        self._solver.addVars(columns, np.zeros(columns), np.full(columns, highspy.kHighsInf))
        self._solver.changeColsCost(
            columns, np.arange(columns, dtype=np.int32), np.array([-float(c) for c in self.objective])
        )

    def add(self, row: Array, most: int, equal: bool = False) -> None:
        """Add a row: its dot product with the columns is at most, or equal to, ``most``."""
        self.rows.append(row.astype(np.int64))
        self.most.append(most)
        self.equal.append(equal)
        used, scale = np.flatnonzero(row), _scale(row)
        upper = most / (self.unit * scale)
        lower = upper if equal else -self._infinity
        self._solver.addRow(lower, upper, len(used), used.astype(np.int32), row[used] / scale)

    def approximate(self) -> Array:
        """Return the values of an optimum, in floating point."""
        run(self._solver, f"linear program of {len(self.rows)} rows")
        values: Array = np.maximum(np.array(self._solver.getSolution().col_value), 0.0) * self.unit
        return values

    def exact(self) -> Vertex | None:
        """Return an optimum that is proved: the solver's vertex if it is one, else that of the simplex method.

        None only if some row is equal to another number than 0: the simplex method starts at 0.
        """
        for tolerance in (None, 1e-9, 1e-10):
            if tolerance is not None:
                self._solver.setOptionValue("primal_feasibility_tolerance", tolerance)
                self._solver.setOptionValue("dual_feasibility_tolerance", tolerance)
            self.approximate()
            found = self._guess() or self._vertex()
            if found is not None:
                return found
        starts = not any(equal and most for equal, most in zip(self.equal, self.most, strict=True))
        return self.by_simplex() if starts else None

    def _guess(self) -> Vertex | None:
        """Return the fractions of small denominators next to the solver's values, or None if they are no optimum."""
        found = self._solver.getSolution()
        values = [Fraction(x).limit_denominator(_DENOMINATOR) * self.unit for x in found.col_value]
        scales = [_scale(row) for row in self.rows]
        prices = [
            -Fraction(y).limit_denominator(_DENOMINATOR) / scale
            for y, scale in zip(found.row_dual, scales, strict=True)
        ]
        guess = Vertex(tuple(values), tuple(prices))
        return guess if self.is_optimal(guess) else None

    def _vertex(self) -> Vertex | None:
        """Return the vertex of the solver's basis, or None if it is not an optimum."""
        import highspy

        basis, basic = self._solver.getBasis(), highspy.HighsBasisStatus.kBasic
        columns = [j for j, status in enumerate(basis.col_status) if status == basic]
        tight = [i for i, status in enumerate(basis.row_status) if status != basic]
        return self._at(columns, tight)

    def _at(self, columns: list[int], tight: list[int]) -> Vertex | None:
        """Return the vertex at which these rows are tight and the other columns are 0; None unless it is optimal."""
        if len(columns) != len(tight):
            return None
        square = np.array(self.rows)[np.ix_(tight, columns)] if tight else np.zeros((0, 0), dtype=np.int64)
        inside = solve_exactly(square, [self.most[i] for i in tight])
        prices = solve_exactly(square.T, [self.objective[j] for j in columns])
        if inside is None or prices is None:
            return None
        values = [Fraction(0)] * len(self.objective)
        for j, value in zip(columns, inside, strict=True):
            values[j] = value
        paid = [Fraction(0)] * len(self.rows)
        for i, price in zip(tight, prices, strict=True):
            paid[i] = price
        found = Vertex(tuple(values), tuple(paid))
        return found if self.is_optimal(found) else None

    def is_optimal(self, found: Vertex) -> bool:
        """Return whether values and prices keep all rows and columns, and are worth the same."""
        values, scale = whole(found.values)
        prices, per = whole(found.prices)
        if min(values, default=0) < 0 or any(p < 0 and not e for p, e in zip(prices, self.equal, strict=True)):
            return False
        rows = np.array(self.rows, dtype=np.int64).reshape(len(self.rows), len(self.objective))
        sums, worth = _product(rows, values), _product(rows.T, prices)
        for total, most, equal in zip(sums, self.most, self.equal, strict=True):
            if total > most * scale or (equal and total != most * scale):
                return False
        if any(w < c * per for w, c in zip(worth, self.objective, strict=True)):
            return False
        earned = sum(c * v for c, v in zip(self.objective, values, strict=True))
        return earned * per == sum(p * m for p, m in zip(prices, self.most, strict=True)) * scale

    def by_simplex(self) -> Vertex:
        """Return an optimum by the simplex method in fractions, with Bland's rule, from all columns at 0.

        Rows that are equal to something are equal to 0. Raises ValueError if the program is unbounded.
        """
        signs = [(i, sign) for i, equal in enumerate(self.equal) for sign in ((1, -1) if equal else (1,))]
        columns, height = len(self.objective), len(signs)
        table = [
            [Fraction(sign * int(a)) for a in self.rows[i]]
            + [Fraction(int(j == at)) for j in range(height)]
            + [Fraction(self.most[i])]
            for at, (i, sign) in enumerate(signs)
        ]
        last = [Fraction(-c) for c in self.objective] + [Fraction(0)] * (height + 1)
        basis = [columns + at for at in range(height)]
        while (enters := next((j for j, c in enumerate(last[:-1]) if c < 0), None)) is not None:
            ratios = [(row[-1] / row[enters], basis[at], at) for at, row in enumerate(table) if row[enters] > 0]
            if not ratios:
                raise ValueError("the linear program is unbounded")
            at = min(ratios)[2]
            pivot = table[at][enters]
            table[at] = [a / pivot for a in table[at]]
            for row in [*(row for other, row in enumerate(table) if other != at), last]:
                if factor := row[enters]:
                    row[:] = [a - factor * b for a, b in zip(row, table[at], strict=True)]
            basis[at] = enters
        values = [Fraction(0)] * columns
        for at, j in enumerate(basis):
            if j < columns:
                values[j] = table[at][-1]
        prices = [Fraction(0)] * len(self.rows)
        for (i, sign), price in zip(signs, last[columns:-1], strict=True):
            prices[i] += sign * price
        return Vertex(tuple(values), tuple(prices))


def _scale(row: Array) -> int:
    """Return a number by which the solver's row is divided: 1 unless its numbers are large."""
    return 1 << max(int(np.abs(row).max(initial=0)).bit_length() - _LARGE, 0)


def solve_exactly(square: Array, right: Sequence[int]) -> list[Fraction] | None:
    """Return the solution of a system of equations in whole numbers, or None if it has none or several.

    The matrix is inverted modulo a prime, the solution lifted to powers of the prime, and every guess of its fractions
    is checked in all equations.

    >>> import numpy as np
    >>> solve_exactly(np.array([[2, 1], [0, 3]]), [1, 1])
    [Fraction(1, 3), Fraction(1, 3)]
    """
    if not len(square):
        return []
    for prime in _PRIMES:
        inverse = _inverse(square, prime)
        if inverse is not None:
            return _lifted(square, inverse, prime, list(right))
    return None


def _lifted(square: Array, inverse: Array, prime: int, right: list[int]) -> list[Fraction] | None:
    size, rest = len(right), list(right)
    lifted, power, tried = [0] * size, 1, 4
    for digit in range(1, _most_digits(square, right, prime) + 1):
        part = inverse @ np.array([r % prime for r in rest], dtype=np.int64) % prime
        taken = _product(square, part.tolist())
        rest = [(r - t) // prime for r, t in zip(rest, taken, strict=True)]
        lifted = [x + power * d for x, d in zip(lifted, part.tolist(), strict=True)]
        power *= prime
        if digit >= tried or not any(rest):
            tried *= 2
            found = _fractions(lifted, power)
            if found is not None and _solves(square, found, right):
                return found
    found = _fractions(lifted, power)
    return found if found is not None and _solves(square, found, right) else None


def _most_digits(square: Array, right: Sequence[int], prime: int) -> int:
    """Return the digits that certainly suffice: by Hadamard, numerators and denominators are determinants."""
    most = max(int(np.abs(square).max(initial=1)), *(abs(r) for r in right), 1)
    bits = len(right) * (most.bit_length() + len(right).bit_length())
    return 2 * (bits + 2) // (prime.bit_length() - 1) + 2


def _solves(square: Array, values: Sequence[Fraction], right: Sequence[int]) -> bool:
    numerators, scale = whole(values)
    return _product(square, numerators) == [r * scale for r in right]


def _fractions(residues: Sequence[int], modulus: int) -> list[Fraction] | None:
    """Return fractions of small terms that are congruent to the residues, or None if there are none."""
    most, common, found = isqrt(modulus // 2), 1, list[Fraction]()
    for residue in residues:
        (old, new), (a, b) = (modulus, residue * common % modulus), (0, 1)
        while new > most:
            quotient = old // new
            old, new = new, old - quotient * new
            a, b = b, a - quotient * b
        if not b or abs(b) > most:
            return None
        value = Fraction(new, b) / common
        common = value.denominator if value.denominator % common == 0 else lcm(common, value.denominator)
        if common > most:
            return None
        found.append(value)
    return found


def _inverse(square: Array, prime: int) -> Array | None:
    """Return the inverse modulo a prime by Gauss and Jordan, or None if there is none."""
    size = len(square)
    table = np.concatenate([square % prime, np.eye(size, dtype=np.int64)], axis=1)
    for j in range(size):
        rows = np.flatnonzero(table[j:, j])
        if not len(rows):
            return None
        table[[j, j + rows[0]]] = table[[j + rows[0], j]]
        table[j] = table[j] * pow(int(table[j, j]), -1, prime) % prime
        others = np.flatnonzero(table[:, j])
        others = others[others != j]
        table[others] = (table[others] - table[others, j][:, None] * table[j]) % prime
    return table[:, size:]


def _product(matrix: Array, values: Sequence[int]) -> list[int]:
    """Return a product with whole numbers of any size."""
    if not values or not len(matrix):
        return [0] * len(matrix)
    largest = int(np.abs(matrix).max(initial=0)) * max(abs(v) for v in values) * len(values)
    kind = np.int64 if largest < 1 << 62 else object
    return [int(v) for v in (matrix.astype(kind) @ np.array(values, dtype=kind)).tolist()]


def whole(values: Iterable[Fraction]) -> tuple[list[int], int]:
    """Return the numerators over the least common denominator, and it."""
    values = list(values)
    common = lcm(*(value.denominator for value in values))
    return [value.numerator * (common // value.denominator) for value in values], common
