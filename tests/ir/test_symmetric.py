"""Schedules as template and group: what is said of the template is true of the schedule that it unfolds to."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import generalized_kautz
from sampling import examples
from strategies import families, topologies

import collc
from collc.ir.codes import CODES
from collc.ir.collective import Collective
from collc.ir.connectivity import without_route
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.group import Group, parse_group
from collc.ir.schedule import Action, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SYMMETRIC_KINDS, TEMPLATE_KINDS, SymmetricSchedule
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import LinkClass, Topology
from collc.ir.validate import structure
from collc.ir.verify import verify, verify_schedule
from collc.ir.verify.connections import carried
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.reverse import Reverse
from collc.passes.schedule.step_times import time_per_byte
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.flow.scheduler import Flow

GROUPS = (
    "cyclic(7)", "abelian(2, 6)", "dihedral(5)", "dicyclic(3)", "metacyclic(7, 3, 2)", "symmetric(3)", "symmetric(4)",
    "alternating(4)", "direct(symmetric(3), cyclic(2))", "semidirect(abelian(2, 2), 3, 0, 1, 1, 1)",
)  # fmt: skip


def cayley(group: Group, generators: list[int], classes: tuple[LinkClass, ...] = (LinkClass(),)) -> Topology:
    """The Cayley digraph: a link from every x to x*g for each generator, which may repeat and be the identity."""
    n, d = group.order, len(generators)
    heads = group.multiply(np.arange(n)[:, None], np.array(generators)[None, :])
    kinds = np.tile(np.arange(d) % len(classes), n)
    return Topology(
        "cayley", n, np.repeat(np.arange(n), d), heads.ravel(), link_class=kinds, classes=classes, symmetry=group
    )


@st.composite
def cayley_digraphs(draw: st.DrawFn, unlike: bool = False) -> Topology:
    """A strongly connected Cayley digraph of an abelian or non-abelian group, one way or both."""
    group = parse_group(draw(st.sampled_from(GROUPS)))
    some = draw(st.lists(st.integers(0, group.order - 1), min_size=1, max_size=4))
    if draw(st.booleans()):
        some += [int(x) for x in group.inverse(np.array(some))]
    classes = (LinkClass(), LinkClass(2, 1)) if unlike else (LinkClass(),)
    topology = cayley(group, some, classes)
    missing = np.flatnonzero(topology.hops_from(0) < 0)
    while len(missing):  # with more generators everything is reached
        some.append(int(missing[0]))
        topology = cayley(group, some, classes)
        missing = np.flatnonzero(topology.hops_from(0) < 0)
    return topology


def symmetric_networks() -> st.SearchStrategy[Topology]:
    return families() | cayley_digraphs()


def template(topology: Topology, kind: str = "allgather", **options: object) -> SymmetricSchedule:
    """What BFB, of an all-to-all `flow`, makes before it decides whether to write it out."""
    if kind == "alltoall":
        found = Flow(template=True).run(Problem(topology, Collective(kind, topology.num_ranks)))
        assert isinstance(found, SymmetricSchedule)
        return found
    made = BFB(**options)._scheduled(topology, Collective(kind, topology.num_ranks))
    assert isinstance(made, SymmetricSchedule)
    return made


def plain(topology: Topology, kind: str = "allgather") -> Schedule:
    """BFB without the symmetry: every receiver solved for itself."""
    made = BFB().run(Problem(attrs.evolve(topology, symmetry=None), Collective(kind, topology.num_ranks)))
    assert isinstance(made, Schedule)
    return made


kinds = st.sampled_from(SYMMETRIC_KINDS)
every_kind = st.sampled_from(TEMPLATE_KINDS)


# ---- unfolding


@given(symmetric_networks(), kinds)
@settings(max_examples=examples(60))
def test_the_unfolded_schedule_is_right_and_costs_what_plain_bfb_costs(topology, kind):
    """One receiver's solution serves all: same steps, same bandwidth time as solving every receiver (LP (1))."""
    found = template(topology, kind, relax=False).unfold()
    assert verify_schedule(found).failed == ()
    expected = cost(plain(topology, kind))
    assert (expected.T_L, expected.time_per_byte) == (cost(found).T_L, cost(found).time_per_byte)


@given(symmetric_networks() | cayley_digraphs(unlike=True), every_kind)
@settings(max_examples=examples(60))
def test_a_template_costs_what_it_unfolds_to(topology, kind):
    """All of Cost, exactly; with relaxed schedules and links of two kinds among them."""
    seed = template(topology, kind)
    assert cost(seed.unfold()) == cost(seed)
    assert (len(seed.unfold()), seed.unfold().num_steps) == (len(seed), seed.num_steps)


@given(symmetric_networks())
@settings(max_examples=examples(40))
def test_a_template_of_an_all_to_all_is_the_schedule_of_one_rank_s_data(topology):
    """Unfolded it is, row by row, what `flow` writes out, and right; the shards are those of rank 0."""
    problem = Problem(topology, Collective("alltoall", topology.num_ranks))
    found = template(topology, "alltoall")
    whole = Flow(template=False).run(problem)
    assert isinstance(whole, Schedule)
    assert found.unfold() == whole
    assert verify_schedule(found).failed == verify_schedule(whole).failed == ()
    assert (found.seed.shard < topology.num_ranks).all()


@pytest.mark.slow
@given(symmetric_networks())
def test_unfolding_multiplies_every_row_by_every_element(topology):
    """Row by row, with plain loops: rank r -> g*r, shard 0 -> shard g, link (r, place) -> (g*r, place)."""
    found, group, d = template(topology), topology.symmetry, topology.num_links // topology.num_ranks
    expected = []
    for i in range(len(found.seed)):
        tail, place = divmod(int(found.seed.route[i]), d)
        for g in range(group.order):
            link = int(group.multiply(g, tail)) * d + place
            expected.append((found.seed.step[i], g, link, found.seed.lo[i], found.seed.hi[i]))
    rows = found.unfold()
    assert sorted(expected) == sorted(zip(rows.step, rows.shard, rows.route, rows.lo, rows.hi, strict=True))
    assert (np.diff(rows.step.astype(int) * group.order + rows.dst) >= 0).all()  # by step, then by receiver


@given(symmetric_networks(), kinds)
@settings(max_examples=examples(40))
def test_reversing_and_unfolding_commute(topology, kind):
    """Row for row: the order of unfolded rows is by receivers of copies and senders of reductions."""
    if topology.reverse_links is not None:
        found = template(topology, kind)
        assert Reverse().run(found.unfold()) == Reverse().run(found).unfold()


@pytest.mark.slow
@given(symmetric_networks(), kinds)
@settings(max_examples=examples(40))
def test_discretizing_and_unfolding_commute(topology, kind):
    found = template(topology, kind)
    assert Discretize().run(found.unfold()) == Discretize().run(found).unfold()
    assert Discretize().run(found).discrete
    rounded, listed = (Discretize(max_chunks=1).run(level) for level in (found, found.unfold()))
    assert time_per_byte(rounded) <= time_per_byte(listed)
    assert verify(rounded).ok


def test_too_many_rows_are_refused_before_any_is_made():
    """C0808 says how many there are and what does without them."""
    found = template(collc.topology("torus(100, 100)"))
    with pytest.raises(CollcError, match="C0808") as caught:
        found.unfold()
    first = caught.value.diagnostics[0]
    assert first.code in CODES and "100040000 transfers" in first.message and "collc cost" in first.notes[0]
    assert 72 == len(template(collc.topology("torus(3, 3)")).unfold(most=72))


# ---- verification of untrusted templates


def outcome(level: Schedule | SymmetricSchedule) -> list[str]:
    return [check.name for check in verify_schedule(level).failed]


def changed(seed: Schedule, **columns: object) -> SymmetricSchedule:
    return SymmetricSchedule(attrs.evolve(seed, **columns))


@given(symmetric_networks(), every_kind, st.data())
@settings(max_examples=examples(60))
def test_faults_in_the_seed_are_found_as_they_are_in_the_whole(topology, kind, data):
    """One fault is planted in a row of the seed; template and unfolded schedule fail alike, or are right alike."""
    seed = template(topology, kind).seed
    if not len(seed):
        return
    row = data.draw(st.integers(0, len(seed) - 1), label="row")
    others = np.arange(len(seed)) != row
    rows = np.arange(len(seed))
    faulty = data.draw(st.sampled_from(["drop", "double", "link", "action", "earlier", "interval"]), label="fault")
    match faulty:
        case "drop":
            bad = SymmetricSchedule(seed.rows(others))
            assert outcome(bad) in (["causality"], ["postcondition"])
        case "double":
            bad = SymmetricSchedule(seed.rows(np.sort(np.append(rows, row))))
            assert outcome(bad) == (["single reduction"] if seed.action[row] == Action.REDUCE else outcome(bad))
        case "link":
            link = data.draw(st.integers(0, topology.num_links - 1), label="link")
            bad = changed(seed, route=np.where(others, seed.route.astype(int), link))
        case "action":
            bad = changed(seed, action=np.where(others, seed.action, 1 - seed.action))
            assert outcome(bad)
        case "earlier":
            step = np.where(others, seed.step, 0)
            order = np.argsort(step, kind="stable")
            bad = SymmetricSchedule(attrs.evolve(seed, step=step).rows(order))
        case _:
            bad = changed(seed, parts=seed.parts * 2)
            assert outcome(bad)
    assert outcome(bad) == outcome(bad.unfold())


@pytest.mark.parametrize("unfold", [False, True])
def test_reductions_are_executed_in_windows_of_atoms(monkeypatch, unfold):
    """Memory for one atom of one shard at a time: the verdict is the same, on right schedules and wrong ones."""
    good = template(collc.topology("torus(4, 4)"), "allreduce")
    last = good.seed.rows(np.arange(len(good.seed) - 1))  # some part of the last shard never arrives
    wrong = SymmetricSchedule(last)
    assert good.parts > 1
    levels = [x.unfold() if unfold else x for x in (good, wrong)]
    assert [[], ["postcondition"]] == [outcome(x) for x in levels]
    monkeypatch.setattr("collc.ir.verify.schedule._BLOCK_BYTES", 1)
    assert [[], ["postcondition"]] == [outcome(x) for x in levels]


def test_verification_says_what_was_executed():
    """The report counts all transfers and names the group that makes them of the template's."""
    report = verify(template(collc.topology("torus(3, 3)"), "allreduce"))
    assert report.ok and report.ranks == 9
    assert report.checks[0].detail == ("144 transfers in 4 steps, from the 16 of shard 0 by the symmetry abelian(3, 3)")


def test_a_template_that_is_none_is_not_well_formed():
    """Every condition of the form has a message; a symmetry that does not hold is found in the topology."""
    pairs = template(collc.topology("torus(3, 3)"), "alltoall").seed
    assert "it moves shard 9, not one of 0 to 8" in structure(changed(pairs, shard=np.full(len(pairs), 9)))[0]
    good = template(collc.topology("torus(3, 3)"))
    seed, topology = good.seed, good.topology
    assert structure(good) == []
    assert "transfer 0: it moves shard 1, not shard 0" in structure(changed(seed, shard=seed.shard + 1))[0]
    assert (
        "needs a topology with a symmetry"
        in structure(changed(seed, topology=attrs.evolve(topology, symmetry=None)))[0]
    )
    assert "not of `broadcast`" in structure(changed(seed, collective=Collective("broadcast", 9, root=0)))[0]
    other = Routes.of([[k] for k in range(topology.num_links)][:-1])
    assert "routes of a template are its links" in " ".join(
        structure(changed(seed.rows(seed.route < 35), routes=other))
    )
    turned = attrs.evolve(topology, dst=np.roll(topology.dst, 1))
    assert "does not map link" in structure(changed(seed, topology=turned))[0]
    assert verify(changed(seed, topology=turned)).failed[0].name == "structure"


# ---- text


@given(symmetric_networks(), every_kind)
@settings(max_examples=examples(40))
def test_templates_are_printed_and_read_back(topology, kind):
    found = template(topology, kind)
    text = print_ir(found)
    assert parse_ir(text) == found and print_ir(parse_ir(text)) == text


def test_what_is_wrong_in_a_printed_template_gets_its_line():
    text = print_ir(template(collc.topology("uniring(3)")))
    for wrong, right, code in (
        ("0 copy 1 0 1 0 0 1", "0 copy 0 0 1 0 0 1", "C0806"),
        ("0 copy 0 0 1 0 0 2", "0 copy 0 0 1 0 0 1", "C0806"),
        ("abelian(4)", "abelian(3)", "C0806"),
        ("collective gather ranks 3 root 0", "collective allgather ranks 3", "C0806"),
    ):
        assert right in text
        with pytest.raises(CollcError, match=code) as caught:
            parse_ir(text.replace(right, wrong))
        assert caught.value.diagnostics[0].span is not None


# ---- the pipeline


LARGE = "topology t = {}; collective g = {} on t; schedule g using bfb;"


@pytest.mark.slow
@pytest.mark.parametrize("kind", SYMMETRIC_KINDS)
def test_large_symmetric_networks_stay_templates(kind):
    """Rows, not seconds: 10^8 transfers are known by 10^4, and nothing of N x N is made on the way."""
    result = collc.compile_source(LARGE.format("torus(100, 100)", kind), passes="bfb")
    made = result.schedule
    phases = 2 if kind == "allreduce" else 1
    assert isinstance(made, SymmetricSchedule)
    assert (len(made), len(made.seed)) == (phases * 100_040_000, phases * 10_004)
    assert result.cost.bw_optimal and result.cost.T_L == phases * 100
    assert {"diameter", "out_links"} == _computed(made.topology)
    assert all(column.nbytes <= 4 * len(made.seed) for column in (getattr(made.seed, c) for c in Schedule.COLUMNS))


@pytest.mark.slow
def test_a_large_all_to_all_stays_a_template():
    """1,024 ranks: 17 million transfers, of which those of one rank's data are kept, and lowered."""
    compiled = collc.compile_source("collective g = alltoall on torus(32, 32);", target="mpi-c")
    result = compiled["g"]
    made = result.schedule
    assert isinstance(made, SymmetricSchedule) and made.scheduler == "flow"
    assert len(made) == 1024 * len(made.seed) > 16_000_000
    assert all(report.ok for report in result.reports)
    assert result.cost.T_L == 32 and 1 < result.cost.T_B / result.cost.T_B_bound < Fraction(1001, 1000)
    assert sum(len(file.content) for file in compiled.files.values()) < 2_000_000


def _computed(topology: Topology) -> set[str]:
    """Which of the cached properties were used."""
    return {"distances", "diameter", "out_links"}.intersection(vars(topology))


def test_small_ones_are_written_out():
    assert isinstance(collc.compile_source(LARGE.format("torus(8, 8)", "allreduce"), passes="bfb").schedule, Schedule)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["allgather", "allreduce"])
def test_lowering_a_template_writes_it_out(monkeypatch, kind):
    """Files of a template list all ranks, and move the same chunks; those of an allreduce are numbered anew."""
    text = LARGE.format("torus(3, 4)", kind)
    expected = collc.compile_source(text, target="msccl-xml").program
    monkeypatch.setattr("collc.passes.synthesis.breadth_first.bfb.MOST_LISTED", 0)
    found = collc.compile_source(text, target="msccl-xml")
    assert isinstance(collc.compile_source(text).schedule, SymmetricSchedule)
    assert verify(found.program).ok
    one, other = carried(found.program), carried(expected)
    assert one.pair.tolist() == other.pair.tolist() and one.amount.tolist() == other.amount.tolist()
    again = collc.compile_source(print_ir(found.schedule), target="msccl-xml").artifacts
    assert [a.text.replace("string", "g") for a in again.values()] != []


# ---- distances


@given(symmetric_networks())
def test_rank_0_knows_the_distances_of_all(topology):
    """Diameter, connection and the sum of hops from one search equal those of the whole matrix."""
    whole = attrs.evolve(topology, symmetry=None)
    assert (whole.diameter, whole.is_connected, whole.total_hops) == (
        topology.diameter, topology.is_connected, topology.total_hops,
    )  # fmt: skip
    for rank in range(topology.num_ranks):
        assert (whole.distances[rank] == topology.hops_from(rank)).all()
        assert (whole.distances[:, rank] == topology.hops_to(rank)).all()


def test_hops_count_parts_that_are_not_reached():
    path = Topology.from_links("path", 3, [(0, 1), (1, 2)])
    assert ([0, 1, 2], [-1, 0, 1]) == (path.hops_from(0).tolist(), path.hops_from(1).tolist())
    assert [2, 1, 0] == path.hops_to(2).tolist()
    assert not path.is_connected and path.diameter is None
    two = cayley(parse_group("cyclic(4)"), [2])
    assert not two.is_connected and two.diameter is None


def test_networks_without_symmetry_are_scheduled_as_before():
    """Generalized Kautz graphs have no regular symmetry; their rows are as narrow as what they hold."""
    made = BFB().run(Problem(generalized_kautz(3, 40), Collective("allgather", 40)))
    assert isinstance(made, Schedule) and verify(made).ok
    assert {made.shard.dtype.name, made.route.dtype.name, made.step.dtype.name} == {"uint8"}


@given(topologies(max_switches=1, max_links=10))
def test_the_two_ranks_named_are_the_first_without_a_path(topology):
    """Two searches find the pair that the whole matrix shows first."""
    n = topology.num_ranks
    missing = np.argwhere(topology.distances[:n, :n] < 0)
    assert topology.is_connected == (len(missing) == 0)
    if len(missing):
        rank, others = without_route(topology)
        assert [rank] * len(others) == missing[: len(others), 0].tolist()
        assert others == missing[missing[:, 0] == rank, 1].tolist()


@pytest.mark.parametrize(("kind", "scheduler"), [("allgather", "bfb"), ("alltoall", "flow")])
def test_a_template_of_a_network_without_a_group_is_remarked(kind, scheduler):
    source = f"collective g = {kind} on kautz(2, 2); schedule g using {scheduler} {{ template: true }};"
    result = collc.compile_source(source, target="mpi-c")["g"]
    assert isinstance(result.schedule, Schedule)
    assert any("no template, because collc knows no group of `kautz(2, 2)`" in one for one in result.remarks)
