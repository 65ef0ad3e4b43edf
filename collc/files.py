"""Reading and writing: whole files or nothing.

Outputs are written beside their place under a temporary name and moved into it when all of them are complete,
so that a build system never sees half a file, whatever happens in between.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import attrs

from collc.ir.diagnostic import CollcError, error

from .stdout import write_stdout

__all__ = ["STDIN", "STDOUT", "Output", "check_writable", "output_folder", "read_text", "write_all"]

STDIN = STDOUT = "-"

#: The most bytes of one input: what is larger was not written by a person or by collc.
MAX_INPUT = 1 << 30

_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.EACCES: "permission denied",
    errno.EISDIR: "it is a directory",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.ENOSPC: "no space left on the device",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "too many symbolic links",
    errno.EROFS: "the file system is read-only",
}


@attrs.frozen
class Output:
    """One file to be written. ``path`` is as the user gave it; ``-`` is standard output."""

    path: str
    text: str = attrs.field(repr=False)

    @property
    def data(self) -> bytes:
        # Names of files that are not UTF-8 (in a depfile) come back as the bytes they are.
        return self.text.encode("utf-8", "surrogateescape")


# ---- reading


def read_text(path: str) -> str:
    """Return the text of a file (``-``: standard input); raise C0002 (not readable) or C0003 (not text)."""
    shown = "<stdin>" if path == STDIN else path
    try:
        data = _read_bytes(path)
    except (OSError, ValueError) as problem:
        raise error("C0002", f"cannot read `{shown}`: {_reason(problem)}") from None
    if len(data) > MAX_INPUT:
        raise error("C0003", f"`{shown}` is larger than {MAX_INPUT >> 20} MiB")
    text = _decoded(data, shown)
    if "\0" in text:
        raise error("C0003", f"`{shown}` is not text: byte {text.index(chr(0))} is zero")
    return text.replace("\r\n", "\n")


def _decoded(data: bytes, shown: str) -> str:
    """Return a text without its byte order mark; of XML it stays, since runtimes stop at it.

    Runtimes read XML byte by byte, so a comment or a name may be of any encoding.
    """
    xml = data.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<")
    try:
        return data.decode("utf-8" if xml else "utf-8-sig")
    except UnicodeDecodeError as problem:
        if xml:
            return data.decode("latin-1")
        raise error(
            "C0003",
            f"`{shown}` is not text: byte {problem.start} ({data[problem.start]:#04x}) is not UTF-8",
            hint="give a `.coll` file, a printed IR or an MSCCL-XML file",
        ) from None


def _read_bytes(path: str) -> bytes:
    """Read at most one byte more than allowed, and no more than one block of what is clearly not text."""
    if path == STDIN:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        return _bounded(sys.stdin.buffer)
    with open(path, "rb") as stream:
        return _bounded(stream)


def _bounded(stream: BinaryIO) -> bytes:
    head = stream.read(1 << 16)
    return head if b"\0" in head else head + stream.read(MAX_INPUT + 1 - len(head))


def _reason(problem: OSError | ValueError) -> str:
    if isinstance(problem, OSError):
        return _REASONS.get(problem.errno or 0) or (problem.strerror or str(problem)).lower()
    return str(problem)


# ---- writing


def check_writable(paths: Iterable[str], inputs: Sequence[str] = ()) -> None:
    """Raise C0004 or C0005 for every output that cannot be written, before any work is done.

    Nothing is created. ``inputs`` are the files read, which no output may replace.
    """
    wrong: list[CollcError] = []
    for path in paths:
        try:
            _check_one(path, inputs)
        except CollcError as mistake:
            wrong.append(mistake)
    if wrong:
        raise CollcError([d for mistake in wrong for d in mistake.diagnostics], max(m.exit_status for m in wrong))


def _check_one(path: str, inputs: Sequence[str]) -> None:
    if path == STDOUT or _is_stream(path):
        return
    if not path or "\0" in path:
        raise error("C0004", f"cannot write `{path}`: it is not the name of a file", exit_status=2)
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        found = "is not a directory" if os.path.exists(folder) else "does not exist"
        raise error(
            "C0004",
            f"cannot write `{path}`: directory `{folder}` {found}",
            hint=f"create it: mkdir -p {folder}",
        )
    if os.path.isdir(path):
        raise error("C0004", f"cannot write `{path}`: it is a directory", hint=f"write `{path}/` for files inside it")
    for given in inputs:
        if given != STDIN and os.path.exists(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise error(
                "C0005",
                f"output `{path}` would replace the input `{given}`",
                hint="name another file with -o",
            )
    place = os.path.dirname(os.path.realpath(path)) or "."
    if not os.access(place, os.W_OK | os.X_OK):
        raise error("C0004", f"cannot write `{path}`: directory `{folder}` is not writable")


@contextlib.contextmanager
def output_folder(path: str | None) -> Iterator[None]:
    """Make the folder that an output ending in a slash names; take it away again if the work inside fails."""
    made = path is not None and path.endswith("/") and not os.path.lexists(path.rstrip("/"))
    if path is not None and made:
        with _named(Output(path, "")):
            os.mkdir(path)
    try:
        yield
    except BaseException:
        if path is not None and made:
            with contextlib.suppress(OSError):
                os.rmdir(path)
        raise


def write_all(outputs: Sequence[Output], *, if_changed: bool = False) -> None:
    """Write all of ``outputs``, or none of the regular files among them; raise C0004 where one cannot be written.

    Permissions are those of a new file (0666 without the umask). A symbolic link is written through. Devices,
    pipes and standard output are written directly. With ``if_changed`` a file that already has this content
    stays untouched.
    """
    direct = [o for o in outputs if o.path == STDOUT or _is_stream(o.path)]
    files = [o for o in outputs if o not in direct and not (if_changed and _has_content(o))]
    # Known before any is made: an interrupt at any moment finds what there is to remove.
    staged = [(_temporary(o), o) for o in files]
    try:
        for temporary, output in staged:
            _stage(temporary, output)
        for output in direct:
            _write_direct(output)
        for temporary, output in staged:
            with _named(output):
                os.replace(temporary, os.path.realpath(output.path))
    finally:
        for temporary, _ in staged:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


@contextlib.contextmanager
def _named(output: Output) -> Iterator[None]:
    """Turn what the system refuses into C0004 for this output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        shown = "standard output" if output.path == STDOUT else f"`{output.path}`"
        raise error("C0004", f"cannot write {shown}: {_reason(problem)}") from None


def _is_stream(path: str) -> bool:
    """Whether the path is written through rather than replaced: a device, a pipe, an open descriptor."""
    if os.path.abspath(path).startswith(("/dev/", "/proc/")):
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _has_content(output: Output) -> bool:
    try:
        with open(output.path, "rb") as stream:
            return stream.read() == output.data
    except OSError:
        return False


def _temporary(output: Output) -> str:
    folder, name = os.path.split(os.path.realpath(output.path))
    return os.path.join(folder, f".{name[:80]}.{secrets.token_hex(6)}.tmp")


def _stage(temporary: str, output: Output) -> None:
    """Write the content under its temporary name."""
    with _named(output):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        with os.fdopen(os.open(temporary, flags, 0o666), "wb") as stream:
            stream.write(output.data)


def _write_direct(output: Output) -> None:
    with _named(output):
        if output.path != STDOUT:
            with open(output.path, "wb") as stream:
                stream.write(output.data)
            return
        write_stdout(output.data)
