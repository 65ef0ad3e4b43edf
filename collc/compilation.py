"""From a text to results: what the command and the API share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from functools import partial
from typing import Any

import attrs

from collc.backends import TARGETS
from collc.backends.base import Target
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Diagnostic, error, nearest, warning
from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import CollectiveRequest, EmitRequest, Option, Problem, ScheduleRequest, Spec
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.text import parse_ir
from collc.ir.topology import Topology
from collc.passes import SCHEDULERS

from .driver import CollectiveResult, Observer, Settings, compile_collective
from .elements import Element
from .naming import identifier, stem_of
from .options import build
from .registry import target_class

__all__ = ["Job", "Loading", "Progress", "load_spec", "make_jobs", "read_ir", "run_jobs", "sniff"]

#: ``progress(what, done, total)``: called when a step begins and when a collective is done.
Progress = Callable[[str, int, int], None]
Level = Schedule | SymmetricSchedule | Forest | Program


@attrs.frozen
class Loading:
    """How a ``.coll`` text is read: parameters set from outside, where includes are looked for, the limit on nodes."""

    params: dict[str, Any] = attrs.Factory(dict)
    include_path: tuple[str, ...] = ()
    node_limit: int = 20000


@attrs.frozen(eq=False)
class Job:
    """One collective to compile for some targets; ``start`` is an IR to begin with instead of synthesis."""

    request: CollectiveRequest
    targets: tuple[Target, ...]
    start: Level | None = None


def sniff(text: str) -> str:
    """Return what a text is, by its first characters: ``ir``, ``xml`` or ``coll``.

    >>> sniff("collc-ir 1"), sniff("<algo/>"), sniff("topology t = torus(3);")
    ('ir', 'xml', 'coll')
    """
    head = text[:65536].lstrip("\ufeff").lstrip()
    if head.startswith("collc-ir"):
        return "ir"
    return "xml" if head.startswith("<") else "coll"


def load_spec(text: str, path: str, loading: Loading) -> Spec:
    """Return the specification in a ``.coll`` text, or an IR as a specification of its own."""
    if sniff(text) == "xml":
        raise error(
            "C0018",
            f"`{path}` is XML, not a `.coll` file",
            hint="`collc verify`, `convert`, `run` and `simulate` read MSCCL-XML files",
            exit_status=1,
        )
    from collc.frontends import coll

    return coll.load(
        path, text=text, params=loading.params, include_path=loading.include_path,
        node_limit=loading.node_limit, schedulers=tuple(SCHEDULERS), targets=tuple(TARGETS),
    )  # fmt: skip


def read_ir(text: str, path: str) -> tuple[Spec, Level]:
    """Return a printed schedule, forest or program, and a specification that asks for what it does."""
    level = parse_ir(text, path)
    if isinstance(level, (Topology, Collective)):
        found = type(level).__name__.lower()
        raise error(
            "C0018",
            f"`{path}` holds a {found}, of which nothing can be made",
            hint="print a schedule or program",
        )
    if isinstance(level, Program):
        topology = Topology.from_links("none", level.collective.num_ranks, [])
        name = level.name
    else:
        topology, name = level.topology, identifier(stem_of(path))
    request = CollectiveRequest(name, topology.name, Problem(topology, level.collective), ScheduleRequest("steps"), ())
    return Spec({topology.name: topology}, {name: request}, (path,)), level


def make_jobs(
    spec: Spec, targets: Sequence[Element] = (), only: Sequence[str] = (), start: Level | None = None
) -> tuple[list[Job], list[Diagnostic]]:
    """Return a job for every collective that has a target, and warnings about those that have none.

    ``targets`` replace the specification's emits; options that only the specification gives for the same
    target stay. Raises C0016 where there is no collective and C0007, C0009, C0010 for targets, all at once.
    """
    requests = _chosen(spec, only)
    jobs, warnings, wrong = list[Job](), list[Diagnostic](), list[CollcError]()
    for request in requests:
        wanted = [_merged(request, element) for element in targets] or [
            Element(emit.target, emit.options, emit.span) for emit in request.emits
        ]
        try:
            jobs.append(Job(request, tuple(_target(element) for element in wanted), start))
        except CollcError as mistake:
            wrong.append(mistake)
    if wrong:
        unique = dict.fromkeys(d for mistake in wrong for d in mistake.diagnostics)
        raise CollcError(list(unique), max(mistake.exit_status for mistake in wrong))
    for job in jobs:
        if not job.targets and any(other.targets for other in jobs):
            name = job.request.name
            message = f"collective `{name}` is not emitted, so nothing is made of it"
            warnings.append(warning("C0017", message, span=job.request.span, notes=[f"write `emit {name} as TARGET;`"]))
    return jobs, warnings


def _chosen(spec: Spec, only: Sequence[str]) -> list[CollectiveRequest]:
    if not spec.collectives:
        raise error(
            "C0016",
            "there is no collective to compile",
            notes=[f"in {spec.files[0]}"] if spec.files else [],
            hint="declare one: `collective NAME = allreduce on TOPOLOGY;`",
        )
    for name in only:
        if name not in spec.collectives:
            hint = nearest(name, spec.collectives) or f"there are {', '.join(spec.collectives)}"
            raise error("C0016", f"there is no collective `{name}`", hint=hint, exit_status=2)
    return [request for name, request in spec.collectives.items() if not only or name in only]


def _merged(request: CollectiveRequest, element: Element) -> Element:
    """Return a target of the command line with what the specification's one emit for the same target adds."""
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


def run_jobs(
    jobs: Sequence[Job],
    settings: Settings,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    observer: Observer | None = None,
) -> list[CollectiveResult]:
    """Compile every job, in an executor's workers where one is given; results keep the order of jobs.

    All jobs' mistakes are raised together; an InternalError is raised alone.
    """
    outcomes: list[CollectiveResult | CollcError | None] = [None] * len(jobs)
    tasks = _inline(jobs, settings, observer) if executor is None else _submitted(jobs, settings, executor)
    for done, (place, task) in enumerate(tasks):
        if progress:
            progress(jobs[place].request.name, done, len(jobs))
        try:
            outcomes[place] = task()
        except CollcError as mistake:
            outcomes[place] = mistake
        except BrokenExecutor as problem:
            message = f"a worker ended before `{jobs[place].request.name}` was compiled"
            raise error("C0024", message, notes=[str(problem) or type(problem).__name__]) from None
    if progress:
        progress("done", len(jobs), len(jobs))
    _raise([outcome for outcome in outcomes if isinstance(outcome, CollcError)])
    return [outcome for outcome in outcomes if isinstance(outcome, CollectiveResult)]


Task = tuple[int, Callable[[], CollectiveResult]]


def _inline(jobs: Sequence[Job], settings: Settings, observer: Observer | None) -> Iterator[Task]:
    for place, job in enumerate(jobs):
        yield place, partial(compile_collective, job.request, job.targets, settings, observer, job.start)


def _submitted(jobs: Sequence[Job], settings: Settings, executor: Executor) -> Iterator[Task]:
    """Submit every job and yield each as it is done."""
    pending = {
        executor.submit(compile_collective, job.request, job.targets, settings, None, job.start): place
        for place, job in enumerate(jobs)
    }
    for future in as_completed(pending):
        yield pending[future], future.result


def _raise(wrong: Sequence[CollcError]) -> None:
    """Raise what went wrong as one, the worst status of all; an internal error by itself."""
    if not wrong:
        return
    for mistake in wrong:
        if mistake.exit_status == 70:
            raise mistake
    unique = dict.fromkeys(d for mistake in wrong for d in mistake.diagnostics)
    raise (CollcError(list(unique), max(mistake.exit_status for mistake in wrong)) if len(wrong) > 1 else wrong[0])
