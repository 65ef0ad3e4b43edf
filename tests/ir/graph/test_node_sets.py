"""Texts of sets of nodes: exact where they are short, never longer than allowed, and names that give back the set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from named_nodes import nodes_of
from sampling import examples

import collc
from collc.ir.graph.node_sets import LONGEST, NodeSets, spans
from collc.ir.topology import Topology

NETWORKS = [
    "dgx_a100(3)",
    "torus(4, 4)",
    "leaf_spine(3, 4, 2)",
    "mi250(2)",
    "clustered(complete(3), 3, 1)",
    "fat_tree(4)",
]


@given(st.data())
@settings(max_examples=examples(150), deadline=None)
def test_named_nodes_are_the_set_and_texts_are_short(data: st.DataObject) -> None:
    net = collc.topology(data.draw(st.sampled_from(NETWORKS)))
    names = NodeSets(net)
    nodes = data.draw(st.sets(st.integers(0, net.num_nodes - 1), min_size=1))
    nodes.add(data.draw(st.integers(0, net.num_ranks - 1)))
    assert nodes_of(net, names.named(nodes)) == nodes
    text = names.text(nodes)
    assert len(text) <= LONGEST and text.isprintable()


def subsets(number: int) -> Iterator[tuple[int, ...]]:
    for chosen in product((False, True), repeat=number):
        if any(chosen):
            yield tuple(node for node, given in enumerate(chosen) if given)


def boxes(count: int, size: int, fabric: str = "ib") -> Topology:
    """Boxes of ranks on a switch each, every rank on one fabric too."""
    gpus = [(b, i) for b in range(count) for i in range(size)]
    links = [(rank, len(gpus) + b) for rank, (b, _) in enumerate(gpus)]
    links += [(rank, len(gpus) + count) for rank in range(len(gpus))]
    names = (*(f"gpu[{b}, {i}]" for b, i in gpus), *(f"nv[{b}]" for b in range(count)), fabric)
    both = [*links, *((b, a) for a, b in links)]
    return Topology.from_links("boxes", len(gpus), both, count + 1, node_names=names)


@pytest.mark.parametrize("net", [boxes(3, 3), collc.topology("torus(3, 3)")], ids=["boxes", "torus"])
def test_two_sets_never_have_the_same_exact_text(net: Topology) -> None:
    names = NodeSets(net)
    texts = [names.text(ranks) for ranks in subsets(9)]
    exact = [text for text in texts if " such as " not in text]
    assert len(set(exact)) == len(exact) > 500


@pytest.mark.parametrize(
    ("net", "nodes", "text"),
    [
        ("dgx_h100(16)", range(24, 32), "box 3"),
        ("dgx_h100(16)", range(120), "boxes 0 to 14"),
        ("dgx_h100(16)", [*range(24), *range(32, 128)], "all but box 3"),
        ("dgx_h100(16)", [n for n in range(24, 32) if n != 25], "box 3 without gpu[3, 1]"),
        ("dgx_h100(16)", range(4), "gpu[0, 0 to 3]"),
        ("dgx_h100(16)", range(3, 128, 8), "gpu[0 to 15, 3]"),
        ("dgx_h100(16)", [77], "rank gpu[9, 5]"),
        ("dgx_h100(16)", range(128), "all ranks"),
        ("torus(4, 4)", range(4), "row 0"),
        ("torus(4, 4)", range(1, 16, 4), "column 1"),
        ("torus(16, 16)", [*range(5), 9, *range(20, 30)], "ranks 0 to 4, 9, 20 to 29"),
        ("hypercube(6)", range(0, 64, 4), "ranks 0, 4, .., 60"),
        ("hypercube(6)", [n for n in range(64) if n != 7], "all but rank 7"),
        ("biring(256)", [*range(64), *range(128, 192)], "ranks 0 to 63, 128 to 191"),
        ("mi250(4)", range(16, 32), "box 1"),
        ("leaf_spine(4, 8, 2)", range(8), "box 0"),
    ],
)  # fmt: skip
def test_sets_that_people_know(net: str, nodes: range, text: str) -> None:
    assert NodeSets(collc.topology(net)).text(nodes) == text


def test_a_set_without_a_short_text_is_counted() -> None:
    net = collc.topology("dgx_h100(16)")
    nodes = [0, 3, 5, 9, 12, 22, 33, 40, 57, 69, 77, 80, 91, 93, 101, 113, 126]
    assert NodeSets(net).text(nodes) == "17 ranks of 13 boxes, such as gpu[0, 0]"
    assert nodes_of(net, NodeSets(net).named(nodes)) == set(nodes)


def test_switches_are_named_where_they_matter() -> None:
    """Boxes include their switch. Without it, other links count; a switch that no data pass does not matter."""
    names = NodeSets(collc.topology("dgx_a100(3)"))
    assert names.text([*range(8), 24], inward=False) == "box 0"
    assert names.text(range(8), inward=False) == "box 0 without nv[0]"
    assert names.text([*range(8), 24, 27], inward=True) == "box 0 with ib"
    assert names.text([0, 24], inward=True) == "rank gpu[0, 0] with nv[0]"
    assert names.text(range(8)) == "box 0"


def test_boxes_are_found_by_links_where_nodes_have_no_names() -> None:
    named = boxes(2, 4)
    plain = Topology.from_links(
        "plain", 8, list(zip(named.src.tolist(), named.dst.tolist(), strict=True)), num_switches=3
    )
    assert NodeSets(named).boxes == {0: (0, 1, 2, 3), 1: (4, 5, 6, 7)}
    found = NodeSets(plain)
    assert found.text([0, 1, 2, 3, 8], inward=False) in ("box 0", "ranks 0 to 3 with switch 8")


def test_a_spine_is_in_no_box() -> None:
    names = NodeSets(collc.topology("leaf_spine(2, 4, 2)"))
    assert {node: box for node, box in names._box_of.items() if node >= 8} == {8: 0, 9: 1}


def test_numbers_as_ranges() -> None:
    assert spans([]) == [] and spans([4]) == ["4"] and spans([1, 2]) == ["1", "2"]
    assert spans([0, 1, 2, 5, 6, 7, 9]) == ["0 to 2", "5 to 7", "9"]
    assert all(re.fullmatch(r"\d+( to \d+)?|\d+, \d+, \.\., \d+", text) for text in spans(range(0, 50, 7)))
