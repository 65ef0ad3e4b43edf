"""A scheduler: a pass that takes a problem."""

from typing import ClassVar

import attrs

from collc.ir.diagnostic import error
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.passes.base import Pass


@attrs.frozen
class AtOnce(Pass):
    """Let every rank send its shard to all others in one step, over the link that joins them."""

    name: ClassVar[str] = "at-once"
    summary: ClassVar[str] = "every rank sends its shard to all others in one step"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule

    def run(self, ir: Problem) -> Schedule:
        """Return the schedule of an allgather; raise EX01 for another collective or a missing link."""
        ranks, topology = ir.topology.num_ranks, ir.topology
        link = {pair: k for k, pair in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))}
        pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
        if ir.collective.kind != "allgather" or not link.keys() >= set(pairs):
            found = "at-once schedules an allgather on networks with links between all ranks"
            raise error("EX01", found, exit_status=3)
        shard, route = [a for a, _ in pairs], [link[pair] for pair in pairs]
        zeros = [0] * len(pairs)
        return Schedule(
            topology, ir.collective, 1, zeros, zeros, shard, zeros, [1] * len(pairs), route, scheduler=self.name
        )
