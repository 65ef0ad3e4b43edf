"""``collc run`` over MPI, on this machine or on a testbed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs

from collc.ir.symmetric_program import AnyProgram

from ..driver.compilation import make_jobs
from ..driver.result import CollectiveResult, Settings
from ..driver.spans import span
from ..registry.elements import Element
from .arguments import usage_error
from .console import Console
from .failures import Failures
from .inputs import load_text, require_ranks, settings
from .predicted import Model, with_model
from .watcher import Watcher, show_times

if TYPE_CHECKING:
    from collc.backends.measured import RunResult
    from collc.backends.mpi_c.selected import Selected
    from collc.backends.mpi_c.toolchain import Mpi
    from collc.ir.collective import Collective
    from collc.ir.levels import Executable

__all__ = ["run_mpi"]


def run_mpi(text: str, name: str, options: SimpleNamespace, console: Console, failures: Failures) -> list[RunResult]:
    """Compile every collective to C, build it and run it; return the measured rows, and keep the ``failures``.

    Raises C0701 to C0709 if it does not run, C0765 for another number of ranks, C0074 without a testbed.
    """
    from collc.backends.mpi_c.installed import choose

    spec, start = load_text(text, name, options, "run")
    jobs, _ = make_jobs(spec, (Element("mpi-c"),), options.collective, start)
    for job in jobs:
        require_ranks(options, job.request.name, job.request.problem.collective.num_ranks)
    console.warn(spec.warnings)
    mpi = choose(options.mpi)
    watcher = Watcher(options, console)
    compiled = failures.compiled(jobs, _settings(options, start), watcher)
    show_times(compiled, options, console)
    each = failures.each(compiled, lambda one: one.name, lambda one: _run_all(one, mpi, options, console))
    return [result for results in each for result in results]


def _run_all(result: CollectiveResult, mpi: Mpi, options: SimpleNamespace, console: Console) -> list[RunResult]:
    """Run the programs of one collective."""
    with span(f"run {result.name}", "run"), _place(result, mpi, options) as (inside, model):
        return [_run(program, _seated(inside, program), model, options, console) for program in _programs(result)]


def _seated(mpi: Mpi, program: AnyProgram | Selected) -> Mpi:
    """Return the MPI with the ranks of a program's communicator on their nodes of a testbed."""
    from collc.backends.mpi_c.members import ranks_of
    from collc.testbed.mpi import Inside

    programs = [program] if isinstance(program, AnyProgram) else [part for _, part in program.parts]
    ranks = ranks_of(programs)
    if ranks is None or not isinstance(mpi, Inside):
        return mpi
    return attrs.evolve(mpi, hosts=tuple(mpi.hosts[rank] for rank in ranks))


@contextlib.contextmanager
def _place(result: CollectiveResult, mpi: Mpi, options: SimpleNamespace) -> Iterator[tuple[Mpi, Model | None]]:
    """Yield the MPI, of this machine or of a testbed of the topology, and the model of its links or None."""
    if not options.testbed:
        yield mpi, Model.of(result, options.alpha, options.bandwidth)
        return
    from collc.testbed import network

    topology = result.request.problem.topology
    if topology.num_links == 0:
        raise usage_error(f"`{result.name}` has no topology for a testbed", "run a .coll file")
    rate, delay = options.testbed[-1], options.delay or Fraction(0)
    with network(topology, rate, delay) as built:
        yield built.mpi(mpi), Model.of(result, Fraction(delay), None, widest=Fraction(rate))


def _settings(options: SimpleNamespace, start: Executable | None) -> Settings:
    """Return the settings of the options; by default a program that was read keeps its arrangement."""
    chosen = settings(options)
    if isinstance(start, AnyProgram) and chosen.recipe.elements is None:
        return attrs.evolve(chosen, recipe=attrs.evolve(chosen.recipe, elements=()))
    return chosen


def _programs(result: CollectiveResult) -> list[AnyProgram | Selected]:
    """Return the programs of a collective: its only one, or the function of several and those it never calls."""
    from collc.backends.mpi_c.selected import Selected

    if not result.algorithms:
        return [] if result.program is None else [result.program]
    parts = [(one.window, one.program) for one in result.algorithms]
    selected = Selected(tuple((window, program) for window, program in parts if window and program))
    return [selected, *selected.untried()]


def _run(
    program: AnyProgram | Selected, mpi: Mpi, model: Model | None, options: SimpleNamespace, console: Console
) -> RunResult:
    """Run one program with the cases of the options, else with the default cases of its collective."""
    from collc.backends.mpi_c.results import DTYPES, OPS
    from collc.backends.mpi_c.run import run as run_program

    collective = program.collective
    dtypes = options.dtype or [collective.dtype if collective.dtype in DTYPES else "float32"]
    if dtypes == ["all"]:
        with_strided = not collective.reduces or "user" in (options.op or [])
        dtypes = [name for name in DTYPES if name != "strided" or with_strided]
    ops = options.op or [collective.op if collective.op in OPS else "max" if collective.idempotent else "sum"]
    console.progress(f"{program.name}: building and running on {program.num_ranks} ranks")
    # Any: named arguments of run_program
    chosen: dict[str, Any] = {"dtypes": dtypes, "ops": ops, "compare": options.compare, "mpi": mpi}
    chosen |= {"timeout": float(options.timeout), "repeats": options.repeat, "warmup": options.warmup}
    if options.place:
        chosen["in_place"] = [place == "in" for place in options.place]
    counts = _counts(collective, dtypes, options)
    if counts:
        chosen["sizes"] = counts
    result = run_program(program, **chosen)
    console.clear_progress()
    rows = [attrs.evolve(row, name=program.name) for row in result.rows]  # the name of the function may differ
    return attrs.evolve(result, rows=with_model(rows, model))


def _counts(collective: Collective, dtypes: list[str], options: SimpleNamespace) -> list[int]:
    """Return the count arguments of ``--count``, and of ``--size`` for the widest type; empty without both."""
    from collc.backends.mpi_c.results import DTYPES, counts_for

    counts = list(options.count or [])
    if options.size:
        known = [name for name in dtypes if name in DTYPES] or ["float32"]
        counts += counts_for(collective, options.size, max(known, key=lambda name: DTYPES[name]))
    return list(dict.fromkeys(counts))
