"""Trees of an allreduce: they fit what the optimum gives each direction, and reach it exactly."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import attrs
import numpy as np
import pytest
from sampling import every

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify
from collc.passes.synthesis.forest.allreduce_optimum import allreduce_optimum
from collc.passes.synthesis.forest.allreduce_trees import allreduce_trees, packed
from collc.passes.synthesis.forest.division import Division
from collc.passes.synthesis.forest.halves import forest_of
from collc.passes.synthesis.forest.scheduler import ForestScheduler

GB = 10**9
CLUSTER = "dgx_h100(16)"


def grown(net: Topology, kind: str = "allreduce", **options: object) -> Forest:
    return ForestScheduler(**options).run(Problem(net, Collective(kind, net.num_ranks)))  # type: ignore[arg-type]


def crossings(forest: Forest, inward: bool) -> Counter[int]:
    """Return how many trees of one direction cross each link, counted with their weights."""
    found: Counter[int] = Counter()
    for tree, route in zip(forest.tree.tolist(), forest.route.tolist(), strict=True):
        if bool(forest.inward[tree]) == inward:
            for link in forest.routes.links_of(route):
                found[link] += int(forest.weight[tree])
    return found


def rooted(forest: Forest, inward: bool) -> list[int]:
    trees = np.flatnonzero(forest.inward == inward)
    return np.bincount(forest.root[trees], forest.weight[trees], forest.collective.num_ranks).astype(int).tolist()


def overloaded(forest: Forest, division: Division) -> list[int]:
    """Return the links that hold more trees of some direction than a division gives it."""
    held = ((True, division.inward), (False, division.outward))
    return sorted({link for way, most in held for link, load in crossings(forest, way).items() if load > most[link]})


def network(seed: int) -> Topology:
    """A network of 3 to 5 ranks and up to two switches, links of different bandwidths, mostly two-way."""
    chance = random.Random(seed)
    ranks, switches = 3 + seed % 3, seed // 3 % 3
    nodes = ranks + switches
    ends = [(chance.randrange(v), v) for v in range(1, ranks)]
    ends += [(rank, v) for v in range(ranks, nodes) for rank in chance.sample(range(ranks), 3)]
    ends += [tuple(chance.sample(range(nodes), 2)) for _ in range(chance.randrange(ranks))]
    kinds = [LinkClass(Fraction(chance.choice((1, 2, 3)))) for _ in ends]
    links = [(a, b, kind) for (a, b), kind in zip(ends, kinds, strict=True)]
    links += [(b, a, kind) for a, b, kind in links]
    if seed % 4 == 0:
        turn = chance.sample(range(ranks), ranks)  # a one-way circle keeps every rank balanced
        links += [(a, b, LinkClass(Fraction(1))) for a, b in zip(turn, turn[1:] + turn[:1], strict=True)]
    return Topology.from_links("drawn", ranks, links, switches)


@pytest.mark.parametrize("seed", every(6, range(240)))
def test_every_allreduce_reaches_the_optimum_of_trees(seed: int) -> None:
    net = network(seed)
    optimum = allreduce_optimum(net)
    assert optimum is not None
    forest = grown(net)
    assert verify(forest).ok
    assert cost(forest).time_per_byte == 1 / optimum.value


@pytest.mark.parametrize("seed", every(6, range(240), 1))
def test_trees_fit_their_division(seed: int) -> None:
    net = network(seed)
    optimum = allreduce_optimum(net)
    assert optimum is not None
    forest, division = packed_forest(net, optimum.division), optimum.division
    assert verify(forest).ok
    assert not overloaded(forest, division)
    assert rooted(forest, True) == rooted(forest, False) == list(division.roots)
    assert cost(forest).time_per_byte <= 1 / division.value


def packed_forest(net: Topology, division: Division) -> Forest:
    return forest_of(Problem(net, Collective("allreduce", net.num_ranks)), packed(net, division))


def lopsided() -> tuple[Topology, Division]:
    """A triangle with a weak rank, which roots nothing."""
    wide, thin = LinkClass(Fraction(2)), LinkClass(Fraction(1))
    links = [(0, 1, wide), (1, 0, wide), (1, 2, thin), (2, 1, thin)]
    return Topology.from_links("lopsided", 3, links), Division((1, 1, 0), (1, 1, 0, 2), (1, 1, 2, 0), Fraction(2))


def test_a_division_with_unequal_roots() -> None:
    net, division = lopsided()
    forest = packed_forest(net, division)
    assert forest.whole
    assert verify(forest).ok
    assert rooted(forest, True) == rooted(forest, False) == [1, 1, 0]
    assert not overloaded(forest, division)


def test_planted_faults_are_found() -> None:
    net, division = lopsided()
    forest = packed_forest(net, division)
    moved = forest.root.copy()
    moved[0] = 1 - moved[0]
    report = verify(attrs.evolve(forest, root=moved))
    assert [check.name for check in report.checks if not check.ok] == ["trees"]
    turned = np.flatnonzero(forest.inward == 0)[::-1]
    order = np.concatenate([np.flatnonzero(forest.inward == 1), turned])
    rows = np.concatenate([np.flatnonzero(forest.tree == tree) for tree in order])
    number = np.argsort(order)
    other = attrs.evolve(
        forest, root=forest.root[order], weight=forest.weight[order], inward=forest.inward[order],
        tree=number[forest.tree[rows]], parent=forest.parent[rows], child=forest.child[rows], route=forest.route[rows],
    )  # fmt: skip
    wrong = next(check for check in verify(other).checks if not check.ok)
    assert wrong.name == "weights" and "but broadcast from" in wrong.detail
    tight = attrs.evolve(division, outward=(0, *division.outward[1:]))
    assert overloaded(forest, tight) == [0]
    with pytest.raises(ValueError, match=r"too few|too little"):
        packed(net, tight)


# ---- clusters with a fault

#: the optimum in GB/s of 16 boxes of 8 at 450 GB/s inside and 50 GB/s a NIC, with the most height of a tree
FAULTS = {
    "degraded(dgx_h100(16), {gpu[3, 1] <-> ib}, 1/2)": (Fraction(6375, 30), 4),
    "degraded(dgx_h100(16), {gpu[3, 1] <-> ib}, 1/10)": (Fraction(6355, 30), 4),
    "without(dgx_h100(16), {gpu[3, 1] <-> ib})": (Fraction(6350, 30), 4),
    "without(dgx_h100(16), {gpu[3, 1]})": (Fraction(6350, 30), 4),
    "without(dgx_h100(16), {gpu[3, 1] <-> nv[3]})": (Fraction(50), 3),
    "degraded(dgx_h100(16), {gpu[3, 1] <-> nv[3]}, 1/2)": (Fraction(6400, 30), 3),
    "degraded(dgx_h100(16), {gpu[3, 1] <-> nv[3]}, 1/3)": (Fraction(200), 4),
    "degraded(dgx_h100(16), {gpu[3, 1] <-> nv[3]}, 1/10)": (Fraction(95), 4),
    "without(dgx_h100(16), {nv[3]})": (Fraction(50), 4),
    f"degraded(dgx_h100(16), {{{', '.join(f'gpu[3, {i}] <-> ib' for i in range(8))}}}, 1/2)": (Fraction(200), 4),
}


@pytest.mark.parametrize("network", FAULTS)
def test_a_cluster_with_a_fault_reaches_the_optimum(network: str) -> None:
    net, (bandwidth, height) = topology(network), FAULTS[network]
    forest = grown(net, pieces=1)
    assert verify(forest).ok
    assert cost(forest).time_per_byte == 1 / (bandwidth * GB)
    assert int(forest.depth.max()) <= height
    assert forest.num_trees <= 2 * 2 * net.num_ranks


@pytest.mark.parametrize("network", every(3, list(FAULTS)))
def test_an_allgather_on_a_cluster_with_a_fault(network: str) -> None:
    forest = grown(topology(network), "allgather", pieces=1)
    assert verify(forest).ok
    assert cost(forest).bound_met
    assert int(forest.depth.max()) <= 3
    assert forest.num_trees <= 2 * forest.topology.num_ranks


@pytest.mark.parametrize("boxes", [2, 3, 5])
@pytest.mark.parametrize("seed", every(4, range(40)))
def test_clusters_with_drawn_links(seed: int, boxes: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.choice((1, 2, 3, 4)) for _ in range(boxes)]
    ranks, links = sum(sizes), []
    fabric, first = ranks + boxes, 0
    for box, size in enumerate(sizes):
        for rank in range(first, first + size):
            inner = LinkClass(Fraction(chance.choice((20, 20, 40))))
            outer = LinkClass(Fraction(chance.choice((1, 2, 3, 3, 3))))
            both = [(rank, ranks + box, inner)] * (size > 1) + [(rank, fabric, outer)]
            links += [*both, *((b, a, kind) for a, b, kind in both)]
        first += size
    net = Topology.from_links("cluster", ranks, links, boxes + 1)
    optimum = allreduce_optimum(net)
    assert optimum is not None
    forest = grown(net, pieces=1)
    assert verify(forest).ok
    assert cost(forest).time_per_byte == 1 / optimum.value
    gathered = grown(net, "allgather", pieces=1)
    assert verify(gathered).ok
    assert cost(gathered).bound_met


def test_equal_shards_stay_where_they_are_optimal() -> None:
    for network in ("dgx_h100(2)", "dgx_a100(2)", "hypercube(3)", "torus(4, 4)", "mi300x(2)"):
        assert allreduce_trees(topology(network)) is None


def test_ranks_root_equally_many_trees() -> None:
    forest = grown(topology(f"degraded({CLUSTER}, {{gpu[3, 1] <-> ib}}, 1/2)"), pieces=1)
    assert rooted(forest, True) == rooted(forest, False) == [forest.parts] * 128
