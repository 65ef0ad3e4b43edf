"""T_C, gamma and epsilon: Theorem 6 and Corollary 6.1 of the direct-connect paper, plain loops, the simulator."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import circulant, complete, hypercube, one_way_ring, torus
from sampling import examples

from collc.backends.simulator import program_traffic, simulate, traffic_of
from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.costs import reductions
from collc.ir.costs.cost import Cost, cost, predict, predicted_time
from collc.ir.costs.messages import Messages
from collc.ir.costs.pieces import best_pieces
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Action, Forest, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import Topology
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.registry.classes import pass_class

NETS = [torus(3, 3), torus(3, 2), hypercube(3), complete(5), circulant(8, 1, 3), one_way_ring(5)]
SECONDS = st.fractions(0, 1, max_denominator=10**6)


def bfb(topology: Topology, kind: str) -> Schedule | SymmetricSchedule:
    return BFB().run(Problem(topology, Collective(kind, topology.num_ranks)))


def slow(schedule: Schedule) -> Fraction:
    """The sum over steps of the most that a rank adds, transfer by transfer."""
    sums: dict[int, dict[int, Fraction]] = {}
    whole = schedule.parts * schedule.collective.num_ranks
    heads = schedule.routes.heads(schedule.topology)
    for row in range(len(schedule)):
        if schedule.action[row] == Action.REDUCE:
            step = sums.setdefault(int(schedule.step[row]), {})
            rank, amount = int(heads[schedule.route[row]]), int(schedule.hi[row]) - int(schedule.lo[row])
            step[rank] = step.get(rank, Fraction(0)) + Fraction(amount, whole)
    return sum((max(step.values()) for step in sums.values()), Fraction(0))


# ---- the paper


@given(strategies.regular(), st.sampled_from(["reduce-scatter", "allreduce"]))
@settings(max_examples=examples(60), deadline=None)
def test_theorem_6(topology: Topology, kind: str) -> None:
    """T_B = M/B y of a reduce-scatter: T_C <= M gamma y. An allreduce adds only in its first half.

    At least (N - 1)/N of M are added (section C.4), and with equality where T_B is optimal (Corollary 6.1).
    """
    found, least = cost(bfb(topology, kind)), 1 - Fraction(1, topology.num_ranks)
    scatter = cost(bfb(topology, "reduce-scatter"))
    assert scatter.T_B is not None and least <= found.reduced == scatter.reduced <= scatter.T_B
    if scatter.T_B == least:
        assert found.reduced == least


#: networks on which breadth-first allreduces have the least T_B
OPTIMAL = [torus(3, 3), torus(4, 4), hypercube(3), complete(5), one_way_ring(5)]
COSTS = [cost(bfb(net, "allreduce")) for net in OPTIMAL]


@given(st.sampled_from(COSTS), st.integers(0, 2**40), SECONDS, st.fractions(1, 10**12, max_denominator=3))
@settings(max_examples=examples(40), deadline=None)
def test_corollary_6_1(found: Cost, size: int, gamma: Fraction, bandwidth: Fraction) -> None:
    """Of an allreduce of least T_B, T_B + T_C = 2 M (1/B + gamma/2) (N - 1)/N: gamma is as good as a smaller B."""
    n = found.ranks
    assert found.bw_optimal
    together = predicted_time(found, size, Fraction(0), bandwidth, gamma)
    assert together == 2 * size * (1 / bandwidth + gamma / 2) * Fraction(n - 1, n)
    assert together == predicted_time(found, size, Fraction(0), 1 / (1 / bandwidth + gamma / 2))


def test_the_bound_of_theorem_6_is_on_reduce_scatters() -> None:
    """An exchange of whole vectors adds log2(N) of them, more than (N - 1)/N, but no more than its T_B."""
    exchange = pass_class("recursive-doubling")()
    found = cost(exchange.run(Problem(hypercube(3), Collective("allreduce", 8))))
    assert found.reduced == 3 and found.T_B is not None and found.reduced <= found.T_B


def test_what_copies_adds_nothing() -> None:
    for kind in ("allgather", "broadcast"):
        problem = Problem(torus(3, 3), Collective(kind, 9, 0 if kind == "broadcast" else None))
        assert cost(BFB().run(problem)).reduced == 0


# ---- against plain loops


@given(strategies.any_schedules())
@settings(max_examples=examples(80), deadline=None)
def test_sums_are_those_of_plain_loops(schedule: Schedule) -> None:
    assert reductions.reduced_share(schedule) == slow(schedule)


def test_plain_loops_find_another_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the ranks' sums were averaged instead of the most taken, an unequal step would show it."""
    net = Topology.from_links("y", 3, [(0, 1), (2, 1), (1, 0), (1, 2)])
    schedule = bfb(net, "allreduce")
    assert isinstance(schedule, Schedule) and reductions.reduced_share(schedule) == slow(schedule)
    monkeypatch.setattr(reductions, "largest_sums", lambda step, rank, amount: [int(amount.sum()) // 3])
    assert reductions.reduced_share(schedule) != slow(schedule)


@given(strategies.forests(), st.integers(1, 9))
@settings(max_examples=examples(60), deadline=None)
def test_rounds_of_trees_add_what_their_steps_add(forest: Forest, pieces: int) -> None:
    piped = attrs.evolve(forest, pieces=pieces)
    steps = piped.to_steps()
    assert cost(piped).reduced == cost(steps).reduced == slow(steps)


def test_a_template_adds_what_its_schedule_adds() -> None:
    problem = Problem(coll.topology("torus(4, 4)"), Collective("allreduce", 16))
    template = BFB()._scheduled(problem.topology, problem.collective)
    assert isinstance(template, SymmetricSchedule)
    assert reductions.reduced_share(template) == slow(template.unfold()) == Fraction(15, 16)


EXPRESSIONS = ("torus(4, 4)", "torus(5, 2)", "biring(7)", "torus(9)", "dgx_a100(1)")
KINDS = ("allreduce", "reduce-scatter", "allgather", "reduce", "broadcast", "gather", "scatter")
SENDERS = (
    "ring", "double-binary-tree", "swing", "bucket", "recursive-doubling", "rabenseifner", "bine", "pat", "trivance",
)  # fmt: skip


@pytest.mark.parametrize("name", SENDERS)
def test_messages_know_what_their_schedule_adds(name: str) -> None:
    """Every scheduler that gives messages without transfers says of them what the transfers add."""
    compared = 0
    for expression in EXPRESSIONS:
        topology = coll.topology(expression)
        for kind in KINDS:
            for options in ({}, {"variant": "latency"}):
                root = 0 if kind in ("reduce", "broadcast", "gather", "scatter") else None
                problem = Problem(topology, Collective(kind, topology.num_ranks, root))
                try:
                    scheduler = pass_class(name)(**options)  # type: ignore[arg-type]  # a TypeError says that it has none
                    sent, schedule = scheduler.messages(problem), scheduler.run(problem)
                except (CollcError, TypeError):
                    continue
                assert isinstance(schedule, Schedule) and sent is not None
                assert sent.reduced == slow(schedule) == Messages.of(schedule).reduced
                compared += 1
    assert compared > 5


@pytest.mark.parametrize("kind", ["allreduce", "reduce-scatter", "allgather"])
def test_programs_add_what_their_schedule_adds(kind: str) -> None:
    """In a ring the program's steps are the schedule's; elsewhere it sends earlier, and no rank adds less in all."""
    for net in (one_way_ring(5), hypercube(3)):
        schedule = bfb(net, kind)
        assert isinstance(schedule, Schedule)
        added = program_traffic(Lower().run(Discretize().run(schedule)), net).reduced
        assert added == slow(schedule) if net.degree == 1 else added is not None and added >= slow(schedule)


# ---- predictions


@st.composite
def costed(draw: st.DrawFn) -> tuple[Schedule | Forest, int, Fraction]:
    level = draw(strategies.forests() | st.sampled_from(NETS).map(lambda net: bfb(net, "allreduce")))
    return level, draw(st.integers(0, 2**34)), draw(SECONDS)


@pytest.mark.slow
@given(costed(), SECONDS, SECONDS, SECONDS)
@settings(max_examples=examples(60), deadline=None)
def test_gamma_and_epsilon_are_exact_and_monotone(
    what: tuple[Schedule | Forest, int, Fraction], gamma: Fraction, more: Fraction, epsilon: Fraction
) -> None:
    level, size, alpha = what
    found = cost(level)
    plain = predicted_time(found, size, alpha)
    assert plain == predicted_time(found, size, alpha, None, Fraction(0), Fraction(0))
    assert plain + gamma * size * found.reduced + epsilon == predicted_time(found, size, alpha, None, gamma, epsilon)
    times = [predicted_time(found, size, alpha, None, g, e) for g in (0, gamma, gamma + more) for e in (0, epsilon)]
    assert times[0] <= times[2] <= times[4] and times[0] <= times[1] and times[4] <= times[5]


@pytest.mark.slow
@given(costed(), SECONDS, SECONDS)
@settings(max_examples=examples(60), deadline=None)
def test_the_simulator_agrees(
    what: tuple[Schedule | Forest, int, Fraction], gamma: Fraction, epsilon: Fraction
) -> None:
    """On routes that a schedule names, both models are the same; options replace the network's numbers."""
    level, size, _ = what
    found = cost(level)
    given = predicted_time(found, size, None, None, gamma, epsilon)
    assert given == simulate(level, gamma=gamma, epsilon=epsilon).time(size)
    own = attrs.evolve(level, topology=attrs.evolve(level.topology, gamma=gamma, epsilon=epsilon))
    assert given == predicted_time(cost(own), size) == simulate(own).time(size)
    assert simulate(own, gamma=Fraction(0), epsilon=Fraction(0)).time(size) == predicted_time(found, size)
    assert predict(cost(own), [size])[0].time == float(given)


def test_traffic_that_does_not_know_its_additions_has_no_gamma() -> None:
    traffic = attrs.evolve(traffic_of(bfb(torus(3, 3), "allreduce")), reduced=None)
    assert simulate(traffic, epsilon=Fraction(1)).time(0) == 1 + simulate(traffic).time(0)
    with pytest.raises(ValueError, match="what the ranks add"):
        simulate(traffic, gamma=Fraction(1))


def test_the_best_pieces_count_additions() -> None:
    """No other number of pieces takes less, additions counted; they are the topology's unless given."""
    network, gamma = torus(4, 4), Fraction(1, 10**9)
    problem = Problem(attrs.evolve(network, gamma=gamma), Collective("allreduce", 16, size=8 << 20))
    forest = ForestScheduler().grow(problem)
    chosen = best_pieces(forest, most=64)
    times = [predicted_time(cost(attrs.evolve(forest, pieces=p)), 8 << 20) for p in range(1, 65)]
    assert times.index(min(times)) + 1 == chosen == ForestScheduler().run(problem).pieces
    plain = attrs.evolve(forest, topology=network)
    assert best_pieces(plain, most=64, gamma=gamma) == chosen
