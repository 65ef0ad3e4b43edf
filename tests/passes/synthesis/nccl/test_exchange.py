"""Rings by exchange: valid rings of the given room, the same ones each time, and no false claim that none exist."""

from __future__ import annotations

from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.frontends.coll import topology
from collc.ir.arrays import Array
from collc.passes.synthesis.nccl.exchange import Exchange

_MOST = 20_000


def flaw(room: Array, rings: list[list[int]], returns: list[tuple[int, int]]) -> str | None:
    """Return what is wrong with rings, given the successor of every place."""
    uses = np.zeros_like(room)
    for number, ring in enumerate(rings):
        place, seen = 0, list[int]()
        for _ in ring:
            seen.append(place)
            place = ring[place]
        if place or sorted(seen) != list(range(len(room))):
            return "a ring is not one cycle"
        if returns and ring[returns[number][0]] != returns[number][1]:
            return "a ring does not return where it is to"
        inside = [a for a in seen if not returns or a != returns[number][0]]
        np.add.at(uses, (inside, [ring[a] for a in inside]), 1)
    return None if (uses <= room).all() else "a hop has too many rings"


def room_of(net: str) -> Array:
    t = topology(net)
    room = np.zeros((t.num_ranks, t.num_ranks), dtype=np.int64)
    np.add.at(room, (t.src.astype(np.int64), t.dst.astype(np.int64)), 1)
    np.fill_diagonal(room, 0)
    return room


@pytest.mark.parametrize(("net", "rings"), [
    ("complete(9)", 8), ("complete(14)", 13), ("complete(16)", 15), ("hyperx(4, 4)", 6),
    ("circulant(16, {1, 2, 3, 4})", 5), ("complete(12)", 4), ("torus(2, 8)", 4), ("torus(4, 4)", 1),
])  # fmt: skip
def test_all_hops_are_rings(net: str, rings: int) -> None:
    room = room_of(net)
    found = Exchange(room, rings, [], 100_000).solve()
    assert found is not None
    assert len(found) == rings
    assert flaw(room, found, []) is None
    assert found == Exchange(room, rings, [], 100_000).solve()


@pytest.mark.parametrize(("size", "shift"), [(9, 1), (10, 3), (12, 1), (12, 6), (13, 5)])
def test_paths_return_where_they_are_to(size: int, shift: int) -> None:
    room, returns = room_of(f"complete({size})"), [((place + shift) % size, place) for place in range(size)]
    found = Exchange(room, size, returns, 100_000).solve()
    assert found is not None
    assert flaw(room, found, returns) is None
    found[0], found[1] = found[1], found[0]
    assert flaw(room, found, returns) is not None


def _exist(room: Array, rings: int) -> bool:
    """Return whether so many cycles fit, by trying all."""
    size, cycles = len(room), []
    for order in permutations(range(1, size)):
        uses = np.zeros_like(room)
        np.add.at(uses, ([0, *order], [*order, 0]), 1)
        if (uses <= room).all():
            cycles.append(uses)
    return any((sum(some, np.zeros_like(room)) <= room).all() for some in combinations_with_replacement(cycles, rings))


@settings(max_examples=examples(60))
@given(st.integers(2, 5), st.integers(1, 3), st.integers(0, 2**30))
def test_small_networks_by_trying_all(size: int, rings: int, seed: int) -> None:
    room = np.random.default_rng(seed).integers(0, 3, (size, size))
    np.fill_diagonal(room, 0)
    exchange = Exchange(room, rings, [], _MOST)
    found = exchange.solve()
    if found is None:
        assert not (exchange.impossible and _exist(room, rings))
    else:
        assert flaw(room, found, []) is None
    if not exchange.impossible and found is None:
        assert exchange.steps >= _MOST


def test_too_few_hops_are_a_proof() -> None:
    room = room_of("complete(6)")
    room[3, 1:] = 0
    exchange = Exchange(room, 2, [], _MOST)
    assert exchange.solve() is None
    assert exchange.impossible
    assert exchange.steps == 0


def test_cycles_that_do_not_exist_are_not_denied() -> None:
    """The links of 4 ranks have room for three rings at every rank, but three rings do not exist."""
    exchange = Exchange(room_of("complete(4)"), 3, [], 2_000)
    assert exchange.solve() is None
    assert not exchange.impossible
    assert exchange.steps == 2_000
