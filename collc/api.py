"""The Python API: what the command does, without files, signals or printing.

Every mistake is a :class:`CollcError` with ``.diagnostics``. Nothing is global: calls from several threads do
not meet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from collc.backends.base import Artifact
from collc.ir.cost import Cost
from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Spec
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import Topology
from collc.ir.verify import Report

from .compilation import Loading, Progress, load_spec, make_jobs, read_ir, run_jobs, sniff
from .driver import CollectiveResult, Settings
from .elements import Element, parse_elements
from .files import Output, check_writable, read_text, write_all
from .internal import InternalError, memory_error
from .naming import name_files
from .pipeline import LEVELS, Recipe
from .verification import verify_text

if TYPE_CHECKING:
    from .finding import Frontier

__all__ = [
    "CollcError", "CollectiveResult", "Diagnostic", "InternalError", "Result", "compile", "compile_source", "convert",
    "find", "topology", "verify",
]  # fmt: skip

T = TypeVar("T")
Path = str | os.PathLike[str]
Param = int | Fraction | str | bool | tuple[int, ...]


@attrs.frozen(eq=False)
class Result:
    """What a compilation made: one :class:`CollectiveResult` for every collective, by name.

    ``diagnostics`` are the warnings. ``schedule``, ``program`` and ``cost`` are those of the one collective;
    where there are several, ask ``collectives[name]``.
    """

    spec: Spec
    collectives: dict[str, CollectiveResult]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def schedule(self) -> Schedule | SymmetricSchedule | Forest:
        """The schedule of the one collective; of a large symmetric network its template."""
        found = self._only("schedule").schedule
        if found is None:
            raise error("C0019", "there is no schedule: the compilation began with a program")
        return found

    @property
    def program(self) -> Program:
        """The program of the one collective, as its first target was given it."""
        found = self._only("program").program
        if found is None:
            raise error("C0019", "there is no program: the compilation ended with a schedule")
        return found

    @cached_property
    def cost(self) -> Cost:
        """Steps, bandwidth time and bounds of the one collective, exact."""
        return self._only("cost").cost

    @cached_property
    def artifacts(self) -> dict[str, Artifact]:
        """The main file of every collective's first target, by the collective's name; ``files`` has them all."""
        return {name: one.artifacts[0] for name, one in self.collectives.items() if one.artifacts}

    @cached_property
    def files(self) -> dict[str, Artifact]:
        """Every file by the name :meth:`write` gives it."""
        emitted = [(one.name, target, made) for one in self.collectives.values() for target, made in one.emitted]
        verify = all(one.settings.verify != "off" for one in self.collectives.values())
        return {os.path.basename(file.path): file.artifact for file in name_files(emitted, "", "./", verify=verify)}

    def write(self, directory: Path = ".") -> list[str]:
        """Write every file into ``directory``, made if it is not there, or none; return their paths."""
        folder = os.fspath(directory)
        if not self.files:
            raise error("C0019", "there is nothing to write: no target was asked for", hint='give target="msccl-xml"')
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as problem:
            reason = (problem.strerror or str(problem)).lower()
            raise error("C0004", f"cannot make the directory `{folder}`: {reason}") from None
        outputs = [Output(os.path.join(folder, name), file.text) for name, file in self.files.items()]
        check_writable([output.path for output in outputs], self.spec.files)
        write_all(outputs)
        return [output.path for output in outputs]

    def _only(self, what: str) -> CollectiveResult:
        if len(self.collectives) != 1:
            names = ", ".join(self.collectives)
            raise error(
                "C0019",
                f"there are {len(self.collectives)} collectives ({names}), each with its own {what}",
                hint=f"ask for `result.collectives[NAME].{what}`",
            )
        return next(iter(self.collectives.values()))


def compile(path: Path, **options: Any) -> Result:
    """Compile a ``.coll`` file (or a printed schedule or program); options are those of :func:`compile_source`."""
    name = os.fspath(path)
    return compile_source(read_text(name), path=name, **options)


def compile_source(
    text: str,
    *,
    path: str = "<string>",
    target: str | Sequence[str] | None = None,
    params: Mapping[str, Param] | None = None,
    include_path: Sequence[Path] = (),
    collective: str | Sequence[str] = (),
    level: int = 2,
    passes: str | None = None,
    disable_passes: Iterable[str] = (),
    verify: str = "each",
    node_limit: int = 20000,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Result:
    """Compile a text and return schedules, programs and files, all verified.

    ``target`` is as ``-t`` (``"msccl-xml{runtime=rccl}"``), several in a list; without one the text's own
    emits are made, and without those the program alone. ``params`` set the text's parameters, ``collective``
    chooses among its collectives, ``level``, ``passes``, ``disable_passes``, ``verify`` and ``node_limit``
    are as on the command line. Collectives are compiled in ``executor``'s workers where one is given.
    ``progress(what, done, total)`` is called from this thread. Raises CollcError.
    """

    def work() -> Result:
        loading = Loading(dict(params or {}), tuple(os.fspath(p) for p in include_path), node_limit)
        only = (collective,) if isinstance(collective, str) else tuple(collective)
        settings = Settings(_recipe(level, passes, disable_passes), _verify_mode(verify))
        return _compile(text, path, loading, _targets(target), only, settings, executor, progress)

    return _shielded("compile", work)


def convert(
    path: Path,
    *,
    target: str | Sequence[str],
    passes: str | None = None,
    verify: str = "each",
    collective: str | None = None,
    root: int | None = None,
) -> Result:
    """Make files for other targets of an MSCCL-XML file, anyone's, or of a printed IR.

    The algorithm is executed first, and refused where it is wrong. Its arrangement is kept where the target takes it,
    its protocol, sizes, uses and name where ``target`` does not say otherwise; what could not be kept is in
    ``diagnostics``. ``passes`` run instead of those that are needed. ``collective`` says what a file performs that does
    not name it, ``root`` for which root it must be right. Raises CollcError.
    """

    def work() -> Result:
        from .conversion import convert_text

        name = os.fspath(path)
        settings = Settings(_recipe(2, passes, ()), _verify_mode(verify))
        made = convert_text(
            read_text(name), name, _targets(target), settings=settings, collective=collective, root=root
        )  # fmt: skip
        return Result(made.spec, {made.result.name: made.result}, made.warnings)

    return _shielded("convert", work)


def verify(
    what: Path | Schedule | SymmetricSchedule | Forest | Program,
    *,
    runtime: str | None = None,
    multiprocessors: int | None = None,
) -> Report:
    """Execute a file (``.coll``, printed IR, MSCCL-XML) or an IR symbolically and return what was found.

    The report's ``ok`` says whether all is right.

    ``runtime`` names the runtime whose rules an MSCCL-XML file is judged by, ``multiprocessors`` how many
    threadblocks of a rank such a file, or a printed program, may have. Raises CollcError for what cannot be read.
    """
    if isinstance(what, (Schedule, SymmetricSchedule, Forest, Program)):
        from collc.ir.verify import verify as verify_level

        return _shielded("verify", lambda: verify_level(what))
    path = os.fspath(what)
    return _shielded(
        "verify", lambda: verify_text(read_text(path), path, runtime=runtime, multiprocessors=multiprocessors)
    )


def topology(expression: str) -> Topology:
    """Return the topology of an expression of the language.

    >>> topology("torus(3, 3, 2)").num_ranks
    18
    """
    from collc.frontends import coll

    return _shielded("topology", lambda: coll.topology(expression))


def find(
    *,
    nodes: int,
    degree: int,
    bidirectional: bool = False,
    objective: str = "allreduce",
    alpha: str | Fraction | float | None = None,
    size: str | int | None = None,
    bandwidth: str | Fraction | float | None = None,
    refresh: bool = False,
    effort: int | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Frontier:
    """Find the best topologies of so many nodes and this degree: ``.frontier`` (rows), ``.best``, ``.bound``.

    Looked up in the database that comes with collc; what it does not have, or everything with ``refresh``, is searched
    with ``effort`` evaluations, in ``executor``'s workers where one is given. ``alpha`` (seconds, or ``"10us"``),
    ``size`` (bytes, or ``"1MiB"``) and ``bandwidth`` (bytes per second out of a node, or ``"100Gbps"``) say for what
    the best is the best. ``progress(what, done, total)`` is called from this thread. Raises CollcError.

    >>> found = find(nodes=9, degree=4)
    >>> found.best.T_L, str(found.best.T_B), found.bound
    (2, '8/9', (2, Fraction(8, 9)))
    """
    from . import finding as finder
    from .workers import Work

    def work() -> Frontier:
        wanted = finder.wanted(nodes, degree, bidirectional, objective, alpha, size, bandwidth)
        evaluations = finder.EVALUATIONS if effort is None else finder.whole("effort", effort)
        return finder.find(
            wanted, refresh=refresh, evaluations=evaluations, seed=seed, work=Work(executor, progress)
        )  # fmt: skip

    return _shielded("find", work)


def _compile(
    text: str, path: str, loading: Loading, targets: tuple[Element, ...], only: tuple[str, ...], settings: Settings,
    executor: Executor | None, progress: Progress | None,
) -> Result:  # fmt: skip
    start = None
    if sniff(text) == "ir":
        spec, start = read_ir(text, path)
    else:
        spec = load_spec(text, path, loading)
    jobs, warnings = make_jobs(spec, targets, only, start)
    if any(job.targets for job in jobs):
        jobs = [job for job in jobs if job.targets]
    results = run_jobs(jobs, settings, executor=executor, progress=progress)
    found = [*spec.warnings, *warnings, *(warning for result in results for warning in result.warnings)]
    return Result(spec, {result.name: result for result in results}, tuple(found))


def _targets(target: str | Sequence[str] | None) -> tuple[Element, ...]:
    given = () if target is None else (target,) if isinstance(target, str) else tuple(target)
    return tuple(element for text in given for element in parse_elements(text, "target"))


def _recipe(level: int, passes: str | None, disabled: Iterable[str]) -> Recipe:
    if str(level) not in LEVELS:
        raise error("C0001", f"there is no level {level}: levels are 0 to {len(LEVELS) - 1}", exit_status=2)
    elements = None if passes is None else parse_elements(passes, "passes")
    return Recipe(str(level), elements, tuple(disabled))


def _verify_mode(mode: str) -> str:
    if mode not in ("each", "full", "off"):
        raise error("C0001", f"verify needs one of each, full, off, found `{mode}`", exit_status=2)
    return mode


def _shielded(what: str, work: Callable[[], T]) -> T:
    """Return what ``work`` does; whatever else than a CollcError it raises becomes one."""
    try:
        return work()
    except CollcError:
        raise
    except MemoryError:
        raise memory_error(f"`{what}`") from None
    except Exception as problem:
        raise InternalError(f"{what} failed: {type(problem).__name__}: {problem}") from problem
