"""Templates are simulated by what rank 0 sends: the same times as by the messages of all ranks."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import collc
from collc.backends.simulator import LATENCIES, simulate, traffic_of_one
from collc.ir.collective import Collective
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import LinkClass, Topology
from collc.passes.synthesis.breadth_first.bfb import BFB


def template(topology: Topology, kind: str) -> SymmetricSchedule:
    found = BFB(template=True).run(Problem(topology, Collective(kind, topology.num_ranks)))
    assert isinstance(found, SymmetricSchedule)
    return found


@pytest.mark.quick
@pytest.mark.parametrize(
    "net", ["torus(4, 5)", "hypercube(4)", "circulant(13, {1, 5})", "cayley(dihedral(5), {1, 2, 8})"]
)
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter"])
@pytest.mark.parametrize("latency", sorted(LATENCIES))
def test_one_rank_has_the_times_of_all(net: str, kind: str, latency: str) -> None:
    level = template(collc.topology(net), kind)
    one, whole = (simulate(sent, latency=LATENCIES[latency]) for sent in (traffic_of_one(level), level))
    assert len(one.traffic) * level.order == len(whole.traffic)
    assert [step.times for step in one.steps] == [step.times for step in whole.steps]
    assert [step.slowest for step in one.steps] == [step.slowest for step in whole.steps]
    assert one.adding == whole.adding and [one.time(size) for size in (1, 10**6)] == [whole.time(1), whole.time(10**6)]


@pytest.mark.quick
def test_links_of_other_classes_count() -> None:
    net = collc.topology("torus(4, 5)")
    kinds = np.arange(net.num_links) % 4 // 2
    mixed = attrs.evolve(net, link_class=kinds, classes=(LinkClass(2), LinkClass(1)))
    level = template(mixed, "allgather")
    one, whole = simulate(traffic_of_one(level)), simulate(level)
    assert [step.slowest for step in one.steps] == [step.slowest for step in whole.steps]
    first = np.flatnonzero(level.seed.step == 1)[1:]  # one row remains in step 1
    lighter = attrs.evolve(level, seed=level.seed.rows(np.delete(np.arange(len(level.seed)), first)))
    assert [step.slowest for step in simulate(traffic_of_one(lighter)).steps] != [s.slowest for s in whole.steps]
