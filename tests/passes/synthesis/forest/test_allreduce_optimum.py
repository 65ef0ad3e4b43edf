"""The optimum of an allreduce by trees: against partitions, flows and known figures; its proofs, which can fail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

import attrs
import numpy as np
import pytest
from allreduce_lp import by_arcs, by_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import every, examples

from collc.frontends.coll import topology
from collc.ir.diagnostic import CollcError
from collc.ir.topology import LinkClass, Topology
from collc.passes.synthesis.forest import allreduce_optimum as module
from collc.passes.synthesis.forest.allreduce_certificate import Balance, Certificate, TreeCut
from collc.passes.synthesis.forest.allreduce_division import division_holds
from collc.passes.synthesis.forest.allreduce_optimum import AllreduceOptimum, allreduce_optimum
from collc.passes.synthesis.forest.division import Division

GB = 10**9


def optimum(net: Topology, **switches: tuple[int, ...]) -> AllreduceOptimum:
    """Return the optimum, with everything that it promises."""
    found = allreduce_optimum(net, **switches)
    assert found is not None
    assert found.division.value == found.value == found.certificate.bound(net)
    assert division_holds(net, found.division, **switches)
    assert np.gcd.reduce([*found.division.roots, *found.division.inward, *found.division.outward]) == 1
    if found.partition is not None:
        assert found.partition.ratio * found.value == 1
    return found


# ---- against partitions, pairs and flows


def two_way(seed: int) -> Topology:
    """A connected network of 3 to 6 ranks in which every link has a reverse of the same bandwidth."""
    chance = random.Random(seed)
    ranks = 3 + seed % 4
    ends = [(chance.randrange(v), v) for v in range(1, ranks)]
    ends += [(a, b) for a, b in (chance.sample(range(ranks), 2) for _ in range(chance.randrange(2 * ranks)))]
    links = [(a, b, LinkClass(Fraction(chance.choice((1, 2, 3, 5)), chance.choice((1, 2))))) for a, b in ends]
    return Topology.from_links("two-way", ranks, [*links, *((b, a, kind) for a, b, kind in links)])


def partitions(nodes: list[int]) -> Iterator[list[list[int]]]:
    """Yield all partitions of nodes into parts."""
    if not nodes:
        yield []
        return
    for parts in partitions(nodes[1:]):
        yield [[nodes[0]], *parts]
        for at, part in enumerate(parts):
            yield [*parts[:at], [nodes[0], *part], *parts[at + 1 :]]


def strength(net: Topology) -> Fraction:
    """Return the least bandwidth one way between parts, over their number less one."""
    found = []
    for parts in partitions(list(range(net.num_ranks))):
        if len(parts) > 1:
            part = {v: i for i, members in enumerate(parts) for v in members}
            apart = [link for link in range(net.num_links) if part[int(net.src[link])] != part[int(net.dst[link])]]
            found.append(sum(map(net.bandwidth, apart), Fraction(0)) / 2 / (len(parts) - 1))
    return min(found)


@pytest.mark.parametrize("seed", every(10, range(200)))
def test_two_way_networks_without_switches_reach_their_strength(seed: int) -> None:
    net = two_way(seed)
    assert optimum(net).value == strength(net)


def with_switches(seed: int) -> Topology:
    """A strongly connected network of 2 to 5 ranks and 1 to 3 switches, often one-way, with switches out of balance."""
    chance = random.Random(seed)
    ranks, switches, both = 2 + seed % 4, 1 + seed % 3, chance.random() < 0.4
    order, links = list(range(ranks + switches)), list[tuple[int, int, LinkClass]]()
    for _ in range(chance.randrange(2, 4)):  # cycles through all nodes, with a bandwidth each
        chance.shuffle(order)
        kind = LinkClass(Fraction(chance.choice((3, 4, 5, 7)), chance.choice((1, 2))))
        links += [(a, b, kind) for a, b in zip(order, order[1:] + order[:1], strict=True)]
    for _ in range(chance.randrange(4)):
        links.append((chance.choice(order), chance.choice(order), LinkClass(Fraction(chance.choice((1, 2, 9))))))
    return Topology.from_links("net", ranks, [*links, *((b, a, kind) for a, b, kind in links if both)], switches)


@pytest.mark.parametrize("seed", every(10, range(200)))
def test_switches_reach_the_programs_of_flows(seed: int) -> None:
    """Bandwidth between ranks that their flows bring, and flows through switches that pass on what they get."""
    net = with_switches(seed)
    value = float(optimum(net).value)
    assert value == pytest.approx(by_pairs(net), rel=1e-7) == pytest.approx(by_arcs(net), rel=1e-7)


@pytest.mark.parametrize("seed", every(10, range(200), 5))
def test_switches_that_copy_and_add_reach_the_program_of_flows(seed: int) -> None:
    net, chance = with_switches(seed), random.Random(seed)
    switches = range(net.num_ranks, net.num_nodes)
    copy, add = (tuple(w for w in switches if chance.random() < 0.7) for _ in range(2))
    add = add if seed % 2 else copy
    found = optimum(net, multicast=copy, reduces=add)
    assert float(found.value) == pytest.approx(by_arcs(net, copy, add), rel=1e-7)
    assert found.value >= optimum(net).value


@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
@settings(max_examples=examples(30), deadline=None)
def test_other_numbers_for_nodes_change_nothing(seed: int, chance: random.Random) -> None:
    net = with_switches(seed) if seed % 2 else two_way(seed)
    ranks, switches = list(range(net.num_ranks)), list(range(net.num_ranks, net.num_nodes))
    chance.shuffle(ranks)
    chance.shuffle(switches)
    order, links = np.array(ranks + switches), list(range(net.num_links))
    chance.shuffle(links)
    moved = attrs.evolve(net, src=order[net.src][links], dst=order[net.dst][links], link_class=net.link_class[links])
    assert optimum(moved).value == optimum(net).value


# ---- known figures

NIC = "gpu[3, 1] <-> ib"
#: how the network is written, with N boxes; the time per GB at 1 GB/s; whether the proof is the partition into boxes
FAULTS = {
    "healthy": ("dgx_h100(N)", "30/6400"),
    "NIC at 25": ("degraded(dgx_h100(N), {" + NIC + "}, 1/2)", "30/6375"),
    "NIC at 5": ("degraded(dgx_h100(N), {" + NIC + "}, 1/10)", "30/6355"),
    "dead NIC": ("without(dgx_h100(N), {" + NIC + "})", "30/6350"),
    "dead GPU": ("without(dgx_h100(N), {gpu[3, 1]})", "30/6350"),
    "dead link inside": ("without(dgx_h100(N), {gpu[3, 1] <-> nv[3]})", "1/50"),
    "slow link inside": ("degraded(dgx_h100(N), {gpu[3, 1] <-> nv[3]}, 1/3)", "1/200"),
    "slow link inside, hardly": ("degraded(dgx_h100(N), {gpu[3, 1] <-> nv[3]}, 1/2)", "30/6400"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_sixteen_boxes_with_a_fault(fault: str) -> None:
    expression, least = FAULTS[fault]
    found = optimum(topology(expression.replace("N", "16")))
    assert GB / found.value == Fraction(least)
    if fault.startswith(("NIC", "dead NIC", "dead GPU", "healthy")):
        assert found.partition is not None and len(found.partition.parts) == 16


def boxes(nics: list[list[int]]) -> Topology:
    """Boxes of GPUs at 450 on a switch each, with these NICs on one fabric."""
    gpus, links = sum(map(len, nics)), list[tuple[int, int, LinkClass]]()
    fabric, gpu = gpus + len(nics), 0
    for box, widths in enumerate(nics):
        for width in widths:
            for switch, bandwidth in ((gpus + box, 450), (fabric, width)):
                kind = LinkClass(Fraction(bandwidth))
                links += [(gpu, switch, kind), (switch, gpu, kind)]
            gpu += 1
    return Topology.from_links("boxes", gpus, links, len(nics) + 1)


def of_boxes(nics: list[list[int]]) -> Fraction:
    """Return the least time in closed form: the partition into boxes, or the weakest box."""
    widths = [sum(widths) for widths in nics]
    return max(Fraction(2 * (len(nics) - 1), sum(widths)), Fraction(1, min(widths)))


@pytest.mark.parametrize(
    "nics",
    [[[50] * 8] * 15 + [[25] * 8], [[50] * 8] * 3 + [[25] * 4 + [50] * 4], [[50] * 4, [25] * 4, [5, 50, 50, 50]],
     [[50] * 8] * 8 + [[25] * 8] * 8, [[50] * 2] * 2, [[50, 5], [25, 50], [50, 50]]],
)  # fmt: skip
def test_boxes_with_weak_ones_reach_the_closed_form(nics: list[list[int]]) -> None:
    """Among them a whole box at half, and generations of NICs mixed."""
    assert 1 / optimum(boxes(nics)).value == of_boxes(nics)


def test_a_thousand_gpus_with_a_weak_nic() -> None:
    found = optimum(topology("degraded(dgx_h100(128), {gpu[3, 1] <-> ib}, 1/2)"))
    assert GB / found.value == Fraction(254, 51175)
    assert float(1 / found.value) == pytest.approx(4.96336101612e-12, rel=1e-12)
    assert found.division.trees == 2047 and found.columns < 30 and found.rows < 60
    assert found.partition is not None and len(found.partition.parts) == 128


# ---- what the division is like


@pytest.mark.parametrize("expression", ["dgx_h100(4)", "torus(4, 4)", "mi250(2)", "fat_tree(4)", "dgx1_v100()"])
def test_healthy_networks_keep_equal_roots_and_full_links(expression: str) -> None:
    """The division is that of a reduce-scatter and an allgather: no program is solved."""
    net = topology(expression)
    found = optimum(net)
    assert found.columns == 0 and found.partition is not None and found.has_equal_roots
    held = {kind: int(one.bandwidth * found.division.per_unit) for kind, one in enumerate(net.classes)}
    filled = zip(found.division.inward, found.division.outward, net.link_class.tolist(), strict=True)
    assert all(a == b == held[kind] // 2 for a, b, kind in filled)


def test_equal_shards_are_kept_where_they_are_optimal() -> None:
    """Also where no partition that is tried at first proves it."""
    net = topology("subset(dgx_a100(2), {0..3, 8..11})")
    found = optimum(net)
    assert found.has_equal_roots and not optimum(topology("mesh(3, 4)")).has_equal_roots


def test_a_weak_nic_doubles_the_roots_of_its_box() -> None:
    """Links stay divided evenly, and a box that gets less sends more itself."""
    found = optimum(topology("degraded(dgx_h100(16), {gpu[3, 1] <-> ib}, 1/2)")).division
    assert found.roots == (1,) * 24 + (2,) * 8 + (1,) * 96
    assert found.inward == found.outward and found.per_unit == Fraction(16, 25 * GB)


@pytest.mark.parametrize(
    ("fault", "trees"), [("NIC at 25", 136), ("NIC at 5", 1271), ("dead NIC", 127), ("dead GPU", 127)]
)
def test_about_as_many_trees_as_ranks_are_enough(fault: str, trees: int) -> None:
    """Equal ranks would all need as many as a box shares with none left: 8 times as many, and 56 with a GPU less."""
    net = topology(FAULTS[fault][0].replace("N", "16"))
    found = optimum(net).division
    assert found.trees == trees
    box = [sum(found.roots[8 * b : 8 * b + 8]) for b in range(3)]
    assert len(set(box)) == 1 and max(found.roots[:24]) - min(found.roots[:24]) <= 1


def test_parallel_links_hold_whole_trees_each() -> None:
    """Two links of 1 and one of 3, one way; one of 5 back."""
    kinds = [LinkClass(Fraction(b)) for b in (1, 3, 5)]
    links = [(0, 1, kinds[0]), (0, 1, kinds[0]), (0, 1, kinds[1]), (1, 0, kinds[2])]
    net = Topology.from_links("pair", 2, [*links, (0, 2, kinds[2]), (2, 0, kinds[2])], 1)
    found = optimum(net)
    assert found.value == 5
    held = [a + b for a, b in zip(found.division.inward, found.division.outward, strict=True)]
    assert held[:4] == [held[0], held[0], 3 * held[0], 5 * held[0]]


# ---- switches that copy and add


def test_one_box_takes_one_vector_per_port() -> None:
    net = topology("dgx_h100(1)")
    found = optimum(net, multicast=(8,), reduces=(8,))
    assert found.value == 450 * GB and optimum(net).value == 450 * GB * Fraction(4, 7)
    assert found.division.roots == (1,) * 8 and found.division.per_unit == Fraction(4, 225 * GB)
    for only in ({"multicast": (8,)}, {"reduces": (8,)}):
        assert optimum(net, **only).value == 450 * GB * Fraction(4, 7)


def test_boxes_on_a_fabric_take_their_weakest_cut_if_all_switches_copy_and_add() -> None:
    net = boxes([[50, 50], [50, 25], [50, 50], [50, 50]])
    switches = tuple(range(net.num_ranks, net.num_nodes))
    assert optimum(net, multicast=switches, reduces=switches).value == 75


def test_two_boxes_need_their_nics_once() -> None:
    net = topology("dgx_h100(2)")
    assert optimum(net, multicast=(16, 17), reduces=(16, 17)).value == 400 * GB


# ---- proofs can fail


@pytest.fixture(scope="module")
def weak() -> tuple[Topology, AllreduceOptimum]:
    net = boxes([[50, 25], [50, 50], [50, 50]])
    return net, optimum(net)


def by_rows(net: Topology) -> Certificate:
    """Return the certificate of the program itself, by classes of ranks and links."""
    program = module._Program(net, module.classes(net), (), ())
    vertex = program._solved(program.primary())
    assert vertex is not None
    return program._certificate(vertex)


def test_the_rows_of_the_program_prove_what_the_partition_proves(weak: tuple[Topology, AllreduceOptimum]) -> None:
    net, found = weak
    rows = by_rows(net)
    assert found.certificate.maps == () and rows.maps and rows.mirrored
    assert rows.bound(net) == found.certificate.bound(net) == found.value == Fraction(275, 4)
    unfolded = rows.every_cut(10_000)
    assert unfolded is not None and len(unfolded) > len(rows.cuts) and rows.every_cut(1) is None


@pytest.mark.parametrize("kind", ["partition", "rows"])
def test_a_certificate_that_was_changed_proves_nothing(weak: tuple[Topology, AllreduceOptimum], kind: str) -> None:
    """Multipliers, cuts, balances and capacities all count."""
    net, found = weak
    good = found.certificate if kind == "partition" else by_rows(net)
    value, first = good.bound(net), good.cuts[0]
    assert value == found.value
    wrong = [
        attrs.evolve(first, multiplier=first.multiplier / 2), attrs.evolve(first, inward=not first.inward),
        attrs.evolve(first, nodes=first.nodes[1:]), attrs.evolve(first, rooted=not first.rooted),
        attrs.evolve(first, nodes=tuple(range(net.num_nodes))),
    ]  # fmt: skip
    for cut in wrong:
        changed = attrs.evolve(good, cuts=(cut, *good.cuts[1:])).bound(net)
        mirror = good.mirrored and cut.inward != first.inward  # its own image
        assert changed is None or changed > value or mirror
    assert attrs.evolve(good, cuts=good.cuts[1:]).bound(net) != value
    loose = attrs.evolve(good, balances=()).bound(net)
    assert loose is not None and loose > value
    negative = attrs.evolve(first, multiplier=-first.multiplier)
    assert attrs.evolve(good, cuts=(negative, *good.cuts)).bound(net) is None
    wider = [attrs.evolve(kind, bandwidth=kind.bandwidth * 2) for kind in net.classes]
    assert good.bound(attrs.evolve(net, classes=tuple(wider))) == 2 * value
    nic = [kind.bandwidth for kind in net.classes].index(Fraction(50))
    wider = [LinkClass(Fraction(51)) if number == nic else kind for number, kind in enumerate(net.classes)]
    changed = good.bound(attrs.evolve(net, classes=tuple(wider)))
    assert changed is not None and changed > value


@given(st.integers(0, 10**6), st.data())
@settings(max_examples=examples(40), deadline=None)
def test_any_rows_prove_at_least_the_optimum(seed: int, data: st.DataObject) -> None:
    """A sound check never gives less than what trees reach, whatever the certificate is."""
    net = with_switches(seed)
    found = optimum(net)
    numbers = st.fractions(0, 2, max_denominator=4)
    sides = st.sets(st.integers(0, net.num_nodes - 1)).map(sorted).map(tuple)
    rows = st.builds(TreeCut, numbers, sides, st.booleans(), st.booleans())
    switches = st.integers(net.num_ranks, net.num_nodes - 1)
    balances = st.builds(Balance, st.fractions(-2, 2, max_denominator=4), switches, st.booleans())
    kept = [attrs.evolve(cut, multiplier=cut.multiplier * data.draw(numbers)) for cut in by_rows(net).cuts]
    cuts = tuple(kept + data.draw(st.lists(rows, max_size=4)))
    tried = attrs.evolve(by_rows(net), cuts=cuts, balances=tuple(data.draw(st.lists(balances, max_size=3))))
    least = tried.bound(net)
    assert least is None or least >= found.value


def test_maps_that_are_no_automorphisms_prove_nothing(weak: tuple[Topology, AllreduceOptimum]) -> None:
    net, _ = weak
    good = by_rows(net)
    swap = np.arange(net.num_nodes)
    swap[[0, 2]] = 2, 0
    assert attrs.evolve(good, maps=(*good.maps, swap)).bound(net) is None
    one_way = topology("uniring(4)")
    assert Certificate((TreeCut(Fraction(1), (0,), False, True),), mirrored=True).bound(one_way) is None


def test_balances_of_switches_that_copy_or_add_have_a_sign() -> None:
    net = topology("dgx_h100(1)")
    found = optimum(net, multicast=(8,), reduces=(8,)).certificate
    for inward, sign in ((False, 1), (True, -1)):
        row = Balance(Fraction(sign), 8, inward)
        assert attrs.evolve(found, balances=(row,)).bound(net) is None
        right = attrs.evolve(row, multiplier=-row.multiplier)
        assert attrs.evolve(found, balances=(right,), mirrored=False).bound(net) is not None
    assert attrs.evolve(found, balances=(Balance(Fraction(1), 3, True),)).bound(net) is None


def test_divisions_that_do_not_hold_are_seen(weak: tuple[Topology, AllreduceOptimum]) -> None:
    net, found = weak
    good = found.division

    def more(row: tuple[int, ...], at: int, amount: int) -> tuple[int, ...]:
        return (*row[:at], row[at] + amount, *row[at + 1 :])

    heaviest = good.roots.index(max(good.roots))
    moved = more(more(good.roots, heaviest, -1), net.num_ranks - 1, 1)
    inside = next(link for link in range(net.num_links) if net.dst[link] >= net.num_ranks)
    wrong = [
        attrs.evolve(good, roots=more(good.roots, 0, 1)), attrs.evolve(good, roots=moved),
        attrs.evolve(good, roots=more(good.roots, 0, -1 - good.roots[0])),
        attrs.evolve(good, inward=more(good.inward, inside, 1)),
        attrs.evolve(good, outward=more(good.outward, inside, -1)),
        attrs.evolve(good, outward=tuple(n // 2 for n in good.outward)),
        attrs.evolve(good, per_unit=good.per_unit * Fraction(99, 100)),
    ]  # fmt: skip
    assert division_holds(net, good) and not any(division_holds(net, one) for one in wrong)


def test_a_copy_needs_a_switch_that_copies() -> None:
    net = topology("dgx_h100(1)")
    both = optimum(net, multicast=(8,), reduces=(8,)).division
    assert division_holds(net, both, (8,), (8,))
    assert (
        not division_holds(net, both)
        and not division_holds(net, both, (8,))
        and not division_holds(net, both, (), (8,))
    )


def test_an_optimum_that_is_not_proved_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Certificate, "bound", lambda self, net: Fraction(1))
    with pytest.raises(ArithmeticError):
        allreduce_optimum(topology("mesh(2, 3)"))


def test_shares_that_are_no_allreduce_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that misses cuts ends in an error, not in a wrong division."""
    monkeypatch.setattr(module._Program, "_extend", lambda self, program, scaled: False)
    nets = [with_switches(seed) for seed in range(20)]
    ended = 0
    for net in nets:
        try:
            assert division_holds(net, allreduce_optimum(net).division)  # type: ignore[union-attr]
        except (ArithmeticError, ValueError):
            ended += 1
    assert ended


# ---- limits


def test_one_rank_and_large_programs_have_none() -> None:
    assert allreduce_optimum(topology("complete(1)")) is None
    assert allreduce_optimum(topology("mesh(3, 4)"), most_columns=5) is None


def test_ranks_without_a_way_between_them() -> None:
    with pytest.raises(CollcError) as caught:
        allreduce_optimum(topology("transpose(subset(uniring(4), {0, 1, 2}))"))
    assert [d.code for d in caught.value.diagnostics] == ["C0301"]


def test_a_division_says_its_value() -> None:
    made = Division((1, 2), (1, 1), (2, 2), Fraction(3, 2))
    assert (made.trees, made.value) == (3, 2)
