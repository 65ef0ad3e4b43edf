"""Costs after failures: those of schedules of the network without a link or a node, and of all failures, not some."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.finder import failures
from collc.passes.finder.evaluate import bfb_cost
from collc.passes.finder.failures import After, after_failures, strict_cost
from collc.passes.synthesis.breadth_first.bfb import BFB

NETWORKS = [
    "torus(3, 3)", "circulant(9, {2, 3})", "line(circulant(5, {1, 2}))", "generalized_kautz(2, 9)", "hypercube(3)",
    "cayley(metacyclic(8, 2, 7), {1, 3, 4, 6})", 'distance_regular("petersen")', "line(cayley(dihedral(3), {1, 3}), 2)",
]  # fmt: skip


def scheduled(call: str, degree: int) -> tuple[int, Fraction]:
    """Return T_L and T_B of the schedule that `using bfb` makes: of all links, d have the bandwidth of a node."""
    network = topology(call)
    real = cost(BFB().run(Problem(network, Collective("allgather", network.num_ranks))))
    return real.T_L, real.time_per_byte * degree


def worst(calls: list[str], degree: int) -> tuple[int | None, Fraction | None]:
    if not all(topology(call).is_connected for call in calls):
        return None, None
    found = [scheduled(call, degree) for call in calls]
    return max(steps for steps, _ in found), max(bandwidth for _, bandwidth in found)


@pytest.mark.parametrize("call", NETWORKS)
def test_costs_are_those_of_the_worst_schedule_of_what_is_left(call: str) -> None:
    network = topology(call)
    degree = network.degree or 0
    both = network.reverse_links is not None
    ends = sorted({(min(a, b), max(a, b)) if both else (a, b) for a, b in _ends(network) if a != b})
    arrow = "<->" if both else "->"
    cut, lost = after_failures(network)
    assert (cut.T_L, cut.T_B) == worst([f"without({call}, {{{a} {arrow} {b}}})" for a, b in ends], degree)
    assert (lost.T_L, lost.T_B) == worst([f"without({call}, {{{n}}})" for n in range(network.num_ranks)], degree)


def _ends(network: Topology) -> list[tuple[int, int]]:
    return list(zip(network.src.tolist(), network.dst.tolist(), strict=True))


@pytest.mark.parametrize("call", [*NETWORKS, "torus(2, 3)", "biring(5, 4)", "degree(circulant(5, {1, 2}), 2)",
                                  "line(hypercube(3))"])  # fmt: skip
def test_an_orbit_stands_for_all_of_its_failures(call: str) -> None:
    network = topology(call)
    plain = attrs.evolve(network, symmetry=None, origin=None)
    some, every = after_failures(network), after_failures(plain)
    for one, two in zip(some, every, strict=True):
        assert (one.state, one.T_L, one.T_B) == (two.state, two.T_L, two.T_B)
        assert one.evaluated <= two.evaluated
    if network.symmetry is not None:
        assert 1 == some[1].evaluated < every[1].evaluated


def test_orbits_of_a_false_symmetry_are_noticed_by_these_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node alone does not stand for all nodes of a network without a symmetry."""
    network = topology("generalized_kautz(2, 11)")
    right = after_failures(network)
    monkeypatch.setattr(failures, "_nodes", lambda topology: np.array([5]))
    assert after_failures(network) != right


def test_without_failures_the_cost_is_that_of_the_finder() -> None:
    for call in NETWORKS:
        network = topology(call)
        assert strict_cost(network, network.degree or 0) == bfb_cost(network)


def test_many_links_have_the_same_cost_by_the_other_method(monkeypatch: pytest.MonkeyPatch) -> None:
    for call in ("generalized_kautz(3, 20)", "circulant(17, {1, 4})"):
        network = topology(call)
        tabled = after_failures(network)
        monkeypatch.setattr(failures, "_NARROW_DEGREE", 0)
        assert after_failures(network) == tabled
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("call", "link", "node"),
    [("uniring(5)", "disconnected", "disconnected"), ("biring(5)", "computed", "computed"),
     ("complete(2)", "disconnected", "computed"), ("mesh(2, 2)", "computed", "computed")],
)  # fmt: skip
def test_states_say_what_failures_do(call: str, link: str, node: str) -> None:
    cut, lost = after_failures(topology(call))
    assert (link, node) == (cut.state, lost.state)
    assert (cut.T_B is None) == (link != "computed")


def test_long_evaluations_are_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "MOST_EFFORT", 100)
    assert after_failures(topology("torus(4, 4)")) == (After("not computed"), After("not computed"))
