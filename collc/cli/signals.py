"""Signals that ask the process to end: the stack unwinds, so that temporary files go and child processes end.

An exception raised by a signal's handler can be lost: compiled modules turn what interrupts their import into an
ImportError, or clear it; finalizers and callbacks of weak references drop it, with a warning that nobody can use.
So the request is kept, too, and asked about between steps and before anything is written; and the warning is not shown.
And it can come late: handlers run between two steps of the interpreter, and one call of a compiled module may take
minutes. So a thread hears of signals at once, and ends the process if it is still there a second later.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FrameType

__all__ = ["GRACE_SECONDS", "Signals", "Terminated"]

#: how long the stack may take to unwind
GRACE_SECONDS = 1.0
#: signals that come so soon after the first are the same wish, said to the process and to its group
_SAME_SECONDS = 0.3


class Terminated(BaseException):
    """A signal asked the process to end."""

    def __init__(self, number: int):
        self.number = number


class Signals:
    """What arrived while :meth:`caught` was active.

    ``grace`` is how many seconds may pass from the first signal to the end of the process; ``last_words`` is called
    when it ends without unwinding.
    """

    def __init__(self, last_words: Callable[[], None] = lambda: None) -> None:
        self.pending: int | None = None
        self.raises = True  # until the handlers are given back: nothing interrupts that halfway
        self.grace, self.last_words = GRACE_SECONDS, last_words

    @contextlib.contextmanager
    def caught(self, *, alone: bool = False) -> Iterator[None]:
        """Raise Terminated on the first SIGINT, SIGTERM or SIGHUP that is not ignored; only a main thread can.

        Later ones change nothing, but that a guarded process ends at once. ``alone`` says that the process does nothing
        else: then the thread guards it, and what comes after the block is not interrupted.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [n for n in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None)) if n is not None]
        usual = (signal.SIG_DFL, signal.default_int_handler)
        before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) in usual}
        if alone and os.name == "posix":
            self._guard(before)
        shown = sys.unraisablehook
        try:
            sys.unraisablehook = partial(_unless_terminated, shown)
            for number in before:
                signal.signal(number, self._arrived)
            yield
        finally:
            self.raises, earlier = False, self.pending
            for number, handler in before.items():
                signal.signal(number, signal.SIG_IGN if alone else handler)
            sys.unraisablehook = shown
            if self.pending is not None and earlier is None and not alone:
                signal.raise_signal(self.pending)

    def check(self) -> None:
        """Raise Terminated if a signal has arrived, whatever became of the exception it raised."""
        if self.pending is not None:
            raise Terminated(self.pending)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self.pending is None:
            self.pending = number
            if self.raises:
                raise Terminated(number)

    # ---- the thread that guards

    def _guard(self, numbers: Iterable[int]) -> None:
        """Have every signal's number written to a pipe when it comes, whatever the interpreter does, and read it."""
        hears, tells = os.pipe()
        os.set_blocking(tells, False)
        signal.set_wakeup_fd(tells, warn_on_full_buffer=False)
        watched = {int(number) for number in numbers}
        threading.Thread(target=self._listen, args=(hears, watched), name="signals", daemon=True).start()

    def _listen(self, hears: int, watched: set[int]) -> None:
        number = next(n for n in iter(lambda: os.read(hears, 1)[0], None) if n in watched)
        first = time.monotonic()
        while (left := first + self.grace - time.monotonic()) > 0:
            ready, _, _ = select.select([hears], [], [], min(left, 0.1))
            again = bool(ready) and os.read(hears, 1)[0] in watched
            if again and time.monotonic() - first > _SAME_SECONDS:
                break
        self._end(number)

    def _end(self, number: int) -> None:
        """End the process from here, with nothing left behind: the main thread has not come back."""
        from ..processes.children import end_children

        # Not imported here, lest this thread wait for an import: without the module nothing was written.
        if (files := sys.modules.get("collc.files.texts")) is not None:
            files.discard_temporaries()
        end_children()
        words = threading.Thread(target=self.last_words, daemon=True)  # a terminal may be stopped
        words.start()
        words.join(0.2)
        os._exit(128 + number)


def _unless_terminated(shown: Callable[[sys.UnraisableHookArgs], object], dropped: sys.UnraisableHookArgs) -> None:
    if not isinstance(dropped.exc_value, Terminated):
        shown(dropped)
