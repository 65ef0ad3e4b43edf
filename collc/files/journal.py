"""Journals: lists of the files that a process replaces together. Another process completes them if it ends early."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import attrs

from collc.ir.frozen import frozen

__all__ = ["Move", "complete", "read_journal", "write_journal"]


@frozen
class Move:
    """A file that is replaced: its place, the new content's temporary name, the second name of the old content.

    ``before`` and ``after`` are digests of both contents; ``before`` is empty without old content.
    """

    place: str
    new: str
    old: str
    before: str
    after: str

    @classmethod
    def of(cls, place: str, new: str, old: str, data: bytes) -> Move:
        """Return the move that brings ``data`` from the path ``new`` to ``place``; old content is kept at ``old``."""
        import hashlib  # commands that write nothing do not wait for it

        return cls(place, new, old, _digest(place), hashlib.sha256(data).hexdigest())

    def keep(self) -> None:
        """Give the old content its second name; copy it if the file system has no second names."""
        if self.before:
            try:
                os.link(self.place, self.old)
            except OSError:
                import shutil

                shutil.copy2(self.place, self.old)

    def forward(self) -> None:
        """Put the new content in place, in one step of the file system."""
        os.replace(self.new, self.place)

    def back(self) -> None:
        """Put the old content back; remove the new one if there was none."""
        if self.before:
            os.replace(self.old, self.place)
        else:
            os.unlink(self.place)


def write_journal(path: str, moves: Sequence[Move]) -> None:
    """Write a journal to the disk; names are relative to its folder, which may move."""
    folder = os.path.dirname(path)
    rows = [
        {**attrs.asdict(m), **{k: os.path.relpath(getattr(m, k), folder) for k in ("place", "new", "old")}}
        for m in moves
    ]
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="ascii") as stream:
        json.dump(rows, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())


def read_journal(path: str) -> list[Move]:
    """Return the entries of a journal; empty if it is incomplete, since then no rename had begun.

    Raises OSError if it cannot be read, or belongs to another user, who cannot be trusted.
    """
    folder = os.path.dirname(path)
    with open(path, "rb") as stream:
        if os.fstat(stream.fileno()).st_uid != os.geteuid():
            raise PermissionError(path)
        try:
            moves = [Move(**row) for row in json.loads(stream.read())]
        except (ValueError, TypeError):
            return []
    return [
        attrs.evolve(m, **{k: os.path.normpath(os.path.join(folder, getattr(m, k))) for k in ("place", "new", "old")})
        for m in moves
    ]


def complete(moves: Sequence[Move], folder: str) -> None:
    """Complete the renames in a folder if they had begun, else change nothing; raise OSError if both fail.

    Renames had begun if some files have their new content. A file with neither content was written later; then nothing
    changes.
    """
    changes = [m for m in moves if m.before != m.after]
    contents = {m: _digest(m.place) for m in changes}
    if {contents[m] == m.after for m in changes} != {True, False}:
        return
    if any(contents[m] not in (m.before, m.after) for m in changes):
        return
    ready = [m for m in changes if contents[m] == m.before and os.path.dirname(m.place) == folder]
    done = [m for m in changes if contents[m] == m.after and os.path.dirname(m.place) == folder]
    try:
        if any(_digest(m.new) != m.after for m in ready):
            raise FileNotFoundError(folder)
        for m in ready:
            m.forward()
    except OSError:
        for m in (*ready, *done):
            if _digest(m.place) == m.after and _digest(m.old) == m.before:
                m.back()
        if any(_digest(m.place) != m.before for m in (*ready, *done)):
            raise


def _digest(path: str) -> str:
    """Return the digest of a file's content; empty without a file."""
    import hashlib

    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return ""
    except PermissionError:
        return "unreadable"
