"""Errors of the operating system, in words."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from collc.ir.diagnostic import CollcError, error

__all__ = ["STDOUT", "cannot_write", "reason", "writing"]

STDOUT = "-"

_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.EACCES: "permission denied",
    errno.EPERM: "the system does not permit it, as for immutable files and another user's in a shared directory",
    errno.EISDIR: "it is a directory",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "it exceeds the largest size that a file may have",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "too many symbolic links",
    errno.EROFS: "the file system is read-only",
}


def reason(problem: OSError | ValueError) -> str:
    """Return the reason for an error of the system, as the end of a sentence."""
    if isinstance(problem, OSError):
        return _REASONS.get(problem.errno or 0) or (problem.strerror or str(problem)).lower()
    return str(problem)


def cannot_write(path: str, problem: OSError, *notes: str) -> CollcError:
    """Return C0004 for an output that the system does not write."""
    shown = "standard output" if path == STDOUT else f"`{path}`"
    return error("C0004", f"cannot write {shown}: {reason(problem)}", notes=notes)


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn errors of the system into C0004 for this output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise cannot_write(path, problem) from None
