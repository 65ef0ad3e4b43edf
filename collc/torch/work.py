"""Running collectives: one thread per group performs them in the order of the calls."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

__all__ = ["CollcWork", "Worker"]

_FOREVER = timedelta(0)


class CollcWork(dist.Work):
    """The handle of a call for torch. Its future holds the tensors that ``work`` returns.

    ``where`` says what the group waits for.
    """

    def __init__(self, work: Callable[[], list[torch.Tensor]], where: Callable[[], str] | None = None):
        super().__init__()
        self._work, self._where = work, where
        self._future: torch.futures.Future[list[torch.Tensor]] = torch.futures.Future()
        self._done = threading.Event()
        self._problem: Exception | None = None
        self._tensors: list[torch.Tensor] = []

    def perform(self) -> None:
        """Execute the call; waiters get its errors."""
        try:
            self._tensors = self._work()
        except Exception as problem:
            self._problem = problem
        del self._work
        self._done.set()
        if self._problem is None:
            self._future.set_result(self._tensors)
        else:
            self._future.set_exception(self._problem)

    def wait(self, timeout: timedelta = _FOREVER) -> bool:
        """Wait until it is done, for at most ``timeout`` (0: the time limit of the call itself)."""
        seconds = timeout.total_seconds()
        if not self._done.wait(seconds if seconds > 0 else None):
            where = self._where() if self._where is not None else ""
            raise dist.DistBackendError(f"collc: not done after {seconds:g} s{where and ': '}{where}")
        if self._problem is not None:
            raise self._problem
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._done.is_set()

    def is_success(self) -> bool:
        return self._done.is_set() and self._problem is None

    def exception(self) -> Exception | None:
        return self._problem

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return self._tensors

    def source_rank(self) -> int:
        return -1

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        return self._future


class Worker:
    """The thread of a group, started on first use. Calls that are awaited at once need none."""

    def __init__(self, name: str):
        self.name = name
        self.ready = threading.Condition()
        self.queue: deque[CollcWork] = deque()
        self.busy = False
        self.performing: int | None = None
        self.closed = False
        self.thread: threading.Thread | None = None

    def submit(self, work: CollcWork, is_awaited: bool) -> CollcWork:
        """Perform work after all earlier work: in this thread if it ``is_awaited`` and the queue is empty.

        A call from a future's callback is performed at once: the callback may wait for it in the worker's thread.
        """
        if self.performing == threading.get_ident():
            work.perform()
            return work
        with self.ready:
            here = is_awaited and not self.queue and not self.busy
            if here:
                self.busy = True
            else:
                self.queue.append(work)
                self._start()
                self.ready.notify_all()
        if here:
            self._perform(work)
        return work

    def drain(self) -> None:
        """Wait until all submitted work is done."""
        with self.ready:
            while (self.queue or self.busy) and self.performing != threading.get_ident():
                self.ready.wait()

    def close(self) -> None:
        """Finish all submitted work, and end."""
        with self.ready:
            self.closed = True
            self.ready.notify_all()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join()

    def _start(self) -> None:
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self.thread.start()

    def _run(self) -> None:
        while True:
            with self.ready:
                while self.busy or not self.queue:
                    if self.closed and not self.busy:
                        return
                    self.ready.wait()
                work = self.queue.popleft()
                self.busy = True
            self._perform(work)

    def _perform(self, work: CollcWork) -> None:
        self.performing = threading.get_ident()
        try:
            work.perform()
        finally:
            self.performing = None
            with self.ready:
                self.busy = False
                self.ready.notify_all()
