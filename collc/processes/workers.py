"""Calls of functions of modules, here or in other processes, with progress; results keep the order of the calls."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import TypeVar

import attrs

from collc.ir.diagnostic import error
from collc.ir.progress import progress

__all__ = ["Work", "completed", "cores", "pool"]

T = TypeVar("T")
#: ``progress(what, done, total)``
Progress = Callable[[str, int, int], object]
#: between two looks for a cancellation while workers work
_POLL_SECONDS = 0.1


def cores() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@attrs.frozen
class Work:
    """Runs calls in the workers of ``executor`` or here, and reports their progress."""

    executor: Executor | None = None
    progress: Progress | None = None

    def report(self, what: str, done: int = 0, total: int = 0) -> None:
        """Call the progress callback, if there is one."""
        if self.progress is not None:
            self.progress(what, done, total)

    def run(self, function: Callable[..., T], calls: Sequence[tuple[object, ...]], names: Sequence[str]) -> list[T]:
        """Return the results of all calls, in their order. Raises C0024 if a worker ended."""
        results: dict[int, T] = {}
        for done, (place, result) in enumerate(self._results(function, calls, names), 1):
            results[place] = result
            self.report(names[place], done, len(calls))
        return [results[place] for place in range(len(calls))]

    def _results(
        self, function: Callable[..., T], calls: Sequence[tuple[object, ...]], names: Sequence[str]
    ) -> Iterator[tuple[int, T]]:
        if self.executor is None:
            for place, call in enumerate(calls):
                self.report(names[place], place, len(calls))
                yield place, function(*call)
            return
        try:
            self.report(names[0] if names else "", 0, len(calls))
            futures = [self.executor.submit(function, *call) for call in calls]
            yield from ((place, futures[place].result()) for place in completed(futures))
        except BrokenExecutor as problem:
            message = "a worker ended before its part of the work was done"
            raise error("C0024", message, notes=[str(problem) or type(problem).__name__]) from None


def completed(futures: Sequence[Future[T]]) -> Iterator[int]:
    """Yield the place of each future when it is done; the observer of this thread's progress is asked regularly.

    If the caller stops early, futures that have not begun are cancelled.
    """
    pending = {future: place for place, future in enumerate(futures)}
    try:
        while pending:
            done, _ = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            yield from sorted(pending.pop(future) for future in done)
            if not done:
                progress("waiting for workers", len(futures) - len(pending), len(futures))
    finally:
        for future in pending:
            future.cancel()


@contextlib.contextmanager
def pool(jobs: int) -> Iterator[Executor | None]:
    """Yield a pool of ``jobs`` processes, None for one; no process outlives the block."""
    if jobs <= 1:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Spawned, not forked: the same on every system, and safe beside threads.
    executor = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_serve)
    try:
        yield executor
        executor.shutdown()
    except BaseException:
        running = list((getattr(executor, "_processes", None) or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()
        raise


def _serve() -> None:
    """Ignore interrupts from the terminal, since the parent ends its workers; end if the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
