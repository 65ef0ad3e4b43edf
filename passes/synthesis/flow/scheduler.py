"""All-to-all schedules from flows: as fast as LP (3) of the direct-connect paper allows, up to the size of a chunk.

The network is unrolled over steps. Prices on links and steps give the cheapest timed paths, :mod:`.mixing` finds the
best mix of them, and :mod:`.rounding` makes whole chunks of it. On a symmetric network the pass schedules the shards of
one rank of each orbit; the group moves their paths to all others. On Cayley digraphs one source is enough, and a large
schedule stays a template.

On Cayley digraphs the program's time for as many steps as the diameter is mostly 1/f, so that T_B = d / (N f);
elsewhere a step or two more are often needed. Chunks of finite size add at most :func:`.rounding.excess`, on Cayley
digraphs steps^2 (d - 1) / P, in the time of one shard on one link; T_B is d / N times that time.

On networks with switches, and of gathers and scatters, all shards take the routes of the best flow in one step
(:mod:`.routed`); so do shards that differ in size, on any network (:mod:`.uneven`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, fit
from collc.ir.collective import Collective
from collc.ir.diagnostic import Excess, Subject, error
from collc.ir.schedule import Action, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import MOST_LISTED, SymmetricSchedule
from collc.ir.topology import Topology

from ...applying import not_scheduled
from ...base import Pass, remark
from ...knobs import CHUNKS, Knob
from ...ranges import Range
from ..operations import require_routes
from .action import Action as Moves
from .action import free_action
from .expanded import Expanded
from .irregular import learned_chunks
from .mixing import Mix, best_mix
from .rate import alltoall_rate, capacities, quick_bracket
from .response import respond
from .rounding import MOST_PARTS, ChunkedPaths, round_freely, round_mix

__all__ = ["Flow"]

_LONGER = 4  # further steps than the diameter that are tried for a faster schedule
_CLOSE = Fraction(1, 200)  # fewer steps are worth so much time
_NEAR = Fraction(1, 10**6)
_PROGRAM = 6000  # rows of a linear program that HiGHS mostly solves in a minute
_QUICK_PROGRAM = 3500  # and of one that it solves in some seconds
_MORE = (0, 1, 2, 4, 6, 9, 13)  # steps beyond the diameter that are tried for flows
_FAR = Fraction(1, 50)
_MOST_ROWS = 1 << 26
_MOST_TEMPLATE = 1 << 18  # of the template of a network with a group
_MOST_PAIRS = 1 << 23
_MOST_UNEVEN = 1 << 15  # if shards differ in size: no two pairs are alike
_KINDS = ("alltoall", "gather", "scatter")


@attrs.frozen
class Flow(Pass):
    """Synthesize an all-to-all, a gather or a scatter from the flow of LP (3) (A.5).

    T_B is in units of M/B, as for all collectives; M is what one rank sends, N shards, its own included. Raises C0301
    (not strongly connected), C0503 (another collective), C0561 (fewer steps than the diameter), C0562 (number of
    chunks), C0563 (too large), C0564 (an option that does not apply).
    """

    name: ClassVar[str] = "flow"
    summary: ClassVar[str] = (
        "all-to-all, gather or scatter from a multi-commodity flow, for any strongly connected network"
    )
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule
    takes_fewer: ClassVar[bool] = True
    varies: ClassVar[tuple[Knob, ...]] = (CHUNKS,)

    chunks: int | None = attrs.field(
        default=None,
        metadata={
            "help": "maximum chunks per shard (default: the number with the least time)",
            "range": Range(1, MOST_PARTS, "C0562", divides="shard"),
        },
    )
    steps: int | None = attrs.field(
        default=None,
        metadata={"help": "number of steps, at least the diameter (default: more only where they save time)"},
    )
    thorough: bool = attrs.field(
        default=False, metadata={"help": "solve integer programs for the chunks of large networks too"}
    )

    template: bool | None = attrs.field(
        default=None,
        metadata={
            "help": "on a symmetric network, keep the transfers of one rank's data (default: above 16,384 transfers)"
        },
    )

    def with_chunks(self, chunks: int) -> Flow:
        return attrs.evolve(self, chunks=min(chunks, MOST_PARTS))

    def run(self, ir: Problem) -> Schedule | SymmetricSchedule:
        topology, collective = ir.topology, ir.collective
        self.require(ir)
        if topology.num_ranks < 2:
            return _schedule(topology, collective, free_action(topology), None)
        if collective.weights is not None:
            from .uneven import uneven_routed

            return uneven_routed(ir, self.chunks)
        if _takes_routes(ir):
            return self._routed(ir)
        action = free_action(topology)
        if action.group.order == 1:
            chunks = self._irregular(topology, action)
        else:
            chunks = self._small(topology, action, _PROGRAM) or self._large(topology, action)
        return _schedule(topology, collective, action, chunks, self.template)

    def _routed(self, ir: Problem) -> Schedule | SymmetricSchedule:
        """Return the schedule of one step, of a large cluster of alike boxes a template."""
        from ..one_box import template_of
        from .routed import routed

        found = routed(ir) if self.chunks is None else routed(ir, self.chunks)
        keep = len(found) > MOST_LISTED if self.template is None else self.template
        template = template_of(found) if keep else None
        if self.template and template is None:
            remark(f"flow: no template, because collc knows no rotation of the boxes of `{ir.topology.name}`")
        return found if template is None else template

    def _irregular(self, topology: Topology, action: Moves) -> ChunkedPaths:
        """Schedule without a group: by linear programs if they are quick, by flows if those come nearer to LP (3)."""
        rate = quick_bracket(topology)
        target = Fraction(0) if rate is None else 1 / rate.upper
        found = self._small(topology, action, _QUICK_PROGRAM)
        if found is None:
            found = self._sized_by_flows(topology, action, target)
        elif found.time > target * (1 + _CLOSE):
            learned = self._learned(topology, action, target)
            if learned is not None and learned.time * (1 + _CLOSE) < found.time:
                found = learned  # fewer steps and chunks are worth a little time
        if found is not None and (self.chunks is None or found.time <= target * (1 + _FAR)):
            return found
        whole = self._large(topology, action)  # few chunks, or a network that is too large for flows
        return whole if found is None or whole.time < found.time else found

    def _sized_by_flows(self, topology: Topology, action: Moves, target: Fraction) -> ChunkedPaths | None:
        """Return the best of flows and, if it is not too large, of the linear program of as many steps."""
        learned = self._learned(topology, action, target)
        if learned is None:
            return None
        program = attrs.evolve(self, steps=learned.expanded.steps)._small(topology, action, _PROGRAM)
        return learned if program is None or learned.time < program.time else program

    def _learned(self, topology: Topology, action: Moves, target: Fraction) -> ChunkedPaths | None:
        width, diameter = capacities(topology), topology.diameter or 0
        tried = [diameter + more for more in _MORE] if self.steps is None else [self.steps]
        full = Expanded.moved(topology, action, width, diameter)
        return learned_chunks(full, tried, target, self.chunks or MOST_PARTS)

    def _small(self, topology: Topology, action: Moves, most: int) -> ChunkedPaths | None:
        """Schedule by linear programs; return None if they would have more than ``most`` rows."""
        width, diameter = capacities(topology), topology.diameter or 0
        full = Expanded.moved(topology, action, width, self.steps or diameter)
        if full.cells + len(full.commodities) > most:
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

    def require(self, ir: Problem) -> None:
        topology = ir.topology
        if ir.collective.kind not in _KINDS:
            raise not_scheduled("C0503", self.name, ir, _KINDS)
        require_routes(topology, ir.collective)
        if _takes_routes(ir):
            self._require_routable(ir)
            return
        diameter = topology.diameter or 0
        if self.steps is not None and self.steps < diameter:
            raise error(
                "C0561",
                f"found `steps: {self.steps}`, needed at least {diameter} for an all-to-all on `{topology.name}`",
                notes=[f"some ranks are {diameter} links apart"],
                hint=f"use {diameter} or more, or leave `steps` out",
                option="steps",
                about=(Subject.TOPOLOGY,),
            )
        if topology.symmetry is None:
            _require_few(topology, topology.total_hops, "transfers", _MOST_ROWS)
        else:
            _require_few(topology, int(topology.hops_from(0).sum()), "transfers of one rank's data", _MOST_TEMPLATE)

    def _require_routable(self, ir: Problem) -> None:
        """Raise C0563 for too many sources and links, C0564 for options of schedules of several steps."""
        for option, given in (("steps", self.steps is not None), ("thorough", self.thorough)):
            if given:
                kind = ir.collective.kind
                what = ir.collective.name if ir.topology.is_direct else f"{kind} on a network with switches"
                raise error(
                    "C0564", f"`{option}` is for an all-to-all on a network of ranks only; found {what}",
                    hint=f"leave `{option}` out: all data take one step", option=option,
                    about=(Subject.TOPOLOGY, Subject.COLLECTIVE),
                )  # fmt: skip
        sources = ir.topology.num_ranks if ir.collective.root is None else 1
        most = _MOST_PAIRS if ir.collective.weights is None else _MOST_UNEVEN
        _require_few(ir.topology, sources * ir.topology.num_links, "pairs of a source and a link", most)


def _takes_routes(ir: Problem) -> bool:
    """Return whether data pass switches and ranks in one step."""
    collective = ir.collective
    return not ir.topology.is_direct or collective.kind != "alltoall" or collective.weights is not None


def _require_few(topology: Topology, found: int, what: str, most: int) -> None:
    if found > most:
        raise error(
            "C0563", f"an all-to-all on `{topology.name}` has {found} {what}, more than {most}",
            hint="use a smaller topology", exit_status=3, excess=Excess(what, found, most),
            about=(Subject.TOPOLOGY, Subject.COLLECTIVE),
        )  # fmt: skip


def _schedule(
    topology: Topology, collective: Collective, action: Moves, chunks: ChunkedPaths | None, keep: bool | None = None
) -> Schedule | SymmetricSchedule:
    """Move the pieces' paths by every element of the group, step by step, or ``keep`` a template: by default if the
    schedule is large.
    """
    columns: Columns = {name: np.zeros(0, dtype=np.uint8) for name in Schedule.COLUMNS}
    parts, template = 1, False
    if chunks is not None:
        order = action.group.order
        large = int((chunks.paths >= 0).sum()) * order > MOST_LISTED
        template = action.group is topology.symmetry and (large if keep is None else keep)
        if keep and not template:
            remark(f"flow: no template, because collc knows no group of `{topology.name}`")
        columns, parts = _columns(topology, action, chunks, np.arange(1 if template else order)), chunks.parts
    columns["action"] = np.zeros(len(columns["step"]), dtype=np.uint8) + Action.COPY
    found = Schedule(topology, collective, parts, scheduler="flow", **columns)
    return SymmetricSchedule(found) if template else found


def _columns(topology: Topology, action: Moves, chunks: ChunkedPaths, by: Array) -> dict[str, Array]:
    """Return the columns of the paths' images under the elements ``by``."""
    n = topology.num_ranks
    ends = np.cumsum(chunks.units)
    first = np.searchsorted(chunks.commodity, chunks.commodity)  # the first path of the same shard
    lo = ends - chunks.units - (ends - chunks.units)[first]
    step, path = np.nonzero(chunks.paths.T >= 0)
    source, target = chunks.expanded.commodities[chunks.commodity[path]].T
    link = action.move_links(chunks.paths[path, step].astype(np.int64)[:, None], by)
    shard = action.move_ranks(source[:, None], by) * n + action.move_ranks(target[:, None], by)
    return {
        "step": np.repeat(step.astype(fit(0, chunks.expanded.steps)), len(by)),
        "shard": shard.astype(fit(0, n * n)).ravel(),
        "lo": np.repeat(lo[path].astype(fit(0, chunks.parts)), len(by)),
        "hi": np.repeat((lo + chunks.units)[path].astype(fit(0, chunks.parts)), len(by)),
        "route": link.astype(fit(0, topology.num_links)).ravel(),
    }
