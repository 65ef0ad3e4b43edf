"""Trees on physical links: every edge a path of links, no link too full, no tree changed."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.frontends.coll.families.cayley import torus
from collc.frontends.coll.families.machines import dgx_a100, mi250
from collc.frontends.coll.families.switched import fat_tree
from collc.ir.collective import Collective
from collc.ir.schedule import Forest
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify_forest
from collc.passes.synthesis.forest.capacities import Tree, flow_network, link_capacities
from collc.passes.synthesis.forest.optimum import optimum
from collc.passes.synthesis.forest.packing import pack
from collc.passes.synthesis.forest.routes import Routed, routed
from collc.passes.synthesis.forest.switches import Logical, remove_switches

# ---- independent checks


def check(trees: list[Tree], logical: Logical, topology: Topology, capacity: list[int]) -> Routed:
    """Route trees; check paths, loads, and that pieces of a tree are the tree."""
    found = routed(trees, logical, topology, capacity)
    src, dst = topology.src.tolist(), topology.dst.tolist()
    load, share = Counter[int](), Counter[tuple[int, tuple[tuple[int, int], ...]]]()
    edges: list[list[tuple[int, int]]] = [[] for _ in found.root]
    assert found.tree.tolist() == sorted(found.tree.tolist())
    for tree, parent, child, route in zip(found.tree, found.parent, found.child, found.route, strict=True):
        edges[tree].append((int(parent), int(child)))
        path = found.routes.links_of(int(route))
        assert (src[path[0]], dst[path[-1]]) == (parent, child)
        for one, other in pairwise(path):
            assert dst[one] == src[other] >= topology.num_ranks
        for link in path:
            load[link] += int(found.weight[tree])
    assert all(amount <= capacity[link] for link, amount in load.items())
    for root, weight, rows in zip(found.root.tolist(), found.weight.tolist(), edges, strict=True):
        assert weight > 0
        share[root, tuple(rows)] += weight
    wanted = Counter[tuple[int, tuple[tuple[int, int], ...]]]()
    for one_tree in trees:
        wanted[one_tree.root, one_tree.edges] += one_tree.weight
    assert share == wanted
    return found


def planned(topology: Topology, root: int | None = None) -> tuple[list[Tree], Logical, list[int], int]:
    supply = [int(root is None or rank == root) for rank in range(topology.num_ranks)]
    best = optimum(topology, supply)
    capacity = link_capacities(topology, best.per_unit)
    wanted = [best.k * amount for amount in supply]
    logical = remove_switches(flow_network(topology, capacity), topology.num_ranks, wanted, topology.names)
    return pack(topology.num_ranks, logical.capacity, wanted), logical, capacity, best.k


# ---- networks


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Tree], Logical, Topology, list[int]]:
    """Any ways between up to 4 ranks through up to 3 switches, on parallel links of any widths, and trees in them.

    Links are laid where ways need them: each arc's total is cut at random.
    """
    ranks, switches = draw(st.integers(2, 4)), draw(st.integers(0, 3))
    path = st.lists(st.integers(ranks, ranks + switches - 1), max_size=3, unique=True) if switches else st.just([])
    via = dict[tuple[int, int], list[tuple[tuple[int, ...], int]]]()
    for u in range(ranks):
        for t in range(ranks):
            if u != t and draw(st.booleans()):
                paths = {tuple(one) for one in draw(st.lists(path, min_size=1, max_size=3))}
                via[u, t] = [(one, draw(st.integers(1, 5))) for one in sorted(paths)]
    total = Counter[tuple[int, int]]()
    for (u, t), way in via.items():
        for switches_passed, amount in way:
            for arc in pairwise((u, *switches_passed, t)):
                total[arc] += amount
    rows, capacity = list[tuple[int, int]](), list[int]()
    for arc, amount in sorted(total.items()):
        while amount:
            part = draw(st.integers(1, amount))
            rows.append(arc)
            capacity.append(part)
            amount -= part
    order = draw(st.permutations(range(len(rows))))
    topology = Topology.from_links("cut", ranks, [rows[i] for i in order], switches)
    left = {pair: sum(amount for _, amount in way) for pair, way in via.items()}
    logical = Logical(ranks, dict(left), via)
    trees = list[Tree]()
    for root in draw(st.lists(st.integers(0, ranks - 1), max_size=6)):
        inside, edges = {root}, list[tuple[int, int]]()
        while ends := sorted(p for p, amount in left.items() if amount and p[0] in inside and p[1] not in inside):
            edges.append(draw(st.sampled_from(ends)))
            inside.add(edges[-1][1])
        weight = draw(st.integers(1, min((left[edge] for edge in edges), default=1)))
        for edge in edges:
            left[edge] -= weight
        trees.append(Tree(root, weight, tuple(edges)))
    return trees, logical, topology, [capacity[i] for i in order]


# ---- what must hold


@pytest.mark.slow
@given(cases())
@settings(max_examples=examples(300))
def test_any_trees_fit_on_links(case: tuple[list[Tree], Logical, Topology, list[int]]) -> None:
    check(*case)


@pytest.mark.slow
@pytest.mark.parametrize("topology", [dgx_a100(1), dgx_a100(2), dgx_a100(4), mi250(2), fat_tree(4), torus(3, 3, 2)])
def test_forests_are_right(topology: Topology) -> None:
    """Routed trees are a schedule that does what it should, at the optimum."""
    trees, logical, capacity, k = planned(topology)
    found = check(trees, logical, topology, capacity)
    forest = Forest(topology, Collective("allgather", topology.num_ranks), k, **found.columns())
    assert verify_forest(forest).ok
    assert forest.routes.is_direct == topology.is_direct


def test_one_root() -> None:
    topology = dgx_a100(2)
    trees, logical, capacity, k = planned(topology, root=3)
    found = check(trees, logical, topology, capacity)
    assert verify_forest(Forest(topology, Collective("broadcast", 16, root=3), k, **found.columns())).ok


def test_routes_count_from_their_first_use() -> None:
    trees, logical, capacity, _ = planned(dgx_a100(4))
    found = routed(trees, logical, dgx_a100(4), capacity)
    _, first = np.unique(found.route, return_index=True)
    assert first.tolist() == sorted(first.tolist())
    assert len(first) == len(found.routes)
    again = routed(trees, logical, dgx_a100(4), capacity)
    assert all(np.array_equal(a, b) for a, b in zip(found.columns().values(), again.columns().values(), strict=True)
               if isinstance(a, np.ndarray))  # fmt: skip
    assert found.routes == again.routes


def fans(widths: list[int]) -> tuple[Topology, list[int], Logical]:
    """0 and 1 with a direct link for every width, both ways."""
    kinds = [LinkClass(Fraction(width)) for width in widths]
    topology = Topology.from_links("fan", 2, [(a, 1 - a, kind) for kind in kinds for a in (0, 1)])
    whole = sum(widths)
    ways = {(0, 1): [((), whole)], (1, 0): [((), whole)]}
    return topology, [width for width in widths for _ in (0, 1)], Logical(2, {(0, 1): whole, (1, 0): whole}, ways)


def test_trees_that_fit_links_stay_whole() -> None:
    """Trees of 1, 2 and 3 take the links of 1, 2 and 3, whatever their order."""
    topology, capacity, logical = fans([2, 3, 1])
    trees = [Tree(0, weight, ((0, 1),)) for weight in (1, 3, 2)]
    found = check(trees, logical, topology, capacity)
    assert found.weight.tolist() == [1, 3, 2]
    assert found.routes.is_direct and found.route.tolist() == [4, 2, 0]


def test_a_tree_that_fits_no_link_is_cut() -> None:
    topology, capacity, logical = fans([2, 3])
    found = check([Tree(0, 4, ((0, 1),)), Tree(1, 5, ((1, 0),)), Tree(0, 1, ((0, 1),))], logical, topology, capacity)
    assert found.root.tolist() == [0, 0, 1, 1, 0]
    assert found.weight.tolist() == [3, 1, 3, 2, 1]


def test_cuts_of_several_edges_fall_together() -> None:
    """Both edges of a tree take routes of 3 and 2: two pieces, not three."""
    links = [(0, 3), (3, 1), (0, 4), (4, 1), (1, 3), (3, 2), (1, 4), (4, 2)]
    topology = Topology.from_links("two ways", 3, links, 2)
    ways = {(0, 1): [((4,), 2), ((3,), 3)], (1, 2): [((3,), 3), ((4,), 2)]}
    logical = Logical(3, {(0, 1): 5, (1, 2): 5}, ways)
    found = check([Tree(0, 5, ((0, 1), (1, 2)))], logical, topology, [3, 3, 2, 2, 3, 3, 2, 2])
    assert found.weight.tolist() == [3, 2]
    assert [found.routes.links_of(r) for r in found.route.tolist()] == [[0, 1], [4, 5], [2, 3], [6, 7]]


def test_no_trees() -> None:
    found = routed([Tree(0, 1, ())], Logical(1, {}, {}), Topology.from_links("one", 1, []), [])
    assert found.root.tolist() == [0] and len(found.tree) == 0
