"""The collectives of a command that failed, while it goes on with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from collc.ir.diagnostic import CollcError

from ..driver.compilation import Failure, Job, joined, try_jobs
from ..driver.result import CollectiveResult, Settings
from ..messages.internal import InternalError
from .console import Console
from .watcher import Watcher

__all__ = ["Failures"]

T = TypeVar("T")
R = TypeVar("R")


class Failures:
    """Keeps the failures of collectives. :meth:`report` prints them and returns the exit status.

    A collective is known by its name, and by its input if a command has several.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], list[CollcError]] = {}
        self.order: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self.found)

    def compiled(
        self, jobs: Sequence[Job], settings: Settings, watcher: Watcher, source: str = ""
    ) -> list[CollectiveResult]:
        """Compile all jobs of an input; return the results of those that can be compiled."""
        self.order |= dict.fromkeys((source, job.request.name) for job in jobs)
        outcomes = try_jobs(jobs, settings, observer=watcher)
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                self.keep(outcome.name, outcome.mistake, source)
        watcher.ends()
        return [outcome for outcome in outcomes if isinstance(outcome, CollectiveResult)]

    def keep(self, name: str, mistake: CollcError, source: str = "") -> None:
        """Keep the failure of a collective; raise an internal error."""
        if isinstance(mistake, InternalError):
            raise mistake
        self.order.setdefault((source, name))
        self.found.setdefault((source, name), []).append(mistake)

    def has(self, name: str) -> bool:
        """Return whether a collective of the only input has failed."""
        return ("", name) in self.found

    def each(self, items: Iterable[T], name_of: Callable[[T], str], work: Callable[[T], R]) -> list[R]:
        """Return the results of ``work`` on the items for which it does not fail."""
        done: list[R] = []
        for item in items:
            try:
                done.append(work(item))
            except CollcError as mistake:
                self.keep(name_of(item), mistake)
        return done

    def objects(self) -> dict[str, object]:
        """Return the keys that ``--json`` has for failures: none without failures."""
        if not self.found:
            return {}
        from ..messages.render import diagnostic_object

        return {
            "failed": [
                {
                    "name": name, **({"input": source} if source else {}),
                    "exit_status": max(mistake.exit_status for mistake in mistakes),
                    "diagnostics": [diagnostic_object(d) for mistake in mistakes for d in mistake.diagnostics],
                }
                for (source, name), mistakes in self._in_order()
            ]
        }  # fmt: skip

    def report(self, console: Console) -> int:
        """Print every diagnostic once, in the order of the collectives; return the largest exit status, or 0."""
        if not self.found:
            return 0
        together = joined([mistake for _, mistakes in self._in_order() for mistake in mistakes])
        console.fail(together.diagnostics)
        return together.exit_status

    def _in_order(self) -> list[tuple[tuple[str, str], list[CollcError]]]:
        return [(key, self.found[key]) for key in self.order if key in self.found]
