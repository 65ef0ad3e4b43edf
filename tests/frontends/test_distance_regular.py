"""Distance-regular graphs: that they are, what the paper's Table 8 says of them, optimal breadth-first schedules."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from graphs import as_graph, isomorphic, links

from collc.frontends.coll import details, topology
from collc.frontends.coll.families._fields import field
from collc.frontends.coll.families.distance_regular import NAMES
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.graph.regularity import intersection_array
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.breadth_first.bfb import BFB

#: Table 8: name -> ranks, T_L; and the intersection array that the literature has for it
TABLE_8 = {
    "octahedron": (6, 2, "4 1 ; 1 4"), "paley9": (9, 2, "4 2 ; 1 2"), "k55-minus-matching": (10, 3, "4 3 1 ; 1 3 4"),
    "heawood-distance-3": (14, 3, "4 3 2 ; 1 2 4"), "petersen-line": (15, 3, "4 2 1 ; 1 1 4"),
    "4-cube": (16, 4, "4 3 2 1 ; 1 2 3 4"), "heawood-line": (21, 3, "4 2 2 ; 1 1 2"),
    "pg(2,3)": (26, 3, "4 3 3 ; 1 1 4"),
    "ag(2,4)-minus-class": (32, 4, "4 3 3 1 ; 1 1 3 4"), "odd4": (35, 3, "4 3 3 ; 1 1 2"),
    "tutte8-line": (45, 4, "4 2 2 2 ; 1 1 1 2"), "doubled-odd4": (70, 7, "4 3 3 2 2 1 1 ; 1 1 2 2 3 3 4"),
    "gq(3,3)": (80, 4, "4 3 3 3 ; 1 1 1 4"), "tutte12-line": (189, 6, "4 2 2 2 2 2 ; 1 1 1 1 1 2"),
    "gh(3,3)": (728, 6, "4 3 3 3 3 3 ; 1 1 1 1 1 4"),
}  # fmt: skip

#: Tutte's 12-cage as a cycle with jumps
TUTTE_12 = [17, 27, -13, -59, -35, 35, -11, 13, -53, 53, -27, 21, 57, 11, -21, -57, 59, -17]


def named(name: str) -> Topology:
    return topology(f'distance_regular("{name}")')


def written(array: tuple[tuple[int, ...], tuple[int, ...]] | None) -> str:
    assert array is not None
    return f"{' '.join(map(str, array[0]))} ; {' '.join(map(str, array[1]))}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_named_graph_is_distance_regular(name: str) -> None:
    """And as large as the list says before it is built; the array's products count the ranks at every distance."""
    net, known = named(name), NAMES[name]
    assert (net.num_ranks, net.degree, net.diameter) == (known.ranks, known.degree, known.diameter)
    assert net.num_links == known.ranks * known.degree
    array = intersection_array(net)
    assert array is not None
    around, total = Fraction(1), Fraction(1)
    for b, c in zip(*array, strict=True):
        around *= Fraction(b, c)
        total += around
    assert total == known.ranks


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE_8)
def test_table_8(name: str) -> None:
    """Ranks and T_L are the paper's; the schedule takes the bandwidth time of the bound, (N-1)/N (Theorem 18)."""
    net, (ranks, steps, array) = named(name), TABLE_8[name]
    assert (net.num_ranks, net.degree, net.diameter) == (ranks, 4, steps)
    assert written(intersection_array(net)) == array
    found = cost(BFB().run(Problem(net, Collective("allgather", ranks))))
    assert (found.T_L, found.T_B) == (steps, Fraction(ranks - 1, ranks))


@pytest.mark.parametrize("name", ["petersen-line", "ag(2,4)-minus-class", "gq(3,3)", "hoffman-singleton"])
def test_schedules_of_named_graphs_verify(name: str) -> None:
    net = named(name)
    for kind in ("allgather", "allreduce"):
        schedule = BFB().run(Problem(net, Collective(kind, net.num_ranks)))
        assert verify_schedule(schedule).ok


def defined(net: Topology) -> bool:
    """Definition 17 word for word: how many ranks are i hops from x and j from y depends on i, j and d(x, y) alone."""
    hops, numbers = net.distances, dict[tuple[int, int, int], int]()
    for x, y in np.ndindex(hops.shape):
        counts = np.zeros((net.num_ranks, net.num_ranks), dtype=int)
        np.add.at(counts, (hops[x], hops[y]), 1)
        for (i, j), count in np.ndenumerate(counts):
            if numbers.setdefault((int(hops[x, y]), i, j), count) != count:
                return False
    return True


@pytest.mark.parametrize(
    "expression",
    [
        'distance_regular("petersen")', 'distance_regular("heawood-distance-3")', 'distance_regular("shrikhande")',
        "complete(5)", "complete_bipartite(3)", "hypercube(3)", "circulant(8, {1, 3})", "circulant(8, {1, 2})",
        "torus(3, 4)", "torus(4, 4)", "hamming(2, 3)", "mesh(3)", "twisted_hypercube(3)", "circulant(13, {1, 5})",
        "circulant(9, {3})", "biring(7)",
    ],
)  # fmt: skip
def test_the_array_exists_where_the_definition_holds(expression: str) -> None:
    net = topology(expression)
    assert (intersection_array(net) is not None) == (net.is_connected and defined(net))


def test_what_is_no_distance_regular_graph() -> None:
    """One pair of links crossed, links one way, parallel links, loops, switches: each is seen."""
    for expression in ("uniring(5)", "biring(5, 4)", "debruijn(2, 2)", "dgx_a100(1)", "biring(2)", "circulant(4, {2})"):
        assert intersection_array(topology(expression)) is None
    graph = nx.Graph(as_graph(named("pg(2,3)")))
    assert intersection_array(Topology.from_networkx(graph)) is not None
    (a, b), (c, d) = (0, min(graph[0])), (1, max(graph[1]))
    graph.remove_edges_from([(a, b), (c, d)])
    graph.add_edges_from([(a, d), (c, b)])
    crossed = Topology.from_networkx(graph)
    assert crossed.degree == 4 and intersection_array(crossed) is None


@pytest.mark.parametrize(
    ("name", "graph"),
    [
        ("petersen", nx.petersen_graph()), ("petersen-line", nx.line_graph(nx.petersen_graph())),
        ("octahedron", nx.octahedral_graph()), ("heawood", nx.heawood_graph()), ("pappus", nx.pappus_graph()),
        ("heawood-line", nx.line_graph(nx.heawood_graph())), ("dodecahedron", nx.dodecahedral_graph()),
        ("desargues", nx.desargues_graph()), ("icosahedron", nx.icosahedral_graph()), ("cube", nx.cubical_graph()),
        ("4-cube", nx.hypercube_graph(4)), ("paley13", nx.Graph(nx.paley_graph(13))),
        ("hoffman-singleton", nx.hoffman_singleton_graph()),
        ("tutte8", nx.LCF_graph(30, [-13, -9, 7, -7, 9, 13], 5)),
        ("tutte8-line", nx.line_graph(nx.LCF_graph(30, [-13, -9, 7, -7, 9, 13], 5))),
        ("tutte12", nx.LCF_graph(126, TUTTE_12, 7)),
        ("paley17", nx.Graph(nx.paley_graph(17))),
    ],
)  # fmt: skip
def test_against_networkx(name: str, graph: nx.Graph) -> None:
    assert isomorphic(f'distance_regular("{name}")', graph)


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9])
def test_fields(q: int) -> None:
    """Sums and products are commutative groups without and with 0 left out, and products distribute."""
    numbers, x = field(q), np.arange(q)
    for table, group in ((numbers.plus, x), (numbers.times[1:, 1:], x[1:])):
        assert np.array_equal(table, table.T)
        assert (np.sort(table, axis=1) == group).all() and np.array_equal(table[0], group)
    a, b, c = (g.ravel() for g in np.meshgrid(x, x, x))
    for table in (numbers.plus, numbers.times):
        assert np.array_equal(table[table[a, b], c], table[a, table[b, c]])
    assert np.array_equal(numbers.times[a, numbers.plus[b, c]], numbers.plus[numbers.times[a, b], numbers.times[a, c]])
    assert (numbers.plus[x, numbers.minus[x]] == 0).all()


def test_names_are_forgiving_and_listed() -> None:
    assert links(named("PG(2, 3)")) == links(named("pg(2,3)"))
    (lines,) = details("distance_regular").values()
    assert [line.split('"')[1] for line in lines] == list(NAMES)


@pytest.mark.parametrize(
    ("argument", "code", "words"),
    [
        ('"gq(3,4)"', "C0321", "did you mean `gq(4,4)`"), ('"no such"', "C0321", "topologies distance_regular"),
        ('""', "C0321", "octahedron, paley9"), ("4", "C0131", "found a number, needed a string"),
        ("", "C0136", 'distance_regular("name")'),
    ],
)  # fmt: skip
def test_unknown_names(argument: str, code: str, words: str) -> None:
    with pytest.raises(CollcError) as caught:
        topology(f"distance_regular({argument})")
    (found,) = caught.value.diagnostics
    assert found.code == code and found.span is not None
    assert words in " ".join([found.message, found.hint or "", *found.notes])
