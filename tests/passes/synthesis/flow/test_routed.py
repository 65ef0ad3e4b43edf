"""All-to-all, gather and scatter by routes: as fast as LP (3) and cuts allow, on networks with and without switches."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
from cut_nets import switched
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.graph.isomorphism import orbits
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify, verify_schedule
from collc.passes.base import remarks
from collc.passes.synthesis.flow import quotient, rate, scheduler
from collc.passes.synthesis.flow.classes import Classes
from collc.passes.synthesis.flow.quotient import best_flows
from collc.passes.synthesis.flow.rate import alltoall_rate, capacities
from collc.passes.synthesis.flow.routed import routed
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.one_box import template_of

NETWORKS = (
    "dgx_a100(1)", "dgx_a100(2)", "dgx_a100(4, 2)", "dgx_h100(2, 8)", "mi250(2)", "fat_tree(4)", "fat_tree(4, 2)",
    "leaf_spine(3, 4, 2, 2)", "dragonfly(2, 3, 1)", "clustered(torus(3, 3), 2, 1/4)", "hammingmesh(2, 2, 2, 2)",
    "without(dgx_a100(2), {5})", "degraded(dgx_a100(2), {0 <-> nv[0]}, 1/2)",
)  # fmt: skip


def scheduled(network: Topology, kind: str, root: int | None = None, **options: int) -> Schedule:
    schedule = Flow(**options).run(Problem(network, Collective(kind, network.num_ranks, root=root)))
    report = verify_schedule(schedule)
    assert report.ok, report
    assert schedule.num_steps == 1
    return schedule


def per_shard(schedule: Schedule) -> Fraction:
    """Return the time of an all-to-all in the units of 1/f: of one shard over the narrowest link."""
    network = schedule.topology
    least = min(network.bandwidth(link) for link in np.flatnonzero(network.src != network.dst).tolist())
    return cost(schedule).time_per_byte * network.num_ranks * least


@pytest.mark.parametrize("expression", NETWORKS)
def test_an_alltoall_takes_the_time_of_the_linear_program(expression: str) -> None:
    network = topology(expression)
    known = alltoall_rate(network)
    found = per_shard(scheduled(network, "alltoall"))
    assert 1 / known.upper <= found <= 1 / known.lower
    assert found * known.upper <= 1 + Fraction(1, 10**4)


@pytest.mark.parametrize(
    ("expression", "time"),
    [
        ("dgx_a100(1)", Fraction(7, 8 * 300)),
        ("dgx_a100(2)", Fraction(1, 2 * 25)),
        ("dgx_a100(16)", Fraction(15, 16 * 25)),
        ("dgx_h100(3, 8)", Fraction(2, 3 * 50)),
        ("leaf_spine(2, 4, 2)", Fraction(7, 8) * 10**9),
        ("leaf_spine(2, 4, 2, 2)", Fraction(10**9)),
    ],
)
def test_closed_cases(expression: str, time: Fraction) -> None:
    """One box: (N-1)/N M over its switch; n boxes: (n-1)/n M over a rank's share of the fabric, in GB/s."""
    assert cost(scheduled(topology(expression), "alltoall")).time_per_byte == time / 10**9


@pytest.mark.parametrize("kind", ["gather", "scatter"])
@pytest.mark.parametrize("expression", [*NETWORKS, "torus(3, 4)", "mesh(3, 3)", "kautz(2, 2)", "hypercube(4)"])
def test_gather_and_scatter_meet_their_cut_bound(expression: str, kind: str) -> None:
    network = topology(expression)
    found = cost(scheduled(network, kind, network.num_ranks // 2))
    assert found.bound_met and found.time_per_byte == found.bound.value


@settings(max_examples=examples(40), deadline=None)
@given(switched())
def test_random_networks(network: Topology) -> None:
    """Also without switches, where `flow` schedules an all-to-all in several steps."""
    known = alltoall_rate(network)
    found = routed(Problem(network, Collective("alltoall", network.num_ranks)))
    assert verify_schedule(found).ok
    assert 1 / known.upper <= per_shard(found) <= 1 / known.lower * Fraction(1001, 1000)
    for kind in ("gather", "scatter"):
        assert cost(scheduled(network, kind, 0)).bound_met


@settings(max_examples=examples(40), deadline=None)
@given(switched())
def test_classes_are_equitable_and_no_finer_than_orbits(network: Topology) -> None:
    classes = Classes.of(network, np.arange(network.num_ranks))
    seen: dict[int, object] = {}
    for source in range(network.num_ranks):
        for node in range(network.num_nodes):
            around = tuple(
                tuple(sorted(classes.flow[source, np.flatnonzero(ends == node)].tolist()))
                for ends in (network.src, network.dst)
            )
            assert seen.setdefault(int(classes.node[source, node]), around) == around
    _, link_orbit = orbits(network)
    for orbit in np.unique(link_orbit):
        assert len(np.unique(classes.link[link_orbit == orbit])) == 1


def test_without_elimination_the_flow_is_near_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotient, "_MOST_EXACT", 0)
    network = topology("mi250(2)")
    flows = best_flows(network, np.arange(network.num_ranks), capacities(network))
    assert not flows.exact
    found = per_shard(scheduled(network, "alltoall"))
    assert 16 <= found <= 16 * Fraction(1001, 1000)


@pytest.mark.parametrize("chunks", [1, 2, 5])
def test_few_chunks_are_still_right(chunks: int) -> None:
    network = topology("clustered(torus(3, 3), 2, 1/4)")
    found = scheduled(network, "alltoall", chunks=chunks)
    assert found.parts <= chunks
    assert 9 <= per_shard(found) <= 9 * Fraction(2)


def test_routes_only_lead_where_data_are_needed() -> None:
    """A gather needs routes to the root only."""
    one_way = Topology.from_links("in", 3, [(1, 0, LinkClass()), (2, 3, LinkClass()), (3, 1, LinkClass())], 1)
    assert cost(scheduled(one_way, "gather", 0)).bound_met
    with pytest.raises(CollcError, match=r"C0301"):
        scheduled(one_way, "scatter", 0)
    with pytest.raises(CollcError, match=r"C0301"):
        scheduled(one_way, "alltoall")


@pytest.mark.parametrize("options", [{"steps": 2}, {"thorough": True}])
def test_options_of_several_steps_do_not_apply(options: dict[str, int]) -> None:
    with pytest.raises(CollcError, match="C0564"):
        scheduled(topology("dgx_a100(1)"), "alltoall", **options)
    with pytest.raises(CollcError, match="C0564"):
        scheduled(topology("torus(3)"), "gather", 0, **options)


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from collc.passes.synthesis.flow import scheduler

    monkeypatch.setattr(scheduler, "_MOST_PAIRS", 100)
    with pytest.raises(CollcError, match="C0563"):
        scheduled(topology("dgx_a100(1)"), "alltoall")


def test_classes_that_are_not_alike_must_not_be_one() -> None:
    """A planted fault: links that are not alike share a class, so their flows are equal, which takes longer."""
    network = topology("dgx_a100(2)")
    classes = Classes.of(network, np.arange(network.num_ranks))
    times = []
    for other in range(1, 10):
        merged = attrs.evolve(classes, flow=np.where(classes.flow == other, 0, classes.flow))
        found = quotient._solved(quotient._program(network, merged, capacities(network)), None).exact
        times.append(Fraction(10**9) if found is None else found[-1])
    assert min(times) >= 8 and max(times) > 8


def test_cheapest_paths_may_close_the_bracket() -> None:
    network = topology("mi250(2)")
    bracket, found = rate.quick_bracket(network), rate._by_classes(network)
    assert bracket is not None and bracket.exact
    assert found is not None and found.exact and found.lower == bracket.lower


@pytest.mark.parametrize("expression", ["without(dgx_a100(4, 2), {3, 9})"])
def test_the_bound_is_exact_where_classes_are_few(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cheapest paths leave a bracket; prices of the classes' program close it, and a wrong price is refused."""
    network = topology(expression)
    bracket = rate.quick_bracket(network)
    assert bracket is not None and not bracket.exact
    found = rate._by_classes(network)
    assert found is not None and found.exact and bracket.lower <= found.lower <= bracket.upper
    bound = rate.alltoall_bound(network)
    assert bound is not None and bound.value == bound.above and bound.name == "LP (3)"
    monkeypatch.setattr(rate, "best_prices", lambda *_: [1] * network.num_links)
    assert rate._by_classes(network) is None


def test_a_transfer_less_or_on_another_route_is_found() -> None:
    schedule = scheduled(topology("dgx_a100(2)"), "alltoall")
    kept = np.arange(len(schedule)) != 7
    assert not verify_schedule(schedule.rows(kept)).ok
    route = schedule.route.astype(np.int64)
    route[3] = route[4]
    assert not verify_schedule(attrs.evolve(schedule, route=route)).ok


# ---- templates of boxes that are alike

ALIKE = (
    "dgx_a100(3)",
    "dgx_h100(2, 8)",
    "mi250(2)",
    "leaf_spine(4, 4, 2)",
    "fat_tree(4)",
    "clustered(torus(3, 3), 3, 1)",
)


@pytest.mark.parametrize("expression", ALIKE)
def test_a_template_is_the_schedule_of_all_ranks(expression: str) -> None:
    problem = Problem(topology(expression), Collective("alltoall", topology(expression).num_ranks))
    listed, template = Flow(template=False).run(problem), Flow(template=True).run(problem)
    assert isinstance(listed, Schedule) and isinstance(template, SymmetricSchedule)
    assert template.unfold() == listed and len(template.seed) * template.order == len(listed)
    assert verify(template).ok and cost(template) == cost(listed)


def test_boxes_of_long_schedules_are_moved_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(topology("dgx_a100(3)"), Collective("alltoall", 24))
    assert isinstance(Flow().run(problem), Schedule)
    monkeypatch.setattr(scheduler, "MOST_LISTED", 24 * 23 - 1)
    assert isinstance(Flow().run(problem), SymmetricSchedule)


@pytest.mark.parametrize(
    "expression", ["hammingmesh(2, 2, 2, 2)", "without(dgx_a100(3), {5})", "degraded(dgx_a100(3), {0 <-> nv[0]}, 1/2)"]
)
def test_boxes_that_differ_are_not_moved(expression: str) -> None:
    network = topology(expression)
    problem = Problem(network, Collective("alltoall", network.num_ranks))
    with remarks() as told:
        found = Flow(template=True).run(problem)
    assert isinstance(found, Schedule)
    assert told == [f"flow: no template, because collc knows no rotation of the boxes of `{network.name}`"]


@given(st.integers(0, 24 * 23 - 1), st.sampled_from(["hi", "route", "shard"]))
def test_a_transfer_unlike_its_images_is_found(row: int, name: str) -> None:
    schedule = scheduled(topology("dgx_a100(3)"), "alltoall")
    column = getattr(schedule, name).astype(np.int64)
    column[row] = column[row] + 1 if name == "hi" else column[row - 1]
    changed = attrs.evolve(schedule, parts=schedule.parts + (name == "hi"), **{name: column})
    assert template_of(schedule) is not None and template_of(changed) is None


def test_a_template_of_other_shards_is_refused() -> None:
    template = template_of(scheduled(topology("dgx_a100(3)"), "alltoall"))
    assert template is not None and verify(template).ok
    beyond = attrs.evolve(template.seed, shard=template.seed.shard.astype(np.int64) + 24 * 8)
    (failed,) = verify(attrs.evolve(template, seed=beyond)).failed
    assert "not one of 0 to 191" in failed.detail
