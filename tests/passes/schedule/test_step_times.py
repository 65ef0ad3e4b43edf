"""Times of templates against those of the schedules of all ranks."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import collc
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.schedule import Action, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetries import Rotations
from collc.passes.base import Pass
from collc.passes.schedule.step_times import time_per_byte, time_with_messages
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.one_box import template_of
from collc.passes.synthesis.torus.bucket import Bucket
from collc.passes.synthesis.torus.swing import Swing
from collc.passes.synthesis.two_tier.scheduler import TwoTier

#: groups of one orbit, one element a rank, boxes with switches; links of two speeds, and parallel ones
TEMPLATES: tuple[tuple[str, str, Pass], ...] = (
    ("torus(3, 4)", "allgather", BFB(template=True)), ("torus(3, 4)", "alltoall", Flow(template=True)),
    ("cayley(dihedral(4), {1, 2})", "allreduce", BFB(template=True)),
    ("torus(4, 4, 2)", "reduce-scatter", Bucket(template=True)), ("hypercube(4)", "alltoall", Flow(template=True)),
    ("torus(4, 4)", "allreduce", Swing(template=True)), ("torus(4, 2)", "allgather", Swing(template=True)),
    ("dgx_a100(3)", "alltoall", Flow(template=True)), ("leaf_spine(4, 4, 2)", "alltoall", Flow(template=True)),
    ("mi250(2)", "alltoall", Flow(template=True)),
)  # fmt: skip


@pytest.mark.parametrize(("network", "kind", "scheduler"), TEMPLATES, ids=lambda value: str(value)[:24])
def test_a_template_takes_the_time_of_all_its_ranks(network: str, kind: str, scheduler: Pass) -> None:
    topology = collc.topology(network)
    template = scheduler.run(Problem(topology, Collective(kind, topology.num_ranks, size=1 << 20)))
    assert isinstance(template, SymmetricSchedule)
    template = attrs.evolve(template, seed=_in_more_parts(template, 4))
    listed = template.unfold()
    assert time_per_byte(template) == time_per_byte(listed) == cost(template).time_per_byte
    for longest in (1, 2, 3, 100):
        assert time_with_messages(template, longest) == time_with_messages(listed, longest)
    assert time_with_messages(template, 1) > time_with_messages(template, 100)


def _in_more_parts(template: SymmetricSchedule, times: int) -> object:
    seed = template.seed
    return attrs.evolve(seed, parts=seed.parts * times, lo=seed.lo * times, hi=seed.hi * times)


FIXED = """
topology t {
  rank r[2];
  switch a, b;
  for i in 0..2 { link r[i] -> a; link b -> r[i]; }
  link a -> b;
}
collective c = alltoall on t;
"""


def test_a_link_that_elements_keep_in_place_carries_all_their_loads() -> None:
    """Both ranks swap, the link between the switches stays: it carries the data of both."""
    listed = collc.compile_source(FIXED)["c"].schedule
    assert isinstance(listed, Schedule)
    seed = listed.rows(np.flatnonzero(listed.shard == 1))  # from rank 0 to rank 1
    template = SymmetricSchedule(seed, Rotations(listed.topology, np.array([1, 0, 2, 3])))
    assert time_per_byte(template) == time_per_byte(template.unfold()) == time_per_byte(listed) == 1


def test_transfers_over_routes_of_one_orbit_are_messages_of_one() -> None:
    """Two rows of a step go over a link and its image: every link carries both, in six messages of a chunk."""
    topology = collc.topology("uniring(4)")
    columns = {
        "step": [0, 0],
        "shard": [1, 2],
        "action": [Action.COPY] * 2,
        "lo": [0, 0],
        "hi": [3, 3],
        "route": [0, 1],
    }
    seed = Schedule(topology, Collective("alltoall", 4, size=1 << 20), 3, **columns)
    template = SymmetricSchedule(seed, Rotations(topology, np.array([1, 2, 3, 0])))
    listed, one_row = template.unfold(), attrs.evolve(template, seed=seed.rows(np.array([0])))
    assert time_with_messages(template, 1) == time_with_messages(listed, 1)
    further = [time_with_messages(found, 1) - time_per_byte(found) for found in (one_row, template)]
    assert 0 < 2 * further[0] == further[1]


@pytest.mark.parametrize("network", ["dgx_a100(4)", "dgx_h100(3)"])
def test_a_template_with_routes_that_are_images_takes_the_time_of_its_ranks(network: str) -> None:
    """That of `two-tier` has several routes of an orbit."""
    topology = collc.topology(network)
    listed = TwoTier().run(Problem(topology, Collective("alltoall", topology.num_ranks, size=1 << 20)))
    assert isinstance(listed, Schedule)
    template = template_of(listed)
    assert template is not None
    template = attrs.evolve(template, seed=_in_more_parts(template, 4))
    assert time_with_messages(template, 1) == time_with_messages(template.unfold(), 1) > time_per_byte(template)
