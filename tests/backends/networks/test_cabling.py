"""Cabling lists: the cables make the network's links, at ports that are used once."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
import strategies
from every_family import EXPRESSIONS
from hypothesis import given, settings
from read_networks import Link, cabled_links, links
from sampling import every, examples

from collc.backends.networks import write_network
from collc.backends.networks.cabling import BOTH_WAYS, ONE_WAY, cables, write
from collc.frontends.coll import topology
from collc.ir.diagnostic import CollcError
from collc.ir.topology import LinkClass, Topology


def named(network: Topology) -> Counter[Link]:
    return Counter((network.names[int(a)], network.names[int(b)], rate, time) for a, b, rate, time in links(network))


@pytest.mark.parametrize("call", every(2, [call for calls in EXPRESSIONS.values() for call in calls]))
def test_the_cables_of_every_family_make_its_links(call: str) -> None:
    network = topology(call)
    assert cabled_links(write_network(network, "cabling")) == named(network)


@settings(max_examples=examples(60), deadline=None)
@given(strategies.topologies())
def test_the_cables_of_any_network_make_its_links(network: Topology) -> None:
    assert cabled_links(write_network(network, "cabling")) == named(network)
    pairs = [cable for cable in cables(network) if cable.direction == BOTH_WAYS]
    alone = [cable for cable in cables(network) if cable.direction == ONE_WAY]
    assert 2 * len(pairs) + len(cables(network)) - len(pairs) == network.num_links
    left = Counter((cable.node, cable.peer, cable.link_class) for cable in alone)
    assert not any((peer, node, kind) in left for node, peer, kind in left), "two cables would do with one"


def test_a_pair_of_links_is_one_cable_and_a_single_link_says_so() -> None:
    assert {cable.direction for cable in cables(topology("torus(4, 4)"))} == {BOTH_WAYS}
    assert 32 == len(cables(topology("torus(4, 4)")))
    assert write_network(topology("uniring(3)"), "cabling").splitlines()[1:] == [
        "0,0,0,1,0,->,1,link,0", "1,1,0,2,0,->,1,link,0", "2,2,0,0,0,->,1,link,0",
    ]  # fmt: skip


def test_links_of_different_bandwidth_are_two_cables() -> None:
    fast, slow = LinkClass(LinkClass().bandwidth * 2), LinkClass()
    network = Topology.from_links("uneven", 2, [(0, 1, fast), (1, 0, slow)])
    assert [cable[:5] for cable in cables(network)] == [(0, 0, 1, 0, ONE_WAY), (1, 0, 0, 0, ONE_WAY)]


def test_ports_of_a_cayley_graph_are_its_generators() -> None:
    network = topology("circulant(16, {3, 4})")
    jumps = {(cable.port, (cable.peer - cable.node) % 16) for cable in cables(network)}
    jumps |= {(cable.peer_port, (cable.node - cable.peer) % 16) for cable in cables(network)}
    assert write_network(network, "cabling").splitlines()[1] == "0,0,0,3,1,<->,1,link,0"  # as docs/finder.md has it
    assert 4 == len(jumps) == len({port for port, _ in jumps})


def test_a_loop_is_listed_without_a_peer() -> None:
    text = write_network(topology("debruijn(2, 3)"), "cabling")
    assert 2 == text.count(",loop,")
    assert cabled_links(text) == named(topology("debruijn(2, 3)"))


def test_racks_are_the_last_columns() -> None:
    lines = write(topology("biring(4)"), [0, 0, 1, 1]).splitlines()
    assert lines[0].endswith(",rack,peer_rack")
    assert [line[-3:] for line in lines[1:]] == ["0,0", "0,1", "0,1", "1,1"]


def test_names_that_break_a_line_are_refused() -> None:
    network = attrs.evolve(topology("biring(3)"), node_names=("a", "b\nc", "d"))
    with pytest.raises(CollcError, match="C0780"):
        write_network(network, "cabling")
    network = attrs.evolve(network, node_names=("a", 'b, "c"', "d"))
    assert cabled_links(write_network(network, "cabling")) == named(network)


@pytest.mark.parametrize(
    ("line", "there", "instead"),
    [(1, 1, "1"), (1, 2, "1"), (2, 3, "4"), (2, 4, "3"), (3, 5, "->"), (4, 6, "2"), (4, 8, "1/3"), (5, 0, "9")],
)
def test_a_planted_fault_is_found(line: int, there: int, instead: str) -> None:
    network = topology("circulant(9, {2, 3})")
    rows = [row.split(",") for row in write_network(network, "cabling").splitlines()]
    assert rows[line][there] != instead
    rows[line][there] = instead
    try:
        found = cabled_links("\n".join(map(",".join, rows)))
    except AssertionError:
        return
    assert found != named(network)
