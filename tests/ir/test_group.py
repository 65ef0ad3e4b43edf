"""Groups: the axioms, their text, and the counts of elements of each order that tell them apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.ir.group import Group, Metacyclic, Mirrored, Semidirect, Translations, Twisted, build_group, parse_group

EXPRESSIONS = [
    "cyclic(1)", "cyclic(12)", "abelian(3, 3, 2)", "dihedral(5)", "dicyclic(2)", "metacyclic(7, 3, 2)",
    "metacyclic(16, 4, 5, 4)", "mirrored(2)", "mirrored(10)", "mirrored(4, 2, 6)",
    "twisted(2, 4)", "twisted(6, 3)", "twisted(3, 3, 6)", "twisted(4, 8, 8)", "twisted(4, 2, 2, 4)",
    "semidirect(abelian(2, 2), 3, 0, 1, 1, 1)", "semidirect(abelian(4, 2), 2, 1, 2, 0, 1)",
    "symmetric(1)", "symmetric(4)", "alternating(2)", "alternating(4)", "alternating(5)",
    "direct(symmetric(3), cyclic(4), dihedral(3))", "psl(2, 2)", "psl(2, 4)", "psl(2, 7)", "psl(2, 8)", "psl(2, 9)",
    "pgl(2, 3)", "pgl(2, 5)", "pgl(2, 9)", "sl(2, 3)", "sl(2, 5)", "direct(psl(2, 4), cyclic(3))",
]  # fmt: skip


def orders(group: Group) -> list[int]:
    """Return how many elements have order 1, 2, 3, ..."""
    power, found = np.arange(group.order), np.zeros(group.order, dtype=np.int64)
    for exponent in range(1, group.order + 1):
        found[(power == 0) & (found == 0)] = exponent
        power = group.multiply(power, np.arange(group.order))
    return np.bincount(found)[1:].tolist()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_axioms(expression: str) -> None:
    group = parse_group(expression)
    x = np.arange(group.order)
    table = group.multiply(x[:, None], x)
    assert np.array_equal(table[0], x) and np.array_equal(table[:, 0], x)
    assert (np.sort(table, axis=0) == x[:, None]).all() and (np.sort(table, axis=1) == x).all()
    assert (group.multiply(x, group.inverse(x)) == 0).all() and (group.multiply(group.inverse(x), x) == 0).all()
    a, b, c = np.random.default_rng(1).integers(group.order, size=(3, 2000))
    assert np.array_equal(group.multiply(group.multiply(a, b), c), group.multiply(a, group.multiply(b, c)))
    assert parse_group(group.expression) == group


def test_which_group_it_is() -> None:
    assert orders(build_group("dicyclic", [2])) == [1, 1, 0, 6]  # the quaternions
    assert orders(build_group("dihedral", [4])) == [1, 5, 0, 2]
    alternating = build_group("alternating", [4])
    assert orders(alternating) == orders(Semidirect((2, 2), 3, ((0, 1), (1, 1)))) == [1, 3, 8]
    assert orders(build_group("symmetric", [5])) == [1, 25, 20, 30, 24, 20]
    assert orders(Translations((2, 6))) == [1, 3, 2, 0, 0, 6]


def test_mirrored_vectors_are_dihedral_in_each_coordinate() -> None:
    assert orders(Mirrored((8,))) == orders(build_group("dihedral", [4]))
    assert orders(Mirrored((6, 4))) == orders(parse_group("direct(dihedral(3), dihedral(2))"))
    x = np.arange(8)
    assert Mirrored((8,)).multiply(2, x).tolist() == ((x + 2) % 8).tolist()
    assert Mirrored((8,)).multiply(3, x).tolist() == ((3 - x) % 8).tolist()
    for sizes in ((3,), (4, 5), (0,)):
        with pytest.raises(ValueError, match="needed even ones"):
            Mirrored(sizes)


def test_twisted_vectors_add_with_carries() -> None:
    assert orders(build_group("twisted", [2, 4])) == orders(Translations((2, 4)))
    assert orders(build_group("twisted", [3, 6])) == orders(Translations((3, 6)))
    assert orders(build_group("twisted", [2, 2, 4])) == orders(Translations((2, 2, 4)))
    assert Twisted((3, 6)).multiply(12, 6) == 3  # 2 + 1 leaves the first coordinate: 3 in the second
    for sizes in ((4,), (3, 3), (1, 2), (4, 8, 16)):
        with pytest.raises(ValueError, match="needed k and 2k"):
            Twisted(sizes)


@given(st.integers(1, 30), st.integers(1, 8), st.integers(-40, 40), st.integers(0, 40))
def test_metacyclic_parameters_make_a_group_or_an_error(m: int, k: int, r: int, s: int) -> None:
    if pow(r, k, m) != 1 % m or s * (r - 1) % m:
        with pytest.raises(ValueError, match="r\\^k = 1"):
            Metacyclic(m, k, r, s)
        return
    group = Metacyclic(m, k, r, s)
    x = np.arange(group.order)
    assert (group.multiply(x, group.inverse(x)) == 0).all()
    a, b, c = np.random.default_rng(m).integers(group.order, size=(3, 300))
    assert np.array_equal(group.multiply(group.multiply(a, b), c), group.multiply(a, group.multiply(b, c)))
    assert parse_group(group.expression).order == m * k


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needed a group"), ("monster(1)", "needed a group"), ("cyclic", "needed a group"),
        ("cyclic()", "needed a group"), ("cyclic(0)", "at least 1"), ("cyclic(3", "needed `"),
        ("cyclic(3) 4", "not a group"), ("cyclic(3, 4)", r"cyclic\(n\)"), ("3", "not a group"),
        ("cyclic(9999999)", "up to"), ("cyclic(99999999999)", "needed"), ("metacyclic(7, 3, 3)", "r\\^k"),
        ("symmetric(10)", "1 to 9"), ("semidirect(cyclic(2), 2)", "matrix entries"), ("direct(3)", "direct"),
        ("semidirect(dihedral(3), 2, 1)", "abelian"), ("semidirect(abelian(2, 2), 2, 0, 1, 1, 1)", "identity"),
        ("psl(2, 6)", "prime power"), ("pgl(2, 67)", "at most 64"), ("sl(3, 2)", "3 rows"), ("psl(7)", r"psl\(2, q\)"),
        ("psl(2, 1)", "prime power"), ("semidirect(abelian(4, 2), 2, 1, 1, 0, 1)", "moduli"),
        ("direct(" * 30, "needed"), ("cyclic(#)", "not a"),
    ],
)  # fmt: skip
def test_what_is_no_group(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_group(text)
