"""Trees through switches that copy and add: their time against the bounds, on clusters and on random networks."""

from __future__ import annotations

import random
from fractions import Fraction

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.ir.collective import Collective
from collc.ir.costs.bounds import bound
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify
from collc.passes.synthesis.forest.allreduce_optimum import allreduce_optimum
from collc.passes.synthesis.forest.in_network import copying
from collc.passes.synthesis.forest.scheduler import ForestScheduler

KINDS = ("allreduce", "allgather", "reduce-scatter", "broadcast", "reduce")
GB = 10**9


def grown(topology: Topology, kind: str, **options: object) -> Forest:
    root = 0 if kind in ("broadcast", "reduce") else None
    scheduler = ForestScheduler(**options)  # type: ignore[arg-type]
    return scheduler.grow(Problem(topology, Collective(kind, topology.num_ranks, root=root)))


@pytest.mark.parametrize(
    ("network", "kind", "per_gigabyte"),
    [
        # every port carries one vector in and one out
        ("dgx_h100(1, 0, 1)", "allreduce", Fraction(1, 450)),
        ("gb200_nvl72(1, 0, 1)", "allreduce", Fraction(1, 900)),
        ("dgx_h100(1)", "allreduce", Fraction(7, 4 * 450)),
        # the cut of a box, then the partition into boxes
        ("dgx_h100(2, 0, 1)", "allreduce", Fraction(1, 400)),
        ("dgx_h100(3, 0, 1)", "allreduce", Fraction(4, 1200)),
        ("dgx_h100(4, 0, 1)", "allreduce", Fraction(6, 1600)),
        # a switch relieves the links into it only
        ("dgx_h100(1, 0, 1)", "allgather", Fraction(7, 8 * 450)),
        ("dgx_h100(1, 0, 1)", "reduce-scatter", Fraction(7, 8 * 450)),
        ("dgx_h100(2, 0, 1)", "allgather", Fraction(15, 16 * 500)),
        ("dgx_h100(1, 0, 1)", "broadcast", Fraction(1, 450)),
        ("dgx_h100(1, 0, 1)", "reduce", Fraction(1, 450)),
    ],
)
def test_the_bound_is_met(network: str, kind: str, per_gigabyte: Fraction) -> None:
    topology = collc.topology(network)
    forest = grown(topology, kind)
    found = cost(forest)
    assert per_gigabyte / GB == found.time_per_byte == found.bound.value
    assert forest.in_network == topology.in_network and max(forest.heights) <= 2
    if topology.num_ranks <= 16:
        assert verify(attrs.evolve(forest, pieces=3)).ok


@pytest.mark.parametrize("boxes", [1, 2, 4])
def test_the_program_says_so_too(boxes: int) -> None:
    topology = collc.topology(f"dgx_h100({boxes}, 0, 1)")
    found = allreduce_optimum(topology, multicast=topology.multicast, reduces=topology.reduces)
    assert found is not None and found.value * cost(grown(topology, "allreduce")).time_per_byte == 1


def test_without_the_option_switches_only_forward() -> None:
    able, plain = collc.topology("dgx_h100(2, 0, 1)"), collc.topology("dgx_h100(2)")
    for kind in KINDS:
        forest = grown(able, kind, in_network=False)
        assert attrs.evolve(forest, topology=plain) == grown(plain, kind) and not forest.in_network


def test_multicast_alone_relieves_links_that_are_not_the_slowest() -> None:
    """Links into the ranks carry 7/8 of a vector in each half; so do those out of the ranks if the switch adds only."""
    both = collc.topology("dgx_h100(1, 0, 1)")
    alone = attrs.evolve(both, reduces=())
    for one in (alone, alone.transpose()):
        found = allreduce_optimum(one, multicast=one.multicast, reduces=one.reduces)
        assert found is not None and found.value == Fraction(4 * 450 * GB, 7)
        assert cost(grown(one, "allreduce")).time_per_byte * found.value == 1


def test_switches_that_copy_become_ranks_for_the_packing() -> None:
    topology = collc.topology("dgx_h100(2, 0, 1)")
    found = copying(topology)
    assert (18, 1) == (found.num_ranks, found.num_switches) and found.names[16:] == ("nv[0]", "nv[1]", "ib")
    assert copying(found) is found


# ---- random networks


def networks(seed: int) -> Topology:
    """Return ranks and switches on a tree and more links, all both ways, some switches with powers."""
    rng = random.Random(seed)
    ranks, switches = rng.randint(2, 4), rng.randint(1, 3)
    nodes = [*range(ranks, ranks + switches)]
    pairs = {(node, rng.choice(nodes[:i])) for i, node in enumerate(nodes) if i}
    pairs |= {(rank, rng.choice(nodes)) for rank in range(ranks)}
    pairs |= {(rng.randrange(ranks), rng.choice(nodes)) for _ in range(rng.randint(1, 4))}
    kinds = [LinkClass(Fraction(rng.choice((1, 2, 3)))) for _ in pairs]
    links = [link for (a, b), kind in zip(sorted(pairs), kinds, strict=True) for link in ((a, b, kind), (b, a, kind))]
    able = [tuple(node for node in nodes if rng.random() < 0.6) for _ in range(2)]
    return attrs.evolve(Topology.from_links("t", ranks, links, switches), multicast=able[0], reduces=able[1])


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(KINDS))
def test_no_schedule_beats_the_bound(seed: int, kind: str) -> None:
    topology = networks(seed)
    try:
        forest = grown(topology, kind)
    except CollcError:  # a switch with a single neighbour
        return
    assert verify(forest).ok
    collective = forest.collective
    assert cost(forest).time_per_byte >= bound(topology, collective).value
    assert cost(forest.to_steps(2)).time_per_byte >= bound(topology, collective).value
    if kind == "allreduce":
        found = allreduce_optimum(topology, multicast=topology.multicast, reduces=topology.reduces)
        assert found is not None and cost(forest).time_per_byte * found.value >= 1
        assert bound(topology, collective).value * found.value <= 1


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 1 << 32))
def test_relays_and_members(seed: int) -> None:
    """Bounds of process groups are true too."""
    topology = networks(seed)
    if topology.num_ranks < 3:
        return
    source = "collective c = allreduce on net among {0, 1}; schedule c using forest;"
    try:
        found = collc.compile_source(source, topologies={"net": topology}, target="ir{level=schedule}")
    except CollcError:
        return
    assert found.cost.time_per_byte >= found.cost.bound.value
