"""The memory of this process."""

from __future__ import annotations

import sys

from collc.ir.frozen import frozen

__all__ = ["Memory", "memory"]

_STATUS = "/proc/self/status"


@frozen
class Memory:
    """Resident bytes of a process: ``held`` now, and ``peak``, the most since it began. None is unknown."""

    held: int | None
    peak: int | None


def memory() -> Memory:
    """Return the memory of this process; without /proc only its peak, and nothing on Windows.

    The system counts pages, so the numbers differ from run to run. Memory that Python has freed may still be held.
    """
    try:
        with open(_STATUS, "rb") as stream:
            lines = dict(line.split(b":", 1) for line in stream if line.startswith((b"VmRSS:", b"VmHWM:")))
    except OSError:
        lines = {}
    held, peak = (_size(lines.get(key)) for key in (b"VmRSS", b"VmHWM"))
    return Memory(held, _usage() if peak is None else peak)


def _size(kibibytes: bytes | None) -> int | None:
    return None if kibibytes is None else int(kibibytes.split()[0]) * 1024


def _usage() -> int | None:
    """Return the peak as the system counts it for the parent: on Linux it begins with the parent's own."""
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
