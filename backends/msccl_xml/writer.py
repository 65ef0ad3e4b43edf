"""The document model -> text for the runtimes' tokeniser: one element a line, no declaration, no tabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain, pairwise

import numpy as np

from collc.ir.arrays import Array, numbered
from collc.ir.ragged import starts

from .model import Algorithm, Gpu, Threadblock
from .steps import BUFFERS, DST, KINDS_OF, LINE, SRC, TYPE

__all__ = ["write", "written"]

_WRITTEN = (
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ('"', "&quot;"),
    ("\n", "&#10;"),
    ("\t", "&#9;"),
    ("\r", "&#13;"),
)

#: the line of a step; a column of the table stands at each `{}`
_STEP = (
    '      <step s="{}" type="{}" srcbuf="{}" srcoff="{}" dstbuf="{}" dstoff="{}" cnt="{}" depid="{}" deps="{}" '
    'hasdep="{}"/>\n'
)
#: columns that stand for words
_WORDS = {TYPE: KINDS_OF, SRC: BUFFERS, DST: BUFFERS}
#: lines that are made at once: their table fits a processor's cache
_MANY = 1 << 12
#: the widest range of values whose texts are all made, whatever the number of lines
_WIDE = 1 << 16


def write(algorithm: Algorithm) -> str:
    """Return the text of an algorithm; equal algorithms give equal bytes. :func:`.reader.read` is the inverse.

    The text has no attributes that are None. Comments come first, one a line.
    """
    return written(algorithm).decode("utf-8", "surrogatepass")


def written(algorithm: Algorithm) -> bytes:
    """Return the text of :func:`write`, encoded."""
    # A comment must begin with a space, and must not have a double hyphen.
    comments = [_encoded(f"<!-- {comment.replace('--', '- -')} -->\n") for comment in algorithm.comments]
    steps = _steps(algorithm.table, algorithm.starts)
    inside = (text for gpu in algorithm.gpus for text in _gpu(gpu, steps))
    file = BytesIO()  # grows in place; a list of all parts would have the text twice
    file.writelines(chain(comments, _element(0, "algo", _head(algorithm), inside, bool(algorithm.gpus))))
    return file.getvalue()


def _gpu(gpu: Gpu, steps: Iterator[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    chunks = {"i_chunks": gpu.i_chunks, "o_chunks": gpu.o_chunks, "s_chunks": gpu.s_chunks}
    inside = (text for block in gpu.threadblocks for text in _threadblock(block, next(steps)))
    return _element(1, "gpu", {"id": gpu.id, **chunks}, inside, bool(gpu.threadblocks))


def _threadblock(block: Threadblock, steps: bytes | memoryview) -> list[bytes | memoryview]:
    head = b'    <tb id="%d" send="%d" recv="%d" chan="%d"' % (block.id, block.send, block.recv, block.chan)
    return [head + b">\n", steps, b"    </tb>\n"] if len(steps) else [head + b"/>\n"]


class _Texts:
    """The texts of the values of a column, their lengths, and for each row the number of its text."""

    def __init__(self, texts: Sequence[bytes], number: Array):
        self.texts, self.number = np.array(texts), number
        self.size = np.array([len(text) for text in texts], dtype=np.uint8)

    @classmethod
    def of(cls, column: int, values: Array) -> _Texts:
        """Return the texts of a column of the table of steps."""
        if column in _WORDS:
            return cls([word.encode() for word in _WORDS[column]], values)
        least, most = int(values.min(initial=0)), int(values.max(initial=0))
        if most - least <= max(len(values), _WIDE):
            return cls([b"%d" % value for value in range(least, most + 1)], values - least)
        found, number = numbered(values)
        return cls([b"%d" % value for value in found.tolist()], number)


class _Lines:
    """A table of bytes: the lines of steps, in which every value has the width of the longest one of its column.

    The bytes that a value does not need are NUL, and are left out of the text. The table is filled again and again.
    """

    def __init__(self, columns: Sequence[_Texts], most: int):
        parts, row, places = _STEP.split("{}"), b"", list[int]()
        for part, column in zip(parts, columns, strict=False):
            row += part.encode()
            places.append(len(row))
            row += bytes(column.texts.dtype.itemsize)
        row += parts[-1].encode()
        self.columns, self.width, self.lines = columns, len(row), bytearray(row) * most
        self.values = [
            np.ndarray(most, column.texts.dtype, self.lines, at, (self.width,))
            for column, at in zip(columns, places, strict=True)
        ] if most else []  # fmt: skip

    def text(self, first: int, stop: int) -> bytearray:
        """Return the text of rows ``first`` to ``stop``."""
        if first == stop:
            return bytearray()
        for column, values in zip(self.columns, self.values, strict=True):
            values[: stop - first] = column.texts.take(column.number[first:stop])
        used = (stop - first) * self.width
        return (self.lines if used == len(self.lines) else self.lines[:used]).translate(None, b"\0")

    def starts(self) -> Array:
        """Return where each row begins in the text of all, and after the last the end."""
        size = np.full(len(self.columns[0].number), len(_STEP.replace("{}", "")), dtype=np.int64)
        for column in self.columns:
            size += column.size.take(column.number)
        return starts(size)


def _steps(table: Array, start: Array) -> Iterator[bytes | memoryview]:
    """Yield the lines of the steps of each threadblock."""
    borders = [0]  # the first threadblock of each part of the text
    while borders[-1] < len(start) - 1:
        low = borders[-1]
        borders.append(max(int(np.searchsorted(start, start[low] + _MANY, side="right")) - 1, low + 1))
    lines = _Lines(
        [_Texts.of(column, table[:, column]) for column in range(LINE)], int(np.diff(start[borders]).max(initial=0))
    )
    at = lines.starts()[start]
    for low, high in pairwise(borders):
        text = memoryview(lines.text(int(start[low]), int(start[high])))
        for begin, end in pairwise((at[low : high + 1] - at[low]).tolist()):
            yield text[begin:end]


def _element(
    depth: int, tag: str, values: Mapping[str, object], inside: Iterable[bytes | memoryview], has_children: bool
) -> Iterator[bytes | memoryview]:
    """Yield the text of an element, with the texts ``inside`` of its children; values that are None are absent."""
    given = "".join([f' {name}="{_escaped(value)}"' for name, value in values.items() if value is not None])
    gap = "  " * depth
    if not has_children:
        yield _encoded(f"{gap}<{tag}{given}/>\n")
        return
    yield _encoded(f"{gap}<{tag}{given}>\n")
    yield from inside
    yield _encoded(f"{gap}</{tag}>\n")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _escaped(value: object) -> str:
    text = str(value)
    if isinstance(value, int) or text.isalnum():
        return text
    for plain, written in _WRITTEN:
        text = text.replace(plain, written)
    return text


def _head(algorithm: Algorithm) -> dict[str, object]:
    return {
        "name": algorithm.name,
        "proto": algorithm.proto,
        "nchannels": algorithm.nchannels,
        "nchunksperloop": algorithm.nchunksperloop,
        "ngpus": algorithm.ngpus,
        "coll": algorithm.coll,
        "inplace": algorithm.inplace,
        "outofplace": algorithm.outofplace,
        "minBytes": algorithm.min_bytes,
        "maxBytes": algorithm.max_bytes,
        "nthreads": algorithm.nthreads,
    }
