"""Child processes: a process that ends without unwinding ends them too."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

__all__ = ["children", "end_children"]


def children() -> list[int]:
    """Return the running child processes; empty on systems other than Linux."""
    found: set[int] = set()
    for listed in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found.update(map(int, listed.read_text().split()))
    return sorted(found - {_tracker()})


def _tracker() -> int | None:
    """Return the process that removes our semaphores after our end; it ends by itself."""
    module = sys.modules.get("multiprocessing.resource_tracker")
    return getattr(getattr(module, "_resource_tracker", None), "_pid", None)


def end_children() -> None:
    """Kill the child processes, and their process groups if they lead one."""
    for child in children():
        with contextlib.suppress(OSError):
            leads = os.getpgid(child) == child
            (os.killpg if leads else os.kill)(child, signal.SIGKILL)
