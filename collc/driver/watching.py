"""Progress of long work for the caller of the API, and its cancellation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from collc.ir.diagnostic import CollcError, Diagnostic, Kind, error
from collc.ir.levels import Executable
from collc.ir.progress import watched
from collc.ir.shown import clipped

from .plan import Plan

__all__ = ["Cancel", "Cancelled", "Progress", "Watch", "watching"]


class Progress(Protocol):
    """The type of a ``progress=`` callback: a function of a name, the number of done parts, and of all parts.

    ``what`` names the work: a collective, a step of its compilation (``grads: bfb``), or a part of a step
    (``executing shards``). A ``total`` of 0 is unknown. The call comes from the thread that called the API, often, and
    the work waits for it. An exception of the callback ends the work and is raised unchanged.

    >>> import collc
    >>> names = []
    >>> def progress(what: str, done: int, total: int) -> None:
    ...     names.append(what)
    >>> result = collc.compile_source("collective c = allgather on biring(4);", progress=progress)
    >>> names[0], names[-1]
    ('c', 'done')
    """

    def __call__(self, what: str, done: int, total: int, /) -> object:
        """Take a report of progress."""


@runtime_checkable
class Cancel(Protocol):
    """The type of ``cancel=``: an object with ``is_set()``, such as ``threading.Event``.

    >>> import threading
    >>> import collc
    >>> cancel: collc.Cancel = threading.Event()
    >>> cancel.is_set()
    False
    """

    def is_set(self) -> bool:
        """Return whether the work is to end; called from the thread that works."""


class Cancelled(CollcError):
    """The caller cancelled the work by ``cancel=``; collc wrote no file.

    >>> import threading
    >>> import collc
    >>> cancel = threading.Event()
    >>> cancel.set()
    >>> collc.compile_source("collective c = allgather on biring(4);", cancel=cancel)
    Traceback (most recent call last):
    collc.driver.watching.Cancelled: error: the caller cancelled the work [C0097]
    """

    def __init__(self, diagnostics: object = None, exit_status: int = 1):
        message = "the caller cancelled the work"
        super().__init__(Diagnostic("C0097", message, kind=Kind.CANCELLED), 1)


def _refused(name: str, value: object, need: str) -> CollcError:
    return error("C0001", f"found {name} {clipped(repr(value))}, needed {need}", exit_status=2)


class _Ended(BaseException):
    """Ends the work from inside a report. It is no Exception, so no pass and no choice takes it for a failure."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__()
        self.reason = reason


class Watch:
    """Reports to ``progress`` and asks ``cancel``; also an observer of the driver."""

    def __init__(self, progress: Progress | None, cancel: Cancel | None) -> None:
        self.progress, self.cancel = progress, cancel

    def __call__(self, what: str, done: int = 0, total: int = 0) -> None:
        """Report progress; end the work if the caller cancelled it."""
        try:
            if self.progress is not None:
                self.progress(what, done, total)
        except Exception as problem:
            raise _Ended(problem) from problem
        self.check()

    def check(self) -> None:
        """End the work if the caller cancelled it."""
        try:
            cancelled = self.cancel is not None and self.cancel.is_set()
        except Exception as problem:
            raise _Ended(problem) from problem
        if cancelled:
            raise _Ended(Cancelled())

    def planned(self, collective: str, chain: Plan) -> None:
        """Take a plan; there is nothing to report."""

    def begins(self, collective: str, step: str) -> None:
        """Report that a step begins."""
        self(f"{collective}: {step}")

    def finished(self, collective: str, step: str, ir: Executable) -> None:
        """Take the IR of a pass; there is nothing to report."""


@contextmanager
def watching(progress: Progress | None, cancel: Cancel | None) -> Iterator[Watch | None]:
    """Yield a watch that all work inside reports to, or None without callbacks; raise Cancelled if it ended the work.

    An exception of a callback is raised unchanged. Raises C0001 for what is no callback.
    """
    if progress is None and cancel is None:
        yield None
        return
    if progress is not None and not callable(progress):
        raise _refused("progress", progress, "a function of a text and two numbers")
    if cancel is not None and not isinstance(cancel, Cancel):
        raise _refused("cancel", cancel, "an object with is_set(), such as threading.Event()")
    watch = Watch(progress, cancel)
    try:
        with watched(watch):
            watch.check()
            yield watch
    except _Ended as end:
        raise end.reason from None
