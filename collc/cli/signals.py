"""Signals that end the process: the stack unwinds, temporary files are removed, and child processes end.

An exception from a signal handler can be lost. Compiled modules turn an exception during their import into an
ImportError, after they print it, or clear it. Finalizers and callbacks of weak references drop it with a useless
warning. So the request is also stored, and checked between steps and before files are written. It is not shown.

The exception can be delayed: handlers run between two steps of the interpreter, and one call of a compiled module may
take minutes. So a thread receives signals at once, and ends the process if it still runs a second later.
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
from types import FrameType, TracebackType

__all__ = ["GRACE_SECONDS", "Signals", "Terminated"]

#: seconds that the stack may take to unwind
GRACE_SECONDS = 1.0
#: signals within this time after the first count as the same request, sent to the process and to its group
_SAME_SECONDS = 0.3
#: an option that multiprocessing's tracker inherits: it removes the semaphores of a killed process, and would warn
_SILENCE = "ignore:resource_tracker:UserWarning"


class Terminated(BaseException):
    """A signal requested the end of the process."""

    def __init__(self, number: int):
        self.number = number


class Signals:
    """The signals that arrive while :meth:`caught` is active.

    At most ``grace`` seconds pass from the first signal to the end of the process. ``last_words`` is called if it ends
    without unwinding.
    """

    def __init__(self, last_words: Callable[[], None] = lambda: None) -> None:
        self.pending: int | None = None
        self.raises = True  # False while the handlers are restored, so that no signal interrupts it
        self.grace, self.last_words = GRACE_SECONDS, last_words

    @contextlib.contextmanager
    def caught(self, *, alone: bool = False) -> Iterator[None]:
        """Raise Terminated on the first SIGINT, SIGTERM or SIGHUP that is not ignored; only a main thread can.

        Later signals have no effect, except that a guarded process ends at once. ``alone`` states that the process has
        no other work: then the thread guards it, and signals do not interrupt the code after the block.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [n for n in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None)) if n is not None]
        usual = (signal.SIG_DFL, signal.default_int_handler)
        before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) in usual}
        if alone:
            sys.warnoptions.append(_SILENCE)
        if alone and os.name == "posix":
            self._guard(before)
        shown, printed = sys.unraisablehook, sys.excepthook
        try:
            sys.unraisablehook = partial(_unless_terminated, shown)
            sys.excepthook = partial(_printed_unless_terminated, printed)
            for number in before:
                signal.signal(number, self._arrived)
            yield
        finally:
            self.raises, earlier = False, self.pending
            for number, handler in before.items():
                signal.signal(number, signal.SIG_IGN if alone else handler)
            sys.unraisablehook, sys.excepthook = shown, printed
            if self.pending is not None and earlier is None and not alone:
                signal.raise_signal(self.pending)

    def check(self) -> None:
        """Raise Terminated if a signal has arrived, even if its exception was lost."""
        if self.pending is not None:
            raise Terminated(self.pending)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self.pending is None:
            self.pending = number
            if self.raises:
                raise Terminated(number)

    # ---- the guarding thread

    def _guard(self, numbers: Iterable[int]) -> None:
        """Write the number of every signal to a pipe at its arrival, and start a thread that reads the pipe."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        watched = {int(number) for number in numbers}
        threading.Thread(target=self._listen, args=(reader, watched), name="signals", daemon=True).start()

    def _listen(self, reader: int, watched: set[int]) -> None:
        number = next(n for n in iter(lambda: os.read(reader, 1)[0], None) if n in watched)
        first = time.monotonic()
        while (left := first + self.grace - time.monotonic()) > 0:
            ready, _, _ = select.select([reader], [], [], min(left, 0.1))
            again = bool(ready) and os.read(reader, 1)[0] in watched
            if again and time.monotonic() - first > _SAME_SECONDS:
                break
        self._end(number)

    def _end(self, number: int) -> None:
        """End the process and remove its temporary files: the main thread has not returned."""
        from ..processes.children import end_children

        # This thread must not wait for an import. If the module is not loaded, no file was written.
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


def _printed_unless_terminated(
    printed: Callable[[type[BaseException], BaseException, TracebackType | None], object],
    kind: type[BaseException], value: BaseException, traceback: TracebackType | None,
) -> None:  # fmt: skip
    if not issubclass(kind, Terminated):
        printed(kind, value, traceback)
