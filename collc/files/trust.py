"""Files that collc made and others load: whose they are, and whether they are as they were written."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import tempfile

__all__ = [
    "SEAL", "TEMPORARY", "digest_of", "is_ours", "is_private", "is_sealed", "make_folder", "seal", "write_privately",
]  # fmt: skip

#: what the name of a file's seal adds to that of the file
SEAL = ".sha256"
#: the end of the names of files that are being written
TEMPORARY = ".tmp"

_BLOCK = 1 << 20


def is_private(found: os.stat_result) -> bool:
    """Return whether only this user or root can write a file or folder."""
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & 0o022


def is_ours(path: str, root: str) -> bool:
    """Return whether only this user or root could have written a regular file below ``root``.

    That depends on the folders between them too. Symbolic links are refused.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode) or not is_private(os.lstat(path)):
            return False
        folder = os.path.dirname(path)
        while folder.startswith(os.path.join(root, "")):
            found = os.lstat(folder)
            if not stat.S_ISDIR(found.st_mode) or not is_private(found):
                return False
            folder = os.path.dirname(folder)
        return folder == root and is_private(os.stat(root))
    except OSError:
        return False


def make_folder(root: str, *names: str) -> str:
    """Return a folder below ``root`` that only this user can write, made if it is missing.

    Others lose the right to write there: their files are no longer ours then, nor those that they moved. Raises
    OSError, also for a folder of another user.
    """
    place = root
    for name in names:
        place = os.path.join(place, name)
        with contextlib.suppress(FileExistsError):
            os.mkdir(place, 0o700)
        found = os.lstat(place)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), 0):
            raise PermissionError(errno.EPERM, "it is not yours", place)
        if not is_private(found):
            os.chmod(place, 0o700)
    return place


def digest_of(path: str) -> str | None:
    """Return the SHA-256 of a regular file, in hexadecimal; None if it cannot be read."""
    found = hashlib.sha256()
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # what a pipe gives, it gives once
            return None
        with open(path, "rb") as stream:
            while block := stream.read(_BLOCK):
                found.update(block)
    except (OSError, ValueError):
        return None
    return found.hexdigest()


# ---- seals


def seal(path: str) -> None:
    """Write the digest of a file beside it; ``sha256sum -c`` in the folder above reads it.

    A file without a seal is made again.
    """
    with contextlib.suppress(OSError):
        write_privately(path + SEAL, _seal_of(path))


def is_sealed(path: str, root: str) -> bool:
    """Return whether a file below ``root`` and its seal are ours, and the file is as it was sealed at this place."""
    if not (is_ours(path, root) and is_ours(path + SEAL, root)):
        return False
    try:
        with open(path + SEAL, "rb") as stream:
            return stream.read(_BLOCK) == _seal_of(path)
    except OSError:
        return False


def _seal_of(path: str) -> bytes:
    folder, name = os.path.split(path)
    return f"{digest_of(path)}  {os.path.basename(folder)}/{name}\n".encode()


def write_privately(path: str, data: bytes) -> None:
    """Replace a file by one that only this user can read and write; readers see the old one or the new one."""
    descriptor, temporary = tempfile.mkstemp(TEMPORARY, ".", os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
