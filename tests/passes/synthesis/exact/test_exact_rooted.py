"""Gather and scatter by flows: as good as the integer programs, on networks that those could not take, and at once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import complete, connected, hypercube, torus, uniring

from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.exact import rooted, search
from collc.passes.synthesis.exact.demand import Demand
from collc.passes.synthesis.exact.model import Question, solve
from collc.passes.synthesis.exact.rooted import shortest
from collc.passes.synthesis.exact.scheduler import Exact
from collc.passes.synthesis.exact.schedules import rounds_of

KINDS = ("gather", "scatter")


def demand(topology: Topology, kind: str, root: int = 0) -> Demand:
    return Demand.of(topology, Collective(kind, topology.num_ranks, root=root))


def exact(topology: Topology, kind: str, root: int = 0, **options: Any) -> Schedule:
    schedule = Exact(**options).run(Problem(topology, Collective(kind, topology.num_ranks, root=root)))
    assert verify_schedule(schedule).ok
    return schedule


@given(connected(max_ranks=5), st.sampled_from(KINDS), st.integers(1, 2), st.integers(0, 1), st.data())
@settings(max_examples=examples(25))
def test_as_few_rounds_as_the_integer_program(
    topology: Topology, kind: str, chunks: int, more: int, data: st.DataObject
) -> None:
    assume(topology.num_ranks > 1)
    asked = demand(topology, kind, data.draw(st.integers(0, topology.num_ranks - 1)))
    steps = asked.steps_bound + more
    answer = solve(asked, Question(steps, chunks, 1), 10**6, 10**6)
    found = shortest(asked, steps, chunks)
    assert answer.status == "optimal"
    assert found.rounds == found.least == answer.total == sum(rounds_of(asked, found.arrivals))
    assert found.arrivals.last <= steps


@given(st.sampled_from(KINDS), st.integers(1, 3), st.lists(st.integers(1, 3), min_size=6, max_size=6))
@settings(max_examples=examples(15))
def test_links_that_differ_and_parallel_links(kind: str, chunks: int, widths: list[int]) -> None:
    ends = [(0, 1), (1, 0), (1, 2), (2, 0), (0, 1), (2, 1)]
    links = [(a, b, LinkClass(Fraction(25 * w))) for (a, b), w in zip(ends, widths, strict=True)]
    asked = demand(Topology.from_links("unlike", 3, links, unit="B/s"), kind, 1)
    answer = solve(asked, Question(3, chunks, 1), 10**6, 10**6)
    assert shortest(asked, 3, chunks).rounds == answer.total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "topology",
    [hypercube(5), hypercube(6), torus(4, 4), torus(8, 8), torus(3, 3, 3), complete(32), uniring(24), torus(5, 7)],
    ids=lambda t: t.name,
)
def test_networks_that_programs_could_not_take(topology: Topology, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All meet the bound on bandwidth in as many steps as the diameter, and no program of arrivals is solved."""
    monkeypatch.setattr(search, "solve", None)
    result = cost(exact(topology, kind, root=topology.num_ranks - 1))
    assert result.T_L == topology.diameter and result.bw_optimal


def test_too_large_is_told() -> None:
    with pytest.raises(CollcError, match="C0535"):
        exact(uniring(200), "scatter")


def test_where_search_ends_something_right_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths that break rows are stretched until a flow exists; the gap is told."""
    asked = demand(
        Topology.from_links("tail", 4, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (0, 3)]), "gather", 3
    )
    best = shortest(asked, 3, 2)
    monkeypatch.setattr(rooted, "_MOST_CUTS", 0)
    monkeypatch.setattr(rooted._Search, "_shortest_for_rings", lambda self: [1] * self.steps)
    found = shortest(asked, 3, 2)
    assert found.least <= best.rounds <= found.rounds == sum(rounds_of(asked, found.arrivals))


def test_a_cut_that_is_no_cut_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that asks for more than there is makes schedules longer than the integer program's."""
    asked = demand(torus(3, 2), "scatter")
    honest = shortest(asked, 2, 2).rounds
    real = rooted._Search._rings
    monkeypatch.setattr(rooted._Search, "_rings", lambda self: [(f, 2 * n) for f, n in real(self)])
    assert shortest(asked, 2, 2).rounds > honest == solve(asked, Question(2, 2, 1), 10**6, 10**6).total


def test_limits_on_rounds_hold() -> None:
    cube = hypercube(3)
    assert sum(rounds_of(demand(cube, "scatter"), shortest(demand(cube, "scatter"), 3, 3).arrivals)) == 7
    assert cost(exact(cube, "scatter", chunks=3, rounds=7)).T_L == 3
    with pytest.raises(CollcError, match="C0536") as caught:
        exact(cube, "scatter", chunks=3, rounds=6)
    assert "7 rounds are needed" in caught.value.diagnostics[0].notes[0]


def test_same_schedule_every_time() -> None:
    tail = attrs.evolve(torus(5, 3), name="same")
    assert exact(tail, "gather", 4) == exact(tail, "gather", 4)
