"""The document model -> text for the runtimes' tokeniser: one element a line, no declaration, no tabs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from collc.ir.arrays import Array, numbered

from .model import Algorithm, Gpu, Threadblock
from .steps import BUFFERS, DST, KINDS_OF, LINE, SRC, TYPE

__all__ = ["write"]

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
#: lines that are made at once: several megabytes of text
_MANY = 1 << 16


def write(algorithm: Algorithm) -> str:
    """Return the text of an algorithm; equal algorithms give equal bytes. :func:`.reader.read` is the inverse.

    The text has no attributes that are None. Comments come first, one a line.
    """
    # A comment must begin with a space, and must not have a double hyphen.
    lines = [f"<!-- {comment.replace('--', '- -')} -->" for comment in algorithm.comments]
    steps = _steps(algorithm.table, algorithm.starts)
    lines += _element(0, "algo", _head(algorithm), [line for gpu in algorithm.gpus for line in _gpu(gpu, steps)])
    return "\n".join(lines) + "\n"


def _gpu(gpu: Gpu, steps: Iterator[str]) -> list[str]:
    chunks = {"i_chunks": gpu.i_chunks, "o_chunks": gpu.o_chunks, "s_chunks": gpu.s_chunks}
    inside = [line for block in gpu.threadblocks for line in _threadblock(block, next(steps))]
    return _element(1, "gpu", {"id": gpu.id, **chunks}, inside)


def _threadblock(block: Threadblock, steps: str) -> list[str]:
    ends = {"id": block.id, "send": block.send, "recv": block.recv, "chan": block.chan}
    return _element(2, "tb", ends, [steps] if steps else [])


def _steps(table: Array, start: Array) -> Iterator[str]:
    """Yield the lines of the steps of each threadblock, without the last line break.

    All lines are rows of one table of bytes, in which every value has the width of the longest one of its column. The
    bytes that a value does not need are NUL, and are left out of the text.
    """
    values = [_texts(column, table[:, column]) for column in range(LINE)]
    low = 0
    while low < len(start) - 1:
        high = max(int(np.searchsorted(start, start[low] + _MANY, side="right")) - 1, low + 1)
        first = int(start[low])
        lines, width = _lines(values, first, int(start[high]))
        for begin, end in pairwise(((start[low : high + 1] - first) * width).tolist()):
            yield lines[begin:end].translate(None, b"\0")[:-1].decode("ascii")
        low = high


def _lines(values: list[tuple[Array, Array]], first: int, stop: int) -> tuple[bytearray, int]:
    """Return the rows ``first`` to ``stop`` of the table of bytes, one after the other, and the width of a row."""
    parts, row, places = _STEP.split("{}"), b"", list[int]()
    for part, (texts, _) in zip(parts, values, strict=False):
        row += part.encode()
        places.append(len(row))
        row += bytes(texts.dtype.itemsize)
    row += parts[-1].encode()
    lines = bytearray(row) * (stop - first)
    for at, (texts, number) in zip(places, values, strict=True) if lines else ():
        column = np.ndarray(stop - first, texts.dtype, lines, at, (len(row),))
        column[:] = texts[number[first:stop]]
    return lines, len(row)


def _texts(column: int, values: Array) -> tuple[Array, Array]:
    """Return the texts of the values of a column, and for each row the number of its text."""
    if column in _WORDS:
        return np.array([word.encode() for word in _WORDS[column]]), values
    least, most = int(values.min(initial=0)), int(values.max(initial=0))
    if most - least <= max(len(values), _MANY):
        return np.array([b"%d" % value for value in range(least, most + 1)]), values - least
    found, number = numbered(values)
    return np.array([b"%d" % value for value in found.tolist()]), number


def _element(depth: int, tag: str, values: Mapping[str, object], inside: list[str]) -> list[str]:
    """Return the lines of an element with the lines ``inside`` of its children; values that are None are absent."""
    given = "".join(f' {name}="{_escaped(value)}"' for name, value in values.items() if value is not None)
    gap = "  " * depth
    return [f"{gap}<{tag}{given}>", *inside, f"{gap}</{tag}>"] if inside else [f"{gap}<{tag}{given}/>"]


def _escaped(value: object) -> str:
    text = str(value)
    if text.isalnum():
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
