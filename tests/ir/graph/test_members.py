"""The network of the members of a process group, and bounds on it."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import connected

import collc
from collc.ir.collective import Collective
from collc.ir.costs.bounds import bound
from collc.ir.costs.certificate import Cut
from collc.ir.graph.bottleneck import leaving
from collc.ir.graph.members import inside, without_members
from collc.ir.topology import Topology


@st.composite
def groups(draw: st.DrawFn) -> tuple[Topology, Collective]:
    topology = draw(connected())
    n = topology.num_ranks
    members = tuple(sorted(draw(st.sets(st.integers(0, n - 1), min_size=1))))
    return topology, Collective("allgather", n, members=members)


@settings(max_examples=examples(60), deadline=None)
@given(groups(), st.booleans())
def test_nodes_are_on_a_path_between_two_members(group: tuple[Topology, Collective], relays: bool) -> None:
    topology, collective = group
    found = inside(topology, collective, relays)
    assert found.topology.num_ranks == collective.num_members
    assert found.nodes[: collective.num_members].tolist() == list(collective.ranks)
    assert relays or not len(found.relays)
    kept = set(found.nodes.tolist())
    allowed = set(range(topology.num_nodes))
    if not relays:
        allowed -= set(range(topology.num_ranks)) - set(collective.ranks.tolist())
    graph = nx.DiGraph(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)).subgraph(allowed)
    members = collective.ranks.tolist()
    for a in members:
        for b in members:
            if a != b and a in graph and b in graph:
                for path in nx.all_simple_paths(graph, a, b, cutoff=6):
                    assert kept.issuperset(path)
    for link, number in enumerate(found.links.tolist()):
        assert found.nodes[found.topology.src[link]] == topology.src[number]
        assert found.nodes[found.topology.dst[link]] == topology.dst[number]
        assert found.topology.bandwidth(link) == topology.bandwidth(number)


def test_boxes_without_members_are_left_out() -> None:
    topology = collc.topology("dgx_h100(64)")
    far = inside(topology, Collective("allgather", 512, members=tuple(range(0, 512, 64))))
    assert len(far.relays) == 8 * 7
    near = inside(topology, Collective("allgather", 512, members=tuple(range(8))))
    assert (near.topology.num_ranks, near.topology.num_switches, len(near.relays)) == (8, 2, 0)


def test_a_node_that_hangs_on_one_node_is_left_out() -> None:
    tail = Topology.from_links("tail", 4, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)])
    found = inside(tail, Collective("allgather", 4, members=(0, 1)))
    assert found.nodes.tolist() == [0, 1]
    assert found.outside([1]) == (1, 2, 3)
    assert found.outside([0]) == (0,)


def test_all_ranks_as_members_are_the_same_network() -> None:
    torus = collc.topology("torus(3, 3)")
    found = inside(torus, Collective("allgather", 9))
    assert (found.topology.src == torus.src).all() and (found.topology.dst == torus.dst).all()
    assert without_members(Collective("gather", 9, 4, members=(1, 4))) == Collective("gather", 2, 1)


@settings(max_examples=examples(40), deadline=None)
@given(groups())
def test_a_cut_of_a_group_is_one_of_the_whole_network(group: tuple[Topology, Collective]) -> None:
    topology, collective = group
    found = bound(topology, collective)
    if collective.num_members < 2:
        assert found.value == 0
        return
    proof = found.certificate
    assert isinstance(proof, Cut)
    nodes = set(proof.nodes)
    if proof.inward:
        nodes = set(range(topology.num_nodes)) - nodes
    sent = len(nodes.intersection(collective.ranks.tolist()))
    assert sent < collective.num_members
    assert proof.carries == Fraction(sent, collective.num_members)
    width = sum((topology.bandwidth(link) for link in leaving(topology, nodes).tolist()), Fraction(0))
    assert proof.bandwidth == width
    assert found.value == proof.carries / width


def test_relays_that_add_and_copy_beat_partitions() -> None:
    """A rank in the middle adds what all members send: a partition into members would forbid that."""
    star = Topology.from_links("star", 6, [(a, b) for leaf in range(1, 6) for a, b in ((0, leaf), (leaf, 0))])
    collective = Collective("allreduce", 6, members=(1, 2, 3, 4, 5))
    assert bound(star, collective).value == 1
    switched = inside(star, collective)
    assert bound(switched.topology, switched.collective).value == Fraction(8, 5)
