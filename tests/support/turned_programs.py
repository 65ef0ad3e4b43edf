"""Programs of clusters with a few odd boxes: those of the odd ranks and of one alike box, which a rotation moves."""

from __future__ import annotations

from functools import cache

from collc.frontends.coll import load
from collc.ir.collective import Collective
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.passes.lowering.turned import lower_turned
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.pipelining import Pipelining
from collc.passes.synthesis.forest.scheduler import ForestScheduler

__all__ = ["KINDS", "broken", "turned_program", "turned_schedule"]

#: of an allreduce, boxes have unequal shares of the vector, which rounding to chunks makes unlike each other
KINDS = ("allgather", "reduce-scatter")


@cache
def broken(number: int, gpus: int, fault: str, inner: str = "h in 0..g") -> Topology:
    """Return a cluster of boxes on one fabric without ``fault``; ``inner`` says which pairs of a box have links."""
    text = f"""
topology whole {{
  rank gpu[{number}, {gpus}];
  switch fabric;
  for b in 0..{number} {{
    for g in 0..{gpus} {{ link gpu[b, g] <-> fabric : 25 GB/s; }}
    for g in 0..{gpus}, {inner} {{ link gpu[b, g] <-> gpu[b, h] : 200 GB/s; }}
  }}
}}
topology net = without(whole, {{{fault}}});
"""
    return load("net.coll", text=text).topologies["net"]


def turned_schedule(network: Topology, kind: str, pieces: int = 1) -> Schedule:
    """Return the discrete steps of trees that a rotation of the alike boxes moves, all listed."""
    problem = Problem(network, Collective(kind, network.num_ranks))
    found = Discretize().run(Pipelining(pieces=pieces).run(ForestScheduler(template=True).run(problem)))
    assert isinstance(found, Schedule)
    return found


def turned_program(network: Topology, kind: str, pieces: int = 1) -> SymmetricProgram:
    """Return the program of :func:`turned_schedule`, all ranks listed, with its rotation."""
    found = lower_turned(turned_schedule(network, kind, pieces))
    assert found is not None and found.turning is not None
    return found
