"""Lists of different lengths in one column: every function against plain Python, narrow columns and empty ones too."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT

from collc.ir.arrays import distinct_pairs
from collc.ir.ragged import (
    first_of_group,
    greatest,
    group_starts,
    inverse,
    last_true,
    next_true,
    nth,
    nth_in_group,
    owners,
    ranges,
    starts,
    stretches,
)


def columns(max_size: int = 8, most: int = 255) -> st.SearchStrategy[Any]:
    """Whole numbers as a list, or as a column of a type that sums of them may leave."""
    numbers = st.lists(st.integers(0, most) | st.integers(0, 3), max_size=max_size)
    kinds = st.sampled_from([np.uint8, np.uint16, np.int16, np.int64])
    return numbers | st.builds(lambda listed, kind: np.array(listed, dtype=kind), numbers, kinds)


def ascending(most: int = 255) -> st.SearchStrategy[np.ndarray]:
    kinds = st.sampled_from([np.uint8, np.uint16, np.int64])
    numbers = st.lists(st.integers(0, most) | st.integers(0, 3), max_size=12).map(sorted)
    return st.builds(lambda listed, kind: np.array(listed, dtype=kind), numbers, kinds)


def same(found: np.ndarray, expected: list[int]) -> None:
    assert found.dtype == np.int64
    assert found.tolist() == expected


@given(columns())
def test_starts_owners_and_numbers_of_entries(counts: Any) -> None:
    sizes = [int(n) for n in counts]
    same(starts(counts), [sum(sizes[:i]) for i in range(len(sizes) + 1)])
    same(owners(counts), [i for i, n in enumerate(sizes) for _ in range(n)])
    same(nth(counts), [k for n in sizes for k in range(n)])


@given(columns(), columns())
def test_ranges(first: Any, counts: Any) -> None:
    size = min(len(first), len(counts))
    first, counts = first[:size], counts[:size]
    pairs = [(int(a), int(n)) for a, n in zip(first, counts, strict=True)]
    same(ranges(first, counts), [a + k for a, n in pairs for k in range(n)])


@given(ascending(), st.integers(0, 300))
def test_groups(groups: np.ndarray, number: int) -> None:
    listed = groups.tolist()
    same(group_starts(groups, number), [sum(g < i for g in listed) for i in range(number + 1)])
    same(nth_in_group(groups), [i - listed.index(g) for i, g in enumerate(listed)])
    assert first_of_group(groups).tolist() == [i == listed.index(g) for i, g in enumerate(listed)]


@given(st.integers(0, 300).flatmap(lambda n: st.permutations(range(n))), st.booleans())
def test_inverse(order: list[int], narrow: bool) -> None:
    column = np.array(order, dtype=np.uint16 if narrow else np.int64)
    same(inverse(column), [order.index(i) for i in range(len(order))])


@given(st.lists(st.booleans(), max_size=20))
def test_stretches(mask: list[bool]) -> None:
    found = stretches(np.array(mask, dtype=bool))
    inside = [i for start, stop in found for i in range(start, stop)]
    assert inside == [i for i, chosen in enumerate(mask) if chosen]
    assert all(start < stop for start, stop in found)
    assert all(stop < start for (_, stop), (start, _) in pairwise(found))


@given(st.lists(st.booleans(), max_size=20))
def test_the_last_and_the_next_true_entry(mask: list[bool]) -> None:
    true = [i for i, chosen in enumerate(mask) if chosen]
    column = np.array(mask, dtype=bool)
    same(last_true(column), [max([k for k in true if k <= i], default=-1) for i in range(len(mask))])
    same(next_true(column), [min([k for k in true if k >= i], default=len(mask)) for i in range(len(mask))])


@given(st.lists(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), min_size=1, max_size=5), min_size=1))
def test_the_greatest_of_lists_of_rows(lists: list[list[tuple[int, int]]]) -> None:
    rows, size = np.array([row for one in lists for row in one]), np.array([len(one) for one in lists])
    found = greatest(rows, starts(size)[:-1], size)
    assert found.tolist() == [[max(column) for column in zip(*one, strict=True)] for one in lists]


@given(columns(12), columns(12))
def test_distinct_pairs(first: Any, second: Any) -> None:
    size = min(len(first), len(second))
    one, two = (np.array(column[:size], dtype=getattr(column, "dtype", np.int64)) for column in (first, second))
    found = distinct_pairs(one, two)
    assert all(column.dtype == np.int64 for column in found)
    pairs = {*zip(one.tolist(), two.tolist(), strict=True)}
    assert [*zip(*(column.tolist() for column in found), strict=True)] == sorted(pairs)


# ---- one home

#: how the functions above are written by hand
BY_HAND = re.compile(
    r"np\.repeat\(np\.arange\(len\((?P<counts>\w+)\)\), (?P=counts)\)"  # owners
    r"|np\.repeat\([^()]*np\.cumsum\(|cumsum\((?P<sizes>\w+)\) [-+] (?P=sizes)\b"  # ranges, starts
    r"|\[\[?0\]?, ?np\.cumsum\(|np\.append\(0, np\.cumsum|np\.cumsum\(\[0, \*|np\.r_\[0, np\.cumsum"  # starts
    r"|np\.searchsorted\([^,]*, np\.arange\([^)]* \+ 1\)\)"  # group_starts
    r"|np\.arange\(len\(\w+\)\) - np\.searchsorted\("  # nth_in_group
    r"|np\.argsort\(np\.argsort\("  # inverse
)
HOME = "ragged.py"


def by_hand(source: str) -> list[str]:
    return [line.strip() for line in source.splitlines() if BY_HAND.search(line)]


@pytest.mark.parametrize("room", ["ir", "passes", "backends", "frontends"])
def test_nothing_is_written_by_hand_again(room: str) -> None:
    files = [path for path in (ROOT / room).rglob("*.py") if path.name != HOME]
    found = {str(path.relative_to(ROOT)): lines for path in files if (lines := by_hand(path.read_text("utf-8")))}
    assert found == {}


def test_what_is_written_by_hand_is_seen() -> None:
    planted = [
        "row = np.repeat(np.arange(len(counts)), counts)",
        "nth = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)",
        "start = np.concatenate([[0], np.cumsum(counts)])",
        "before = np.cumsum(size) - size",
        "start = np.searchsorted(groups, np.arange(number + 1))",
        "number = np.arange(len(group)) - np.searchsorted(group, group)",
        "place = np.argsort(np.argsort(order))",
    ]
    assert by_hand("\n".join(["import numpy as np", *planted])) == planted
