"""``with { reduction: .., launch: .. }``: exact, of the ranks, kept by operators, printed and read back."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest
import strategies
from hypothesis import given, settings
from sampling import examples

import collc
from collc.frontends import coll
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.reading.coll import load_spec
from collc.reading.loading import Loading

GIVEN = " with { bandwidth: 25 Gbps, latency: 10 us, reduction: 500 GB/s, launch: 20 us }"
GAMMA, EPSILON = Fraction(1, 500 * 10**9), Fraction(1, 50_000)


def topology(text: str, name: str = "t") -> Topology:
    return load_spec(text, "t.coll", Loading()).topologies[name]


def test_the_numbers_are_exact() -> None:
    found = topology(f"topology t = torus(3, 3){GIVEN};")
    assert (found.gamma, found.epsilon) == (GAMMA, EPSILON)
    plain = topology("topology t = torus(3, 3) with { bandwidth: 25 Gbps, latency: 10 us };")
    assert (plain.gamma, plain.epsilon) == (0, 0) and plain != found
    assert plain == attrs.evolve(found, gamma=Fraction(0), epsilon=Fraction(0))


BODY = "rank r[3]; for i in 0..3 { link r[i] <-> r[(i + 1) mod 3]; }"


@pytest.mark.parametrize("text", [f"topology t {{ {BODY} }}{GIVEN};", f"topology t{GIVEN} {{ {BODY} }}"])
def test_declared_topologies_have_them_too(text: str) -> None:
    found = topology(text)
    assert (found.gamma, found.epsilon) == (GAMMA, EPSILON)


@pytest.mark.parametrize(
    "expression",
    ["line(base)", "degree(base, 2)", "power(base, 2)", "transpose(base)", "product(base, uniring(3))",
     "product(uniring(3), base)", "bidirectional(base)", "subset(base, {0, 1, 2})"],
)  # fmt: skip
def test_operators_keep_what_their_ranks_need(expression: str) -> None:
    base = "topology base = biring(4) with { reduction: 500 GB/s, launch: 20 us };"
    found = topology(f"{base}\ntopology t = {expression};")
    assert (found.gamma, found.epsilon) == (GAMMA, EPSILON)


@pytest.mark.parametrize("scheduler", ["expansion", "bfb", "forest", "auto", "swing", "exact"])
def test_every_scheduler_keeps_the_network(scheduler: str) -> None:
    text = f"topology t = product(biring(2), biring(2)){GIVEN};\ncollective c = allreduce on t;\n"
    result = collc.compile_source(f"{text}schedule c using {scheduler};", target="ir")
    assert result.schedule is not None
    assert (result.schedule.topology.gamma, result.cost.epsilon) == (GAMMA, EPSILON)
    assert parse_ir(print_ir(result.schedule)) == result.schedule


@given(strategies.topologies())
@settings(max_examples=examples(40), deadline=None)
def test_text_and_graphs_keep_them(found: Topology) -> None:
    assert parse_ir(print_ir(found)) == found
    graph = Topology.from_networkx(found.to_networkx())
    assert (graph.gamma, graph.epsilon) == (found.gamma, found.epsilon)


def test_bytes_without_them_are_as_before() -> None:
    text = print_ir(coll.topology("biring(4)"))
    assert "gamma" not in text and "epsilon" not in text
