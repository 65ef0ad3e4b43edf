"""Limits on counted work: they end it at the same step, and know limits around them."""

from __future__ import annotations

import pytest

from collc.ir.effort import EffortSpent, limited, spend, within
from collc.ir.graph.cuts import FlowNetwork


def test_work_ends_beyond_its_limit() -> None:
    spend(10**9)
    with limited(10) as effort:
        spend(10)
        with pytest.raises(EffortSpent) as caught:
            spend(1)
    assert (caught.value.most, effort.spent) == (10, 11)
    spend(10**9)


def test_limits_around_a_limit_count_the_same_steps() -> None:
    with limited(100) as outer:
        assert within(10, lambda: spend(11)) is None
        assert within(10, lambda: [spend(4)]) == [None]
        assert outer.spent == 4  # the step that the inner limit refused was not taken
        with pytest.raises(EffortSpent) as caught:
            within(1000, lambda: spend(97))
    assert caught.value.most == 100


def test_a_flow_that_is_stopped_leaves_its_network_whole() -> None:
    network = FlowNetwork(3, [(0, 1, 2), (1, 2, 2), (2, 0, 2), (1, 0, 2)])
    before = list(network.arcs())
    with pytest.raises(EffortSpent), limited(1):
        network.violated([1, 1, 0], range(3))
    assert list(network.arcs()) == before
