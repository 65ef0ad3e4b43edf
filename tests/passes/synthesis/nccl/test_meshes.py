"""Full meshes as Hamiltonian cycles and paths: each hop once, for every number of places where they exist."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import EXHAUSTIVE, examples

from collc.passes.synthesis.nccl import meshes
from collc.passes.synthesis.nccl.meshes import mesh_cycles, mesh_paths, paths_between


def flaw(rows: Sequence[Sequence[int]], size: int, closed: bool) -> str | None:
    """Return what is wrong with a decomposition of all hops between places."""
    if any(sorted(row) != list(range(size)) for row in rows):
        return "a place is missing or comes twice"
    hops = [hop for row in rows for hop in pairwise([*row, row[0]] if closed else row)]
    if len(set(hops)) < len(hops):
        return "a hop is used twice"
    return None if len(hops) == size * (size - 1) else "a hop is missing"


@pytest.mark.parametrize("size", [*range(3, 41), *((64, 66, 97, 128) if not EXHAUSTIVE else range(41, 201))])
def test_cycles_and_paths_use_each_hop_once(size: int) -> None:
    cycles, paths = mesh_cycles(size), mesh_paths(size)
    assert (cycles is None) == (size in (4, 6))
    assert (paths is None) == (size in (3, 5))
    assert cycles is None or (len(cycles), flaw(cycles, size, True)) == (size - 1, None)
    assert paths is None or (len(paths), flaw(paths, size, False)) == (size, None)


def test_the_smallest() -> None:
    assert mesh_cycles(1) is None
    assert mesh_cycles(2) == [(0, 1)]
    assert mesh_paths(2) == [(0, 1), (1, 0)]


@pytest.mark.parametrize("size", [4, 6])
def test_four_and_six_places_have_none(size: int) -> None:
    """All cycles are tried: each hop from place 0 needs a cycle, and these share no hop."""
    through: dict[int, list[frozenset[tuple[int, int]]]] = {}
    for order in permutations(range(1, size)):
        through.setdefault(order[0], []).append(frozenset(pairwise((0, *order, 0))))

    def exist(second: int, used: frozenset[tuple[int, int]]) -> bool:
        return second == size or any(exist(second + 1, used | one) for one in through[second] if not used & one)

    assert not exist(1, frozenset())


@pytest.mark.parametrize("table", ["_COLORS", "_INSERTED"])
@pytest.mark.parametrize("base", [10, 12])
def test_two_colors_exchanged_are_found(table: str, base: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = getattr(meshes, table)[base]
    planted = rows[1] + rows[0] + rows[2:]
    monkeypatch.setitem(getattr(meshes, table), base, planted)
    with pytest.raises((AssertionError, IndexError)):
        test_cycles_and_paths_use_each_hop_once(base + 4)


@settings(max_examples=examples(60))
@given(st.integers(2, 20), st.permutations(range(20)), st.integers(0, 10), st.booleans())
def test_paths_between_any_pairs(size: int, order: list[int], pairs: int, both: bool) -> None:
    """Pairs of places, each way or one way, in any order: as many as there are, except three places of an odd size."""
    places = [place for place in order if place < size]
    chosen = [(a, b) for a, b in zip(places[::2], places[1::2], strict=False)][: min(pairs, (size - size % 2 * 3) // 2)]
    ends = [pair for a, b in chosen for pair in ([(a, b), (b, a)] if both else [(a, b)])]
    found = paths_between(size, ends)
    if size in (3, 5):
        assert found is None
        return
    assert found is not None
    assert [(path[0], path[-1]) for path in found] == ends
    assert flaw(found, size, False) in (None, "a hop is missing")


@pytest.mark.parametrize(("size", "ends"), [
    (4, [(0, 1), (0, 2)]), (4, [(0, 1), (2, 1)]), (8, [(0, 1), (1, 2), (2, 0)]), (4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
])  # fmt: skip
def test_other_ends_are_not_known(size: int, ends: list[tuple[int, int]]) -> None:
    assert paths_between(size, ends) is None


def test_three_places_of_an_odd_size() -> None:
    ends = [(5, 2), (2, 6), (6, 5), (0, 1), (1, 0), (3, 4), (4, 3)]
    found = paths_between(7, ends)
    assert found is not None
    assert [(path[0], path[-1]) for path in found] == ends
    assert flaw(found, 7, False) is None
