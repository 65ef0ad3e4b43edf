"""Programs of collectives among members in which other ranks relay."""

from __future__ import annotations

import attrs

import collc
from collc.driver.compile import compile_collective
from collc.driver.result import CollectiveResult, Settings
from collc.ir.collective import ROOTED, UNEVEN, Collective
from collc.ir.program import Program
from collc.ir.spec import CollectiveRequest, Problem, ScheduleRequest
from collc.ir.topology import Topology
from collc.registry.classes import target_class

__all__ = ["ALL_KINDS", "among", "compiled", "program_of", "requested"]

#: every collective with equal shards and with counts
ALL_KINDS = (
    "allgather", "reduce-scatter", "allreduce", "broadcast", "reduce", "gather", "scatter", "alltoall",
    *UNEVEN.values(),
)  # fmt: skip


def among(kind: str, ranks: int, members: tuple[int, ...], size: int | None = None) -> Collective:
    """Return a collective among members by its name; the last member is the root, weights are 1, 2, 0, 1, .."""
    even = next((e for e, uneven in UNEVEN.items() if uneven == kind), kind)
    root = members[-1] if even in ROOTED else None
    found = Collective(even, ranks, root, members=members, size=size)
    return found if even == kind else attrs.evolve(found, weights=tuple((k + 1) % 3 for k in range(found.num_shards)))


def requested(topology: Topology, collective: Collective, scheduler: str = "auto") -> CollectiveRequest:
    return CollectiveRequest("c", topology.name, Problem(topology, collective), ScheduleRequest(scheduler))


def compiled(topology: Topology, collective: Collective, *targets: str, scheduler: str = "auto") -> CollectiveResult:
    """Compile for these targets, each read back and executed."""
    return compile_collective(
        requested(topology, collective, scheduler), [target_class(name)() for name in targets], Settings()
    )


def program_of(network: str, kind: str, members: tuple[int, ...], scheduler: str = "auto") -> Program:
    """Return the program of a collective among members for a target whose files may have relays."""
    topology = collc.topology(network)
    found = compiled(topology, among(kind, topology.num_ranks, members), "mpi-c", scheduler=scheduler).made
    assert found is not None
    return attrs.evolve(found, name=kind.replace("-", "_"))
