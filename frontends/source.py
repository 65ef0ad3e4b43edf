"""Reads a source text: size, encoding and stray bytes are checked first."""

from __future__ import annotations

import os
import re
import stat

from collc.ir.diagnostic import Source, Span, error

__all__ = ["MAX_BYTES", "checked", "read"]

#: The longest specification; no more is read into memory.
MAX_BYTES = 10 * 2**20

_NUL = re.compile(r"\x00")
_STRAY = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


def read(
    path: str, *, span: Span | None = None, regular: bool = False, hidden: bool = False, most: int = MAX_BYTES,
    pasted: bool = False, hint: str = "include a `.coll` file",
) -> Source:  # fmt: skip
    """Return the text of the file at ``path``; messages about a ``hidden`` file show line numbers and no text.

    ``span`` is the place of the include; ``regular`` refuses anything but a regular file. No more than ``most`` bytes
    are read; ``hint`` says what to name instead. A ``pasted`` text may contain control characters, as terminals print
    them. Raises CollcError C0117 (not text), C0118 (not UTF-8), C0119 (too long) or C0150 (cannot be read).
    """
    try:
        if regular and not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
            raise error("C0150", f"cannot read `{path}`: it is not a regular file", span=span, hint=hint)
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as failure:
        raise error("C0150", f"cannot read `{path}`: {_reason(failure)}", span=span) from None
    if len(data) > most:
        raise error("C0119", f"`{path}` is longer than {most // 2**20} MiB", span=span)
    return checked(path, _decode(path, data, hidden), hidden, most, pasted)


def checked(path: str, text: str, hidden: bool = False, most: int = MAX_BYTES, pasted: bool = False) -> Source:
    """Return the source of a text that is in memory; the same limits hold."""
    if len(text) > most:
        raise error("C0119", f"`{path}` is longer than {most // 2**20} MiB")
    source = Source(path, text.removeprefix("\ufeff"), hidden)
    stray = _NUL.search(source.text) if pasted else _STRAY.search(source.text)
    if stray:
        span = _at(source, stray.start())
        byte = f"0x{ord(stray.group()):02x}"
        raise error("C0117", f"found the byte {byte}, needed text", span=span, hint="is this a binary file?")
    return source


def _decode(path: str, data: bytes, hidden: bool) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as failure:
        good = data[: failure.start].decode("utf-8")
        source = Source(path, good, hidden)
        message = f"found the byte 0x{data[failure.start]:02x}, which is not UTF-8"
        hint = "is this a binary file, or text in another encoding?"
        raise error("C0118", message, span=_at(source, len(good)), hint=hint) from None


def _at(source: Source, offset: int) -> Span:
    line = source.text.count("\n", 0, offset) + 1
    column = offset - (source.text.rfind("\n", 0, offset) + 1) + 1
    return Span(source, line, column, line, column + 1)


def _reason(failure: Exception) -> str:
    match failure:
        case FileNotFoundError():
            return "no such file"
        case IsADirectoryError():
            return "it is a directory"
        case PermissionError():
            return "permission denied"
        case OSError(strerror=str(text)):
            return text.lower()
        case _:
            return "the path is not valid"
