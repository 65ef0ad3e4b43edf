"""Longest paths and what they bring, wave by wave, are those that one event after the other gives."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collc.ir.one_sided.waves import Spread, arranged, levels
from collc.ir.ragged import starts


@st.composite
def graphs(draw):
    """Return the starts of blocks, and pairs of events of which the first waits for the second."""
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    events = sum(sizes)
    one = st.integers(0, max(events - 1, 0))
    pairs = draw(st.lists(st.tuples(one, one, st.integers(0, 3)), max_size=8 if events else 0))
    return starts(sizes), np.array(pairs, dtype=np.int64).reshape(-1, 3).T


def longest(start, pairs, step, weights):
    """Return the longest paths by relaxing all steps as often as there are events; None if they still grow."""
    events = int(start[-1])
    found = [0] * events
    chains = [(at, at - 1, step) for low, high in pairwise(start.tolist()) for at in range(low + 1, high)]
    steps = chains + [(a, b, w) for (a, b, _), w in zip(pairs.T.tolist(), weights, strict=True)]
    for _ in range(events + 1):
        before = list(found)
        for later, earlier, weight in steps:
            found[later] = max(found[later], found[earlier] + weight)
        if before == found:
            return found
    return None


def _circle(start, pairs):
    return longest(start, pairs, 1, [1] * pairs.shape[1]) is None


@given(graphs())
def test_levels_are_longest_paths(graph):
    start, pairs = graph
    found = levels(start, pairs[0], pairs[1])
    assert (None if found is None else found.tolist()) == longest(start, pairs, 1, [1] * pairs.shape[1])


@given(graphs())
def test_only_waits_count_with_weights(graph):
    start, pairs = graph
    found = levels(start, pairs[0], pairs[1], pairs[2])
    if _circle(start, pairs):
        assert found is None
    else:
        assert found is not None and found.tolist() == longest(start, pairs, 0, pairs[2].tolist())


@given(graphs(), st.data())
def test_what_nodes_know_is_the_maximum_of_all_before_them(graph, data):
    start, pairs = graph
    level = levels(start, pairs[0], pairs[1])
    if level is None or not len(level):
        return
    number, columns = len(level), 3
    chains = [(at, at - 1) for low, high in pairwise(start.tolist()) for at in range(low + 1, high)]
    edges = chains + [(a, b) for a, b, _ in pairs.T.tolist()]
    sets = data.draw(
        st.lists(st.tuples(st.integers(0, number - 1), st.integers(0, columns - 1), st.integers(0, 9)), max_size=9)
    )
    known = np.full((number, columns), -1)
    for node, column, value in sets:
        known[node, column] = max(known[node, column], value)
    for node in np.argsort(level, kind="stable").tolist():
        for later, earlier in edges:
            if later == node:
                known[node] = np.maximum(known[node], known[earlier])
    later, earlier = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    node, column, value = np.array(sets, dtype=np.int64).reshape(-1, 3).T
    place = arranged(level - 1, later)
    found = np.full((number, columns), -1, dtype=np.int8)
    Spread(np.sort(level - 1), place[later], place[earlier]).into(found, place[node], column, value)
    assert found[place].tolist() == known.tolist()
