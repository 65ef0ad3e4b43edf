"""A given number of trees of an allreduce: no forest of as many trees has more bandwidth, by enumeration."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from math import ceil

import numpy as np
import pytest
from sampling import every

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.effort import limited
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify
from collc.passes.synthesis.forest import fixed_division as module
from collc.passes.synthesis.forest.allreduce_division import division_holds
from collc.passes.synthesis.forest.allreduce_optimum import allreduce_optimum
from collc.passes.synthesis.forest.allreduce_trees import packed
from collc.passes.synthesis.forest.fixed_division import fixed_division
from collc.passes.synthesis.forest.halves import forest_of
from collc.passes.synthesis.forest.scheduler import ForestScheduler


def network(seed: int) -> Topology:
    """A network of 3 or 4 ranks, every third with a switch; every fourth has one-way links."""
    chance = random.Random(seed)
    ranks, switches = 3 + seed % 2, int(seed % 3 == 0)
    ends = [(chance.randrange(v), v) for v in range(1, ranks)]
    ends += [(rank, ranks) for rank in chance.sample(range(ranks), 2 + seed % 2)] if switches else []
    ends += [tuple(chance.sample(range(ranks), 2))]
    kinds = [LinkClass(Fraction(chance.choice((1, 2, 3)))) for _ in ends]
    links = [(a, b, kind) for (a, b), kind in zip(ends, kinds, strict=True)]
    links += [(b, a, kind) for a, b, kind in links]
    if seed % 4 == 0:
        turn = chance.sample(range(ranks), ranks)
        links += [(a, b, LinkClass(Fraction(1))) for a, b in zip(turn, turn[1:] + turn[:1], strict=True)]
    return Topology.from_links("drawn", ranks, links, switches)


def routes(net: Topology) -> dict[tuple[int, int], list[list[int]]]:
    """Return the loads of links by one tree's edge, for every pair of ranks and each of its routes."""
    into: dict[int, list[tuple[int, int]]] = {}
    for link, (a, b) in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True)):
        into.setdefault(b, []).append((a, link))
    found: dict[tuple[int, int], list[list[int]]] = {}
    for head in range(net.num_ranks):
        for tail, link in into.get(head, []):
            ways = [(tail, [link])] if tail < net.num_ranks else [(a, [one, link]) for a, one in into[tail]]
            for start, links in ways:
                if start != head:
                    row = np.bincount(links, minlength=net.num_links).tolist()
                    found.setdefault((start, head), []).append(row)
    return found


def trees(net: Topology, root: int) -> set[tuple[int, ...]]:
    """Return the loads of links by every tree out of a root."""
    ranks, edges = net.num_ranks, routes(net)
    others, found = [v for v in range(ranks) if v != root], set[tuple[int, ...]]()
    for parents in product(*([u for u in range(ranks) if (u, v) in edges] for v in others)):
        above = dict(zip(others, parents, strict=True))
        if all(reaches(above, v, root) for v in others):
            for rows in product(*(edges[u, v] for v, u in above.items())):
                found.add(tuple(map(sum, zip(*rows, strict=True))))
    return found


def reaches(above: dict[int, int], v: int, root: int) -> bool:
    for _ in above:
        v = above.get(v, v)
    return v == root


def pairs(net: Topology, root: int) -> set[tuple[int, ...]]:
    """Return the loads by a tree to a root and one from it."""
    inward, outward = trees(net.transpose(), root), trees(net, root)
    return {tuple(map(sum, zip(a, b, strict=True))) for a, b in product(inward, outward)}


def is_beaten(net: Topology, number: int, per_unit: Fraction, alike: bool) -> bool:
    """Return whether some forest needs fewer trees per unit of bandwidth, by trying all."""
    width = [net.bandwidth(link) for link in range(net.num_links)]
    room = np.array([ceil(per_unit * one) - 1 for one in width])
    each = [np.array(sorted(pairs(net, root))) for root in range(net.num_ranks)]
    sums = np.zeros((1, net.num_links), dtype=np.int64)
    for turn in range(number):
        more = each[turn % net.num_ranks] if alike else np.concatenate(each)
        more = np.unique(more[(more <= room).all(axis=1)], axis=0)
        found = (sums[:, None, :] + more[None, :, :]).reshape(-1, net.num_links)
        sums = np.unique(found[(found <= room).all(axis=1)], axis=0)
    return len(sums) > 0


CASES = [(seed, number) for seed in range(60) for number in (1, 2, 3) if number < 3 or seed % 2 == 0]


@pytest.mark.parametrize(("seed", "number"), every(9, CASES))
def test_no_forest_of_as_many_trees_is_faster(seed: int, number: int) -> None:
    net = network(seed)
    optimum = allreduce_optimum(net)
    assert optimum is not None
    found = fixed_division(net, number, optimum.value)
    assert found is not None and found.trees == number and division_holds(net, found)
    assert not is_beaten(net, number, found.per_unit, alike=False)
    forest = forest_of(Problem(net, Collective("allreduce", net.num_ranks)), packed(net, found))
    assert verify(forest).ok
    assert cost(forest).time_per_byte == 1 / found.value


@pytest.mark.parametrize("seed", every(6, range(0, 60, 2)))
def test_no_forest_of_equal_roots_is_faster(seed: int) -> None:
    net = network(seed)
    optimum = allreduce_optimum(net)
    assert optimum is not None
    found = fixed_division(net, net.num_ranks, optimum.value, alike=True)
    assert found is not None and set(found.roots) == {1}
    assert not is_beaten(net, net.num_ranks, found.per_unit, alike=True)


def test_enumeration_finds_a_worse_division(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: one step more than the least has a division too."""
    net = network(1)
    optimum = allreduce_optimum(net)
    assert optimum is not None
    steps = module._Steps
    monkeypatch.setattr(module, "_Steps", lambda widths, first: steps(widths, steps(widths, first * 2).at(1)))
    found = fixed_division(net, 2, optimum.value)
    assert found is not None and is_beaten(net, 2, found.per_unit, alike=False)


@pytest.mark.parametrize(("net", "k", "part"), [
    ("generalized_kautz(4, 12)", 2, Fraction(1)), ("mesh(3, 4)", 3, Fraction(33, 34)),
    ("subset(mi250(2), {0..8, 16..24})", 8, Fraction(1)), ("mesh(8, 8)", 5, Fraction(15, 16)),
])  # fmt: skip
def test_few_trees_in_all(net: str, k: int, part: Fraction) -> None:
    """Where ranks root different amounts, k counts all trees; few of them reach most of the optimum."""
    one = Problem(topology(net), Collective("allreduce", topology(net).num_ranks))
    optimum = allreduce_optimum(one.topology)
    assert optimum is not None and not optimum.has_equal_roots
    forest = ForestScheduler(k=k, pieces=1).run(one)
    assert verify(forest).ok
    assert forest.whole and forest.parts == k
    assert cost(forest).time_per_byte == 1 / (part * optimum.value)
    equal = ForestScheduler(k=1, pieces=1, division="equal").run(one)
    assert verify(equal).ok
    assert not equal.whole and cost(equal).time_per_byte > 1 / optimum.value


def test_work_is_counted() -> None:
    net = topology("mesh(3, 4)")
    with limited(1 << 40) as effort:
        fixed_division(net, 3, Fraction(17, 11))
    assert effort.spent > 0


def test_large_networks_keep_equal_roots() -> None:
    assert fixed_division(topology("mesh(24, 24)"), 3, Fraction(2)) is None


def test_too_much_work_keeps_equal_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_WORK", 1000)
    net = topology("mesh(3, 4)")
    assert fixed_division(net, 3, Fraction(17, 11)) is None
    forest = ForestScheduler(k=3, pieces=1).run(Problem(net, Collective("allreduce", 12)))
    assert not forest.whole and forest.parts == 3
