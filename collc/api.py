"""The Python API: the command without files, signals and printing.

Every mistake is a :class:`CollcError` with ``.diagnostics``. There is no global state: several threads can call it. It
prints nothing: the logger ``collc`` gets warnings, remarks of passes (INFO) and the times of steps (DEBUG).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Literal

import attrs

from collc.frontends.coll.faults import Fault
from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.ir.topology import Topology
from collc.ir.verify import Report

from . import accepted
from .compiling import (
    LOG,
    Level,
    Param,
    Path,
    Request,
    Verify,
    compiled,
    each,
    loading_of,
    recipe_of,
    shielded,
    targets_of,
    text_of,
    verify_mode,
)
from .driver.checking import mistakes
from .driver.compilation import make_jobs
from .driver.replan import FaultCost
from .driver.result import CollectiveResult, Settings
from .driver.watching import Cancel, Cancelled, Progress, Watch, watching
from .files.naming import stem_of
from .files.texts import read_text
from .messages.internal import INTERNAL_STATUS, InternalError
from .networks import import_topology, topology, topology_from_networkx
from .processes.engines import executing
from .reading import load
from .reading.base import ReadOptions
from .results import Result
from .tools.importing import ImportedNetwork
from .tools.verification import verify_text

if TYPE_CHECKING:
    from typing import Unpack

    import networkx

    from collc.ir.levels import Executable

    from .compiling import Item, Options
    from .tools.finding import Frontier
    from .training.objectives import Objective

__all__ = [
    "Cancel", "Cancelled", "CollcError", "CollectiveResult", "Diagnostic", "Fault", "FaultCost", "ImportedNetwork",
    "InternalError", "Progress", "Result", "check", "check_source", "compile", "compile_many", "compile_source",
    "convert", "find", "format", "format_source", "import_topology", "replan", "topology", "topology_from_networkx",
    "verify",
]  # fmt: skip


# ---- compiling


def compile(
    path: Path,
    *,
    target: str | Sequence[str] | None = None,
    params: Mapping[str, Param] | None = None,
    topologies: Mapping[str, Topology | networkx.Graph] | None = None,
    include_path: Sequence[Path] = (),
    collective: str | Sequence[str] = (),
    level: Level = 2,
    passes: str | None = None,
    disable_passes: Iterable[str] = (),
    verify: Verify = "each",
    node_limit: int = 20000,
    cache: bool | Path = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Result:
    """Compile a ``.coll`` file (or a printed schedule or program); options are those of :func:`compile_source`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> spec = Path(folder.name, "pod.coll")
    >>> _ = spec.write_text("param boxes = 2; collective grads = allreduce on biring(boxes);")
    >>> result = compile(spec, target="msccl-xml", params={"boxes": 4})
    >>> result.program.num_ranks, list(result.files)
    (4, ['grads.xml'])
    >>> folder.cleanup()
    """
    name = accepted.path("path", path)
    return compile_source(
        read_text(name), path=name, target=target, params=params, topologies=topologies, include_path=include_path,
        collective=collective, level=level, passes=passes, disable_passes=disable_passes, verify=verify,
        node_limit=node_limit, cache=cache, executor=executor, progress=progress, cancel=cancel,
    )  # fmt: skip


def compile_source(
    text: str,
    *,
    path: str = "<string>",
    target: str | Sequence[str] | None = None,
    params: Mapping[str, Param] | None = None,
    topologies: Mapping[str, Topology | networkx.Graph] | None = None,
    include_path: Sequence[Path] = (),
    collective: str | Sequence[str] = (),
    level: Level = 2,
    passes: str | None = None,
    disable_passes: Iterable[str] = (),
    verify: Verify = "each",
    node_limit: int = 20000,
    cache: bool | Path = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Result:
    """Compile a text and return schedules, programs and files, all verified.

    ``target`` is as ``-t`` (``"msccl-xml{runtime=rccl}"``), several in a list. Without one, the emits of the text
    apply; without those, the result is only the program. ``params`` set the text's parameters. ``topologies``, each a
    topology or a networkx graph, are topologies that the text uses without declaring them. ``collective``
    chooses among its collectives, ``level``, ``passes``, ``disable_passes``, ``verify`` and ``node_limit``
    are as on the command line. Collectives are compiled in the workers of ``executor``, if given.

    ``cache`` keeps the files in the user's cache folder (True) or in a folder. A later call with the same inputs takes
    them from there, and computes schedule and program only if they are asked for.

    ``progress(what, done, total)`` is called from this thread. The work ends with :class:`Cancelled` soon after
    ``cancel.is_set()``. Raises CollcError.

    >>> result = compile_source("collective sums = allreduce on torus(3, 3);", target="msccl-xml")
    >>> result
    Result(sums: allreduce on torus(3, 3), 9 ranks, bfb, T_L 4, T_B 16/9)
    >>> result.files["sums.xml"].text.splitlines()[0]
    '<!-- collc: allreduce of 9 ranks by bfb, for msccl-executor-nccl -->'
    """
    request = Request(
        target, params, topologies, include_path, collective, level, passes, disable_passes, verify, node_limit,
        cache, executor,
    )  # fmt: skip
    with watching(progress, cancel) as watch:
        return shielded("compile", lambda: compiled(text, path, request, watch))


def compile_many(
    items: Iterable[Path | Item],
    *,
    executor: Executor | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    **options: Unpack[Options],
) -> list[Result | CollcError]:
    """Compile several files or texts, and return a result or an error for each, in order.

    An item is a path, or a mapping with a ``path`` or a ``text``. The options of a mapping replace the common
    ``options``, which are those of :func:`compile_source`. The workers of ``executor`` compile the items, if given:
    an executor, or an engine as on the command line (``"processes:4"``). The results are the same without. An item that
    cannot be compiled gives its :class:`CollcError` instead of a result. ``progress(item, done, total)`` is called from
    this thread; ``cancel`` raises :class:`Cancelled`. Raises CollcError if ``items`` is no list of items.

    >>> text = "param n = 4; collective parts = allgather on biring(n);"
    >>> found = compile_many([{"text": text, "params": {"n": n}} for n in (4, 8, 0)], target="msccl-xml")
    >>> [one.cost.T_L if isinstance(one, Result) else one.diagnostics[0].code for one in found]
    [2, 4, 'C0311']
    """
    with watching(progress, cancel) as watch, executing(executor) as engine:
        return each(items, options, engine, watch)


def convert(
    path: Path,
    *,
    target: str | Sequence[str],
    passes: str | None = None,
    verify: Verify = "each",
    collective: str | None = None,
    root: int | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Result:
    """Convert an MSCCL-XML or oneCCL-XML file from any tool, or a printed IR, to other targets.

    The algorithm is executed first, and refused if it is wrong. Its arrangement is kept if the target allows it; its
    protocol, sizes, uses and name are kept unless ``target`` replaces them. ``diagnostics`` lists the changes.
    ``passes`` replace the default ones. ``collective`` is that of a file with coll="custom", ``root`` its root. Raises
    CollcError.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = compile_source("collective sums = allreduce on biring(4);", target="msccl-xml")
    >>> [path] = made.write(folder.name)
    >>> list(convert(path, target="mpi-c").files)
    ['sums.c', 'sums.h']
    >>> folder.cleanup()
    """

    def work() -> Result:
        from .tools.conversion import convert_text

        name = os.fspath(path)
        settings = Settings(recipe_of(2, passes, ()), verify_mode(verify))
        converted = convert_text(
            read_text(name), name, targets_of(target), settings=settings, collective=collective, root=root
        )  # fmt: skip
        return Result(converted.spec, {converted.result.name: converted.result}, converted.warnings)

    with watching(progress, cancel):
        return shielded("convert", work)


# ---- faults


def replan(
    result: Result,
    faults: Sequence[str | Fault] | str | Fault,
    *,
    target: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Result:
    """Return a result after faults of its network. It keeps the parts of the plan that no fault touches.

    A fault is a :class:`Fault`, or a text as on the command line. ``"without gpu[0, 2] -> ib"`` removes a node or
    links. ``"slow gpu[3, 1] <-> ib: 12.5 GB/s"`` slows links (or ``: 1/2``, ``: 50 %``). Targets are those of the
    result, unless ``target`` replaces them. The new schedule is verified as the first one, and as fast as a compilation
    of the broken network. ``faults`` and ``cost_of_fault`` of the result have the faults and their exact cost.

    Raises CollcError: C0340 to C0344 for faults, C0301 if they cut ranks off, and what compilation raises.

    >>> healthy = compile_source("collective sums = allgather on torus(3, 3); schedule sums using forest;")
    >>> broken = replan(healthy, ["without 0 <-> 1"])
    >>> broken.cost_of_fault.healthy, broken.cost_of_fault.optimum == broken.cost_of_fault.reached
    (Fraction(2, 9), True)
    """

    def work() -> Result:
        from .tools.replanning import Replanner, faults_of

        known, names = faults_of(faults), [one.name for one in result]
        elements = targets_of(target)
        jobs, _ = make_jobs(result.spec, elements, names) if elements else ([], [])
        targets = {job.request.name: job.targets for job in jobs}
        planner = Replanner(result.spec, names, known)
        done = dict[str, CollectiveResult]()
        for place, one in enumerate(result):
            if watch is not None:
                watch(one.name, place, len(names))
            own = targets.get(one.name, tuple(target for target, _ in one.emitted))
            done[one.name] = planner.run(one, own, one.settings, watch)
        if watch is not None:
            watch("done", len(names), len(names))
        warnings = [*result.spec.warnings, *(warning for one in done.values() for warning in one.warnings)]
        return Result(planner.spec, done, tuple(warnings), known)

    with watching(progress, cancel) as watch:
        return shielded("replan", work)


# ---- checking


def check(
    source: Path,
    *,
    params: Mapping[str, Param] | None = None,
    topologies: Mapping[str, Topology | networkx.Graph] | None = None,
    include_path: Sequence[Path] = (),
    node_limit: int = 20000,
) -> tuple[Diagnostic, ...]:
    """Check a ``.coll`` file, or a text of the language, as ``collc check`` does; return all errors and warnings.

    No schedule is computed, so mistakes that only a compiled program shows are not found. A string with a line
    break or a semicolon is a text; everything else is a path. Mistakes in the input do not raise.

    >>> [(str(found.span), found.code) for found in check("topology pod = toruss(3, 3);")]
    [('<string>:1:16', 'C0122')]
    >>> check("topology pod = torus(3, 3);")
    ()
    """
    try:
        text, path = text_of(source)
    except CollcError as mistake:
        return mistake.diagnostics
    return check_source(
        text, path=path, params=params, topologies=topologies, include_path=include_path, node_limit=node_limit
    )  # fmt: skip


def check_source(
    text: str,
    *,
    path: str = "<string>",
    params: Mapping[str, Param] | None = None,
    topologies: Mapping[str, Topology | networkx.Graph] | None = None,
    include_path: Sequence[Path] = (),
    node_limit: int = 20000,
) -> tuple[Diagnostic, ...]:
    """Check a text as :func:`check` does; ``path`` is its name in messages.

    >>> [found.code for found in check_source("collective c = allreduce on torus(3) { sice: 1 };")]
    ['C0127']
    """

    def work() -> tuple[Diagnostic, ...]:
        loading = loading_of(params, topologies, include_path, node_limit)
        spec, start = load(text, path, "check", ReadOptions(loading))
        wrong = mistakes(spec, stem_of(path)) if start is None else None
        if wrong is not None and wrong.exit_status == INTERNAL_STATUS:
            raise wrong
        return (*(wrong.diagnostics if wrong else ()), *spec.warnings)

    try:
        return shielded("check", work)
    except InternalError:
        raise
    except CollcError as mistake:
        return mistake.diagnostics


def verify(
    what: Path | Executable,
    *,
    runtime: str | None = None,
    multiprocessors: int | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Report:
    """Execute a file (``.coll``, printed IR, MSCCL-XML) or an IR symbolically and return the report.

    The report's ``ok`` is true if all checks hold.

    ``runtime`` names the runtime whose rules apply to an MSCCL-XML file. ``multiprocessors`` is the number of
    threadblocks that a rank runs at once, of such a file or a printed program. Raises CollcError for unreadable texts.

    >>> result = compile_source("collective sums = allreduce on biring(4);")
    >>> verify(result.program).ok
    True
    """
    if isinstance(what, (str, os.PathLike)):
        work = partial(_verified, os.fspath(what), runtime, multiprocessors)
    else:
        from collc.ir.verify import verify as verify_level

        work = partial(verify_level, what)
    with watching(progress, cancel):
        return shielded("verify", work)


def _verified(path: str, runtime: str | None, multiprocessors: int | None) -> Report:
    return verify_text(read_text(path), path, runtime=runtime, multiprocessors=multiprocessors)


def format(source: Path) -> str:
    """Return the canonical form of a ``.coll`` file, or of a text of the language, as ``collc format`` prints it.

    A string with a line break or a semicolon is a text; everything else is a path. No file is written. Raises
    CollcError with all syntax errors.

    >>> format("topology  pod=torus( 3,3 );")
    'topology pod = torus(3, 3);\\n'
    """
    text, path = text_of(source)
    return format_source(text, path=path)


def format_source(text: str, *, path: str = "<string>") -> str:
    """Return the canonical form of a text as :func:`format` does; ``path`` is its name in messages.

    >>> format_source("param  n=4 ;# ranks")
    'param n = 4;  # ranks\\n'
    """
    from collc.frontends import coll

    return shielded("format", lambda: coll.format_text(text, path))


# ---- finding topologies


def find(
    *,
    nodes: int,
    degree: int,
    bidirectional: bool = False,
    exclude: Sequence[str] = (),
    objective: Literal["allreduce", "allgather", "alltoall"] | None = None,
    workload: Path | None = None,
    alpha: str | Fraction | float | None = None,
    size: str | int | Sequence[str | int] | None = None,
    bandwidth: str | Fraction | float | None = None,
    rack: int | None = None,
    robust: bool = False,
    expand_to: int | None = None,
    database: Path | None = None,
    refresh: bool = False,
    effort: int | None = None,
    seed: int = 0,
    executor: Executor | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Frontier:
    """Find the best topologies of a number of nodes and a degree: ``.frontier`` (rows), ``.best``, ``.bound``.

    The rows come from ``database``, a file or a folder, by default collc's own. Missing sizes, or all with
    ``refresh``, are searched with ``effort`` evaluations, in the workers of ``executor``, as for
    :func:`compile_many`. ``alpha`` (seconds, or ``"10us"``),
    ``size`` (bytes, or ``"1MiB"``) and ``bandwidth`` (bytes per second out of a node, or ``"100Gbps"``) determine the
    best. The first of several sizes, in a list or in a text (``"1KiB,1MiB"``, ``"1KiB..1GiB"``), determines it;
    ``found.table("sizes")`` has the best at each. ``exclude`` lists patterns.

    The best is for an ``objective`` (an allreduce by default), or for a ``workload`` instead of ``objective`` and
    ``size``: a mix such as ``"allreduce 64 MiB x 0.7, alltoall 4 MiB x 0.3"``, a JSON file, or a name of
    ``collc.listing("workloads")``. ``rack`` is the number of nodes in a rack, and ``robust`` asks for the costs after
    a failure: ``facts`` has the answers by row. ``expand_to`` is a larger number of nodes: ``expansions`` has the
    topologies of up to that size, ``recabling`` the cables to change.
    ``progress(what, done, total)`` is called from this thread; ``cancel`` raises :class:`Cancelled`. Raises CollcError.

    >>> found = find(nodes=9, degree=4)
    >>> found.best.T_L, str(found.best.T_B), found.bound
    (2, '8/9', (2, Fraction(8, 9)))
    """
    from .processes.workers import Work
    from .tools import finding as finder
    from .tools.excluding import excluded
    from .tools.growing import expansions

    def work(watch: Watch | None) -> Frontier:
        without = excluded(finder.patterns(exclude))
        sizes = finder.given_sizes(size)
        first = sizes[0] if sizes else None
        goal = "allreduce" if objective is None else objective
        mix, doubts = _objective_of(workload, nodes, {"objective": objective, "size": size})
        wanted = finder.wanted(nodes, degree, bidirectional, goal, alpha, first, bandwidth, without, mix, rack, robust)
        evaluations = None if effort is None else finder.whole("effort", effort, 1)
        start = finder.whole("seed", seed)
        largest = None if expand_to is None else finder.whole("expand_to", expand_to)
        rows = _rows_of(database, wanted.degree, refresh)
        with executing(executor) as engine:
            run = Work(engine, watch)
            found = finder.find(wanted, database=rows, refresh=refresh, evaluations=evaluations, seed=start, work=run)
            larger = None
            if largest is not None:
                more = expansions(found, largest, database=rows, evaluations=evaluations, seed=start, work=run)
                larger = tuple(more)
        for doubt in doubts:
            LOG.warning("%s", doubt)
        return attrs.evolve(found, sizes=sizes, expansions=larger, diagnostics=tuple(doubts))

    with watching(progress, cancel) as watch:
        return shielded("find", lambda: work(watch))


def _objective_of(
    workload: Path | None, nodes: int, beside: Mapping[str, object]
) -> tuple[Objective | None, list[Diagnostic]]:
    """Return what ``workload`` names, with warnings; raise C0001 for arguments ``beside`` it that it replaces."""
    if workload is None:
        return None, []
    from .tools.finding import whole
    from .training.named import objective_named

    for name, value in beside.items():
        if value is not None:
            message = f"a workload has its own collectives and sizes, found also {name}"
            raise error("C0001", message, hint=f"leave out {name}", exit_status=2)
    return objective_named(accepted.path("workload", workload), [whole("nodes", nodes)])


def _rows_of(database: Path | None, degree: int, refresh: bool) -> tuple[str, str] | None:
    """Return the text and path of ``database``; raise C0001 beside ``refresh``, which uses none."""
    if database is None:
        return None
    from .tools.finding import database_text

    path = accepted.path("database", database)
    if refresh:
        hint = f"leave out one of them, or extend the file: `collc find --refresh --database {path}`"
        raise error("C0001", "refresh searches without a database, found also database", hint=hint, exit_status=2)
    return database_text(path, degree)
