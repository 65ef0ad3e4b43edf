"""What attributes of graphs mean, the same in node-link JSON, GraphML and Graphviz's language."""

from __future__ import annotations

from fractions import Fraction

import pytest
from graph_files import FORMATS, MANGLINGS, Drawn, box, pair, ring
from imported import connected, imported, same_after_writing

from collc.frontends.importing import sniff
from collc.frontends.importing.figures import Figures, bandwidth_of
from collc.frontends.importing.graphs import exact
from collc.frontends.importing.model import Imported
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes.synthesis.forest.scheduler import ForestScheduler

GB = 10**9
EACH = pytest.mark.parametrize("format", FORMATS)


def read(format: str, graph: Drawn, **figures: object) -> Imported:
    network = imported(FORMATS[format](graph), figures=Figures(**figures))  # type: ignore[arg-type]
    assert network.format == format
    return network


def mistakes(format: str, graph: Drawn, **figures: object) -> list[Diagnostic]:
    with pytest.raises(CollcError) as caught:
        read(format, graph, **figures)
    return caught.value.diagnostics


def pointed(one: Diagnostic) -> str:
    """Return the text that the caret of a mistake points at."""
    span = one.span
    assert span is not None
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1]


def warned(network: Imported, code: str) -> list[str]:
    return [one.message for one in network.warnings if one.code == code]


# ---- the network


@EACH
def test_a_box_of_gpus(format: str) -> None:
    """By hand: 25 GB/s from the switch and 2 * 10 GB/s from neighbours bring the shards of three others."""
    network = read(format, box(4))
    assert network.ranks == ("gpu0", "gpu1", "gpu2", "gpu3") and network.switches == ("sw",)
    assert (network.unit, network.hosts, network.warnings, network.notes) == ("B/s", False, (), ())
    topology = same_after_writing(network)
    assert topology.num_links == 16 and connected(topology)
    assert topology.latency(0) == Fraction(2, 10**6)
    ratio, _ = worst_ratio(topology, [1] * 4)
    assert 1 / ratio == Fraction(45 * GB, 3)
    forest = ForestScheduler().run(Problem(topology, Collective("allgather", 4)))
    assert verify(forest).ok and cost(forest).time_per_byte == ratio / 4


@EACH
def test_relative_bandwidths_of_a_ring_one_way(format: str) -> None:
    """By hand: one link of bandwidth 1 brings the shards of four others."""
    network = read(format, ring(5, directed=True))
    topology = same_after_writing(network)
    assert (topology.unit, topology.num_links) == ("link", 5)
    assert 1 / worst_ratio(topology, [1] * 5)[0] == Fraction(1, 4)
    [assumed] = warned(network, "C0940")
    assert assumed == "assumed a bandwidth of 1 for every link, in relative units (the file has no bandwidths)"
    assert network.notes[0].text == assumed


@EACH
@pytest.mark.parametrize("mangling", MANGLINGS)
def test_mangled_texts_give_the_same_network(format: str, mangling: str) -> None:
    text = FORMATS[format](box(3, name="pod"))
    expected, found = imported(text), imported(MANGLINGS[mangling](text))
    assert (found.ranks, found.switches, found.cables) == (expected.ranks, expected.switches, expected.cables)


@EACH
def test_hosts_are_a_fabric(format: str) -> None:
    nodes = [("n1", {"kind": "host"}), ("n1/mlx5_0", {"kind": "NIC"}), ("leaf", {"kind": "switch"})]
    network = read(format, Drawn(nodes, [("n1", "n1/mlx5_0", {"bw": 50}), ("n1/mlx5_0", "leaf", {"bw": 50})]))
    assert network.hosts and (network.ranks, network.switches) == (("n1",), ("n1/mlx5_0", "leaf"))


@EACH
@pytest.mark.parametrize(
    ("attributes", "bandwidth", "latency"),
    [
        ({"bw": 25, "lat": 1.5}, 25 * GB, "1.5e-6"),
        ({"bw": "25 GB/s", "lat": "700 ns"}, 25 * GB, "7e-7"),
        ({"bandwidth": "400Gbps", "latency": "2 us"}, 50 * GB, "2e-6"),
        ({"bw": "100 Gb/s"}, 12 * GB + GB // 2, "0"),
        ({"LinkSpeedRaw": "10000000000.0"}, GB + GB // 4, "0"),
        ({"bw": "1/3"}, Fraction(GB, 3), "0"),
        ({"bw": "1e-2"}, GB // 100, "0"),
    ],
)
def test_figures_of_links(format: str, attributes: dict[str, object], bandwidth: object, latency: str) -> None:
    network = read(format, pair(**attributes))
    assert [(c.bandwidth, c.latency, c.duplex) for c in network.cables] == [(bandwidth, Fraction(latency), True)]
    same_after_writing(network)


@EACH
def test_the_attributes_that_collc_writes(format: str) -> None:
    graph = pair(bandwidth="50/3", latency="1/7")._replace(about={"unit": "B/s", "name": "two", "gamma": "1/300"})
    network = read(format, graph)
    [cable] = network.cables
    assert (network.unit, network.title, network.gamma, network.epsilon) == ("B/s", "two", Fraction(1, 300), 0)
    assert (cable.bandwidth, cable.latency) == (Fraction(50, 3), Fraction(1, 7))
    assert same_after_writing(network).gamma == Fraction(1, 300)
    relative = read(format, pair(bandwidth="3/2"))
    assert (relative.unit, relative.cables[0].bandwidth) == ("link", Fraction(3, 2))


@EACH
def test_links_keep_their_order_and_number(format: str) -> None:
    """Also parallel ones; a link and its reverse become one statement if one follows the other."""
    ends = [("a", "b"), ("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("b", "c"), ("c", "b"), ("c", "a"), ("c", "c")]
    graph = Drawn([(n, {}) for n in "abc"], [(a, b, {"bw": 1}) for a, b in ends], directed=True)
    network = read(format, graph)
    assert [(a, b) for a, b, _ in network.links()] == ends
    assert [(c.a + c.b, c.duplex, c.count) for c in network.cables] == [
        ("ab", False, 1), ("ab", True, 1), ("bc", True, 2), ("ca", False, 1), ("cc", False, 1),
    ]  # fmt: skip
    same_after_writing(network)


# ---- names


@EACH
def test_names_and_labels(format: str) -> None:
    nodes = [("0", {"name": "leaf"}), ("1", {"label": "n1"}), ("2", {"label": "twin"}), ("3", {"label": "twin"})]
    network = read(format, Drawn(nodes, [("0", "1", {}), ("1", "2", {}), ("2", "3", {})]))
    assert network.ranks == ("leaf", "n1", "2", "3")
    assert "several nodes have the label `twin`: they are called by their ids" in warned(network, "C0942")


@EACH
def test_a_label_that_is_the_id_of_another_node(format: str) -> None:
    network = read(format, Drawn([("a", {"label": "b"}), ("b", {})], [("a", "b", {})]))
    assert network.ranks == ("a", "b") and network.cables[0].a == "a"


@EACH
def test_names_that_no_node_can_have(format: str) -> None:
    [one] = mistakes(format, Drawn([("a", {"name": "x" * 300}), ("b", {})], [("a", "b", {})]))
    assert one.code == "C0931" and "x" * 9 in pointed(one)


@EACH
def test_ignored_attributes_are_one_warning(format: str) -> None:
    graph = Drawn([("a", {"asn": 1}), ("b", {"asn": 2})], [("a", "b", {"capacity": 7, "bw": 1})])
    assert warned(read(format, graph), "C0942") == ["ignored the attributes `asn`, `capacity`"]


# ---- what is missing


@EACH
def test_bandwidths_of_some_edges_only(format: str) -> None:
    graph = Drawn([(n, {}) for n in "abc"], [("a", "b", {"bw": 25}), ("b", "c", {}), ("c", "a", {"lat": 1})])
    [one] = mistakes(format, graph)
    assert one.code == "C0923" and "`b` to `c` has no bandwidth (2 edges in all)" in one.message
    assert one.hint and "--tier-bandwidth link=400Gbps" in one.hint
    assert one.span and one.span.source.line(one.span.line).count("b") == (format != "nodelink")
    given = read(format, graph, tiers={"link": bandwidth_of("400Gbps")})
    assert [cable.bandwidth for cable in given.cables] == [25 * GB, 50 * GB, 50 * GB]
    assert given.notes[0].text == "2 links without a bandwidth have the one given for the tier `link`"


@EACH
def test_a_figure_for_all_edges(format: str) -> None:
    network = read(format, ring(3), tiers={"link": Fraction(GB)})
    assert network.unit == "B/s" and {cable.bandwidth for cable in network.cables} == {GB} and not network.warnings
    [one] = mistakes(format, ring(3)._replace(about={"unit": "B/s"}))
    assert one.code == "C0923"


# ---- faults


@EACH
def test_faults_are_named_and_kept(format: str) -> None:
    """A rank without links, a cable that only one end has, and one of half the bandwidth in one direction."""
    ends = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("c", "d"), ("d", "c"), ("d", "a"), ("a", "d")]
    edges = [(a, b, {"bw": 10}) for a, b in ends * 2]
    edges[0] = ("a", "b", {"bw": 5})
    graph = Drawn([(n, {}) for n in "abcde"], [*edges, ("a", "c", {"bw": 10})], directed=True)
    network = read(format, graph)
    assert warned(network, "C0941") == [
        "there is no link from `e`",
        "there is no link to `e`",
        "the link from `a` to `b` has no reverse with the same bandwidth and latency",
        "the link from `b` to `a` has no reverse with the same bandwidth and latency",
        "the link from `a` to `c` has no reverse with the same bandwidth and latency",
    ]
    assert len(list(network.links())) == 17 and "e" in network.ranks


@EACH
@pytest.mark.parametrize("kind", ["gpu", "host"])
def test_a_gpu_or_host_with_fewer_links_than_the_others(format: str, kind: str) -> None:
    nodes = [*((f"n{k}", {"kind": kind}) for k in range(5)), ("leaf", {"kind": "switch"})]
    edges = [(f"n{k}", "leaf", {"bw": 50}) for k in range(5) for _ in range(4) if k != 3] + [("n3", "leaf", {"bw": 50})]
    assert warned(read(format, Drawn(nodes, edges)), "C0941") == [f"the {kind} `n3` has 1 link, and the others have 4"]
    assert not warned(
        read(format, Drawn(nodes[:3] + nodes[5:], [e for e in edges if e[0] in ("n0", "n1", "n2")])), "C0941"
    )


@EACH
def test_a_network_of_links_one_way_is_no_fault(format: str) -> None:
    assert not warned(read(format, ring(5, directed=True, bw=1)), "C0941")


@EACH
def test_latencies_in_another_unit_are_suspected(format: str) -> None:
    network = read(format, ring(3, bw=1, latency=25))
    [message] = warned(network, "C0984")
    assert message == "the link from `n0` to `n1` has a latency of 25 s"


# ---- mistakes, each with its place


@EACH
@pytest.mark.parametrize(
    ("graph", "code", "at"),
    [
        (pair(bw="fast"), "C0981", "fast"),
        (pair(bw=0), "C0981", "0"),
        (pair(bw=-3), "C0981", "-3"),
        (pair(bw="25 us"), "C0981", "25 us"),
        (pair(bw="nan"), "C0981", "nan"),
        (pair(bw="1/0"), "C0981", "1/0"),
        (pair(bw="9" * 400), "C0981", "9" * 20),
        (pair(bw="1e400"), "C0981", "1e400"),
        (pair(bw="\u0663"), "C0981", ""),
        (pair(lat=-1), "C0981", "-1"),
        (pair(bw=1, lat="slow"), "C0981", "slow"),
        (pair(bw=1, bandwidth=25), "C0982", "1"),
        (pair(lat=1, latency=25), "C0982", "1"),
        (Drawn([("a", {"kind": "swich"}), ("b", {})], [("a", "b", {})]), "C0980", "swich"),
        (Drawn([("a", {}), ("s", {"kind": "switch", "multicast": "maybe"})], [("a", "s", {})]), "C0980", "maybe"),
        (Drawn([("a", {"kind": "switch"})], []), "C0932", ""),
        (Drawn([], []), "C0932", ""),
        (pair(bw=1)._replace(about={"unit": "GB/s"}), "C0981", "GB/s"),
        (pair(bw=1)._replace(about={"gamma": "fast"}), "C0981", "fast"),
    ],
)  # fmt: skip
def test_mistakes_have_their_place(format: str, graph: Drawn, code: str, at: str) -> None:
    [one] = mistakes(format, graph)
    assert one.code == code
    assert at in pointed(one), pointed(one)


@EACH
def test_two_units_in_one_graph(format: str) -> None:
    graph = Drawn([(n, {}) for n in "abc"], [("a", "b", {"bw": 25}), ("b", "c", {"bandwidth": 7})])
    [one] = mistakes(format, graph)
    assert one.code == "C0982" and "7" in pointed(one)


@EACH
def test_all_mistakes_are_reported_together_but_not_more_than_twenty(format: str) -> None:
    found = mistakes(format, Drawn([(n, {}) for n in "ab"], [("a", "b", {"bw": "x", "lat": "y"})] * 3))
    assert [one.code for one in found] == ["C0981"] * 6
    assert len(mistakes(format, Drawn([(n, {}) for n in "ab"], [("a", "b", {"bw": "x"})] * 3000))) == 20


@EACH
def test_limits(format: str) -> None:
    [one] = mistakes(format, ring(30), node_limit=20)
    assert one.code == "C0933" and "30" in (one.hint or "") + one.message
    [one] = mistakes(format, ring(4)._replace(edges=ring(4).edges * 101), node_limit=10)
    assert one.code == "C0933" and "`--node-limit" in (one.hint or "")


def test_unknown_nodes_have_the_nearest_name() -> None:
    graph = Drawn([("gpu0", {}), ("gpu1", {})], [("gpu0", "gpu1", {}), ("gpu0", "gpuu1", {}), ("x", "gpu0", {})])
    for format in ("nodelink", "graphml"):  # in Graphviz's language an edge declares its nodes
        found = mistakes(format, graph)
        assert [(one.code, pointed(one).strip('"')) for one in found] == [("C0983", "gpuu1"), ("C0983", "x")]
        assert found[0].hint == "did you mean `gpu1`?"


def test_numbers_are_exact_or_refused() -> None:
    assert exact("0.1") == Fraction(1, 10) and exact(Fraction(1, 3)) == Fraction(1, 3) and exact(7) == 7
    assert [exact(text) for text in ("", "1_000", "٣", "0x10", "inf", "1e999", "1/2/3", "--1", None)] == [None] * 9


@EACH
def test_the_format_is_recognized(format: str) -> None:
    assert sniff(FORMATS[format](box())) == format
