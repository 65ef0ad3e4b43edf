"""Names and locks of temporary files: the name identifies the output, the lock shows that its process lives."""

from __future__ import annotations

import os
import re

try:
    import fcntl
except ImportError:  # only Unix has it; elsewhere leftovers cannot be recognized
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK", "beside", "kind_of", "lock", "names_inode"]

#: Held while files are put into a folder.
LOCK = ".collc-lock"

_NAME = re.compile(r"\..*\.collc-[0-9a-f]{12}\.(new|old|journal)", re.DOTALL)
_LONGEST = 100  # kept bytes of an output's name, so that the whole name fits any file system


def beside(place: str, kind: str) -> str:
    """Return an unused name for a temporary file of an output: ``.NAME.collc-TOKEN.KIND``, beside it."""
    folder, name = os.path.split(place)
    name = os.fsencode(name)[:_LONGEST].decode(errors="ignore")
    return os.path.join(folder, f".{name}.collc-{os.urandom(6).hex()}.{kind}")


def kind_of(name: str) -> str | None:
    """Return the kind of temporary file of collc with a name, or None.

    >>> kind_of(".a.c.collc-0123456789ab.new"), kind_of("a.c")
    ('new', None)
    """
    found = _NAME.fullmatch(name)
    return found[1] if found else None


def lock(descriptor: int) -> bool | None:
    """Lock a file until it is closed or the process ends; return whether that worked, None without locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def names_inode(path: str, descriptor: int) -> bool:
    """Return whether a path still names the open file."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False
