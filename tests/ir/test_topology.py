"""Topologies: distances and bandwidths against networkx, reversal, symmetry, and columns."""

from __future__ import annotations

import pickle
from fractions import Fraction

import attrs
import networkx
import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import collc
from collc.ir.arrays import as_column, fit
from collc.ir.diagnostic import CollcError
from collc.ir.topology import LinkClass, Topology, Translations
from collc.ir.validate import structure

# ---- graph algorithms


@given(strategies.topologies(max_ranks=9, max_switches=4, max_links=30))
def test_distances_are_those_of_networkx(topology):
    """Hops between all nodes, -1 where there is no path: self-loops and parallel links change nothing."""
    expected = np.full((topology.num_nodes, topology.num_nodes), -1)
    for a, row in networkx.all_pairs_shortest_path_length(topology.to_networkx()):
        for b, hops in row.items():
            expected[a, b] = hops
    assert np.array_equal(expected, topology.distances)
    between = expected[: topology.num_ranks, : topology.num_ranks]
    assert topology.diameter == (None if (between < 0).any() else between.max())


def test_distances_of_more_than_64_nodes():
    """The sets of sources are wider than one machine word; a path has as many hops as nodes, less one."""
    path = Topology.from_links("path", 200, [(i, i + 1) for i in range(199)])
    a, b = np.indices((200, 200))
    assert np.array_equal(np.where(b >= a, b - a, -1), path.distances)
    assert strategies.uniring(130).diameter == 129


@given(strategies.topologies())
def test_links_by_tail_and_head(topology):
    for (start, links), ends in ((topology.out_links, topology.src), (topology.in_links, topology.dst)):
        for node in range(topology.num_nodes):
            assert np.flatnonzero(ends == node).tolist() == links[start[node] : start[node + 1]].tolist()


@given(strategies.topologies())
def test_degrees_count_self_loops(topology):
    graph = topology.to_networkx()
    assert [graph.out_degree(n) for n in range(topology.num_nodes)] == topology.out_degree.tolist()
    assert [graph.in_degree(n) for n in range(topology.num_nodes)] == topology.in_degree.tolist()


@given(strategies.regular())
def test_regular_networks_have_a_degree(topology):
    d = topology.num_links // topology.num_ranks
    assert topology.degree == d
    assert topology.node_bandwidth == d
    assert topology.is_uniform and topology.is_direct and topology.is_connected


def test_degree_of_what_is_not_regular():
    assert Topology.from_links("pair", 2, [(0, 1)]).degree is None
    assert Topology("none", 0, [], []).degree is None
    assert Topology("one", 1, [], []).degree == 0
    assert strategies.star(4).degree == 1  # switches do not count


# ---- bandwidth


@given(strategies.topologies())
def test_egress_and_ingress_add_up_link_by_link(topology):
    links = range(topology.num_links)
    for node in range(topology.num_nodes):
        out = sum((topology.bandwidth(k) for k in links if topology.src[k] == node), Fraction(0))
        into = sum((topology.bandwidth(k) for k in links if topology.dst[k] == node), Fraction(0))
        assert (out, into) == (topology.egress(node), topology.ingress(node))
    ranks = range(topology.num_ranks)
    each = {topology.egress(r) for r in ranks} | {topology.ingress(r) for r in ranks}
    assert topology.node_bandwidth == (each.pop() if len(each) == 1 else None)


def test_node_bandwidth_counts_classes_and_not_switches():
    fast, slow = LinkClass(Fraction(3)), LinkClass(Fraction(1, 3))
    ends = [(0, 1, fast), (1, 0, fast), (0, 2, slow), (1, 2, slow), (2, 0, slow), (2, 1, slow)]
    topology = Topology.from_links("box", 2, ends, 1)
    assert topology.node_bandwidth == Fraction(10, 3)
    assert not topology.is_uniform
    assert Topology.from_links("uneven", 2, [*ends, (0, 1, slow)], 1).node_bandwidth is None


@given(strategies.topologies(), strategies.fractions(1), strategies.fractions())
def test_with_links_gives_all_links_the_same(topology, bandwidth, latency):
    """Both given: one class is left, so links can be paired again; one given: the other stays."""
    both = topology.with_links(bandwidth, latency)
    assert both.unit == "B/s" and both.is_uniform and structure(both) == []
    assert all((both.bandwidth(k), both.latency(k)) == (bandwidth, latency) for k in range(both.num_links))
    slower = topology.with_links(None, latency)
    assert slower.unit == topology.unit
    assert all(slower.bandwidth(k) == topology.bandwidth(k) for k in range(topology.num_links))
    assert topology.with_links(None, None) == Topology(
        topology.name, topology.num_ranks, topology.src, topology.dst, topology.num_switches,
        *_merged(topology), unit=topology.unit, gamma=topology.gamma, epsilon=topology.epsilon,
        multicast=topology.multicast, reduces=topology.reduces,
    )  # fmt: skip


def _merged(topology: Topology) -> tuple[list[int], tuple[LinkClass, ...]]:
    classes = tuple(dict.fromkeys(topology.classes))
    return [classes.index(topology.classes[c]) for c in topology.link_class], classes


def test_classes_that_become_alike_are_one():
    """A link of 1 and one of 2, both made 5, are each other's reverse."""
    links = [(0, 1, LinkClass(Fraction(1))), (1, 0, LinkClass(Fraction(2)))]
    assert Topology.from_links("pair", 2, links).reverse_links is None
    assert Topology.from_links("pair", 2, links).with_links(Fraction(5), None).reverse_links.tolist() == [1, 0]


# ---- reversal


@given(strategies.topologies(), st.booleans())
def test_reverse_links_pair_each_link_with_an_opposite(topology, mirrored):
    """An involution onto links of swapped ends and the same class; nothing exactly where the counts do not allow it."""
    if mirrored:
        src, dst = topology.src, topology.dst
        topology = Topology(
            "both", topology.num_ranks, [*src, *dst], [*dst, *src], topology.num_switches, [*topology.link_class] * 2,
            topology.classes,
        )  # fmt: skip
    count: dict[tuple[int, int, int], int] = {}
    for a, b, c in zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True):
        count[a, b, c] = count.get((a, b, c), 0) + 1
    partner = topology.reverse_links
    assert (partner is not None) == all(count.get((b, a, c)) == n for (a, b, c), n in count.items())
    if partner is not None:
        assert np.array_equal(partner[partner], np.arange(topology.num_links))
        assert np.array_equal(topology.src[partner], topology.dst)
        assert np.array_equal(topology.link_class[partner], topology.link_class)
    assert partner is not None or not mirrored


@given(strategies.topologies(named=True))
def test_transposing_twice_is_nothing(topology):
    once = topology.transpose()
    assert np.array_equal(topology.src, once.dst) and np.array_equal(topology.dst, once.src)
    assert once.name == f"transpose({topology.name})"
    twice = once.transpose()
    for column in ("src", "dst", "link_class"):
        assert np.array_equal(getattr(topology, column), getattr(twice, column))
    assert np.array_equal(topology.distances.T, once.distances)


# ---- connection


def test_require_connected_names_two_ranks():
    topology = Topology.from_links("half", 3, [(0, 1), (1, 2)], node_names=["a", "b", "c"])
    assert not topology.is_connected and topology.diameter is None
    with pytest.raises(CollcError) as caught:
        topology.require_connected("allgather")
    (found,) = caught.value.diagnostics
    assert found.code == "C0301"
    assert found.message == "topology `half` is not strongly connected: there is no route from rank b to rank a"
    assert found.notes == (
        "the only link between them leads the other way: `a -> b`",
        "allgather needs a route from every rank to every other",
    )
    assert found.hint == "write `<->` in place of `->` in 2 links: `link a <-> b;` and `link b <-> c;`"
    strategies.star(3).require_connected("allgather")
    Topology("one", 1, [], []).require_connected("allgather")


def test_a_switch_need_not_be_reached():
    """Only ranks have to reach one another."""
    assert Topology.from_links("spare", 2, [(0, 1), (1, 0)], 1).is_connected


# ---- symmetry


@given(strategies.families())
def test_families_keep_their_symmetry(topology):
    assert structure(topology) == []


@given(st.lists(st.integers(1, 400), min_size=1, max_size=3), st.data())
def test_translation_is_addition_of_vectors(shape, data):
    """Also of narrow columns, whose type holds neither the sum nor the strides."""
    size = int(np.prod(shape))
    a, b = (as_column(data.draw(st.lists(st.integers(0, size - 1), min_size=3, max_size=3))) for _ in range(2))
    moved = Translations(tuple(shape)).translate(a, b)
    u, v = np.unravel_index(a, shape), np.unravel_index(b, shape)
    total = [(x + y) % n for x, y, n in zip(u, v, shape, strict=True)]
    assert moved.tolist() == np.ravel_multi_index(total, shape).tolist()


def test_a_symmetry_that_does_not_hold_is_found():
    ring = strategies.uniring(4, 2)
    for wrong, message in (
        (Translations((3,)), "symmetry abelian(3) does not have 4 elements, one a rank"),
        (Translations((2, 2)), "link 2: the symmetry does not map link 0 to it (and 3 more like it)"),
        (Translations((4, 0)), "symmetry abelian(4, 0) does not have 4 elements, one a rank"),
    ):
        topology = Topology("x", 4, ring.src, ring.dst, symmetry=wrong)
        assert structure(topology) == [message]
    shuffled = Topology("x", 4, ring.src[::-1], ring.dst[::-1], symmetry=ring.symmetry)
    assert structure(shuffled) == [
        "symmetry needs links sorted by rank, the same number from every rank, and no switches"
    ]


# ---- what is not well formed


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"src": [0, 1, 3]}, "link 2: source 3 does not exist: 0 to 2 do"),
        ({"dst": [-1, 5, 0]}, "link 0: destination -1 does not exist: 0 to 2 do (and 1 more like it)"),
        ({"dst": [0, 1]}, "columns of links differ in length: src 3, dst 2, link_class 3"),
        ({"link_class": [0, 0, 1]}, "link 2: class 1 does not exist: 0 to 0 do"),
        ({"classes": ()}, "link 0: class 0 does not exist: there is none (and 2 more like it)"),
        ({"classes": (LinkClass(Fraction(0)),)}, "class 0: bandwidth 0 is not positive"),
        ({"classes": (LinkClass(latency=Fraction(-1, 2)),)}, "class 0: latency -1/2 is negative"),
        ({"unit": "GB/s"}, "unit `GB/s` is not known: `link` and `B/s` are"),
        ({"gamma": Fraction(-1)}, "gamma -1 is negative"),
        ({"epsilon": Fraction(-1, 2)}, "epsilon -1/2 is negative"),
        ({"node_names": ("a", "b")}, "2 node names for 3 nodes"),
        ({"num_ranks": -1}, "-1 ranks and 0 switches: neither may be negative"),
    ],
)
def test_structure_names_what_is_wrong(change, problem):
    arguments = {"name": "x", "num_ranks": 3, "src": [0, 1, 2], "dst": [1, 2, 0], "link_class": [0, 0, 0], **change}
    assert structure(Topology(**arguments)) == [problem]


# ---- values


@given(strategies.topologies(named=True), strategies.topologies())
def test_equality_and_pickles(topology, other):
    """Equal where columns are, however they came to be; a pickle is equal, with or without computed properties."""
    assert topology.distances is not None and topology.names
    assert pickle.loads(pickle.dumps(topology)) == topology
    assert topology != other or np.array_equal(topology.src, other.src)
    assert topology != "topology"


def test_default_names_are_names():
    assert strategies.uniring(3) == Topology(
        "uniring(3, 1)", 3, [0, 1, 2], [1, 2, 0], node_names=("0", "1", "2"), symmetry=Translations((3,))
    )


# ---- columns


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_columns_hold_what_they_were_given(values):
    column = as_column(values)
    assert column.tolist() == values
    assert not column.flags.writeable
    again = as_column(column)
    assert again.dtype == column.dtype and again.tolist() == values
    if values:
        narrower = {8: 0, 16: 8, 32: 16, 64: 32}[column.dtype.itemsize * 8]
        signed = min(values) < 0
        fits = narrower and all(
            -(2 ** (narrower - 1)) <= v < 2 ** (narrower - 1) if signed else v < 2**narrower for v in values
        )
        assert not fits


def test_columns_refuse_what_is_no_column_of_integers():
    with pytest.raises(TypeError, match="integers, found float64"):
        as_column([0.5])
    with pytest.raises(ValueError, match="one dimension, found 2"):
        as_column([[1, 2]])
    with pytest.raises(OverflowError):
        as_column([2**63])
    assert as_column([]).dtype == np.uint8
    assert as_column([True, False]).tolist() == [1, 0]


def test_fit_knows_the_edges():
    edges = [
        (0, 255),
        (0, 256),
        (0, 65535),
        (0, 65536),
        (0, 2**32 - 1),
        (0, 2**32),
        (-128, 127),
        (-129, 0),
        (-1, 2**31),
    ]
    names = ["uint8", "uint16", "uint16", "uint32", "uint32", "int64", "int8", "int16", "int64"]
    assert names == [fit(low, high).__name__ for low, high in edges]


@pytest.mark.parametrize(
    "network", ["dgx_a100(2)", "generalized_kautz(2, 9)", "jellyfish(10, 3)", "subset(torus(4, 4), {0..13})"]
)
def test_diameter_of_a_large_network_needs_no_table(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = collc.topology(network)
    before = known.diameter
    monkeypatch.setattr("collc.ir.topology._MOST_TABLED", 0)
    assert before is not None and attrs.evolve(known).diameter == before
