"""Linear programs in whole numbers: equations by p-adic lifting, vertices of HiGHS, the simplex method."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.passes.synthesis.forest.exact_lp import LinearProgram, Vertex, solve_exactly


def program(seed: int, columns: int = 6, rows: int = 8) -> LinearProgram:
    """A bounded program with equations, odd numbers and ties."""
    chance = random.Random(seed)
    lp = LinearProgram([chance.randrange(4) for _ in range(columns)], unit=7)
    lp.add(np.ones(columns), chance.choice((30, 10**6 + 3)))
    for _ in range(rows):
        lp.add(np.array([chance.randrange(-3, 5) for _ in range(columns)]), chance.choice((0, 0, 1, 17, 10**5)))
    lp.add(np.array([chance.randrange(-2, 3) for _ in range(columns)]), 0, equal=True)
    return lp


def worth(lp: LinearProgram, found: Vertex) -> Fraction:
    return sum((c * x for c, x in zip(lp.objective, found.values, strict=True)), Fraction(0))


@given(st.integers(0, 10**6))
@settings(max_examples=examples(40), deadline=None)
def test_the_solvers_vertex_and_the_simplex_method_agree(seed: int) -> None:
    lp = program(seed)
    found, slow = lp.exact(), lp.by_simplex()
    assert found is not None and lp.is_optimal(found) and lp.is_optimal(slow)
    assert worth(lp, found) == worth(lp, slow)


@given(st.integers(0, 10**6))
@settings(max_examples=examples(20), deadline=None)
def test_bases_are_solved_without_guesses(seed: int) -> None:
    lp = program(seed)
    lp.approximate()
    found = lp._vertex()
    assert found is not None and worth(lp, found) == worth(lp, lp.by_simplex())


def test_a_solver_that_is_wrong_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    lp = program(3)
    right = lp.exact()
    monkeypatch.setattr(LinearProgram, "_guess", lambda self: None)
    monkeypatch.setattr(LinearProgram, "_vertex", lambda self: self._at([0], [0]))
    found = lp.exact()
    assert right is not None and found is not None and worth(lp, found) == worth(lp, right)
    lp.add(np.ones(6), 5, equal=True)
    assert lp.exact() is None


def test_values_and_prices_are_both_checked() -> None:
    lp = LinearProgram([1, 1])
    lp.add(np.array([2, 1]), 3)
    lp.add(np.array([1, 3]), 4)
    good = Vertex((Fraction(1), Fraction(1)), (Fraction(2, 5), Fraction(1, 5)))
    assert lp.exact() == good
    for values, prices in (
        ((1, Fraction(99, 100)), good.prices), ((1, Fraction(101, 100)), good.prices), ((-1, 5), good.prices),
        (good.values, (Fraction(3, 5), Fraction(1, 5))), (good.values, (Fraction(2, 5), 0)),
        (good.values, (Fraction(3, 5), Fraction(-1, 5))),
    ):  # fmt: skip
        assert not lp.is_optimal(Vertex(tuple(map(Fraction, values)), tuple(map(Fraction, prices))))


@given(st.integers(0, 10**6), st.integers(1, 9))
@settings(max_examples=examples(60), deadline=None)
def test_equations_are_solved_exactly(seed: int, size: int) -> None:
    chance = random.Random(seed)
    square = np.array([[chance.randrange(-9, 10) for _ in range(size)] for _ in range(size)])
    values = [chance.randrange(-(10**12), 10**12) for _ in range(size)]
    right = [int(n) for n in square.astype(object) @ np.array(values, dtype=object)]
    found = solve_exactly(square, right)
    if found is None:
        assert round(np.linalg.det(square)) == 0
    else:
        assert [sum(int(a) * x for a, x in zip(row, found, strict=True)) for row in square] == right


def test_equations_with_long_fractions_and_without_a_solution() -> None:
    square = np.array([[3 if i == j else 1 if j == i + 1 else 0 for j in range(60)] for i in range(60)])
    found = solve_exactly(square, [0] * 59 + [1])
    assert found is not None and found[0] == Fraction(-1, 3**60)
    assert solve_exactly(np.array([[1, 2], [2, 4]]), [1, 2]) is None
    assert solve_exactly(np.zeros((0, 0), dtype=np.int64), []) == []


def test_a_program_without_bounds_ends() -> None:
    lp = LinearProgram([1, 0])
    lp.add(np.array([0, 1]), 3)
    with pytest.raises(ValueError, match="unbounded"):
        lp.by_simplex()
