"""All-to-all schedules from flows: as fast as LP (3) of the direct-connect paper allows, up to the size of a chunk.

The network is unrolled over steps. Prices on links and steps give the cheapest timed paths, :mod:`.mixing` finds the
best mix of them, and :mod:`.rounding` makes whole chunks of it. On a symmetric network the pass schedules the shards of
one rank of each orbit; the group moves their paths to all others. On Cayley digraphs one source is enough.

On Cayley digraphs the program's time for as many steps as the diameter is mostly 1/f, so that T_B = d / (N f);
elsewhere a step or two more are often needed. Chunks of finite size add at most :func:`.rounding.excess`, on Cayley
digraphs steps^2 (d - 1) / P, in the time of one shard on one link; T_B is d / N times that time.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, fit
from collc.ir.collective import Collective
from collc.ir.diagnostic import Excess, error
from collc.ir.schedule import Action, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ...base import Pass
from ...knobs import CHUNKS, Knob
from .action import Action as Moves
from .action import free_action
from .expanded import Expanded
from .mixing import Mix, best_mix
from .rate import alltoall_rate, capacities
from .response import respond
from .rounding import MOST_PARTS, ChunkedPaths, round_freely, round_mix

__all__ = ["Flow"]

_LONGER = 4  # further steps than the diameter that are tried for a faster schedule
_CLOSE = Fraction(1, 200)  # fewer steps are worth so much time
_NEAR = Fraction(1, 10**6)
_PROGRAM = 6000  # rows of a linear program that HiGHS solves in a minute at most
_MOST_ROWS = 1 << 26


@attrs.frozen
class Flow(Pass):
    """Synthesize an all-to-all from the flow of LP (3) (A.5).

    T_B is in units of M/B, as for all collectives; M is what one rank sends, N shards, its own included. Raises C0301
    (not strongly connected), C0501 (switches), C0503 (another collective), C0561 (fewer steps than the diameter), C0562
    (number of chunks), C0563 (too large).
    """

    name: ClassVar[str] = "flow"
    summary: ClassVar[str] = "all-to-all from a multi-commodity flow, for any strongly connected network of ranks"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule
    takes_fewer: ClassVar[bool] = True
    varies: ClassVar[tuple[Knob, ...]] = (CHUNKS,)

    chunks: int | None = attrs.field(
        default=None,
        metadata={"help": "maximum chunks per shard (default: the number with the least time)"},
    )
    steps: int | None = attrs.field(
        default=None,
        metadata={"help": "number of steps, at least the diameter (default: more only where they save time)"},
    )
    thorough: bool = attrs.field(
        default=False, metadata={"help": "solve integer programs for the chunks of large networks too"}
    )

    def with_chunks(self, chunks: int) -> Flow:
        return attrs.evolve(self, chunks=min(chunks, MOST_PARTS))

    def run(self, ir: Problem) -> Schedule:
        topology, collective = ir.topology, ir.collective
        self._require(topology, collective)
        if topology.num_ranks < 2:
            return _schedule(topology, collective, free_action(topology), None)
        action = free_action(topology)
        chunks = self._small(topology, action) or self._large(topology, action)
        return _schedule(topology, collective, action, chunks)

    def _small(self, topology: Topology, action: Moves) -> ChunkedPaths | None:
        """Schedule by linear programs; return None if they would be large."""
        width, diameter = capacities(topology), topology.diameter or 0
        full = Expanded.moved(topology, action, width, self.steps or diameter)
        if full.cells + len(full.commodities) > _PROGRAM:
            return None
        # the mean over all automorphisms takes the same time, and has fewer unknowns
        mean = Expanded.averaged(topology, width, full.steps)
        trial = full if len(mean.sources) == len(full.sources) else mean
        target = 1 / alltoall_rate(topology).upper
        mixes = list[Mix]()
        for steps in range(full.steps, full.steps + 1 + (_LONGER if self.steps is None else 0)):
            mixes.append(best_mix(attrs.evolve(trial, steps=steps), float(target)))
            if mixes[-1].time <= target * (1 + _NEAR):
                break
        if mixes[-1].time > target * (1 + _NEAR):
            least = min(mix.time for mix in mixes)
            mixes = [next(mix for mix in mixes if mix.time <= least * (1 + _CLOSE))]
        mix = mixes[-1]
        if trial is mean:
            mix = best_mix(attrs.evolve(full, steps=mix.expanded.steps), mix.time)
        if self.chunks is None:
            return round_freely(mix, target, self.thorough)
        return round_mix(mix, self.chunks, target, self.thorough)

    def _large(self, topology: Topology, action: Moves) -> ChunkedPaths:
        width, diameter = capacities(topology), topology.diameter or 0
        tried = (diameter, diameter + 1) if self.steps is None else (self.steps,)
        answers = [respond(Expanded.moved(topology, action, width, steps)) for steps in tried]
        return min(answers, key=lambda chunks: chunks.time)

    def _require(self, topology: Topology, collective: Collective) -> None:
        if collective.kind != "alltoall":
            raise error(
                "C0503",
                f"flow cannot schedule `{collective.kind}`",
                notes=["it schedules alltoall"],
                hint="use `bfb`, or write it by hand: `schedule NAME using steps { ... }`",
                exit_status=3,
            )
        if not topology.is_direct:
            raise error(
                "C0501",
                f"flow needs a network of ranks only; `{topology.name}` has {topology.num_switches} switches",
                hint="write the schedule by hand: `schedule NAME using steps { ... }`",
                exit_status=3,
            )
        if self.chunks is not None and not 1 <= self.chunks <= MOST_PARTS:
            raise error("C0562", f"found `chunks: {self.chunks}`, needed 1 to {MOST_PARTS}")
        topology.require_connected("an all-to-all")
        diameter = topology.diameter or 0
        if self.steps is not None and self.steps < diameter:
            raise error(
                "C0561",
                f"found `steps: {self.steps}`, needed at least {diameter} for an all-to-all on `{topology.name}`",
                notes=[f"some ranks are {diameter} links apart"],
                hint=f"write `steps: {diameter}`, or leave `steps` out",
                exit_status=3,
            )
        hops = int(topology.distances.astype(np.int64).sum())
        if hops > _MOST_ROWS:
            raise error(
                "C0563",
                f"an all-to-all on `{topology.name}` takes {hops} transfers, more than {_MOST_ROWS}",
                hint="use a smaller topology",
                exit_status=3,
                excess=Excess("transfers", hops, _MOST_ROWS),
            )


def _schedule(topology: Topology, collective: Collective, action: Moves, chunks: ChunkedPaths | None) -> Schedule:
    """Move the pieces' paths by every element of the group, step by step."""
    columns: Columns = {name: np.zeros(0, dtype=np.uint8) for name in Schedule.COLUMNS}
    parts = 1
    if chunks is not None:
        columns, parts = _columns(topology, action, chunks), chunks.parts
    columns["action"] = np.zeros(len(columns["step"]), dtype=np.uint8) + Action.COPY
    return Schedule(topology, collective, parts, scheduler="flow", **columns)


def _columns(topology: Topology, action: Moves, chunks: ChunkedPaths) -> dict[str, Array]:
    n = topology.num_ranks
    ends = np.cumsum(chunks.units)
    first = np.searchsorted(chunks.commodity, chunks.commodity)  # the first path of the same shard
    lo = ends - chunks.units - (ends - chunks.units)[first]
    step, path = np.nonzero(chunks.paths.T >= 0)
    source, target = chunks.expanded.commodities[chunks.commodity[path]].T
    by = np.arange(action.group.order)
    link = action.move_links(chunks.paths[path, step].astype(np.int64)[:, None], by)
    shard = action.move_ranks(source[:, None], by) * n + action.move_ranks(target[:, None], by)
    return {
        "step": np.repeat(step.astype(fit(0, chunks.expanded.steps)), len(by)),
        "shard": shard.astype(fit(0, n * n)).ravel(),
        "lo": np.repeat(lo[path].astype(fit(0, chunks.parts)), len(by)),
        "hi": np.repeat((lo + chunks.units)[path].astype(fit(0, chunks.parts)), len(by)),
        "route": link.astype(fit(0, topology.num_links)).ravel(),
    }
