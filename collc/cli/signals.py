"""Signals that ask the process to end: the stack unwinds, so that temporary files go and child processes end.

An exception raised by a signal's handler can be lost: compiled modules turn what interrupts their import into an
ImportError, or clear it. So the request is kept, too, and asked about between steps and before anything is written.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["Signals", "Terminated"]


class Terminated(BaseException):
    """A signal asked the process to end."""

    def __init__(self, number: int):
        self.number = number


class Signals:
    """What arrived while :meth:`caught` was active."""

    def __init__(self) -> None:
        self.pending: int | None = None

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Raise Terminated on SIGINT, SIGTERM and SIGHUP, unless they are ignored; only a main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        wanted = [n for n in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None)) if n is not None]
        usual = (signal.SIG_DFL, signal.default_int_handler)
        before = {n: signal.getsignal(n) for n in wanted if signal.getsignal(n) in usual}
        for number in before:
            signal.signal(number, self._arrived)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raise Terminated if a signal has arrived, whatever became of the exception it raised."""
        if self.pending is not None:
            raise Terminated(self.pending)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self.pending = number
        raise Terminated(number)
