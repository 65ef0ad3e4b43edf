"""Reading and writing of whole files.

Outputs are put in place together once all of them are complete (:mod:`.replacing`). So a build system never sees half a
file.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import attrs

from collc.ir.diagnostic import CollcError, error, nearest
from collc.ir.frozen import frozen

from .reasons import STDOUT, reason, writing
from .replacing import Replacement, discard_all, removed_on_discard
from .stdout import write_stdout

__all__ = [
    "STDIN", "STDOUT", "Output", "check_folder", "check_writable", "discard_temporaries", "is_direct", "is_folder",
    "output_folder", "read_text", "write_all",
]  # fmt: skip

STDIN = STDOUT

#: The largest input, in bytes.
MAX_INPUT = 1 << 30


@frozen
class Output:
    """One file to be written. ``path`` is as the user gave it; ``-`` is standard output."""

    path: str
    content: str | bytes = attrs.field(repr=False)

    @property
    def data(self) -> bytes:
        """The bytes to write: UTF-8, except file names in other encodings."""
        # File names in other encodings (in a depfile) keep their bytes.
        return self.content if isinstance(self.content, bytes) else self.content.encode("utf-8", "surrogateescape")


# ---- reading


def read_text(path: str) -> str:
    """Return the text of a file (``-``: standard input); raise C0002 (not readable) or C0003 (not text)."""
    shown = "<stdin>" if path == STDIN else path
    try:
        data = _read_bytes(path)
    except (OSError, ValueError) as problem:
        raise error("C0002", f"cannot read `{shown}`: {reason(problem)}", hint=_instead_of(path)) from None
    if len(data) > MAX_INPUT:
        raise error("C0003", f"`{shown}` is larger than {MAX_INPUT >> 20} MiB")
    text = _decoded(data, shown)
    if "\0" in text:
        raise _no_text(data, shown, f"byte {text.index(chr(0))} is zero")
    return text.replace("\r\n", "\n")


def _decoded(data: bytes, shown: str) -> str:
    """Return a text without its byte order mark, which stays in XML, since runtimes stop at it.

    Runtimes read XML byte by byte, so a comment or a name may be of any encoding.
    """
    xml = data.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<")
    try:
        return data.decode("utf-8" if xml else "utf-8-sig")
    except UnicodeDecodeError as problem:
        if xml:
            return data.decode("latin-1")
        found = f"byte {problem.start} ({data[problem.start]:#04x}) is not UTF-8"
        raise _no_text(data, shown, found) from None


def _no_text(data: bytes, shown: str, found: str) -> CollcError:
    from .kinds import kind_of_bytes

    kind = kind_of_bytes(data)
    message = f"`{shown}` is not text: {found}" if kind is None else f"`{shown}` is {kind}, not a text that collc reads"
    hint = "save it as UTF-8" if kind == "UTF-16 text" else "`collc formats` lists the files that collc reads"
    return error("C0003", message, hint=hint)


def _instead_of(path: str) -> str | None:
    """Return a hint with a file that can be read in place of one that cannot: in the folder, or of a similar name."""
    folder, name = (path, "") if os.path.isdir(path) else os.path.split(path)
    try:
        names = sorted(os.listdir(folder or "."))
    except (OSError, ValueError):
        return None
    if name:
        return nearest(name, names)
    files = [one for one in names if one.endswith((".coll", ".xml", ".ir"))]
    return f"name a file in it: `{os.path.join(folder, files[0])}`" if files else "name a file"


def _read_bytes(path: str) -> bytes:
    """Read at most one byte more than the limit, and at most one block of a binary file."""
    if path == STDIN:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        return _bounded(sys.stdin.buffer)
    with open(path, "rb") as stream:
        return _bounded(stream)


def _bounded(stream: BinaryIO) -> bytes:
    head = stream.read(1 << 16)
    return head if b"\0" in head else head + stream.read(MAX_INPUT + 1 - len(head))


# ---- writing

#: Names of open descriptors, which are written directly.
_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr|fd/(\d+))|/proc/(?:self|thread-self)/fd/(\d+)")
_NUMBERS = {"stdout": 1, "stderr": 2}


def check_writable(paths: Iterable[str], inputs: Sequence[str] = (), folder: str | None = None) -> None:
    """Raise C0004, C0005 or C0021 for every output that cannot be written, before any work is done.

    Nothing is created. ``inputs`` are the files read, which no output may replace; no two of ``paths`` may be one file.
    ``folder`` is where :func:`output_folder` makes the last folder if it is missing.
    """
    new = None
    if folder is not None and _is_to_be_made(folder):
        check_folder(folder)
        new = folder.rstrip("/")
    wrong: list[CollcError] = []
    places: dict[str, str] = {}
    for path in paths:
        try:
            if new is not None and os.path.dirname(path) == new:
                _check_name(path)
            else:
                _check_one(path, inputs)
            if not is_direct(path):
                _require_own_place(path, places)
        except CollcError as mistake:
            wrong.append(mistake)
    if wrong:
        raise CollcError([d for mistake in wrong for d in mistake.diagnostics], max(m.exit_status for m in wrong))


def check_folder(path: str) -> None:
    """Raise C0004 if the folder ``path`` takes no new files, or if it is missing and cannot be made.

    Only the last folder of a path is made.
    """
    if "\0" in path:
        raise error("C0004", "cannot write into a folder whose name has a zero byte", exit_status=2)
    folder = path.rstrip("/") or "/"
    place = folder if os.path.lexists(folder) else os.path.dirname(folder) or "."
    if not os.path.isdir(place):
        raise _no_folder(f"cannot write into `{path}`", place, folder)
    if not os.access(place, os.W_OK | os.X_OK):
        what = "it is" if place == folder else f"directory `{place}` is"
        hint = "make it writable, or name another folder"
        raise error("C0004", f"cannot write into `{path}`: {what} not writable", hint=hint)


def _is_to_be_made(folder: str) -> bool:
    return folder.endswith("/") and not os.path.lexists(folder.rstrip("/") or "/")


def _no_folder(what: str, missing: str, folder: str) -> CollcError:
    """Return the error for a folder that is missing, with the nearest one that exists."""
    found = "is not a directory" if os.path.lexists(missing) else "does not exist"
    nearest = os.path.dirname(missing) or "."
    while not os.path.isdir(nearest):
        nearest = os.path.dirname(nearest) or "."
    beside = os.path.dirname(missing) or "."
    notes = [f"the nearest directory that exists is `{nearest}`"] if nearest != beside or folder != missing else []
    hint = f"create it: mkdir -p {shlex.quote(folder)}" if found == "does not exist" else "name another folder"
    return error("C0004", f"{what}: directory `{missing}` {found}", notes=notes, hint=hint)


def _require_own_place(path: str, places: dict[str, str]) -> None:
    """Raise C0021 if an earlier output has the same place; ``places`` collects all places."""
    place = os.path.realpath(path)
    if place in places:
        other = places[place]
        both = f"several outputs would be `{path}`" if other == path else f"`{other}` and `{path}` are one file"
        raise error("C0021", both, hint="name another file for one of them", exit_status=2)
    places[place] = path


def _check_one(path: str, inputs: Sequence[str]) -> None:
    if is_direct(path):
        return
    if not path or "\0" in path:
        raise error("C0004", f"cannot write `{path}`: it is not the name of a file", exit_status=2)
    folder = os.path.dirname(path.rstrip("/")) or "."
    if not os.path.isdir(folder):
        raise _no_folder(f"cannot write `{path}`", folder, folder)
    if path.endswith("/") and not os.path.isdir(path):
        raise error("C0004", f"cannot write `{path}`: it is a folder's name", hint="name a file")
    if os.path.isdir(path):
        raise error(
            "C0004",
            f"cannot write `{path}`: it is a directory",
            hint=f"write `{path.rstrip('/')}/` for files inside it",
        )
    for given in inputs:
        if given != STDIN and os.path.exists(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise error(
                "C0005",
                f"output `{path}` would replace the input `{given}`",
                hint="name another file with -o",
            )
    _check_place(path)


def _check_place(path: str) -> None:
    """Raise C0004 if the target of a path cannot be replaced."""
    place = os.path.realpath(path)
    folder = os.path.dirname(place)
    if os.path.islink(place):
        raise error("C0004", f"cannot write `{path}`: its symbolic links lead back to themselves", hint=f"rm {path}")
    if not os.path.isdir(folder):
        raise error(
            "C0004",
            f"cannot write `{path}`: it is a symbolic link to `{place}`, whose directory does not exist",
            hint=f"create it: mkdir -p {folder}",
        )
    _check_name(path, place)
    if os.path.exists(place):
        _check_existing(path, place)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise error(
            "C0004",
            f"cannot write `{path}`: directory `{os.path.dirname(path) or '.'}` is not writable",
            notes=["outputs are written beside their place first, then moved into it"],
            hint="make it writable, or name a file elsewhere",
        )


def _check_name(path: str, place: str | None = None) -> None:
    """Raise C0004 if the name of a file, or of the ``place`` that it links to, is too long."""
    if len(os.fsencode(os.path.basename(place or path))) > 255:
        raise error("C0004", f"cannot write `{path}`: the name has more than 255 bytes", hint="give a shorter one")


def _check_existing(path: str, place: str) -> None:
    """Raise C0004 if an existing file is read-only by its mode, for root too, or by the system."""
    mode = stat.S_IMODE(os.stat(place).st_mode)
    if not mode & 0o222 or not os.access(place, os.W_OK):
        why = f"is read-only (mode {mode:04o})" if not mode & 0o222 else f"may not be written by you (mode {mode:04o})"
        raise error(
            "C0004",
            f"cannot write `{path}`: the file exists and {why}",
            hint=f"make it writable (chmod u+w {path}), remove it, or name another",
        )


@contextlib.contextmanager
def output_folder(path: str | None) -> Iterator[None]:
    """Create the folder of an output that ends in a slash; remove it if the work inside fails."""
    if path is None or not _is_to_be_made(path):
        yield
        return
    with removed_on_discard(path):
        with writing(path):
            os.mkdir(path)
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                os.rmdir(path)
            raise


def write_all(outputs: Sequence[Output], *, if_changed: bool = False) -> None:
    """Write all of ``outputs``, or none of the regular files among them; raise C0004 if one fails.

    They are put in place in order. A new file gets the permissions of the umask, a replaced one keeps its own, and a
    read-only one is an error. A symbolic link is written through, other hard links keep the old content.
    Devices, pipes and standard output are written directly. With ``if_changed`` a file that already has this content
    stays untouched.
    """
    direct = [output for output in outputs if is_direct(output.path)]
    files = [output for output in outputs if output not in direct]
    check_writable([output.path for output in files])
    with Replacement() as replacement:
        for output in files:
            replacement.stage(output.path, output.data)
        for output in direct:
            _write_direct(output)
        replacement.commit(if_changed=if_changed)


def discard_temporaries() -> None:
    """Remove the temporary files of all active writes of this process; outputs stay unchanged.

    A thread calls this just before it ends the process. It waits for begun renames, for at most a second.
    """
    discard_all()


def is_direct(path: str) -> bool:
    """Whether the path is written directly instead of replaced: a device, a pipe, an open descriptor."""
    if path == STDOUT or _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def is_folder(out: str) -> bool:
    """Return whether an output names a folder: it ends in a slash or is an existing folder."""
    return out != STDOUT and (out.endswith(("/", os.sep)) or os.path.isdir(out))


def _descriptor(path: str) -> int | None:
    """Return the open descriptor of this process with a path, or None.

    >>> _descriptor("/dev/stdout"), _descriptor("/dev/null")
    (1, None)
    """
    for _ in range(8):
        found = _DESCRIPTOR.fullmatch(os.path.abspath(path)) if "\0" not in path else None
        if found:
            return _NUMBERS.get(found[1]) or int(found[2] or found[3])
        try:
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        except (OSError, ValueError):
            return None
    return None


def _write_direct(output: Output) -> None:
    with writing(output.path):
        descriptor = _descriptor(output.path)
        if output.path == STDOUT or descriptor == 1:
            write_stdout(output.data)
            return
        target = output.path if descriptor is None else os.dup(descriptor)
        with open(target, "wb") as stream:
            stream.write(output.data)
