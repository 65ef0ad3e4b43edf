"""Cayley digraphs in the language: the links of the definition, the symmetry they claim, and the groups as values."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from graphs import as_graph, claims_hold, links
from hypothesis import given
from hypothesis import strategies as st

from collc.frontends.coll import details, format_text, load, topology
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.group import GROUPS, build_group, parse_group
from collc.ir.spec import Problem
from collc.ir.text import parse_ir, print_ir
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.breadth_first.bfb import BFB

#: one group of every kind, as the language writes it
KINDS = {
    "cyclic": "cyclic(9)", "abelian": "abelian(3, 2, 2)", "mirrored": "mirrored(4, 2)", "twisted": "twisted(2, 4)",
    "dihedral": "dihedral(5)", "dicyclic": "dicyclic(3)",
    "metacyclic": "metacyclic(8, 4, 3, 4)", "semidirect": "semidirect(abelian(2, 2), 3, 0, 1, 1, 1)",
    "symmetric": "symmetric(4)", "alternating": "alternating(4)", "direct": "direct(dihedral(3), cyclic(2), cyclic(2))",
    "psl": "psl(2, 5)", "pgl": "pgl(2, 3)", "sl": "sl(2, 3)",
}  # fmt: skip


@st.composite
def digraphs(draw: st.DrawFn) -> tuple[str, list[int]]:
    group = draw(st.sampled_from(sorted(KINDS.values())))
    elements = st.integers(1, parse_group(group).order - 1)
    return group, sorted(draw(st.sets(elements, min_size=1, max_size=4)))


def written(group: str, generators: Sequence[int]) -> str:
    return f"cayley({group}, {{{', '.join(map(str, generators))}}})"


@given(digraphs())
def test_every_rank_has_a_link_for_every_generator(drawn: tuple[str, list[int]]) -> None:
    """Link x*d + i goes from x to x times the i-th generator, and the group moves links to links."""
    net, group = topology(written(*drawn)), parse_group(drawn[0])
    expected = [(x, int(group.multiply(x, g))) for x in range(group.order) for g in drawn[1]]
    assert list(zip(net.src.tolist(), net.dst.tolist(), strict=True)) == expected
    assert net.symmetry == group and claims_hold(net)


@given(digraphs())
def test_ranks_are_connected_where_the_generators_make_the_group(drawn: tuple[str, list[int]]) -> None:
    group, made = parse_group(drawn[0]), {0}
    while more := {int(y) for x in made for y in group.multiply(x, np.array(drawn[1]))} - made:
        made |= more
    assert topology(written(*drawn)).is_connected == (len(made) == group.order)


@given(digraphs())
def test_names_are_expressions(drawn: tuple[str, list[int]]) -> None:
    """What a topology is called builds it again, and its textual form keeps the group."""
    net = topology(written(*drawn))
    assert topology(net.name) == net
    assert parse_ir(print_ir(net)) == net
    assert net.origin is not None and net.origin.arguments == (net.symmetry, tuple(drawn[1]))


def test_every_group_is_in_the_language() -> None:
    assert set(KINDS) == set(GROUPS)
    assert [line.partition("(")[0] for line in details("cayley")["groups"]] == list(GROUPS)
    for text in KINDS.values():
        assert topology(f"cayley({text}, {{1}})").symmetry == parse_group(text)


@pytest.mark.parametrize(
    ("expression", "graph"),
    [
        ("cayley(cyclic(8), {1, 7})", nx.cycle_graph(8)),
        ("cayley(abelian(3, 4), {1, 3, 4, 8})", nx.cartesian_product(nx.cycle_graph(3), nx.cycle_graph(4))),
        ("cayley(symmetric(3), {1, 2, 5})", nx.complete_bipartite_graph(3, 3)),  # the transpositions
        ("cayley(alternating(4), {1, 2, 3})", nx.disjoint_union_all([nx.complete_graph(4)] * 3)),
    ],
)
def test_known_graphs(expression: str, graph: nx.Graph) -> None:
    if "alternating" in expression:  # which numbers the double transpositions have is the group's affair
        group = build_group("alternating", [4])
        pairs = [g for g in range(1, 12) if int(group.multiply(g, g)) == 0]
        expression = written("alternating(4)", pairs)
    assert nx.is_isomorphic(nx.Graph(as_graph(topology(expression))), graph)


def test_abelian_families_are_cayley_digraphs() -> None:
    assert links(topology("cayley(cyclic(11), {2, 3, 8, 9})")) == links(topology("circulant(11, {2, 3})"))
    assert links(topology("cayley(abelian(2, 2, 2), {1, 2, 4})")) == links(topology("hypercube(3)"))


def test_a_row_of_the_notes() -> None:
    """A metacyclic draw on 32 ranks meets both bounds: three steps and 31/32 of the vector, as scheduled."""
    net = topology("cayley(metacyclic(8, 4, 3), {5, 17, 20, 30})")
    schedule = BFB().run(Problem(net, Collective("allgather", 32)))
    assert verify_schedule(schedule).ok
    assert (cost(schedule).T_L, cost(schedule).T_B) == (net.diameter, Fraction(32 - 1, 32))


def test_groups_have_names_and_parameters() -> None:
    text = """
    param k = 4;
    let twisted = metacyclic(2 * k, k, -k - 1);
    topology t = cayley(twisted, {5, 17 + ranks(torus(3)), 30});
    topology pair = cayley(direct(twisted, cyclic(2)), 1..4);
    """
    spec = load("x.coll", text=text)
    assert spec.topologies["t"].symmetry == build_group("metacyclic", [8, 4, 3])
    assert spec.topologies["pair"].num_ranks == 64 and spec.topologies["pair"].degree == 3
    with pytest.raises(CollcError, match="C0319"):
        load("x.coll", text=text, params={"k": 3})


def test_groups_can_be_set_on_the_command_line() -> None:
    text = "param g = cyclic(8); topology t = cayley(g, {1, 3});"
    spec = load("x.coll", text=text, params={"g": "dihedral(4)"})
    assert spec.topologies["t"].symmetry == build_group("dihedral", [4])


def test_formatting_keeps_groups() -> None:
    text = "topology t = cayley(direct(metacyclic(8, 4, -5), cyclic(2)), {5, 17, 20, 30});\n"
    assert format_text(text) == text
    assert format_text(text.replace(" ", "").replace("topologyt", "topology t")) == text


@pytest.mark.parametrize(
    "text",
    [
        "cayley(dihedral(4), {1, 4})", "cayley(dicyclic(4), {1, 4})", "cayley(metacyclic(4, 2, -1), {1, 4})",
        "cayley(cyclic(8), {1, 4})", "cayley(direct(dihedral(4), cyclic(1), cyclic(2)), {1..3})",
        "subset(torus(4, 4), {0, 4..8})", "subset(circulant(16, {3, 4}), 12..16)", "circulant(40, {1..4, 7})",
        "subset(torus(4, 4), {0..4, 4..8, 12, 13, 14})",
    ],
)  # fmt: skip
def test_a_topology_is_called_what_was_written(text: str) -> None:
    net = topology(text)
    assert net.name == text and topology(net.name) == net
    if net.is_connected:
        schedule = BFB().run(Problem(net, Collective("allgather", net.num_ranks)))
        assert parse_ir(print_ir(schedule)) == schedule


def test_a_message_says_what_was_written() -> None:
    with pytest.raises(CollcError, match=r"elements of `dihedral\(4\)`, 1 to 7"):
        topology("cayley(dihedral(4), {1, 40})")
    group = topology("cayley(dihedral(4), {1, 4})").symmetry
    assert group == build_group("metacyclic", [4, 2, 3]) and group.expression == "metacyclic(4, 2, 3)"
    assert group.shown == "dihedral(4)" and build_group("dihedral", [4]).shown == "metacyclic(4, 2, 3)"


def test_trivial_factors_do_not_pile_up() -> None:
    """Sixty doublings of a group of one element are one element; of two elements, beyond the limit."""
    chain = "".join(f"let g{i + 1} = direct(g{i}, g{i});\n" for i in range(60))
    text = f"let g0 = cyclic(1);\n{chain}topology t = cayley(direct(g60, cyclic(5)), {{1}});"
    assert load("x.coll", text=text).topologies["t"].num_ranks == 5
    with pytest.raises(CollcError, match="C0310"):
        load("x.coll", text=text.replace("cyclic(1)", "cyclic(2)"))


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("cayley(metacyclic(8, 4, 2), {1})", "C0319"), ("cayley(abelian(), {1})", "C0319"),
        (f"cayley(abelian({', '.join(['1'] * 2000)}), {{1}})", "C0319"), ("cayley(cyclic(1), {1})", "C0320"),
        ("cayley(cyclic(5), {0})", "C0320"), ("cayley(cyclic(5), {5})", "C0320"), ("cayley(cyclic(5), {})", "C0320"),
        ("cayley(symmetric(9), {1})", "C0310"), ("cayley(semidirect(abelian(900, 90), 1, 1, 0, 0, 1), {1})", "C0310"),
        ("cayley(cyclic(5))", "C0136"), ("cayley(5, {1})", "C0131"), ("cayley(cyclc(5), {1})", "C0122"),
        ("cayley(cyclic(1 / 2), {1})", "C0132"), ("cyclic(5)", "C0131"), ("line(cyclic(5))", "C0131"),
        ("torus(ranks(cyclic(5)))", "C0131"), ("cayley(cyclic(5) + 1, {1})", "C0131"),
    ],
)  # fmt: skip
def test_mistakes(expression: str, code: str) -> None:
    with pytest.raises(CollcError) as caught:
        topology(expression)
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert caught.value.diagnostics[0].span is not None


numbers = st.integers(-9, 60).map(str) | st.sampled_from(["1000001", "99999999999999999999", "1 / 2", "true", '"x"'])
calls = st.recursive(
    numbers,
    lambda inner: st.builds(
        lambda name, arguments: f"{name}({', '.join(arguments)})",
        st.sampled_from(sorted(GROUPS)), st.lists(inner, max_size=5),
    ),
    max_leaves=8,
)  # fmt: skip


@given(calls, st.lists(numbers, max_size=3))
def test_whatever_is_written_is_a_digraph_or_a_mistake(group: str, generators: list[str]) -> None:
    try:
        net = topology(f"cayley({group}, {{{', '.join(generators)}}})", node_limit=2000)
    except CollcError as failure:
        assert all(d.span is not None for d in failure.diagnostics)
    else:
        assert net.symmetry is not None and net.degree == len(generators)
