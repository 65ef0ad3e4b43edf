"""The allreduce program of ForestColl's appendix E: known values, the program as the paper writes it, certificates."""

from __future__ import annotations

from fractions import Fraction

import pytest
from allreduce_lp import by_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.frontends.coll import topology
from collc.ir.diagnostic import CollcError
from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.topology import LinkClass, Topology
from collc.passes.synthesis.forest import allreduce_program as program

GB = 10**9


def bound(net: Topology) -> program.AllreduceBound:
    found = program.allreduce_program(net)
    assert found is not None
    return found


# ---- known values


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("dgx1_v100()", "600/7"), ("hypercube(3)", "12/7"), ("torus(4, 4)", "32/15"), ("mi250(1)", "1200/7"),
        ("dgx_a100(1)", "1200/7"), ("dgx_a100(2)", "520/3"), ("torus(6, 6)", "72/35"), ("hypercube(5)", "80/31"),
        ("dgx_a100(2, 2)", "520/3"), ("mi250(2)", "2656/15"), ("dgx_a100(8)", "800/7"),
    ],
)  # fmt: skip
def test_regular_machines_can_do_no_better_than_reduce_scatter_and_allgather(expression: str, value: str) -> None:
    """Half the allgather's bandwidth, exactly."""
    net = topology(expression)
    found, unit = bound(net), GB if net.unit == "B/s" else 1
    assert found.value / unit == Fraction(value) and found.reached == found.value
    ratio, _ = worst_ratio(net, [1] * net.num_ranks)
    assert found.value == found.composed == net.num_ranks / ratio / 2


@pytest.mark.parametrize(
    ("expression", "value", "composed"),
    [
        ("mesh(3, 4)", "17/11", "12/11"), ("double_binary_tree(9)", "2", "9/8"), ("debruijn(2, 4)", "1", "8/15"),
        ("subset(mi250(2), {0..8, 16..24})", "128", "104"), ("subset(dgx_a100(2), {0..15})", "2775/16", "2625/16"),
    ],
)  # fmt: skip
def test_irregular_networks_can(expression: str, value: str, composed: str) -> None:
    """Roots of different amounts pay where a cut has few ranks on one side; what the program says can be reached."""
    net = topology(expression)
    found, unit = bound(net), GB if net.unit == "B/s" else 1
    assert (found.value / unit, found.composed / unit) == (Fraction(value), Fraction(composed))
    assert found.reached == found.value > found.composed


# ---- against the program as it is written


@pytest.mark.parametrize(
    "expression",
    ["dgx1_v100()", "uniring(5)", "kautz(2, 2)", "mesh(2, 3)", "dgx_a100(1)", "leaf_spine(2, 2, 1, 2)",
     "clustered(uniring(3), 2, 1/2)", "subset(dgx_a100(2), {0..3, 8})", "hammingmesh(1, 2, 2, 1)"],
)  # fmt: skip
def test_likeness_and_one_half_lose_nothing(expression: str) -> None:
    net = topology(expression)
    assert float(bound(net).value) == pytest.approx(by_pairs(net), rel=1e-9)


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    """Strongly connected networks of 2 to 5 ranks and up to 2 switches, with or without partners for links."""
    ranks, switches = draw(st.integers(2, 5)), draw(st.integers(0, 2))
    nodes, both = ranks + switches, draw(st.booleans())
    kinds = [LinkClass(Fraction(b)) for b in (1, 2, 3, Fraction(1, 2))]
    ends = [(v, (v + 1) % nodes) for v in range(nodes)]
    ends += draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=6))
    links: list[tuple[int, int, LinkClass]] = []
    for a, b in ends:
        kind = draw(st.sampled_from(kinds))
        links += [(a, b, kind)] + [(b, a, kind)] * both
    return Topology.from_links("net", ranks, links, switches)


@pytest.mark.slow
@given(networks())
@settings(max_examples=examples(60))
def test_the_bound_is_that_of_the_program_by_pairs(net: Topology) -> None:
    found = bound(net)
    assert float(found.value) == pytest.approx(by_pairs(net), rel=1e-7)
    lossless = all(net.ingress(s) == net.egress(s) for s in range(net.num_ranks, net.num_nodes))
    assert found.reached == found.value and (not lossless or found.composed <= found.reached)


# ---- limits


def test_there_is_no_bound_for_one_rank_or_too_many() -> None:
    assert program.allreduce_program(topology("complete(1)")) is None
    net = topology("subset(dgx_a100(2), {0..15})")
    assert program.allreduce_program(net, most_columns=9) is None
    assert bound(net).columns == 10
    assert program.allreduce_bound(topology("complete(1)")) is None


def test_ranks_without_a_way_between_them() -> None:
    with pytest.raises(CollcError) as caught:
        program.allreduce_program(topology("transpose(subset(uniring(4), {0, 1, 2}))"))
    assert [d.code for d in caught.value.diagnostics] == ["C0301"]
