"""Compiling a collective again after faults of its network: what no fault touches of its plan stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, cast

import attrs
import numpy as np

from collc.backends.base import Target
from collc.frontends.coll.faults import Broken
from collc.ir.arrays import Array
from collc.ir.collective import CUSTOM, Collective
from collc.ir.diagnostic import CollcError, Kind, error
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.spec import CollectiveRequest, Option, ScheduleRequest
from collc.ir.symmetric_forest import SymmetricForest
from collc.passes import PASSES
from collc.passes.base import Kept, Pass

from ..registry.classes import pass_class, scheduler_pass
from .compile import compile_collective
from .decided import compile_decided
from .direct import emit_direct, needs_schedule
from .pipeline import is_by_hand
from .result import CollectiveResult, Observer, Replan, Settings
from .sizes import scheduler_of

__all__ = ["is_written_by_hand", "replan_collective", "request_after"]

#: what another scheduler may do better
_OTHERS = (Kind.INFEASIBLE, Kind.MISTAKE, Kind.MISFIT, Kind.LIMIT)


def replan_collective(
    healthy: CollectiveResult, request: CollectiveRequest, net: Broken, targets: Sequence[Target], settings: Settings,
    observer: Observer | None = None,
) -> CollectiveResult:  # fmt: skip
    """Return the result of a collective after faults of its network, for every target.

    ``request`` is that of the broken network ``net`` (:func:`request_after`), ``healthy`` the result before. Trees that
    no fault touches stay, and the others grow again; a schedule written by hand stays if its links do; all others are
    compiled again by the same scheduler, or by `auto` if that does not take the broken network. Raises what compilation
    raises, and C0344 for a schedule by hand that needs what is gone.
    """
    by_hand = _by_hand(healthy)
    if by_hand is not None:
        return _with_steps(healthy, by_hand, net, request, targets, settings, observer)
    scheduler = _forest_scheduler(healthy) if request.problem.is_whole else None
    reason = ""
    if scheduler is not None and healthy.forest is not None:
        quick = attrs.evolve(settings, hints=False)
        try:
            found = _with_trees(healthy, healthy.forest, scheduler, net, request, targets, quick, observer)
        except CollcError as mistake:
            if not _may_work_otherwise(mistake):
                raise
            found, reason = None, f"the trees that stay do not fit: {mistake.diagnostics[0].message}"
        if found is not None:
            return attrs.evolve(found, settings=settings)
    return _recompiled(healthy, net, request, targets, settings, observer, reason)


def _may_work_otherwise(mistake: CollcError) -> bool:
    """Return whether other trees, or another scheduler, may do better."""
    return mistake.is_only(*_OTHERS) and mistake.exit_status != 2


# ---- the request after faults


def request_after(request: CollectiveRequest, net: Broken) -> CollectiveRequest:
    """Return a request on the broken network, with the ranks that are left; raise C0343 if it needs others."""
    problem = request.problem
    collective = _carried(problem.collective, net, problem.topology.names)
    changed = attrs.evolve(problem, topology=net.topology, collective=collective, trees=None, shares=None)
    return attrs.evolve(request, problem=changed)


def _carried(collective: Collective, net: Broken, names: Sequence[str]) -> Collective:
    """Return the same collective of the ranks that are left."""
    rank = net.rank.tolist()
    lost = [old for old, new in enumerate(rank) if new < 0]
    if not lost:
        return collective
    if collective.root is not None and rank[collective.root] < 0:
        hint = "name another root in the `.coll` file, and compile it"
        raise error("C0343", f"rank {names[collective.root]}, the root of {collective.name}, is gone", hint=hint)
    if collective.kind == CUSTOM:
        message = f"rank {names[lost[0]]} is gone, and {collective.name} names its ranks by its conditions"
        raise error("C0343", message, hint="write the conditions for the ranks that are left, and compile them")
    members = collective.members
    left = None if members is None else tuple(rank[old] for old in members if rank[old] >= 0)
    if left is not None and not left:
        raise error("C0343", f"all members of {collective.name} are gone")
    return attrs.evolve(
        collective, num_ranks=len(rank) - len(lost), members=left, weights=_weights(collective, rank),
        root=None if collective.root is None else rank[collective.root],
    )  # fmt: skip


def _weights(collective: Collective, rank: Sequence[int]) -> tuple[int, ...] | None:
    """Return the weights of the shards of ranks that are left."""
    if collective.weights is None:
        return None
    stays = np.array([rank[old] >= 0 for old in collective.ranks.tolist()])
    weights = np.array(collective.weights, dtype=object)
    kept = weights.reshape(len(stays), -1)[stays] if len(weights) > len(stays) else weights[stays]
    found = kept[:, stays].ravel() if len(weights) > len(stays) else kept
    if not any(found):
        raise error("C0343", f"no rank that is left has data in {collective.name}")
    return tuple(int(weight) for weight in found)


# ---- trees


def _forest_scheduler(healthy: CollectiveResult) -> Pass | None:
    """Return the scheduler that grows the trees of a result again; None if all trees must be new, or there are none."""
    if healthy.forest is None or healthy.forest.in_network or healthy.algorithms:
        return None
    found = scheduler_of(healthy)
    if found is None and healthy.forest.scheduler in PASSES:  # trees that were read
        found = pass_class(healthy.forest.scheduler)().in_pieces(healthy.forest.pieces)
    return None if found is None else found.regrowing(healthy.request.problem, healthy.choice is not None)


class _Trees(Mapping[Pass, Scheduled]):
    """The trees after faults by the scheduler that makes them, which may have another number of trees or pieces."""

    def __init__(self, base: Pass, make: Callable[[Pass], Scheduled]) -> None:
        self.base, self.make = base, make

    def __contains__(self, this: object) -> bool:
        if not isinstance(this, Pass) or type(this) is not type(self.base):
            return False
        numbers = {knob.option: getattr(self.base, knob.option) for knob in self.base.varies}
        return bool(attrs.evolve(this, **numbers) == self.base)

    def __getitem__(self, this: Pass) -> Scheduled:
        if this not in self:
            raise KeyError(this)
        return self.make(this)

    def __iter__(self) -> Iterator[Pass]:
        yield self.base

    def __len__(self) -> int:
        return 1


def _with_trees(
    healthy: CollectiveResult, forest: Forest | SymmetricForest, scheduler: Pass, net: Broken,
    request: CollectiveRequest,
    targets: Sequence[Target], settings: Settings, observer: Observer | None,
) -> CollectiveResult | None:  # fmt: skip
    """Return the result with the trees that stay; None if the scheduler cannot grow the others, nor all of them."""
    trees = forest if isinstance(forest, Forest) else forest.unfold()
    before = Kept(trees, net.rank, net.link, net.touched)
    counts: list[tuple[int, int]] = []
    refused: list[Pass] = []

    def make(this: Pass) -> Scheduled:
        found = this.regrown(request.problem, before)
        if found is None:
            refused.append(this)
            return cast("Scheduled", this.run(request.problem))  # it gives what it gave for the healthy network
        counts.append((found.kept, found.new))
        return cast("Scheduled", this.resized(request.problem, found.forest))

    schedule = ScheduleRequest(scheduler.name, _options(scheduler), span=request.schedule.span)
    request = attrs.evolve(request, schedule=attrs.evolve(schedule, instances=request.schedule.instances))
    try:
        found = _compiled(request, targets, settings, observer, _Trees(scheduler, make))
    except CollcError:
        if refused:
            return None
        raise
    if refused:
        return None
    kept, new = counts[-1]
    return attrs.evolve(found, replan=Replan(healthy, net, "kept", kept, new))


def _options(scheduler: Pass) -> tuple[Option, ...]:
    """Return the options of a scheduler that are not the default ones, as a specification gives them."""
    values = ((field.name, getattr(scheduler, field.name), field.default) for field in attrs.fields(type(scheduler)))
    return tuple(Option(name.replace("_", "-"), value) for name, value, default in values if value != default)


# ---- other schedules


def _recompiled(
    healthy: CollectiveResult, net: Broken, request: CollectiveRequest, targets: Sequence[Target], settings: Settings,
    observer: Observer | None, reason: str = "",
) -> CollectiveResult:  # fmt: skip
    """Return the result of the same scheduler, by fewer trees if need be, or of `auto` if that does not work.

    ``reason`` says why trees could not stay. If a limit is exceeded in every way, the first one is raised.
    """
    wrong: CollcError | None = None
    attempts = _attempts(healthy, request.schedule)
    for number, schedule in enumerate(attempts):
        last = number + 1 == len(attempts)
        tried = attrs.evolve(request, schedule=schedule)
        try:
            found = compile_collective(tried, targets, attrs.evolve(settings, hints=settings.hints and last), observer)
        except CollcError as mistake:
            if last or not _may_work_otherwise(mistake):
                raise (wrong if wrong is not None and wrong.is_only(Kind.LIMIT) else mistake) from None
            wrong = wrong or mistake
            continue
        if wrong is not None:
            reason = f"{attempts[0].scheduler}: {wrong.diagnostics[0].message}"
        how: Literal["recompiled", "auto"] = "auto" if schedule.scheduler != attempts[0].scheduler else "recompiled"
        return attrs.evolve(found, settings=settings, replan=Replan(healthy, net, how, reason=reason))
    raise AssertionError("there is a way")


def _attempts(healthy: CollectiveResult, schedule: ScheduleRequest) -> list[ScheduleRequest]:
    """Return the schedulers to compile by: that of before, its trees in a number that fits, then `auto`."""
    if schedule.scheduler == "steps" and healthy.schedule is not None:  # a schedule that was read
        schedule = ScheduleRequest(healthy.schedule.scheduler, span=schedule.span)
    attempts = [schedule]
    by_size = None
    if schedule.scheduler != "auto":
        by_size = pass_class(scheduler_pass(schedule.scheduler, schedule.span)).by_size
    if by_size is not None and not any(one.name == by_size[0] for one in schedule.options):
        attempts.append(attrs.evolve(schedule, options=(*schedule.options, Option(*by_size))))
    if schedule.scheduler != "auto":
        attempts.append(ScheduleRequest("auto", span=schedule.span))
    return attempts


def is_written_by_hand(healthy: CollectiveResult) -> bool:
    """Return whether a user wrote the schedule of a result."""
    return _by_hand(healthy) is not None


def _by_hand(healthy: CollectiveResult) -> Schedule | None:
    """Return the schedule of a result that a user wrote; None for the others."""
    known = healthy.request.schedule.schedule
    if isinstance(known, Schedule):
        return known
    read = healthy.schedule if scheduler_of(healthy) is None else None
    return read if isinstance(read, Schedule) and is_by_hand(read.scheduler) else None


def _with_steps(
    healthy: CollectiveResult, steps: Schedule, net: Broken, request: CollectiveRequest, targets: Sequence[Target],
    settings: Settings, observer: Observer | None,
) -> CollectiveResult:  # fmt: skip
    """Return the result of a schedule written by hand, on the same links; raise C0344 if some of these are gone."""
    lost = (net.link < 0)[steps.routes.links]
    row = np.flatnonzero(np.add.reduceat(lost, steps.routes.start[:-1].astype(np.int64))[steps.route] > 0)
    if len(row) or (net.rank < 0).any():
        raise _lost(healthy, steps, net, row)
    used, route = np.unique(steps.route, return_inverse=True)
    routes = Routes.of([net.link[steps.routes.links_of(one)].tolist() for one in used.tolist()])
    if net.topology.is_direct:
        route, routes = routes.links[route], Routes.direct(net.topology.num_links)
    schedule = attrs.evolve(
        steps, topology=net.topology, collective=request.problem.collective, route=route, routes=routes
    )
    request = attrs.evolve(request, schedule=attrs.evolve(request.schedule, scheduler="steps", schedule=schedule))
    found = compile_collective(request, targets, settings, observer)
    return attrs.evolve(found, replan=Replan(healthy, net, "unchanged"))


def _lost(healthy: CollectiveResult, steps: Schedule, net: Broken, rows: Array) -> CollcError:
    """Return the error for a schedule by hand that needs what is gone, with the place of its first such transfer."""
    request, names = healthy.request, steps.topology.names
    span = request.schedule.span
    hint = f"compile it by another scheduler: `schedule {request.name} using auto;`, or change these transfers"
    if not len(rows):
        first = names[int(np.argmax(net.rank < 0))]
        message = f"the schedule of `{request.name}` is written by hand, and rank {first} is gone"
        return error("C0344", message, span=span, hint=hint)
    row, places = int(rows[0]), request.schedule.rows
    span = span if places is None else places.of(row) or span
    more = f", and {len(rows) - 1} more" if len(rows) > 1 else ""
    ends = f"from {names[int(steps.src[row])]} to {names[int(steps.dst[row])]}"
    message = f"the schedule of `{request.name}` sends {ends} over a link that is gone{more}"
    return error("C0344", message, span=span, hint=hint)


def _compiled(
    request: CollectiveRequest, targets: Sequence[Target], settings: Settings, observer: Observer | None,
    ready: Mapping[Pass, Scheduled],
) -> CollectiveResult:  # fmt: skip
    """Return the result of schedules that are ready, for targets of all kinds."""
    scheduled = [target for target in targets if needs_schedule(target)]
    found = compile_decided(request, scheduled, settings, observer, ready=ready)
    return found if len(scheduled) == len(targets) else emit_direct(found, targets, settings, observer)
