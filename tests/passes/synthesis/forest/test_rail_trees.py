"""Trees on clusters on rails: they reach the optimum of every single fault, as packing by flows does, and are low."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

import pytest
from sampling import every

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify
from collc.passes.synthesis.forest import halves, rail_trees
from collc.passes.synthesis.forest.allreduce_optimum import allreduce_optimum
from collc.passes.synthesis.forest.allreduce_trees import AllreduceTrees
from collc.passes.synthesis.forest.capacities import link_capacities
from collc.passes.synthesis.forest.halves import Half, backwards, forest_of, joined_halves
from collc.passes.synthesis.forest.optimum import optimum
from collc.passes.synthesis.forest.rails import rails
from collc.passes.synthesis.forest.scheduler import ForestScheduler

FAULTS = ("none", "nic", "gpu", "port", "switch", "box", "rail", "path")


def drawn(seed: int) -> Topology | None:
    """A cluster of 2 to 6 boxes of 2 to 4 GPUs on rails with one fault; None if the rest is not connected."""
    chance = random.Random(seed)
    boxes, size = chance.randrange(2, 7), chance.randrange(2, 5)
    rails_of = chance.choice([size, size, 1, 2])
    inside, outside = chance.choice([(9, 1), (6, 1), (4, 2), (3, 2)])
    fault, part = chance.choice(FAULTS), chance.choice([Fraction(0), Fraction(1, 2), Fraction(1, 5)])
    box, gpu, with_nics = chance.randrange(boxes), chance.randrange(size), chance.random() < 0.7
    links = list[tuple[tuple[object, ...], tuple[object, ...], Fraction]]()
    for b in range(boxes):
        for g in range(size):
            rail = g % rails_of
            here, whole_box = (b, g) == (box, gpu), b == box
            hit = {"nic": here, "port": here, "path": here, "box": whole_box, "switch": whole_box}
            hit["rail"] = rail == gpu % rails_of
            slow = {name: part if name == fault and there else Fraction(1) for name, there in hit.items()}
            if fault == "gpu" and here:
                continue
            links.append((("gpu", b, g), ("nv", b), inside * slow["port"] * slow["switch"]))
            out = outside * slow["nic"] * slow["box"] * slow["rail"]
            if with_nics:
                links.append((("gpu", b, g), ("nic", b, g), outside * slow["path"]))
                links.append((("nic", b, g), ("rail", rail), out))
            else:
                links.append((("gpu", b, g), ("rail", rail), out))
    return network(links)


def network(links: list[tuple[tuple[object, ...], tuple[object, ...], Fraction]]) -> Topology | None:
    """Return two-way links as a network, without those of no bandwidth; None if it is not connected."""
    names = list(dict.fromkeys(end for tail, head, _ in links for end in (tail, head)))
    names.sort(key=lambda name: name[0] != "gpu")
    number = {name: i for i, name in enumerate(names)}
    ranks = sum(name[0] == "gpu" for name in names)
    both = [
        (number[a], number[b], LinkClass(width))
        for tail, head, width in links if width
        for a, b in ((tail, head), (head, tail))
    ]  # fmt: skip
    found = Topology.from_links("drawn", ranks, both, len(names) - ranks)
    return found if ranks > 1 and found.is_connected else None


def verified(forest: Forest) -> Forest:
    report = verify(forest)
    assert report.ok, report
    return forest


def problem(net: Topology, kind: str) -> Problem:
    return Problem(net, Collective(kind, net.num_ranks))


def by_rails(net: Topology) -> Iterator[tuple[Forest, Fraction, Fraction]]:
    """Yield forests of trees on rails, with their bandwidth and that of the optimum, in time of M per byte."""
    best = allreduce_optimum(net)
    assert best is not None
    found = rail_trees.rail_allreduce(net, best.value)
    if found is not None:
        trees = AllreduceTrees(found.parts, found.whole, found.trees, None, best.value)
        forest = forest_of(problem(net, "allreduce"), trees)
        yield verified(forest), cost(forest).time_per_byte, 1 / best.value
    supply = [1] * net.num_ranks
    one = optimum(net, supply)
    half = rail_trees.rail_trees(net, link_capacities(net, one.per_unit), [one.k] * net.num_ranks)
    if half is not None:
        out = Half(one.k * half.parts, half.trees)
        for kind, there in (("allgather", out), ("reduce-scatter", backwards(out, net.reverse_links))):
            forest = joined_halves(problem(net, kind), [there], False)
            yield verified(forest), cost(forest).time_per_byte, one.one_over_x / net.num_ranks


def shares_rails(net: Topology) -> bool:
    """Whether ranks of a box share a rail, and links inside of a box are hardly wider than those out of it."""
    found = rails(net)
    assert found is not None
    shared = any(len({found.rail[v] for v in box.ranks}) < len(box.ranks) for box in found.cluster.boxes)
    return shared and max(kind.bandwidth for kind in net.classes) < 6


@pytest.mark.parametrize("seed", every(32, range(480)))
def test_every_drawn_fault_is_met_at_the_optimum(seed: int) -> None:
    net = drawn(seed)
    if net is None:
        return
    found = {forest.collective.kind: (forest, reached, best) for forest, reached, best in by_rails(net)}
    assert set(found) == {"allreduce", "allgather", "reduce-scatter"} or shares_rails(net)
    for forest, reached, best in found.values():
        assert reached == best
        assert max(forest.heights) <= 4


@pytest.mark.parametrize("seed", every(60, range(480), 5))
def test_packing_by_flows_reaches_as_much(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net = drawn(seed)
    if net is None:
        return
    found = list(by_rails(net))
    monkeypatch.setattr("collc.passes.synthesis.forest.allreduce_trees.rail_allreduce", lambda *_: None)
    for forest, reached, _ in found:
        packed = ForestScheduler(pieces=1).run(problem(net, forest.collective.kind))
        assert cost(packed).time_per_byte == reached


# ---- boxes of eight

BIG = "dgx_h100(16, 8)"
NIC, PORT, SWITCH = "nic[3, 1] <-> ib[1]", "gpu[3, 1] <-> nv[3]", ", ".join(f"gpu[3, {g}] <-> nv[3]" for g in range(8))
CASES = {
    f"degraded({BIG}, {{{NIC}}}, 1/2)": (Fraction(6375, 30), 3),
    f"degraded({BIG}, {{{NIC}}}, 1/10)": (Fraction(6355, 30), 3),
    f"without({BIG}, {{nic[3, 1]}})": (Fraction(6350, 30), 3),
    f"without({BIG}, {{gpu[3, 1]}})": (Fraction(6350, 30), 3),
    f"without({BIG}, {{{PORT}}})": (Fraction(50), 2),
    f"degraded({BIG}, {{{PORT}}}, 1/10)": (Fraction(95), 2),
    f"degraded({BIG}, {{{SWITCH}}}, 1/2)": (Fraction(325, 2), 2),
    f"without({BIG}, {{nv[3]}})": (Fraction(50), 2),
}


@pytest.mark.parametrize("name", every(3, list(CASES)))
def test_faults_of_16_boxes(name: str) -> None:
    net, (value, height) = topology(name), CASES[name]
    forest = ForestScheduler(pieces=1).run(problem(net, "allreduce"))
    assert verify(forest).ok
    assert 1 / cost(forest).time_per_byte == value * 10**9
    assert max(forest.heights) <= height


def test_a_dead_switch_leaves_boxes_of_one_rank_that_others_send_for() -> None:
    net = topology(f"without({BIG}, {{nv[3]}})")
    one = optimum(net, [1] * net.num_ranks)
    found = rail_trees.rail_trees(net, link_capacities(net, one.per_unit), [one.k] * net.num_ranks)
    assert found is not None and found.parts == 1
    forest = verified(joined_halves(problem(net, "allgather"), [Half(one.k, found.trees)], False))
    assert cost(forest).time_per_byte == one.one_over_x / net.num_ranks


def test_large_networks_take_their_halves_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "_FEW_RANKS", 8)
    net = topology("without(dgx_h100(3, 8), {nic[1, 2]})")
    forest = verified(ForestScheduler(pieces=1).run(problem(net, "allgather")))
    assert max(forest.heights) <= 3
    assert cost(forest).time_per_byte == optimum(net, [1] * net.num_ranks).one_over_x / net.num_ranks


def test_a_number_of_trees_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "_FEW_RANKS", 8)
    net = topology("degraded(dgx_h100(3, 8), {nic[1, 2] <-> ib[2]}, 1/2)")
    forest = verified(ForestScheduler(k=2, pieces=1).run(problem(net, "allgather")))
    assert forest.parts == 2


# ---- what is no cluster on rails, and what does not fit


@pytest.mark.parametrize("name", ["torus(3, 3)", "leaf_spine(4, 8, 4)", "mi250(2)", "complete(4)"])
def test_other_networks_are_left_alone(name: str) -> None:
    assert rails(topology(name)) is None


def test_nics_are_parts_of_links() -> None:
    net = topology("dgx_h100(2, 8)")
    found = rails(net)
    assert found is not None
    assert [len(box.ranks) for box in found.cluster.boxes] == [8, 8]
    assert found.rail == (*range(8), *range(8))
    names = [net.names[node] for link in found.paths[found.cluster.up[9]] for node in (net.src[link], net.dst[link])]
    assert names == ["gpu[1, 1]", "nic[1, 1]", "nic[1, 1]", "ib[1]"]


def test_too_narrow_links_are_refused() -> None:
    net = topology("dgx_h100(4, 8)")
    one = optimum(net, [1] * net.num_ranks)
    held = link_capacities(net, one.per_unit)
    trees = [one.k] * net.num_ranks
    assert rail_trees.rail_trees(net, held, trees) is not None
    found = rails(net)
    assert found is not None
    held[found.paths[found.cluster.down[5]][0]] -= 1
    held[found.cluster.boxes[0].inside[1, 5][-1]] -= 1
    assert rail_trees.rail_trees(net, held, trees) is None
    best = allreduce_optimum(net)
    assert best is not None and rail_trees.rail_allreduce(net, best.value * Fraction(1001, 1000)) is None


def test_a_planted_overload_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    net = topology("degraded(dgx_h100(3, 8), {nic[1, 2] <-> ib[2]}, 1/2)")
    one = optimum(net, [1] * net.num_ranks)
    honest = rail_trees.quotas

    def greedy(found, room, *rest):  # type: ignore[no-untyped-def]
        return honest(found, [2 * amount for amount in room], *rest)

    monkeypatch.setattr(rail_trees, "quotas", greedy)
    assert rail_trees.rail_trees(net, link_capacities(net, one.per_unit), [one.k] * net.num_ranks) is None
