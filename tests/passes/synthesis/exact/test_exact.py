"""The exact scheduler: known optima, brute force on tiny networks, bounds before searches, and honest answers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import ceil
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sampling import every, examples
from strategies import complete, connected, hypercube, regular, star, torus, uniring

from collc.frontends.coll.families.searched import diamond
from collc.ir.collective import KINDS, ROOTED, Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.exact import search
from collc.passes.synthesis.exact.demand import Demand
from collc.passes.synthesis.exact.model import Answer, Question
from collc.passes.synthesis.exact.scheduler import Exact, Point, pareto, scheduled
from collc.passes.synthesis.exact.schedules import Arrivals, rounds_of
from collc.passes.synthesis.exact.search import Found, Limits, least_rounds


def problem(t: Topology, kind: str = "allgather") -> Problem:
    return Problem(t, Collective(kind, t.num_ranks, root=0 if kind in ROOTED else None))


def exact(t: Topology, kind: str = "allgather", **options: Any) -> Schedule:
    schedule = Exact(**options).run(problem(t, kind))
    assert verify_schedule(schedule).ok
    assert schedule.collective.kind == kind and schedule.topology == t
    return schedule


def costs(s: Schedule) -> tuple[int, Fraction | None]:
    return cost(s).T_L, cost(s).T_B


def biring(ranks: int) -> Topology:
    return attrs.evolve(torus(ranks), name="biring")


# ---- known optima

OPTIMAL = [
    (biring(5), 2), (biring(6), 3), (complete(2), 1), (complete(5), 1), (torus(2, 2), 2), (hypercube(3), 3),
    (torus(3, 3), 2), (torus(4, 3), 3), (uniring(5), 4), (uniring(4, 2), 3),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
@pytest.mark.parametrize(("topology", "steps"), OPTIMAL, ids=lambda x: getattr(x, "name", x))
def test_optimal_in_both_coordinates(topology: Topology, steps: int, kind: str) -> None:
    phases, n = 2 if kind == "allreduce" else 1, topology.num_ranks
    schedule = exact(topology, kind, proof=True)
    assert costs(schedule) == (phases * steps, phases * Fraction(n - 1, n))
    assert schedule.scheduler == "exact"


def test_a_front_of_two_points() -> None:
    """Breadth first on a 3x2 torus wastes one of its parallel links; a third step uses it."""
    points = pareto(problem(torus(3, 2)))
    assert [(p.steps, p.rounds, p.chunks, p.proved) for p in points] == [(2, 6, 4, True), (3, 5, 4, True)]
    assert [p.time_per_byte for p in points] == [Fraction(1, 4), Fraction(5, 24)]
    assert [p.reason for p in points] == [
        "exhaustive search",
        "bandwidth: links into rank 0: 5 shards over 4 link units",
    ]
    assert all(verify_schedule(p.schedule).ok for p in points)


def test_objectives_pick_the_ends_of_the_front() -> None:
    assert costs(exact(torus(3, 2))) == (2, 1)
    assert costs(exact(torus(3, 2), objective="bandwidth")) == (3, Fraction(5, 6))
    assert costs(exact(torus(3, 2), steps=3)) == (3, Fraction(5, 6))
    assert costs(exact(hypercube(3), steps=5)) == (3, Fraction(7, 8))
    assert costs(exact(torus(3, 2), chunks=4, rounds=5)) == (3, Fraction(5, 6))
    assert costs(exact(torus(3, 2), chunks=4, rounds=6)) == (2, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_every_collective(kind: str) -> None:
    for t in (complete(4), biring(4), Topology.from_links("tail", 3, [(0, 1), (1, 0), (1, 2), (2, 1), (0, 1)])):
        schedule = exact(t, kind)
        assert schedule.parts >= 1 and schedule.scheduler == "exact"


def test_gather_on_a_complete_network_takes_one_step() -> None:
    assert costs(exact(complete(4), "gather")) == (1, Fraction(3, 4))
    assert costs(exact(complete(4), "alltoall")) == (1, Fraction(3, 4))


def test_a_broadcast_in_pieces() -> None:
    """Three pieces of the vector, one to each neighbour, then exchanged: 2 rounds of a third instead of a whole one."""
    assert costs(exact(complete(4), "broadcast")) == (1, 3)
    assert costs(exact(complete(4), "broadcast", chunks=3, steps=2)) == (2, 2)
    assert costs(exact(complete(4), "reduce", chunks=3, steps=2)) == (2, 2)


def test_wide_links_carry_more() -> None:
    wide, narrow = LinkClass(Fraction(50)), LinkClass(Fraction(25))
    links = [(0, 1, wide), (1, 0, wide), (1, 2, narrow), (2, 1, narrow), (2, 0, narrow), (0, 2, narrow)]
    t = Topology.from_links("unlike", 3, links, unit="B/s")
    schedule = exact(t, objective="bandwidth", chunks=2)
    assert cost(schedule).time_per_byte == cost(schedule).time_per_byte_bound == Fraction(2, 3 * 50)


def test_one_rank_has_nothing_to_do() -> None:
    assert len(exact(Topology("one", 1, [0], [0]))) == 0
    assert pareto(problem(Topology("one", 1, [], []))) == []


def test_an_irregular_network_meets_its_cut() -> None:
    """Three ranks behind one: all that a leaf gets comes through its one link."""
    hub = Topology.from_links("hub", 4, [(0, k) for k in (1, 2, 3)] + [(k, 0) for k in (1, 2, 3)])
    schedule = exact(hub, proof=True)
    assert (cost(schedule).T_L, cost(schedule).bw_optimal) == (2, True)


def test_same_schedule_every_time() -> None:
    assert exact(torus(3, 2), steps=3) == exact(torus(3, 2), steps=3)


@given(regular(max_ranks=5, max_degree=2))
@settings(max_examples=examples(15))
def test_never_worse_than_breadth_first(t: Topology) -> None:
    schedule = Exact(chunks=2).run(problem(t))
    assert verify_schedule(schedule).ok
    first = cost(BFB().run(problem(t)))
    if 2 % first.parts == 0:
        assert cost(schedule).T_L == first.T_L and cost(schedule).time_per_byte <= first.time_per_byte


# ---- brute force


def brute_force(t: Topology, chunks: int, steps: int) -> int:
    """The fewest rounds of an allgather of whole chunks in so many steps, over all that ranks could ever receive."""
    n = t.num_ranks
    everything = frozenset(product(range(n), range(chunks)))
    inward = [[int(t.src[k]) for k in np.flatnonzero((t.dst == r) & (t.src != r))] for r in range(n)]

    @cache
    def receipts(has: tuple[frozenset[Any], ...], rank: int, rounds: int) -> list[frozenset[Any]]:
        """The largest sets that a rank can have after a step of so many rounds."""
        sets = {has[rank]}
        for tail in inward[rank]:
            grown = set()
            for mine in sets:
                new = sorted(has[tail] - mine)
                grown |= {mine | set(taken) for taken in combinations(new, min(rounds, len(new)))}
            sets = grown
        return [s for s in sets if not any(s < other for other in sets)]

    @cache
    def least(has: tuple[frozenset[Any], ...], left: int) -> float:
        if all(h == everything for h in has):
            return 0
        if left == 0:
            return float("inf")
        best = float("inf")
        for rounds in range(1, n * chunks):
            if rounds >= best:
                break
            for after in product(*(receipts(has, rank, rounds) for rank in range(n))):
                best = min(best, rounds + least(after, left - 1))
        return best

    return int(least(tuple(frozenset((r, c) for c in range(chunks)) for r in range(n)), steps))


@pytest.mark.slow
@given(connected(2, 3, 4), st.integers(1, 2), st.integers(0, 2))
@settings(max_examples=examples(40))
def test_brute_force_on_tiny_networks(t: Topology, chunks: int, more: int) -> None:
    check_against_brute_force(t, chunks, more)


@given(connected(4, 4, 3), st.integers(0, 1))
@settings(max_examples=examples(15))
def test_brute_force_on_four_ranks(t: Topology, more: int) -> None:
    check_against_brute_force(t, 1, more)


def check_against_brute_force(t: Topology, chunks: int, more: int) -> None:
    assume(t.num_ranks > 1)
    demand = Demand.of(t, Collective("allgather", t.num_ranks))
    steps = demand.steps_bound + more
    found = least_rounds(demand, steps, chunks, Limits())
    assert found.proved and found.rounds == brute_force(t, chunks, steps)


def test_brute_force_on_what_breadth_first_misses() -> None:
    demand = Demand.of(torus(2, 2), Collective("allgather", 4))
    assert brute_force(torus(2, 2), 1, 2) == least_rounds(demand, 2, 1, Limits()).rounds == 2


# ---- mistakes, and what is answered without a search


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("the solver was asked")

    monkeypatch.setattr(search, "solve", fail)


def refusal(work: Callable[[], Any], code: str, status: int = 3) -> str:
    with pytest.raises(CollcError) as caught:
        work()
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, caught.value.exit_status) == (code, status)
    return " ".join([diagnostic.message, *diagnostic.notes, diagnostic.hint or ""])


def test_bounds_answer_without_a_search(no_solver: None) -> None:
    assert "rank 3 is 3 hops from rank 0" in refusal(lambda: exact(biring(6), steps=2), "C0536")
    text = refusal(lambda: exact(biring(6), chunks=2, rounds=4), "C0536")
    assert "5 rounds are needed" in text and "links into rank 0" in text
    assert "the diameter" in refusal(lambda: exact(biring(6), "broadcast", chunks=2, rounds=2), "C0536")
    assert costs(exact(hypercube(3))) == (3, Fraction(7, 8))  # breadth first meets the bound


def test_a_search_shows_that_there_is_none() -> None:
    assert "exhaustive search" in refusal(lambda: exact(torus(3, 2), chunks=4, rounds=5, steps=2), "C0536")


def test_too_large(no_solver: None) -> None:
    big = Topology("big", 400, np.repeat(np.arange(400), 2), (2 * np.arange(400)[:, None] + [0, 1]).ravel() % 400)
    assert "20000" in refusal(lambda: exact(big), "C0535")
    assert "limit is 50" in refusal(lambda: exact(attrs.evolve(torus(3, 2), symmetry=None), size_limit=50), "C0535")
    refusal(lambda: exact(hypercube(7), "alltoall"), "C0535")
    refusal(lambda: pareto(problem(big)), "C0535")


def test_a_gap_is_told() -> None:
    """With programs of a coarser cut only, what is found is not proved."""
    plain = attrs.evolve(torus(3, 2), symmetry=None)
    limits = {"chunks": 4, "size_limit": 250}
    assert exact(plain, **limits).scheduler == "exact (not proved: 6 rounds, at least 5)"
    assert "6 rounds, at least 5" in refusal(lambda: exact(plain, proof=True, **limits), "C0537")
    assert "without a proof" in refusal(lambda: exact(plain, rounds=5, steps=2, **limits), "C0540")


def test_only_the_whole_program_proves_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of symmetric schedules or coarse pieces may miss what the one of all chunks finds."""
    demand, asked, real = Demand.of(torus(3, 2), Collective("allgather", 6)), [], search.solve

    def misses(demand: Demand, ask: Question, *limits: Any) -> Answer:
        asked.append((ask.types, ask.folded))
        whole = ask.types == 4 and not ask.folded
        return real(demand, ask, *limits) if whole else Answer("infeasible", None, None, 0)

    monkeypatch.setattr(search, "solve", misses)
    found = least_rounds(demand, 3, 4, Limits())
    assert (found.rounds, found.proved) == (5, True)
    assert asked == [(1, True), (2, True), (4, True), (1, False), (2, False), (4, False)]


def rounds_taken(schedule: Schedule, chunks: int) -> int:
    """The rounds of a schedule on links that are alike: by step, the most chunks on a link.

    A broadcast cuts the vector in chunks, of which every shard has its share.
    """
    load: dict[tuple[int, int], Fraction] = {}
    cut = schedule.parts * (schedule.collective.num_shards if schedule.collective.kind == "broadcast" else 1)
    for step, link, lo, hi in zip(
        schedule.step.tolist(), schedule.route.tolist(), schedule.lo.tolist(), schedule.hi.tolist(), strict=True
    ):
        load[step, link] = load.get((step, link), Fraction(0)) + Fraction((hi - lo) * chunks, cut)
    steps = {step for step, _ in load}
    return sum(ceil(max(amount for (at, _), amount in load.items() if at == step)) for step in steps)


LIMITED = [(torus(3, 2), 4), (biring(5), 2), (biring(4), 3), (hypercube(3), 3), (uniring(4), 2), (diamond(), 2)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce", "broadcast", "gather"])
@pytest.mark.parametrize(("topology", "chunks"), LIMITED, ids=lambda x: getattr(x, "name", x))
def test_no_limit_is_exceeded(topology: Topology, chunks: int, kind: str) -> None:
    """Of an allreduce both phases count together; what is fewer than possible is an error."""
    free = rounds_taken(exact(topology, kind, chunks=chunks), chunks)
    for rounds in every(2, range(max(1, free - 4), free + 3)):
        try:
            assert rounds_taken(exact(topology, kind, chunks=chunks, rounds=rounds), chunks) <= rounds
        except CollcError as problem:
            assert problem.diagnostics[0].code in ("C0536", "C0540") and rounds < free
            assert "rounds are needed" in str(problem.diagnostics[0].notes)
    fewest = cost(exact(topology, kind, chunks=chunks)).T_L
    for steps in every(2, range(1, fewest + 3)):
        try:
            assert cost(exact(topology, kind, chunks=chunks, steps=steps)).T_L <= steps
        except CollcError as problem:
            assert problem.diagnostics[0].code == "C0536" and steps < fewest


def test_both_phases_of_an_allreduce_share_a_limit() -> None:
    """Each phase of diamond takes 7 rounds in 3 steps, so 14 are enough and 13 are not."""
    schedule = exact(diamond(), "allreduce", chunks=2, rounds=14)
    assert (rounds_taken(schedule, 2), cost(schedule).T_L) == (14, 6)
    assert "at least 14 rounds are needed in both" in refusal(
        lambda: exact(diamond(), "allreduce", chunks=2, rounds=13), "C0536"
    )
    assert "6 in both phases" in refusal(lambda: exact(diamond(), "allreduce", steps=5), "C0536")


def test_phases_trade_steps_for_rounds() -> None:
    """A phase on a 3x2 torus takes 6 rounds in 2 steps or 5 in 3: 11 rounds take 5 steps."""
    found = [cost(exact(torus(3, 2), "allreduce", chunks=4, rounds=n)) for n in (10, 11, 12)]
    assert [(c.T_L, c.T_B) for c in found] == [(6, Fraction(5, 3)), (5, Fraction(11, 6)), (4, 2)]


# ---- effort


@pytest.mark.slow
def test_all_searches_share_one_budget() -> None:
    """When it is used up the best found is returned, with its gap; where nothing was found that is an error."""
    cube = hypercube(4)
    limits = Limits(effort=1)
    first = least_rounds(Demand.of(cube, Collective("broadcast", 16, root=0)), 4, 4, limits)
    assert limits.left < search._WORK and first.least <= (first.rounds or 99)
    limits.left = 0
    after = least_rounds(Demand.of(cube, Collective("broadcast", 16, root=0)), 4, 4, limits)
    assert (after.arrivals, after.impossible) == (None, False)
    assert "not proved" in exact(cube, "broadcast", effort=1).scheduler


def test_a_later_number_of_chunks_that_fails_takes_nothing_away(monkeypatch: pytest.MonkeyPatch) -> None:
    real = search.solve

    def once(demand: Demand, ask: Question, *limits: Any) -> Answer:
        monkeypatch.setattr(search, "solve", lambda *_: Answer("stopped", None, None, 0))
        return real(demand, ask, *limits)

    monkeypatch.setattr(search, "solve", once)
    assert exact(torus(3, 2), "alltoall").parts >= 1


def test_options_that_cannot_be() -> None:
    for options in ({"chunks": 0}, {"steps": 0}, {"objective": "speed"}, {"rounds": 3}, {"effort": 0}):
        refusal(lambda options=options: exact(biring(4), **options), "C0538", 1)
    refusal(lambda: pareto(problem(biring(4), "allreduce")), "C0538", 1)
    refusal(lambda: pareto(problem(biring(4)), chunks=0), "C0538", 1)


def test_networks_that_cannot_be() -> None:
    refusal(lambda: exact(star(3)), "C0539")
    refusal(lambda: exact(Topology("apart", 2, [0], [1])), "C0301", 1)


# ---- what the solver says is not believed


def test_arrivals_from_nowhere_are_seen() -> None:
    demand = Demand.of(biring(4), Collective("allgather", 4))
    step = demand.topology.distances.astype(np.int64)
    assert rounds_of(demand, Arrivals(1, 2, step)) == [2, 1]
    with pytest.raises(ValueError, match="from no other rank"):
        rounds_of(demand, Arrivals(1, 2, np.where(step == 2, 1, step)))


def test_a_wrong_schedule_is_an_internal_error() -> None:
    step = biring(4).distances.astype(np.int64)
    lacking = Arrivals(1, 2, np.where(step == 2, -1, step))
    with pytest.raises(AssertionError, match="wrong"):
        scheduled(problem(biring(4)), lambda _: Found(1, 2, 2, lacking, 2, ""))


def test_a_point_that_is_not_proved() -> None:
    point = Point(2, 6, 4, Fraction(1, 4), 5, "", exact(biring(4)))
    assert not point.proved
