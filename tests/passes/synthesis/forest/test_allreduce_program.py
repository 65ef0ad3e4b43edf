"""The allreduce program of ForestColl's appendix E: known values, the program as the paper writes it, certificates."""

from __future__ import annotations

from fractions import Fraction

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.frontends.coll import topology
from collc.ir.diagnostic import CollcError
from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.topology import LinkClass, Topology
from collc.passes.synthesis.forest import allreduce_network, allreduce_prices, allreduce_solution
from collc.passes.synthesis.forest import allreduce_program as program

GB = 10**9


def as_written(net: Topology) -> float:
    """Solve the program as the paper has it: both halves, every rank a sink, no two variables taken for one."""
    n, nodes = net.num_ranks, net.num_nodes
    width: dict[tuple[int, int], float] = {}
    for link, ends in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True)):
        if ends[0] != ends[1]:
            width[ends] = width.get(ends, 0) + float(net.bandwidth(link))
    unit = max(width.values())
    columns: list[list[tuple[int, float]]] = [[] for _ in range(n)]  # x
    upper: list[float] = []

    def column() -> list[tuple[int, float]]:
        columns.append([])
        return columns[-1]

    def row(most: float = 0.0) -> int:
        upper.append(most)
        return len(upper) - 1

    pairs = list(width) if net.is_direct else [(a, b) for a in range(n) for b in range(n) if a != b]
    held = {(half, pair): column() for half in (0, 1) for pair in pairs}
    for half in (0, 1):
        for sink in range(n):
            leaves = {v: row() for v in range(n) if v != sink}
            for v, at in leaves.items():
                columns[v].append((at, 1.0))
            for pair in pairs:
                flow, within = column(), row()
                flow.append((within, 1.0))
                held[half, pair].append((within, -1.0))
                for end, sign in zip(pair if half == 0 else pair[::-1], (-1.0, 1.0), strict=True):
                    if end in leaves:
                        flow.append((leaves[end], sign))
    budget = {ends: row(most / unit) for ends, most in width.items()}
    if net.is_direct:
        for (_, pair), entries in held.items():
            entries.append((budget[pair], 1.0))
    for source in range(n if not net.is_direct else 0):
        arrives = {v: row() for v in range(nodes) if v != source}
        for (_, pair), entries in held.items():
            if pair[0] == source:
                entries.append((arrives[pair[1]], 1.0))
        for ends, at in budget.items():
            flow = column()
            flow.append((at, 1.0))
            flow += [(arrives[v], sign) for v, sign in zip(ends, (1.0, -1.0), strict=True) if v in arrives]
    return solved(columns, upper, n) * unit


def solved(columns: list[list[tuple[int, float]]], upper: list[float], weighed: int) -> float:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.sense_ = len(columns), len(upper), highspy.ObjSense.kMaximize
    lp.col_cost_ = np.r_[np.ones(weighed), np.zeros(len(columns) - weighed)]
    lp.col_lower_, lp.col_upper_ = np.zeros(len(columns)), np.full(len(columns), highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = np.full(len(upper), -highspy.kHighsInf), np.array(upper)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.cumsum([0, *map(len, columns)]).astype(np.int32)
    lp.a_matrix_.index_ = np.array([row for entries in columns for row, _ in entries], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([value for entries in columns for _, value in entries])
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.passModel(lp)
    model.run()
    return model.getInfo().objective_function_value


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
    assert found.value / unit == Fraction(value) and found.exact
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
    assert found.exact and found.reached > found.composed


# ---- against the program as it is written


@pytest.mark.parametrize(
    "expression",
    ["dgx1_v100()", "uniring(5)", "kautz(2, 2)", "mesh(2, 3)", "dgx_a100(1)", "leaf_spine(2, 2, 1, 2)",
     "clustered(uniring(3), 2, 1/2)", "subset(dgx_a100(2), {0..3, 8})", "hammingmesh(1, 2, 2, 1)"],
)  # fmt: skip
def test_likeness_and_one_half_lose_nothing(expression: str) -> None:
    net = topology(expression)
    assert float(bound(net).value) == pytest.approx(as_written(net), rel=1e-9)


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
def test_the_bound_is_that_of_the_program_as_written(net: Topology) -> None:
    """From both sides: prices prove it, a solution comes near it, and is exact but for odd roundings."""
    found = bound(net)
    assert float(found.value) == pytest.approx(as_written(net), rel=1e-7)
    assert found.reached <= found.value
    lossless = all(net.ingress(s) == net.egress(s) for s in range(net.num_ranks, net.num_nodes))
    assert not lossless or found.composed <= found.reached


@pytest.mark.slow
@given(networks(), st.randoms(use_true_random=False))
@settings(max_examples=examples(40))
def test_any_prices_prove_a_bound_and_no_solution_beats_it(net: Topology, random) -> None:  # type: ignore[no-untyped-def]
    """Certificates hold for whatever comes out of the solver, noise included."""
    reduced = allreduce_network.reduced(net)
    made = program.Program(reduced)
    solution = made.solve()

    def noise(values: np.ndarray) -> np.ndarray:
        return values * np.array([random.uniform(0.5, 2) for _ in values])

    tolls = noise(solution.tolls)
    potentials = [[noise(p) * (np.arange(net.num_ranks) != t) for p, t in zip(half, reduced.first, strict=True)]
                  for half in solution.potentials]  # fmt: skip
    best = bound(net)
    assert allreduce_prices.price_bound(reduced, potentials, tolls) >= best.reached
    arc_flows = [[noise(flow) for flow in half] for half in solution.arc_flows]
    held = [noise(c) for c in solution.held]
    assert allreduce_solution.reached(reduced, noise(solution.roots), held, arc_flows) <= best.value


# ---- limits


def test_there_is_no_bound_for_one_rank_or_too_many() -> None:
    assert program.allreduce_program(topology("complete(1)")) is None
    assert program.allreduce_program(topology("dgx_a100(128)")) is None
    assert program.allreduce_program(topology("dgx_a100(2)"), most_columns=259) is None
    assert bound(topology("dgx_a100(2)")).columns == 260
    assert program.allreduce_bound(topology("complete(1)")) is None


def test_ranks_without_a_way_between_them() -> None:
    with pytest.raises(CollcError) as caught:
        program.allreduce_program(topology("transpose(subset(uniring(4), {0, 1, 2}))"))
    assert [d.code for d in caught.value.diagnostics] == ["C0301"]
