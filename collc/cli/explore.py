"""``collc explore``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import error
from collc.ir.levels import rows

from ..driver.compilation import make_jobs
from ..driver.spans import span
from ..files.naming import stem_of
from ..files.texts import Output, check_writable, is_folder, output_folder, write_all
from .arguments import usage_error
from .console import Console
from .failures import Failures
from .inputs import load, settings, targets
from .watcher import Watcher, show_times

if TYPE_CHECKING:
    from collc.ir.levels import Executable

    from ..driver.plan import Plan
    from ..driver.result import CollectiveResult
    from ..exploring import Stage

__all__ = ["explore"]

#: rows of the largest IR up to which the page has those of all ranks, unless ``--ranks`` chooses
_MOST_OF_ALL = 2000


class _Recorder(Watcher):
    """A watcher that also keeps the IR after every pass."""

    def __init__(self, options: SimpleNamespace, console: Console):
        from ..exploring import Stages

        super().__init__(options, console)
        self.stages = Stages()

    def planned(self, collective: str, chain: Plan) -> None:
        super().planned(collective, chain)
        self.stages.begin(collective)

    def finished(self, collective: str, step: str, ir: Executable) -> None:
        super().finished(collective, step, ir)
        self.stages.keep(collective, step, ir)


def explore(options: SimpleNamespace, console: Console) -> int:
    """Write one page with the IR after every pass; return the exit status."""
    from ..exploring import page

    spec, start = load(options, console)
    jobs, warnings = make_jobs(spec, targets(options), options.collective, start)
    console.warn([*spec.warnings, *warnings])
    path = _path(options)
    check_writable([path], spec.files, options.o)
    # the passes of one target: those of a second one would run on the same schedule
    jobs = [attrs.evolve(job, targets=job.targets[:1]) for job in jobs]
    failures, recorder = Failures(), _Recorder(options, console)
    results = failures.compiled(jobs, settings(options), recorder)
    console.warn(warning for result in results for warning in result.warnings)
    show_times(results, options, console)
    if failures:
        return failures.report(console)
    stages = recorder.stages.titled({result.name: _remarks(result) for result in results})
    if not any(stages.values()):
        raise error("C0019", "no pass ran, so there is nothing to explore", hint="leave --level and --passes out")
    ranks = _ranks(options, stages)
    with span("explore", "output"), output_folder(options.o):
        write_all([Output(path, page(options.files[0], stages, ranks))], if_changed=options.write_if_changed)
    console.say(f"wrote {path}")
    return 0


def _path(options: SimpleNamespace) -> str:
    """Return the path of the page."""
    name = f"{stem_of(options.files[0])}.explore.html"
    if options.o is None:
        return name
    return os.path.join(options.o, name) if is_folder(options.o) else str(options.o)


def _remarks(result: CollectiveResult) -> list[Sequence[str]]:
    """Return the remarks of each plan: one for each algorithm of `auto`."""
    return [one.remarks for one in result.algorithms] or [result.remarks]


def _ranks(options: SimpleNamespace, stages: dict[str, list[Stage]]) -> set[int] | None:
    """Return the ranks to show; None for all of them."""
    most = max(stage.ir.collective.num_ranks for each in stages.values() for stage in each)
    if options.ranks:
        if max(options.ranks) >= most:
            raise usage_error(f"--ranks: there is no rank {max(options.ranks)}", f"ranks are 0 to {most - 1}")
        return set(options.ranks)
    largest = max(rows(stage.ir) for each in stages.values() for stage in each)
    return {0} if largest > _MOST_OF_ALL else None
