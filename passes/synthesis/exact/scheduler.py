"""The scheduler ``exact``: the point of the front that a specification asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import ClassVar

import attrs

from collc.ir.collective import CUSTOM, Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError, Subject, error, nearest
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify_schedule

from ...applying import require_direct
from ...base import Pass
from ...knobs import CHUNKS, Knob
from ...ranges import Range
from ...schedule.compose import compose
from ...schedule.reverse import Reverse, reverse
from ..operations import require_commutative
from .demand import Demand
from .front import best_combination, chunk_numbers, fewest_steps, front, require_possible, undecided
from .schedules import schedule_of
from .search import Found, Limits, require_small, rounds_per_item, too_large

__all__ = ["Exact", "Point", "pareto", "scheduled"]

_COUNT = Range(1, code="C0538")
_OBJECTIVES = ("latency", "bandwidth")
_MOST_PLACES = 2**20  # (shard, rank) pairs; programs have an unknown for each, at least


@attrs.frozen
class Exact(Pass):
    """Synthesize a schedule that is proved to be the best of a small network, or the best found with its gap.

    Shards (for broadcast and reduce: the vector) are cut in ``chunks``, which are sent whole. In a round every link
    carries one chunk per unit of bandwidth. ``latency`` means the fewest steps, then the fewest rounds. ``bandwidth``,
    and either if ``steps`` are given, means the fewest rounds per chunk, then the fewest steps. The name of the
    schedule's scheduler tells the gap if optimality is not proved. An allreduce is a reduce-scatter, then an allgather,
    each the best of its kind; with ``steps`` or ``rounds``, the best pair within these limits.

    Raises C0535 (too large), C0536 (there is no such schedule), C0537 (not proved, with ``proof``), C0538 (impossible
    options), C0539 (switches), C0540 (undecided within the limits), C0301 (not strongly connected).
    """

    name: ClassVar[str] = "exact"
    summary: ClassVar[str] = "fewest steps or least bandwidth time of small networks, proved by integer programming"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule
    varies: ClassVar[tuple[Knob, ...]] = (CHUNKS,)

    objective: str = attrs.field(
        default="latency", metadata={"help": "minimize first: latency (steps) or bandwidth (rounds per chunk)"}
    )
    chunks: int | None = attrs.field(
        default=None,
        metadata={
            "help": "chunks per shard, or per vector of a broadcast or reduce (default: the best of a few)",
            "range": Range(1, code="C0538", divides="shard"),
        },
    )
    steps: int | None = attrs.field(
        default=None,
        metadata={"help": "maximum steps, of both phases of an allreduce together", "range": _COUNT},
    )
    rounds: int | None = attrs.field(
        default=None,
        metadata={
            "help": "maximum rounds of all steps, of both phases of an allreduce together; needs `chunks`",
            "range": _COUNT,
        },
    )
    effort: int = attrs.field(
        default=100,
        metadata={"help": "search effort of all searches together, counted in steps of the solver", "range": _COUNT},
    )
    size_limit: int = attrs.field(
        default=20_000, metadata={"help": "maximum unknowns of one integer program", "range": _COUNT}
    )
    proof: bool = attrs.field(default=False, metadata={"help": "fail if the best schedule found is not proved optimal"})

    def run(self, ir: Problem) -> Schedule:
        self.require(ir)
        limits = Limits(self.effort, self.size_limit)
        if ir.collective.kind != "allreduce":
            return scheduled(ir, partial(self._best, limits=limits))
        halves = _halves(ir)
        if (self.steps is None and self.rounds is None) or ir.collective.num_ranks == 1:
            schedules = [scheduled(half, partial(self._best, limits=limits)) for half in halves]
        else:
            found = self._together([_copied(half) for half in halves], limits)
            schedules = [scheduled(half, partial(_given, point)) for half, point in zip(halves, found, strict=True)]
        both = compose(*schedules)
        assert isinstance(both, Schedule)
        return attrs.evolve(both, scheduler=max((half.scheduler for half in schedules), key=len))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.objective not in _OBJECTIVES:
            message = f"option `objective` of scheduler `exact` needs latency or bandwidth, found `{self.objective}`"
            hint = nearest(self.objective, _OBJECTIVES) or "use `latency` for the fewest steps"
            raise error("C0538", message, hint=hint, option="objective")
        if self.rounds is not None and self.chunks is None:
            message = "exact was given `rounds` without `chunks`: a round is one chunk on every link"
            raise error("C0538", message, hint="add `chunks`, or leave `rounds` out", option="rounds")

    def require(self, ir: Problem) -> None:
        require_commutative(self.name, ir.collective)
        require_direct("C0539", self.name, ir)
        if ir.collective.kind == CUSTOM and ir.collective.weights is not None:
            raise _uneven(ir)
        ir.topology.require_connected(ir.collective.kind)
        if self.steps is not None and ir.collective.num_ranks > 1:
            # rounds are not judged here: their bounds need cuts
            require_possible([_demand(*_copied(half)) for half in _halves(ir)], None, self.steps, None)

    def _best(self, demand: Demand, limits: Limits) -> Found:
        require_possible([demand], self.chunks, self.steps, self.rounds)
        require_small(demand, limits)
        best = min(self._each(demand, partial(self._with, limits=limits)), key=self._rank)
        self._require_proof(best)
        return best

    def _each(self, demand: Demand, work: Callable[[Demand, int], list[Found]]) -> list[Found]:
        """Return the results of ``work`` for all numbers of chunks, up to the first that meets the network's cuts."""
        bound, found = rounds_per_item(demand)[0], list[Found]()
        numbers = chunk_numbers(demand) if self.chunks is None else (self.chunks,)
        for number in numbers:
            found += work(demand, number)
            if found and found[-1].share == bound:
                break
        if not found:
            raise undecided(numbers[-1], None)
        return found

    def _with(self, demand: Demand, chunks: int, limits: Limits) -> list[Found]:
        if self.rounds is not None:
            return [fewest_steps(demand, chunks, self.rounds, self.steps, limits)]
        last = demand.steps_bound if self.objective == "latency" else None
        return front(demand, chunks, self.steps or last, limits)[-1:]

    def _together(self, places: Sequence[tuple[Topology, Collective]], limits: Limits) -> tuple[Found, ...]:
        """Return the best points of both phases of an allreduce within its common limits."""
        demands = [_demand(*place) for place in places]
        require_possible(demands, self.chunks, self.steps, self.rounds)
        fronts: list[list[Found]] = []
        for demand, other in zip(demands, demands[::-1], strict=True):
            if fronts and places[0] == places[1]:
                fronts.append(fronts[0])
                continue
            require_small(demand, limits)
            last = None if self.steps is None else self.steps - other.steps_bound
            fronts.append(self._each(demand, partial(front, last=last, limits=limits)))
        found = best_combination(fronts, self.steps, self.rounds)
        for point in found:
            self._require_proof(point)
        return found

    def _require_proof(self, best: Found) -> None:
        if self.proof and not best.proved:
            raise error(
                "C0537",
                f"the best schedule found is not proved to be the best: {best.rounds} rounds, at least {best.least}",
                notes=[f"with {best.chunks} chunks a shard and {best.steps} steps"],
                hint="raise `effort` or `size-limit`, or leave out `proof`",
                exit_status=3,
                option="proof",
            )

    def _rank(self, found: Found) -> tuple[Fraction | int, ...]:
        return found.share, found.steps_taken, found.chunks


def _uneven(ir: Problem) -> CollcError:
    return error(
        "C0538", f"exact sends chunks of one size; the shards of `{ir.collective.name}` differ in size",
        hint="use `general`, or shards of one weight", exit_status=3, about=(Subject.SCHEDULER, Subject.COLLECTIVE),
    )  # fmt: skip


def scheduled(problem: Problem, best: Callable[[Demand], Found]) -> Schedule:
    """Return the schedule of a collective that only copies or only reduces, from the best arrivals of the copying one.

    A reducing schedule is the reverse of a copying one on the transpose (Corollary 1.1 of the direct-connect paper).
    """
    place = _copied(problem)
    if not problem.collective.reduces:
        return _forwards(*place, best)
    if place[0] is problem.topology:
        back = Reverse().run(_forwards(*place, best))
        assert isinstance(back, Schedule)
        return back
    return attrs.evolve(reverse(_forwards(*place, best)), topology=problem.topology)


def _copied(problem: Problem) -> tuple[Topology, Collective]:
    """Return the topology and the copying collective: the problem itself, or its reverse if it reduces."""
    topology, collective = problem.topology, problem.collective
    if not collective.reduces:
        return topology, collective
    return topology if topology.reverse_links is not None else topology.transpose(), collective.reversed()


def _halves(ir: Problem) -> list[Problem]:
    """Return the phases of an allreduce; another collective is its only phase."""
    if ir.collective.kind != "allreduce":
        return [ir]
    kinds = ("reduce-scatter", "allgather")
    return [Problem(ir.topology, attrs.evolve(ir.collective, kind=kind)) for kind in kinds]


def _demand(topology: Topology, collective: Collective) -> Demand:
    if collective.num_shards * collective.num_ranks > _MOST_PLACES:
        raise too_large(collective.num_shards * collective.num_ranks, Limits())
    return Demand.of(topology, collective)


def _forwards(topology: Topology, collective: Collective, best: Callable[[Demand], Found]) -> Schedule:
    if collective.num_ranks == 1:
        none: list[int] = []
        return Schedule(topology, collective, 1, none, none, none, none, none, none, discrete=True, scheduler="exact")
    demand = _demand(topology, collective)
    found = best(demand)
    assert found.arrivals is not None
    schedule = schedule_of(demand, found.arrivals, found.label)
    report = verify_schedule(schedule)
    if not report.ok:
        raise AssertionError(f"an exact schedule is wrong: {report}")
    return schedule


# ---- the whole front


@attrs.frozen(eq=False)
class Point:
    """One point of the front: if ``proved``, no schedule has as few ``steps`` and fewer ``rounds``.

    ``time_per_byte`` is the bandwidth time per byte of M and unit of bandwidth. At least ``least`` rounds are needed,
    because of ``reason``.
    """

    steps: int
    rounds: int
    chunks: int
    time_per_byte: Fraction
    least: int
    reason: str
    schedule: Schedule

    @property
    def proved(self) -> bool:
        """Whether no schedule with the same steps can take fewer rounds."""
        return self.rounds == self.least


def pareto(
    problem: Problem, chunks: int | None = None, steps: int | None = None, limits: Limits | None = None
) -> list[Point]:
    """Return the front of steps and rounds with ``chunks`` chunks per shard, from the fewest steps on, all verified.

    It ends at the bound on rounds, or at ``steps`` (default: the fewest plus two). The default of ``chunks`` is the
    fewest that could meet the network's cuts. Not for allreduce, whose halves each have their own front.
    Raises what :class:`Exact` raises.
    """
    if problem.collective.kind == "allreduce":
        raise error("C0538", "found allreduce, needed reduce-scatter or allgather: each half has its own front")
    Exact(chunks=chunks).require(problem)
    if problem.collective.num_ranks == 1:
        return []
    found, effort = list[Found](), limits or Limits()

    def every(demand: Demand) -> Found:
        require_small(demand, effort)
        number = chunk_numbers(demand)[0] if chunks is None else chunks
        require_possible([demand], number, steps, None)
        found.extend(front(demand, number, steps, effort))
        if not found:
            raise undecided(number, None)
        return found[0]

    first = scheduled(problem, every)
    schedules = [first, *(scheduled(problem, partial(_given, point)) for point in found[1:])]
    return [_point(point, schedule) for point, schedule in zip(found, schedules, strict=True)]


def _given(found: Found, _: Demand) -> Found:
    return found


def _point(found: Found, schedule: Schedule) -> Point:
    return Point(
        found.steps_taken,
        found.rounds or 0,
        found.chunks,
        cost(schedule).time_per_byte,
        found.least,
        found.reason,
        schedule,
    )
