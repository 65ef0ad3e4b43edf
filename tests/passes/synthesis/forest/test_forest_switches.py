"""Removing switches: the same trees exist afterwards, and all ways fit on the links."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.frontends.coll.families.machines import dgx_a100, dgx_h100, mi250
from collc.frontends.coll.families.switched import dragonfly, fat_tree, hammingmesh
from collc.ir.diagnostic import CollcError
from collc.ir.graph.cuts import FlowNetwork
from collc.ir.topology import LinkClass, Topology
from collc.messages.explain import all_codes
from collc.passes.synthesis.forest import switches
from collc.passes.synthesis.forest.capacities import flow_network, link_capacities
from collc.passes.synthesis.forest.layout import Layout
from collc.passes.synthesis.forest.optimum import optimum
from collc.passes.synthesis.forest.splitting import CutPool, Mesh, split_off
from collc.passes.synthesis.forest.stars import Spreader, star
from collc.passes.synthesis.forest.switches import Logical, remove_switches

Arc = tuple[int, int, int]
Net = tuple[int, FlowNetwork, list[int]]  # ranks, capacities, trees rooted at each node

# ---- independent checks


def smallest(network: FlowNetwork, ranks: int, supply: Sequence[int]) -> int:
    """Return the smallest cut, looking at all sets that leave out a rank."""
    nodes = range(network.num_nodes)
    return min(
        network.leaving(inside) + sum(supply[v] for v in nodes if v not in inside)
        for size in nodes
        for inside in combinations(nodes, size)
        if not set(range(ranks)) <= set(inside)
    )


def between_ranks(logical: Logical) -> FlowNetwork:
    return FlowNetwork(logical.num_ranks, ((u, t, c) for (u, t), c in logical.capacity.items()))


def check_ways(network: FlowNetwork, logical: Logical) -> None:
    """Ways go through switches, through none twice, make up the capacities, and fit on the arcs all together."""
    load = Counter[tuple[int, int]]()
    assert logical.via.keys() == logical.capacity.keys()
    for (u, t), way in logical.via.items():
        assert u != t and max(u, t) < logical.num_ranks
        assert sum(amount for _, amount in way) == logical.capacity[u, t] > 0
        assert len({path for path, _ in way}) == len(way)
        for path, amount in way:
            assert amount > 0 and len(set(path)) == len(path)
            assert all(node >= logical.num_ranks for node in path)
            for arc in pairwise((u, *path, t)):
                load[arc] += amount
    assert all(amount <= network.between(*arc) for arc, amount in load.items())


def removed(topology: Topology, root: int | None = None) -> tuple[Logical, FlowNetwork, list[int]]:
    """Return a topology without switches at its optimum, checked by one sweep."""
    supply = [int(root is None or rank == root) for rank in range(topology.num_ranks)]
    best = optimum(topology, supply)
    network = flow_network(topology, link_capacities(topology, best.per_unit))
    trees = [best.k * amount for amount in supply]
    logical = remove_switches(network, topology.num_ranks, trees, topology.names)
    check_ways(network, logical)
    assert not between_ranks(logical).violated(trees, range(topology.num_ranks))
    return logical, network, trees


# ---- networks


@st.composite
def networks(draw: st.DrawFn) -> Net:
    """Up to 3 switches, as much out of each as in; as many trees, everywhere or at one root, as all cuts allow."""
    ranks, count = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    nodes = range(ranks + count)
    network = FlowNetwork(ranks + count)
    walk = st.lists(st.sampled_from(nodes), min_size=2, max_size=6, unique=True)
    most = draw(st.sampled_from([1, 3, 20]))
    for _ in range(draw(st.integers(1, 12))):
        loop, amount = draw(walk), draw(st.integers(1, most))
        for tail, head in pairwise([*loop, loop[0]]):
            network.add(tail, head, amount)
    for _ in range(draw(st.integers(0, 4))):  # ranks may let out more or less than in
        tail, head = draw(st.integers(0, ranks - 1)), draw(st.integers(0, ranks - 1))
        middle, amount = draw(st.integers(ranks, ranks + count - 1)), draw(st.integers(1, most))
        network.add(tail, middle, amount)
        network.add(middle, head, amount)
    root = draw(st.none() | st.integers(0, ranks - 1))
    unit = [int(root is None or node == root) if node < ranks else 0 for node in nodes]
    trees = 0
    while trees < 40 and not network.violated([(trees + 1) * amount for amount in unit], range(ranks)):
        trees += 1
    return ranks, network, [trees * amount for amount in unit]


def cabled(name: str, ranks: int, others: int, cables: Sequence[tuple[int, int, int | Fraction]]) -> Topology:
    links = [end for a, b, c in cables for end in ((a, b, LinkClass(Fraction(c))), (b, a, LinkClass(Fraction(c))))]
    return Topology.from_links(name, ranks, links, others)


def boxes(sizes: Sequence[int], slow: int = -1, fabrics: int = 1, missing: int = -1) -> Topology:
    """Boxes of GPUs with 300 to the box's switch and 25 to a fabric; one may be slow (13), one box may lack its third
    GPU; several fabrics take GPUs in turn."""
    places = [(b, i) for b, size in enumerate(sizes) for i in range(size) if (b, i) != (missing, 2)]
    ranks, cables = len(places), list[tuple[int, int, int]]()
    for rank, (box, place) in enumerate(places):
        cables.append((rank, ranks + box, 300))
        cables.append((rank, ranks + len(sizes) + place % fabrics, 13 if rank == slow else 25))
    return cabled("boxes", ranks, len(sizes) + fabrics, cables)


def tiers(leaves: int, hosts: int, spines: int, up: int | Fraction) -> Topology:
    """Leaves of hosts with links of 1, every leaf linked to every spine with ``up``."""
    ranks = leaves * hosts
    cables = [(rank, ranks + rank // hosts, Fraction(1)) for rank in range(ranks)]
    cables += [(ranks + leaf, ranks + leaves + s, Fraction(up)) for leaf in range(leaves) for s in range(spines)]
    return cabled("tiers", ranks, leaves + spines, cables)


# ---- theorems


@pytest.mark.slow
@given(networks())
@settings(max_examples=examples(300))
def test_no_trees_are_lost(net: Net) -> None:
    """Against all cuts: the smallest still holds all trees; the network itself is left as it was."""
    ranks, network, supply = net
    before = sorted(network.arcs())
    logical = remove_switches(network, ranks, supply)
    check_ways(network, logical)
    assert smallest(between_ranks(logical), ranks, supply) >= sum(supply) or ranks == 1
    assert sorted(network.arcs()) == before


def closed_walks(number: int) -> Net:
    """A network drawn by a number: closed walks of capacity through up to 5 ranks and 3 switches, one root in three."""
    draw = random.Random(number)
    ranks = draw.randint(2, 5)
    network = FlowNetwork(ranks + draw.randint(1, 3))
    nodes, most = range(network.num_nodes), draw.choice([1, 3, 20])
    for _ in range(draw.randint(2, 12)):
        loop, amount = draw.sample(nodes, draw.randint(2, min(5, len(nodes)))), draw.randint(1, most)
        for tail, head in pairwise([*loop, loop[0]]):
            network.add(tail, head, amount)
    root = draw.choice([None, None, 0])
    unit = [int(root is None or node == root) if node < ranks else 0 for node in nodes]
    trees = 0
    while not network.violated([(trees + 1) * amount for amount in unit], range(ranks)):
        trees += 1
    return ranks, network, [trees * amount for amount in unit]


@pytest.mark.slow
def test_no_trees_are_lost_where_guesses_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guesses fail on one network in a hundred or so: enough are drawn to see that repaired."""
    repaired = list[int]()
    monkeypatch.setattr(switches, "split_off", lambda *given: repaired.append(given[1]) or split_off(*given))
    for number in range(1500):
        ranks, network, supply = closed_walks(number)
        if sum(supply):
            logical = remove_switches(network, ranks, supply)
            check_ways(network, logical)
            assert smallest(between_ranks(logical), ranks, supply) >= sum(supply)
    assert len(repaired) > 10


@pytest.mark.slow
@given(networks(), st.booleans())
@settings(max_examples=examples(300))
def test_exact_splitting_never_gets_stuck(net: Net, wishing: bool) -> None:
    """Theorem 7, with the guesses as wishes or without any: every switch can be split off completely."""
    ranks, network, supply = net
    mesh, pool, sinks = Mesh(network), CutPool(network.num_nodes), list(range(ranks))
    layout = Layout(network, ranks)
    for switch in range(ranks, network.num_nodes):
        into, out = dict(mesh.into[switch]), dict(mesh.out[switch])
        wishes = Spreader().pairs(into, out, layout.groups(switch, {*into, *out})) if into and wishing else []
        pairs = split_off(mesh, switch, wishes, supply, sinks, pool)
        for node in {*into, *out}:
            assert into.get(node, 0) == sum(amount for u, _, amount in pairs if u == node)
            assert out.get(node, 0) == sum(amount for _, t, amount in pairs if t == node)
        mesh.remove(switch, pairs)
        assert smallest(mesh.network(), ranks, supply) >= sum(supply) or ranks == 1
    assert sorted(sinks) == list(range(ranks))


@pytest.mark.slow
@given(networks())
@settings(max_examples=examples(150))
def test_known_cuts_keep_their_slack(net: Net) -> None:
    """What the pool says may still be taken from a cut is what the network says."""
    ranks, network, supply = net
    mesh, pool, sinks = Mesh(network), CutPool(network.num_nodes), list(range(ranks))
    for switch in range(ranks, network.num_nodes):
        mesh.remove(switch, split_off(mesh, switch, (), supply, sinks, pool))
        after = mesh.network()
        for number, slack in enumerate(pool.slack):
            inside = [v for v in range(network.num_nodes) if pool.inside[v] >> number & 1]
            value = after.leaving(inside) + sum(supply) - sum(supply[v] for v in inside)
            assert value - sum(supply) == slack >= 0
            assert (slack == 0) == bool(pool.tight >> number & 1)


@given(networks())
@settings(max_examples=examples(100))
def test_guesses_that_fail_are_repaired(net: Net) -> None:
    """With no guess for the whole, switches are guessed in parts and split exactly where that fails."""
    ranks, network, supply = net
    mesh, layout = Mesh(network), Layout(network, ranks)
    tight = switches._tight_cuts(network, ranks, supply)
    for number in range(len(tight.slack)):
        inside = {node for node in range(network.num_nodes) if tight.inside[node] >> number & 1}
        assert network.leaving(inside) == sum(supply[node] for node in inside)
    end = switches._split(mesh, layout, tight, supply)
    assert smallest(end.network(ranks), ranks, supply) >= sum(supply) or ranks == 1


# ---- stars


@given(st.lists(st.integers(0, 30), min_size=1, max_size=14), st.integers(0, 5), st.integers(1, 4))
def test_stars_are_full(amounts: list[int], turn: int, grain: int) -> None:
    """Only what is more than all others have together is left, and no node is joined to itself."""
    pairs, left = star(amounts, turn, grain)
    sent, received = list(left), list(left)
    for i, j, amount in pairs:
        assert i != j and amount > 0
        sent[i] += amount
        received[j] += amount
    assert sent == received == list(amounts)
    largest = max(amounts)
    assert sum(left) == max(0, 2 * largest - sum(amounts))


@given(st.integers(2, 20), st.integers(1, 60), st.integers(0, 30))
def test_equal_stars_are_even(nodes: int, amount: int, turn: int) -> None:
    pairs, _ = star([amount] * nodes, turn)
    found = Counter[tuple[int, int]]()
    for i, j, part in pairs:
        found[i, j] += part
    shares = [found[i, j] for i in range(nodes) for j in range(nodes) if i != j]
    assert max(shares) - min(shares) <= 1


def test_small_shares_are_joined() -> None:
    """With a grain of 4, 12 from each of 10 nodes go to 3 others, not to all."""
    pairs, left = star([12] * 10, grain=4)
    assert not any(left)
    assert {amount for _, _, amount in pairs} == {4}


def test_leftovers_go_through_others() -> None:
    """The larger node has as much as all others together: nobody else is joined."""
    pairs, left = star([1, 1, 1, 3])
    assert left == [0, 0, 0, 0]
    assert {3} == {i if j != 3 else j for i, j, _ in pairs}


def test_boxes_are_joined_by_rails() -> None:
    """Same place, different boxes; and what has no partner of its place goes anywhere but to its own box."""
    groups = [[0, 1, 2], [3, 4, 5], [6, 7]]
    capacity = dict.fromkeys(range(8), 2)
    found = {(u, t) for u, t, _ in Spreader().pairs(capacity, capacity, groups)}
    assert found == {(a, b) for rail in ([0, 3, 6], [1, 4, 7], [2, 5]) for a in rail for b in rail if a != b}
    capacity[7] = 6
    pairs = Spreader().pairs(capacity, capacity, groups)
    box = {node: i for i, group in enumerate(groups) for node in group}
    assert all(box[u] != box[t] for u, t, _ in pairs)
    assert sum(amount for u, _, amount in pairs if u == 7) == 6


# ---- machines


def test_hundreds_of_gpus_have_rails() -> None:
    """A GPU of 16 boxes reaches the 7 others of its box, and the 15 of its place."""
    logical, _, _ = removed(dgx_a100(16))
    to = {t for u, t in logical.capacity if u == 19}
    assert to == {*range(16, 24), *range(3, 128, 8)} - {19}
    assert logical.via[19, 20][0][0] == (130,)
    assert logical.via[19, 3] == [((144,), 1)]


@pytest.mark.parametrize(
    "topology",
    [
        dgx_a100(1), dgx_a100(2), dgx_a100(5), dgx_h100(4), mi250(1), mi250(2), mi250(4), fat_tree(4),
        dragonfly(2, 4, 2), hammingmesh(2, 2, 3, 3), boxes([8] * 8, missing=3), boxes([8] * 8, slow=5),
        boxes([4, 8, 8, 4, 8]), boxes([8, 4, 4, 4]),
        boxes([8] * 6, fabrics=2), boxes([8] * 4, fabrics=8, missing=1), tiers(4, 4, 2, 1),
        tiers(4, 4, 2, Fraction(1, 16)), tiers(6, 5, 3, Fraction(1, 3)),
    ],
    ids=lambda topology: f"{topology.name}-{topology.num_ranks}",
)  # fmt: skip
def test_machines_are_guessed(topology: Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    """On machines that people build, regular or not, the first guess loses nothing; for a single root others may."""
    removed(topology, root=topology.num_ranks - 1)
    monkeypatch.setattr(switches, "_tight_cuts", None)  # what comes after the first guess
    removed(topology)


def test_without_guesses_machines_are_split_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switches, "_guessed", lambda *_: None)
    for topology in (dgx_a100(4), mi250(2), fat_tree(4), boxes([8, 4, 8], slow=9), tiers(4, 4, 2, Fraction(1, 16))):
        removed(topology)


def test_a_network_without_switches_is_itself() -> None:
    network = FlowNetwork(3, [(0, 1, 2), (1, 2, 3), (2, 0, 2), (1, 0, 1)])
    logical = remove_switches(network, 3, [1, 0, 0])
    assert logical.capacity == {(0, 1): 2, (1, 2): 3, (2, 0): 2, (1, 0): 1}
    assert logical.via == {pair: [((), amount)] for pair, amount in logical.capacity.items()}


def test_ways_pass_several_switches() -> None:
    """0 and 1 hang from different leaves; two spines join these."""
    cables = [(0, 2, 2), (1, 3, 2), (2, 4, 1), (3, 4, 1), (2, 5, 1), (3, 5, 1)]
    logical, _, _ = removed(cabled("two leaves", 2, 4, cables))
    assert sorted(logical.via[0, 1]) == [((2, 4, 3), 1), ((2, 5, 3), 1)]


def test_the_outcome_does_not_depend_on_the_run() -> None:
    first, second = (removed(boxes([8, 4, 8, 8], slow=3))[0] for _ in range(2))
    assert list(first.via.items()) == list(second.via.items())


# ---- networks that are not balanced


def test_too_much_is_left_out() -> None:
    """3 in and 5 out: 2 of what goes out are not needed."""
    arcs = [(0, 3, 1), (1, 3, 1), (2, 3, 1), (3, 0, 2), (3, 1, 2), (3, 2, 1)]
    network = FlowNetwork(4, [(0, 1, 2), (1, 2, 2), (2, 0, 2), *arcs])
    logical = remove_switches(network, 3, [2, 0, 0])
    check_ways(network, logical)
    assert smallest(between_ranks(logical), 3, [2, 0, 0]) >= 2


def test_a_switch_that_needs_all_it_takes_in() -> None:
    """Rank 0 must send 2 trees into a switch that lets 1 out to either of the others, who cannot pass them on."""
    network = FlowNetwork(4, [(0, 3, 1), (3, 1, 1), (3, 2, 1), (1, 0, 1), (2, 0, 1), (1, 2, 0)])
    network.add(1, 2, 1)
    network.add(2, 1, 1)
    logical = remove_switches(network, 3, [1, 0, 0])
    assert logical.capacity.get((0, 1), 0) + logical.capacity.get((0, 2), 0) == 1
    lacking = FlowNetwork(4, [(0, 3, 1), (3, 1, 1), (3, 2, 1)])
    with pytest.raises(CollcError) as caught:
        remove_switches(lacking, 3, [1, 0, 0], ["a", "b", "c", "nv"])
    [found] = caught.value.diagnostics
    assert found.code == "C0584" and found.code in all_codes()
    assert found.message == "found capacity for 1 trees into switch nv and 2 out of it, needed as many out as in"
    assert found.hint is not None


def test_trees_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match="does not hold"):
        remove_switches(FlowNetwork(3, [(0, 2, 1), (2, 1, 1), (1, 2, 1), (2, 0, 1)]), 2, [2, 2])
