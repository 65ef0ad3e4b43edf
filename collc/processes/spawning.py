"""Processes that no interrupt from the terminal ends while they start."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

__all__ = ["Spawning", "ignore_interrupts"]


class _Held(SpawnProcess):
    """A process that inherits held interrupts from the thread that starts it."""

    def start(self) -> None:
        with _interrupts_held():
            super().start()


class Spawning(SpawnContext):
    """Spawned, not forked: the same on every system, and safe beside threads. A process holds the interrupts that come
    before it calls :func:`ignore_interrupts`."""

    def __init__(self) -> None:
        super().__init__()
        self._spawned: list[SpawnProcess] = []

    # Any: the arguments of a process
    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]
        """Return a process that has not started."""
        self._spawned.append(_Held(*args, **kwargs))
        return self._spawned[-1]

    def terminate(self) -> None:
        """End all processes, also one whose start was interrupted before its executor knew it."""
        for process in self._spawned:
            with contextlib.suppress(ValueError):  # its executor has closed it
                if process.pid is not None:
                    process.terminate()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold interrupts from the terminal for the block: one in it comes when it ends.

    What is started inherits the mask of this thread. Another thread of this process may still take the interrupt, and
    the main thread then handles it wherever it is; so its handler waits too.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    held: list[int] = []
    handler = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if handler is not None:
        signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(held[0])


def ignore_interrupts() -> None:
    """Ignore interrupts from the terminal from now on, and those that were held."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
