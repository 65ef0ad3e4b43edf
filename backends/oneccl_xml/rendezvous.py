"""Checks rule R11: every step ends even if no send completes before its receive is posted."""

from __future__ import annotations

from collections import deque

from .model import Document, Step
from .rules import pairs

__all__ = ["blocked_steps"]

_SHOWN = 3
_At = tuple[int, int, int]  # rank, thread, step


def blocked_steps(document: Document) -> str:
    """Return the waits of the steps that never end, or "". The messages must obey rule R7."""
    return _Run(document).run()


class _Run:
    """A step begins when the steps before it and the steps of its syncs are done.

    It is done when the steps with the other ends of its messages have begun.
    """

    def __init__(self, document: Document):
        self.document = document
        self.partners: dict[_At, list[_At]] = {}
        for sends, receives in pairs(document).values():
            for (*a, _), (*b, _) in zip(sends, receives, strict=True):
                self.partners.setdefault(tuple(a), []).append(tuple(b))  # type: ignore[arg-type]
                self.partners.setdefault(tuple(b), []).append(tuple(a))  # type: ignore[arg-type]
        self.begun: set[_At] = set()
        #: the next step of every thread, and how many of its steps are done
        self.done = {(r, t): 0 for r, rank in enumerate(document.ranks) for t in range(len(rank.threads))}
        self.waiting: dict[tuple[str, _At], list[tuple[int, int]]] = {}

    def run(self) -> str:
        """Advance every thread as far as possible; return the waits of the threads that did not end."""
        queue = deque(self.done)
        while queue:
            thread = queue.popleft()
            while (at := self._next(thread)) is not None:
                if at not in self.begun:
                    if self._wait("done", [(thread[0], *sync) for sync in self._step(at).syncs], thread):
                        break
                    self.begun.add(at)
                    queue.extend(self.waiting.pop(("begun", at), ()))
                if self._wait("begun", self.partners.get(at, []), thread):
                    break
                self.done[thread] += 1
                queue.extend(self.waiting.pop(("done", at), ()))
        return self._blocked()

    def _next(self, thread: tuple[int, int]) -> _At | None:
        r, t = thread
        s = self.done[thread]
        return (r, t, s) if s < len(self.document.ranks[r].threads[t].steps) else None

    def _step(self, at: _At) -> Step:
        r, t, s = at
        return self.document.ranks[r].threads[t].steps[s]

    def _missing(self, kind: str, needed: list[_At]) -> _At | None:
        for at in needed:
            if at not in self.begun if kind == "begun" else self.done[at[:2]] <= at[2]:
                return at
        return None

    def _wait(self, kind: str, needed: list[_At], thread: tuple[int, int]) -> bool:
        missing = self._missing(kind, needed)
        if missing is not None:
            self.waiting.setdefault((kind, missing), []).append(thread)
        return missing is not None

    def _blocked(self) -> str:
        waits = []
        for kind, at in self.waiting:
            for thread in self.waiting[kind, at]:
                here = self._next(thread)
                if here is not None:
                    what = "is done" if kind == "done" else "has begun"
                    waits.append(f"{self._named(here)} waits until {self._named(at)} {what}")
        waits.sort()
        more = f"; and {len(waits) - _SHOWN} more" if len(waits) > _SHOWN else ""
        return "; ".join(waits[:_SHOWN]) + more + " (R11)" if waits else ""

    def _named(self, at: _At) -> str:
        return f"step {at[1]}.{at[2]} of rank {at[0]} (line {self._step(at).line})"
