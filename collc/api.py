"""The Python API: the command without files, signals and printing.

Every mistake is a :class:`CollcError` with ``.diagnostics``. There is no global state: several threads can call it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import attrs

from collc.backends.base import Artifact
from collc.ir.costs.cost import Cost
from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.ir.levels import Executable, Scheduled
from collc.ir.program import Program
from collc.ir.registry import consulting
from collc.ir.spec import Spec
from collc.ir.topology import Topology
from collc.ir.verify import Report

from .driver.compilation import Progress, make_jobs, run_jobs
from .driver.pipeline import LEVELS
from .driver.plan import Recipe
from .driver.result import CollectiveResult, Settings
from .files.naming import name_files
from .files.texts import Output, check_writable, read_text, write_all
from .messages.internal import InternalError, memory_error
from .reading import load
from .reading.base import ReadOptions
from .reading.loading import Loading
from .registry.elements import Element, parse_elements
from .tools.verification import verify_text

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    import networkx

    from .tools.finding import Frontier

    class Options(TypedDict, total=False):
        """The options of :func:`compile_source`."""

        target: str | Sequence[str] | None
        params: Mapping[str, Param] | None
        topologies: Mapping[str, Topology | networkx.Graph] | None
        include_path: Sequence[Path]
        collective: str | Sequence[str]
        level: int
        passes: str | None
        disable_passes: Iterable[str]
        verify: str
        node_limit: int
        executor: Executor | None
        progress: Progress | None


__all__ = [
    "CollcError", "CollectiveResult", "Diagnostic", "InternalError", "Result", "compile", "compile_source", "convert",
    "find", "topology", "topology_from_networkx", "verify",
]  # fmt: skip

T = TypeVar("T")
Path = str | os.PathLike[str]
Param = int | Fraction | str | bool | tuple[int, ...]


@attrs.frozen(eq=False)
class Result:
    """The result of a compilation: one :class:`CollectiveResult` per collective, by name.

    ``diagnostics`` are the warnings. ``schedule``, ``program`` and ``cost`` are those of an only collective; of
    several, use ``collectives[name]``.
    """

    spec: Spec
    collectives: dict[str, CollectiveResult]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def schedule(self) -> Scheduled:
        """The schedule of the one collective; of a large symmetric network its template."""
        found = self._only("schedule").schedule
        if found is None:
            raise error("C0019", "there is no schedule: the compilation began with a program")
        return found

    @property
    def program(self) -> Program:
        """The program of the one collective for its first target."""
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
        """Every file, by its name for :meth:`write`."""
        emitted = [(one.name, target, files) for one in self.collectives.values() for target, files in one.emitted]
        verify = all(one.settings.verify != "off" for one in self.collectives.values())
        return {os.path.basename(file.path): file.artifact for file in name_files(emitted, "", "./", verify=verify)}

    def write(self, directory: Path = ".") -> list[str]:
        """Write every file into ``directory``, created if missing, or none; return their paths."""
        folder = os.fspath(directory)
        if not self.files:
            raise error(
                "C0019", "there is nothing to write: the compilation had no target", hint='give target="msccl-xml"'
            )
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
                hint=f"use `result.collectives[NAME].{what}`",
            )
        return next(iter(self.collectives.values()))


def compile(path: Path, **options: Unpack[Options]) -> Result:
    """Compile a ``.coll`` file (or a printed schedule or program); options are those of :func:`compile_source`."""
    name = os.fspath(path)
    return compile_source(read_text(name), path=name, **options)


def compile_source(
    text: str,
    *,
    path: str = "<string>",
    target: str | Sequence[str] | None = None,
    params: Mapping[str, Param] | None = None,
    topologies: Mapping[str, Topology | networkx.Graph] | None = None,
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

    ``target`` is as ``-t`` (``"msccl-xml{runtime=rccl}"``), several in a list. Without one, the emits of the text
    apply; without those, the result is only the program. ``params`` set the text's parameters. ``topologies``, each a
    topology or a networkx graph, are topologies that the text uses without declaring them. ``collective``
    chooses among its collectives, ``level``, ``passes``, ``disable_passes``, ``verify`` and ``node_limit``
    are as on the command line. Collectives are compiled in the workers of ``executor``, if given.
    ``progress(what, done, total)`` is called from this thread. Raises CollcError.
    """

    def work() -> Result:
        given = {name: _network(found) for name, found in (topologies or {}).items()}
        loading = Loading(dict(params or {}), tuple(os.fspath(p) for p in include_path), node_limit, given)
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
    """Convert an MSCCL-XML or oneCCL-XML file from any tool, or a printed IR, to other targets.

    The algorithm is executed first, and refused if it is wrong. Its arrangement is kept if the target allows it; its
    protocol, sizes, uses and name are kept unless ``target`` replaces them. ``diagnostics`` lists the changes.
    ``passes`` replace the default ones. ``collective`` is that of a file with coll="custom", ``root`` its root. Raises
    CollcError.
    """

    def work() -> Result:
        from .tools.conversion import convert_text

        name = os.fspath(path)
        settings = Settings(_recipe(2, passes, ()), _verify_mode(verify))
        converted = convert_text(
            read_text(name), name, _targets(target), settings=settings, collective=collective, root=root
        )  # fmt: skip
        return Result(converted.spec, {converted.result.name: converted.result}, converted.warnings)

    return _shielded("convert", work)


def verify(
    what: Path | Executable,
    *,
    runtime: str | None = None,
    multiprocessors: int | None = None,
) -> Report:
    """Execute a file (``.coll``, printed IR, MSCCL-XML) or an IR symbolically and return the report.

    The report's ``ok`` is true if all checks hold.

    ``runtime`` names the runtime whose rules apply to an MSCCL-XML file. ``multiprocessors`` is the number of
    threadblocks that a rank runs at once, of such a file or a printed program. Raises CollcError for unreadable texts.
    """
    if isinstance(what, Executable):
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


def topology_from_networkx(graph: networkx.Graph, name: str | None = None) -> Topology:
    """Return the topology of a networkx graph, directed or not; its ``to_networkx()`` is the inverse.

    See :meth:`collc.ir.topology.Topology.from_networkx` for its attributes. Raises CollcError: C0302 for a
    wrong bandwidth or latency, C0303 for a graph that is no network.

    >>> import networkx
    >>> topology_from_networkx(networkx.petersen_graph(), "petersen").diameter
    2
    """
    return _shielded("topology_from_networkx", lambda: Topology.from_networkx(graph, name))


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
    """Find the best topologies of a number of nodes and a degree: ``.frontier`` (rows), ``.best``, ``.bound``.

    The rows come from collc's own database. Missing sizes, or all with ``refresh``, are searched with ``effort``
    evaluations, in the workers of ``executor``, if given. ``alpha`` (seconds, or ``"10us"``), ``size`` (bytes, or
    ``"1MiB"``) and ``bandwidth`` (bytes per second out of a node, or ``"100Gbps"``) determine the best.
    ``progress(what, done, total)`` is called from this thread. Raises CollcError.

    >>> found = find(nodes=9, degree=4)
    >>> found.best.T_L, str(found.best.T_B), found.bound
    (2, '8/9', (2, Fraction(8, 9)))
    """
    from .processes.workers import Work
    from .tools import finding as finder

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
    spec, start = load(text, path, "compile", ReadOptions(loading))
    jobs, warnings = make_jobs(spec, targets, only, start)
    if any(job.targets for job in jobs):
        jobs = [job for job in jobs if job.targets]
    results = run_jobs(jobs, settings, executor=executor, progress=progress)
    found = [*spec.warnings, *warnings, *(warning for result in results for warning in result.warnings)]
    return Result(spec, {result.name: result for result in results}, tuple(found))


def _network(found: Topology | networkx.Graph) -> Topology:
    return found if isinstance(found, Topology) else Topology.from_networkx(found)


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
    """Return the result of ``work``; other exceptions become a CollcError.

    Diagnostics of plugins are added.
    """
    try:
        with consulting() as plugin_diagnostics:
            result = work()
            if plugin_diagnostics and isinstance(result, Result):
                return attrs.evolve(result, diagnostics=(*result.diagnostics, *plugin_diagnostics))
            return result
    except InternalError:
        raise
    except CollcError as mistake:
        if plugin_diagnostics:
            raise CollcError([*mistake.diagnostics, *plugin_diagnostics], mistake.exit_status) from mistake.__cause__
        raise
    except MemoryError:
        raise memory_error(f"`{what}`") from None
    except Exception as problem:
        raise InternalError(f"{what} failed: {type(problem).__name__}: {problem}") from problem
