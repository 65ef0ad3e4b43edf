"""The memory of this process."""

from __future__ import annotations

import os
import sys

from collc.ir.frozen import frozen

__all__ = ["Memory", "keep_freed_memory", "memory"]

_STATUS = "/proc/self/status"
#: mallopt of glibc: parameter -> bytes. Blocks below the second come from the heap; the heap's free end stays below
#: the first.
_KEPT = {-1: (1 << 31) - 1, -3: 1 << 30}
#: variables by which a user chooses these parameters
_CHOSEN = ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")


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


def keep_freed_memory() -> bool:
    """Keep what this process frees for its next columns, and return whether the allocator does so now.

    Passes make and drop columns of megabytes. glibc returns each to the system, which clears the pages of the next:
    half of the system's time of a compilation, and a tenth of the whole. For a process that ends soon; one that imports
    collc decides for itself, and so does a user who has set glibc's variables.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _CHOSEN):
        return False
    import ctypes

    set_parameter = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    return set_parameter is not None and all(set_parameter(*pair) == 1 for pair in _KEPT.items())


def _size(kibibytes: bytes | None) -> int | None:
    return None if kibibytes is None else int(kibibytes.split()[0]) * 1024


def _usage() -> int | None:
    """Return the peak as the system counts it for the parent: on Linux it begins with the parent's own."""
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
