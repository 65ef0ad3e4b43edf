"""Bounds of the allreduce: no schedule beats them, certificates are checked by hand, `met` is only said of proofs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import pytest
from commands import Ran
from cut_nets import switched
from hypothesis import given, settings
from partitioned import ends, slow_partition
from sampling import every, examples
from strategies import connected

import collc as api
from collc.driver.bounding import bounded, tree_cuts
from collc.ir.collective import Collective
from collc.ir.costs.bounds import bound, steps_bound
from collc.ir.costs.cost import Cost, cost
from collc.ir.costs.partitions import Partition, crossing, worst_partition
from collc.ir.costs.proofs import certificate_holds
from collc.ir.costs.readable import named_tree_cuts
from collc.ir.costs.tree_cuts import SwitchBalance, TreeCuts
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.forest.allreduce_program import allreduce_program
from collc.passes.synthesis.forest.scheduler import ForestScheduler


def proved(net: Topology, found: dict[str, Any]) -> Fraction:
    """Return the time per byte that a certificate as JSON has it proves; loud where it proves nothing."""
    links, n = ends(net), net.num_ranks
    if found["kind"] == "cut":
        parts = [found["nodes"]]
        inside = set(found["nodes"])
        assert 0 < sum(node < n for node in inside) < n and found["carries"] == "1"
    else:
        assert found["kind"] == "partition"
        parts = [[r] for r in range(n)] if found["parts"] == "every rank" else found["parts"]
        ranks = [node for part in parts for node in part if node < n]
        assert sorted(ranks) == list(range(n)) and all(any(node < n for node in part) for part in parts)
        assert int(found["carries"]) == 2 * (len(parts) - 1) > 0
    total = Fraction(0)
    for part in parts:
        here = {"out of": 0, "into": 1}[found["direction"]]
        total += sum(link[2] for link in links if link[here] in part and link[1 - here] not in part)
    assert total == Fraction(found["bandwidth"])
    return Fraction(found["carries"]) / total


def allreduce(net: Topology) -> Collective:
    return Collective("allreduce", net.num_ranks)


def with_trees(net: Topology, level: Any) -> Cost:
    return bounded(cost(level), net, allreduce_program(net))


# ---- partitions


@given(switched(max_ranks=4))
@settings(max_examples=examples(60), deadline=None)
def test_the_best_partition_is_found(net: Topology) -> None:
    found = worst_partition(net)
    assert found.ratio == slow_partition(net) == proved(net, found.to_json())
    assert found.bandwidth == crossing(net, found.parts, found.inward)


@given(switched(max_ranks=4))
@settings(max_examples=examples(30), deadline=None)
def test_without_effort_a_partition_still_is_a_bound(net: Topology) -> None:
    found = worst_partition(net, effort=0)
    assert proved(net, found.to_json()) == found.ratio <= slow_partition(net)


def two_way(ranks: int, seed: int) -> Topology:
    chance = random.Random(seed)
    pairs = [(chance.randrange(i), i) for i in range(1, ranks)]
    pairs += [tuple(chance.sample(range(ranks), 2)) for _ in range(ranks)]  # type: ignore[misc]
    kinds = [LinkClass(Fraction(w)) for w in (1, 2, 5)]
    chosen = [(a, b, chance.choice(kinds)) for a, b in pairs]
    return Topology.from_links("two-way", ranks, [*chosen, *((b, a, kind) for a, b, kind in chosen)])


@pytest.mark.parametrize("seed", every(4, range(40)))
def test_on_two_way_networks_trees_reach_the_best_partition(seed: int) -> None:
    """Tutte and Nash-Williams: the strength of the network is what the program over trees finds."""
    net = two_way(3 + seed % 6, seed)
    program = allreduce_program(net)
    assert program is not None and program.reached == program.value
    assert bound(net, allreduce(net)).value == worst_partition(net).ratio == 1 / program.value


# ---- nothing beats the bounds


@pytest.mark.slow
@given(connected(min_ranks=2, max_ranks=5, extra=8) | switched(max_ranks=4, balanced=True))
@settings(max_examples=examples(40), deadline=None)
def test_no_trees_and_no_breadth_first_schedule_beat_the_bound(net: Topology) -> None:
    """The program over trees is one schedule's value at least; bfb and forest are schedules."""
    least, program = bound(net, allreduce(net)), allreduce_program(net)
    assert least.kind == "all-schedules" and least.certificate is not None
    assert proved(net, least.to_json() or {}) == least.value
    assert program is not None and least.value <= 1 / program.value
    trees = ForestScheduler(unbalanced=True)
    schedulers = [trees, BFB()] if net.is_direct else [trees]
    for scheduler in schedulers:
        found = with_trees(net, scheduler.run(Problem(net, allreduce(net))))
        assert found.time_per_byte >= found.time_per_byte_bound >= least.value
        assert found.bw_optimal <= (found.time_per_byte == least.value or found.T_B == found.T_B_bound)


@pytest.mark.slow
@pytest.mark.parametrize("expression", ["torus(4, 2)", "hypercube(3)", "torus(3, 3)", "biring(6, 4)"])
@pytest.mark.parametrize(
    "scheduler",
    ["bfb", "forest", "swing", "swing { variant: latency }", "recursive-doubling", "rabenseifner", "bucket", "ring",
     "bine", "trivance", "double-binary-tree", "exact", "auto", "expansion"],
)  # fmt: skip
def test_no_scheduler_beats_the_bounds(expression: str, scheduler: str) -> None:
    """Steps and bandwidth time: exchanges take half the steps of two phases, so those are no bound for them."""
    text = f"topology t = {expression}; collective c = allreduce on t; schedule c using {scheduler};"
    found = api.compile_source(text).cost
    assert found.time_per_byte >= found.bound.value and found.T_B >= found.T_B_bound
    assert found.T_L_bound is None or found.T_L >= found.T_L_bound


@pytest.mark.parametrize(("net", "scheduler"), [("uniring(8)", "pat"), ("biring(27)", "trivance")])
def test_routes_through_ranks_are_not_bound_by_hops(net: str, scheduler: str) -> None:
    """Ranks on the way forward within a step, so fewer steps will do than where each sends to its neighbours."""
    text = f"topology t = {net}; collective c = allgather on t; schedule c using {{}};"
    found, plain = (api.compile_source(text.format(name)).cost for name in (scheduler, "bfb"))
    assert plain.T_L_bound is not None and found.T_L < plain.T_L_bound <= plain.T_L
    assert found.T_L_bound is None


def test_exchanges_take_fewer_steps_than_two_phases() -> None:
    """Recursive doubling on a cube is done in 3 steps, where a reduction and a broadcast take 4."""
    text = "topology t = hypercube(3); collective c = allreduce on t; schedule c using {};"
    once, twice = (api.compile_source(text.format(name)).cost for name in ("recursive-doubling", "bfb"))
    assert (once.T_L, once.T_L_bound, once.phases) == (3, 2, 1)
    assert (twice.T_L, twice.T_L_bound, twice.phases) == (6, 4, 2)
    net = api.topology("hypercube(3)")
    assert steps_bound(net, allreduce(net)) == 2


BY_HAND = """
topology t = {net};
collective c = allreduce on t;
schedule c using steps {{
  let n = ranks(t);
  for r in 1..n, k in 0..n {{ at n - 1 - r: reduce shard k from r to r - 1; }}
  for r in 1..n, k in 0..n {{ at n - 2 + r: send shard k from r - 1 to r; }}
}}
"""


@pytest.mark.parametrize("net", ["mesh(5)", "mesh(2)", "biring(5)"])
def test_no_schedule_by_hand_beats_the_bounds(net: str) -> None:
    """All data go along a path to rank 0 and back, link after link."""
    found = api.compile_source(BY_HAND.format(net=net)).cost
    assert found.time_per_byte >= found.bound.value and found.phases == 2


def test_a_bound_that_counts_too_much_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One vector too many between the parts: trees beat it, and its certificate does not prove it."""
    monkeypatch.setattr(Partition, "ratio", property(lambda self: Fraction(2 * len(self.parts)) / self.bandwidth))
    net = two_way(5, 1)
    program, least = allreduce_program(net), bound(net, allreduce(net))
    assert program is not None and least.value > 1 / program.value
    with pytest.raises(AssertionError):
        assert proved(net, least.to_json() or {}) == least.value


# ---- boxes with a slow NIC


def boxes(slow: int, count: int = 16) -> Topology:
    """Boxes of 8 GPUs at 450 GB/s inside, NICs of 50 GB/s on one fabric, one NIC slower."""
    gpus = count * 8
    fabric, links = gpus + count, []
    for gpu in range(gpus):
        for switch, width in ((gpus + gpu // 8, 450), (fabric, 50 if gpu else slow)):
            kind = LinkClass(Fraction(width))
            links += [(gpu, switch, kind), (switch, gpu, kind)]
    return Topology.from_links("boxes", gpus, links, count + 1)


@pytest.mark.parametrize(("slow", "least"), [(50, "30/6400"), (25, "30/6375"), (5, "30/6355")])
def test_one_slow_nic(slow: int, least: str) -> None:
    """The optimum over trees in closed form is the bound of the partition into boxes, so it bounds everything."""
    found = bound(boxes(slow), allreduce(boxes(slow)))
    bandwidth = f"{int(Fraction(30) / Fraction(least)):,}"
    assert found.value == Fraction(least)
    assert found.name == f"box 0 | box 1 | .. | box 15: 30 crossings over {bandwidth} link units"
    assert isinstance(found.certificate, Partition)
    assert [len([node for node in part if node < 128]) for part in found.certificate.parts] == [8] * 16


def test_trees_of_equal_shards_do_not_meet_what_they_used_to() -> None:
    """Two boxes, one NIC slow: one tree of each rank falls short of what trees of other roots reach."""
    net = boxes(5, count=2)
    least = bound(net, allreduce(net)).value
    for scheduler, is_met in ((ForestScheduler(k=1), False), (ForestScheduler(k="optimal"), True)):
        found = with_trees(net, scheduler.run(Problem(net, allreduce(net))))
        assert found.time_per_byte_bound == found.tightest.value == least
        assert (found.time_per_byte == least) == found.bound_met == found.bw_optimal == is_met


# ---- what is printed


def lines(run: Callable[..., Ran], text: str, folder: Any, *options: str) -> str:
    (folder / "a.coll").write_text(text)
    ran = run("cost", str(folder / "a.coll"), *options)
    assert ran.status == 0, ran.err
    return str(ran.out)


def test_text_and_json_say_of_which_schedules_a_bound_is(collc: Callable[..., Ran], tmp_path: Any) -> None:
    text = "topology t = torus(3, 3); collective c = allreduce on t; schedule c using bfb;"
    assert "bound 16/9 M/B, met: no schedule is faster" in lines(collc, text, tmp_path)
    found = json.loads(lines(collc, text, tmp_path, "--json"))
    assert (found["bound_kind"], found["bound_met"], found["T_B_bound"]) == ("all-schedules", True, "16/9")
    assert proved(api.topology("torus(3, 3)"), found["certificate"]) == Fraction(found["time_per_byte_bound"])


def test_a_bound_of_trees_is_told_apart(collc: Callable[..., Ran], tmp_path: Any) -> None:
    """Wherever the program over trees is above all cuts and partitions, the line and JSON say that it is of trees."""
    made = with_optimal_trees()
    assert made.tightest.kind == "tree-schedules" and made.bound_met and not made.bw_optimal
    from collc.cli.cost_bounds import bandwidth_rows, bound_object

    rows = bandwidth_rows(made)
    texts = [row[2] for row in rows]
    assert [text for text in texts if "met:" in text] == [text for text in texts if text.startswith("bound of trees ")]
    assert any(text.endswith("met: no schedules by trees are faster") for text in texts)
    said = bound_object(made)
    assert said["bound_kind"] == "tree-schedules" and said["certificate"]["kind"] == "cuts"
    assert [one["bound_kind"] for one in said["bounds"]] == ["all-schedules", "tree-schedules"]


def above_all_partitions() -> Topology:
    """A ring in one direction of five ranks and a switch, and a link back: partitions prove less than trees need."""
    around = [(4, 0), (0, 3), (3, 5), (5, 1), (1, 2), (2, 4)]
    return Topology.from_links("around", 5, [*around, (5, 4), (4, 5)], 1)


def with_optimal_trees() -> Cost:
    """A cost of trees that take exactly as long as the bound of trees."""
    net = above_all_partitions()
    program = allreduce_program(net)
    found = cost(ForestScheduler().run(Problem(net, allreduce(net))))
    assert program is not None
    return attrs.evolve(bounded(found, net, program), time_per_byte=1 / program.value)


@pytest.mark.parametrize(
    "change",
    [
        {"carries": Fraction(4)}, {"bandwidth": Fraction(1)}, {"cuts": ()}, {"mirrored": True}, {"balances": None},
        {"maps": ((1, 0, 2, 3, 4, 5),)}, {"maps": ((0, 0, 0, 0, 0, 0),)},
    ],
)  # fmt: skip
def test_a_family_of_cuts_is_checked(change: dict[str, Any]) -> None:
    """The rows add up to what they state; with a row left out, or a map that is no automorphism, they do not."""
    net, least = above_all_partitions(), with_optimal_trees().tightest
    proof = least.certificate
    assert isinstance(proof, TreeCuts) and certificate_holds(net, allreduce(net), least)
    assert least.value == Fraction(3, 2) > bound(net, allreduce(net)).value
    assert least.name == "1 x out of each of ranks 0, 1, 1 x into each of ranks 2, 3: 3 crossings over 2 link units"
    if "balances" in change:
        change = {"balances": (SwitchBalance(Fraction(1), 5, False),)}
    wrong = attrs.evolve(proof, **change)
    assert not certificate_holds(net, allreduce(net), attrs.evolve(least, certificate=wrong))
    claimed = wrong.carries / wrong.bandwidth
    assert not certificate_holds(net, allreduce(net), attrs.evolve(least, value=claimed, certificate=wrong))


def balanced_proof() -> tuple[Topology, TreeCuts]:
    """A network of two switches, and a proof that needs their balances."""
    ends = [(1, 2, 3), (2, 0, 3), (0, 3, 2), (3, 4, 3), (4, 1, 1), (2, 0, 3), (0, 3, 3), (3, 1, 2), (2, 1, 4)]
    net = Topology.from_links("two", 3, [(a, b, LinkClass(Fraction(width))) for a, b, width in ends], 2)
    program = allreduce_program(net)
    assert program is not None
    proof = tree_cuts(net, program)
    assert proof.carries == proof.bandwidth / program.value
    return net, proof


def test_rows_that_no_trees_obey_prove_nothing() -> None:
    """A cut without a rank beyond it, a negative multiplier, a balance of a rank, or no balances at all."""
    net, proof = balanced_proof()
    assert proof.balances and proof.proved(net) == (proof.carries, proof.bandwidth)
    first, row = proof.cuts[0], proof.balances[0]
    nothing = attrs.evolve(first, nodes=(), rooted=False)
    for change in (
        {"cuts": (*proof.cuts, nothing)}, {"cuts": (*proof.cuts, attrs.evolve(first, multiplier=Fraction(-1)))},
        {"balances": (*proof.balances, attrs.evolve(row, switch=0))},
    ):  # fmt: skip
        assert attrs.evolve(proof, **change).proved(net) is None
    sums = attrs.evolve(proof, balances=()).proved(net)
    assert sums is not None and sums[0] / sums[1] < proof.carries / proof.bandwidth
    text = named_tree_cuts(net, proof).text
    assert "balanced at" in text or " cuts with multipliers" in text


def test_a_false_certificate_is_seen() -> None:
    """The checks above can fail: one part too few, a link left out."""
    net = api.topology("torus(3, 3)")
    good = bound(net, allreduce(net)).to_json() or {}
    assert proved(net, good) == Fraction(16, 36)
    for wrong in ({"carries": "18"}, {"bandwidth": "35"}, {"parts": [[r] for r in range(8)]}):
        with pytest.raises(AssertionError):
            proved(net, {**good, **wrong})
