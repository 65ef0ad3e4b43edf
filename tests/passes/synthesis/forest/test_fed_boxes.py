"""Boxes that data enter more than once: templates as fast as trees grown one by one, and no higher."""

from __future__ import annotations

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
from collc.ir.spec import Problem
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.synthesis.forest.fed_boxes import fed_box, fed_seed
from collc.passes.synthesis.forest.halves import joined_halves
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.passes.synthesis.forest.template import template

pytestmark = pytest.mark.quick


def problem(topology: Topology, kind: str = "allgather") -> Problem:
    return Problem(topology, Collective(kind, topology.num_ranks))


def fed(topology: Topology, k: int | None = None) -> SymmetricForest | None:
    found = fed_seed(topology, k)
    return None if found is None else SymmetricForest(joined_halves(problem(topology), [found[0]], False), found[1])


NETWORKS = (
    "clustered(circulant(9, {1, 2}), 6, 1)", "clustered(torus(3, 3), 5, 1)", "clustered(mesh(3, 3), 4, 2)",
    "clustered(biring(5), 6, 1, 3)", "clustered(torus(3, 3), 6, 1, 2, 2)", "fat_tree(4)", "fat_tree(6)",
    "fat_tree(8, 2)", "leaf_spine(6, 4, 2)", "leaf_spine(6, 4, 4, 2)", "dgx_a100(4, 8)",
)  # fmt: skip


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
def test_template_is_as_fast_and_no_higher_than_what_is_grown(network: str, kind: str) -> None:
    asked = problem(collc.topology(network), kind)
    found, grown = template(ForestScheduler(), asked, least=0), ForestScheduler().grow(asked)
    if found is None:  # other shares of the vector than equal ones are faster
        assert kind == "allreduce" and "mesh" in network
        return
    assert verify(found).ok and cost(found) == cost(found.unfold())
    assert cost(found).time_per_byte == cost(grown).time_per_byte
    assert max(found.heights) <= max(grown.heights)


@st.composite
def clusters(draw: st.DrawFn) -> str:
    """Boxes of a ring or a path, with and without a switch, whose ranks have different links to one or two fabrics."""
    boxes, gpus = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    widths = draw(st.lists(st.integers(1, 4), min_size=gpus, max_size=gpus))
    outer = draw(st.lists(st.integers(0, 3), min_size=gpus, max_size=gpus).filter(any))
    lines = [f"link gpu[b, {g}] <-> gpu[b, {g + 1}] : {widths[g]} GB/s;" for g in range(gpus - 1)]
    lines += [f"link gpu[b, {gpus - 1}] <-> gpu[b, 0] : {widths[-1]} GB/s;"] * (gpus > 2 and draw(st.booleans()))
    rails = draw(st.integers(1, 2))
    lines += [f"link gpu[b, {g}] <-> ib[{g % rails}] : {width} GB/s;" for g, width in enumerate(outer) if width]
    if draw(st.booleans()):
        lines += [f"link gpu[b, {g}] <-> nv[b] : 1 GB/s;" for g in range(gpus)]
    switches = f"nv[{boxes}], " if "nv[b]" in " ".join(lines) else ""
    used = rails if all(any(outer[rail::rails]) for rail in range(rails)) else 0
    lines = lines if used else [line.replace("ib[1]", "ib[0]") for line in lines]
    body = "\n    ".join(lines)
    return f"""
topology net {{
  rank gpu[{boxes}, {gpus}];
  switch {switches}ib[{max(used, 1)}];
  for b in 0..{boxes} {{
    {body}
  }}
}}
"""


@given(clusters(), st.sampled_from((None, 1, 2, 3)))
@settings(max_examples=examples(25), deadline=None)
def test_any_number_of_trees_is_as_fast_as_grown_ones(text: str, k: int | None) -> None:
    topology = load("net.coll", text=text).topologies["net"]
    found = fed(topology, k)
    if found is None:
        return
    assert verify(found).ok and verify(found.unfold()).ok
    grown = ForestScheduler(k="optimal" if k is None else k).grow(problem(topology))
    assert cost(found).time_per_byte == cost(grown).time_per_byte


@pytest.mark.parametrize("network", ["fat_tree(4)", "clustered(biring(5), 4, 1)"])
def test_planted_faults_are_found(network: str) -> None:
    found = fed(collc.topology(network))
    assert found is not None and verify(found).ok
    seed = found.seed
    parent = seed.parent.copy()
    crossing = np.flatnonzero(
        seed.topology.dst[seed.routes.links[seed.routes.start[seed.route]]] >= found.topology.num_ranks
    )
    parent[crossing[0]] = (parent[crossing[0]] + 1) % found.topology.num_ranks
    weight = seed.weight.copy()
    weight[0] += 1
    for broken in (attrs.evolve(seed, parent=parent), attrs.evolve(seed, weight=weight)):
        assert not verify(attrs.evolve(found, seed=broken)).ok
    rows = np.arange(len(seed.tree) - 1)
    columns = {name: getattr(seed, name)[rows] for name in ("tree", "parent", "child", "route")}
    assert not verify(attrs.evolve(found, seed=attrs.evolve(seed, **columns))).ok


def test_boxes_of_a_fat_tree_are_its_pods() -> None:
    box = fed_box(collc.topology("fat_tree(6)"))
    assert box is not None
    assert (box.count, box.num_ranks, box.network.num_switches) == (6, 9, 6)


@pytest.mark.parametrize("network", ["dragonfly(2, 4, 2)", "without(fat_tree(4), {host[0, 0, 0]})", "torus(4, 4)"])
def test_other_networks_have_none(network: str) -> None:
    assert fed_seed(collc.topology(network)) is None


LARGE = {"clustered(circulant(9, {1, 2}), 60, 1)": 5, "fat_tree(12)": 2, "clustered(mesh(4, 4), 24, 1)": 7}


@pytest.mark.parametrize("network", LARGE)
def test_large_network_is_scheduled_as_a_template(network: str) -> None:
    found = ForestScheduler().run(problem(collc.topology(network)))
    assert isinstance(found, SymmetricForest)
    assert cost(found).bound_met and verify(found).ok
    assert max(found.heights) <= LARGE[network]
