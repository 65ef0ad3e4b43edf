"""Graph families: their definitions against networkx, the papers' tables, and the symmetry they claim."""

from __future__ import annotations

import time
from fractions import Fraction
from importlib import import_module

import nets
import networkx as nx
import numpy as np
import pytest
from graphs import as_graph, claims_hold, isomorphic, links
from hypothesis import given
from hypothesis import strategies as st

from collc.frontends.coll import FAMILIES, OPERATORS, load, topology
from collc.frontends.coll.families import FAMILIES as ENTRIES
from collc.frontends.coll.families import OPERATORS as OPERATOR_ENTRIES
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.group import parse_group
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.validate import structure
from collc.passes.synthesis.breadth_first.bfb import BFB

# ---- definitions


@pytest.mark.parametrize(
    ("expression", "graph"),
    [
        ("complete(5)", nx.complete_graph(5)),
        ("complete(1)", nx.empty_graph(1)),
        ("complete_bipartite(3)", nx.complete_bipartite_graph(3, 3)),
        ("hamming(2, 3)", nx.cartesian_product(nx.complete_graph(3), nx.complete_graph(3))),
        ("hamming(3, 2)", nx.hypercube_graph(3)),
        ("hypercube(4)", nx.hypercube_graph(4)),
        ("circulant(9, {2, 3})", nx.circulant_graph(9, [2, 3])),
        ("biring(6)", nx.cycle_graph(6)),
        ("uniring(6)", nx.cycle_graph(6, create_using=nx.DiGraph)),
        ("torus(3, 4)", nx.grid_2d_graph(3, 4, periodic=True)),
        ("torus(3, 3, 4)", nx.grid_graph((4, 3, 3), periodic=True)),
        ("torus(1, 5, 1)", nx.cycle_graph(5)),
        ("mesh(3, 4)", nx.grid_2d_graph(3, 4)),
        ("mesh(2, 2, 3)", nx.grid_graph((3, 2, 2))),
        ("mesh(1)", nx.empty_graph(1)),
        ("kautz(2, 1)", nx.line_graph(nx.complete_graph(3, nx.DiGraph))),
        ("kautz(2, 2)", nx.line_graph(nx.line_graph(nx.complete_graph(3, nx.DiGraph)))),
        ("kautz(3, 1)", nx.line_graph(nx.complete_graph(4, nx.DiGraph))),
        ("kautz(3, 0)", nx.complete_graph(4)),
        ("generalized_kautz(2, 12)", nx.line_graph(nx.line_graph(nx.complete_graph(3, nx.DiGraph)))),
        ("generalized_kautz(4, 5)", nx.complete_graph(5)),
        ("directed_circulant(6)", nx.complement(nx.DiGraph([(i, (i - 1) % 6) for i in range(6)]))),
        ("line(complete(4))", nx.line_graph(nx.complete_graph(4, nx.DiGraph))),
        ("transpose(kautz(2, 2))", nx.line_graph(nx.line_graph(nx.complete_graph(3, nx.DiGraph))).reverse()),
        ("product(uniring(3), biring(4))", nx.cartesian_product(
            nx.cycle_graph(3, create_using=nx.DiGraph), nx.cycle_graph(4).to_directed())),
        ("power(uniring(3), 2)", nx.cartesian_product(*[nx.cycle_graph(3, create_using=nx.DiGraph)] * 2)),
        ("degree(complete(3), 2)", nx.octahedral_graph()),
        ("hyperx(3, 4)", nx.cartesian_product(nx.complete_graph(3), nx.complete_graph(4))),
        ("subset(torus(3, 3), {0, 1, 2, 3})", nx.Graph([(0, 1), (1, 2), (0, 2), (0, 3)])),
        ("bidirectional(uniring(5))", nx.cycle_graph(5)),
    ],
)  # fmt: skip
def test_families_are_the_graphs_of_their_names(expression: str, graph: nx.Graph) -> None:
    assert isomorphic(expression, graph)


def test_the_comparison_tells_graphs_apart() -> None:
    """Two graphs of one size and degree, and one with and without parallel links, are different."""
    assert not isomorphic("circulant(8, {1, 3})", nx.circulant_graph(8, [1, 2]))
    assert not isomorphic("torus(2)", nx.cycle_graph(2))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torus(3, 3, 2)", nets.torus(3, 3, 2)),
        ("torus(2, 2)", nets.torus(2, 2)),
        ("hypercube(3)", nets.hypercube(3)),
        ("complete(6)", nets.complete(6)),
        ("circulant(7, {2, 3})", nets.circulant(7, 2, 3)),
        ("circulant(8, {4})", nets.circulant(8, 4)),
        ("uniring(5)", nets.one_way_ring(5)),
        ("generalized_kautz(4, 11)", nets.generalized_kautz(4, 11)),
        ("debruijn(3, 2)", nets.de_bruijn(3, 2)),
        ("biring(2)", nets.torus(2)),
        ("biring(5, 4)", Topology.from_links("", 5, links(nets.torus(5)) * 2)),
    ],
)
def test_families_have_the_links_of_their_definitions(expression: str, expected: Topology) -> None:
    assert links(topology(expression)) == links(expected)


#: expression -> ranks, degree, diameter, and whether every rank has distinct neighbours and is none of them
TABLE_9 = {
    "complete(7)": (7, 6, 1), "complete_bipartite(4)": (8, 4, 2), "hamming(2, 3)": (9, 4, 2),
    "hamming(3, 4)": (64, 9, 3),
    "kautz(2, 3)": (24, 2, 4), "kautz(4, 2)": (80, 4, 3), "generalized_kautz(4, 64)": (64, 4, 3),
    "generalized_kautz(4, 1024)": (1024, 4, 5), "generalized_kautz(3, 10)": (10, 3, 3),
    "circulant(12, {2, 3})": (12, 4, 2),
    "directed_circulant(8)": (8, 6, 2), "biring(9)": (9, 2, 4), "biring(8, 6)": (8, 6, 4), "uniring(5, 3)": (5, 3, 4),
    "debruijn(4, 4)": (256, 4, 4), "debruijn(2, 3)": (8, 2, 3), "torus(3, 3, 2)": (18, 6, 3),
    "torus(3, 3, 3, 2)": (54, 8, 4),
    "torus(5, 7)": (35, 4, 5), "hypercube(10)": (1024, 10, 10), "shifted_ring(12)": (12, 4, 3),
    "dgx1_v100()": (8, 6, 2), "line(complete_bipartite(4))": (32, 4, 3),
    "line(circulant(16, {3, 4}), 3)": (1024, 4, 6),
    "power(product(uniring(4), uniring(8)), 2)": (1024, 4, 20), "degree(complete(3), 2)": (6, 4, 2),
    "degree(biring(5), 2)": (10, 4, 2), "hyperx(3, 5)": (15, 6, 2), "hyperx(4, 2, 3)": (24, 6, 3),
}  # fmt: skip


@pytest.mark.parametrize("expression", TABLE_9)
def test_sizes_degrees_and_diameters_of_the_tables(expression: str) -> None:
    net = topology(expression)
    assert (net.num_ranks, net.degree, net.diameter) == TABLE_9[expression]
    assert structure(net) == []


@pytest.mark.parametrize("n", range(7, 60))
def test_circulants_with_the_least_diameter(n: int) -> None:
    """Theorem 22: C(n, {m, m+1}) has diameter m for the least m with (-1 + sqrt(2n - 1)) / 2 <= m."""
    m = next(m for m in range(1, n) if (2 * m + 1) ** 2 >= 2 * n - 1)
    assert topology(f"circulant({n}, {{{m}, {m + 1}}})").diameter == m


@pytest.mark.parametrize("d", range(2, 8))
def test_directed_circulants_reach_the_last_rank_over_every_link(d: int) -> None:
    """Table 9: size d + 2, Moore optimal; every in-neighbour of a rank has the one shard it lacks after one step."""
    net = topology(f"directed_circulant({d + 2})")
    assert (net.num_ranks, net.degree, net.diameter) == (d + 2, d, 2)
    two_away = np.argwhere(net.distances == 2)
    assert len(two_away) == d + 2
    for source, rank in two_away:
        assert (net.distances[source, net.src[net.dst == rank]] == 1).all()


def test_kautz_digraphs_are_simple_and_de_bruijn_digraphs_have_their_loops() -> None:
    kautz, bruijn = topology("kautz(3, 2)"), topology("debruijn(3, 2)")
    assert not (kautz.src == kautz.dst).any() and len(set(links(kautz))) == kautz.num_links
    assert int((bruijn.src == bruijn.dst).sum()) == 3
    assert (topology("generalized_kautz(2, 4)").num_links, topology("generalized_kautz(2, 4)").degree) == (8, 2)


@pytest.mark.parametrize("n", range(3, 8))
def test_a_twist_shortens_the_hypercube(n: int) -> None:
    twisted = topology(f"twisted_hypercube({n})")
    assert (twisted.num_ranks, twisted.degree, twisted.diameter) == (2**n, n, n - 1)
    assert twisted.reverse_links is not None


@pytest.mark.parametrize(
    ("sizes", "diameter", "plain"),
    [((4, 2), 2, 3), ((8, 4), 4, 6), ((4, 2, 2), 3, 4), ((8, 4, 4), 6, 8), ((4, 4, 2), 3, 5), ((8, 8, 4), 6, 10)],
)
def test_a_twist_shortens_the_torus_and_keeps_it_regular(sizes: tuple[int, ...], diameter: int, plain: int) -> None:
    inside = ", ".join(map(str, sizes))
    twisted, torus = topology(f"twisted_torus({inside})"), topology(f"torus({inside})")
    assert (twisted.diameter, torus.diameter, twisted.degree) == (diameter, plain, torus.degree)
    profile = np.sort(twisted.distances, axis=1)
    assert (profile == profile[0]).all()  # every rank sees the same
    assert twisted.reverse_links is not None


def test_machines_have_the_bandwidths_of_the_forestcoll_testbeds() -> None:
    a100, h100, amd = topology("dgx_a100(2)"), topology("dgx_h100(1)"), topology("mi250(2)")
    gb = 10**9
    assert (a100.num_ranks, a100.num_switches, a100.num_links, a100.unit) == (16, 3, 64, "B/s")
    assert a100.names[9] == "gpu[1, 1]" and a100.names[16:] == ("nv[0]", "nv[1]", "ib")
    assert {a100.egress(r) for r in range(16)} == {Fraction(325 * gb)} == {a100.ingress(3)}
    assert (h100.num_ranks, h100.num_switches, h100.num_links) == (8, 1, 16)
    assert (amd.num_ranks, amd.num_switches, amd.egress(5)) == (32, 1, Fraction((350 + 16) * gb))
    assert {topology("mi250(1)").egress(r) for r in range(16)} == {Fraction(350 * gb)}
    assert topology("dgx1_v100()").node_bandwidth == 150 * gb


def test_a_fat_tree_has_full_bandwidth_between_its_halves() -> None:
    """As many links up as down at every switch, hosts of any two pods k/2 * k/2 ways apart."""
    for k in (2, 4, 6):
        net = topology(f"fat_tree({k})")
        assert (net.num_ranks, net.num_switches, net.num_links) == (k**3 // 4, 5 * k * k // 4, 3 * k**3 // 2)
        assert set(net.out_degree[net.num_ranks :].tolist()) == {k} and net.diameter == 6
        graph = nx.Graph(as_graph(net))
        halves = [0] * (k**3 // 8) + [1] * (k**3 // 8)
        for rank, half in enumerate(halves):
            graph.add_edge(("end", half), rank, capacity=1)
        for a, b in graph.edges:
            graph[a][b].setdefault("capacity", 1)
        assert nx.maximum_flow_value(graph, ("end", 0), ("end", 1)) == k**3 // 8
        assert net.names[0] == "host[0, 0, 0]" and net.names[-1] == f"core[{k // 2 - 1}, {k // 2 - 1}]"


@pytest.mark.parametrize(("p", "a", "h"), [(1, 2, 1), (2, 4, 2), (1, 3, 3), (4, 1, 3)])
def test_a_dragonfly_links_every_two_groups_once(p: int, a: int, h: int) -> None:
    net = topology(f"dragonfly({p}, {a}, {h})")
    groups = a * h + 1
    assert (net.num_ranks, net.num_switches) == (groups * a * p, groups * a)
    assert set(net.out_degree[net.num_ranks :].tolist()) == {p + a - 1 + h}
    switch = np.stack([net.src, net.dst])[:, (net.src >= net.num_ranks) & (net.dst >= net.num_ranks)] - net.num_ranks
    between = (switch // a)[:, switch[0] // a != switch[1] // a]
    assert sorted(map(tuple, between.T.tolist())) == [(g, f) for g in range(groups) for f in range(groups) if g != f]
    assert net.reverse_links is not None and net.diameter is not None and net.diameter <= 5


def test_hammingmesh_is_boards_with_switches_along_every_line() -> None:
    net = topology("hammingmesh(2, 3, 2, 4)")
    assert (net.num_ranks, net.num_switches) == (4 * 12, 4 + 12) and net.node_bandwidth == 4
    graph = as_graph(net)
    boards = graph.subgraph(range(net.num_ranks))
    mesh = nx.MultiDiGraph(nx.grid_2d_graph(2, 3).to_directed())
    for board in nx.strongly_connected_components(boards):
        assert nx.is_isomorphic(boards.subgraph(board), mesh)
    assert {net.out_degree[n] for n, name in enumerate(net.names) if name.startswith("row")} == {2 * 4}
    assert {net.out_degree[n] for n, name in enumerate(net.names) if name.startswith("column")} == {2 * 2}
    assert net.names[13] == "gpu[1, 1]" and net.names[48] == "row[0]" and net.names[52] == "column[0]"
    assert topology("hammingmesh(1, 1, 3, 4)").node_bandwidth == 4  # HyperX with switches: two links to each line


@pytest.mark.slow
@pytest.mark.parametrize(
    "family", ["twisted_torus(2 * k, k)", "twisted_torus(2 * k, k, k)", "twisted_torus(2 * k, 2 * k, k)",
               "shifted_ring(5 * k + 1)"],
)  # fmt: skip
@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
def test_schedules_of_twisted_tori_and_shifted_rings_are_bandwidth_optimal(family: str, k: int) -> None:
    """The paper verified twisted tori by computation (section 6), and so is this; the benchmark has more sizes."""
    net = load("x.coll", text=f"param k = {k}; topology net = {family};").topologies["net"]
    found = cost(BFB().run(Problem(net, Collective("allgather", net.num_ranks))))
    assert (found.T_L, found.T_B) == (net.diameter, Fraction(net.num_ranks - 1, net.num_ranks))


#: expression -> T_L, and whether Table 9 has it bandwidth-optimal and Moore optimal
SCHEDULES_OF_TABLE_9 = {
    "complete(7)": (1, True, True), "complete_bipartite(4)": (2, True, True), "hamming(2, 3)": (2, True, True),
    "hamming(3, 4)": (3, True, False), "kautz(3, 0)": (1, True, True), "kautz(3, 2)": (3, False, True),
    "generalized_kautz(4, 5)": (1, True, True), "generalized_kautz(4, 64)": (3, False, True),
    "circulant(12, {2, 3})": (2, True, True), "circulant(40, {4, 5})": (4, True, False),
    "directed_circulant(8)": (2, True, True), "directed_circulant(5)": (2, True, True),
    "biring(9)": (4, True, False), "biring(8, 4)": (4, True, False), "uniring(6)": (5, True, True),
    "uniring(6, 3)": (5, True, False), "debruijn(3, 2)": (2, False, True),
    # the table says optimal, which leaves the loops out of a node's bandwidth; here they count as links of it
    "debruijn(2, 1)": (1, False, True),
}  # fmt: skip


@pytest.mark.parametrize("expression", SCHEDULES_OF_TABLE_9)
def test_schedules_of_table_9(expression: str) -> None:
    net = topology(expression)
    found = cost(BFB().run(Problem(net, Collective("allgather", net.num_ranks))))
    assert (found.T_L, found.bw_optimal, found.moore_optimal) == SCHEDULES_OF_TABLE_9[expression]
    assert found.T_B is not None and (found.T_B == Fraction(net.num_ranks - 1, net.num_ranks)) == found.bw_optimal


# ---- symmetry and order

SYMMETRIC = (
    "complete(7)", "complete_bipartite(3)", "hamming(2, 4)", "hypercube(4)", "torus(3, 3, 2)", "torus(4, 1, 5)",
    "biring(6)",
    "biring(2, 4)", "uniring(5, 2)", "circulant(10, {2, 5})", "directed_circulant(9, {1, 3, 4})",
    "directed_circulant(6)",
    "shifted_ring(9)", "hyperx(3, 1, 4)",
    "product(torus(3, 2), uniring(4))", "power(biring(3), 3)", "degree(torus(2, 3), 3)",
    "transpose(directed_circulant(7, {1, 3}))", "bidirectional(directed_circulant(7, {1, 3}))", "complete(1)",
    "twisted_torus(4, 2)", "twisted_torus(3, 6, 6)", "twisted_torus(4, 2, 2, 4)", "tpu_v4(4, 8, 4, 1)",
    "product(twisted_torus(2, 4), uniring(3))",
)  # fmt: skip


@pytest.mark.parametrize("expression", SYMMETRIC)
def test_symmetry_is_what_it_claims(expression: str) -> None:
    assert claims_hold(topology(expression))


def test_a_wrong_claim_is_seen() -> None:
    """The check fails on links in another order, and on another group."""
    net = topology("torus(3, 4)")
    order = np.arange(net.num_links)
    order[[1, 2]] = order[[2, 1]]
    swapped = Topology("", net.num_ranks, net.src, net.dst[order], symmetry=net.symmetry)
    other = Topology("", net.num_ranks, net.src, net.dst, symmetry=topology("torus(12)").symmetry)
    assert not claims_hold(swapped) and not claims_hold(other)


def test_only_what_is_symmetric_claims_it() -> None:
    for expression in ("mesh(3, 3)", "kautz(2, 2)", "debruijn(2, 3)", "twisted_hypercube(3)", "line(torus(3))",
                       "subset(torus(5), {0, 1})", "product(mesh(3), torus(3))", "dgx1_v100()"):  # fmt: skip
        assert topology(expression).symmetry is None, expression


small = st.sampled_from(
    [
        "uniring(3)",
        "biring(4)",
        "torus(2, 3)",
        "kautz(2, 1)",
        "mesh(2, 2)",
        "debruijn(2, 2)",
        "complete(3)",
        "circulant(4, {2})",
    ]
)


@given(small, small)
def test_products_are_those_of_the_definition(one: str, two: str) -> None:
    g, h = topology(one), topology(two)
    m = h.num_ranks
    expected = [(a * m + v, b * m + v) for a, b in links(g) for v in range(m)]
    expected += [(u * m + a, u * m + b) for u in range(g.num_ranks) for a, b in links(h)]
    net = topology(f"product({one}, {two})")
    assert links(net) == sorted(expected)
    assert np.array_equal(net.src, np.sort(net.src))  # rank by rank


def test_products_of_rings_are_tori_link_by_link() -> None:
    for sizes in ((3, 4), (2, 3, 2), (5,)):
        product = topology(f"product({', '.join(f'biring({s})' for s in sizes)})")
        torus = topology(f"torus({', '.join(map(str, sizes))})")
        assert np.array_equal(product.src, torus.src) and np.array_equal(product.dst, torus.dst)
        assert product.symmetry == torus.symmetry


@given(small, st.integers(1, 2))
def test_line_graphs_have_a_rank_for_every_link(expression: str, n: int) -> None:
    """Rank i of L(G) is link i of G, linked to those that start where it ends."""
    base = topology(expression)
    for _ in range(n - 1):
        base = topology(f"line({expression})")
    net = topology(f"line({expression}, {n})")
    assert net.num_ranks == base.num_links
    ends = list(zip(base.src.tolist(), base.dst.tolist(), strict=True))
    expected = [(i, j) for i, a in enumerate(ends) for j, b in enumerate(ends) if a[1] == b[0]]
    assert links(net) == sorted(expected)


def test_operators_keep_bandwidths_names_and_units() -> None:
    subset = topology("subset(dgx_a100(2), {1, 8, 9})")
    assert subset.names == ("gpu[0, 1]", "gpu[1, 0]", "gpu[1, 1]", "nv[1]", "ib")  # nv[0] joins nothing any more
    assert subset.num_links == 10 and subset.egress(1) == 325 * 10**9 and subset.unit == "B/s"
    turned = topology("transpose(dgx_a100(2))")
    assert links(turned) == sorted((b, a) for a, b in links(topology("dgx_a100(2)")))
    product = topology("product(dgx1_v100(), dgx1_v100())")
    assert product.unit == "B/s" and product.node_bandwidth == 300 * 10**9
    assert topology("product(dgx1_v100(), complete(1))").num_links == 48
    assert topology("line(dgx1_v100())").classes[0].bandwidth == 25 * 10**9


# ---- sizes before building


@pytest.mark.parametrize("name", ENTRIES)
def test_sizes_are_known_before_anything_is_built(name: str) -> None:
    """``NAME_size`` says exactly what the family has, for several arguments."""
    module = import_module(f"collc.frontends.coll.families.{ENTRIES[name].module}")
    examples = {
        "circulant": [(7, (2, 3)), (8, (4,))], "directed_circulant": [(7, (2, 3)), (6,)],
        "twisted_torus": [(4, 2), (4, 4, 2)],
        "torus": [(3, 4), (2, 1, 2), (1,)], "mesh": [(3, 4), (1, 5), (1,)], "biring": [(5,), (2, 4)],
        "uniring": [(5,), (3, 2)],
        "generalized_kautz": [(3, 4), (3, 17)], "kautz": [(2, 3), (1, 2), (4, 0)], "debruijn": [(2, 1), (3, 3)],
        "hamming": [(1, 2), (2, 4)], "dgx1_v100": [()],
        "hyperx": [(3, 4), (2, 1, 3), (5,)],
        "hammingmesh": [(2, 3, 2, 2), (1, 1, 3, 4), (2, 2, 1, 1), (1, 2, 4, 2, 6), (2, 1, 3, 4, 4)],
        "fat_tree": [(2,), (4,), (6,), (4, 2), (12, 3)],
        "leaf_spine": [(3, 4, 2), (2, 5, 3, 2), (1, 4, 2)], "dgx_a100": [(1,), (2,), (1, 2), (3, 2)],
        "dgx_h100": [(1,), (4, 8)],
        "dragonfly": [(1, 2, 1), (2, 4, 2), (3, 1, 1)],
        "modified_debruijn": [(2, 3), (3, 2)], "diamond": [()],
        "dragonfly_plus": [(2, 2, 2, 1), (1, 3, 2, 2, 3), (2, 1, 1, 3), (1, 2, 3, 2, 7)],
        "slim_fly": [(3,), (4,), (5, 2), (8,), (9,)], "tpu_v4": [(2, 2, 4), (4, 4, 4), (4, 4, 8, 1), (8, 4, 8, 1)],
        "polarity": [(3, 2), (3, 3), (3, 4), (3, 9), (4, 2), (4, 8), (6, 3)],
        "polycirculant": [(10, (1, 2), (4,)), (12, (1, 6), (3,), ()), (6, (3,)), (4, (2,), (2,))],
        "directed_polycirculant": [(10, (1, 4), (2, 5)), (12, (1, 6), (3,), ()), (6, (3,))],
        "jellyfish": [(10, 4), (11, 2, 3), (9, 4, 1, 2), (8, 7), (12, 9, 5)],
        "xpander": [(3, 1), (3, 4, 2), (5, 3, 1, 2)],
        "mi300x": [(), (2,), (1, 4), (3, 8)], "dgx_b200": [(1,), (2,), (3, 2)], "gb200_nvl72": [(1,), (2,), (2, 4)],
        "distance_regular": [("octahedron",), ("PG(2, 3)",)],
        "cayley": [(parse_group("dihedral(4)"), (1, 2)), (parse_group("symmetric(4)"), (5,))],
    }  # fmt: skip
    for arguments in examples.get(name, [(2,), (3,)]):
        net = getattr(module, name)(*arguments)
        assert getattr(module, f"{name}_size")(*arguments) == (net.num_nodes, net.num_links), arguments


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("line", (1,)),
        ("line", (3,)),
        ("degree", (3,)),
        ("power", (2,)),
        ("product", ()),
        ("transpose", ()),
        ("bidirectional", ()),
    ],
)
def test_sizes_of_operators_are_known_before_anything_is_built(name: str, more: tuple[int, ...]) -> None:
    module = import_module("collc.frontends.coll.families.operators")
    for base in (topology("mesh(2, 3)"), topology("kautz(2, 2)"), topology("torus(2, 3)")):
        arguments = (base, topology("uniring(4)")) if name == "product" else (base, *more)
        net = getattr(module, name)(*arguments)
        assert getattr(module, f"{name}_size")(*arguments) == (net.num_nodes, net.num_links)


@pytest.mark.parametrize(
    "expression",
    [
        "torus(100000, 100000)", "hypercube(1000000000000)", "complete(1000000000)", "hamming(1000000, 1000000)",
        "kautz(1000000, 1000000)", "debruijn(7, 1000000000)", "generalized_kautz(1000000000, 1000000001)",
        "uniring(2, 10000000000)", "mesh(1000000, 1000000)", "twisted_torus(200000, 100000)", "mi250(100000000)",
        "power(torus(10, 10), 100)", "line(complete(1000), 100)", "degree(torus(10, 10), 1000000000)",
        "dgx_a100(5000000)", "dgx_a100(5000000, 2)", "leaf_spine(100000, 100000, 100000, 3)",
        "clustered(torus(100, 100), 1000000000, 1)", "clustered(complete(1), 1000000000000000, 1, 1000)",
        "product(torus(100, 100), torus(100, 100))", "circulant(2000, 1..1000)", "fat_tree(1000000)",
        "dragonfly(100, 1000, 1000)", "hammingmesh(1000, 1000, 1000, 1000)", "hyperx(1000, 1000)", "hyperx(5000)",
        "double_binary_tree(1000000000)", "cayley(direct(cyclic(1000), cyclic(1000)), {1})",
        "cayley(symmetric(9), {1})",
    ],
)  # fmt: skip
def test_huge_graphs_are_refused_at_once(expression: str) -> None:
    began = time.process_time()
    with pytest.raises(CollcError) as caught:
        topology(expression)
    assert [d.code for d in caught.value.diagnostics] == ["C0310"]
    assert time.process_time() - began < 0.5


def test_the_limit_can_be_raised_and_lowered() -> None:
    with pytest.raises(CollcError):
        topology("torus(5, 5)", node_limit=24)
    assert topology("torus(150, 150)", node_limit=22500).num_ranks == 22500


@pytest.mark.parametrize(
    "expression", ["torus(50, 50)", "torus(100, 100)", "hypercube(10)", "complete(1000)", "kautz(4, 5)"]
)
def test_large_graphs_are_quick(expression: str) -> None:
    topology("torus(3)")
    began = time.process_time()
    topology(expression)
    assert time.process_time() - began < 0.5


# ---- the registry


def test_listings_show_what_can_be_called() -> None:
    assert FAMILIES["torus"] == ("torus(d, ..)", "grid of rings; a ring of 2 has two parallel links each way")
    assert FAMILIES["biring"][0] == "biring(m[, d])" and FAMILIES["circulant"][0] == "circulant(m, {offsets})"
    assert (
        FAMILIES["directed_circulant"][0] == "directed_circulant(m[, {offsets}])"
        and FAMILIES["dgx1_v100"][0] == "dgx1_v100()"
    )
    assert OPERATORS["line"][0] == "line(topology[, n])" and OPERATORS["product"][0] == "product(topology, ..)"
    for entries in (ENTRIES, OPERATOR_ENTRIES):
        for name, entry in entries.items():
            module = import_module(f"collc.frontends.coll.families.{entry.module}")
            assert callable(getattr(module, name)) and callable(getattr(module, f"{name}_size"))
