"""Lines of steps -> columns: the text of hundreds of thousands of steps, read by columns of bytes.

A line has ten values between quotes, and the text between the values is the same in every line. The reader finds the
quotes first. Then it takes the eight bytes before a quote for one number. It checks and converts such numbers column by
column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from collc.ir.arrays import Array

from .steps import BUFFERS, DST, FIELDS, KINDS_OF, LINE, SRC, TYPE

__all__ = ["read_lines"]

#: the text before the first value, between two values, and after the last
_BETWEEN = (
    b'      <step s="', b'" type="', b'" srcbuf="', b'" srcoff="', b'" dstbuf="', b'" dstoff="', b'" cnt="',
    b'" depid="', b'" deps="', b'" hasdep="', b'"/>\n',
)  # fmt: skip
_QUOTES = 2 * LINE
_QUOTE = ord('"')

#: bytes of a word, and of the longest value that is read here
_WORD = 8
#: characters that are read at once
_SLAB = 1 << 20

_NUMBERS = np.array([number for number in range(LINE) if number not in (TYPE, SRC, DST)])
#: which of them may be negative
_SIGNED = np.array([FIELDS[number] in ("srcoff", "dstoff", "depid", "deps") for number in _NUMBERS])


def read_lines(bodies: Sequence[str], number: int) -> Array | None:
    """Return the steps of texts of whole lines, of which there are ``number``, as one table.

    The table has the columns of :class:`.steps.Steps`, without the numbers of lines. None if a line has another form
    than those that :mod:`.writer` writes, or a value of more than eight characters.
    """
    table = np.zeros((number, len(FIELDS)), dtype=np.int32, order="F")
    at = 0
    for slab in _slabs(bodies):
        if not slab.isascii():
            return None
        found = _Lines(slab.encode("ascii"))
        if not found.are_steps() or not found.fill(table[at : at + len(found)]):
            return None
        at += len(found)
    return table if at == number else None


def _slabs(bodies: Sequence[str]) -> Iterator[str]:
    """Yield the texts, joined to slabs of about the same size."""
    ends = np.cumsum([len(body) for body in bodies])
    slab = ends // _SLAB
    borders = [0, *(np.flatnonzero(slab[1:] != slab[:-1]) + 1).tolist(), len(bodies)]
    for low, high in pairwise(borders):
        yield "".join(bodies[low:high])


class _Lines:
    """A text, and the places of its quotes: one row for each line, if the lines are steps."""

    def __init__(self, text: bytes):
        gap = bytes(_WORD)
        self.text = np.frombuffer(b"".join((gap, text, gap)), dtype=np.uint8)
        self.end = _WORD + len(text)
        self.quotes = np.flatnonzero(self.text == _QUOTE)
        # every byte begins a word of eight; the first byte is the lowest one of its number
        self.words = np.ndarray((len(self.text) - _WORD + 1,), "<u8", self.text, strides=(1,))

    def __len__(self) -> int:
        return len(self.quotes) // _QUOTES

    def are_steps(self) -> bool:
        """Return whether all of the text is lines of steps, whatever the values."""
        if not len(self) or len(self.quotes) % _QUOTES:
            return False
        self.opening, self.closing = self.quotes[0::2].reshape(-1, LINE).T, self.quotes[1::2].reshape(-1, LINE).T
        first, *inner, last = _BETWEEN
        # the end of a line and the beginning of the next one stand between the last value and the next first one
        begin, end = self.opening[0, :1] - len(first) + 1, self.closing[-1, -1:] + len(last) - 1
        if begin[0] != _WORD or end[0] != self.end - 1:
            return False
        if not self._has(begin, self.opening[0, :1], first) or not self._has(self.closing[-1, -1:], end, last):
            return False
        return all(
            self._has(self.closing[number], self.opening[number + 1], part) for number, part in enumerate(inner)
        ) and self._has(self.closing[-1, :-1], self.opening[0, 1:], last + first)

    def _has(self, begin: Array, end: Array, part: bytes) -> bool:
        """Return whether a part stands at all places ``begin``, with its last byte at ``end``."""
        if (end - begin != len(part) - 1).any():
            return False
        # words that cover the part, counted from its end; the first may begin before it
        for back in range(_WORD, len(part) + _WORD, _WORD):
            low = max(len(part) - back, 0) if len(part) >= _WORD else len(part) - back
            due, known = _word(part, low)
            if ((self.words[begin + low] & known) != due).any():
                return False
        return True

    def fill(self, table: Array) -> bool:
        """Write the values to a table; return whether all are values of steps."""
        width = (self.closing - self.opening - 1).astype(np.uint64)
        if (width > _WORD).any() or (width == 0).any():
            return False
        words = self.words[self.closing - _WORD]
        for number, texts in ((TYPE, KINDS_OF), (SRC, BUFFERS), (DST, BUFFERS)):
            codes = _codes(texts)
            key = words[number] >> (np.uint64(_BITS) - width[number] * np.uint64(8))
            found = np.minimum(np.searchsorted(codes[0], key), len(texts) - 1)
            if (codes[0][found] != key).any():
                return False
            table[:, number] = codes[1][found]
        for number, signed in zip(_NUMBERS.tolist(), _SIGNED.tolist(), strict=True):
            values = _integers(words[number], width[number], signed)
            if values is None:
                return False
            table[:, number] = values
        return True


_BITS = 8 * _WORD
_ALL = (1 << _BITS) - 1


def _word(part: bytes, low: int) -> tuple[np.uint64, np.uint64]:
    """Return the word of a part from the byte ``low`` on, and the mask of the bytes of it that are in the part."""
    due = known = 0
    for place in range(_WORD):
        if 0 <= low + place < len(part):
            due |= part[low + place] << 8 * place
            known |= 0xFF << 8 * place
    return np.uint64(due), np.uint64(known)


def _codes(texts: Sequence[str]) -> tuple[Array, Array]:
    """Return the words of some texts in order, and for each the number of its text."""
    codes = np.array([int.from_bytes(text.encode(), "little") for text in texts], dtype=np.uint64)
    order = np.argsort(codes)
    return codes[order], order


def _integers(words: Array, width: Array, signed: bool) -> Array | None:
    """Return the whole numbers of the last ``width`` characters of words; None if one is not as Python writes it.

    ``signed`` says whether numbers may be negative. The digits are added in pairs: eight of one place each, four of two
    places, two of four.
    """
    shift = np.uint64(_BITS) - width * np.uint64(8)
    negative = (words >> shift) & np.uint64(0xFF) == ord("-")
    if negative.any():
        if not signed or (negative & (width == 1)).any():
            return None
        shift = shift + negative * np.uint64(8)
    known = np.uint64(_ALL) << shift
    digits = (words ^ np.uint64(_ZEROS)) & known
    high = np.uint64(_HIGH)
    if (digits & high).any() or ((digits + np.uint64(_SIXES)) & high).any():
        return None
    leading = (digits >> shift) & np.uint64(0xFF) == 0
    if (leading & ((shift != _BITS - 8) | negative)).any():  # `strtol` reads other numbers of such texts
        return None
    pairs = digits * np.uint64(10) + (digits >> np.uint64(8))
    mask = np.uint64(0x000000FF000000FF)
    upper = (pairs & mask) * np.uint64(100 + (1000000 << 32))
    lower = ((pairs >> np.uint64(16)) & mask) * np.uint64(1 + (10000 << 32))
    found: Array = ((upper + lower) >> np.uint64(32)).astype(np.int64)
    return np.where(negative, -found, found)


_ZEROS = int.from_bytes(b"0" * _WORD, "little")
_HIGH = int.from_bytes(b"\xf0" * _WORD, "little")
_SIXES = int.from_bytes(b"\x06" * _WORD, "little")
