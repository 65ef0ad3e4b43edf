"""Isomorphisms and automorphisms: what is found maps links to links, and nothing that is there is missed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nets import circulant, complete, de_bruijn, generalized_kautz, hypercube, torus
from strategies import regular, star, topologies

from collc.ir.graph.isomorphism import automorphisms, isomorphism, link_map, match, orbits
from collc.ir.group import Group, Metacyclic, Translations, build_group
from collc.ir.topology import LinkClass, Topology, renumbered


def relabelled(topology: Topology, seed: int, switches: bool = True) -> tuple[Topology, np.ndarray]:
    """Return the topology with nodes and links in another order, and where its nodes went."""
    random = np.random.default_rng(seed)
    ranks, all_nodes = topology.num_ranks, topology.num_nodes
    nodes = np.concatenate([random.permutation(ranks), ranks + random.permutation(all_nodes - ranks)])
    order = random.permutation(topology.num_links)
    src, dst, kind = (column.astype(np.int64)[order] for column in (topology.src, topology.dst, topology.link_class))
    moved = Topology(
        "moved", ranks, nodes[src], nodes[dst], topology.num_switches, link_class=kind, classes=topology.classes,
        unit=topology.unit, multicast=renumbered(topology.multicast, nodes),
        reduces=renumbered(topology.reduces, nodes),
    )  # fmt: skip
    return moved, nodes


def links(topology: Topology, nodes: np.ndarray | None = None) -> Counter:
    """Return the links as (tail, head, class), tails and heads renamed."""
    nodes = np.arange(topology.num_nodes) if nodes is None else nodes
    ends = zip(nodes[topology.src].tolist(), nodes[topology.dst].tolist(), strict=True)
    kinds = (topology.classes[c] for c in topology.link_class)
    return Counter((a, b, kind) for (a, b), kind in zip(ends, kinds, strict=True))


def simple(topology: Topology) -> nx.DiGraph:
    """Return a plain digraph whose edges carry how many links of which class they stand for."""
    graph = nx.DiGraph()
    graph.add_nodes_from((n, {"rank": n < topology.num_ranks}) for n in range(topology.num_nodes))
    for (a, b, kind), times in links(topology).items():
        known = graph.edges[a, b]["links"] if graph.has_edge(a, b) else frozenset()
        graph.add_edge(a, b, links=known | {(kind, times)})
    return graph


def matcher(one: Topology, two: Topology) -> nx.isomorphism.DiGraphMatcher:
    same = nx.isomorphism
    return same.DiGraphMatcher(
        simple(one), simple(two), same.categorical_node_match("rank", None), same.categorical_edge_match("links", None)
    )


def cayley(group: Group, generators: list[int], symmetry: bool = True) -> Topology:
    x = np.arange(group.order)
    heads = np.stack([group.multiply(x, g) for g in generators], axis=1).ravel()
    return Topology(
        "cayley", group.order, np.repeat(x, len(generators)), heads, symmetry=group if symmetry else None
    )  # fmt: skip


# ---- isomorphisms


@given(topologies(max_ranks=8), st.integers(0, 2**32))
def test_renumbering_is_always_undone(topology: Topology, seed: int) -> None:
    moved, nodes = relabelled(topology, seed)
    found = isomorphism(topology, moved)
    assert found is not None and links(topology, found) == links(moved)
    if topology.num_nodes:
        assert np.array_equal(isomorphism(topology, moved, fixing=dict(enumerate(nodes.tolist()))), nodes)


@given(regular(max_ranks=6), st.data())
def test_as_networkx_says(one: Topology, data: st.DataObject) -> None:
    rows = list(zip(one.src.tolist(), one.dst.tolist(), strict=True))
    a, b = (data.draw(st.integers(0, len(rows) - 1)) for _ in range(2))
    # exchanging the heads of two links keeps all degrees
    rows[a], rows[b] = (rows[a][0], rows[b][1]), (rows[b][0], rows[a][1])
    two, _ = relabelled(Topology.from_links("two", one.num_ranks, rows), data.draw(st.integers(0, 99)))
    found = match(one, two)
    assert found.decided
    assert (found.nodes is not None) == matcher(one, two).is_isomorphic()


@given(regular(max_ranks=6), st.integers(0, 5), st.integers(0, 5))
def test_fixing_a_node(topology: Topology, a: int, b: int) -> None:
    a, b = a % topology.num_ranks, b % topology.num_ranks
    found = isomorphism(topology, topology, fixing={a: b})
    possible = any(m[a] == b for m in matcher(topology, topology).isomorphisms_iter())
    assert (found is not None) == possible
    if found is not None:
        assert found[a] == b and links(topology, found) == links(topology)


def shrikhande() -> Topology:
    steps = [(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)]
    rows = [(4 * a + b, 4 * ((a + x) % 4) + (b + y) % 4) for a in range(4) for b in range(4) for x, y in steps]
    return Topology.from_links("shrikhande", 16, rows)


def rook() -> Topology:
    rows = [(a, b) for a in range(16) for b in range(16) if a != b and (a // 4 == b // 4 or a % 4 == b % 4)]
    return Topology.from_links("rook", 16, rows)


def latin(size: int, times: Callable[[int, int], int]) -> Topology:
    """The cells of a Latin square, linked where they share row, column or entry: strongly regular."""
    cells = [(a, b) for a in range(size) for b in range(size)]
    rows = [
        (i, j)
        for i, (a, b) in enumerate(cells)
        for j, (c, d) in enumerate(cells)
        if i != j and (a == c or b == d or times(a, b) == times(c, d))
    ]
    return Topology.from_links("latin", size**2, rows)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (shrikhande(), rook()),
        (latin(8, lambda a, b: (a + b) % 8), latin(8, lambda a, b: a ^ b)),
        (circulant(12, 1, 5), torus(6, 2)),
        (Topology.from_links("6", 6, [(i, (i + 1) % 6) for i in range(6)]),
         Topology.from_links("3+3", 6, [(i, i // 3 * 3 + (i + 1) % 3) for i in range(6)])),
        (cayley(Metacyclic(73, 8, 10), [1, 9, 100, 333]), cayley(Metacyclic(73, 8, 10), [1, 9, 100, 333]).transpose()),
    ],
)  # fmt: skip
def test_unlike_networks_of_the_same_degrees(one: Topology, two: Topology) -> None:
    found = match(one, two)
    assert found.nodes is None and found.decided
    assert isomorphism(one, relabelled(one, 1)[0]) is not None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_first_choices_that_fail_are_taken_back(seed: int) -> None:
    """Two strongly regular networks side by side, which look alike until several nodes are told apart."""
    one = latin(8, lambda a, b: (a // 2 + b // 2) % 4 * 2 + (a ^ b) % 2)
    rows = [(a + side, b + side) for side in (0, 64) for a, b, _ in links(one)]
    both = Topology.from_links("both", 128, rows)
    moved, _ = relabelled(both, seed)
    found = isomorphism(both, moved)
    assert found is not None and links(both, found) == links(moved)
    assert orbits(moved)[0].max() == 0


def both_ways(rows: list[tuple[int, int]], ranks: int) -> Topology:
    return Topology.from_links("both ways", ranks, [*rows, *((b, a) for a, b in rows)])


@pytest.mark.parametrize(
    ("one", "two", "of_links"),
    [
        # two nodes with three leaves and two
        (both_ways([(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6)], 7),
         both_ways([(1, 0), (1, 2), (1, 3), (1, 4), (0, 5), (0, 6)], 7), 6),
        # two pairs of leaves, one of them linked, once or twice
        (both_ways([(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 3)], 6),
         both_ways([(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (4, 5)], 6), 7),
        (both_ways([(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 3), (4, 5), (4, 5)], 6),
         both_ways([(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (4, 5), (2, 3), (2, 3)], 6), 8),
    ],
)  # fmt: skip
def test_twins(one: Topology, two: Topology, of_links: int) -> None:
    """Nodes that stand for others differ by how many those are and how they are linked."""
    assert isomorphism(one, two, fixing={0: 1}) is not None
    assert isomorphism(one, two) is not None
    other = match(one, two, fixing={0: 0})
    assert other.nodes is None and other.decided
    assert orbits(one)[1].max() + 1 == of_links


def test_what_counts() -> None:
    slow = LinkClass(latency=LinkClass().latency + 1)
    ring = [(0, 1), (1, 2), (2, 0)]
    plain = Topology.from_links("plain", 3, ring)
    one_slow = Topology.from_links("slow", 3, [(*ring[0], slow), *ring[1:]])
    other_slow = Topology.from_links("slow", 3, [*ring[:2], (*ring[2], slow)])
    assert isomorphism(plain, one_slow) is None
    assert isomorphism(one_slow, other_slow).tolist() == [2, 0, 1]
    assert isomorphism(star(3), Topology.from_links("ranks", 4, links(star(3)))) is None
    assert isomorphism(Topology("one", 1, [], []), Topology("loop", 1, [0], [0])) is None
    assert isomorphism(Topology("two", 2, [], []), Topology("two", 2, [], [])).tolist() == [0, 1]
    assert isomorphism(plain, plain, fixing={0: 1, 1: 0}) is None


def test_links_follow_nodes() -> None:
    topology = torus(4, 2)
    moved, nodes = relabelled(topology, 3)
    links_of = link_map(topology, moved, nodes)
    assert np.array_equal(np.sort(links_of), np.arange(topology.num_links))
    assert np.array_equal(moved.src[links_of], nodes[topology.src])
    assert np.array_equal(moved.dst[links_of], nodes[topology.dst])
    assert link_map(topology, moved, nodes[[1, 0, *range(2, 8)]]) is None


def test_effort_ends() -> None:
    one, two = (latin(8, f) for f in (lambda a, b: (a + b) % 8, lambda a, b: a ^ b))
    assert match(one, two, effort=0).decided is False
    assert isomorphism(one, two, effort=0) is None
    found = automorphisms(two, effort=1)  # perhaps none, but nothing wrong
    assert all(links(two, m) == links(two) for m in found)


# ---- automorphisms


@given(topologies(max_ranks=6, max_switches=1, max_links=14) | regular(max_ranks=6))
def test_orbits_are_those_of_all_automorphisms(topology: Topology) -> None:
    maps = [
        np.array([m[v] for v in range(topology.num_nodes)]) for m in matcher(topology, topology).isomorphisms_iter()
    ]
    nodes, of_links = orbits(topology)
    for v in range(topology.num_nodes):
        assert {int(m[v]) for m in maps} == set(np.flatnonzero(nodes == nodes[v]).tolist())
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True))
    for i, (a, b, c) in enumerate(ends):
        images = {(int(m[a]), int(m[b]), topology.classes[c]) for m in maps}
        orbit = {(a, b, topology.classes[c]) for j, (a, b, c) in enumerate(ends) if of_links[j] == of_links[i]}
        assert images == orbit


@given(topologies(max_ranks=8))
def test_automorphisms_map_links_to_links(topology: Topology) -> None:
    for m in automorphisms(topology):
        assert links(topology, m) == links(topology)


@pytest.mark.parametrize(
    ("topology", "nodes", "of_links"),
    [
        (complete(64), 1, 1),
        (hypercube(7), 1, 1),
        (torus(12, 12), 1, 1),
        (torus(3, 4, 5), 1, 3),
        (torus(2, 2, 2), 1, 1),
        (shrikhande(), 1, 1),
        (de_bruijn(2, 6), 32, 64),
        (generalized_kautz(2, 24), 4, 8),
        (star(200), 2, 2),
        (cayley(Metacyclic(73, 8, 10), [1, 9, 100, 333], symmetry=False), 1, 4),
        (cayley(build_group("symmetric", [5]), [1, 9, 100], symmetry=False), 1, 3),
    ],
    ids=lambda value: value.name if isinstance(value, Topology) else str(value),
)  # fmt: skip
def test_known_symmetry(topology: Topology, nodes: int, of_links: int) -> None:
    """The numbers of orbits of well-known networks, however their nodes are numbered."""
    for shown in (topology, relabelled(topology, 7)[0]):
        found = orbits(shown)
        assert (nodes, of_links) == (found[0].max() + 1, found[1].max() + 1)


@pytest.mark.slow
def test_a_thousand_ranks_take_no_time() -> None:
    """Networks that Cayley digraphs and operators give, up to where flows and expansions need them."""
    begin = time.process_time()
    for topology in (
        hypercube(10), complete(256), torus(32, 32), torus(10, 10, 10), cayley(Translations((1024,)), [1, 5, 37, 901]),
        generalized_kautz(4, 1024), cayley(Metacyclic(73, 8, 10), [1, 9, 100, 333], symmetry=False),
    ):  # fmt: skip
        moved, _ = relabelled(topology, 5)
        assert isomorphism(topology, moved) is not None
        orbits(topology)
    assert time.process_time() - begin < 20


def test_numbers_are_those_of_the_first_members() -> None:
    nodes, of_links = orbits(Topology.from_links("path", 3, [(0, 1), (1, 0), (1, 2), (2, 1)]))
    assert nodes.tolist() == [0, 1, 0] and of_links.tolist() == [0, 1, 1, 0]
