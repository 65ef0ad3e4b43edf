"""Programs of the first ranks and a group with several orbits: forests and flows of boxes that rotate."""

from __future__ import annotations

import attrs

import collc
from collc.frontends.coll import load
from collc.ir.collective import Collective
from collc.ir.spec import Problem
from collc.ir.symmetric import TEMPLATE_KINDS, SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.passes.lowering.template import lower_template
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.pipelining import Pipelining
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.passes.synthesis.forest.template import template as forest_template

__all__ = ["KINDS", "boxes", "forest", "orbit_program", "orbit_schedule"]

KINDS = TEMPLATE_KINDS


def boxes(number: int, gpus: int, rails: str = "ib[g]") -> Topology:
    """Return a cluster of boxes, each with a switch of its own, on one fabric (``ib[0]``) or on rails."""
    text = f"""
topology net {{
  rank gpu[{number}, {gpus}];
  switch nv[{number}], ib[{1 if rails == "ib[0]" else gpus}];
  for b in 0..{number}, g in 0..{gpus} {{
    link gpu[b, g] <-> nv[b] : 60 GB/s;
    link gpu[b, g] <-> {rails} : 1 GB/s;
  }}
}}
"""
    return load("net.coll", text=text).topologies["net"]


def forest(network: str | Topology, kind: str) -> SymmetricForest:
    """Return the template of the optimal trees of a collective."""
    topology = collc.topology(network) if isinstance(network, str) else network
    found = forest_template(ForestScheduler(), Problem(topology, Collective(kind, topology.num_ranks)), least=0)
    assert found is not None
    return found


def orbit_schedule(network: str | Topology, kind: str, pieces: int = 1) -> SymmetricSchedule:
    """Return the discrete steps of the template's trees, of an all-to-all those of its flow."""
    if kind == "alltoall":
        topology = collc.topology(network) if isinstance(network, str) else network
        flow = Flow(template=True, chunks=pieces).run(Problem(topology, Collective(kind, topology.num_ranks)))
        found = Discretize(templates=True).run(flow)
        assert isinstance(found, SymmetricSchedule)
        return found
    steps = Pipelining(pieces=pieces, templates=True).run(forest(network, kind))
    found = Discretize(templates=True).run(steps)
    assert isinstance(found, SymmetricSchedule)
    return found


def orbit_program(network: str | Topology, kind: str, pieces: int = 1, op: str = "sum") -> SymmetricProgram:
    """Return the program of the first ranks and the group."""
    found = lower_template(orbit_schedule(network, kind, pieces))
    assert found is not None
    collective = attrs.evolve(found.collective, op=op)
    return attrs.evolve(found, seed=attrs.evolve(found.seed, name="c", collective=collective))
