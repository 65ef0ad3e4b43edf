"""Groups as words of generators: written, read, and tables that are no group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.backends.mpi_c import word_tables
from collc.backends.mpi_c.cursor import Unreadable
from collc.backends.mpi_c.word_tables import group_differs, word_group
from collc.backends.mpi_c.words import shape_of, words_of
from collc.ir.group import Metacyclic, Translations, parse_group

NAMES = (
    "cyclic(1)", "cyclic(12)", "abelian(3, 3, 2)", "dihedral(5)", "dihedral(64)", "dicyclic(8)", "metacyclic(7, 3, 2)",
    "metacyclic(16, 4, 5, 4)", "semidirect(abelian(2, 2), 3, 0, 1, 1, 1)", "symmetric(4)", "alternating(5)",
    "direct(symmetric(3), cyclic(4), dihedral(3))", "psl(2, 7)", "pgl(2, 4)", "sl(2, 3)",
)  # fmt: skip


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("most", [0, 1 << 22])
def test_what_is_read_has_the_products_of_the_group(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_tables, "_MOST_PRODUCTS", most)
    group = parse_group(name)
    words = words_of(group)
    found, x = word_group(words.first, words.rest, words.times), np.arange(group.order)
    assert np.array_equal(found.multiply(x[:, None], x[None, :]), group.multiply(x[:, None], x))
    assert np.array_equal(found.multiply(x, x[::-1]), group.multiply(x, x[::-1]))
    assert np.array_equal(found.inverse(x), group.inverse(x))
    assert not group_differs(found, group)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["dihedral(512)", "symmetric(6)", "metacyclic(343, 3, 18)", "alternating(6)"])
def test_words_are_short(name: str) -> None:
    group = parse_group(name)
    words, left, length = words_of(group), np.arange(group.order), 0
    while left.any():
        left, length = words.rest[left], length + 1
    assert length <= len(words.times) // group.order <= 1.3 * np.log2(group.order)


@pytest.mark.quick
def test_groups_that_are_vectors_in_other_words() -> None:
    for name in ("metacyclic(6, 4, 1)", "direct(cyclic(3), metacyclic(5, 2, 1))", "direct(abelian(2, 3), cyclic(4))"):
        group = parse_group(name)
        shape, x = shape_of(group), np.arange(group.order)
        assert shape is not None
        assert np.array_equal(Translations(shape).multiply(x[:, None], x), group.multiply(x[:, None], x))
        assert not group_differs(Translations(shape), group)
    assert [shape_of(parse_group(name)) for name in ("dihedral(4)", "metacyclic(4, 2, 1, 1)")] == [None, None]
    assert group_differs(Translations((4, 2)), Metacyclic(4, 2, -1))
    assert group_differs(Translations((4, 2)), Translations((4, 3)))


@given(st.data())
def test_a_changed_number_is_no_group(data: st.DataObject) -> None:
    words = words_of(parse_group(data.draw(st.sampled_from(("dihedral(5)", "symmetric(3)", "dicyclic(3)")))))
    tables = [words.first.copy(), words.rest.copy(), words.times.copy()]
    table = tables[data.draw(st.integers(0, 2))]
    at = data.draw(st.integers(0, len(table) - 1))
    table[at] = data.draw(st.integers(-2, len(words.first) + 1).filter(lambda value: value != table[at]))
    with pytest.raises(Unreadable):
        word_group(*tables)


#: a latin square with an identity that is no group
_LOOP = ((0, 1, 2, 3, 4), (1, 0, 3, 4, 2), (2, 4, 0, 1, 3), (3, 2, 4, 0, 1), (4, 3, 1, 2, 0))


@pytest.mark.parametrize(
    ("first", "rest", "times", "message"),
    [
        ((0, 0, 1, 2, 3), (0, 0, 0, 0, 0), tuple(zip(*_LOOP, strict=True))[1:], "are no group"),
        ((0, 0, 0), (0, 0, 1), ((1, 2, 0), (1, 2)), "that `generator_times` does not have"),
        ((0, 0, 1), (0, 0, 1), ((1, 2, 0),), "that `generator_times` does not have"),
        ((0, 0, 0), (0, 0, 1), ((1, 2, 2),), "does not permute the elements"),
        ((0, 0, 0), (0, 2, 1), ((1, 2, 0),), "does not end with the identity"),
        ((0, 0, 0), (1, 0, 1), ((1, 2, 0),), "does not end with the identity"),
        ((0, 0, 0), (0, 0, 0), ((1, 2, 0),), "another element than its own"),
    ],
)  # fmt: skip
def test_what_is_no_group(
    first: tuple[int, ...], rest: tuple[int, ...], times: tuple[tuple[int, ...], ...], message: str
) -> None:
    flat = np.array([value for row in times for value in row])
    with pytest.raises(Unreadable, match=message):
        word_group(np.array(first), np.array(rest), flat)
