"""The times of collectives on topologies: those of the cost model, of LP (3), and never below their bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest

import collc
from collc.frontends import coll
from collc.ir.costs.training import Layer, Workload, iteration
from collc.ir.diagnostic import CollcError
from collc.passes.finder.database import rows_for
from collc.passes.finder.networks import Values, network_of, networks, row_network

ALPHA, BANDWIDTH = Fraction(1, 10**5), Fraction(100 * 10**9, 8)
SIZES = (1, 1 << 10, 1 << 20, 1 << 30)
TOPOLOGIES = (
    "torus(4, 4)", "shifted_ring(16)", "complete(5)", "generalized_kautz(2, 9)", "line(circulant(5, {1, 2}))",
    "torus(3, 3) with { bandwidth: 25 Gbps, latency: 2 us }", "hypercube(3)", "dgx_h100(2)", "dgx1_v100()",
    "fat_tree(4)",
)  # fmt: skip


@pytest.mark.parametrize("expression", TOPOLOGIES)
def test_no_time_is_below_its_bound_and_more_bandwidth_makes_none_longer(expression: str) -> None:
    topology = coll.topology(expression)
    pair = networks(topology, expression, Values(), True)
    wide = network_of(topology, expression, Values(None, 4 * BANDWIDTH)).allreduce
    known = network_of(topology, expression, Values(None, BANDWIDTH)).allreduce
    found, bound = pair.network, pair.bound
    for size in SIZES:
        assert 0 < bound.allreduce(size) <= found.allreduce(size)
        assert wide(size) <= known(size)
    assert found.alltoall is not None and bound.alltoall is not None
    assert 0 < bound.alltoall <= found.alltoall
    assert found.allreduce(0) == 0
    assert network_of(topology, expression, Values(), alltoall=False).alltoall is None


@pytest.mark.parametrize(
    "expression", [TOPOLOGIES[0], *TOPOLOGIES[2:4], TOPOLOGIES[5], "torus(3, 3) with { reduction: 100 GB/s }"]
)
def test_an_allreduce_takes_the_time_that_cost_predicts(expression: str) -> None:
    """One-way networks too, whose reduce-scatter differs from the allgather."""
    network = network_of(coll.topology(expression), expression, Values())
    text = f"topology t = {expression};\ncollective c = allreduce on t;\nschedule c using bfb;\n"
    found = collc.compile_source(text, passes="bfb").cost
    assert [network.allreduce(size) for size in SIZES] == [found.time(size) for size in SIZES]


def test_an_allreduce_by_trees_takes_the_time_that_cost_predicts_at_its_size() -> None:
    network = network_of(coll.topology("dgx_h100(2)"), "pod", Values())
    for size in ("64 KiB", "64 MiB"):
        text = f"topology t = dgx_h100(2);\ncollective c = allreduce on t {{ size: {size} }};\n"
        found = collc.compile_source(f"{text}schedule c using forest;\n", passes="forest").cost
        assert network.allreduce(found_size(size)) == found.time(size)


def found_size(text: str) -> int:
    value, unit = text.split()
    return int(value) * {"KiB": 1 << 10, "MiB": 1 << 20}[unit]


@pytest.mark.parametrize("ranks", [2, 6])
def test_an_all_to_all_on_one_switch_is_limited_by_the_link_of_each_rank(ranks: int) -> None:
    """N ranks at b each: (N-1)/N M / b."""
    links = f"for g in 0..{ranks} {{ link gpu[g] <-> nv : 300 GB/s; }}"
    text = f"topology box {{ rank gpu[{ranks}]; switch nv; {links} }}\n"
    topology = coll.load("box.coll", text=text).topologies["box"]
    assert network_of(topology, "box", Values()).alltoall == Fraction(ranks - 1, ranks * 300 * 10**9)


def test_rows_of_the_finder_have_the_times_of_their_topologies() -> None:
    for row in rows_for(24, 4):
        one = row_network(row, ALPHA, BANDWIDTH)
        two = network_of(coll.topology(row.expression), row.expression, Values(ALPHA, BANDWIDTH))
        assert [one.allreduce(size) for size in SIZES] == [two.allreduce(size) for size in SIZES]
        assert row.alltoall_rate is None or one.alltoall == two.alltoall


def test_a_launch_comes_once_for_every_call() -> None:
    layers = (Layer("a", 100, Fraction(1), Fraction(1), 7), Layer("b", 100, Fraction(1), Fraction(1)))
    times = []
    for launch in ("", " with { launch: 3 s }"):
        network = network_of(coll.topology(f"biring(4){launch}"), "ring", Values(ALPHA, BANDWIDTH))
        times.append(iteration(Workload("two", layers, (1,)), network, 1))
    assert times[1].allreduce - times[0].allreduce == 2 * 3
    assert times[1].alltoall - times[0].alltoall == 4 * 3


def test_one_rank_waits_for_nothing() -> None:
    pair = networks(coll.topology("complete(1)"), "one", Values(), True)
    assert (pair.network.allreduce(5), pair.network.alltoall, pair.bound.alltoall) == (0, 0, 0)


def test_a_network_that_is_not_connected_is_refused() -> None:
    with pytest.raises(CollcError, match="C0301"):
        network_of(coll.topology("without(biring(4), {0 -> 1, 1 -> 0, 2 -> 3, 3 -> 2})"), "two", Values())
