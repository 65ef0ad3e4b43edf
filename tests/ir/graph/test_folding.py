"""Folded networks: the smallest cuts of flows are those of all nodes; hashes that collide are noticed."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sampling import every

from collc.frontends.coll import topology
from collc.ir.arrays import Array
from collc.ir.graph import folding as module
from collc.ir.graph.cuts import FlowNetwork
from collc.ir.graph.folding import Folding


def drawn(seed: int) -> tuple[int, Array, Array, Array]:
    """Ranks, classes of nodes, arcs and kinds: copies of a few nodes, joined as these are, and with a hub."""
    chance = random.Random(seed)
    ranks, switches, copies = chance.randrange(1, 4), chance.randrange(3), chance.randrange(1, 5)
    kinds, one = chance.randrange(1, 5), ranks + switches
    number = [[copy * ranks + v for v in range(ranks)] for copy in range(copies)]
    number = [row + [copies * ranks + copy * switches + w for w in range(switches)] for copy, row in enumerate(number)]
    hub, arcs = copies * one, list[tuple[int, int, int]]()
    for tail, head in {(chance.randrange(one), chance.randrange(one)) for _ in range(3 * one)}:
        kind, turn = chance.randrange(kinds), chance.randrange(copies)
        arcs += [(number[i][tail], number[(i + turn) % copies][head], kind) for i in range(copies)]
    for node in range(one):
        arcs += [(number[i][node], hub, node % kinds) for i in range(copies)]
        arcs += [(hub, number[i][node], (node + 1) % kinds) for i in range(copies)]
    node = np.zeros(hub + 1, dtype=np.int64)
    for row in number:
        node[row] = [v % 2 if v < ranks else 2 + v % 2 for v in range(one)]
    node[hub] = 4
    unique = sorted({(tail, head): kind for tail, head, kind in arcs if tail != head}.items())
    ends = np.array([pair for pair, _ in unique], dtype=np.int64).reshape(-1, 2).T
    return copies * ranks, node, ends, np.array([kind for _, kind in unique], dtype=np.int64)


def check_cuts(seed: int, folding: Folding, node: Array, arcs: Array, kind: Array, alone: list[int]) -> None:
    """Check that the cuts of drawn capacities and supplies are those of the network of all nodes."""
    chance = random.Random(seed)
    for _ in range(4):
        capacity = [chance.randrange(6) for _ in range(int(kind.max()) + 1)]
        own = [chance.randrange(1, 4), chance.randrange(4), 0, 0, 0]
        supply = [own[c] for c in node.tolist()]
        full = FlowNetwork(len(node), zip(*arcs.tolist(), [capacity[k] for k in kind.tolist()], strict=True))
        assert folding.violated(supply, capacity, alone, 9) == full.violated(supply, alone, 9)


@pytest.mark.parametrize("seed", every(5, range(300)))
def test_cuts_are_those_of_all_nodes(seed: int) -> None:
    ranks, node, arcs, kind = drawn(seed)
    alone = sorted(random.Random(seed).sample(range(ranks), min(ranks, 1 + seed % 3)))
    check_cuts(seed, Folding.of(ranks, node, arcs, kind, alone), node, arcs, kind, alone)


def boxes(expression: str) -> tuple[int, Array, Array, Array]:
    """Ranks, classes of nodes, arcs and kinds of a network without parallel links."""
    net = topology(expression)
    node = np.where(np.arange(net.num_nodes) < net.num_ranks, 0, 2)
    return net.num_ranks, node, np.stack([net.src, net.dst]).astype(np.int64), net.link_class.astype(np.int64)


def test_cells_of_a_cluster_do_not_grow_with_it() -> None:
    """Left of 128 GPUs: the one alone, its box and rail, those on both and neither, and their NICs."""
    cells = [Folding.of(*boxes(f"dgx_h100({n}, 8)"), [9]).num_cells for n in (4, 16)]
    assert cells[0] == cells[1] < 20


def test_colours_that_collide_leave_all_nodes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks, node, arcs, kind = boxes("dgx_h100(2, 8)")
    for coarse in (lambda _: np.zeros(len(node), dtype=np.int64), lambda _: (np.arange(len(node)) == 9).astype(int)):
        monkeypatch.setattr(module, "_numbered", coarse)
        folding = Folding.of(ranks, node, arcs, kind, [9])
        assert folding.num_cells == len(node)
        check_cuts(1, folding, node, arcs, kind, [9])
