"""Graphviz's language: grammar, scopes of defaults, subgraphs, directions, labels, places, damaged texts, time."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from graph_files import box, dot, ring
from imported import imported
from mutated import cases, survives

from collc.frontends.importing import sniff
from collc.frontends.importing.coll_text import topology_text
from collc.frontends.importing.figures import Figures
from collc.frontends.importing.model import Imported
from collc.ir.diagnostic import CollcError, Diagnostic

GB = 10**9


def read(text: str, **figures: object) -> Imported:
    network = imported(text, "dot", Figures(**figures))  # type: ignore[arg-type]
    assert network.format == "dot"
    return network


def links(text: str) -> list[str]:
    """Return the links as `a>b`, with the bandwidth in GB/s if there is one."""
    network = read(text)
    scale = GB if network.unit == "B/s" else 1
    return [f"{a}>{b}" + (f" {kind.bandwidth / scale}" if scale > 1 else "") for a, b, kind in network.links()]


def mistake(text: str, **figures: object) -> Diagnostic:
    with pytest.raises(CollcError) as caught:
        read(text, **figures)
    return caught.value.diagnostics[0]


# ---- the language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("graph { a -- b }", ["a>b", "b>a"]),
        ("digraph { a -> b -> c }", ["a>b", "b>c"]),
        ("DiGraph{a->b;b->c;}", ["a>b", "b>c"]),
        ("digraph g { a -> { b; c } }", ["a>b", "a>c"]),
        ("digraph g { {a b} -> subgraph x { c d } -> e }", ["a>c", "a>d", "b>c", "b>d", "c>e", "d>e"]),
        ("digraph { subgraph { a -> b } -> c }", ["a>b", "a>c", "b>c"]),
        ('digraph "x y" { "a" -> "b" }', ["a>b"]),
        ('digraph { "a" + "b" -> "c\\\nd" }', ["ab>cd"]),
        ("digraph { a:p1 -> b:p2:nw }", ["a>b"]),
        ("digraph { -1.5 -> .5 -> 2. }", ["-1.5>.5", ".5>2."]),
        ("digraph { node_1 -> edge_2 -> graph3 }", ["node_1>edge_2", "edge_2>graph3"]),
        ("digraph { \u00e9t\u00e9 -> \u6771 }", ["\u00e9t\u00e9>\u6771"]),
        ("// c\n/* d\n*/ digraph { a -> b // e\n /* -> c */ }", ["a>b"]),
        ('# 1 "x.gv"\ndigraph {\n# 2\na -> b }', ["a>b"]),
        ("digraph { a -> <n<b>1</b>> }", ["a>n<b>1</b>"]),
        ("digraph { a [x=1][y=2]; a -> b }", ["a>b"]),
        ("digraph { a -> {} -> b; {a -> b} [kind=switch]; {} }", ["a>b"]),
        ("strict digraph { a -> b; a -> b; b -> a }", ["a>b", "b>a"]),
        ("digraph { a -> b; a -> b }", ["a>b", "a>b"]),
        ("strict graph { a -- b; b -- a }", ["a>b", "b>a"]),
        ("digraph { a -> b [dir=back]; a -> c [dir=both]; a -> d [dir=none] }", ["b>a", "a>c", "c>a", "a>d", "d>a"]),
        ("graph { a -- b [dir=forward]; a -- c [dir=back] }", ["a>b", "c>a"]),
        ("digraph { edge [dir=both]; a -> b }", ["a>b", "b>a"]),
        ("digraph { a -> a }", ["a>a"]),
    ],
)
def test_statements(text: str, expected: list[str]) -> None:
    assert links(text) == expected


def test_defaults_are_those_of_the_scope() -> None:
    text = """digraph {
      edge [bw=1]; a -> b;
      subgraph { edge [bw=2]; b -> c; { c -> d } }
      d -> a; edge [bw="3 GB/s"]; a -> c; a -> d [bw=4]
    }"""
    assert links(text) == ["a>b 1", "b>c 2", "c>d 2", "d>a 1", "a>c 3", "a>d 4"]


def test_defaults_of_nodes_are_for_those_that_come_after() -> None:
    text = "digraph { a; node [kind=switch]; a -> b; { node [kind=nic]; c; a } d -> c; b [kind=gpu] }"
    network = read(text)
    assert (network.ranks, network.switches) == (("a", "b"), ("c", "d"))


def test_attributes_of_the_graph() -> None:
    network = read('digraph pod { unit="B/s"; graph [epsilon="1/2"]; a -> b [bandwidth=5]; { unit="x" } }')
    assert (network.title, network.unit, network.epsilon) == ("pod", "B/s", Fraction(1, 2))
    assert not network.warnings or [one.code for one in network.warnings] == ["C0941"] * 2


def test_strict_edges_have_the_attributes_of_all_statements() -> None:
    assert links("strict graph { a -- b [bw=1]; b -- a [lat=2]; a -- b [bw=7] }") == ["a>b 7", "b>a 7"]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ('a [label="gpu 0"]', "gpu 0"), ('a [label="\\N.x"]', "a.x"), ('a [label="x\\ny"]', "a"),
        ("a [label=<<b>x</b>>]", "a"), ('a [shape=record, label="{x|y}"]', "a"), ('a [label=""]', "a"),
        ('a [name="leaf"]', "leaf"), ('a [label="\\G/\\\\"]', "pod/\\"),
    ],
)  # fmt: skip
def test_labels_as_names(statement: str, name: str) -> None:
    assert read(f"digraph pod {{ {statement}; a -> b }}").ranks == (name, "b")


def test_attributes_for_drawing_are_no_matter() -> None:
    text = 'digraph { rankdir=LR; node [shape=box, color=red]; a -> b [weight=3, label="25", style="bold"] }'
    assert [one.code for one in read(text).warnings if one.code == "C0942"] == []
    assert "ignored the attribute `speed`" in [one.message for one in read("graph { a -- b [speed=3] }").warnings]


def test_one_of_several_graphs_is_chosen() -> None:
    text = "digraph a { x -> y }\ngraph b { z }"
    one = mistake(text)
    assert (one.code, one.span and one.span.line) == ("C0985", 2)
    assert read(text, choice="b").ranks == ("z",)
    assert mistake(text, choice="c").code == "C0985"


@pytest.mark.parametrize("text", ["graph{", "digraph g {", 'strict graph "a b"\n{', "/* x */ graph x {", dot(ring())])
def test_it_is_recognized(text: str) -> None:
    assert sniff(text) == "dot"


@pytest.mark.parametrize("text", ["graph [ node [ id 1 ] ]", "topology graph {", "digraph", "graphs {", "# graph {\n"])
def test_other_texts_are_not(text: str) -> None:
    assert sniff(text) is None


# ---- mistakes


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("digraph { a -- b }", "found `--` in a directed graph, needed `->`", 13),
        ("graph { a -> b }", "found `->` in an undirected graph, needed `--`", 11),
        ("graph { a -- b [bw=10Gbps] }", "found `10Gbps`, which is no number and no name", 20),
        ("graph { 1abc }", "found `1abc`, which is no number and no name", 9),
        ("graph { a -- b [bw=1 }", "found a list of attributes that does not end", 16),
        ('graph { a -- "b }', "found a quotation that does not end", 14),
        ("graph { a /* b }", "found a comment that does not end", 11),
        ("graph { a -- <b }", "found an HTML label that does not end", 14),
        ("graph { a -- b [=1] }", "found `=`, needed a name", 17),
        ("graph { a -- b [x=] }", "the text ends too early", 18),
        ("graph { a -- }", "found `}`", 14),
        ("graph { a -- b ", "the text ends too early", 14),
        ("graph { a -- b } }", "found `}`", 18),
        ("graph { a ? b }", "found `?`", 11),
        ("graph a b { }", "found `b`, needed `{`", 9),
        ("graph { a -- b [dir=up] }", "found the direction `up`, needed forward, back, both, none", 21),
        ("", "the text ends too early", 1),
    ],
)
def test_mistakes_have_their_place(text: str, message: str, column: int) -> None:
    one = mistake(text)
    assert one.code == "C0924" and one.message.startswith(message), one
    assert one.span and one.span.column == column


def test_places_are_those_of_the_list_where_the_attribute_stands() -> None:
    text = "graph { edge [bw=x]; a -- b; b -- c [\n lat=y] }"
    with pytest.raises(CollcError) as caught:
        read(text)
    found = [(one.span.line, one.span.column) for one in caught.value.diagnostics if one.span]
    assert found == [(1, 18), (1, 18), (2, 6)]


def test_many_edges_in_few_characters_are_refused_before_they_are_there() -> None:
    some, others = (" ".join(f"{letter}{k}" for k in range(1000)) for letter in "ab")
    one = mistake(f"graph {{ {{{some}}} -- {{{others}}} }}")
    assert (one.code, one.message) == ("C0933", "found 1000000 links, the limit is 400000") and one.span


@pytest.mark.parametrize("depth", [200, 20_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    message = mistake("graph {" + "{" * depth + "}" * depth + "}").message
    assert message == "found more than 100 subgraphs inside each other"
    assert mistake("graph {" + "{" * depth).code == "C0924"


@pytest.mark.slow
def test_a_large_graph_takes_linear_time() -> None:
    """8,000 edges take less than a second; the limit is generous."""
    lines = [f'  n{k} -> "n{k * 7 % 5000}" [bw={k % 5 + 1}, lat="1"];' for k in range(8_000)]
    start = time.process_time()
    network = read("\n".join(["digraph g {", *lines, "}"]))
    assert time.process_time() - start < 30
    assert len(network.ranks) == 8_000 and len(network.cables) == 8_000


def test_damaged_texts() -> None:
    def run(text: str) -> None:
        network = imported(text, "dot")
        network.topology("t")
        topology_text(network, "t")

    other = """strict graph "pod" { /* c */ node [kind=gpu, label="\\N"]; edge [bw="25 GB/s"] // x
      a:p1 -- {b; c} -- subgraph s { d [kind=switch] } [lat=2, dir=both];
      # line
      e -- a [label=<<b>x</b>>]; "f" + "g" -- a }"""
    assert survives(run, [dot(box(3)), other, dot(ring(4, directed=True, bandwidth="1/3"))], cases(100)) > 10
