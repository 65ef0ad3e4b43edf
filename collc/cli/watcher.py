"""What a user watches of a compilation: progress, the pipeline, dumps of the IR, times."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from collc.ir.diagnostic import nearest
from collc.ir.text import print_ir
from collc.passes import PASSES

from ..driver import CollectiveResult
from ..elements import pipeline_text
from ..pipeline import Plan
from .arguments import usage_error
from .console import Console
from .table import table

__all__ = ["Watcher", "time_table"]


class Watcher:
    """An observer of the driver that prints on standard error what ``--dump-ir`` and ``--print-pipeline`` ask for."""

    def __init__(self, options: SimpleNamespace, console: Console):
        self.console, self.pipeline = console, options.print_pipeline
        self.dumps: list[str] = options.dump_ir or []
        self.last: dict[str, tuple[str, Any]] = {}
        for name in self.dumps:
            if name not in ("", "all", *PASSES):
                hint = nearest(name, PASSES) or "`collc passes` lists them"
                raise usage_error(f"--dump-ir: there is no pass `{name}`", hint, "C0008")

    def planned(self, collective: str, chain: Plan) -> None:
        if self.pipeline:
            target = f" as {chain.target.name}" if chain.target else ""
            self.console.err(f"{collective}{target}: {pipeline_text(chain.passes)}\n")

    def begins(self, collective: str, step: str) -> None:
        self.console.signals.check()
        if step != "structure":  # over before it could be read
            self.console.progress(f"{collective}: {step}")

    def made(self, collective: str, step: str, ir: Any) -> None:
        if step in self.dumps or "all" in self.dumps:
            self.dump(collective, step, ir)
        elif "" in self.dumps:
            self.last[collective] = (step, ir)

    def ends(self) -> None:
        """Dump the last IR of every collective where that was asked for."""
        for collective, (step, ir) in self.last.items():
            self.dump(collective, step, ir)

    def dump(self, collective: str, step: str, ir: Any) -> None:
        """Print an IR so that what is printed can be read back."""
        header, _, rest = print_ir(ir).partition("\n")
        self.console.err(f"{header}\n# {collective}, after {step}\n{rest}")


def time_table(results: Sequence[CollectiveResult]) -> str:
    """Return the table of ``--time-passes``: what was done more than once (for several targets) stands in one row."""
    spent: dict[tuple[str, str], float] = {}
    for timing in (timing for result in results for timing in result.timings):
        key = timing.collective, timing.step
        spent[key] = spent.get(key, 0.0) + timing.seconds
    total = sum(spent.values())
    rows = [(f"{s:.4f}", f"{100 * s / total if total else 0:.1f} %", *key) for key, s in spent.items()]
    rows.append((f"{total:.4f}", "100.0 %", "", "total"))
    return table(rows, head=("seconds", "share", "collective", "step"), right=(0, 1))
