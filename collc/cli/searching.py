"""The workers of long searches, and how long the rest of the work takes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

from ..processes.engines import Engine, engine, parse_engine
from ..processes.workers import Work, cores
from .arguments import usage_error
from .console import Console

__all__ = ["Remaining", "workers"]

#: a call of this: what is done, the number of finished parts, the number of all parts
Count = Callable[[str, int, int], object]
_LEAST_SECONDS = 2.0  # before the first estimate


@contextlib.contextmanager
def workers(options: SimpleNamespace, console: Console, in_parallel: bool = True) -> Iterator[Work]:
    """Yield the workers of ``--executor`` or ``-j``; work that is not worth workers runs here if none are named."""
    wanted = _engine(options)
    with engine(wanted if in_parallel or options.executor else Engine("processes", 1)) as executor:
        yield Work(executor, Remaining(console.count))


def _engine(options: SimpleNamespace) -> Engine:
    if options.executor is None:
        return Engine("processes", options.jobs or cores())
    wanted = parse_engine(options.executor)
    if options.jobs:
        raise usage_error("--executor says what the workers are, found also -j", "write `--executor processes:N`")
    return wanted


class Remaining:
    """Adds to the progress of a list of parts how long the rest of it takes, as fast as it went so far."""

    def __init__(self, count: Count, clock: Callable[[], float] = time.monotonic) -> None:
        self.count, self.clock = count, clock
        self.total, self.first, self.start = 0, 0, clock()

    def __call__(self, what: str, done: int, total: int) -> None:
        if total and (total != self.total or done < self.first):
            self.total, self.first, self.start = total, done, self.clock()
        spent = self.clock() - self.start
        if total and self.first < done < total and spent >= _LEAST_SECONDS:
            what = f"{what}, {_shown(spent / (done - self.first) * (total - done))} left"
        self.count(what, done, total)


def _shown(seconds: float) -> str:
    """Return a duration in the largest unit that fits.

    >>> _shown(50), _shown(600), _shown(9000)
    ('50 s', '10 min', '2.5 h')
    """
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970 else f"{seconds / 3600:.1f} h"
