"""The visible course of a compilation: progress, the pipeline, dumps of the IR, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.passes import PASSES

from ..driver.plan import Plan
from ..driver.result import CollectiveResult
from ..driver.spans import Timing
from ..registry.elements import pipeline_text
from .arguments import usage_error
from .console import Console
from .table import table

if TYPE_CHECKING:
    from collc.ir.levels import Executable

    from ..tables.columns import Cell

__all__ = ["Watcher", "show_times", "show_timings"]


class Watcher:
    """An observer of the driver. It prints on standard error for ``--dump-ir`` and ``--print-pipeline``, with
    ``-v`` the reason for the place of each pass.
    """

    def __init__(self, options: SimpleNamespace, console: Console):
        self.console, self.pipeline = console, options.print_pipeline
        self.dumps: list[str] = options.dump_ir or []
        self.last: dict[str, tuple[str, Executable]] = {}
        for name in self.dumps:
            if name not in ("", "all", *PASSES):
                raise usage_error(f"--dump-ir: there is no pass `{name}`", PASSES.hint(name), "C0008")

    def planned(self, collective: str, chain: Plan) -> None:
        """Print the pipeline if ``--print-pipeline`` asks for it."""
        if self.pipeline:
            target = f" as {chain.target.name}" if chain.target else ""
            self.console.err(f"{collective}{target}: {pipeline_text(chain.passes)}\n")
            if self.console.verbose:
                self.console.err("".join(f"  {name}: {why}\n" for name, why in chain.explained))

    def begins(self, collective: str, step: str) -> None:
        """Show the step on a terminal; end if a signal asks for it."""
        self.console.signals.check()
        if step != "structure":  # too short to read
            self.console.progress(f"{collective}: {step}")

    def finished(self, collective: str, step: str, ir: Executable) -> None:
        """Dump the IR after a step, or keep it for the end, according to ``--dump-ir``."""
        if step in self.dumps or "all" in self.dumps:
            self.dump(collective, step, ir)
        elif "" in self.dumps:
            self.last[collective] = (step, ir)

    def ends(self) -> None:
        """Dump the last IR of every collective if ``--dump-ir`` asks for it."""
        for collective, (step, ir) in self.last.items():
            self.dump(collective, step, ir)

    def dump(self, collective: str, step: str, ir: Executable) -> None:
        """Print an IR as text that can be read back."""
        from collc.ir.text import print_ir

        header, _, rest = print_ir(ir).partition("\n")
        self.console.err(f"{header}\n# {collective}, after {step}\n{rest}")


def show_times(results: Sequence[CollectiveResult], options: SimpleNamespace, console: Console) -> None:
    """Print the table of ``--time-passes`` on standard error, or write it as CSV; repeated steps share a row.

    Its memory is the peak of the process until the end of the step, and by how much the step raised it.
    """
    if options.time_passes:
        show_timings([timing for result in results for timing in result.timings], options, console)


def show_timings(timings: Sequence[Timing], options: SimpleNamespace, console: Console) -> None:
    """Print or write the table of ``--time-passes`` of these steps, and no other table after it."""
    spent: dict[tuple[str, str], list[Timing]] = {}
    for timing in timings:
        spent.setdefault((timing.collective, timing.step), []).append(timing)
    given, options.time_passes = options.time_passes, None
    places = [place for place in given if place]
    if places:
        from ..files.texts import Output, write_all
        from ..tables.columns import Table
        from ..tables.forms import csv_text
        from ..tables.listed import TIMES

        text = csv_text(Table(TIMES, _time_rows(spent)))
        write_all([Output(place, text) for place in places])
    if len(places) < len(given):
        console.err(_time_text(spent))


def _time_text(spent: Mapping[tuple[str, str], Sequence[Timing]]) -> str:
    every = [timing for timings in spent.values() for timing in timings]
    total = sum(timing.seconds for timing in every)
    rows = [(*_cells(timings, total), *key) for key, timings in spent.items()]
    rows.append((*_cells(every, total)[:4], "", "", "total"))
    head = ("seconds", "share", "peak MB", "more MB", "rows", "collective", "step")
    return table(rows, head=head, right=(0, 1, 2, 3, 4))


def _time_rows(spent: Mapping[tuple[str, str], Sequence[Timing]]) -> list[dict[str, Cell]]:
    total = sum(timing.seconds for timings in spent.values() for timing in timings)
    return [
        {
            "seconds": (seconds := sum(timing.seconds for timing in timings)),
            "share": seconds / total if total else 0.0,
            "peak_bytes": max((timing.peak for timing in timings if timing.peak is not None), default=None),
            "more_bytes": sum(timing.growth for timing in timings if timing.growth is not None),
            "rows": timings[-1].rows, "name": collective, "step": step,
        }
        for (collective, step), timings in spent.items()
    ]  # fmt: skip


def _cells(timings: Sequence[Timing], total: float) -> tuple[str, ...]:
    """Return the numbers of a row: sums, but the highest peak and the last number of rows."""
    seconds = sum(timing.seconds for timing in timings)
    peaks = [timing.peak for timing in timings if timing.peak is not None]
    growths = [timing.growth for timing in timings if timing.growth is not None]
    rows = timings[-1].rows if timings else None
    return (
        f"{seconds:.4f}", f"{100 * seconds / total if total else 0:.1f} %", f"{max(peaks) / 1e6:.1f}" if peaks else "-",
        f"{sum(growths) / 1e6:.1f}" if growths else "-", "" if rows is None else f"{rows:,}",
    )  # fmt: skip
