"""What `auto` compares with: exact piecewise affine times, and the least of several at every whole size."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.selection import times as module
from collc.selection.times import Times, least

NUMBERS = st.fractions(min_value=0, max_value=40, max_denominator=4)
STEPS = st.lists(
    st.tuples(st.integers(1, 3), st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=3)), max_size=3
)
MANY = st.lists(STEPS, min_size=1, max_size=5)


def tried(times: list[Times], low: int, high: int) -> list[tuple[int, int]]:
    """Where the winner changes, by trying every size."""
    found: list[tuple[int, int]] = []
    for size in range(low, high + 1):
        values = [one.at(size) for one in times]
        winner = values.index(min(values))
        if not found or found[-1][1] != winner:
            found.append((size, winner))
    return found


@given(STEPS, st.fractions(min_value=0, max_value=100, max_denominator=7))
def test_the_time_is_that_of_the_steps(steps, size):
    expected = sum((times * max(a + b * size for a, b in pairs) for times, pairs in steps), Fraction(0))
    found = Times.of_steps(steps)
    assert found.at(size) == expected
    assert found.start[0] == 0 and list(found.start) == sorted(set(found.start))
    assert all(a < b for a, b in pairwise(found.slope))  # convex


@settings(max_examples=examples(40))
@given(MANY, st.integers(0, 5), st.integers(0, 60))
def test_the_least_of_several_at_every_size(many, low, more):
    times, high = [Times.of_steps(steps) for steps in many], low + more
    found = least(times, low, high)
    assert [(change.size, change.winner) for change in found] == tried(times, low, high)
    for before, after in pairwise(found):
        assert after.crossing is not None and after.size - 1 <= after.crossing <= after.size
        assert times[before.winner].at(after.crossing) == times[after.winner].at(after.crossing)
    endless = [(change.size, change.winner) for change in least(times, low, None)]
    assert [pair for pair in endless if pair[0] <= high] == tried(times, low, high)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(MANY)
def test_without_end_the_last_one_stays(many):
    times = [Times.of_steps(steps) for steps in many]
    last = least(times, 0, None)[-1]
    beyond = 10**9
    assert last.size < beyond
    values = [one.at(beyond) for one in times]
    assert values.index(min(values)) == last.winner


def test_a_swapped_comparison_is_caught(monkeypatch):
    """The property above fails where the greatest is taken for the least."""
    lines = [Times.of_steps([(1, [(Fraction(0), Fraction(2))])]), Times.of_steps([(1, [(Fraction(9), Fraction(1))])])]
    assert [(c.size, c.winner) for c in least(lines, 0, 20)] == tried(lines, 0, 20) == [(0, 0), (10, 1)]
    monkeypatch.setattr(module, "min", max, raising=False)
    assert [(c.size, c.winner) for c in least(lines, 0, 20)] != tried(lines, 0, 20)
