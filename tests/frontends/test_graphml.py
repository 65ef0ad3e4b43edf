"""GraphML: keys and defaults, prefixes, yEd's labels and arrows, what has no place in a network, damaged texts."""

from __future__ import annotations

import io
from fractions import Fraction

import networkx
import pytest
from graph_files import Drawn, box, graphml, pair, ring
from imported import imported
from mutated import cases, survives

from collc.frontends import coll
from collc.frontends.importing import sniff
from collc.frontends.importing.coll_text import topology_text
from collc.frontends.importing.figures import Figures
from collc.frontends.importing.model import Imported
from collc.frontends.importing.trees import ElementPlaces, parse_xml
from collc.ir.diagnostic import CollcError, Diagnostic, Source
from collc.ir.topology import Topology

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">'


def read(text: str, **figures: object) -> Imported:
    network = imported(text, "graphml", Figures(**figures))  # type: ignore[arg-type]
    assert network.format == "graphml"
    return network


def mistake(text: str, **figures: object) -> Diagnostic:
    with pytest.raises(CollcError) as caught:
        read(text, **figures)
    return caught.value.diagnostics[0]


def whole(inside: str, keys: str = "", default: str = "undirected") -> str:
    return f'{HEAD}{keys}<graph edgedefault="{default}">{inside}</graph></graphml>'


NODES = '<node id="a"/><node id="b"/>'


# ---- dialects


@pytest.mark.parametrize("expression", ["torus(3, 3)", "dgx_a100(2)", "generalized_kautz(2, 7)"])
def test_what_networkx_writes_is_what_from_networkx_reads(expression: str) -> None:
    graph = coll.topology(expression).to_networkx()
    for *_, data in graph.edges(data=True):
        data.update({name: str(value) for name, value in data.items()})
    graph.graph.update({name: str(value) for name, value in graph.graph.items()})
    written = io.BytesIO()
    networkx.write_graphml(graph, written)
    network = imported(written.getvalue().decode())
    assert network.format == "graphml"
    assert network.topology(network.title) == Topology.from_networkx(graph)


@pytest.mark.parametrize("prefix", ["", "g", "graph-ml"])
def test_any_prefix_of_the_namespace(prefix: str) -> None:
    text = graphml(box(3), prefix)
    assert sniff(text) == "graphml" and read(text).cables == read(graphml(box(3))).cables


def test_defaults_of_keys() -> None:
    graph = Drawn([(n, {}) for n in "abc"], [("a", "b", {}), ("b", "c", {"bw": 5})])
    assert [c.bandwidth for c in read(graphml(graph, defaults={"bw": 7})).cables] == [7 * 10**9, 5 * 10**9]


def test_a_key_for_all() -> None:
    keys = '<key id="k" for="all" attr.name="bw"><default>2</default></key><key id="l" attr.name="kind"/>'
    network = read(
        whole('<node id="a"/><node id="s"><data key="l">switch</data></node><edge source="a" target="s"/>', keys)
    )
    assert network.switches == ("s",) and network.cables[0].bandwidth == 2 * 10**9


def test_a_network_of_the_topology_zoo() -> None:
    """It has labels of nodes and of the graph, keys of networkx beside ids, and speeds in bit/s of some links."""
    names = {"node": ["label", "Longitude", "id", "Internal"], "graph": ["label", "Network"]}
    names["edge"] = ["LinkLabel", "key", "LinkSpeedRaw"]
    keys = "".join(
        f'<key attr.name="{name}" attr.type="string" for="{owner}" id="{owner}{name}"/>\n'
        for owner, listed in names.items() for name in listed
    )  # fmt: skip
    cities = ["New York", "Chicago", "Chicago", "None"]
    nodes = "".join(
        f'<node id="{k}"><data key="nodelabel">{city}</data><data key="nodeid">{k}</data></node>\n'
        for k, city in enumerate(cities)
    )
    speed = '<data key="edgeLinkSpeedRaw">10000000000.0</data>'
    edges = "".join(
        f'<edge source="{k}" target="{(k + 1) % 4}"><data key="edgekey">0</data>{speed if k else ""}</edge>\n'
        for k in range(4)
    )
    text = whole(f'<data key="graphlabel">Abilene</data>{nodes}{edges}', keys)
    assert mistake(text).code == "C0923"
    network = read(text, tiers={"link": Fraction(5 * 10**9)})
    assert network.ranks == ("New York", "1", "2", "None") and network.title == "Abilene"
    assert [cable.bandwidth for cable in network.cables] == [5 * 10**9, *[10**10 // 8] * 3]


def test_an_edge_may_be_directed_by_itself() -> None:
    edges = '<edge source="a" target="b" directed="true"/><edge source="a" target="b"/>'
    assert [c.duplex for c in read(whole(NODES + edges)).cables] == [False, True]
    edges = '<edge source="a" target="b" directed="false"/>'
    assert [c.duplex for c in read(whole(NODES + edges, default="directed")).cables] == [True]


def test_edges_are_in_the_order_of_ids_that_number_them() -> None:
    edges = '<edge id="1" source="a" target="b"/><edge id="0" source="b" target="a"/>'
    assert [c.a for c in read(whole(NODES + edges)).cables] == ["b", "a"]
    assert [c.a for c in read(whole(NODES + edges.replace('"0"', '"e0"'))).cables] == ["a", "b"]


def drawn(label: str, tag: str = "ShapeNode") -> str:
    return (
        f'<data key="d6"><y:{tag}><y:Geometry x="1"/><y:NodeLabel>{label}<y:LabelModel/></y:NodeLabel></y:{tag}></data>'
    )


def arrows(source: str, target: str) -> str:
    return f'<data key="d9"><y:PolyLineEdge><y:Arrows source="{source}" target="{target}"/></y:PolyLineEdge></data>'


def test_labels_and_arrows_of_yed() -> None:
    """It declares all graphs as directed, and draws cables without arrows."""
    keys = '<key for="node" id="d6" yfiles.type="nodegraphics"/><key for="edge" id="d9" yfiles.type="edgegraphics"/>'
    keys += '<key for="node" id="d5" attr.name="asn"/><key for="graph" id="d0" attr.name="Description"/>'
    nodes = [f'<node id="n{k}"><data key="d5">7</data>{drawn(f" leaf{k} ")}</node>' for k in range(3)]
    ends = [("none", "none"), ("standard", "standard"), ("none", "standard"), ("white_delta", "none")]
    edges = [f'<edge id="e{k}" source="n0" target="n1">{arrows(*each)}</edge>' for k, each in enumerate(ends)]
    network = read(whole("".join([*nodes, *edges]), keys, "directed"))
    assert network.ranks == ("leaf0", "leaf1", "leaf2")
    assert [(a, b) for a, b, _ in network.links()] == [
        ("leaf0", "leaf1"), ("leaf1", "leaf0"), ("leaf0", "leaf1"), ("leaf1", "leaf0"), ("leaf0", "leaf1"),
        ("leaf1", "leaf0"),
    ]  # fmt: skip
    assert [one.message for one in network.warnings if one.code == "C0942"] == ["ignored the attribute `asn`"]


def test_one_of_several_graphs_is_chosen() -> None:
    text = f'{HEAD}<graph id="x" edgedefault="directed">{NODES}</graph><graph id="y"><node id="z"/></graph></graphml>'
    one = mistake(text)
    assert (one.code, one.hint) == ("C0985", "choose one: `--choose x`") and one.span
    assert text[one.span.column - 1 :].startswith("<graph id")
    assert read(text, choice="y").ranks == ("z",)
    assert mistake(text, choice="yy").hint == "did you mean `y`?"


# ---- mistakes


@pytest.mark.parametrize(
    ("inside", "at"),
    [
        (NODES + '<hyperedge><endpoint node="a"/></hyperedge>', "<hyperedge"),
        ('<node id="a"><port name="p"/></node>', "<port"),
        ('<node id="a"><graph edgedefault="directed"/></node>', "<graph edgedefault=\"directed\"/>"),
        (NODES + '<edge source="a" target="b" sourceport="p"/>', '"p"'),
        (NODES + '<edge source="a"/>', "<edge"),
        ("<node/>", "<node/>"),
        (NODES + '<edge source="a" target="b" directed="maybe"/>', '"maybe"'),
        (NODES + '<edge source="a" target="b"><data key="zz">1</data></edge>', '"zz"'),
        (NODES + '<edge source="a" target="c"/>', '"c"'),
        (NODES + '<node id="a"/>', '<node id="a"/></graph>'),
    ],
)  # fmt: skip
def test_mistakes_have_their_place_also_on_one_line(inside: str, at: str) -> None:
    text = whole(inside)
    one = mistake(text)
    assert one.code in ("C0924", "C0983", "C0930") and one.span
    assert text[one.span.column - 1 :].startswith(at)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<system/>", "C0924"),
        (f"{HEAD}</graphml>", "C0924"),
        (whole(NODES, default="sideways"), "C0924"),
        ('<!DOCTYPE graphml [<!ENTITY x "y">]>' + whole(NODES), "C0927"),
        ('<!ENTITY x SYSTEM "/etc/passwd">', "C0927"),
        (whole(NODES)[:-20], "C0927"),
        ("", "C0927"),
        (whole(""), "C0932"),
    ],
)
def test_texts_that_are_no_graph(text: str, code: str) -> None:
    assert mistake(text).code == code


def test_a_document_type_without_declarations_is_skipped() -> None:
    text = f'<?xml version="1.0"?>\n<!-- of a tool -->\n<!DOCTYPE graphml SYSTEM "graphml.dtd">\n{whole(NODES)}'
    assert sniff(text) == "graphml" and read(text).ranks == ("a", "b")


def test_places_of_elements_look_through_comments_and_sections() -> None:
    text = "<r><!-- <a> --><![CDATA[<a>]]><a x='1>2'>t</a>\n<b:c xmlns:b='u' d=\"e\"/></r>"
    source = Source("x", text)
    root = parse_xml(source)
    found = ElementPlaces(source, root)
    assert [found.of(element).column for element in root] == [31, 1]
    assert (found.of(root[0], "x").column, found.of_text(root[0]).column, found.of(root[1], "d").column) == (36, 42, 20)


def test_damaged_texts() -> None:
    def run(text: str) -> None:
        network = imported(text, "graphml")
        network.topology("t")
        topology_text(network, "t")

    texts = [graphml(box(3)), graphml(ring(4, bw="25 GB/s"), "g", {"lat": 1}), graphml(pair(bandwidth="1/3"))]
    assert survives(run, texts, cases()) > 20
