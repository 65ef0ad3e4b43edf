"""Standard output as bytes."""

from __future__ import annotations

import errno
import sys

__all__ = ["write_stdout"]


def write_stdout(data: bytes) -> None:
    """Write all of ``data`` now; raise OSError if that fails, or if there is no standard output."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "it is closed")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
