"""All-to-all schedules from flows: they verify, lower, run in place, and reach the rate up to their pieces' size."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import circulant, de_bruijn, generalized_kautz, one_way_ring
from sampling import every, examples
from strategies import complete, connected, families, hypercube, regular, torus, translations, uniring

import collc
from collc.driver.resolving import solver_of
from collc.frontends.coll.families.cayley import complete_bipartite
from collc.frontends.coll.families.grids import mesh
from collc.frontends.coll.families.operators import line, product
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.group import Metacyclic, Translations
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Origin, Topology
from collc.ir.verify import verify_program, verify_schedule
from collc.passes.base import solving
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.discretize import Discretize, round_parts
from collc.passes.synthesis.flow import scheduler
from collc.passes.synthesis.flow.action import free_action
from collc.passes.synthesis.flow.expanded import Expanded
from collc.passes.synthesis.flow.mixing import best_mix
from collc.passes.synthesis.flow.rate import alltoall_rate, capacities
from collc.passes.synthesis.flow.rounding import excess, round_mix
from collc.passes.synthesis.flow.scheduler import Flow


def flow(topology: Topology, **options: int | bool) -> Schedule:
    schedule = Flow(**options).run(Problem(topology, Collective("alltoall", topology.num_ranks)))
    report = verify_schedule(schedule)
    assert report.ok, report
    return schedule


def time(schedule: Schedule) -> Fraction:
    """The bandwidth time of a schedule in the units of 1/f: for one shard, over the narrowest link."""
    topology = schedule.topology
    least = min(topology.classes[c].bandwidth for c in topology.link_class[topology.src != topology.dst].tolist())
    return cost(schedule).time_per_byte * topology.num_ranks * least


def line_of(base: Topology) -> Topology:
    """A line graph that knows what it was built from, as those of the language do."""
    return attrs.evolve(line(base), origin=Origin("line", (base,)))


# ---- vertex-transitive networks reach the rate


@pytest.mark.slow
@pytest.mark.parametrize(
    "topology",
    [
        torus(4, 4), torus(3, 5), torus(3, 3, 2), torus(2, 4), hypercube(3), hypercube(4), complete(5), uniring(6),
        uniring(4, 2), complete_bipartite(4), product(uniring(3), uniring(4)),
        translations([11], [[2], [3], [-2]], "11"),
        translations([16], [[3], [4], [-3], [-4]], "C(16, {3, 4})"),
    ],
    ids=lambda topology: topology.name,
)  # fmt: skip
def test_the_rate_is_reached_in_as_many_steps_as_the_diameter(topology: Topology) -> None:
    schedule, rate = flow(topology, chunks=5), alltoall_rate(topology)
    assert rate.exact
    assert schedule.num_steps == topology.diameter
    assert time(schedule) == 1 / rate.lower
    degree = int(np.count_nonzero(topology.src == 0))
    assert cost(schedule).T_B == Fraction(degree, topology.num_ranks) / rate.lower


@pytest.mark.slow
@settings(max_examples=examples(15))
@given(
    st.sampled_from([Metacyclic(7, 3, 2), Metacyclic(5, 4, 2), Metacyclic(9, 2, -1), Metacyclic(20, 1, 1)]),
    st.lists(st.integers(1, 1000), min_size=2, max_size=4), st.integers(1, 4),
)  # fmt: skip
def test_cayley_digraphs_come_within_the_chunking_bound(group: Metacyclic, numbers: list[int], chunks: int) -> None:
    generators = np.array([1 + x % (group.order - 1) for x in numbers])
    heads = group.multiply(np.arange(group.order)[:, None], generators)
    ranks = np.repeat(np.arange(group.order), len(generators))
    topology = Topology("cayley", group.order, ranks, heads.ravel(), symmetry=group)
    if not topology.is_connected:
        return
    schedule, least = flow(topology, chunks=chunks), 1 / alltoall_rate(topology).lower
    steps = schedule.num_steps
    assert schedule.parts <= chunks and steps <= (topology.diameter or 0) + 4
    expanded = Expanded.moved(topology, free_action(topology), capacities(topology), steps)
    program = Fraction(best_mix(expanded, float(least)).time).limit_denominator(10**6)
    assert least <= time(schedule) <= program + excess(expanded, chunks)


@settings(max_examples=examples(15))
@given(families(), st.integers(1, 4))
def test_rounding_costs_no_more_than_its_bound(topology: Topology, parts: int) -> None:
    expanded = Expanded.moved(topology, free_action(topology), capacities(topology), (topology.diameter or 0) + 1)
    target = 1 / alltoall_rate(topology).lower
    mix = best_mix(expanded, float(target))
    pieces = round_mix(mix, parts, target)
    assert target <= pieces.time <= Fraction(mix.time).limit_denominator(10**6) + excess(expanded, parts)
    sums = np.bincount(pieces.commodity, weights=pieces.units)
    assert (sums == pieces.parts).all() and pieces.parts <= parts
    assert pieces.time == expanded.time(expanded.loads(pieces.paths, pieces.units)) / pieces.parts


# ---- any network


@pytest.mark.slow
@settings(max_examples=examples(12))
@given(st.one_of(connected(min_ranks=1, max_ranks=6), regular()))
def test_any_strongly_connected_network(topology: Topology) -> None:
    schedule = flow(topology)
    if topology.num_ranks > 1:
        assert time(schedule) >= 1 / alltoall_rate(topology).upper
    assert verify_program(Lower().run(Discretize().run(schedule))).ok


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topology", "over"),
    [
        (generalized_kautz(3, 10), 1), (de_bruijn(2, 3), 1), (de_bruijn(2, 4), 1), (one_way_ring(5), 1),
        (circulant(9, 2), 1), (mesh(2, 3), 1), (line_of(torus(3, 3)), 1), (generalized_kautz(2, 12), Fraction(11, 10)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_networks_without_a_regular_group(topology: Topology, over: Fraction) -> None:
    assert time(flow(topology)) <= over / alltoall_rate(topology).lower


@pytest.mark.slow
def test_links_that_differ() -> None:
    kinds = (LinkClass(Fraction(1)), LinkClass(Fraction(3, 2)))
    wide = attrs.evolve(torus(3, 4), link_class=[0, 1, 0, 1] * 12, classes=kinds)
    plain = attrs.evolve(generalized_kautz(2, 6), link_class=[0, 1] * 6, classes=kinds)
    for topology in (wide, plain):
        schedule, rate = flow(topology), alltoall_rate(topology)
        assert 1 / rate.lower <= time(schedule) <= Fraction(5, 4) / rate.lower


@pytest.mark.slow
def test_large_networks_get_one_path_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with a group, and all others if a shard may not be divided."""
    monkeypatch.setattr(scheduler, "_PROGRAM", 0)
    monkeypatch.setattr(scheduler, "_QUICK_PROGRAM", 0)
    for topology in (torus(4, 4), line_of(torus(3, 3)), generalized_kautz(3, 30), mesh(3, 3)):
        schedule = flow(topology) if free_action(topology).group.order > 1 else flow(topology, chunks=1)
        assert schedule.parts == 1
        assert time(schedule) <= 2 / alltoall_rate(topology).lower
    assert len(flow(torus(4, 4), steps=6)) >= int(torus(4, 4).distances.sum())


# ---- the schedule


def test_programs_run_in_place_and_out_of_place() -> None:
    """A shard leaves its source before the one that comes back could overwrite it."""
    for topology in (torus(4, 4), hypercube(3), mesh(3, 2), de_bruijn(2, 3)):
        assert verify_program(Lower().run(Discretize().run(flow(topology)))).ok


def test_leaving_late_is_staged() -> None:
    """On a ring of 3 the shard from 0 to 1 arrives before the one from 1 to 0 has left: in place that needs a copy."""
    ring = translations([3], [[1], [-1]], "ring")
    rows = [(0, s * 3 + t, 2 * s + (0 if t == (s + 1) % 3 else 1)) for s, t in ((0, 1), (0, 2), (1, 2), (2, 0), (2, 1))]
    rows.append((1, 1 * 3 + 0, 2 * 1 + 1))
    step, shard, route = zip(*rows, strict=True)
    zero, one = [0] * len(rows), [1] * len(rows)
    late = Schedule(
        ring, Collective("alltoall", 3), 1, step=step, action=zero, shard=shard, lo=zero, hi=one, route=route
    )
    assert verify_schedule(late).ok
    program = Lower().run(Discretize().run(late))
    assert verify_program(program, inplace=False).ok
    assert verify_program(program, inplace=True).ok
    assert program.scratch.tolist() == [0, 1, 0]


@settings(max_examples=examples(10))
@given(families())
def test_shards_leave_in_time(topology: Topology) -> None:
    """No shard leaves its source after the shard that comes back may have arrived."""
    s = flow(topology)
    source, target = np.divmod(s.shard.astype(np.int64), topology.num_ranks)
    leaving = s.src == source
    assert (s.step[leaving] < topology.distances[target[leaving], source[leaving]]).all()


def test_a_missing_transfer_is_found() -> None:
    schedule = flow(torus(3, 3))
    keep = np.ones(len(schedule), dtype=bool)
    keep[7] = False
    assert not verify_schedule(schedule.rows(keep)).ok


def test_steps_and_chunks_are_kept() -> None:
    topology = complete_bipartite(4)
    assert alltoall_rate(topology).value == Fraction(2, 5)
    assert [time(flow(topology, chunks=c)) for c in (1, 2, 4)] == [3, 3, Fraction(5, 2)]
    assert flow(topology, chunks=2).parts <= 2
    longer = flow(torus(3, 3), steps=4)
    assert longer.num_steps <= 4 and time(longer) == 3
    assert time(flow(torus(4, 5), thorough=True)) == 1 / alltoall_rate(torus(4, 5)).lower


SMALL = [
    *(f"circulant({n}, {{{a}, {b}}})"
      for n in range(5, 21) for a in range(1, n) for b in range(a + 1, (n + 1) // 2) if gcd(n, a, b) == 1),
    "torus(3, 2)", "torus(4, 3)", "torus(3, 3, 2)", "mesh(3, 3)", "mesh(2, 5)", "kautz(2, 1)", "kautz(2, 2)",
    "kautz(3, 1)", "kautz(2, 3)", "debruijn(3, 2)", "debruijn(2, 3)", "generalized_kautz(2, 7)",
    "generalized_kautz(3, 10)", "directed_circulant(10, {1, 4, 6})", "cayley(cyclic(7), {1, 3})", "line(complete(4))",
    "bidirectional(diamond())", "diamond()", "hypercube(3)", "shifted_ring(11)", "mesh(4, 5)", "twisted_torus(3, 6)",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("expression", every(60, SMALL, 57))
def test_no_number_of_pieces_beats_the_default(expression: str) -> None:
    topology = collc.topology(expression)
    chosen = flow(topology)
    for chunks in range(1, 13):
        given = flow(topology, chunks=chunks)
        assert chosen.num_steps <= given.num_steps
        assert time(chosen) <= time(given), (expression, chunks)


@pytest.mark.parametrize(
    ("expression", "pieces", "least"),
    [
        ("torus(3, 3)", 1, Fraction(3)), ("hypercube(3)", 2, Fraction(4)), ("shifted_ring(8)", 4, Fraction(5, 2)),
        ("circulant(12, {2, 3})", 6, Fraction(14, 3)), ("kautz(3, 1)", 5, Fraction(33, 5)),
        ("circulant(18, {2, 3})", 10, Fraction(89, 10)), ("circulant(8, {1, 2})", 12, Fraction(8, 3)),
        ("directed_circulant(10, {1, 4, 6})", 14, Fraction(40, 7)),
    ],
)  # fmt: skip
def test_as_many_pieces_as_the_rate_needs(expression: str, pieces: int, least: Fraction) -> None:
    """1/f is reached, in a number of pieces that its denominator divides."""
    topology = collc.topology(expression)
    schedule = flow(topology)
    assert (schedule.parts, time(schedule)) == (pieces, least)
    assert alltoall_rate(topology).lower <= 1 / least <= alltoall_rate(topology).upper
    assert (pieces * least).denominator == 1


def test_fewer_pieces_for_a_target_are_found_anew() -> None:
    """Where a target takes no more chunks: the best of so many, not six rounded to four."""
    topology = collc.topology("circulant(12, {2, 3})")
    exact = flow(topology)
    with solving(solver_of([Flow()], Problem(topology, exact.collective))):
        fewer = Discretize(max_chunks=4).run(exact)
    assert verify_schedule(fewer).ok and fewer.num_steps == exact.num_steps
    assert time(round_parts(exact, 4)) > time(fewer) == time(flow(topology, chunks=4)) == Fraction(19, 4)


def test_the_same_input_gives_the_same_schedule() -> None:
    for topology in (torus(4, 3), generalized_kautz(2, 7)):
        assert flow(topology) == flow(topology)


# ---- groups


def test_line_graphs_move_with_their_base() -> None:
    twice = line_of(line_of(torus(3, 3)))
    action = free_action(twice)
    assert action.group.order == 9 and (action.ranks, action.links) == (16, 64)
    ranks = np.arange(twice.num_ranks)
    for by in range(9):
        moved = action.move_ranks(ranks, np.array(by))
        links = action.move_links(np.arange(twice.num_links), np.array(by))
        assert np.array_equal(moved[twice.src], twice.src[links]) and np.array_equal(moved[twice.dst], twice.dst[links])


def test_a_group_that_does_not_act_is_not_believed() -> None:
    wrong = attrs.evolve(one_way_ring(6), symmetry=Translations((2, 3)))
    assert free_action(wrong).group.order == 1
    assert free_action(attrs.evolve(wrong, symmetry=Translations((6,)))).group.order == 6


# ---- the language, and errors


def test_the_language_knows_flow() -> None:
    text = "topology t = torus(3, 3); collective c = alltoall on t; schedule c using flow { chunks: 2 };"
    result = collc.compile_source(text, target="msccl-xml")
    assert result.schedule.scheduler == "flow"
    assert result.cost.T_B == Fraction(4, 9) * 3


def test_other_collectives_are_for_others() -> None:
    with pytest.raises(CollcError, match="C0503"):
        Flow().run(Problem(torus(3), Collective("allgather", 3)))


def test_fewer_steps_than_the_diameter() -> None:
    with pytest.raises(CollcError, match="C0561"):
        flow(uniring(4), steps=2)


@pytest.mark.parametrize("chunks", [0, 65])
def test_impossible_pieces(chunks: int) -> None:
    with pytest.raises(CollcError, match="C0562"):
        flow(uniring(4), chunks=chunks)


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_MOST_ROWS", 100)
    flow(torus(4, 4))  # a network with a group keeps the transfers of one rank's data
    with pytest.raises(CollcError, match="C0563"):
        flow(de_bruijn(2, 4))
    monkeypatch.setattr(scheduler, "_MOST_TEMPLATE", 20)
    with pytest.raises(CollcError, match="C0563"):
        flow(torus(4, 4))
