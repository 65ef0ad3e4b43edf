"""Files put in place together: all of them new, or all as they were.

A file system replaces one file at a time. So new contents wait beside their places until all are complete and on the
disk; what they replace gets a second name; a journal in every folder lists both. Then come the renames, one right
after the other. A rename that fails is undone. A process that ends between two renames leaves its journals, and the
next one that writes to such a folder completes what they list. Locks end with their process: they tell what is
under way from what was left.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import attrs

from collc.ir.diagnostic import error

from .journal import Move, complete, read_journal, write_journal
from .leftovers import LOCK, beside, kind_of, lock, names_inode
from .reasons import cannot_write, writing

__all__ = ["Replacement", "discard_all", "removed_on_discard"]

#: Seconds to wait for another process that puts files into the same folder, which takes milliseconds.
_PATIENCE = 60.0

#: Held while files are renamed, and while temporary files are made or removed at the end of the process.
_GUARD = threading.Lock()
_under_way: list[Replacement] = []
_made_folders: list[str] = []
_ended = False


@attrs.frozen
class _Staged:
    """A new content that waits: the output as the user named it, its place, its temporary name, its open file."""

    shown: str
    place: str
    temporary: str
    data: bytes = attrs.field(repr=False)
    stream: BinaryIO = attrs.field(repr=False)


class Replacement:
    """New contents of some files: :meth:`stage` them all, then :meth:`commit`; nothing stays when the block ends."""

    def __init__(self) -> None:
        self.staged: list[_Staged] = []
        self.names: list[str] = []  # temporary files, which are to be removed at the end
        self.locks: list[str] = []

    def __enter__(self) -> Replacement:
        _under_way.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()
        for one in self.staged:
            with contextlib.suppress(OSError):  # what a full disk did not take is written once more, in vain
                one.stream.close()
        _under_way.remove(self)

    def discard(self) -> None:
        """Remove all temporary files."""
        for name in self.names:
            with contextlib.suppress(OSError):
                os.unlink(name)

    def stage(self, path: str, data: bytes) -> None:
        """Write a new content to the disk under a temporary name; raise C0004 where that fails.

        It gets the mode, the owner and the attributes of the file that it is to replace.
        """
        with writing(path):
            place = os.path.realpath(path)
            before = os.stat(place) if os.path.lexists(place) else None
            temporary, stream = self._open(place, 0o666 if before is None else 0o600)
            self.staged.append(_Staged(path, place, temporary, data, stream))
            if before is not None:
                with contextlib.suppress(OSError):
                    shutil.copystat(place, temporary)
            stream.write(data)
            stream.flush()
            if before is not None:
                _dress(stream.fileno(), before)
            _sync(stream.fileno())

    def _open(self, place: str, mode: int) -> tuple[str, BinaryIO]:
        """Make a temporary file; its lock says that this process lives."""
        while True:
            temporary = self._name(place, "new")
            with _GUARD:
                _require_life()
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                stream = os.fdopen(os.open(temporary, flags, mode), "wb")
            lock(stream.fileno())
            if names_inode(temporary, stream.fileno()):
                return temporary, stream
            stream.close()  # taken for a leftover before it was locked

    def _name(self, place: str, kind: str) -> str:
        # Known before the file is made: an interrupt at any moment finds what there is to remove.
        self.names.append(beside(place, kind))
        return self.names[-1]

    # ---- putting in place

    def commit(self, *, if_changed: bool = False) -> None:
        """Put all staged files in place, in order, or none; raise C0004 where one cannot be.

        Complete first what an earlier process left in these folders, and remove its temporary files. With
        ``if_changed`` files that already have their content stay as they are.
        """
        folders = _folders(self.staged)
        with contextlib.ExitStack() as stack:
            for folder in folders:
                if stack.enter_context(self._alone(folder)):
                    _tidy(folder)
            wanted = [one for one in self.staged if not (if_changed and _has_content(one))]
            with _undisturbed(), _GUARD:
                _require_life()
                try:
                    self._put(wanted)
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
            raise cannot_write(staged[at].shown, problem, *_told(staged, kept)) from None

    def _prepare(self, staged: Sequence[_Staged]) -> list[Move]:
        """Give what is replaced a second name, and list all in journals; return what they list."""
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
        """Put back what was replaced; return what could not be, whose second name and journals then stay."""
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
        """Keep other processes from putting files into a folder; say whether that is possible there."""
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
    """Remove the temporary files of all writes under way in this process, and folders made for them.

    For any thread that ends the process right after: outputs stay as they were, and this process puts no
    more files in place. Renames that have begun are waited for, a second at most; if they take longer, all stays as it
    is, and the next process that writes there completes it.
    """
    global _ended
    if not _GUARD.acquire(timeout=1.0):
        return
    try:
        _ended = True
        for replacement in list(_under_way):
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
    """Let signals whose handlers are Python's wait until the block ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    wanted = [number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if callable(signal.getsignal(number))]
    before = {number: signal.signal(number, lambda n, _: arrived.append(n)) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)


# ---- folders


def _folders(staged: Sequence[_Staged]) -> list[str]:
    """Return the folders of all places, each once and in an order that all processes share."""
    found: dict[tuple[int, int], str] = {}
    for folder in sorted({os.path.dirname(one.place) for one in staged}):
        status = os.stat(folder)
        found.setdefault((status.st_dev, status.st_ino), folder)
    return [found[key] for key in sorted(found)]


def _tidy(folder: str) -> None:
    """Complete what the journals in a folder list, and remove the temporary files that nobody writes.

    The folder is locked, so all journals and second names in it are of processes that ended.
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
    """Complete what a journal lists; return whether nothing it names is needed any more."""
    try:
        complete(read_journal(journal), folder)
    except OSError:
        return False
    return True


def _is_dead(path: str) -> bool:
    """Return whether no process writes a temporary file any more."""
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
    """Give a file the owner and mode of the one that it replaces, as far as this user may."""
    if hasattr(os, "fchown"):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, -1, like.st_gid)
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, like.st_uid, -1)
        os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
    os.utime(descriptor)


def _sync(descriptor: int) -> None:
    """Wait until a file is on the disk, where there is one."""
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


def _told(staged: Sequence[_Staged], kept: Sequence[Move]) -> list[str]:
    """Return what is to be said of the outputs after one could not be put in place."""
    lost = [f"`{move.place}` could not be put back, what it held before is in `{move.old}`" for move in kept]
    return lost or (["no output has changed"] if len(staged) > 1 else [])


def _waited(path: str) -> Exception:
    return error(
        "C0004", f"cannot write to `{os.path.dirname(path)}`: another process has held `{path}` for a minute",
        hint="wait until no other collc writes there, or end it",
    )  # fmt: skip
