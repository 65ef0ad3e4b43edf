"""Bounds of collectives whose shards differ in size, against every set of nodes; certificates are added up by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cut_nets import all_sets, out_of, sent, slow_ratio, switched
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from uneven_runs import collective, uneven, weights

import collc
from collc.ir.collective import Collective
from collc.ir.costs.bounds import bandwidth_bound, bound
from collc.ir.costs.busbw import bus_factor_of
from collc.ir.costs.certificate import Bound, Cut, Prices
from collc.ir.costs.cost import cost
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.forest.scheduler import ForestScheduler


def proved(net: Topology, found: Bound, what: Collective) -> Fraction:
    """Return the time per byte that a certificate proves, from links and weights alone."""
    proof = found.certificate
    if proof is None:
        return Fraction(0)
    if isinstance(proof, Prices):
        return Fraction(proof.distance) / proof.capacity / what.whole
    assert isinstance(proof, Cut)
    outside = [node for node in range(net.num_nodes) if node not in proof.nodes]
    inside, others = (outside, proof.nodes) if proof.inward else (proof.nodes, outside)
    assert sum(out_of(net, inside), Fraction(0)) == proof.bandwidth
    assert Fraction(crossing(what, set(inside), set(others)), what.whole) == proof.carries
    return proof.carries / proof.bandwidth


def crossing(what: Collective, inside: set[int], outside: set[int]) -> int:
    """Return the weight of the shards that must go from some nodes to others."""
    ranks, shards = range(what.num_ranks), range(what.num_shards)
    found = 0
    for shard in shards:
        if what.reduces:
            needed = any(what.wants(r, shard) for r in ranks if r in outside) and bool(inside & set(ranks))
        else:
            source = what.source(shard)
            needed = source in inside and any(what.wants(r, shard) for r in ranks if r in outside)
        found += int(what.weight[shard]) * needed
    return found


@given(st.data(), switched(max_ranks=4))
@settings(max_examples=examples(80), deadline=None)
def test_cuts_are_the_worst_of_all(data: st.DataObject, net: Topology) -> None:
    n = net.num_ranks
    sizes = data.draw(weights(n))
    root = data.draw(st.integers(0, n - 1))
    whole, back = sum(sizes), net.transpose()
    found = {
        "allgather": slow_ratio(net, sizes, range(n)), "reduce-scatter": slow_ratio(back, sizes, range(n)),
        "gather": slow_ratio(net, sizes, [root]), "scatter": slow_ratio(back, sizes, [root]),
    }  # fmt: skip
    for kind, ratio in found.items():
        what = collective(kind, n, sizes, root)
        least = bound(net, what)
        assert least.value == ratio / whole == proved(net, least, what)


@given(st.data(), switched(max_ranks=4))
@settings(max_examples=examples(60), deadline=None)
def test_an_alltoallv_is_bounded_by_what_its_certificate_proves(data: st.DataObject, net: Topology) -> None:
    what = data.draw(uneven(net.num_ranks, ["alltoall"]))
    least = bound(net, what)
    assert least.value == proved(net, least, what)
    for nodes in ([rank] for rank in range(net.num_ranks)):
        others = set(range(net.num_nodes)).difference(nodes)
        width = sum(out_of(net, nodes), Fraction(0))
        assert least.value >= Fraction(crossing(what, set(nodes), others)) / width / what.whole


def test_equal_weights_have_the_bounds_of_none() -> None:
    for name in ("torus(3, 3)", "mesh(2, 3)", "dgx_a100(2)", "diamond()"):
        net = collc.topology(name)
        for kind, root in (("allgather", None), ("reduce-scatter", None), ("gather", 1), ("scatter", 1),
                           ("alltoall", None)):  # fmt: skip
            even = Collective(kind, net.num_ranks, root)
            same = collective(kind, net.num_ranks, [5] * even.num_shards, root or 0)
            assert bound(net, same).value == bound(net, even).value
            assert bandwidth_bound(net, same) == bandwidth_bound(net, even)
            assert bus_factor_of(same) == bus_factor_of(even)


@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "gather", "scatter", "alltoall"])
def test_the_links_of_a_rank_bound_no_more_than_all_cuts(kind: str) -> None:
    net = collc.topology("hypercube(3)")
    for turn in range(20):
        shards = 64 if kind == "alltoall" else 8
        what = collective(kind, 8, [(turn * 5 + v * v) % 7 for v in range(shards)], 3)
        floor, least = bandwidth_bound(net, what), bound(net, what)
        assert floor is not None and floor <= least.value * 3
        assert kind != "alltoall" or floor == least.value * 3


def test_what_one_rank_has_bounds_all_the_others() -> None:
    ring = collc.topology("uniring(4)")
    alone = collective("allgather", 4, [0, 9, 0, 0])
    assert bound(ring, alone).value == 1
    assert bound(ring, collective("gather", 4, [0, 9, 0, 0], 1)).value == 0
    assert bound(ring, collective("alltoall", 4, [9 * (k == 5) for k in range(16)])).value == 0


@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "gather", "scatter", "alltoall"])
def test_a_schedule_that_meets_the_links_of_a_rank_is_proved_by_them(kind: str) -> None:
    net = collc.topology("torus(3, 3)")
    sizes = [v % 4 for v in range(81)] if kind == "alltoall" else [5, 0, 1, 2, 3, 0, 4, 6, 1]
    what = collective(kind, 9, sizes, 2)
    scheduler = ForestScheduler() if kind in ("allgather", "reduce-scatter") else Flow()
    found = cost(scheduler.run(Problem(net, what)))
    if kind != "alltoall":
        assert found.T_B == found.floor == found.T_B_bound
    assert found.bound.value == proved(net, found.bound, what) <= found.time_per_byte
    assert found.bound.value == bound(net, what).value


@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "gather", "scatter", "alltoall"])
def test_a_single_rank_moves_nothing(kind: str) -> None:
    net = Topology.from_links("one", 1, [])
    what = collective(kind, 1, [3])
    assert bound(net, what).value == 0 and bus_factor_of(what) == 0
    scheduler = ForestScheduler() if kind in ("allgather", "reduce-scatter") else Flow()
    for one in (scheduler, *([BFB()] if kind in ("allgather", "reduce-scatter") else [])):
        level = one.run(Problem(net, what))
        assert verify(level).ok and cost(level).time_per_byte == 0


def test_a_wrong_certificate_is_seen() -> None:
    net = collc.topology("mesh(2, 3)")
    what = collective("allgather", 6, [5, 0, 1, 2, 3, 4])
    least = bound(net, what)
    assert isinstance(least.certificate, Cut)
    nodes = next(nodes for nodes in all_sets(6, range(6)) if sent(net, what.weights or (), nodes) == 4)
    false = Bound(least.value, least.kind, least.name, Cut(nodes, False, least.certificate.carries, Fraction(2)))
    with pytest.raises(AssertionError):
        proved(net, false, what)
