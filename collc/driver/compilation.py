"""From a specification to results, for the command and the API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from collc.backends.base import Target
from collc.ir.diagnostic import CollcError, Diagnostic, error, nearest, warning
from collc.ir.frozen import frozen
from collc.ir.levels import Executable
from collc.ir.node_names import split_name
from collc.ir.spec import CollectiveRequest, EmitRequest, Option, Spec

from ..messages.internal import InternalError
from ..registry.classes import target_class
from ..registry.elements import Element
from ..registry.options import build
from .blocks import Block, blocks_of
from .result import CollectiveResult, Observer, Settings

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future


__all__ = ["Failure", "Job", "compiled", "joined", "make_jobs", "run_jobs", "try_jobs", "with_read_files"]


@frozen(eq=False)
class Job:
    """One collective to compile for some targets; ``start`` is an IR to begin with instead of synthesis.

    ``block`` are the collectives that run at the same time, if there are any. Without targets, the schedule is that of
    the files of ``shown``.
    """

    request: CollectiveRequest
    targets: tuple[Target, ...]
    start: Executable | None = None
    block: Block | None = None
    shown: tuple[Target, ...] = ()

    @property
    def schedule_only(self) -> Job:
        """The job without targets, for the same schedule."""
        return attrs.evolve(self, targets=(), shown=self.targets)

    @property
    def divided(self) -> CollectiveRequest:
        """The request, with its shares of the links if it runs together with others."""
        return self.request if self.block is None or self.start is not None else self.block.divided(self.request)


@frozen(eq=False)
class Failure:
    """A collective that could not be compiled, by name, and its mistake."""

    name: str
    mistake: CollcError


def make_jobs(
    spec: Spec, targets: Sequence[Element] = (), only: Sequence[str] = (), start: Executable | None = None
) -> tuple[list[Job], list[Diagnostic]]:
    """Return a job for every collective that has a target, and warnings about those that have none.

    ``targets`` replace the specification's emits; options that only the specification gives for the same target stay.
    Raises C0016 if there is no collective and C0007, C0009, C0010 for targets, all at once.
    """
    requests = _selected(spec, only)
    jobs, warnings, wrong = list[Job](), list[Diagnostic](), list[CollcError]()
    blocks = blocks_of(spec, lambda request: _has_relays(request, targets))
    for request in requests:
        elements = _elements(request, targets)
        try:
            found = tuple(_for_roots(_target(element), request, element) for element in elements)
            jobs.append(Job(request, found, start, blocks.get(request.name)))
        except CollcError as mistake:
            wrong.append(mistake)
    if wrong:
        raise joined(wrong)
    for job in jobs:
        if not job.targets and any(other.targets for other in jobs):
            name = job.request.name
            message = f"collective `{name}` has no `emit`, so collc writes no file for it"
            warnings.append(warning("C0017", message, span=job.request.span, notes=[f"write `emit {name} as TARGET;`"]))
    return jobs, warnings


def with_read_files(spec: Spec, jobs: Sequence[Job]) -> Spec:
    """Return the specification with the files that targets read among its own: outputs depend on them."""
    read = dict.fromkeys(path for job in jobs for target in job.targets for path in target.reads)
    more = tuple(path for path in read if path not in spec.files)
    return attrs.evolve(spec, files=(*spec.files, *more)) if more else spec


def _selected(spec: Spec, only: Sequence[str]) -> list[CollectiveRequest]:
    if not spec.collectives:
        raise error(
            "C0016",
            "there is no collective to compile",
            notes=[f"in {spec.files[0]}"] if spec.files else [],
            hint="declare one: `collective NAME = allreduce on TOPOLOGY;`",
        )
    for name in only:
        if not any(name in (one, split_name(one)[0]) for one in spec.collectives):
            hint = (
                nearest(name, spec.collectives)
                or f"the file declares {', '.join(f'`{one}`' for one in spec.collectives)}"
            )
            raise error("C0016", f"there is no collective `{name}`", hint=hint, exit_status=2)
    return [
        request for name, request in spec.collectives.items()
        if not only or name in only or split_name(name)[0] in only
    ]  # fmt: skip


def _elements(request: CollectiveRequest, targets: Sequence[Element]) -> list[Element]:
    """Return the targets of a collective: those of the command line, else those of its emits."""
    return [_merged(request, element) for element in targets] or [
        Element(emit.target, emit.options, emit.span) for emit in request.emits
    ]


def _has_relays(request: CollectiveRequest, targets: Sequence[Element]) -> bool:
    """Return whether the files of all targets may have ranks that only relay."""
    from .relaying import leaves_out

    try:
        found = [_target(element) for element in _elements(request, targets)]
    except CollcError:
        return True  # jobs raise it
    return not any(leaves_out(target) for target in found)


def _merged(request: CollectiveRequest, element: Element) -> Element:
    """Return a target of the command line with the options of the specification's one emit for the same target."""
    same = [emit for emit in request.emits if emit.target == element.name]
    if len(same) != 1:
        return element
    given = {option.name.replace("_", "-") for option in element.options}
    return Element(element.name, (*_without(same[0], given), *element.options), element.span)


def _without(emit: EmitRequest, given: set[str]) -> list[Option]:
    return [option for option in emit.options if option.name.replace("_", "-") not in given]


def _target(element: Element) -> Target:
    cls = target_class(element.name, element.span)
    return build(cls, f"target `{element.name}`", element.options, span=element.span)


def _for_roots(target: Target, request: CollectiveRequest, element: Element) -> Target:
    """Return the target for the roots of a collective that has several; raise C0064 if its files are for one root."""
    from .direct import needs_schedule

    if request.roots is None or not needs_schedule(target):
        return target
    try:
        return target.for_roots(request.roots, request.roots.planned[0])
    except CollcError as mistake:
        span = element.span or request.span
        raise CollcError([attrs.evolve(one, span=one.span or span) for one in mistake.diagnostics]) from None


def run_jobs(
    jobs: Sequence[Job],
    settings: Settings,
    *,
    executor: Executor | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    observer: Observer | None = None,
) -> list[CollectiveResult]:
    """Compile every job, in an executor's workers if one is given; results keep the order of jobs.

    ``progress(name, done, total)`` is called before each collective, and at the end with the name ``done``.

    All jobs' mistakes are raised together; an InternalError is raised alone.
    """
    outcomes = try_jobs(jobs, settings, executor=executor, progress=progress, observer=observer)
    if wrong := [outcome.mistake for outcome in outcomes if isinstance(outcome, Failure)]:
        raise joined(wrong)
    return [outcome for outcome in outcomes if isinstance(outcome, CollectiveResult)]


def try_jobs(
    jobs: Sequence[Job],
    settings: Settings,
    *,
    executor: Executor | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    observer: Observer | None = None,
) -> list[CollectiveResult | Failure]:
    """Compile every job as :func:`run_jobs` does, and return a :class:`Failure` for each that cannot be compiled.

    An InternalError is raised when all jobs have run.
    """
    outcomes: dict[int, CollectiveResult | Failure] = {}
    tasks = _inline(jobs, settings, observer) if executor is None else _submitted(jobs, settings, executor)
    for done, (place, task) in enumerate(tasks):
        if progress:
            progress(jobs[place].request.name, done, len(jobs))
        try:
            outcomes[place] = task()
        except CollcError as mistake:
            outcomes[place] = Failure(jobs[place].request.name, mistake)
    if progress:
        progress("done", len(jobs), len(jobs))
    found = [outcomes[place] for place in range(len(jobs))]
    for outcome in found:
        if isinstance(outcome, Failure) and isinstance(outcome.mistake, InternalError):
            raise outcome.mistake
    return found


Task = tuple[int, Callable[[], CollectiveResult]]


def _inline(jobs: Sequence[Job], settings: Settings, observer: Observer | None) -> Iterator[Task]:
    for place, job in enumerate(jobs):
        yield place, partial(compiled, job, settings, observer)


def compiled(job: Job, settings: Settings, observer: Observer | None = None) -> CollectiveResult:
    """Compile one job; raise its mistakes."""
    from .compile import compile_collective  # `collc check` makes jobs and runs none

    return compile_collective(job.divided, job.targets, settings, observer, job.start, job.shown)


def _submitted(jobs: Sequence[Job], settings: Settings, executor: Executor) -> Iterator[Task]:
    """Submit every job and yield each when it is finished."""
    from ..processes.workers import completed
    from .compile import compile_collective

    requests = [job.divided for job in jobs]
    futures = [
        executor.submit(compile_collective, request, job.targets, settings, None, job.start, job.shown)
        for request, job in zip(requests, jobs, strict=True)
    ]
    for place in completed(futures):
        yield place, partial(_outcome, futures[place], jobs[place].request.name)


def _outcome(future: Future[CollectiveResult], name: str) -> CollectiveResult:
    from concurrent.futures import BrokenExecutor

    try:
        return future.result()
    except BrokenExecutor as problem:
        message = f"a worker ended before `{name}` was compiled"
        raise error("C0024", message, notes=[str(problem) or type(problem).__name__]) from None


def joined(wrong: Sequence[CollcError]) -> CollcError:
    """Return all mistakes as one with the highest exit status; a diagnostic that several hold is in it once."""
    if len(wrong) == 1:
        return wrong[0]
    unique = dict.fromkeys(d for mistake in wrong for d in mistake.diagnostics)
    return CollcError(list(unique), max(mistake.exit_status for mistake in wrong))
