"""Odd boxes whose links have no room to spare: one packing of each box reaches the proved optimum, as a template."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.graph.box_rotation import parts_without
from collc.ir.spec import Problem
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.synthesis.forest import fed_odd, odd_trees
from collc.passes.synthesis.forest.allreduce_optimum import allreduce_optimum, division_by_boxes
from collc.passes.synthesis.forest.halves import backwards, joined_halves
from collc.passes.synthesis.forest.odd_trees import odd_seed
from collc.passes.synthesis.forest.optimum import optimum

pytestmark = pytest.mark.quick


def forest(topology: Topology, kind: str = "allgather") -> SymmetricForest | None:
    found = odd_seed(topology, both=kind == "allreduce")
    if found is None:
        return None
    outward, group, whole = found
    halves = [outward] if kind == "allgather" else [backwards(outward, topology.reverse_links), outward]
    asked = Problem(topology, Collective(kind, topology.num_ranks))
    return SymmetricForest(joined_halves(asked, halves, whole), group)


def least(topology: Topology, kind: str) -> object:
    """The proved optimum, as the time per byte of the whole vector."""
    if kind == "allgather":
        return optimum(topology, [1] * topology.num_ranks).one_over_x / topology.num_ranks
    found = allreduce_optimum(topology)
    assert found is not None
    return 1 / found.value


#: dies that are gone, and the height that trees do not exceed
GONE = {
    "gpu[3, 5], gpu[3, 1]": 8,
    "gpu[3, 5], gpu[3, 4]": 10,
    "gpu[3, 9]": 12,
}


@pytest.mark.parametrize("gone", GONE)
@pytest.mark.parametrize("kind", ["allgather", "allreduce"])
def test_template_reaches_the_proved_optimum(gone: str, kind: str) -> None:
    topology = collc.topology(f"without(mi250(17), {{{gone}}})")
    found = forest(topology, kind)
    assert found is not None
    assert verify(found).ok
    assert cost(found).time_per_byte == least(topology, kind)
    assert max(found.heights) <= GONE[gone]


BOXES = ("circulant(9, {1, 2})", "torus(3, 3)", "hypercube(3)", "mesh(3, 3)", "biring(5)")


@given(st.sampled_from(BOXES), st.sets(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=3))
@settings(max_examples=examples(12), deadline=None)
def test_boxes_with_several_hops_and_dead_ranks(box: str, gone: set[tuple[int, int]]) -> None:
    dead = ", ".join(f"gpu[{b}, {g}]" for b, g in sorted(gone))
    topology = collc.topology(f"without(clustered({box}, 25, 1), {{{dead}}})")
    found = forest(topology) if topology.is_connected else None
    if found is None:
        return
    assert verify(found).ok and cost(found) == cost(found.unfold())
    assert cost(found).time_per_byte == least(topology, "allgather")


def test_packing_that_takes_more_than_links_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = collc.topology("without(mi250(9), {gpu[3, 5], gpu[3, 4]})")
    assert forest(topology) is not None
    monkeypatch.setattr(fed_odd, "_narrowed", lambda network, held, roots: [2 * room for room in held])
    assert forest(topology) is None


def test_pieces_are_cut_where_a_sender_has_too_little_room() -> None:
    refined = list(fed_odd._refined([[(0, 3), (1, 2)], [(2, 1), (3, 4)]]))
    assert refined == [(1, [0, 2]), (2, [0, 3]), (2, [1, 3])]
    users = fed_odd._Users([(0, 3), (1, 2)])
    assert [users.take(2), users.take(2), users.take(1)] == [[(0, 2)], [(0, 1), (1, 1)], [(1, 1)]]


def test_every_box_sends_its_data_itself() -> None:
    topology = collc.topology("without(mi250(17), {gpu[3, 5], gpu[3, 1]})")
    boxes = parts_without(topology, [topology.num_ranks])
    found, best = division_by_boxes(topology, boxes), allreduce_optimum(topology)
    assert found is not None and best is not None and found.value == best.value
    for box in boxes:
        own = np.isin(np.arange(topology.num_nodes), box)
        out = np.flatnonzero(own[topology.src] & ~own[topology.dst])
        sent = (len(boxes) - 1) * sum(found.roots[rank] for rank in box)
        assert sent <= sum(found.outward[link] for link in out.tolist())


def test_nothing_is_divided_where_boxes_cannot_send_their_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odd_trees, "division_by_boxes", lambda *_: None)
    assert forest(collc.topology("without(mi250(17), {gpu[3, 9]})"), "allreduce") is None
