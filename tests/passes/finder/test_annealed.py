"""Annealed racks: as full as before, never more links than before, and fewer than exchanges that only improve find."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from sampling import examples

from collc.frontends.coll import topology
from collc.ir.arrays import Array
from collc.ir.topology import Topology
from collc.passes.finder import annealed as module
from collc.passes.finder.annealed import annealed
from collc.passes.finder.racks import _exchanged, _joined, assign_racks, links_between


def consecutive(network: Topology, size: int) -> Array:
    return np.arange(network.num_ranks) // size


@settings(max_examples=examples(12), deadline=None)
@given(strategies.connected(min_ranks=4, max_ranks=12))
def test_racks_hold_as_many_nodes_and_have_no_more_links(network: Topology) -> None:
    for size in (3, network.num_ranks - 1):
        before = consecutive(network, size)
        after = annealed(network, before)
        assert Counter(before.tolist()) == Counter(after.tolist())
        assert links_between(network, after) <= links_between(network, before)


def wrong(state: module._State, network: Topology) -> str:
    """Return what a state has wrong, counted again without its help; nothing if it is right."""
    rack = state.rack[:-1]
    if state.links != links_between(network, rack):
        return "links"
    ties = np.zeros((network.num_ranks, state.racks), dtype=np.int64)
    for a, b in zip(network.src.tolist(), network.dst.tolist(), strict=True):
        if a != b:
            ties[a, rack[b]] += 1
            ties[b, rack[a]] += 1
    if ties.ravel().tolist() != state.ties[: ties.size].tolist():
        return "ties"
    where = [(int(state.member[rack[node], state.place[node]])) for node in range(network.num_ranks)]
    return "" if where == list(range(network.num_ranks)) else "places"


@pytest.mark.parametrize(
    ("call", "size"),
    [("generalized_kautz(3, 50)", 8), ("torus(6, 6)", 7), ("uniring(9, 3)", 4), ("debruijn(2, 4)", 5),
     ("hypercube(6)", 40), ("complete(9)", 3)],
)  # fmt: skip
def test_saved_links_add_up_in_every_round(call: str, size: int) -> None:
    """Partners are 32 at most, so a rack of 40 shows them in turn."""
    network = topology(call)
    rack = consecutive(network, size)[np.arange(network.num_ranks) * 7 % network.num_ranks]
    state = module._State(*module._neighbours(network), rack, int(rack.max()) + 1)
    stream, moved = np.random.PCG64(3), 0
    for done in range(60):
        before = state.rack.copy()
        state.change(stream, module._weight(done, 60))
        moved += int((before != state.rack).sum())
        assert not wrong(state, network)
    assert moved


def test_a_planted_fault_in_a_state_is_found() -> None:
    network = topology("torus(6, 6)")
    near = module._neighbours(network)
    for spoil, said in (("links", "links"), ("ties", "ties"), ("place", "places")):
        state = module._State(*near, consecutive(network, 6), 6)
        assert not wrong(state, network)
        if spoil == "links":
            state.links += 2
        else:
            column = getattr(state, spoil)
            column[[0, 7]] = column[[7, 0]] + (spoil == "ties")
        assert said == wrong(state, network)


def test_choices_that_touch_each_other_spoil_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule that only the first of them happens, a state is soon wrong."""
    network = topology("generalized_kautz(3, 50)")
    state = module._State(*module._neighbours(network), consecutive(network, 8), 7)
    monkeypatch.setattr(module._State, "_first", lambda self, found: np.ones(len(found.node), dtype=bool))
    stream = np.random.PCG64(0)
    for _ in range(20):
        state.change(stream, 256)
    assert wrong(state, network)


@pytest.mark.parametrize(
    ("call", "size", "most"),
    [("generalized_kautz(4, 100)", 10, 204), ("debruijn(2, 6)", 8, 50), ("circulant(120, {31, 32})", 10, 170)],
)
def test_fewer_links_than_by_exchanges_that_only_improve(call: str, size: int, most: int) -> None:
    network = topology(call)
    start = consecutive(network, size)
    improved = links_between(network, _exchanged(_joined(network), start))
    found = links_between(network, annealed(network, start))
    assert found < improved
    assert assign_racks(network, size).links <= most


def test_noise_is_spread_as_a_logarithm() -> None:
    noise = module._noise(np.random.PCG64(1).random_raw(50_000))
    assert noise.min() >= 0
    for bits in (1, 2, 5):
        assert (noise > 256 * bits).mean() == pytest.approx(2.0**-bits, rel=0.05)


def test_weights_double_at_equal_distances() -> None:
    weights = [module._weight(done, 3000) for done in (0, 500, 1000, 2000, 2999)]
    assert [256, 384, 512, 1024] == weights[:4] and 2040 < weights[4] <= 2048


def test_networks_that_are_too_large_keep_their_racks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_TIES", 63)
    start = consecutive(topology("uniring(16)"), 4)
    assert annealed(topology("uniring(16)"), start) is start
