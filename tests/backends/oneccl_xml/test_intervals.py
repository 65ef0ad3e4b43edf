"""Sets of numbers as intervals are the sets of their numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collc.backends.oneccl_xml.intervals import Intervals

PAIRS = st.tuples(st.integers(0, 20), st.integers(1, 6)).map(lambda pair: (pair[0], sum(pair)))


@given(st.lists(PAIRS), st.lists(PAIRS))
def test_they_meet_what_has_a_common_number(added: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    some, numbers = Intervals(), set[int]()
    for first, last in added:
        some.add(first, last)
        numbers.update(range(first, last))
    for first, last in asked:
        assert some.meets(first, last) == bool(numbers.intersection(range(first, last)))
