"""A bounded store of texts by key, shared by processes: the cache of compilations.

Every entry is one file of the user's own: a line with the digest of the rest, then the rest. A file that is truncated,
changed, or writable by others is ignored, and written again. Nothing is ever executed or unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping

from collc.ir.diagnostic import error
from collc.ir.frozen import frozen

from .trust import TEMPORARY, write_privately

__all__ = ["MOST_BYTES", "Contents", "Store", "default_folder", "digest", "opened"]

#: the default of the most bytes of all entries
MOST_BYTES = 512 << 20

_HEAD = "collc-store 1 "
_ENTRY = re.compile(r"[0-9a-f]{64}\.json")
_STALE_SECONDS = 3600.0
_KEPT_SHARE = 3, 4  # of the bound, after old entries are removed


def default_folder(environ: Mapping[str, str], platform: str = sys.platform) -> str:
    """Return the folder of the store unless the user names one, by the rules of the platform.

    >>> default_folder({"XDG_CACHE_HOME": "/var/cache/me"}, "linux")
    '/var/cache/me/collc/results'
    """
    home = environ.get("HOME") or os.path.expanduser("~")
    given = environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        base = given
    elif platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    elif platform == "win32":
        base = environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    else:
        base = os.path.join(home, ".cache")
    return os.path.join(base, "collc", "results")


def opened(folder: str) -> Store:
    """Return the store in a folder, created if it is missing; raise C0085 if others can write there."""
    flaw = _flaw(folder)
    if flaw is not None:
        hint = "name another folder for the cache, or make this one private: chmod 700"
        raise error("C0085", f"`{folder}` cannot be the cache: {flaw}", hint=hint)
    return Store(folder)


@frozen
class Contents:
    """The number of entries of a store, and their bytes."""

    entries: int
    size: int


@frozen
class Store:
    """Texts in the files of ``folder``, at most ``most`` bytes in all; the least recently used go first.

    Reads and writes raise nothing for the state of files: an entry that cannot be read is missing, and one that cannot
    be written is not kept.
    """

    folder: str
    most: int = MOST_BYTES

    def read(self, key: str, *, uses: bool = True) -> str | None:
        """Return the text of a key, a SHA-256 in hexadecimal; None if it is missing or not as it was written.

        That is a use of the entry, unless ``uses`` is false.
        """
        path = self._path(key)
        try:
            text = _read_private(path)
        except (OSError, ValueError):
            return None
        head, _, body = text.partition("\n")
        if head != _HEAD + digest(body):
            return None
        if uses:
            with contextlib.suppress(OSError):
                os.utime(path)
        return body

    def write(self, key: str, text: str) -> bool:
        """Keep a text; return whether it is kept. Readers see the old entry or the new one, never a part."""
        body = text.encode("utf-8", "surrogateescape")
        if 2 * len(body) > self.most:
            return False
        try:
            write_privately(self._path(key), f"{_HEAD}{digest(text)}\n".encode() + body)
        except OSError:
            return False
        self._shrink()
        return True

    def contents(self) -> Contents:
        """Return the number of entries and their bytes."""
        found = [size for _, _, size in self.entries()]
        return Contents(len(found), sum(found))

    def clear(self) -> Contents:
        """Remove all entries; return what was removed."""
        removed = [size for path, _, size in list(self.entries()) if _removed(path)]
        return Contents(len(removed), sum(removed))

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, f"{key}.json")

    def entries(self) -> Iterator[tuple[str, float, int]]:
        """Yield path, time of last use and size of every entry."""
        try:
            with os.scandir(self.folder) as listed:
                for one in listed:
                    if _ENTRY.fullmatch(one.name):
                        with contextlib.suppress(OSError):
                            found = one.stat(follow_symlinks=False)
                            yield one.path, found.st_mtime, found.st_size
        except OSError:
            return

    def _shrink(self) -> None:
        """Remove the least recently used entries if all together exceed the bound, and stale temporary files."""
        entries = sorted(self.entries(), key=lambda one: (one[1], one[0]))
        total = sum(size for _, _, size in entries)
        self._remove_stale()
        if total <= self.most:
            return
        share, whole = _KEPT_SHARE
        for path, _, size in entries:
            if total * whole <= self.most * share:
                return
            total -= size if _removed(path) else 0

    def _remove_stale(self) -> None:
        """Remove temporary files of processes that were killed."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as listed:
            for one in listed:
                if one.name.endswith(TEMPORARY) and time.time() - one.stat().st_mtime > _STALE_SECONDS:
                    _removed(one.path)


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _read_private(path: str) -> str:
    """Return the text of a regular file that only this user can write; raise OSError or ValueError otherwise."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode) or not _is_private(found):
            raise ValueError(path)
        return stream.read().decode("utf-8", "surrogateescape")


def _is_private(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)


def _flaw(folder: str) -> str | None:
    """Return why a folder cannot be the store, or None; create it if it is missing."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.stat(folder)
    except (OSError, ValueError) as problem:
        return (getattr(problem, "strerror", None) or str(problem)).lower()
    if not _is_private(found):
        return "it is not yours, or others can write there"
    return None if os.access(folder, os.W_OK | os.X_OK) else "permission denied"


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
