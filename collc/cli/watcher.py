"""The visible course of a compilation: progress, the pipeline, dumps of the IR, times."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.passes import PASSES

from ..driver.plan import Plan
from ..driver.result import CollectiveResult
from ..registry.elements import pipeline_text
from .arguments import usage_error
from .console import Console
from .table import table

if TYPE_CHECKING:
    from collc.ir.levels import Executable

__all__ = ["Watcher", "time_table"]


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


def time_table(results: Sequence[CollectiveResult]) -> str:
    """Return the table of ``--time-passes``; repeated steps (for several targets) share a row."""
    spent: dict[tuple[str, str], float] = {}
    for timing in (timing for result in results for timing in result.timings):
        key = timing.collective, timing.step
        spent[key] = spent.get(key, 0.0) + timing.seconds
    total = sum(spent.values())
    rows = [(f"{s:.4f}", f"{100 * s / total if total else 0:.1f} %", *key) for key, s in spent.items()]
    rows.append((f"{total:.4f}", "100.0 %", "", "total"))
    return table(rows, head=("seconds", "share", "collective", "step"), right=(0, 1))
