"""Machines, clusters and fat trees: counts and bandwidths of the testbeds, what oversubscription and subsets leave."""

from __future__ import annotations

import time
from fractions import Fraction
from importlib import import_module

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.frontends.coll import topology
from collc.ir.diagnostic import CollcError
from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.graph.isomorphism import isomorphism
from collc.ir.topology import Topology
from collc.ir.validate import structure

GB = 10**9


def merged(net: Topology) -> int:
    """The number of links, parallel ones counted once."""
    return len(set(zip(net.src.tolist(), net.dst.tolist(), strict=True)))


def one_over_x(expression: str) -> Fraction:
    """1/x* in the units of the paper: GB/s, or links."""
    net = topology(expression)
    ratio, _ = worst_ratio(net, [1] * net.num_ranks)
    return ratio * GB if net.unit == "B/s" else ratio


@pytest.mark.parametrize(
    ("expression", "nodes", "links"),
    [
        ("dgx_a100(1)", 9, 16), ("dgx_a100(2)", 19, 64), ("dgx_a100(2, 2)", 36, 96), ("dgx_a100(16)", 145, 512),
        ("dgx_h100(4)", 37, 128), ("mi250(1)", 16, 56), ("mi250(2)", 33, 176), ("mi250(16)", 257, 1408),
        ("subset(mi250(2), {0..8, 16..24})", 17, 76), ("dgx1_v100()", 8, 32),
    ],
)  # fmt: skip
def test_machines_have_the_nodes_and_links_of_the_testbeds(expression: str, nodes: int, links: int) -> None:
    net = topology(expression)
    assert (net.num_nodes, merged(net)) == (nodes, links)
    assert structure(net) == [] and net.reverse_links is not None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("dgx_a100(1)", "7/300"), ("dgx_a100(2)", "3/65"), ("dgx_a100(2, 2)", "3/65"), ("dgx_a100(4, 8)", "3/25"),
        ("dgx_a100(128)", "127/25"), ("dgx_h100(2, 1)", "3/100"), ("mi250(2)", "15/166"), ("mi250(64)", "63/16"),
        ("subset(mi250(2), {0..8, 16..24})", "1/13"), ("dgx1_v100()", "7/150"),
        ("clustered(dgx_a100(1), 8, 25 GB/s)", "7/25"), ("clustered(dgx_a100(1), 8, 25 GB/s, 2, 4)", "12/25"),
        ("leaf_spine(4, 8, 2)", "31"), ("leaf_spine(4, 8, 2, 8)", "31"), ("leaf_spine(4, 8, 2, 16)", "48"),
        ("fat_tree(8)", "127"), ("fat_tree(8, 4)", "127"),
    ],
)  # fmt: skip
def test_bottlenecks_of_machines(expression: str, expected: str) -> None:
    """The figures of the ForestColl testbeds, and cuts that can be seen: a box, a leaf, a single rank."""
    assert one_over_x(expression) == Fraction(expected)


def test_rails_join_the_nics_of_one_place() -> None:
    net = topology("dgx_a100(3, 2)")
    names = list(net.names)
    graph = nx.DiGraph([(names[a], names[b]) for a, b in zip(net.src, net.dst, strict=True)])
    for box in range(3):
        for i in range(8):
            assert set(graph[f"nic[{box}, {i}]"]) == {f"gpu[{box}, {i}]", f"ib[{i % 2}]"}
            assert set(graph[f"gpu[{box}, {i}]"]) == {f"nic[{box}, {i}]", f"nv[{box}]"}
    assert net.egress(names.index("ib[1]")) == 3 * 4 * 25 * GB
    assert topology("dgx_h100(2, 2)").egress(0) == 500 * GB


def test_a_single_box_has_nothing_to_be_joined_by() -> None:
    for expression in ("dgx_a100(1, 2)", "clustered(dgx_a100(1), 1, 25 GB/s)", "leaf_spine(1, 4, 8)"):
        assert topology(expression).num_switches == 1, expression
    assert topology("clustered(torus(3, 3), 1, 1)").num_links == 36
    assert topology("clustered(torus(3, 3), 2, 1, 2)").names[-1] == "leaf[0]"


@pytest.mark.parametrize("family", ["dgx_a100", "dgx_h100"])
def test_a_machine_is_its_boxes_clustered(family: str) -> None:
    speed = {"dgx_a100": 25, "dgx_h100": 50}[family]
    one, two = topology(f"{family}(4)"), topology(f"clustered({family}(1), 4, {speed} GB/s)")
    found = isomorphism(one, two)
    assert found is not None and found[: one.num_ranks].tolist() == sorted(found[: one.num_ranks].tolist())
    assert two.names[9] == "gpu[1, 0, 1]" and two.names[-2:] == ("nv[3, 0]", "fabric")


@given(
    st.sampled_from(
        ["torus(2, 3)", "uniring(3)", "leaf_spine(2, 2, 2, 2)", "complete(1)", "clustered(complete(2), 2, 1)"]
    ),
    st.integers(1, 3), st.integers(1, 2), st.integers(1, 3), st.sampled_from(["1", "1/2", "3"]),
)  # fmt: skip
def test_clusters_are_copies_and_a_fabric(inside: str, leaves: int, under: int, ratio: int, bandwidth: str) -> None:
    """Taking the fabric away leaves the boxes; ranks bring what they bring to leaves, and leaves 1/ratio of it up."""
    base = topology(inside)
    boxes = leaves * under
    net = topology(f"clustered({inside}, {boxes}, {bandwidth}, {under}, {ratio})")
    assert structure(net) == [] and len(set(net.names)) == net.num_nodes
    module = import_module("collc.frontends.coll.families.clusters")
    arguments = net.origin.arguments  # type: ignore[union-attr]
    assert module.clustered_size(*arguments) == (net.num_nodes, net.num_links)
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(net.num_nodes))
    graph.add_edges_from(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    fabric = [node for node in range(net.num_nodes) if node >= boxes * base.num_nodes]
    rate = Fraction(bandwidth)
    for node in fabric:
        up = Fraction(under * base.num_ranks) * rate / ratio
        at = net.names[node]
        if at == "spine":
            assert net.egress(node) == net.ingress(node) == leaves * up
        else:
            assert net.egress(node) == net.ingress(node) == under * base.num_ranks * rate + (leaves > 1) * up
    graph.remove_nodes_from(fabric)
    one = nx.MultiDiGraph()
    one.add_nodes_from(range(base.num_nodes))
    one.add_edges_from(zip(base.src.tolist(), base.dst.tolist(), strict=True))
    assert nx.is_isomorphic(graph, nx.disjoint_union_all([one] * boxes))


def test_oversubscribed_fat_trees_have_fewer_switches_at_the_top() -> None:
    for k, ratio in ((4, 2), (8, 2), (8, 4), (12, 3)):
        whole, less = topology(f"fat_tree({k})"), topology(f"fat_tree({k}, {ratio})")
        half = k // 2
        assert whole.num_nodes - less.num_nodes == half * half - half * (half // ratio)
        pod_up = int(np.count_nonzero(less.dst >= less.num_nodes - half * (half // ratio))) // k
        assert pod_up == half * half // ratio  # links out of a pod; its hosts have half * half
    assert topology("fat_tree(6, 1)").names == topology("fat_tree(6)").names


def test_leaves_are_oversubscribed_by_bandwidth() -> None:
    net = topology("leaf_spine(4, 6, 3, 2)")
    leaf, spine = net.names.index("leaf[2]"), net.names.index("spine[1]")
    assert net.egress(leaf) == 6 + 3 and net.egress(spine) == 4 and net.is_uniform is True
    assert topology("leaf_spine(4, 6, 2, 2)").egress(leaf) == 9 and not topology("leaf_spine(4, 6, 2, 2)").is_uniform
    assert topology("leaf_spine(4, 6, 2) with { bandwidth: 10 GB/s }").egress(0) == 10 * GB


# ---- subsets


def test_subsets_leave_out_switches_that_join_nothing() -> None:
    assert topology("subset(dgx_a100(2), {0..8})").names[8:] == ("nv[0]", "ib")  # which joins the GPUs of one box
    assert topology("subset(dgx_a100(2, 2), {0, 8})").names == (
        "gpu[0, 0]",
        "gpu[1, 0]",
        "nic[0, 0]",
        "nic[1, 0]",
        "ib[0]",
    )
    assert topology("subset(dgx_a100(1), {0})").num_switches == 0
    assert topology("subset(mi250(2), {5})").num_links == 0
    assert topology("subset(leaf_spine(3, 4, 1), {0..4})").names[4:] == ("leaf[0]",)  # leaves, then the spine


def test_ranks_of_a_subset_may_be_named() -> None:
    named = topology("subset(mi250(2), {gpu[1, 3], gpu[0, 0], 4..6})")
    assert named.names[:4] == ("gpu[0, 0]", "gpu[0, 4]", "gpu[0, 5]", "gpu[1, 3]")
    assert named.name == "subset(mi250(2), {0, 4..6, 19})"
    assert topology("subset(subset(mi250(2), 16..32), {gpu[1, 0], gpu[1, 1]})").num_ranks == 2
    assert topology("subset(dgx_a100(2), {0..11, 12..16})").name == "subset(dgx_a100(2), {0..11, 12..16})"


@given(st.sampled_from(["fat_tree(4)", "dgx_a100(2, 2)", "hammingmesh(2, 2, 1, 2)", "debruijn(2, 3)"]), st.data())
def test_subsets_keep_all_ways_between_their_ranks(expression: str, data: st.DataObject) -> None:
    """A switch that is left out lies on no way: hops through the kept nodes are what they were."""
    net = topology(expression)
    ranks = sorted(data.draw(st.sets(st.integers(0, net.num_ranks - 1), min_size=1)))
    part = topology(f"subset({expression}, {{{', '.join(map(str, ranks))}}})")
    graph = nx.DiGraph(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    graph.remove_nodes_from(set(range(net.num_ranks)) - set(ranks))
    for i, a in enumerate(ranks):
        for j, b in enumerate(ranks):
            there = a in graph and b in graph and nx.has_path(graph, a, b)
            assert part.distances[i, j] == (nx.shortest_path_length(graph, a, b) if there else 0 if i == j else -1)
    for switch in range(part.num_ranks, part.num_nodes):
        around = set(part.src[part.dst == switch].tolist()) | set(part.dst[part.src == switch].tolist())
        assert len(around - {switch}) > 1


# ---- the language


@pytest.mark.parametrize(
    "expression",
    [
        "dgx_a100(128)", "dgx_a100(128, 8)", "mi250(64)", "leaf_spine(64, 16, 8, 2)", "fat_tree(16, 2)",
        "clustered(dgx_a100(1), 128, 25 GB/s, 8, 2)", "clustered(torus(4, 4), 64, 1/2)",
        "subset(dgx_a100(128), {0..17, 18..1024})",
    ],
)  # fmt: skip
def test_a_thousand_ranks_are_quick(expression: str) -> None:
    topology("dgx_a100(2)")
    began = time.process_time()
    net = topology(expression)
    assert time.process_time() - began < 0.5
    assert net.num_ranks in (1023, 1024) and len(net.name) < 60


def test_bandwidths_of_a_fabric_have_the_units_of_its_boxes() -> None:
    assert topology("clustered(dgx1_v100(), 2, 200 Gbps)").name == "clustered(dgx1_v100(), 2, 200 Gbps)"
    assert topology("clustered(dgx1_v100(), 2, 1/3 * 25 GB/s)").name == "clustered(dgx1_v100(), 2, 25/3 GB/s)"
    assert topology("clustered(complete(1), 4, 10 GB/s)").unit == "B/s"
    assert topology("clustered(torus(3), 2, 1/2) with { bandwidth: 10 GB/s }").egress(0) == 25 * GB
    for wrong, code in (("dgx1_v100(), 2, 25", "C0312"), ("torus(3), 2, 1 GB/s", "C0312"), ("torus(3), 2, 0", "C0311")):
        with pytest.raises(CollcError) as caught:
            topology(f"clustered({wrong})")
        assert [d.code for d in caught.value.diagnostics] == [code]
