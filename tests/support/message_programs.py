"""Programs of messages for networks without a group: sets of chunks, all ranks listed."""

from __future__ import annotations

from collc.frontends.coll import topology as parsed
from collc.ir.collective import Collective
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import TEMPLATE_KINDS, SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.passes.lowering.template import lower_messages
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.flow.scheduler import Flow

__all__ = ["KINDS", "listed_schedule", "message_program"]

KINDS = TEMPLATE_KINDS


def listed_schedule(network: str | Topology, kind: str) -> Schedule:
    """Return the discrete schedule of a collective by `bfb` or `flow`, with a row for every transfer."""
    network = parsed(network) if isinstance(network, str) else network
    scheduler = Flow(template=False) if kind == "alltoall" else BFB(template=False)
    found = Discretize().run(scheduler.run(Problem(network, Collective(kind, network.num_ranks))))
    return found.unfold() if isinstance(found, SymmetricSchedule) else found


def message_program(network: str | Topology, kind: str) -> SymmetricProgram:
    """Return the program of messages of :func:`listed_schedule`."""
    found = lower_messages(listed_schedule(network, kind))
    assert found is not None
    return found
