"""What `collc topologies --as` writes, `collc import` reads back to the same network: every family and operator."""

from __future__ import annotations

import pytest
from every_family import EXPRESSIONS
from imported import imported, same_after_writing
from sampling import every

from collc.frontends import coll
from collc.ir.topology import Topology

networks = pytest.importorskip("collc.backends.networks")

CALLS = [call for calls in EXPRESSIONS.values() for call in calls]
WITH = " with { bandwidth: 25 GB/s, latency: 700 ns, reduction: 300 GB/s, launch: 20 us }"


def plain(topology: Topology) -> Topology:
    """Return a topology without what no file has: symmetry, and the order of the classes of links."""
    return Topology.from_networkx(topology.to_networkx())


@pytest.mark.parametrize("form", ["nodelink", "graphml", "dot"])
@pytest.mark.parametrize("expression", every(6, CALLS))
def test_the_same_network_comes_back(form: str, expression: str) -> None:
    topology = coll.topology(expression)
    network = imported(networks.write_network(topology, form))
    assert (network.format, network.title) == (form, topology.name)
    assert network.topology(topology.name) == plain(topology)
    assert {one.code for one in network.warnings} <= {"C0941"}


@pytest.mark.parametrize("form", ["nodelink", "graphml", "dot"])
@pytest.mark.parametrize("expression", ["biring(4)", "torus(3, 2)"])
def test_units_gamma_and_epsilon_too(form: str, expression: str) -> None:
    topology = coll.topology(expression + WITH)
    network = imported(networks.write_network(topology, form))
    assert network.topology(topology.name) == plain(topology)
    assert (network.gamma, network.epsilon, network.unit) == (topology.gamma, topology.epsilon, "B/s")


def takes_quotes() -> bool:
    try:
        coll.topology("biring(2)")
        coll.load("a.coll", text='topology t { rank "a-1", b; link b <-> "a-1"; }')
    except coll.CollcError:
        return False
    return True


@pytest.mark.parametrize("form", ["nodelink", "graphml", "dot"])
@pytest.mark.parametrize("expression", every(12, CALLS, 5))
def test_also_through_a_coll_file(form: str, expression: str) -> None:
    if not takes_quotes():
        pytest.skip("names have no quotes yet")
    network = imported(networks.write_network(coll.topology(expression), form))
    same_after_writing(network)
