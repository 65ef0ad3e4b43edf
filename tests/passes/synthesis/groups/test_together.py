"""Groups that share links: fair parts, the bound of all together, and schedules that meet both."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import connected

import collc
from collc.ir.collective import ROOTED, Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.graph.members import inside
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes import PASSES
from collc.passes.synthesis.groups import division
from collc.passes.synthesis.groups import together as together_module
from collc.passes.synthesis.groups.classes import classes_of
from collc.passes.synthesis.groups.division import joint_bound
from collc.passes.synthesis.groups.relays import relays_of
from collc.passes.synthesis.groups.together import Together, planned, time_together, together

FOREST = PASSES.load("forest")()


@st.composite
def several(draw: st.DrawFn, kinds: Sequence[str] = ("allgather", "reduce-scatter")) -> list[Problem]:
    topology = draw(connected(3, 5, extra=6))
    n = topology.num_ranks
    found = []
    for _ in range(draw(st.integers(2, 3))):
        members = tuple(sorted(draw(st.sets(st.integers(0, n - 1), min_size=2))))
        kind, size = draw(st.sampled_from(kinds)), draw(st.sampled_from([60, 120, 180]))
        root = members[-1] if kind in ROOTED else None
        some = None if len(members) == n else members
        found.append(Problem(topology, Collective(kind, n, root, members=some, size=size)))
    return found


def by_flows(problems: Sequence[Problem]) -> float:
    """Return the least time of groups by cuts, as one program of flows: no orbits, no generated rows.

    Columns: parts of links by group, the rate, and a flow for each group and sink.
    """
    topology = problems[0].topology
    links, nodes = topology.num_links, topology.num_nodes
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    rows: list[tuple[dict[int, float], float, float]] = []
    columns, infinity = len(problems) * links + 1, highspy.kHighsInf
    rate = columns - 1
    for link in range(links):
        rows.append(({i * links + link: 1.0 for i in range(len(problems))}, -infinity, 1.0))
    for i, problem in enumerate(problems):
        collective = problem.collective
        members, back = collective.ranks.tolist(), collective.kind == "reduce-scatter"
        for sink in members:
            flow = columns
            columns += links
            balance: list[dict[int, float]] = [{} for _ in range(nodes)]
            for link, (a, b) in enumerate(ends):
                tail, head = (b, a) if back else (a, b)
                balance[tail][flow + link] = balance[tail].get(flow + link, 0.0) + 1.0
                balance[head][flow + link] = balance[head].get(flow + link, 0.0) - 1.0
                rows.append(({flow + link: 1.0, i * links + link: -1.0}, -infinity, 0.0))
            for node in range(nodes):
                if node != sink:
                    amount = (collective.size or 0) / len(members) if node in members else 0.0
                    rows.append(({**balance[node], rate: -amount}, 0.0, 0.0))
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.sense_ = columns, len(rows), highspy.ObjSense.kMaximize
    lp.col_cost_ = np.eye(1, columns, rate).ravel()
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, infinity)
    lp.row_lower_, lp.row_upper_ = np.array([low for _, low, _ in rows]), np.array([high for *_, high in rows])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(terms) for terms, *_ in rows)])
    lp.a_matrix_.index_ = np.array([column for terms, *_ in rows for column in terms])
    lp.a_matrix_.value_ = np.array([factor for terms, *_ in rows for factor in terms.values()])
    solver.passModel(lp)
    solver.run()
    return 1 / solver.getInfo().objective_function_value


def assert_fits(groups: Together) -> None:
    """The parts of all groups together are no more than any link has."""
    topology = groups.problems[0].topology
    for link in range(topology.num_links):
        used = sum((one.shares[link] for one in groups.problems if one.shares is not None), Fraction(0))
        assert used <= topology.bandwidth(link)


@settings(max_examples=examples(30), deadline=None)
@given(several())
def test_the_bound_is_that_of_flows_and_no_schedule_is_below_it(problems: list[Problem]) -> None:
    groups = together(problems)
    assert float(groups.bound.value) == pytest.approx(by_flows(problems), rel=1e-6)
    assert_fits(groups)
    levels = planned(groups, [FOREST] * len(problems))
    for level, problem, time in zip(levels, problems, groups.times, strict=True):
        assert verify(level).ok
        assert level.collective == problem.collective
        if time is not None:
            unbothered = cost(level).time_per_byte * (problem.collective.size or 0)
            assert unbothered <= time
    sizes = [problem.collective.size or 0 for problem in problems]
    assert time_together(levels, sizes)[0] >= groups.bound.value


@pytest.mark.slow
@settings(max_examples=examples(10), deadline=None)
@given(several(("allreduce", "broadcast", "gather", "alltoall")))
def test_every_kind_of_group_is_planned(problems: list[Problem]) -> None:
    groups = together(problems)
    assert_fits(groups)
    schedulers = [
        PASSES.load("flow")(chunks=24) if p.collective.kind in ("gather", "alltoall") else FOREST
        for p in groups.problems
    ]
    levels = planned(groups, schedulers)
    assert all(verify(level).ok for level in levels)
    sizes = [problem.collective.size or 0 for problem in problems]
    assert time_together(levels, sizes)[0] >= groups.bound.value


def test_an_uneven_alltoall_counts_what_it_sends() -> None:
    """Only rank 0 sends, to rank 2: half of the vector over two links of a ring of four."""
    ring = collc.topology("biring(4)")
    uneven = Collective("alltoall", 4, weights=(1, 0, 1, *[0] * 13), size=4)
    groups = together([Problem(ring, uneven), Problem(ring, Collective("allgather", 4, members=(0, 1), size=4))])
    assert groups.bound.value == 2  # 2 bytes of the first and 2 of the second leave rank 0 over two links
    levels = planned(groups, [PASSES.load("flow")(), FOREST])
    assert all(verify(level).ok for level in levels)
    assert time_together(levels, [4, 4])[0] >= groups.bound.value


def test_a_group_of_one_has_no_part() -> None:
    ring = collc.topology("biring(4)")
    problems = [Problem(ring, Collective("allgather", 4, members=m, size=4)) for m in ((0,), (0, 1, 2))]
    groups = together(problems)
    assert groups.times[0] is None
    assert groups.bound.value == together(problems[1:]).bound.value
    assert all(verify(level).ok for level in planned(groups, [FOREST, FOREST]))
    assert together(problems[:1]).bound.value == 0


def boxes(count: int, kind: str, inner: int, outer: int) -> list[Problem]:
    """Return tensor-parallel groups inside boxes, and data-parallel groups across them."""
    topology = collc.topology(f"dgx_h100({count})")
    n = 8 * count
    groups = [(tuple(range(8 * b, 8 * b + 8)), inner) for b in range(count)]
    groups += [(tuple(range(rail, n, 8)), outer) for rail in range(8)]
    return [Problem(topology, Collective(kind, n, members=members, size=size)) for members, size in groups]


@pytest.mark.parametrize("kind", ["allgather", "allreduce"])
@pytest.mark.parametrize("sizes", [(1 << 26, 1 << 26), (1 << 30, 1 << 20), (1 << 20, 1 << 30)])
def test_groups_inside_boxes_and_across_meet_the_bound(kind: str, sizes: tuple[int, int]) -> None:
    problems = boxes(4, kind, *sizes)
    groups = together(problems)
    levels = planned(groups, [FOREST] * len(problems))
    assert all(verify(level).ok for level in levels)
    assert time_together(levels, [p.collective.size or 0 for p in problems])[0] == groups.bound.value
    assert set(groups.same) == {0, 4}


def test_rates_are_fair_beyond_the_slowest_group() -> None:
    """The groups across wait for NICs; those inside finish as if alone on their NVLinks."""
    groups = together(boxes(4, "allgather", 1 << 26, 1 << 26))
    inner, outer = groups.times[0], groups.times[-1]
    assert inner == Fraction(7 * (1 << 26), 8 * 450 * 10**9)
    assert outer == Fraction(3 * (1 << 26), 4 * 50 * 10**9)


def test_groups_that_share_no_link_have_all_links() -> None:
    ring = collc.topology("biring(6)")
    problems = [Problem(ring, Collective("allgather", 6, members=m), "never") for m in ((0, 1, 2), (3, 4, 5))]
    groups = together(problems)
    assert groups.times == (None, None)
    assert groups.problems == tuple(problems)


def test_groups_that_share_links_divide_them() -> None:
    line = Topology.from_links("line", 4, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)])
    problems = [Problem(line, Collective("allgather", 4, members=m, size=4)) for m in ((0, 2), (1, 3))]
    groups = together(problems)
    assert groups.bound.value == 4  # link 1 -> 2 carries half of both
    levels = planned(groups, [FOREST, FOREST])
    assert time_together(levels, [4, 4])[0] == 4
    assert [relays_of(level) for level in levels] == [(1,), (2,)]
    assert {cut.group for cut in groups.bound.cuts} == {0}  # group 1 is its image


def test_relays_help_one_group_and_not_all_at_once() -> None:
    boxes_ = collc.topology("dgx_a100(2)")
    rails = [Problem(boxes_, Collective("allgather", 16, members=(g, g + 8), size=1 << 20)) for g in range(8)]
    alone = together(rails[:1])
    assert alone.bound.value * 8 == together(rails).bound.value
    levels = planned(together(rails), [FOREST] * 8)
    assert all(relays_of(level) == () for level in levels)


def test_a_bound_with_any_prices_is_below_the_optimum() -> None:
    """Fewer cuts, and so other prices, still prove a bound: the proof does not trust the program."""
    problems = boxes(2, "allgather", 1 << 30, 1 << 20)
    topology = problems[0].topology
    collectives = [problem.collective for problem in problems]
    networks = [inside(topology, one) for one in collectives]
    sizes = [Fraction(one.size or 0) for one in collectives]
    with_orbits = joint_bound(topology, networks, sizes, classes_of(topology, networks, collectives))
    assert with_orbits.value == together(problems).bound.value
    assert with_orbits.carried == with_orbits.value * with_orbits.paid


def test_large_programs_have_parts_in_proportion_and_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = boxes(2, "allgather", 1 << 30, 1 << 20)
    exact = together(problems).bound.value
    for module in (division, together_module):
        monkeypatch.setattr(module, "MOST_EXACT", 0)
    monkeypatch.setattr(together_module, "mixture", lambda *_: None)
    groups = together(problems)
    assert 0 < groups.bound.value <= exact
    assert groups.bound.value > exact * Fraction(999, 1000)
    assert_fits(groups)
    levels = planned(groups, [FOREST] * len(problems))
    assert all(verify(level).ok for level in levels)
    assert {time for time in groups.times if time is not None} == {groups.times[0]}


def test_a_program_without_an_exact_solution_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(division, "maximum", lambda *_: None)
    with pytest.raises(CollcError) as caught:
        together(boxes(2, "allgather", 1 << 20, 1 << 20))
    assert caught.value.diagnostics[0].code == "C0568"


def test_images_of_a_forest_are_forests_of_their_groups() -> None:
    problems = boxes(3, "allreduce", 1 << 20, 1 << 20)
    groups = together(problems)
    levels = planned(groups, [FOREST] * len(problems))
    for level, problem in zip(levels, problems, strict=True):
        assert isinstance(level, Forest)
        assert set(level.root.tolist()) == set(problem.collective.ranks.tolist())


def claims_hold(groups: Together) -> bool:
    """Return whether there are forests of all groups, as fast on their parts as the division says."""
    try:
        levels = planned(groups, [FOREST] * len(groups.problems))
    except CollcError:
        return False
    return all(
        time is None or cost(level).time_per_byte * (problem.collective.size or 0) <= time
        for level, problem, time in zip(levels, groups.problems, groups.times, strict=True)
    )


def test_a_cut_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two triangles with one link between them: no cut of a single rank is as tight as that of a triangle."""
    pairs = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)]
    net = Topology.from_links("dumbbell", 6, [*pairs, *((b, a) for a, b in pairs)])
    groups = [((0, 1, 2, 3, 4, 5), 6), ((1, 4), 2)]
    problems = [
        Problem(net, Collective("allgather", 6, members=m if len(m) < 6 else None, size=size)) for m, size in groups
    ]
    found = together(problems)
    assert claims_hold(found)
    assert found.bound.value == 4  # three shards of the first and one of the second
    monkeypatch.setattr(division._Joint, "violate", lambda *_: False)
    monkeypatch.setattr(together_module, "mixture", lambda *_: None)
    assert not claims_hold(together(problems))
