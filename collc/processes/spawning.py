"""Processes that no signal leaves half started."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.context import SpawnContext, SpawnProcess
from types import FrameType
from typing import Any, ParamSpec, TypeVar

__all__ = ["Pool", "Spawning", "ignore_interrupts"]

P = ParamSpec("P")
T = TypeVar("T")
#: after a signal that a program handles, its stack unwinds and ends the processes
_HANDLED = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Pool(ProcessPoolExecutor):
    """Processes that start at the first calls. A process inherits held interrupts from the thread that starts it."""

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Return the future result of a call. A signal waits until its process and the pool's thread have started,
        because an executor with a thread that has not started cannot shut down."""
        with _signals_held():
            return super().submit(function, *args, **kwargs)


class Spawning(SpawnContext):
    """Spawned, not forked: the same on every system, and safe beside threads. A process holds the interrupts that come
    before it calls :func:`ignore_interrupts`."""

    def __init__(self) -> None:
        super().__init__()
        self._spawned: list[SpawnProcess] = []

    # Any: the arguments of a process
    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]
        """Return a process that has not started."""
        self._spawned.append(SpawnProcess(*args, **kwargs))
        return self._spawned[-1]

    def terminate(self) -> None:
        """End all processes, also one whose start was interrupted before its executor knew it."""
        for process in self._spawned:
            with contextlib.suppress(ValueError):  # its executor has closed it
                if process.pid is not None:
                    process.terminate()


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Hold signals that this program handles for the block: one in it comes when the block ends.

    What is started inherits the mask of this thread, for interrupts from the terminal. Another thread of this process
    may still take a signal, and the main thread then handles it wherever it is; so the handlers wait too.
    """
    held: list[int] = []
    handlers = _handlers()
    for number in handlers:
        signal.signal(number, lambda number, _: held.append(number))
    masks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in held:
            signal.raise_signal(number)


def _handlers() -> dict[int, Callable[[int, FrameType | None], object]]:
    """Return the handlers of this program; only its main thread can replace them."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: handler for number in _HANDLED if callable(handler := signal.getsignal(number))}


def ignore_interrupts() -> None:
    """Ignore interrupts from the terminal from now on, and those that were held."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
