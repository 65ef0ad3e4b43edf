"""Packing spanning trees: trees exist where every set of ranks has room, and those found are trees."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collc.ir.graph.cuts import FlowNetwork
from collc.passes.synthesis.forest.capacities import Tree
from collc.passes.synthesis.forest.exact_packing import exact_tree, pack_exactly
from collc.passes.synthesis.forest.flatten import flatten
from collc.passes.synthesis.forest.packing import _Packing, pack

Capacity = dict[tuple[int, int], int]
Net = tuple[int, Capacity, list[int]]


def checked(net: Net, forest: list[Tree]) -> list[int]:
    """Return the heights of a forest's trees after checking that it is what was asked for."""
    ranks, capacity, trees = net
    load, found, heights = Counter[tuple[int, int]](), [0] * ranks, []
    for tree in forest:
        assert tree.weight > 0
        found[tree.root] += tree.weight
        depth = {tree.root: 0}
        for x, y in tree.edges:
            assert y not in depth
            depth[y] = depth[x] + 1
            load[x, y] += tree.weight
        assert len(depth) == ranks
        heights.append(max(depth.values()))
    assert found == list(trees)
    assert all(capacity.get(edge, 0) >= amount for edge, amount in load.items())
    return heights


def spare(net: Net) -> int:
    """Return the least that any set of ranks has more than its trees need, looking at all sets (Theorem 9)."""
    ranks, capacity, trees = net
    least = 10**9
    for size in range(1, ranks):
        for nodes in map(set, combinations(range(ranks), size)):
            out = sum(c for (x, y), c in capacity.items() if x in nodes and y not in nodes)
            least = min(least, out - sum(trees[v] for v in nodes))
    return least


# ---- networks


@st.composite
def networks(draw: st.DrawFn, max_ranks: int = 7, max_capacity: int = 6) -> Net:
    """Any capacities, any numbers of trees."""
    ranks = draw(st.integers(2, max_ranks))
    pairs = [(x, y) for x in range(ranks) for y in range(ranks) if x != y]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=4 * ranks, unique=True))
    capacity = {pair: draw(st.integers(1, max_capacity)) for pair in chosen}
    return ranks, capacity, draw(st.lists(st.integers(0, 3), min_size=ranks, max_size=ranks))


@st.composite
def tight_networks(draw: st.DrawFn, max_ranks: int = 7) -> Net:
    """The union of random trees: exactly enough capacity, so that many sets have nothing to spare."""
    ranks = draw(st.integers(2, max_ranks))
    capacity, trees = Counter[tuple[int, int]](), [0] * ranks
    for _ in range(draw(st.integers(1, 2 * ranks))):
        order = draw(st.permutations(range(ranks)))
        copies = draw(st.integers(1, 4))
        trees[order[0]] += copies
        for place in range(1, ranks):
            capacity[order[draw(st.integers(0, place - 1))], order[place]] += copies
    return ranks, dict(capacity), trees


@st.composite
def eulerian_networks(draw: st.DrawFn, max_ranks: int = 7) -> Net:
    """Closed walks on top of each other; as many trees at every rank as all sets can stand."""
    ranks = draw(st.integers(2, max_ranks))
    capacity = Counter[tuple[int, int]]()
    walks = [list(range(ranks)), *draw(st.lists(st.permutations(range(ranks)), max_size=4))]
    for walk in walks:
        length = draw(st.integers(2, ranks)) if walk is not walks[0] else ranks
        copies = draw(st.integers(1, 5 * ranks))
        for x, y in zip(walk[:length], [*walk[1:length], walk[0]], strict=True):
            capacity[x, y] += copies
    trees = 0
    while spare((ranks, capacity, [trees + 1] * ranks)) >= 0:
        trees += 1
    return ranks, dict(capacity), [trees] * ranks


def ring(ranks: int, capacity: int, trees: int) -> Net:
    both = {(x, (x + step) % ranks): capacity for x in range(ranks) for step in (1, -1)}
    return ranks, both, [trees] * ranks


def spread(amount: int, ways: int) -> list[int]:
    return [amount // ways + (i < amount % ways) for i in range(ways)]


def boxes(number: int, inside: int, across: int, trees: int, size: int = 8) -> Net:
    """Complete boxes, and between boxes rails that join the ranks of the same place: DGX boxes without switches."""
    capacity: Capacity = {}
    for box in range(number):
        for place in range(size):
            rank = box * size + place
            for step, amount in enumerate(spread(inside, size - 1), 1):
                capacity[rank, box * size + (place + step) % size] = amount
            for step, amount in enumerate(spread(across, number - 1) if number > 1 else [], 1):
                capacity[rank, (box + step) % number * size + place] = amount
    return number * size, {edge: amount for edge, amount in capacity.items() if amount}, [trees] * (number * size)


def grid(rows: int, columns: int, capacity: int, trees: int) -> Net:
    ends: Capacity = {}
    for x in range(rows * columns):
        row, column = divmod(x, columns)
        for step in (1, -1):
            ends[x, row * columns + (column + step) % columns] = capacity
            ends[x, (row + step) % rows * columns + column] = capacity
    return rows * columns, ends, [trees] * (rows * columns)


# ---- theorems


@settings(deadline=None)
@given(networks())
def test_trees_exist_if_and_only_if_no_set_is_short(net):
    """Edmonds' theorem, both ways, by both packers."""
    ranks, capacity, trees = net
    for packer in (pack, pack_exactly):
        if spare(net) >= 0:
            checked(net, packer(ranks, capacity, trees))
        else:
            with pytest.raises(ValueError, match="capacity"):
                packer(ranks, capacity, trees)


@settings(deadline=None)
@given(tight_networks() | eulerian_networks())
def test_nothing_to_spare(net):
    ranks, capacity, trees = net
    for packer in (pack, pack_exactly):
        checked(net, packer(ranks, capacity, trees))


@settings(deadline=None)
@given(tight_networks(), st.integers(0, 6))
def test_an_exact_tree_leaves_all_others_possible(net, root):
    """And has as many copies as it claims: what is left is checked over all sets."""
    ranks, capacity, trees = net
    root %= ranks
    if not trees[root]:
        return
    network = FlowNetwork(ranks, ((x, y, c) for (x, y), c in capacity.items()))
    tree = exact_tree(network, trees, root)
    assert sorted(network.arcs()) == sorted((x, y, c) for (x, y), c in capacity.items())
    left = Counter(capacity)
    for edge in tree.edges:
        left[edge] -= tree.weight
    supply = [count - tree.weight * (rank == root) for rank, count in enumerate(trees)]
    assert 0 < tree.weight <= trees[root] and spare((ranks, left, supply)) >= 0


@settings(deadline=None)
@given(tight_networks())
def test_broadcast_reaches_the_smallest_cut(net):
    """All trees at one rank: as many as the smallest cut away from it (the case of Blink)."""
    ranks, capacity, _ = net
    network = FlowNetwork(ranks, ((x, y, c) for (x, y), c in capacity.items()))
    plenty = sum(capacity.values()) + 1
    cut = network.smallest_cut([plenty] + [0] * (ranks - 1), range(1, ranks), plenty)
    most = cut.value if cut else 0
    trees = [most] + [0] * (ranks - 1)
    checked((ranks, capacity, trees), pack(ranks, capacity, trees))
    with pytest.raises(ValueError, match="capacity"):
        pack(ranks, capacity, [most + 1] + [0] * (ranks - 1))


# ---- what is known of machines


@pytest.mark.parametrize("number", [4, 8, 16])
def test_boxes_with_rails_have_trees_of_height_2(number):
    """A100 boxes: the cut round a box is tight, one tree a rank."""
    inside, across = 12 * (number - 1), number - 1
    net = boxes(number, inside, across, 1)
    forest = pack(*net)
    assert max(checked(net, forest)) == 2 and len(forest) == net[0]


def test_one_box_has_stars():
    net = boxes(1, 7, 0, 1)
    assert checked(net, pack(*net)) == [1] * 8


def test_many_copies_make_few_trees():
    """Two boxes at the optimum of 13 trees a rank: far fewer different ones, hardly taller than the network is wide."""
    net = boxes(2, 180, 15, 13)
    forest = pack(*net)
    assert max(checked(net, forest)) <= 3 and len(forest) <= 80


def test_a_torus_without_its_symmetry():
    """Every arc is full; trees that get stuck say which sets they left short, so no edge needs a flow of its own."""
    net = grid(8, 8, 63, 4)
    packing = _Packing(*net)
    checked(net, packing.run())
    assert packing.exacts == 0 and max(checked(net, pack(*net))) <= 12


@pytest.mark.parametrize("ranks", [5, 8])
def test_rings_have_no_choice(ranks):
    """Every arc is full, and trees are a path each way."""
    net = ring(ranks, ranks - 1, 2)
    heights = checked(net, pack(*net))
    assert ranks // 2 <= max(heights) <= ranks - 1


def test_packing_is_deterministic():
    ranks, capacity, trees = grid(4, 5, 19, 4)
    again = dict(reversed(capacity.items()))
    assert pack(ranks, capacity, trees) == pack(ranks, again, trees)


# ---- lower trees


@settings(deadline=None)
@given(tight_networks() | eulerian_networks(), st.integers(0, 3))
def test_trading_changes_no_load_and_makes_no_tree_the_tallest(net, least):
    ranks, capacity, trees = net
    forest = pack_exactly(ranks, capacity, trees)
    lower = flatten(ranks, capacity, forest, least)
    assert max(checked(net, lower), default=0) <= max(max(checked(net, forest), default=0), least)


def test_trading_from_tall_trees():
    """A random network of 4 links a rank, every arc full: what is grown last is tall, and trades until it is not."""
    ranks, capacity = 48, Counter[tuple[int, int]]()
    for multiplier, shift in ((1, 1), (1, 7), (5, 2), (11, 3)):  # permutations without fixed points, mostly
        for x in range(ranks):
            y = (multiplier * x + shift) % ranks
            if x != y:
                capacity[x, y] += ranks - 1
    trees = 4
    while spare_of_singles(ranks, capacity, trees) < 0 or not feasible(ranks, capacity, trees):
        trees -= 1
    net = ranks, dict(capacity), [trees] * ranks
    packing = _Packing(*net)
    grown = packing.run()
    before, after = checked(net, grown), checked(net, flatten(*net[:2], grown, packing.farthest))
    assert max(before) == packing.height > max(after) and max(after) <= packing.farthest + 3


def spare_of_singles(ranks: int, capacity: Capacity, trees: int) -> int:
    into = Counter[int]()
    for (_, y), amount in capacity.items():
        into[y] += amount
    return min(into[y] for y in range(ranks)) - trees * (ranks - 1)


def feasible(ranks: int, capacity: Capacity, trees: int) -> bool:
    network = FlowNetwork(ranks, ((x, y, c) for (x, y), c in capacity.items()))
    return not network.violated([trees] * ranks, range(ranks))
