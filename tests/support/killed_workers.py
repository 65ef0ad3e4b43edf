"""Functions that kill the worker they run in, for tests of engines. Workers import this module."""

from __future__ import annotations

import os
import signal
from pathlib import Path

__all__ = ["kills_always", "kills_once", "squared"]


def squared(number: int) -> int:
    return number * number


def kills_once(number: int, folder: str) -> int:
    """Return the square; the first worker that computes a multiple of three is killed in the middle."""
    if number % 3 == 0:
        try:
            (Path(folder) / f"killed-{number}").touch(exist_ok=False)
        except FileExistsError:
            return squared(number)
        os.kill(os.getpid(), signal.SIGKILL)
    return squared(number)


def kills_always(number: int) -> int:
    """Kill the worker, unless the number is 0."""
    if number:
        os.kill(os.getpid(), signal.SIGKILL)
    return number
