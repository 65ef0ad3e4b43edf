"""Atomic replacement of several files: all get their new content, or none does.

A file system replaces one file at a time. So new contents first go into temporary files beside their places, until all
are complete and on the disk. Old files get a second name, and a journal in every folder lists both. Then the renames
follow at once. A failed rename is undone. A process that ends between two renames leaves its journals, and the next
process that writes to such a folder completes them. Locks end with their process: they distinguish active files from
leftovers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import attrs

from collc.ir.diagnostic import error
from collc.ir.frozen import frozen

from .journal import Move, complete, read_journal, write_journal
from .leftovers import LOCK, beside, kind_of, lock, names_inode
from .reasons import cannot_write, writing

__all__ = ["Replacement", "discard_all", "removed_on_discard"]

#: Seconds to wait for another process that puts files into the same folder, which takes milliseconds.
_PATIENCE = 60.0

#: Held while files are renamed, and while temporary files are made or removed at the end of the process.
_GUARD = threading.Lock()
_active: list[Replacement] = []
_made_folders: list[str] = []
_ended = False


@frozen
class _Staged:
    """A staged content: the output as the user named it, its place, its temporary name, its open file."""

    shown: str
    place: str
    temporary: str
    data: bytes = attrs.field(repr=False)
    stream: BinaryIO = attrs.field(repr=False)


class Replacement:
    """New contents of files: :meth:`stage` them all, then :meth:`commit`; no temporary file outlives the block."""

    def __init__(self) -> None:
        self.staged: list[_Staged] = []
        self.names: list[str] = []  # temporary files to remove at the end
        self.locks: list[str] = []

    def __enter__(self) -> Replacement:
        _active.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()
        for one in self.staged:
            with contextlib.suppress(OSError):  # closing would try again to write to the full disk
                one.stream.close()
        _active.remove(self)

    def discard(self) -> None:
        """Remove all temporary files."""
        for name in self.names:
            with contextlib.suppress(OSError):
                os.unlink(name)

    def stage(self, path: str, data: bytes) -> None:
        """Write a new content to the disk under a temporary name; raise C0004 if that fails.

        It gets the mode, the owner and the attributes of the file that it will replace.
        """
        with writing(path):
            place = os.path.realpath(path)
            before = os.stat(place) if os.path.lexists(place) else None
            temporary, stream = self._open(place, 0o666 if before is None else 0o600)
            self.staged.append(_Staged(path, place, temporary, data, stream))
            if before is not None:
                from shutil import copystat

                with contextlib.suppress(OSError):
                    copystat(place, temporary)
            stream.write(data)
            stream.flush()
            if before is not None:
                _dress(stream.fileno(), before)
            _sync(stream.fileno())

    def _open(self, place: str, mode: int) -> tuple[str, BinaryIO]:
        """Create a temporary file; its lock shows that this process lives."""
        while True:
            temporary = self._name(place, "new")
            with _GUARD:
                _require_life()
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                stream = os.fdopen(os.open(temporary, flags, mode), "wb")
            lock(stream.fileno())
            if names_inode(temporary, stream.fileno()):
                return temporary, stream
            stream.close()  # another process removed it before it was locked

    def _name(self, place: str, kind: str) -> str:
        # Recorded before the file exists, so that any interrupt can remove it.
        self.names.append(beside(place, kind))
        return self.names[-1]

    # ---- putting in place

    def commit(self, *, if_changed: bool = False) -> None:
        """Put all staged files in place, in order, or none; raise C0004 if one fails.

        First complete the journals of earlier processes in these folders, and remove their temporary files. With
        ``if_changed``, files that already have their content stay untouched.
        """
        folders = _folders(self.staged)
        with contextlib.ExitStack() as stack:
            for folder in folders:
                if stack.enter_context(self._alone(folder)):
                    _tidy(folder)
            changed = [one for one in self.staged if not (if_changed and _has_content(one))]
            with _undisturbed(), _GUARD:
                _require_life()
                try:
                    self._put(changed)
                finally:
                    for folder in folders:
                        _sync_folder(folder)
                    self.discard()

    def _put(self, staged: Sequence[_Staged]) -> None:
        moves = self._prepare(staged) if len(staged) > 1 else []
        pairs = [(one.temporary, one.place) for one in staged]
        at = 0
        try:
            for at, (temporary, place) in enumerate(pairs):  # noqa: B007
                os.replace(temporary, place)
        except BaseException as problem:
            kept = self._undo(moves)
            if not isinstance(problem, OSError):
                raise
            raise cannot_write(staged[at].shown, problem, *_failure_notes(staged, kept)) from None

    def _prepare(self, staged: Sequence[_Staged]) -> list[Move]:
        """Give the old files a second name, and list all in journals; return the entries."""
        moves = []
        for one in staged:
            with writing(one.shown):
                moves.append(Move.of(one.place, one.temporary, self._name(one.place, "old"), one.data))
                moves[-1].keep()
        first = {os.path.dirname(one.place): one for one in reversed(staged)}
        for one in first.values():
            with writing(one.shown):
                write_journal(self._name(one.place, "journal"), moves)
        for folder in first:
            _sync_folder(folder)
        return moves

    def _undo(self, moves: Sequence[Move]) -> list[Move]:
        """Restore the old files; return those that failed, whose second names and journals then stay."""
        failed = []
        for move in reversed(moves):
            if not os.path.lexists(move.new):
                try:
                    move.back()
                except OSError:
                    failed.append(move)
        if failed:
            self.names.clear()
        return failed

    @contextlib.contextmanager
    def _alone(self, folder: str) -> Iterator[bool]:
        """Lock a folder against other processes; return whether it has locks."""
        path = os.path.join(folder, LOCK)
        descriptor = self._acquire(path)
        try:
            yield descriptor is not None
        finally:
            if descriptor is not None:
                if names_inode(path, descriptor):
                    os.unlink(path)
                self.locks.remove(path)
                os.close(descriptor)

    def _acquire(self, path: str) -> int | None:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
                descriptor = os.open(path, flags, 0o666)
            except OSError:
                return None
            locked = lock(descriptor)
            if locked and names_inode(path, descriptor):
                self.locks.append(path)
                return descriptor
            os.close(descriptor)
            if locked is None:  # no locks here
                os.unlink(path)
                return None
            if time.monotonic() > until:
                raise _waited(path)
            time.sleep(0.002)


def discard_all() -> None:
    """Remove the temporary files of all active writes of this process, and the folders created for them.

    A thread calls this just before it ends the process: outputs stay unchanged, and no more files are put in place.
    It waits for begun renames, for at most a second. If they take longer, the next process that writes there
    completes them.
    """
    global _ended
    if not _GUARD.acquire(timeout=1.0):
        return
    try:
        _ended = True
        for replacement in list(_active):
            replacement.names += replacement.locks
            replacement.discard()
        for folder in reversed(_made_folders):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    finally:
        _GUARD.release()


@contextlib.contextmanager
def removed_on_discard(folder: str) -> Iterator[None]:
    """Have :func:`discard_all` remove this folder, if it is empty."""
    _made_folders.append(folder)
    try:
        yield
    finally:
        _made_folders.remove(folder)


def _require_life() -> None:
    if _ended:
        raise OSError(errno.ECANCELED, "the process ends")


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Delay signals with Python handlers until the block ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    handled = [
        number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if callable(signal.getsignal(number))
    ]
    before = {number: signal.signal(number, lambda n, _: arrived.append(n)) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number_seen in arrived:
            signal.raise_signal(number_seen)


# ---- folders


def _folders(staged: Sequence[_Staged]) -> list[str]:
    """Return the folders of all places, each once, in the same order in all processes."""
    found: dict[tuple[int, int], str] = {}
    for folder in sorted({os.path.dirname(one.place) for one in staged}):
        status = os.stat(folder)
        found.setdefault((status.st_dev, status.st_ino), folder)
    return [found[key] for key in sorted(found)]


def _tidy(folder: str) -> None:
    """Complete the journals in a folder, and remove its leftover temporary files.

    The folder is locked, so all journals and second names in it belong to ended processes.
    """
    kinds = [(name, kind_of(name)) for name in sorted(os.listdir(folder))]
    ours = [(os.path.join(folder, name), kind) for name, kind in kinds if kind]
    journals = [path for path, kind in ours if kind == "journal"]
    done = [path for path in journals if _is_completed(path, folder)]
    if len(done) == len(journals):
        done += [path for path, kind in ours if kind == "old" or (kind == "new" and _is_dead(path))]
    for path in done:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _is_completed(journal: str, folder: str) -> bool:
    """Complete a journal; return whether its files are no longer needed."""
    try:
        complete(read_journal(journal), folder)
    except OSError:
        return False
    return True


def _is_dead(path: str) -> bool:
    """Return whether no process writes a temporary file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return bool(lock(descriptor))
    finally:
        os.close(descriptor)


# ---- files


def _dress(descriptor: int, like: os.stat_result) -> None:
    """Give a file the owner and mode of the one that it replaces, if this user may."""
    if hasattr(os, "fchown"):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, -1, like.st_gid)
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, like.st_uid, -1)
        os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
    os.utime(descriptor)


def _sync(descriptor: int) -> None:
    """Wait until a file is on the disk, if it exists."""
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise


def _sync_folder(folder: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _has_content(staged: _Staged) -> bool:
    try:
        with open(staged.place, "rb") as stream:
            return stream.read() == staged.data
    except OSError:
        return False


def _failure_notes(staged: Sequence[_Staged], kept: Sequence[Move]) -> list[str]:
    """Return the notes on the outputs after one could not be put in place."""
    lost = [f"`{move.place}` could not be restored; its old content is in `{move.old}`" for move in kept]
    return lost or (["no output has handled"] if len(staged) > 1 else [])


def _waited(path: str) -> Exception:
    return error(
        "C0004", f"cannot write to `{os.path.dirname(path)}`: another process has held `{path}` for a minute",
        hint="wait until no other collc writes there, or end it",
    )  # fmt: skip
