"""``collc run``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs

from collc.ir.program import Program

from ..compilation import Level, make_jobs, run_jobs
from ..driver import CollectiveResult, Settings
from ..elements import Element
from .console import Console
from .inputs import load, settings
from .watcher import Watcher, time_table

if TYPE_CHECKING:
    from collc.backends.mpi_c.results import RunResult
    from collc.backends.mpi_c.selected import Selected
    from collc.ir.collective import Collective

__all__ = ["run"]


def run(options: SimpleNamespace, console: Console) -> int:
    """Compile every collective to MPI-C, run it, print what each call took; return 0 where every element was right."""
    spec, start = load(options, console, published=True)
    jobs, _ = make_jobs(spec, (Element("mpi-c"),), options.collective, start)
    console.warn(spec.warnings)
    watcher = Watcher(options, console)
    compiled = run_jobs(jobs, _settings(options, start), observer=watcher)
    watcher.ends()
    if options.time_passes:
        console.err(time_table(compiled))
    results = [_run(found, options, console) for result in compiled for found in _programs(result)]
    if options.json:
        console.json(_object(results))
    else:
        console.out("\n".join(result.table() + "\n" for result in results))
    # One diagnostic for every wrong case; the table above has them too.
    for result in results:
        result.require()
    return 0


def _settings(options: SimpleNamespace, start: Level | None) -> Settings:
    """Return what the options say; a program that was read runs as it is arranged unless they say otherwise."""
    chosen = settings(options)
    if isinstance(start, Program) and chosen.recipe.elements is None:
        return attrs.evolve(chosen, recipe=attrs.evolve(chosen.recipe, elements=()))
    return chosen


def _programs(result: CollectiveResult) -> list[Program | Selected]:
    """Return what to run of a collective: its program, or the function of several, and what that would not reach."""
    from collc.backends.mpi_c.selected import Selected

    if not result.algorithms:
        return [] if result.program is None else [result.program]
    parts = [(one.window, one.program) for one in result.algorithms]
    selected = Selected(tuple((window, program) for window, program in parts if window and program))
    return [selected, *selected.untried()]


def _run(program: Program | Selected, options: SimpleNamespace, console: Console) -> RunResult:
    """Run one program with the cases that the options name, else with those its collective asks for."""
    from collc.backends.mpi_c.results import DTYPES, OPS
    from collc.backends.mpi_c.run import run as run_program

    asked = program.collective
    dtypes = options.dtype or [asked.dtype if asked.dtype in DTYPES else "float32"]
    ops = options.op or [asked.op if asked.op in OPS else "max" if asked.idempotent else "sum"]
    console.progress(f"{program.name}: building and running on {program.num_ranks} ranks")
    chosen: dict[str, Any] = {"dtypes": dtypes, "ops": ops, "compare": options.compare, "mpi": options.mpi}
    chosen |= {"timeout": float(options.timeout), "repeats": options.repeat}
    counts = _counts(asked, dtypes, options)
    if counts:
        chosen["sizes"] = counts
    result = run_program(program, **chosen)
    console.clear_progress()
    return result


def _counts(collective: Collective, dtypes: list[str], options: SimpleNamespace) -> list[int]:
    """Return the count arguments of ``--count``, and of ``--size`` for the widest type; none where neither is given."""
    from collc.backends.mpi_c.results import DTYPES, counts_for

    counts = list(options.count or [])
    if options.size:
        known = [name for name in dtypes if name in DTYPES] or ["float32"]
        counts += counts_for(collective, options.size, max(known, key=lambda name: DTYPES[name]))
    return list(dict.fromkeys(counts))


def _object(results: list[RunResult]) -> dict[str, Any]:
    return {
        "ok": all(result.ok for result in results),
        "ranks": results[0].ranks,
        "mpi": str(results[0].mpi),
        "rows": [row.as_dict() for result in results for row in result.rows],
    }
