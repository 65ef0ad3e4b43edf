"""Smaller networks hold the same trees: on small ones by all cuts, on imported clusters by the trees themselves."""

from __future__ import annotations

import random
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from pcie_clusters import pcie_cluster
from sampling import every

from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.effort import EffortSpent, limited
from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.graph.cuts import FlowNetwork
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify_forest
from collc.passes.synthesis.forest import switches
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.passes.synthesis.forest.simplifying import contracted, simplified, without_spare
from collc.passes.synthesis.forest.splitting import Mesh

pytestmark = pytest.mark.slow

Net = tuple[int, FlowNetwork, list[int]]  # ranks, capacities, trees rooted at each node


def smallest(network: FlowNetwork, ranks: int, supply: list[int]) -> int:
    """Return the smallest cut, looking at all sets that leave out a rank."""
    nodes = range(network.num_nodes)
    sets = (inside for size in nodes for inside in combinations(nodes, size) if not set(range(ranks)) <= set(inside))
    return min(network.leaving(one) + sum(supply[v] for v in nodes if v not in one) for one in sets)


def drawn(number: int) -> Net:
    """A network of a number: closed walks through up to 4 ranks and 4 switches, and the most trees that it holds."""
    draw = random.Random(number)
    ranks, others = draw.randint(2, 4), draw.randint(1, 4)
    network = FlowNetwork(ranks + others)
    nodes = range(ranks + others)
    for _ in range(draw.randint(2, 10)):
        walk, amount = draw.sample(nodes, draw.randint(2, min(5, len(nodes)))), draw.randint(1, 9)
        for tail, head in pairwise([*walk, walk[0]]):
            network.add(tail, head, amount)
    unit = [int(v < ranks and (number % 3 > 0 or v == 0)) for v in nodes]
    trees = 0
    while not network.violated([(trees + 1) * amount for amount in unit], range(ranks)):
        trees += 1
    return ranks, network, [trees * amount for amount in unit]


def is_balanced(mesh: Mesh, ranks: int) -> bool:
    rows = zip(mesh.into[ranks:], mesh.out[ranks:], strict=True)
    return all(sum(into.values()) == sum(out.values()) for into, out in rows)


def neighbours(mesh: Mesh, node: int) -> int:
    return len(mesh.into[node].keys() | mesh.out[node].keys())


# ---- small networks


@pytest.mark.parametrize("number", every(4, range(320)))
def test_no_cut_becomes_smaller(number: int) -> None:
    """Contracting changes no smallest cut; leaving out what is spare leaves enough for the trees."""
    ranks, network, supply = drawn(number)
    mesh, before = Mesh(network), smallest(network, ranks, supply)
    small = contracted(mesh, ranks)
    assert smallest(small.network(), ranks, supply) == before
    least = simplified(mesh, ranks, supply)
    assert smallest(least.network(), ranks, supply) >= sum(supply)
    for one in (small, least):
        assert is_balanced(one, ranks)
        assert all(
            neighbours(one, switch) != 1 and neighbours(one, switch) != 2 for switch in range(ranks, one.num_nodes)
        )
    assert sorted(mesh.network().arcs()) == sorted(network.arcs()), "the mesh itself stays"


def test_a_chain_is_the_narrowest_of_its_links() -> None:
    """0 - bridge - NIC - port - 1: capacity beyond the narrowest link could only return."""
    network = FlowNetwork(5)
    for tail, head, amount in ((0, 2, 9), (2, 3, 4), (3, 4, 6), (4, 1, 5)):
        network.add(tail, head, amount)
        network.add(head, tail, amount)
    small = contracted(Mesh(network), 2)
    assert sorted(small.network().arcs()) == [(0, 1, 4), (1, 0, 4)]


def test_what_is_alike_goes_or_stays_together() -> None:
    """Two ranks, three equal switches, each of which could be spared alone, and a narrow one that is."""
    network = FlowNetwork(6)
    for switch, amount in ((2, 4), (3, 4), (4, 4), (5, 1)):
        for rank in (0, 1):
            network.add(rank, switch, amount)
            network.add(switch, rank, amount)
    left = without_spare(Mesh(network), 2, [8, 0, 0, 0, 0, 0])
    assert [neighbours(left, switch) for switch in range(2, 6)] == [2, 2, 2, 0]


# ---- imported clusters


def imported(folder: Path, hosts: int, per_leaf: int = 0) -> Topology:
    text = pcie_cluster(folder, hosts, per_leaf)
    return coll.load(str(folder / "pod.coll"), text=text).topologies["pod"]


def degraded(topology: Topology, *parts: tuple[str, str]) -> Topology:
    """Return a topology with half the bandwidth between nodes of these names."""
    names, classes = topology.names, topology.classes
    rows = zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True)
    half = {frozenset(part) for part in parts}
    links = [
        (a, b, LinkClass(classes[c].bandwidth / 2 if {names[a], names[b]} in half else classes[c].bandwidth))
        for a, b, c in rows
    ]
    return Topology.from_links(
        topology.name, topology.num_ranks, links, topology.num_switches, unit=topology.unit, node_names=topology.names
    )


def checked(topology: Topology, kind: str, most: int) -> None:
    """Trees of optimal bandwidth, correct, within some steps of work."""
    root = 0 if kind == "broadcast" else None
    with limited(most):
        forest = ForestScheduler().run(Problem(topology, Collective(kind, topology.num_ranks, root=root)))
    assert verify_forest(forest).ok
    supply = [int(root is None or rank == root) for rank in range(topology.num_ranks)]
    least = worst_ratio(topology, supply)[0] * 10**9
    found = cost(forest).forest
    assert found is not None and found.one_over_x == least


@pytest.mark.parametrize(("per_leaf", "kind"), [(0, "allgather"), (0, "broadcast"), (2, "reduce-scatter")])
def test_imported_clusters_have_optimal_trees(tmp_path: Path, per_leaf: int, kind: str) -> None:
    checked(imported(tmp_path, 4, per_leaf), kind, 60_000_000)


def test_clusters_with_slow_links_have_optimal_trees(tmp_path: Path) -> None:
    checked(
        degraded(imported(tmp_path, 3), ("n001/gpu3", "n001/nvswitch"), ("n002/mlx5_0", "leaf0")),
        "allgather",
        80_000_000,
    )


def test_128_ranks_take_little_work(tmp_path: Path) -> None:
    """Counted: splitting all 252 switches exactly takes more than ten times as many steps."""
    checked(imported(tmp_path, 16), "allgather", 5_000_000)


def test_without_smaller_networks_the_work_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: what the limit of the test before is for."""
    monkeypatch.setattr(switches, "simplified", lambda mesh, *_: mesh)
    with pytest.raises(EffortSpent):
        checked(imported(tmp_path, 16), "allgather", 5_000_000)
