"""Any collective that copies: right, never below its bound, and as fast as arithmetic by hand says."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
from customs import custom, customs, halo, permutation
from hypothesis import given, settings
from hypothesis import strategies as st
from program_judge import judge_schedule
from sampling import every, examples
from strategies import connected

import collc
from collc.driver.bounding import ScheduleCosts
from collc.ir.collective import CUSTOM, ROOTED, Collective
from collc.ir.costs.commodities import commodities, commodity_bound
from collc.ir.costs.cost import Cost
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify
from collc.passes.base import remarks
from collc.passes.schedule.step_times import time_per_byte
from collc.passes.synthesis.exact.scheduler import Exact
from collc.passes.synthesis.general.bound import general_bound
from collc.passes.synthesis.general.mix import best_mix, mixed
from collc.passes.synthesis.general.needs import Needs
from collc.passes.synthesis.general.prices import proof_of
from collc.passes.synthesis.general.scheduler import General
from collc.passes.synthesis.general.trees import cheapest_tree

OBJECTIVES = ("time", "latency", "bandwidth")


def scheduled(topology: Topology, collective: Collective, **options: object) -> tuple[Schedule, Cost]:
    """Return the verified schedule and its cost."""
    found = General(**options).run(Problem(topology, collective))  # type: ignore[arg-type]
    report = verify(found)
    assert report.ok, report
    cost = ScheduleCosts(found).cost
    assert cost.time_per_byte >= cost.bound.value
    return found, cost


@st.composite
def switched(draw: st.DrawFn) -> Topology:
    """Ranks on one or two switches, which are joined, with some links between ranks; bandwidths differ."""
    ranks, switches = draw(st.integers(2, 5)), draw(st.integers(1, 2))
    links = [(ranks, ranks + 1), (ranks + 1, ranks)] * (switches - 1)
    for rank in range(ranks):
        up = ranks + draw(st.integers(0, switches - 1))
        links += [(rank, up), (up, rank)]
    links += draw(st.lists(st.tuples(st.integers(0, ranks - 1), st.integers(0, ranks - 1)), max_size=3))
    links = [(a, b) for a, b in links if a != b]
    kinds = [draw(st.integers(0, 1)) for _ in links]
    return Topology(
        "switched", ranks, [a for a, _ in links], [b for _, b in links], switches, link_class=kinds,
        classes=(LinkClass(), LinkClass(Fraction(3, 2))),
    )  # fmt: skip


# ---- any network, any conditions


@settings(max_examples=examples(40), deadline=None)
@given(st.data(), connected(min_ranks=1, max_ranks=6, extra=8) | switched(), st.sampled_from(OBJECTIVES))
def test_any_conditions_on_any_network(data: st.DataObject, topology: Topology, objective: str) -> None:
    collective = data.draw(customs(topology.num_ranks))
    found, cost = scheduled(topology, collective, objective=objective)
    assert judge_schedule(found, 0) == ""
    assert cost.bound.value >= commodity_bound(topology, collective).value
    if not commodities(collective):
        assert not len(found)
    if Needs.of(topology, collective).pointed or objective == "latency":
        assert found.num_steps <= 1


@settings(max_examples=examples(40), deadline=None)
@given(st.data(), connected(min_ranks=2, max_ranks=5, extra=6))
def test_no_exact_schedule_beats_the_bound_or_the_mix(data: st.DataObject, topology: Topology) -> None:
    collective = data.draw(customs(topology.num_ranks, most=3, weighed=False, targets=1))
    exact = time_per_byte(Exact(effort=1).run(Problem(topology, collective)))
    _, cost = scheduled(topology, collective)
    assert cost.bound.value <= exact
    assert cost.time_per_byte <= exact * Fraction(201, 200)  # but for rounding to parts


@settings(max_examples=examples(25), deadline=None)
@given(st.data(), connected(min_ranks=2, max_ranks=4, extra=5))
def test_no_exact_schedule_to_several_ranks_beats_the_bound(data: st.DataObject, topology: Topology) -> None:
    collective = data.draw(customs(topology.num_ranks, most=3, weighed=False))
    exact = time_per_byte(Exact(objective="bandwidth", effort=1, size_limit=1500).run(Problem(topology, collective)))
    assert general_bound(topology, collective).value <= exact


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_objectives_order_what_they_say(objective: str) -> None:
    topology, collective = collc.topology("torus(4, 4)"), custom(16, [(0, (1, 5, 7, 10))])
    found, cost = scheduled(topology, collective, objective=objective)
    others = [scheduled(topology, collective, objective=other) for other in OBJECTIVES]
    if objective == "latency":
        assert found.num_steps == min(one.num_steps for one, _ in others) == 1
    if objective == "bandwidth":
        assert cost.time_per_byte == min(other.time_per_byte for _, other in others)
        assert cost.time_per_byte <= cost.bound.value * Fraction(11, 10)


# ---- by hand


@pytest.mark.parametrize(("ranks", "shift"), [(5, 1), (6, 2), (8, 3), (8, 4), (7, 5)])
def test_rotations_of_a_ring(ranks: int, shift: int) -> None:
    """A rotation by k goes k links one way and N - k the other: of each shard x, at x k = (1 - x) (N - k)."""
    ring = collc.topology(f"biring({ranks})")
    collective = custom(ranks, [(rank, ((rank + shift) % ranks,)) for rank in range(ranks)])
    found, cost = scheduled(ring, collective)
    assert found.num_steps == 1
    assert cost.time_per_byte == Fraction(shift * (ranks - shift), ranks) / ranks
    assert cost.bound_met


@pytest.mark.parametrize("sizes", [(5,), (3, 4), (4, 4), (3, 3, 3)])
def test_the_halo_of_a_torus_takes_one_step_of_one_shard(sizes: tuple[int, ...]) -> None:
    topology = collc.topology(f"torus({', '.join(map(str, sizes))})")
    collective = halo(*sizes)
    found, cost = scheduled(topology, collective)
    assert (found.num_steps, found.parts, cost.time_per_byte) == (1, 1, Fraction(1, collective.num_shards))
    assert cost.bound_met


def test_corners_of_a_stencil_share_all_links() -> None:
    """4 shards over a link and 4 over two: 12 links' worth over 4 links out of each rank."""
    collective = halo(5, 5, corners=True)
    found, cost = scheduled(collc.topology("torus(5, 5)"), collective)
    assert found.num_steps == 1 and cost.bound_met
    assert cost.time_per_byte == Fraction(3, collective.num_shards)


def test_a_switch_copies_nothing() -> None:
    """A shard for 3 ranks on a switch: trees bring it once to each, in a chain; one step sends it 3 times."""
    star = collc.topology("leaf_spine(1, 4, 1)")
    collective = custom(4, [(0, (1, 2, 3))])
    _, slow = scheduled(star, collective, objective="latency")
    _, fast = scheduled(star, collective, objective="bandwidth")
    assert slow.time_per_byte == 3 * slow.bound.value
    assert fast.bound.value == slow.bound.value and fast.time_per_byte <= fast.bound.value * Fraction(11, 10)


def test_shards_that_stay_take_no_step() -> None:
    """Of no target, of the source alone: nothing moves. The source among the targets changes nothing."""
    ring = collc.topology("biring(4)")
    found, cost = scheduled(ring, custom(4, [(0, ()), (1, (1,)), (2, (2,))]))
    assert (len(found), cost.time_per_byte, cost.bound.value, cost.bound.name) == (0, 0, 0, "none")
    with_source, without = (scheduled(ring, custom(4, [(0, t), (3, (1,))]))[1] for t in ((0, 1, 2), (1, 2)))
    assert with_source.time_per_byte == without.time_per_byte


def test_shards_of_weight_0_arrive_and_cost_nothing() -> None:
    ring = collc.topology("biring(5)")
    moves = [(0, (1,)), (2, (4, 0)), (3, (3,)), (0, (1,))]
    collective = custom(5, moves, (3, 0, 1, 0))
    found, cost = scheduled(ring, collective)
    assert {1, 3} <= set(found.shard.tolist())
    assert cost.time_per_byte * collective.whole == Fraction(3, 2)  # half of it each way around


def test_weights_are_amounts() -> None:
    """A shard of weight w is as w shards of weight 1."""
    torus = collc.topology("torus(3, 3)")
    heavy = custom(9, [(0, (4,)), (5, (1,)), (0, (8,))], (2, 1, 3))
    light = custom(9, [(0, (4,))] * 2 + [(5, (1,))] + [(0, (8,))] * 3)
    assert general_bound(torus, heavy).value == general_bound(torus, light).value
    assert mixed(torus, heavy).time == pytest.approx(mixed(torus, light).time)


def test_only_the_routes_that_are_needed_must_exist() -> None:
    one_way = Topology.from_links("line", 3, [(0, 1), (1, 2)])
    found, _ = scheduled(one_way, custom(3, [(0, (1, 2))]))
    assert len(found)
    with pytest.raises(CollcError) as caught:
        General().require(Problem(one_way, custom(3, [(2, (0,))])))
    assert caught.value.diagnostics[0].code == "C0301"


# ---- other collectives


@pytest.mark.parametrize("kind", ["allgather", "broadcast", "gather", "scatter", "alltoall"])
@pytest.mark.parametrize("network", ["torus(2, 3)", "leaf_spine(2, 2, 1)", "kautz(2, 2)"])
def test_known_collectives_too(kind: str, network: str) -> None:
    topology = collc.topology(network)
    plain = Collective(kind, topology.num_ranks, 1 if kind in ROOTED else None)
    for collective in (plain, attrs.evolve(plain, members=(0, 1, 3))):
        found = General(objective="bandwidth").run(Problem(topology, collective))
        assert verify(found).ok
    if kind != "broadcast":
        weights = tuple(1 + shard % 3 for shard in range(plain.num_shards))
        assert verify(General().run(Problem(topology, attrs.evolve(plain, weights=weights)))).ok


def test_what_reduces_is_refused() -> None:
    for kind in ("allreduce", "reduce-scatter"):
        with pytest.raises(CollcError) as caught:
            General().require(Problem(collc.topology("biring(3)"), Collective(kind, 3)))
        assert caught.value.diagnostics[0].code == "C0503"


# ---- bounds


@settings(max_examples=examples(40), deadline=None)
@given(st.data(), connected(min_ranks=2, max_ranks=5, extra=6) | switched())
def test_any_prices_prove_no_more_than_a_mix_takes(data: st.DataObject, topology: Topology) -> None:
    collective = data.draw(customs(topology.num_ranks))
    needs = Needs.of(topology, collective)
    if not needs.commodities:
        return
    mix = best_mix(needs)
    prices = data.draw(st.lists(st.integers(0, 5), min_size=topology.num_links, max_size=topology.num_links))
    if not sum(width * price for width, price in zip(needs.widths, prices, strict=True)):
        return
    simple, full = proof_of(needs, prices, ascend=False), proof_of(needs, prices)
    assert simple.value <= full.value <= mix.time * (1 + 1e-9)
    for one in needs.commodities:
        tree, _ = cheapest_tree(needs, prices, one.source, one.targets)
        alone = attrs.evolve(needs, commodities=(attrs.evolve(one, weight=1),))
        assert proof_of(alone, prices).paid <= sum(prices[link] for hop in tree for link in hop)


def test_a_price_too_many_would_be_seen() -> None:
    """The check above can fail: a bound above the least tree is one that some mix beats."""
    needs = Needs.of(collc.topology("biring(4)"), custom(4, [(0, (1,))]))
    proof = proof_of(needs, [1] * 8)
    assert attrs.evolve(proof, paid=8 * proof.paid).value > best_mix(needs).time >= proof.value


@pytest.mark.parametrize(
    ("moves", "bound", "name"),
    [
        ([(0, (1,)), (0, (3,)), (0, (2,))], Fraction(1, 2), "links out of rank 0"),
        ([(1, (0,)), (2, (0,)), (3, (0,))], Fraction(1, 2), "links into rank 0"),
        ([(0, (2,)), (1, (3,)), (2, (0,)), (3, (1,))], Fraction(1, 4), "all links together"),
        ([(0, (2, 1, 3))], Fraction(1, 2), "links out of rank 0"),
    ],
)
def test_sets_of_nodes_bound(moves: list[tuple[int, tuple[int, ...]]], bound: Fraction, name: str) -> None:
    found = commodity_bound(collc.topology("biring(4)"), custom(4, moves))
    assert (found.value, found.name.partition(":")[0]) == (bound, name)
    assert found.to_json() is not None


def test_boxes_bound() -> None:
    """What crosses between two boxes of 8, over 8 NICs of 25 GB/s each."""
    pods = collc.topology("dgx_a100(2)")
    across = custom(16, [(rank, ((rank + 8) % 16,)) for rank in range(16)])
    found, cost = scheduled(pods, across)
    assert found.num_steps == 1 and cost.bound_met
    assert cost.time_per_byte == Fraction(8, 16 * 200 * 10**9)


def test_the_certificate_of_prices_proves_the_bound() -> None:
    torus, collective = collc.topology("torus(3, 4)"), permutation(12, 3)
    needs, found = Needs.of(torus, collective), general_bound(torus, collective)
    proof = found.to_json()
    assert proof is not None
    if proof["kind"] == "prices":
        assert Fraction(str(proof["distance"])) / Fraction(str(proof["capacity"])) / 12 == found.value
        assert proof_of(needs, proof["prices"]).value / 12 == found.value  # type: ignore[arg-type]


# ---- options, large networks


def test_remarks_state_the_bound() -> None:
    with remarks() as found:
        General().run(Problem(collc.topology("biring(4)"), permutation(4, 1)))
    assert any("at least" in text and " by " in text for text in found)


@pytest.mark.parametrize("options", [{"chunks": 4}, {"chunks": 3, "objective": "bandwidth"}, {"pieces": 5}])
def test_chunks_and_pieces_are_limits(options: dict[str, object]) -> None:
    found, _ = scheduled(collc.topology("torus(3, 3)"), custom(9, [(0, (4, 8)), (2, (6, 7, 1))]), **options)
    if "chunks" in options:
        assert found.parts <= options["chunks"]  # type: ignore[operator]
    else:
        assert found.parts % 5 == 0


def test_exact_takes_equal_shards_only() -> None:
    ring = collc.topology("biring(4)")
    equal, uneven = custom(4, [(0, (1, 2)), (3, (2,))]), custom(4, [(0, (1, 2)), (3, (2,))], (1, 2))
    for objective in ("latency", "bandwidth"):
        found = Exact(objective=objective).run(Problem(ring, equal))
        assert verify(found).ok and found.num_steps == 2
        assert time_per_byte(found) >= general_bound(ring, equal).value
    with pytest.raises(CollcError) as caught:
        Exact().require(Problem(ring, uneven))
    assert caught.value.diagnostics[0].code == "C0538"


def test_a_wrong_objective_is_refused() -> None:
    with pytest.raises(CollcError) as caught:
        General(objective="speed")
    assert caught.value.diagnostics[0].code == "C0547"


def test_too_many_shards_are_refused() -> None:
    with pytest.raises(CollcError) as caught:
        General().require(Problem(collc.topology("biring(4)"), custom(4, [(0, (1,))] * 70_000)))
    assert caught.value.diagnostics[0].code == "C0548" and caught.value.exit_status == 3


def test_the_same_problem_has_the_same_schedule() -> None:
    torus = collc.topology("torus(3, 3)")
    one, two = (
        General(objective="bandwidth").run(Problem(attrs.evolve(torus), permutation(9, seed))) for seed in (4, 4)
    )
    assert np.array_equal(one.lo, two.lo) and np.array_equal(one.route, two.route) and one.parts == two.parts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "collective"),
    every(2, [
        pytest.param("torus(32, 32)", halo(32, 32), id="halo"),
        pytest.param("torus(32, 32)", halo(32, 32, corners=True), id="corners"),
        pytest.param("dgx_h100(16)", permutation(128), id="permutation"),
        pytest.param("torus(16, 16)", permutation(256), id="torus"),
        pytest.param("dgx_h100(16)", custom(128, [(0, tuple(range(3, 128, 7)))]), id="subset"),
    ]),
)  # fmt: skip
def test_large_networks(network: str, collective: Collective) -> None:
    assert collective.kind == CUSTOM
    mix = mixed(collc.topology(network), collective)
    assert float(mix.proof.value) <= mix.time <= float(mix.proof.value) * 1.25
