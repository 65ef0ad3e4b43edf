"""Trees on clusters of two tiers: the optimum with any fault, low trees, and no search over all ranks."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

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
from collc.passes.synthesis.forest import tier_trees as module
from collc.passes.synthesis.forest.allreduce_optimum import allreduce_optimum
from collc.passes.synthesis.forest.capacities import link_capacities
from collc.passes.synthesis.forest.halves import Half, joined_halves
from collc.passes.synthesis.forest.optimum import optimum
from collc.passes.synthesis.forest.routes import Routed
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.passes.synthesis.forest.tier_senders import farthest_first
from collc.passes.synthesis.forest.tier_shares import filled
from collc.passes.synthesis.forest.tier_trees import fits, tier_trees
from collc.passes.synthesis.forest.tiers import Tiers, divided, tiers

KINDS = ("allreduce", "allgather", "reduce-scatter")
FAULTS = (
    "none", "NIC slow", "NIC dead", "GPU dead", "NVLink slow", "NVLink dead", "NVSwitch slow", "NVSwitch dead",
    "box slow", "box dead", "uplink slow", "uplink dead", "leaf slow", "spine slow",
)  # fmt: skip
Name = tuple[str, int, int, int]
Wires = dict[tuple[Name, Name], Fraction]


def grown(net: Topology, kind: str) -> Forest:
    return ForestScheduler().run(Problem(net, Collective(kind, net.num_ranks)))


def best_time(net: Topology, kind: str) -> Fraction:
    """Return the least time per byte, of exact programs that build no trees."""
    if kind == "allreduce":
        found = allreduce_optimum(net)
        assert found is not None
        return 1 / found.value
    network = net if kind == "allgather" else net.transpose()
    return optimum(network, [1] * net.num_ranks).one_over_x / net.num_ranks


def wires(pods: int, boxes: int, gpus: int, spines: int, ratio: int, port: int, rails: bool = False) -> Wires:
    """Return the links of a healthy cluster, each once, with NICs of bandwidth 4; each on a leaf of its own by rail."""
    found: Wires = {}
    for p in range(pods):
        for b in range(boxes):
            for g in range(gpus):
                found[("gpu", p, b, g), ("nv", p, b, 0)] = Fraction(port)
                found[("gpu", p, b, g), ("leaf", p, g * rails, 0)] = Fraction(4)
        for rail, s in product(range(gpus if rails else 1), range(spines)):
            found[("leaf", p, rail, 0), ("spine", s, 0, 0)] = Fraction(
                4 * boxes * (1 if rails else gpus), ratio * spines
            )
    return found


def touched(fault: str, links: Wires, p: int, b: int, g: int, rails: bool = False) -> list[tuple[Name, Name]]:
    """Return the links that a fault of a GPU, of its box or of its leaf slows or removes."""
    gpu, nv, leaf, spine = ("gpu", p, b, g), ("nv", p, b, 0), ("leaf", p, g * rails, 0), ("spine", 0, 0, 0)
    part = fault.split()[0]
    mates = {name for ends in links for name in ends if name[:3] == ("gpu", p, b)}
    return [
        (low, high) for low, high in links
        if {"NIC": (low, high) == (gpu, leaf), "NVLink": (low, high) == (gpu, nv), "GPU": low == gpu,
            "NVSwitch": high == nv, "uplink": (low, high) == (leaf, spine), "leaf": leaf in (low, high),
            "spine": high == spine}.get(part, False)
        or (fault == "box slow" and low in mates and high[0] == "leaf") or (fault == "box dead" and low in mates)
    ]  # fmt: skip


def drawn(seed: int, rails: bool = False) -> Topology:
    """Return a small cluster of two tiers with a fault."""
    chance = random.Random(seed)
    fault = FAULTS[seed % len(FAULTS)]
    pods, boxes, gpus = chance.choice((2, 3)), chance.choice((2, 3)), chance.choice((2, 3, 4))
    spines = chance.choice((1, 2) if fault != "uplink dead" else (2, 3))
    gpus = max(gpus, 3) if fault in ("GPU dead", "NVLink dead") else gpus
    links = wires(pods, boxes, gpus, spines, chance.choice((1, 2, 4)), chance.choice((8, 36, 36)), rails)
    where = [chance.randrange(count) for count in (pods, boxes, gpus)]
    slow = chance.choice((Fraction(1, 2), Fraction(1, 4)))
    for ends in touched(fault, links, where[0], where[1], where[2], rails):
        if fault.endswith("dead"):
            del links[ends]
        else:
            links[ends] *= slow
    return network(links)


def network(links: Wires) -> Topology:
    names = sorted({name for ends in links for name in ends})
    nodes = [name for name in names if name[0] == "gpu"] + [name for name in names if name[0] != "gpu"]
    number = {name: i for i, name in enumerate(nodes)}
    ranks = sum(name[0] == "gpu" for name in nodes)
    rows = [(number[a], number[b], LinkClass(width)) for ends, width in links.items() for a, b in (ends, ends[::-1])]
    return Topology.from_links("tiers", ranks, rows, len(nodes) - ranks)


@pytest.mark.parametrize("seed", every(24, range(168)))
@pytest.mark.parametrize("rails", [False, True])
def test_drawn_clusters_reach_the_optimum(seed: int, rails: bool) -> None:
    net = drawn(seed, rails)
    for kind in KINDS:
        forest = grown(net, kind)
        assert verify(forest).ok
        assert cost(forest).time_per_byte == best_time(net, kind)


@pytest.mark.parametrize("seed", every(28, range(168), 5))
def test_low_trees_are_as_fast_as_packed_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net = drawn(seed)
    low = {kind: cost(grown(net, kind)).time_per_byte for kind in KINDS}
    monkeypatch.setattr(module, "tier_trees", lambda *_: None)
    monkeypatch.setattr("collc.passes.synthesis.forest.allreduce_trees.tier_trees", lambda *_: None)
    assert low == {kind: cost(grown(net, kind)).time_per_byte for kind in KINDS}


# ---- machines

CLUSTER = "clustered(dgx_h100(1), 16, 50 GB/s, 4, 2)"
MATES = ", ".join(f"gpu[1, 0, {gpu}]" for gpu in range(8))
LEAF = ", ".join(f"gpu[{box}, 0, {gpu}] <-> leaf[0]" for box in range(4) for gpu in range(8))

#: a network of 128 GPUs, and the most height of trees
MACHINES = {
    "healthy": (CLUSTER, 3),
    "NIC slow": (f"degraded({CLUSTER}, {{gpu[1, 0, 1] <-> leaf[0]}}, 1/2)", 6),
    "NIC dead": (f"without({CLUSTER}, {{gpu[1, 0, 1] <-> leaf[0]}})", 6),
    "GPU dead": (f"without({CLUSTER}, {{gpu[1, 0, 1]}})", 6),
    "NVLink slow": (f"degraded({CLUSTER}, {{gpu[1, 0, 1] <-> nv[1, 0]}}, 1/2)", 6),
    "NVLink dead": (f"without({CLUSTER}, {{gpu[1, 0, 1] <-> nv[1, 0]}})", 6),
    "NVSwitch dead": (f"without({CLUSTER}, {{nv[1, 0]}})", 7),
    "NVSwitch slow": (
        f"degraded({CLUSTER}, {{{', '.join(f'gpu[1, 0, {gpu}] <-> nv[1, 0]' for gpu in range(8))}}}, 1/4)", 6
    ),
    "box slow": (f"degraded({CLUSTER}, {{{', '.join(f'gpu[1, 0, {gpu}] <-> leaf[0]' for gpu in range(8))}}}, 1/2)", 7),
    "box dead": (f"without({CLUSTER}, {{{MATES}}})", 6),
    "uplink slow": (f"degraded({CLUSTER}, {{leaf[0] <-> spine}}, 1/2)", 4),
    "leaf slow": (f"degraded({CLUSTER}, {{leaf[0] <-> spine, {LEAF}}}, 1/2)", 5),
    "spine slow": (f"degraded({CLUSTER}, {{{', '.join(f'leaf[{leaf}] <-> spine' for leaf in range(4))}}}, 1/2)", 4),
    "two pods": (f"degraded({CLUSTER.replace('4, 2)', '8, 2)')}, {{gpu[1, 0, 1] <-> leaf[0]}}, 1/2)", 6),
    "spines, uplink dead": ("without(leaf_spine(16, 8, 4, 2), {leaf[3] <-> spine[1]})", 2),
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), every(4, list(product(MACHINES, KINDS[:2]))))
def test_a_machine_with_a_fault(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No trees are packed by flows, and they are low: that takes less than a second, where it took up to a minute."""
    monkeypatch.setattr("collc.passes.synthesis.forest.packing.pack", None)
    monkeypatch.setattr("collc.passes.synthesis.forest.allreduce_trees.pack", None)
    expression, height = MACHINES[name]
    net = topology(expression)
    forest = grown(net, kind)
    assert verify(forest).ok
    found = cost(forest)
    assert found.time_per_byte == best_time(net, kind)
    assert found.forest is not None
    assert found.forest.max_height <= height


# ---- parts


def plain() -> tuple[Topology, Tiers, list[int], list[int]]:
    """Return three pods of two boxes of three, their tiers, and what links hold of how many trees at the optimum."""
    net = network(wires(3, 2, 3, 2, 2, 36))
    found = tiers(net)
    assert found is not None
    best = optimum(net, [1] * net.num_ranks)
    return net, found, link_capacities(net, best.per_unit), [best.k] * net.num_ranks


def test_pods_and_boxes() -> None:
    net, found, _, _ = plain()
    assert [pod.ranks for pod in found.pods] == [tuple(range(i, i + 6)) for i in (0, 6, 12)]
    assert [len(pod.inside.boxes) for pod in found.pods] == [2, 2, 2]
    assert {len(links) for links in (*found.rise.values(), *found.fall.values())} == {2}
    for v in range(net.num_ranks):
        assert (net.src[found.up[v]], net.dst[found.up[v]]) == (v, found.leaf[v])
        assert (net.src[found.down[v]], net.dst[found.down[v]]) == (found.leaf[v], v)


@pytest.mark.parametrize(
    "network", ["dgx_h100(2)", "dgx_a100(1)", "torus(2, 3)", "fat_tree(4)", "leaf_spine(1, 4, 2)", "mi250(2)"]
)
def test_other_networks_are_no_pods(network: str) -> None:
    assert tiers(topology(network)) is None


@pytest.mark.parametrize("pods", [1, 2])
def test_rails_below_spines(pods: int) -> None:
    """Trees change rails over the spines, within a pod too."""
    net = network(wires(pods, 3, 4, 2, 1, 36, rails=True))
    found = tiers(net)
    assert found is not None
    assert [len(pod.inside.boxes) for pod in found.pods] == [3] * pods
    assert len(set(found.leaf)) == 4 * pods
    links = [
        link for link in range(net.num_links) if 0 in (net.src[link], net.dst[link]) and link in found.up + found.down
    ]
    broken = attrs.evolve(net, **{
        name: np.delete(getattr(net, name), links) for name in ("src", "dst", "link_class")
    })  # fmt: skip
    forest = grown(broken, "allgather")
    assert verify(forest).ok
    assert cost(forest).time_per_byte == best_time(broken, "allgather")
    assert max(len(forest.routes.links_of(route)) for route in range(len(forest.routes))) == 4


def test_a_cut_pod_keeps_its_links() -> None:
    net, found, _, _ = plain()
    cut = divided(net, found, {1}, 2)
    assert [pod.ranks for pod in cut.pods] == [(0, 1, 2, 3, 4, 5), (6, 7, 8), (9, 10, 11), (12, 13, 14, 15, 16, 17)]
    for pod in cut.pods:
        inner = pod.network
        ends = zip(inner.src.tolist(), inner.dst.tolist(), pod.links, strict=True)
        assert all(pod.ranks[a] == net.src[link] for a, _, link in ends if a < inner.num_ranks)
        assert [pod.links[link] for link in pod.inside.up] == [found.up[v] for v in pod.ranks]


def as_forest(net: Topology, trees: Routed, parts: int) -> Forest:
    problem = Problem(net, Collective("allgather", net.num_ranks))
    return joined_halves(problem, [Half(parts, trees)], False)


def test_trees_fit_their_links() -> None:
    net, found, room, trees = plain()
    low = tier_trees(net, found, room, trees)
    assert low is not None
    assert fits(low, room, None)
    assert verify(as_forest(net, low, trees[0])).ok


def test_planted_faults_are_found() -> None:
    net, found, room, trees = plain()
    low = tier_trees(net, found, room, trees)
    assert low is not None
    crossed = int(low.routes.links[low.routes.start[low.route[0]]])
    assert not fits(low, [0 if link == crossed else held for link, held in enumerate(room)], None)
    parent = low.parent.copy()
    parent[-1] = low.child[-1]
    assert not verify(as_forest(net, attrs.evolve(low, parent=parent), trees[0])).ok


def test_links_that_hold_too_few_trees_have_none() -> None:
    net, found, room, trees = plain()
    for link in (found.down[4], next(iter(found.fall[found.leaf[4]].values()))):
        assert tier_trees(net, found, [held // 2 if one == link else held for one, held in enumerate(room)], trees) is (
            None
        )


@pytest.mark.parametrize(("given", "high", "needed"), [([3, 3, 3], [3, 9, 9], 12), ([5, 5], [5, 5], 4), ([], [], 0)])
def test_amounts_are_filled(given: list[int], high: list[int], needed: int) -> None:
    found = filled(given, high, needed)
    assert sum(found) == needed
    assert all(0 <= amount <= most for amount, most in zip(found, high, strict=True))
    with pytest.raises(ValueError, match="hold no"):
        filled(given, high, sum(high) + 1)


def test_what_is_sent_on_comes_first() -> None:
    sent = [(1, (0, 4, 0)), (2, (0, 4, 0)), (3, (0, 4, 5))]  # pod 2 sends on to pod 3
    assert farthest_first(sent, [0, 0, 1, 1, 2, 2, 3, 3]) == [sent[1], sent[0], sent[2]]


def test_pods_with_weak_parts_are_reached_from_others() -> None:
    """Some trees reach a box with a slow switch, or a pod with slow NICs, at several ranks."""
    for name, kind in (("NVSwitch slow", "allgather"), ("leaf slow", "allreduce")):
        net = topology(MACHINES[name][0])
        forest = grown(net, kind)
        inside = set(range(8, 16)) if name == "NVSwitch slow" else set(range(32))
        outward = ~forest.inward[forest.tree]
        into = np.array([a not in inside and b in inside for a, b in zip(forest.parent, forest.child, strict=True)])
        entries = np.bincount(forest.tree[outward & into])
        assert entries.max() > 1
