"""``collc run`` over MPI, on this machine or on a testbed."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING

from ..driver.compilation import make_jobs
from ..driver.result import CollectiveResult
from ..registry.elements import Element
from ..running.calls import Calls
from .console import Console
from .failures import Failures
from .inputs import load_text, require_ranks, settings
from .watcher import Watcher, show_times

if TYPE_CHECKING:
    from collc.backends.measured import RunResult

__all__ = ["run_mpi"]


def run_mpi(text: str, name: str, options: SimpleNamespace, console: Console, failures: Failures) -> list[RunResult]:
    """Compile every collective to C, build it and run it; return the measured rows, and keep the ``failures``.

    Raises C0701 to C0709 if it does not run, C0765 for another number of ranks, C0074 without a testbed.
    """
    from collc.backends.mpi_c.installed import choose

    from ..running.over_mpi import arranged, run_collective

    spec, start = load_text(text, name, options, "run")
    jobs, _ = make_jobs(spec, (Element("mpi-c"),), options.collective, start)
    for job in jobs:
        require_ranks(options, job.request.name, job.request.problem.collective.num_ranks)
    console.warn(spec.warnings)
    mpi = choose(options.mpi)
    watcher = Watcher(options, console)
    compiled = failures.compiled(jobs, arranged(settings(options), start), watcher)
    show_times(compiled, options, console)
    calls = _calls(options)

    def run_one(one: CollectiveResult) -> list[RunResult]:
        found = run_collective(one, mpi, calls, console.progress)
        console.clear_progress()
        return found

    each = failures.each(compiled, lambda one: one.name, run_one)
    return [result for results in each for result in results]


def _calls(options: SimpleNamespace) -> Calls:
    return Calls(
        tuple(options.count or ()), tuple(options.size or ()), tuple(options.dtype or ()), tuple(options.op or ()),
        tuple(options.place or ()), options.repeat, options.warmup, options.compare, float(options.timeout),
        options.alpha, options.bandwidth, options.testbed[-1] if options.testbed else None,
        options.delay or Fraction(0),
    )  # fmt: skip
