"""networkx graphs: topologies out and in again without loss, any graph in, and what is refused."""

from __future__ import annotations

import decimal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.ir.topology import Topology

TRY = settings(max_examples=examples(50), deadline=None)


def links(topology: Topology) -> list[tuple[int, int, Fraction, Fraction]]:
    ends = zip(topology.src.tolist(), topology.dst.tolist(), strict=True)
    return [(a, b, topology.bandwidth(k), topology.latency(k)) for k, (a, b) in enumerate(ends)]


# ---- out and in


@TRY
@given(strategies.topologies(named=True))
def test_out_and_in_again(topology: Topology) -> None:
    """Nothing is lost but the numbering of classes and the symmetry."""
    graph = topology.to_networkx()
    assert networkx.MultiDiGraph is type(graph)
    again = collc.topology_from_networkx(graph)
    for attribute in ("num_ranks", "num_switches", "names", "unit", "multicast", "reduces"):
        assert getattr(topology, attribute) == getattr(again, attribute)
    assert again.name == (topology.name or "graph") and links(again) == links(topology)


def test_what_a_graph_holds() -> None:
    graph = collc.topology("torus(2, 2) with { bandwidth: 25 GB/s, latency: 2 us }").to_networkx()
    assert {"name": "torus(2, 2)", "unit": "B/s"} == graph.graph
    assert {"rank"} == {kind for _, kind in graph.nodes(data="kind")}
    assert [*range(graph.number_of_edges())] == sorted(key for _, _, key in graph.edges(keys=True))
    for _, _, data in graph.edges(data=True):
        assert {"bandwidth": Fraction(25 * 10**9), "latency": Fraction(2, 10**6)} == data


@TRY
@given(strategies.topologies(named=True), st.randoms(use_true_random=False))
def test_graphs_with_other_nodes_and_keys_are_isomorphic(topology: Topology, random: Any) -> None:
    """Nodes of any kind in any order, edges without numbers: what comes in is the graph that was given."""
    graph = topology.to_networkx()
    nodes = list(graph)
    random.shuffle(nodes)
    other = networkx.MultiDiGraph(unit=topology.unit)
    other.add_nodes_from((("node", node), {"kind": graph.nodes[node]["kind"], "color": "red"}) for node in nodes)
    other.add_edges_from((("node", a), ("node", b), data | {"weight": 7}) for a, b, data in graph.edges(data=True))
    found = collc.topology_from_networkx(other).to_networkx()

    def alike(one: dict[Any, Any], two: dict[Any, Any]) -> bool:
        rows = [Counter((data["bandwidth"], data["latency"]) for data in each.values()) for each in (one, two)]
        return rows[0] == rows[1]

    assert networkx.is_isomorphic(other, found, lambda a, b: a["kind"] == b["kind"], alike)


# ---- any graph in


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.MultiGraph])
def test_undirected_graphs_have_links_both_ways(kind: Callable[..., networkx.Graph]) -> None:
    topology = collc.topology_from_networkx(kind(networkx.petersen_graph()), "petersen")
    assert ("petersen", 10, 30, 3, 2) == (
        topology.name, topology.num_ranks, topology.num_links, topology.degree, topology.diameter,
    )  # fmt: skip
    assert topology.reverse_links is not None


def test_parallel_edges_are_links_of_their_own() -> None:
    graph = networkx.MultiGraph([(0, 1), (0, 1)])
    assert 4 == collc.topology_from_networkx(graph).num_links


def test_switches_are_numbered_after_ranks() -> None:
    graph = networkx.DiGraph()
    graph.add_node("nv", kind="switch")
    graph.add_edge("g0", "nv", bandwidth="25/2", latency=0.5)
    graph.add_edge("nv", "g0", bandwidth=3)
    topology = collc.topology_from_networkx(graph)
    assert (1, 1, ("g0", "nv")) == (topology.num_ranks, topology.num_switches, topology.names)
    assert [(1, 0, Fraction(3), Fraction(0)), (0, 1, Fraction(25, 2), Fraction(1, 2))] == links(topology)


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, Fraction(0.1)),
        ("0.1", Fraction(1, 10)),
        ("25e9", Fraction(25 * 10**9)),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.int64(2**62), Fraction(2**62)),
        (decimal.Decimal("0.3"), Fraction(3, 10)),
    ],
)
def test_numbers_are_read_exactly(value: Any, exact: Fraction) -> None:
    topology = collc.topology_from_networkx(networkx.DiGraph([(0, 1, {"bandwidth": value, "latency": value})]))
    assert [(0, 1, exact, exact)] == links(topology)
    assert all(type(part) is int for part in (topology.bandwidth(0).numerator, topology.bandwidth(0).denominator))


# ---- what is refused

NUMBERS = [
    "25 Gbps", -1, -0.5, float("nan"), float("inf"), None, [], "1/0", True, 1j, "1e99999999", "9" * 5000, np.ones(2),
]  # fmt: skip


@pytest.mark.parametrize("wrong", [0, "0/7", *NUMBERS], ids=lambda wrong: repr(wrong)[:12])
def test_a_wrong_bandwidth(wrong: Any) -> None:
    with pytest.raises(collc.CollcError, match=r"bandwidth of edge 0 to 1 is .* a positive number \[C0302\]"):
        collc.topology_from_networkx(networkx.DiGraph([(0, 1, {"bandwidth": wrong})]))


@pytest.mark.parametrize("wrong", NUMBERS, ids=lambda wrong: repr(wrong)[:12])
def test_a_wrong_latency(wrong: Any) -> None:
    with pytest.raises(collc.CollcError, match=r"latency of edge 0 to 1 is .* number of at least 0 \[C0302\]"):
        collc.topology_from_networkx(networkx.Graph([(0, 1, {"latency": wrong})]))


def kinds(kind: Any) -> networkx.Graph:
    graph = networkx.Graph([(0, 1)])
    graph.nodes[1]["kind"] = kind
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (networkx.Graph(), "graph `graph` has no ranks"),
        (networkx.DiGraph(name="x"), "graph `x` has no ranks"),
        (kinds("router"), "`kind` of node 1 is 'router'"),
        (kinds(None), "`kind` of node 1 is None"),
        (kinds(np.ones(2)), "`kind` of node 1 is array"),
        (networkx.Graph([(0, 1)], unit="Gbps"), "`unit` of the graph is 'Gbps'"),
        ([(0, 1)], "found list, needed a networkx graph"),
        (None, "found NoneType, needed a networkx graph"),
    ],
)
def test_graphs_that_are_no_network(graph: Any, message: str) -> None:
    with pytest.raises(collc.CollcError) as raised:
        collc.topology_from_networkx(graph)
    (found,) = raised.value.diagnostics
    assert "C0303" == found.code and found.message.startswith(message)


def test_a_graph_of_switches_alone_has_no_ranks() -> None:
    graph = networkx.Graph()
    graph.add_node("s", kind="switch")
    with pytest.raises(collc.CollcError, match="no ranks"):
        collc.topology_from_networkx(graph)


# ---- from a graph to a program


def test_a_graph_is_compiled() -> None:
    text = "collective c = allgather on pod;"
    made = collc.compile_source(text, topologies={"pod": networkx.petersen_graph()}, target="msccl-xml")
    assert (2, Fraction(9, 10)) == (made.cost.T_L, made.cost.T_B) and ["c.xml"] == list(made.files)
    same = collc.compile_source(text, topologies={"pod": collc.topology_from_networkx(networkx.petersen_graph())})
    assert same.cost == made.cost


@pytest.mark.parametrize("target", ["msccl-xml", "mpi-c", "oneccl-xml", "ir"])
def test_whatever_nodes_are_called(target: str) -> None:
    """Names of strangers end no comment, string or element of what is emitted, which is read back."""
    graph, switch = networkx.DiGraph(), '*/ */ "\n\\ -->'
    graph.add_node(switch, kind="switch")
    for name in ('<&"', "]]>\x00", "a\rb"):
        graph.add_edge(name, switch)
        graph.add_edge(switch, name)
    assert collc.compile_source("collective c = allgather on pod;", topologies={"pod": graph}, target=target).files


def test_the_text_has_the_last_word() -> None:
    text = "topology pod = torus(3); collective c = allgather on pod;"
    assert 3 == collc.compile_source(text, topologies={"pod": networkx.petersen_graph()}).schedule.topology.num_ranks


def test_a_graph_that_is_no_network_is_not_compiled() -> None:
    with pytest.raises(collc.CollcError, match="C0303"):
        collc.compile_source("collective c = allgather on pod;", topologies={"pod": networkx.Graph()})


@pytest.mark.slow
def test_compiling_does_not_load_networkx() -> None:
    lines = (
        "import sys, collc",
        "collc.compile_source('collective c = allreduce on torus(2, 2);', target='msccl-xml')",
        "assert 'networkx' not in sys.modules",
        "collc.topology('torus(2, 2)').to_networkx()",
        "assert 'networkx' in sys.modules",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, timeout=60)
