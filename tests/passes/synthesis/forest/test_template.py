"""Forests of symmetric networks as templates: the same as trees grown one by one, or as good."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.backends.simulator import simulate
from collc.frontends.coll import load
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.passes.synthesis.forest.template import template

pytestmark = pytest.mark.quick
KINDS = ("allgather", "reduce-scatter", "allreduce")


def problem(topology: Topology, kind: str = "allgather") -> Problem:
    return Problem(topology, Collective(kind, topology.num_ranks))


CAYLEY = (
    "torus(3, 4)", "torus(2, 3)", "torus(3, 3, 2)", "hypercube(3)", "biring(7)", "complete(5)", "circulant(9, {1, 2})",
    "cayley(dihedral(4), {1, 2, 6})", "generalized_kautz(2, 6)",
)  # fmt: skip


@given(st.sampled_from(CAYLEY), st.sampled_from(KINDS))
@settings(max_examples=examples(12), deadline=None)
def test_unfolded_template_of_a_cayley_network_is_what_is_grown(network: str, kind: str) -> None:
    asked = problem(collc.topology(network), kind)
    scheduler = ForestScheduler()
    found = template(scheduler, asked, least=0)
    if found is not None:
        assert found.unfold() == scheduler.grow(asked)


@st.composite
def clusters(draw: st.DrawFn) -> str:
    """A cluster of boxes that are alike: rings, complete or switched boxes, on one fabric or on rails."""
    boxes, gpus = draw(st.integers(2, 5)), draw(st.integers(2, 4))
    inner, outer = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    rails = draw(st.sampled_from(("ib[0]", "ib[g]", "ib[g mod 2]")))
    inside = draw(st.sampled_from((
        "link gpu[b, g] <-> nv[b] : {inner} GB/s;",
        "for h in g+1..{gpus} {{ link gpu[b, g] <-> gpu[b, h] : {inner} GB/s; }}",
    ))).format(inner=inner, gpus=gpus)  # fmt: skip
    switches = f"nv[{boxes}], " if "nv" in inside else ""
    number = {"ib[0]": 1, "ib[g]": gpus, "ib[g mod 2]": 2}[rails]
    return f"""
topology net {{
  rank gpu[{boxes}, {gpus}];
  switch {switches}ib[{number}];
  for b in 0..{boxes}, g in 0..{gpus} {{
    {inside}
    link gpu[b, g] <-> {rails} : {outer} GB/s;
  }}
}}
"""


@given(clusters(), st.sampled_from(KINDS))
@settings(max_examples=examples(15), deadline=None)
def test_template_of_boxes_is_as_fast_as_what_is_grown(text: str, kind: str) -> None:
    asked = problem(load("net.coll", text=text).topologies["net"], kind)
    scheduler = ForestScheduler()
    found = template(scheduler, asked, least=0)
    if found is None:
        return
    whole = found.unfold()
    assert verify(found).ok and verify(whole).ok
    assert cost(found) == cost(whole)
    grown = cost(scheduler.grow(asked))
    assert found is not None and cost(found).time_per_byte == grown.time_per_byte


@pytest.mark.parametrize("network", ["mi250(6)", "dgx_a100(4)", "dgx_h100(6, 8)", "mi300x(9)", "torus(4, 4)"])
def test_networks_that_have_a_template(network: str) -> None:
    asked = problem(collc.topology(network))
    found = template(ForestScheduler(), asked, least=0)
    assert found is not None
    assert cost(found).bound_met


UNLIKE = (
    "subset(dgx_a100(3), {0..23})", "degraded(dgx_a100(3), {gpu[0, 1]}, 1/2)", "generalized_kautz(3, 10)",
    "jellyfish(10, 3)",
)  # fmt: skip


@pytest.mark.parametrize("network", UNLIKE)
def test_networks_without_a_group_have_none(network: str) -> None:
    assert template(ForestScheduler(unbalanced=True), problem(collc.topology(network)), least=0) is None


def test_box_that_differs_has_no_template() -> None:
    topology = collc.topology("dgx_a100(4)")
    kind = topology.link_class.tolist()
    other = topology.link_class.tolist()
    other[0] = other[1] = 1 - kind[0]
    changed = attrs.evolve(topology, link_class=other)
    assert template(ForestScheduler(unbalanced=True), problem(changed), least=0) is None


def test_small_networks_and_other_numbers_of_trees_have_none() -> None:
    asked = problem(collc.topology("torus(4, 4)"))
    assert template(ForestScheduler(), asked) is None
    assert template(ForestScheduler(k=2), asked, least=0) is None
    assert template(ForestScheduler(via="reduce"), problem(asked.topology, "allreduce"), least=0) is None


@pytest.mark.parametrize("network", ["torus(3, 3)", "dgx_a100(3)"])
@pytest.mark.parametrize("kind", KINDS)
def test_template_is_compiled_as_its_trees_are(network: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.passes.synthesis.forest.template.LEAST_EDGES", 0)
    source = f"collective c = {kind} on {network}; schedule c using forest; emit c as msccl-xml; emit c as mpi-c;"
    result = collc.compile_source(source)["c"]
    found = template(ForestScheduler(), problem(collc.topology(network), kind))
    assert found is not None and result.forest is not None
    whole = result.forest.unfold() if isinstance(result.forest, SymmetricForest) else result.forest
    assert whole == attrs.evolve(found.unfold(), pieces=whole.pieces)
    assert all(report.ok for report in result.reports) and len(result.artifacts) >= 2


def test_template_is_simulated_as_its_trees_are() -> None:
    found = template(ForestScheduler(), problem(collc.topology("dgx_a100(3)")), least=0)
    assert found is not None
    assert simulate(found).time(1 << 20) == simulate(found.unfold()).time(1 << 20)


def test_large_network_is_scheduled_as_a_template() -> None:
    found = ForestScheduler(pieces=1).run(problem(collc.topology("dgx_a100(128)")))
    assert isinstance(found, SymmetricForest)
    assert len(found.seed.tree) == 8 * 1023
    assert cost(found).bound_met and verify(found).ok


@pytest.mark.parametrize("k", [1, 2])
def test_any_number_of_trees_may_be_a_template(k: int) -> None:
    asked = problem(collc.topology("clustered(biring(5), 4, 1)"))
    found = ForestScheduler(k=k, template=True, pieces=1).run(asked)
    assert isinstance(found, SymmetricForest) and found.parts == k
    listed = ForestScheduler(k=k, pieces=1).run(asked)
    assert isinstance(listed, Forest) and cost(found).time_per_byte == cost(listed).time_per_byte


def test_template_is_listed_if_the_option_says_so() -> None:
    asked = problem(collc.topology("dgx_a100(48)"))
    found, listed = (ForestScheduler(template=option, pieces=1).run(asked) for option in (None, False))
    assert isinstance(found, SymmetricForest) and isinstance(listed, Forest)
    assert listed == found.unfold()


def test_a_template_of_a_network_without_a_group_is_remarked() -> None:
    source = "collective g = allgather on kautz(2, 2); schedule g using forest { template: true };"
    result = collc.compile_source(source, target="mpi-c")["g"]
    assert isinstance(result.forest, Forest)
    assert any("no template, because collc knows no group of `kautz(2, 2)`" in one for one in result.remarks)
