"""Switches between two nodes change no cut: flows that leave them out find the sets that all flows find."""

from __future__ import annotations

import random

import pytest
from sampling import every

from collc.ir.graph.bypass import Bypass
from collc.ir.graph.cuts import FlowNetwork


def drawn(seed: int) -> tuple[int, int, list[int], list[int], list[int]]:
    """Ranks, nodes, and arcs of ranks that reach each other over switches between two of them, and directly."""
    chance = random.Random(seed)
    ranks, switches = chance.randrange(2, 6), chance.randrange(1, 6)
    arcs = list[tuple[int, int, int]]()
    for node in range(ranks, ranks + switches):
        for end in chance.sample(range(ranks), 2) if chance.random() < 0.8 else range(ranks):
            arcs += [(end, node, chance.randrange(4)), (node, end, chance.randrange(4))]
    for _ in range(ranks):
        arcs.append((chance.randrange(ranks), chance.randrange(ranks), chance.randrange(1, 4)))
    tails, heads, capacity = (list(column) for column in zip(*arcs, strict=True))
    return ranks, ranks + switches, tails, heads, capacity


@pytest.mark.parametrize("seed", every(5, range(200)))
def test_cuts_are_those_of_all_nodes(seed: int) -> None:
    ranks, nodes, tails, heads, capacity = drawn(seed)
    supply = [random.Random(seed).randrange(1, 4) for _ in range(ranks)] + [0] * (nodes - ranks)
    bypass = Bypass(ranks, nodes, tails, heads)
    short = FlowNetwork(nodes, bypass.arcs(capacity)).violated(supply, range(ranks), nodes)
    full = FlowNetwork(nodes, zip(tails, heads, capacity, strict=True)).violated(supply, range(ranks), nodes)
    assert [cut.value for cut in short] == [cut.value for cut in full]
    network = FlowNetwork(nodes, zip(tails, heads, capacity, strict=True))
    for one, other in zip(short, full, strict=True):
        assert network.leaving(bypass.whole(one.nodes)) == network.leaving(other.nodes)
        positive = {node for node in other.nodes if node < ranks}
        assert {node for node in bypass.whole(one.nodes) if node < ranks} == positive


def test_a_link_through_a_switch_holds_as_much_as_its_narrower_half() -> None:
    bypass = Bypass(2, 3, [0, 2, 1, 2], [2, 1, 2, 0])
    assert sorted(bypass.arcs([5, 3, 2, 7])) == [(0, 1, 3), (1, 0, 2)]
    assert bypass.whole((0,)) == (0, 2)
    assert bypass.whole((1,)) == (1,)
    assert sorted(bypass.arcs([3, 5, 2, 1])) == [(0, 1, 3), (1, 0, 1)]
    assert bypass.whole((0,)) == (0,)
    assert bypass.whole((1,)) == (1, 2)


def test_switches_between_switches_stay() -> None:
    bypass = Bypass(2, 4, [0, 2, 2, 3, 3, 1], [2, 0, 3, 2, 1, 3])
    assert sorted(bypass.arcs([1] * 6)) == [(0, 3, 1), (1, 3, 1), (3, 0, 1), (3, 1, 1)]
