"""Clusters with a few odd boxes: as fast as trees grown one by one, and what is said of the template holds of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.frontends.coll import load
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.costs.pieces import best_pieces
from collc.ir.costs.rounds import loads
from collc.ir.spec import Problem
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.symmetries import Rotations
from collc.ir.topology import Topology
from collc.ir.validate import structure
from collc.ir.verify import verify
from collc.passes.synthesis.forest import odd_parts, odd_trees
from collc.passes.synthesis.forest.halves import backwards, joined_halves
from collc.passes.synthesis.forest.odd_boxes import odd_boxes
from collc.passes.synthesis.forest.odd_orientation import Shares
from collc.passes.synthesis.forest.odd_trees import odd_seed
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.passes.synthesis.forest.template import template

pytestmark = pytest.mark.quick


def forest(topology: Topology, kind: str = "allgather", pieces: int = 1) -> SymmetricForest | None:
    found = odd_seed(topology, both=kind == "allreduce")
    if found is None:
        return None
    outward, group, whole = found
    problem = Problem(topology, Collective(kind, topology.num_ranks))
    halves = [outward] if kind == "allgather" else [backwards(outward, topology.reverse_links)]
    halves += [outward] if kind == "allreduce" else []
    return SymmetricForest(joined_halves(problem, halves, whole), group).revised(pieces=pieces)


ODD = {
    "slow cable": "degraded(dgx_a100(9), {gpu[3, 5] <-> ib}, 1/2)",
    "dead cable": "without(dgx_a100(9), {gpu[0, 0] <-> ib})",
    "no GPU": "without(dgx_a100(9), {gpu[8, 7]})",
    "slow inside": "degraded(dgx_h100(8), {gpu[2, 1] <-> nv[2]}, 1/18)",
    "slow box": "degraded(mi250(9), {gpu[3, 5] <-> ib}, 1/2)",
    "no link of a pair": "without(mi250(8), {gpu[3, 5] <-> gpu[3, 4]})",
    "no die": "without(mi250(9), {gpu[3, 5]})",
    "two boxes": "degraded(dgx_a100(17), {gpu[3, 5] <-> ib, gpu[4, 4] <-> ib}, 1/2)",
}


@pytest.mark.parametrize("fault", ODD)
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
def test_forest_is_optimal_and_costs_what_its_trees_cost(fault: str, kind: str) -> None:
    found = forest(collc.topology(ODD[fault]), kind, pieces=3)
    if kind == "allreduce" and fault == "slow inside":
        assert found is None  # the links of a rank inside its box are the slowest of all
        return
    assert found is not None
    whole = found.unfold()
    assert cost(found).bound_met
    assert cost(found) == cost(whole)
    assert best_pieces(found, 1 << 28) == best_pieces(whole, 1 << 28)
    assert len(found) == len(whole.tree) and found.num_trees == whole.num_trees
    for mine, all_of_them in zip(loads(found).total, loads(whole).total, strict=True):
        assert mine.tolist() == all_of_them.tolist()
    assert structure(found) == structure(whole) == []
    assert verify(found).ok and verify(whole).ok


@pytest.mark.parametrize("fault", ["no link of a pair", "no die"])
def test_a_rank_that_lost_links_needs_more_than_half_of_them_inward(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half and half is not enough there; how links are divided decides, and no link carries more than it holds."""
    network = collc.topology(ODD[fault])
    assert forest(network, "allreduce") is not None
    monkeypatch.setattr(odd_parts, "oriented", lambda *_: iter(()))
    monkeypatch.setattr(odd_trees, "_divided", lambda *_: None)  # the program of the whole network
    assert forest(network, "allreduce") is None


def test_a_division_that_gives_a_link_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees of a division in which a link and its reverse hold too much do not fit, so there is no template."""

    def twice(*arguments: Any) -> Iterator[Shares]:  # Any: those of the function that it replaces
        held, links = arguments[1], arguments[4]
        yield Shares({link: held[link] // 8 for link in links}, {link: held[link] for link in links})

    monkeypatch.setattr(odd_parts, "oriented", twice)
    monkeypatch.setattr(odd_trees, "_divided", lambda *_: None)
    assert forest(collc.topology(ODD["no die"]), "allreduce") is None


@st.composite
def clusters(draw: st.DrawFn) -> str:
    """Boxes on one fabric, most alike; links of one or two of them are slower, faster or missing, or a rank is."""
    gpus = draw(st.integers(1, 4))
    boxes = draw(st.integers(9, 12)) if gpus < 3 else draw(st.integers(8, 10))
    inner, outer = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    switched = draw(st.booleans())
    inside = "link gpu[b, g] <-> nv[b] : INNER GB/s;" if switched else (
        "for h in g+1..GPUS { link gpu[b, g] <-> gpu[b, h] : INNER GB/s; }"
    )  # fmt: skip
    inside = inside.replace("INNER", str(inner)).replace("GPUS", str(gpus))
    box, gpu = draw(st.integers(0, boxes - 1)), draw(st.integers(0, gpus - 1))
    ends = [f"gpu[{box}, {gpu}] <-> ib"]
    if gpus > 1:
        ends.append(f"gpu[{box}, {gpu}] <-> " + (f"nv[{box}]" if switched else f"gpu[{box}, {(gpu + 1) % gpus}]"))
    end, ratio = draw(st.sampled_from(ends)), draw(st.sampled_from(("1/2", "1/3", "2/3", "3/4")))
    fault = draw(st.sampled_from((
        f"degraded(base, {{{end}}}, {ratio})", f"without(base, {{{end}}})", f"without(base, {{gpu[{box}, {gpu}]}})",
        f"degraded(degraded(base, {{{end}}}, {ratio}), {{gpu[{(box + 1) % boxes}, 0] <-> ib}}, 1/2)",
    )))  # fmt: skip
    return f"""
topology base {{
  rank gpu[{boxes}, {gpus}];
  switch {f"nv[{boxes}], " if switched else ""}ib;
  for b in 0..{boxes}, g in 0..{gpus} {{
    {inside}
    link gpu[b, g] <-> ib : {outer} GB/s;
  }}
}}
topology net = {fault};
"""


@given(clusters(), st.sampled_from(("allgather", "reduce-scatter", "allreduce")))
@settings(max_examples=examples(25), deadline=None)
def test_random_clusters_are_as_fast_as_what_is_grown(text: str, kind: str) -> None:
    topology = load("net.coll", text=text).topologies["net"]
    if not topology.is_connected:
        return
    found = forest(topology, kind)
    if found is None:
        return
    whole = found.unfold()
    assert verify(found).ok and verify(whole).ok
    assert cost(found) == cost(whole)
    problem = Problem(topology, Collective(kind, topology.num_ranks))
    assert cost(found).time_per_byte == cost(ForestScheduler().grow(problem)).time_per_byte


def test_report_says_what_was_executed() -> None:
    found = forest(collc.topology(ODD["slow cable"]))
    assert found is not None
    said = "executed 16 of 72 roots, all others by a rotation of order 8 that keeps 8 ranks, checked"
    assert verify(found).checks[0].detail == said


def wrong(level: SymmetricForest) -> str:
    return next((check.detail for check in verify(level).checks if not check.ok), "")


def test_every_changed_edge_is_caught() -> None:
    level = forest(collc.topology(ODD["slow cable"]))
    assert level is not None
    for row in range(0, len(level.seed.tree), 41):
        child = level.seed.child.astype(np.int64)
        child[row] = (child[row] + 1) % level.topology.num_ranks
        assert wrong(attrs.evolve(level, seed=attrs.evolve(level.seed, child=child)))


def test_box_that_is_not_alike_is_no_image() -> None:
    level = forest(collc.topology(ODD["slow cable"]))
    assert level is not None
    kind = level.topology.link_class.tolist()
    link = int(np.flatnonzero((level.topology.src == 40) & (level.topology.dst == 81))[0])  # of the last box, to ib
    kind[link] = next(number for number in range(len(level.topology.classes)) if number != kind[link])
    changed = attrs.evolve(level.topology, link_class=kind)
    group = Rotations(changed, level.group.generator) if isinstance(level.group, Rotations) else level.group
    seed = attrs.evolve(level.seed, topology=changed)
    assert "maps no link to" in wrong(attrs.evolve(level, seed=seed, group=group))


def test_rotation_that_moves_an_odd_box_is_caught() -> None:
    level = forest(collc.topology(ODD["slow cable"]))
    other = forest(collc.topology("degraded(dgx_a100(9), {gpu[4, 5] <-> ib}, 1/2)"))
    assert level is not None and other is not None and isinstance(other.group, Rotations)
    assert "maps no link to" in wrong(attrs.evolve(level, group=Rotations(level.topology, other.group.generator)))


def test_missing_trees_of_an_odd_rank_are_caught() -> None:
    level = forest(collc.topology(ODD["slow cable"]))
    assert level is not None
    lost = int(level.seed.root[-1])
    root = level.seed.root.astype(np.int64)
    root[root == lost] = int(level.seed.root[0])
    assert wrong(attrs.evolve(level, seed=attrs.evolve(level.seed, root=root)))


@pytest.mark.parametrize("network", [
    "dgx_a100(9)", "torus(4, 4)", "degraded(dgx_a100(3), {gpu[0, 1] <-> ib}, 1/2)", "fat_tree(4)", "dgx_h100(9, 8)",
])  # fmt: skip
def test_networks_without_odd_boxes(network: str) -> None:
    assert odd_boxes(collc.topology(network)) is None


def test_parts_of_an_odd_cluster() -> None:
    found = odd_boxes(collc.topology(ODD["two boxes"]))
    assert found is not None
    assert found.alike.count == 15 and len(found.parts) == 2 and len(found.ranks) == 16
    assert found.number[24:40].tolist() == list(range(120, 136))


@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
def test_scheduler_takes_the_template_where_flows_would_pack_trees(kind: str) -> None:
    """Trees of small clusters, whose boxes have no two hops, are fewer by other means."""
    slow, small = collc.topology(ODD["slow box"]), collc.topology(ODD["slow cable"])
    for topology, expected in ((slow, True), (small, False)):
        problem = Problem(topology, Collective(kind, topology.num_ranks))
        assert (template(ForestScheduler(), problem, least=0) is not None) == expected


def test_allreduce_has_roots_of_different_amounts() -> None:
    level = forest(collc.topology(ODD["slow cable"]), "allreduce")
    assert level is not None and level.whole
    assert level.carried(0) == level.carried(1) == level.parts
    assert verify(level).checks[0].detail.startswith("executed 16 of 72 roots")
    whole = level.unfold()
    assert (
        cost(level).time_per_byte
        == cost(ForestScheduler().grow(Problem(level.topology, level.collective))).time_per_byte
    )
    assert whole.whole and int(whole.weight[whole.inward == 1].sum()) == whole.parts


def test_vector_that_is_not_covered_is_caught() -> None:
    level = forest(collc.topology(ODD["slow cable"]), "allreduce")
    assert level is not None
    weight = level.seed.weight.astype(np.int64)
    weight[0] += 1
    changed = attrs.evolve(level, seed=attrs.evolve(level.seed, weight=weight))
    assert "the inward trees carry" in wrong(changed)
    staying = int(np.flatnonzero(level.stays & (level.seed.inward == 0))[0])
    weight[staying] -= level.group.order  # the sum of the inward trees is wrong, that of the outward ones too
    assert wrong(attrs.evolve(level, seed=attrs.evolve(level.seed, weight=weight)))


def test_part_that_another_rank_broadcasts_is_caught() -> None:
    level = forest(collc.topology(ODD["slow cable"]), "allreduce")
    assert level is not None
    weight = level.seed.weight.astype(np.int64)
    own = np.flatnonzero(~level.stays & (level.seed.inward == 0))
    first, other = own[0], own[np.flatnonzero(level.seed.root[own] != level.seed.root[own[0]])[0]]
    weight[first] += 1
    weight[other] -= 1
    found = wrong(attrs.evolve(level, seed=attrs.evolve(level.seed, weight=weight)))
    assert "but broadcast from rank" in found


def test_allgathers_of_large_clusters_are_moved_by_the_rotation() -> None:
    topology = collc.topology("without(dgx_a100(46), {gpu[3, 5]})")  # 367 ranks: more than 2^17 edges
    for kind, expected in (("allgather", True), ("allreduce", False)):
        problem = Problem(topology, Collective(kind, topology.num_ranks))
        found = template(ForestScheduler(), problem)
        assert (found is not None) == expected
        if found is not None:
            trees = ForestScheduler(template=False).run(problem)
            fewer = ForestScheduler(k="fewest").run(problem)
            assert cost(found).time_per_byte == cost(trees).time_per_byte == cost(fewer).time_per_byte
