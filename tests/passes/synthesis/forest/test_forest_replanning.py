"""Trees after faults: as fast as fresh ones, verified, and those that stay are those of before."""

from __future__ import annotations

import random
from fractions import Fraction

import attrs
import numpy as np
import pytest
from sampling import every

from collc.frontends.coll import topology
from collc.frontends.coll.faults import Broken, Fault, broken
from collc.ir.collective import ROOTED, Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify
from collc.passes.base import Kept, Replanned
from collc.passes.synthesis.forest.replanning import replanned
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.tools.single_faults import single_faults

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
FOREST = ForestScheduler(unbalanced=True)

FAULTS = [
    (net, faults)
    for net, each in {
        "dgx_h100(2)": (
            ["without gpu[0, 1] <-> ib"], ["without gpu[1, 5]"], ["slow gpu[0, 3] <-> ib: 12.5 GB/s"],
            ["slow gpu[1, 2]: 1/2"],
            ["without gpu[0, 2] -> ib", "slow gpu[1, 1] <-> ib: 12.5 GB/s", "without gpu[1, 5]"],
        ),
        "torus(4, 4)": (["without 0 <-> 1"], ["without 5"], ["slow 0 -> 1: 1/2"], ["slow 7: 1/3"]),
        "hypercube(3)": (["without 0 <-> 1"], ["without 3"], ["slow 2 <-> 6: 1/2"], ["without 4 -> 5"]),
    }.items()
    for faults in each
]  # fmt: skip


def problem(net: Topology, kind: str) -> Problem:
    return Problem(net, Collective(kind, net.num_ranks, 0 if kind in ROOTED else None))


def after(whole: Forest, net: Broken, scheduler: ForestScheduler = FOREST) -> Replanned:
    before = Kept(whole, net.rank, net.link, net.touched)
    return replanned(scheduler, problem(net.topology, whole.collective.kind), before)


Tree = tuple[bool, int, tuple[tuple[int, int, tuple[int, ...]], ...]]


def trees(forest: Forest, rank: np.ndarray | None = None, link: np.ndarray | None = None) -> set[Tree]:
    """Return every tree by its direction, root and rows (with links), in new numbers; without leaves that are gone."""
    found: list[list[tuple[int, int, tuple[int, ...]]]] = [[] for _ in range(forest.num_trees)]
    for tree, parent, child, route in zip(forest.tree, forest.parent, forest.child, forest.route, strict=True):
        links = forest.routes.links_of(int(route))
        if rank is not None and link is not None:
            if rank[child] < 0:
                continue
            parent, child, links = rank[parent], rank[child], [int(link[one]) for one in links]
        found[tree].append((int(parent), int(child), tuple(links)))
    roots = forest.root if rank is None else rank[forest.root]
    pairs = zip(forest.inward.tolist(), roots.tolist(), found, strict=True)
    return {(bool(inward), root, tuple(sorted(rows))) for inward, root, rows in pairs}


def check(whole: Forest, net: Broken) -> None:
    """Check trees after faults: verified, as fast as fresh ones, and the kept ones are those of before."""
    found = after(whole, net)
    assert verify(found.forest).ok
    fresh = FOREST.grow(problem(net.topology, whole.collective.kind))
    assert cost(found.forest).time_per_byte == cost(fresh).time_per_byte
    assert found.kept + found.new == found.forest.num_trees
    same = trees(whole, net.rank, net.link) & trees(found.forest)
    assert len(same) >= found.kept - (found.forest.num_trees - len(trees(found.forest)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("net", "faults"), FAULTS, ids=str)
def test_faults_of_all_kinds(net: str, faults: list[str], kind: str) -> None:
    whole = topology(net)
    check(FOREST.grow(problem(whole, kind)), broken(whole, [Fault.read(fault) for fault in faults]))


def test_trees_that_no_fault_touches_stay() -> None:
    whole = topology("dgx_h100(16)")
    forest = FOREST.grow(problem(whole, "allgather"))
    found = after(forest, broken(whole, [Fault("without", "gpu[3, 1] <-> ib")]))
    assert (found.kept, forest.num_trees) == (112, 128) and found.new < 64
    assert cost(found.forest).time_per_byte == Fraction(3, 1120 * 10**9)


@pytest.mark.parametrize(("fault", "value"), [
    ("slow gpu[3, 1] <-> ib: 25 GB/s", 6375), ("slow gpu[3, 1] <-> ib: 5 GB/s", 6355),
    ("without gpu[3, 1] <-> ib", 6350),
])  # fmt: skip
def test_an_allreduce_is_at_the_optimum_of_trees(fault: str, value: int) -> None:
    whole = topology("dgx_h100(16)")
    forest = FOREST.grow(problem(whole, "allreduce"))
    found = after(forest, broken(whole, [Fault.read(fault)]))
    assert cost(found.forest).time_per_byte == Fraction(30, value * 10**9)
    assert found.kept > forest.num_trees // 2 and verify(found.forest).ok


@pytest.mark.parametrize("k", [1, 2, "fewest"])
def test_other_numbers_of_trees(k: int | str) -> None:
    whole = topology("torus(4, 4)")
    scheduler = attrs.evolve(FOREST, k=k)
    net = broken(whole, [Fault("without", "0 <-> 1")])
    found = after(scheduler.grow(problem(whole, "allgather")), net, scheduler)
    fresh = scheduler.grow(problem(net.topology, "allgather"))
    assert verify(found.forest).ok and cost(found.forest).time_per_byte == cost(fresh).time_per_byte


def random_network(luck: random.Random) -> Topology:
    """Return a small network, connected both ways, with or without a switch, of a few bandwidths."""
    ranks, switches = luck.randint(3, 6), luck.randint(0, 1)
    nodes = ranks + switches
    ends = {tuple(sorted((node, luck.randrange(node)))) for node in range(1, nodes)}
    ends |= {(rank, ranks) for rank in (0, 1) if switches}  # a switch joins nodes
    ends |= {tuple(sorted(luck.sample(range(nodes), 2))) for _ in range(luck.randint(2, 8))}
    links = list[tuple[int, int, LinkClass]]()
    for a, b in sorted(ends):
        kind = LinkClass(Fraction(luck.choice((1, 1, 2, 3))), Fraction(0))
        links += [(a, b, kind), (b, a, kind)]
    return Topology.from_links("drawn", ranks, links, switches, node_names=[f"n{v}" for v in range(nodes)])


@pytest.mark.parametrize("seed", every(8, range(400)))
def test_single_faults_of_random_networks(seed: int) -> None:
    luck = random.Random(seed)
    whole = random_network(luck)
    kind = KINDS[seed % len(KINDS)]
    if kind in ROOTED:
        faults = [one.fault for one in single_faults(whole, Fraction(1, 2)) if one.nodes != (0,)]
    else:
        faults = [one.fault for one in single_faults(whole, Fraction(1, 2))]
    forest = FOREST.grow(problem(whole, kind))
    for fault in luck.sample(faults, min(4, len(faults))):
        try:
            net = broken(whole, [fault])
        except CollcError as cut_off:
            assert cut_off.diagnostics[0].code == "C0301"
            continue
        if net.topology.num_ranks > 1:
            check(forest, net)


def test_a_tree_over_a_dead_link_is_caught() -> None:
    whole = topology("torus(4, 4)")
    forest = FOREST.grow(problem(whole, "allgather"))
    net = broken(whole, [Fault("without", "0 <-> 1")])
    blind = attrs.evolve(net, touched=np.zeros(whole.num_links, dtype=bool))
    try:
        report = verify(after(forest, blind).forest)
    except (IndexError, ValueError, OverflowError):
        return  # a link that does not exist cannot even be counted
    assert not report.ok


def test_a_tree_that_was_moved_to_another_link_is_caught() -> None:
    whole = topology("torus(4, 4)")
    forest = FOREST.grow(problem(whole, "allgather"))
    net = broken(whole, [Fault("without", "0 <-> 1")])
    link = net.link.copy()
    link[link < 0] = 0
    blind = attrs.evolve(net, link=link, touched=np.zeros(whole.num_links, dtype=bool))
    report = verify(after(forest, blind).forest)
    assert [check.name for check in report.failed] == ["structure"]
