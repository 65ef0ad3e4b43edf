"""Why some schedules of tori have no template: the reasons that docs/design-decisions.md states."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import collc
from collc.ir.arrays import Array
from collc.ir.group import Translations
from collc.passes.synthesis.torus.cycles import one_cycle, two_cycles
from collc.passes.synthesis.torus.pat import pat_line
from collc.passes.synthesis.torus.peers import doubling_peers, swing_line


def keeps_links(net: str, image: Array) -> bool:
    """Return whether a permutation of the ranks maps links to links."""
    topology = collc.topology(net)
    keys = np.sort(topology.src.astype(np.int64) * topology.num_ranks + topology.dst)
    moved = np.sort(image[topology.src].astype(np.int64) * topology.num_ranks + image[topology.dst])
    return np.array_equal(keys, moved)


def edges(cycle: Array) -> set[frozenset[int]]:
    return {frozenset(pair) for pair in pairwise([*cycle.tolist(), int(cycle[0])])}


@pytest.mark.quick
@pytest.mark.parametrize("size", [4, 8, 16, 32, 64])
def test_of_the_moves_of_recursive_doubling_four_keep_a_ring(size: int) -> None:
    at = np.arange(size)
    for g in range(size):  # the moves that keep all pairs
        assert all(np.array_equal(peer[at ^ g], peer ^ g) for peer in doubling_peers(size))
    kept = [g for g in range(size) if keeps_links(f"biring({size})", at ^ g)]
    assert kept == ([0, 1, 2, 3] if size == 4 else [0, size // 2 - 1, size // 2, size - 1])


@pytest.mark.quick
@pytest.mark.parametrize("shape", [(5, 5), (9, 3), (7, 7), (15, 5), (25, 5)])
def test_translations_along_a_diagonal_keep_both_cycles(shape: tuple[int, int]) -> None:
    rows, columns = shape
    cycles, group = two_cycles(shape), Translations(shape)
    assert cycles is not None
    for number in range(rows * columns):
        down, right = divmod(number, columns)
        kept = [edges(group.multiply(number, cycle)) == edges(cycle) for cycle in cycles]
        assert all(kept) == ((down + right) % columns == 0)
        if all(kept) and right == 0:  # rank numbers of several orbits
            assert down % columns == 0


@pytest.mark.quick
@pytest.mark.parametrize("shape", [(5, 5), (15, 5), (7, 7), (5, 6), (6, 6), (5, 7)])
def test_the_next_rank_of_a_cycle_is_no_automorphism(shape: tuple[int, int]) -> None:
    for cycle in two_cycles(shape) or [one_cycle(shape)]:
        following = np.empty(len(cycle), dtype=np.int64)
        following[cycle] = np.roll(cycle, -1)
        assert not keeps_links(f"torus({', '.join(map(str, shape))})", following)
        assert keeps_links(
            f"torus({', '.join(map(str, shape))})", Translations(shape).multiply(1, cycle)[np.argsort(cycle)]
        )


@pytest.mark.quick
@pytest.mark.parametrize("size", [5, 7, 9, 13])
def test_a_guest_alone_sends_to_all(size: int) -> None:
    line = swing_line(size, mirrored=False)
    peers = [len(set(row[row >= 0].tolist())) for row in line.to]
    assert peers[-1] == size - 1 and max(peers[:-1]) < size - 1


@pytest.mark.quick
@pytest.mark.parametrize("size", [4, 8, 16])
def test_pat_goes_one_way(size: int) -> None:
    line, at = pat_line(size, size.bit_length()), np.arange(size)
    away = (at[:, None] - line.to)[line.to >= 0] % size
    assert set(away.tolist()) == {1 << k for k in range(size.bit_length() - 1)}  # down by these, half round too
