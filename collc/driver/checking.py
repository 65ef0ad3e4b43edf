"""What is wrong with a request, as far as it can be told without synthesis.

A scheduler and a target judge whether they take a collective on its network with their options. A schedule written by
hand is executed if it is small. Whether a program fits a target's limits, or a search ends within its limits, shows
only when a schedule is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from collc.ir.diagnostic import CollcError, error
from collc.ir.spec import CollectiveRequest, Spec
from collc.passes.applying import require_listed
from collc.passes.schedulers import candidates, usual
from collc.passes.synthesis.groups.applied import require_scheduled

from ..files.naming import main_paths
from ..registry.classes import pass_class, scheduler_pass
from ..registry.options import build
from .compilation import Job, joined, make_jobs
from .placing import Places, wrong_by_hand
from .relaying import judged, with_relays
from .result import Settings
from .spans import span

__all__ = ["MOST_EXECUTED", "mistakes"]

#: the most transfers of a schedule written by hand that is executed, which takes some tenths of a second
MOST_EXECUTED = 20_000


def mistakes(spec: Spec, stem: str) -> CollcError | None:
    """Return everything that is wrong with the collectives of a specification; None if nothing was found.

    ``stem`` is the name of the specification's file without its suffix, which outputs may have.
    """
    if not spec.collectives:
        return None
    try:
        jobs, _ = make_jobs(spec)
    except CollcError as wrong:
        return wrong
    found = [one for job in jobs for one in _of_job(job)] or _of_names(jobs, stem)
    return joined(found) if found else None


def _of_job(job: Job) -> list[CollcError]:
    with span(job.request.name, "collective"):
        return _judged_job(job)


def _judged_job(job: Job) -> list[CollcError]:
    request, found = job.request, list[CollcError]()
    try:
        _judge_schedule(request)
    except CollcError as wrong:
        found.append(wrong)
    for target in job.targets:
        try:
            target.require(judged(target, request.problem.collective))
            if target.level == "problem":
                target.emit(request.problem)
        except CollcError as wrong:
            found.append(Places(request).of_target(wrong, target))
    return found


def _of_names(jobs: Sequence[Job], stem: str) -> list[CollcError]:
    """Return what is wrong with the names of the outputs of ``emit``."""
    try:
        main_paths([(job.request.name, target) for job in jobs for target in job.targets], stem, None)
    except CollcError as wrong:
        return [wrong]
    return []


def _judge_schedule(request: CollectiveRequest) -> None:
    """Raise the mistakes of a scheduler's options, or of a schedule written by hand, or what does not apply."""
    request = with_relays(request)
    schedule = request.schedule
    if schedule.scheduler == "auto":
        _judge_auto(request)
        return
    name = scheduler_pass(schedule.scheduler, schedule.span)
    cls = pass_class(name)
    this = build(cls, f"scheduler `{schedule.scheduler}`", schedule.options, span=schedule.span)
    if this.by_hand:
        _judge_by_hand(request)
        return
    try:
        require_listed(schedule.scheduler, request.problem)
        require_scheduled(this, request.problem)
    except CollcError as wrong:
        raise Places(request).placed(wrong, name) from None
    requested = request.problem.collective
    if (turned := this.turned(requested, requested)) != requested:
        from .emission import other_collective
        from .session import Session

        raise other_collective(Session(request, Settings()), turned)


def _judge_by_hand(request: CollectiveRequest) -> None:
    """Execute a small schedule written by hand; raise C0401 if it is wrong, C0014 if there is none."""
    from collc.ir.schedule import Forest
    from collc.ir.verify import verify

    schedule = request.schedule.schedule
    if schedule is None:
        hint = f"write `schedule {request.name} using steps {{ ... }}`"
        raise error("C0014", f"`{request.name}` has no schedule written by hand", span=request.span, hint=hint)
    if isinstance(schedule, Forest) or len(schedule) > MOST_EXECUTED:
        return
    with span("verify", "check"):
        report = verify(schedule)
    if not report.ok:
        raise CollcError([wrong_by_hand(request, check) for check in report.failed])


def _judge_auto(request: CollectiveRequest) -> None:
    """Raise wrong options of ``auto``, and the mistake that it raises if none of its candidates applies."""
    schedule, problem = request.schedule, request.problem
    names = candidates()
    if schedule.options:
        from ..selection.options import Auto

        names = build(Auto, "scheduler `auto`", schedule.options, span=schedule.span).names()
    first = usual(problem.collective.name, not problem.topology.is_direct)
    wrong: dict[str, CollcError] = {}
    for name in sorted(names, key=lambda name: name != first):  # hardly ever more than the first
        try:
            require_listed(name, problem)
            require_scheduled(pass_class(scheduler_pass(name))(), problem)
        except CollcError as refused:
            wrong[name] = refused
        else:
            return
    from ..selection.options import Auto
    from ..selection.selector import unnamed

    mistake = wrong.get(first) or next(iter(wrong.values()))
    auto = build(Auto, "scheduler `auto`", schedule.options)
    raise Places(request).placed(unnamed(mistake, auto))
