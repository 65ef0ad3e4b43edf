"""Compiling a collective by a given scheduler, for every target, and adding files of several algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs

from collc.backends.base import Target, Window
from collc.ir.diagnostic import CollcError
from collc.ir.levels import Executable, Scheduled
from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import CollectiveRequest, Problem
from collc.ir.symmetric_program import AnyProgram
from collc.passes.base import Pass

from .bounding import ScheduleCosts
from .fitting import Fitted
from .later import Deferred
from .maker import Maker, program_of
from .other_ways import fit_in_some_way
from .pipeline import is_by_hand, plan
from .plan import Plan
from .relaying import judged
from .result import CollectiveResult, Observer, Settings
from .session import Session
from .spans import Timing

__all__ = ["compile_decided", "emit_selected", "level_of"]


def level_of(target: Target | None, until: type) -> type:
    """Return the IR level at which a target's pipeline ends, no later than ``until``."""
    level = target.level if target is not None else ""
    if until is Schedule or level == "schedule":
        return Schedule
    if level != "one-sided":
        return Program
    from collc.ir.one_sided.program import OneSided

    return OneSided


def compile_decided(
    request: CollectiveRequest,
    targets: Sequence[Target],
    settings: Settings,
    observer: Observer | None = None,
    start: Executable | None = None,
    ready: Mapping[Pass, Scheduled] | None = None,
    window: Window | None = None,
    timings: list[Timing] | None = None,
) -> CollectiveResult:
    """Compile one collective by a given scheduler.

    ``ready`` are schedules that `auto` made already, by the pass that makes them; if it is given, the user set none of
    the scheduler's options. With a ``window``, files are for calls of these sizes; the caller writes the files of
    targets that hold several algorithms. ``timings`` gets those of all steps, also if an error is raised.
    """
    session = Session(request, settings, observer, start, ready, window)
    if timings is not None:
        session.timings = timings
    each = targets or (None,)
    plans = _plans(session, each)
    maker = Maker(session, share=len(plans) > 1)
    for chain in plans:
        maker.announce(chain)
    if start is not None:
        maker.runner.accept(start)
    rest = None
    if not targets:
        plans[0], rest = plans[0].split()
    try:
        fitted = [
            fit_in_some_way(maker, session.first, chain, target) for target, chain in zip(each, plans, strict=True)
        ]
    except CollcError as mistake:
        raise maker.culprits.reconsider(mistake) from mistake.__cause__
    return _result(maker, each, fitted, rest)


def _plans(session: Session, targets: Sequence[Target | None]) -> list[Plan]:
    request, settings, start = session.request, session.settings, type(session.first)
    uneven = request.problem.collective.weights is not None
    early = uneven or request.problem.collective.contributors is not None
    for target in targets:
        # A pass may turn it into a collective of another name; targets that copy only, or only add, fail on it.
        if early or (target is not None and target.level == "one-sided"):
            _require(session, target)
    plans = (
        plan(
            settings.recipe, request.schedule, _narrowed(t, session.window), start=start,
            until=level_of(t, settings.until), uneven=uneven, by_hand=_is_by_hand(session),
            in_network=_may_share(session),
        )
        for t in targets
    )  # fmt: skip
    return [attrs.evolve(chain, target=t) for chain, t in zip(plans, targets, strict=True)]


def _is_by_hand(session: Session) -> bool:
    """Return whether the user wrote the schedule: in the specification, or in one whose IR was printed."""
    first = session.first
    known = first if isinstance(first, Schedule) else session.request.schedule.schedule
    return known is not None and is_by_hand(known.scheduler)


def _may_share(session: Session) -> bool:
    """Return whether the schedule shares links in switches, or may do so once it is made."""
    first = session.first
    if isinstance(first, Schedule | Forest):
        return first.in_network
    return isinstance(first, Problem) and first.topology.in_network


def _narrowed(target: Target | None, window: Window | None) -> Target | None:
    """Return the target for the calls of a window, of whose sizes its limits may tell."""
    if target is None or window is None or target.level != "one-sided":
        return target
    return target.within(window) or target


def _require(session: Session, target: Target | None) -> None:
    """Raise the target's error for the requested collective."""
    if target is not None:
        try:
            target.require(judged(target, session.request.problem.collective))
        except CollcError as mistake:
            raise session.places.of_target(mistake, target) from None


def _result(
    maker: Maker, targets: Sequence[Target | None], fitted: Sequence[Fitted], rest: Plan | None
) -> CollectiveResult:
    """Return the result for all targets; ``rest`` leads from the schedule to the program if no target asks for it."""
    session, schedule, forest = maker.session, maker.runner.schedule, maker.runner.forest
    programs = [ir for _, ir, _ in fitted if isinstance(ir, AnyProgram)]
    program = None
    if rest is not None and schedule is not None:
        program = Deferred(partial(program_of, Session(session.request, session.settings, start=schedule), rest))
    return CollectiveResult(
        session.request.name, session.request, session.settings, schedule,
        programs[0] if programs else maker.runner.program,
        later=program, costs=None if schedule is None else ScheduleCosts(schedule, forest),
        emitted=tuple(files for _, _, files in fitted if files is not None),
        reports=tuple(session.reports), timings=tuple(session.timings), plans=tuple(chain for chain, _, _ in fitted),
        forest=forest, window=session.window, warnings=tuple(session.warnings),
        remarks=tuple(dict.fromkeys(session.remarks)), selected=_selected(session, targets, fitted),
        last=_last(session, targets, fitted),
    )  # fmt: skip


def _last(
    session: Session, targets: Sequence[Target | None], fitted: Sequence[Fitted]
) -> tuple[tuple[Target, Executable], ...]:
    """Return the IR that the files of every target were written from, if the settings keep it."""
    pairs = zip(targets, fitted, strict=True) if session.settings.keeps_last else ()
    return tuple((target, ir) for target, (_, ir, _) in pairs if target is not None)


def _selected(
    session: Session, targets: Sequence[Target | None], fitted: Sequence[Fitted]
) -> tuple[tuple[Target, Executable], ...]:
    """Return the IRs for targets that hold several algorithms, of which this is one."""
    pairs = zip(targets, fitted, strict=True)
    return tuple(
        (target, ir) for target, (_, ir, _) in pairs
        if session.window is not None and target is not None and target.selects
    )  # fmt: skip


def emit_selected(
    target: Target, parts: Sequence[tuple[Window, Executable]], result: CollectiveResult, observer: Observer | None
) -> CollectiveResult:
    """Return a result with the files of a target that holds several algorithms, read back."""
    session = Session(result.request, result.settings, observer)
    emission = Maker(session).emission
    parts = [(window, emission.narrowed(target, ir) or ir) for window, ir in parts]
    files = emission.emit(
        target, None, lambda: target.emit_selected(parts), check=lambda files: target.check_selected(parts, files)
    )
    return attrs.evolve(
        result, emitted=(*result.emitted, files), reports=(*result.reports, *session.reports),
        timings=(*result.timings, *session.timings),
    )  # fmt: skip
