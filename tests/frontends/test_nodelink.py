"""Node-link JSON: what networkx and d3 write, ids of any type, mistakes with their places, damaged texts."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from itertools import pairwise

import networkx
import pytest
from graph_files import box, nodelink, ring
from imported import imported
from mutated import cases, survives

from collc.frontends import coll
from collc.frontends.importing import sniff
from collc.frontends.importing.coll_text import topology_text
from collc.frontends.importing.model import Imported
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.topology import Topology

NETWORKS = ["torus(3, 3)", "dgx_a100(2)", "leaf_spine(2, 2, 1)", "generalized_kautz(2, 7)"]


def read(value: object) -> Imported:
    network = imported(value if isinstance(value, str) else json.dumps(value), "nodelink")
    assert network.format == "nodelink"
    return network


def mistakes(value: object) -> list[Diagnostic]:
    with pytest.raises(CollcError) as caught:
        read(value)
    return caught.value.diagnostics


def places(value: object) -> list[tuple[str, int]]:
    found = mistakes(value)
    assert all(one.span for one in found)
    return [(one.code, one.span.column) for one in found if one.span]


def graph(nodes: object = (), edges: object = (), **more: object) -> dict[str, object]:
    return {"nodes": nodes, "edges": edges, **more}


def edge(a: object, b: object, **more: object) -> Mapping[str, object]:
    return {"source": a, "target": b, **more}


# ---- what networkx writes and reads


@pytest.mark.parametrize("expression", NETWORKS)
@pytest.mark.parametrize("key", ["edges", "links"])
def test_what_networkx_writes_is_what_from_networkx_reads(expression: str, key: str) -> None:
    written = coll.topology(expression).to_networkx()
    text = json.dumps(networkx.node_link_data(written, edges=key), default=str)
    network = imported(text)
    assert network.format == "nodelink" and not [one for one in network.warnings if one.code != "C0941"]
    assert network.topology(network.title) == Topology.from_networkx(written)


def test_without_flags_a_graph_is_undirected_with_parallel_edges() -> None:
    network = read(graph([{"id": "a"}, {"id": "b"}], [edge("a", "b"), edge("a", "b")]))
    assert [(c.duplex, c.count) for c in network.cables] == [(True, 2)]


def test_edges_are_in_the_order_of_keys_that_number_them() -> None:
    nodes = [{"id": n} for n in "abc"]
    edges = [edge("a", "b", key=2), edge("b", "c", key=0), edge("c", "a", key=1)]
    assert [c.a for c in read(graph(nodes, edges, directed=True)).cables] == ["b", "c", "a"]
    assert [c.a for c in read(graph(nodes, edges, directed=True, multigraph=False)).cables] == ["a", "b", "c"]
    edges[0] = edge("a", "b", key="x")
    assert [c.a for c in read(graph(nodes, edges, directed=True)).cables] == ["a", "b", "c"]


def test_ids_of_any_type() -> None:
    ids: list[object] = [7, "7", [0, "a"], 1.5, None, True, 1]
    network = read(graph([{"id": one} for one in ids], [edge(a, b) for a, b in pairwise(ids)]))
    assert network.ranks == ("7", "'7'", "(0, 'a')", "1.5", "None", "True", "1")


def test_nodes_without_ids_are_numbered() -> None:
    assert read(graph([{}, {"name": "b"}], [edge(0, 1)])).ranks == ("0", "b")


def test_edges_that_number_the_nodes() -> None:
    """As d3 and releases of networkx before 2.0 write them."""
    network = read({"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "links": [edge(0, 2), edge(2, 1)]})
    assert [(c.a, c.b) for c in network.cables] == [("a", "c"), ("c", "b")]
    assert [one.code for one in mistakes({"nodes": [{"id": "a"}], "links": [edge(0, 1)]})] == ["C0983"] * 2


def test_attributes_of_the_graph_as_pairs() -> None:
    assert read(graph([{"id": 0}], graph=[["name", "pod"], ["unit", "B/s"]])).title == "pod"


@pytest.mark.parametrize(
    "text", [nodelink(box()), nodelink(ring(), "links"), '{"nodes": []', '{"directed": true, "graph": {"x": 1}']
)
def test_it_is_recognized(text: str) -> None:
    assert sniff(text) == "nodelink"


@pytest.mark.parametrize("text", ["{}", '{"links": [[0, 1]]}', '{"nodes": 3}', "[1]", '{"checks": []}', ""])
def test_other_json_is_not(text: str) -> None:
    assert sniff(text) != "nodelink"


# ---- mistakes


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("[]", "C0924", 1),
        ('{"nodes": []}', "C0924", 1),
        ('{"nodes": 3, "edges": []}', "C0924", 11),
        ('{"nodes": [3], "edges": []}', "C0924", 12),
        ('{"nodes": [{"id": 1}], "edges": [[0, 1]]}', "C0924", 34),
        ('{"nodes": [{"id": 1}], "edges": [{"source": 1}]}', "C0924", 34),
        ('{"nodes": [{"id": 1}, {"id": 1}], "edges": []}', "C0930", 23),
        ('{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2}]}', "C0983", 58),
        ('{"nodes": [{"id": 1}], "edges": [], "directed": 1}', "C0924", 49),
        ('{"nodes": [{"id": 1}], "edges": [{}], "links": [{}]}', "C0924", 48),
        ('{"nodes": [{"id": 1}], "edges": [], "graph": 3}', "C0924", 46),
        ('{"nodes": [{"id": 1, "kind": 3}], "edges": []}', "C0980", 30),
        ('{"nodes": [{"id": 1, "name": "a\\nb"}], "edges": []}', "C0931", 30),
        ('{"nodes": [{"id": 1, "name": "a\\"b"}], "edges": []}', "C0931", 30),
        ('{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2, "bw": [1]}]}', "C0981", 78),
        ('{"nodes": [{"id": "1', "C0928", 19),
        ('{"nodes": [{"id": 1}], "edges": [NaN]}', "C0928", 34),
        ('{"nodes": [{"id": 1}, "edges": []}', "C0928", 30),
        ('{"nodes": ' + "[" * 300, "C0928", 210),
        ('{"nodes": [{"id": "9e999"}, {"id": 9e999}], "edges": []}', "C0928", 36),
        ("", "C0928", 1),
    ],
)
def test_mistakes_have_their_place(text: str, code: str, column: int | None) -> None:
    one = mistakes(text)[0]
    assert (one.code, one.span and one.span.column) == (code, column)


def test_places_in_long_files_take_no_time() -> None:
    """Each of twenty places near the end of 20,000 edges."""
    edges = [edge(k % 500, (k + 1) % 500, bw=1 if k < 19_900 else "x") for k in range(20_000)]
    text = json.dumps(graph([{"id": k} for k in range(500)], edges), indent=1)
    start = time.process_time()
    found = mistakes(text)
    assert time.process_time() - start < 20
    assert len(found) == 20 and found[0].span and found[0].span.source.line(found[0].span.line).strip() == '"bw": "x"'


def test_damaged_texts() -> None:
    def run(text: str) -> None:
        network = imported(text, "nodelink")
        network.topology("t")
        topology_text(network, "t")

    texts = [nodelink(box(3)), nodelink(ring(4, bw="25 GB/s", lat=1, key=0), "links", None)]
    assert survives(run, texts, cases()) > 20
