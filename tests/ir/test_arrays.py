"""Sorted orders and members of columns, against numpy's own functions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.ir.arrays import are_among, distinct, distinct_pairs, last_at_most, lexsort, numbered

KINDS = ("bool", "uint8", "int8", "uint32", "int64", "uint64", "float64")
SMALL, LARGE = st.integers(0, 3), st.integers(-(2**62), 2**62)


@st.composite
def keys(draw: st.DrawFn) -> list[np.ndarray]:
    """Return columns of one length, of all kinds; 64-bit ones may be too wide to be packed."""
    number, values = draw(st.integers(0, 12)), draw(st.sampled_from([SMALL, LARGE]))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    drawn = [draw(st.lists(values, min_size=number, max_size=number)) for _ in kinds]
    return [np.array(column, dtype=np.int64).astype(kind) for column, kind in zip(drawn, kinds, strict=True)]


@given(keys())
def test_an_order_by_columns_is_that_of_numpy(columns: list[np.ndarray]) -> None:
    assert lexsort(columns).tolist() == np.lexsort(columns).tolist()


@pytest.mark.parametrize("most", [2**31, 2**40, 2**62, 2**63 - 1])
def test_wide_columns_are_not_packed_beyond_64_bits(most: int) -> None:
    columns = [np.array([most, 0, most, -most]), np.array([-most, most, -most, 0])]
    assert lexsort(columns).tolist() == np.lexsort(columns).tolist()


@given(st.integers(1, 300), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_long_columns_of_any_width_are_ordered_as_by_numpy(number: int, width: int, seed: int) -> None:
    """Some fit 64 bits together, some two by two, some not."""
    random = np.random.default_rng(seed)
    columns = [random.integers(-(2 ** int(bits)), 2 ** int(bits), number) for bits in random.integers(1, 60, width)]
    assert lexsort(columns).tolist() == np.lexsort(columns).tolist()


@given(st.lists(st.integers(-3, 9) | st.just(2**40)), st.lists(st.integers(-3, 9) | st.sampled_from([0, 2**40])))
def test_members_are_those_of_numpy(values: list[int], others: list[int]) -> None:
    columns = np.array(values, dtype=np.int64), np.array(others, dtype=np.int64)
    assert are_among(*columns).tolist() == np.isin(*columns).tolist()


@given(st.lists(st.integers(-9, 9) | st.sampled_from([-(2**40), 2**40])))
def test_distinct_values_and_their_numbers_are_those_of_numpy(values: list[int]) -> None:
    column = np.array(values, dtype=np.int64)
    found, number = numbered(column)
    expected, inverse = np.unique(column, return_inverse=True)
    assert found.tolist() == expected.tolist() and number.tolist() == inverse.tolist()


NATURAL = st.integers(0, 9) | st.integers(0, 1 << 62)


@given(st.lists(NATURAL, max_size=12), st.lists(NATURAL, max_size=12))
def test_the_last_entry_at_most_is_that_of_a_search(ordered: list[int], values: list[int]) -> None:
    column, asked = np.sort(np.array(ordered, dtype=np.int64)), np.array(values, dtype=np.int64)
    assert last_at_most(column, asked).tolist() == (np.searchsorted(column, asked, side="right") - 1).tolist()


@pytest.mark.parametrize("most", [1, 300, (1 << 31) - 1, (1 << 31) + 5])
def test_pairs_of_wide_numbers_are_distinct(most: int) -> None:
    first, second = np.array([most, 0, most, most]), np.array([0, most, 0, most])
    assert [column.tolist() for column in distinct_pairs(first, second)] == [[0, most, most], [most, 0, most]]


def test_values_of_a_table_are_distinct() -> None:
    assert distinct(np.array([[3, 1, 3], [2, 1, 0]])).tolist() == [0, 1, 2, 3]
