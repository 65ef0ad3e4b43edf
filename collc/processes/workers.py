"""Calls of functions of modules, here or in other processes, with progress; results keep the order of the calls."""

from __future__ import annotations

import contextlib
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import TypeVar

import attrs

from collc.ir.diagnostic import error
from collc.ir.progress import progress

__all__ = ["Renewable", "Work", "completed", "cores", "pool"]

T = TypeVar("T")
#: ``progress(what, done, total)``
Progress = Callable[[str, int, int], object]
#: between two looks for a cancellation while workers work
_POLL_SECONDS = 0.1
#: losses of workers one after the other, without a result between them, after which the work ends
_MOST_LOSSES = 3


def cores() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class Renewable(Executor):
    """An executor that goes on after the loss of a worker. ``lost`` are the exceptions of calls that a worker took with
    it; :meth:`renew` makes the executor ready to take these calls again. ``ends_calls`` says
    that the end of the executor also ends the calls that wait in it."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    ends_calls: bool = False

    def result(self, future: Future[T]) -> T:
        """Return the result of a call that is done, or raise its exception, one of ``lost`` if a worker took it."""
        return future.result()

    @abstractmethod
    def renew(self) -> None:
        """Replace lost workers."""


@attrs.frozen
class Work:
    """Runs calls in the workers of ``executor`` or here, and reports their progress."""

    executor: Executor | None = None
    progress: Progress | None = None

    def report(self, what: str, done: int = 0, total: int = 0) -> None:
        """Call the progress callback, if there is one."""
        if self.progress is not None:
            self.progress(what, done, total)

    def run(
        self, function: Callable[..., T], calls: Sequence[tuple[object, ...]], names: Sequence[str],
        keep: Callable[[int, T], object] | None = None,
    ) -> list[T]:  # fmt: skip
        """Return the results of all calls, in their order; ``keep`` gets each with its place as soon as it is there.

        Calls of a lost worker are made again if the executor is :class:`Renewable`. Raises C0024 if a worker ended.
        """
        results: dict[int, T] = {}
        for done, (place, result) in enumerate(self._results(function, calls, names), 1):
            results[place] = result
            if keep is not None:
                keep(place, result)
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
        self.report(names[0] if names else "", 0, len(calls))
        left, losses = dict(enumerate(calls)), 0
        while left:
            known, losses = len(left), losses + 1
            try:
                for place, result in _shared(self.executor, function, left):
                    del left[place]
                    yield place, result
            except _lost(self.executor) as problem:
                losses = losses if len(left) == known else 0
                if not isinstance(self.executor, Renewable) or losses >= _MOST_LOSSES:
                    message = "a worker ended before its part of the work was done"
                    raise error("C0024", message, notes=[str(problem) or type(problem).__name__]) from None
                self.executor.renew()


def _lost(executor: Executor) -> tuple[type[BaseException], ...]:
    return executor.lost if isinstance(executor, Renewable) else (BrokenExecutor,)


def _shared(
    executor: Executor, function: Callable[..., T], calls: Mapping[int, tuple[object, ...]]
) -> Iterator[tuple[int, T]]:
    """Yield the results of calls in an executor's workers as they come, each with its place."""
    places = list(calls)
    futures = [executor.submit(function, *calls[place]) for place in places]
    cancels = not (isinstance(executor, Renewable) and executor.ends_calls)
    result = executor.result if isinstance(executor, Renewable) else Future.result
    yield from ((places[at], result(futures[at])) for at in completed(futures, cancels))


def completed(futures: Sequence[Future[T]], cancels: bool = True) -> Iterator[int]:
    """Yield the place of each future when it is done; the observer of this thread's progress is asked regularly.

    If the caller stops early, ``cancels`` cancels the futures that have not begun.
    """
    pending = {future: place for place, future in enumerate(futures)}
    try:
        while pending:
            done, _ = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            yield from sorted(pending.pop(future) for future in done)
            if not done:
                progress("waiting for workers", len(futures) - len(pending), len(futures))
    finally:
        # A pool of processes whose workers ended gives all its futures an exception, and cannot where one is cancelled.
        if cancels and not any(_is_broken(future) for future in futures):
            for future in pending:
                future.cancel()


def _is_broken(future: Future[T]) -> bool:
    return future.done() and not future.cancelled() and isinstance(future.exception(), BrokenExecutor)


@contextlib.contextmanager
def pool(jobs: int) -> Iterator[Executor | None]:
    """Yield a pool of ``jobs`` processes, None for one; no process outlives the block."""
    if jobs <= 1:
        yield None
        return
    from .spawning import Pool, Spawning

    processes = Spawning()
    executor = Pool(jobs, mp_context=processes, initializer=_serve)
    try:
        yield executor
        executor.shutdown()
    except BaseException:
        processes.terminate()
        # The pool's thread must end before the interpreter does, which otherwise may write into a pipe that the thread
        # closes. Calls that wait are not cancelled, see `completed`.
        executor.shutdown()
        raise


def _serve() -> None:
    """Ignore interrupts from the terminal, since the parent ends its workers; end if the parent ends."""
    from .spawning import ignore_interrupts

    ignore_interrupts()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
