"""Lines of steps -> columns: the text of hundreds of thousands of steps, read by columns of bytes.

A line has ten values between quotes, and the text between the values is the same in every line. The reader takes words
of eight bytes where a value begins, finds its closing quote in the first one, and compares what follows the quote with
the text that is due. So it walks through thousands of lines at once, value by value.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np

from collc.ir.arrays import Array

from .steps import BUFFERS, DST, FIELDS, KINDS_OF, SRC

__all__ = ["beginnings", "read_lines", "starts_step"]

#: the text before the first value
_FIRST = b'      <step s="'
#: column of a value -> the text after it, up to the next value; NUL stands for the letter of a buffer
_AFTER = {
    "s": b'" type="', "type": b'" srcbuf="\0" srcoff="', "srcoff": b'" dstbuf="\0" dstoff="', "dstoff": b'" cnt="',
    "cnt": b'" depid="', "depid": b'" deps="', "deps": b'" hasdep="', "hasdep": b'"/>\n',
}  # fmt: skip
_LETTER = 10  # bytes before the letter of a buffer
#: which values may be negative
_SIGNED = frozenset({"srcoff", "dstoff", "depid", "deps"})

#: bytes of a word; its first byte is the lowest one of its number
_WORD = 8
#: bytes of the longest value that is read here
_LONGEST = 6
#: more bytes than a line has
_LINE = 256
#: lines, and bytes, that are read at once: they fit a processor's cache
_MANY, _SLAB = 1 << 13, 1 << 18


def beginnings(text: bytes) -> Array:
    """Return where each line of a text begins; after a line break at its end there is none."""
    data = np.frombuffer(text, dtype=np.uint8)
    breaks = [
        np.flatnonzero(data[low : low + _SLAB] == ord("\n")) + (low + 1) for low in range(0, max(len(data), 1), _SLAB)
    ]
    found = np.concatenate([np.zeros(1, dtype=np.int64), *breaks])
    return found[: len(found) - (int(found[-1]) == len(data))]


def starts_step(text: bytes, begin: Array) -> Array:
    """Return which of the lines that begin there may be steps."""
    words = np.ndarray((max(len(text) - _WORD + 1, 0),), "<u8", text, strides=(1,)) if len(text) >= _WORD else None
    found = np.zeros(len(begin), dtype=bool)
    if words is not None:
        within = int(np.searchsorted(begin, len(words)))
        found[:within] = words[begin[:within]] == _words(_FIRST)[0][0]
    return found


def read_lines(text: bytes, begin: Array) -> Array | None:
    """Return the steps of the lines that begin there, as one table; ``begin`` ascends.

    The table has the columns of :class:`.steps.Steps`, without the numbers of lines. None if a line has another form
    than those that :mod:`.writer` writes, or a value of more than six characters.
    """
    table = np.zeros((len(begin), len(FIELDS)), dtype=np.int32, order="F")
    for low in range(0, len(begin), _MANY):
        rows = slice(low, low + _MANY)
        first, last = int(begin[rows][0]), int(begin[rows][-1])
        slab = text[first : last + _LINE].ljust(-(-(last + _LINE - first) // _WORD) * _WORD, b"\0")
        if not _Lines(np.frombuffer(slab, dtype="<u8"), begin[rows] - first).fill(table[rows]):
            return None
    return table


class _Lines:
    """Words of a text, and the byte that each line has been read up to."""

    def __init__(self, words: Array, at: Array):
        self.words, self.at = words, at

    def fill(self, table: Array) -> bool:
        """Write the values to a table; return whether all lines are steps."""
        found = self.ahead(2)
        if self.differ(found, _FIRST):
            return False
        self.at = self.at + len(_FIRST)
        for name, after in _AFTER.items():
            found = self.ahead(-(-(_LONGEST + len(after)) // _WORD))
            width = _width(found[0])
            if int(width.min()) == 0 or int(width.max()) > 8 * _LONGEST:
                return False
            rest = [low >> width | high << (_BITS - width) for low, high in pairwise(found)]
            rest.append(found[-1] >> width)
            if self.differ(rest, after):
                return False
            values = _kinds(found[0], width) if name == "type" else _integers(found[0], width, name in _SIGNED)
            if values is None:
                return False
            table[:, FIELDS.index(name)] = values
            if name in _BUFFER_AFTER:
                letters = _letters().take((rest[1] >> _bits(8 * (_LETTER - _WORD))) & _bits(0xFF))
                if int(letters.max()) == len(BUFFERS):
                    return False
                table[:, _BUFFER_AFTER[name]] = letters
            self.at = self.at + ((width >> _bits(3)).astype(np.int64) + len(after))
        return True

    def ahead(self, number: int) -> list[Array]:
        """Return the next words of all lines, wherever in a word of the text they begin."""
        word, shift = self.at >> 3, ((self.at & 7) << 3).astype(np.uint64)
        taken = [self.words[k:].take(word) for k in range(number + 1)]
        back = _BITS - shift  # a shift by all 64 bits gives 0
        return [low >> shift | high << back for low, high in pairwise(taken)]

    def differ(self, found: list[Array], text: bytes) -> bool:
        """Return whether any line has other bytes ahead than a text."""
        other = np.zeros(len(self.at), dtype=np.uint64)
        for words, (due, known) in zip(found, _words(text), strict=False):
            other |= (words ^ due) & known
        return bool(other.any())


_BUFFER_AFTER = {"type": SRC, "srcoff": DST}
_bits = np.uint64
_BITS = _bits(8 * _WORD)


def _each(byte: int) -> np.uint64:
    """Return the word with this byte at all places."""
    return _bits(int.from_bytes(bytes([byte]) * _WORD, "little"))


_QUOTES, _ONES, _TOPS = _each(ord('"')), _each(1), _each(0x80)
_ZEROS, _SIXES, _HIGH = _each(ord("0")), _each(6), _each(0xF0)


@cache
def _words(text: bytes) -> list[tuple[np.uint64, np.uint64]]:
    """Return the words of a text, and for each the mask of the bytes that count: no NULs, and none behind its end."""
    found = []
    for low in range(0, len(text), _WORD):
        part = text[low : low + _WORD].ljust(_WORD, b"\0")
        known = bytes(0xFF if byte else 0 for byte in part)
        found.append((_bits(int.from_bytes(part, "little")), _bits(int.from_bytes(known, "little"))))
    return found


def _width(words: Array) -> Array:
    """Return the bits before the first quote in each word, 64 if there is none."""
    other = words ^ _QUOTES  # a quote becomes NUL; the lowest NUL sets the highest bit of its byte, none below it does
    tops = (other - _ONES) & ~other & _TOPS
    return (np.bitwise_count((tops - _bits(1)) & ~tops) & 0x78).astype(np.uint64)


def _integers(words: Array, width: Array, signed: bool) -> Array | None:
    """Return the whole numbers of the first ``width`` bits of words; None if one is not as Python writes it.

    ``signed`` says whether numbers may be negative. The digits are added in pairs: eight of one place each, four of two
    places, two of four.
    """
    first = words & _bits(0xFF)
    negative = (first == ord("-")).astype(np.uint64)
    if negative.any():
        if not signed:
            return None
        words, width = words >> (negative << _bits(3)), width - (negative << _bits(3))
        first = words & _bits(0xFF)
        if int(width.min()) == 0:
            return None
    # `strtol` reads other numbers of texts that begin with 0; minus 0 is none that Python writes
    if ((first == ord("0")) & ((width > 8) | (negative > 0))).any():
        return None
    digits = (words ^ _ZEROS) << (_BITS - width)
    if np.bitwise_or.reduce(digits | (digits + _SIXES)) & _HIGH:
        return None
    if int(width.max()) <= 4 * 8:
        short = (digits >> _bits(32)).astype(np.uint32)
        pairs = (short * np.uint32(10) + (short >> np.uint32(8))) & np.uint32(0x00FF00FF)
        found = ((pairs * np.uint32((100 << 16) + 1)) >> np.uint32(16)).astype(np.int32)
    else:
        pairs = digits * _bits(10) + (digits >> _bits(8))
        mask = _bits(0x000000FF000000FF)
        upper = (pairs & mask) * _bits(100 + (1000000 << 32))
        lower = ((pairs >> _bits(16)) & mask) * _bits(1 + (10000 << 32))
        found = ((upper + lower) >> _bits(32)).astype(np.int32)
    sign = -negative.astype(np.int32)  # -1 or 0
    signed_values: Array = (found ^ sign) - sign
    return signed_values


def _kinds(words: Array, width: Array) -> Array | None:
    """Return the numbers of the step types that are the first ``width`` bits of words; None if one is no step type."""
    codes, numbers, factor = _types()
    key = words & ~(_bits(0xFFFFFFFFFFFFFFFF) << width)
    place = (key * factor) >> _bits(64 - _TYPE_BITS)
    return None if (codes.take(place) != key).any() else numbers.take(place)


_TYPE_BITS = 5


@cache
def _types() -> tuple[Array, Array, np.uint64]:
    """Return the words of the step types by their hash, the number of each type, and the factor of the hash."""
    words = [int.from_bytes(text.encode(), "little") for text in KINDS_OF]
    factor = next(
        odd for odd in range(0x9E3779B97F4A7C15, 1 << 64, 2)
        if len({(word * odd % (1 << 64)) >> (64 - _TYPE_BITS) for word in words}) == len(words)
    )  # fmt: skip
    codes, numbers = np.zeros(1 << _TYPE_BITS, dtype=np.uint64), np.zeros(1 << _TYPE_BITS, dtype=np.uint8)
    for number, word in enumerate(words):
        place = (word * factor % (1 << 64)) >> (64 - _TYPE_BITS)
        codes[place], numbers[place] = word, number
    return codes, numbers, _bits(factor)


@cache
def _letters() -> Array:
    """Return for each byte the number of the buffer with that letter, or the number of buffers if there is none."""
    found = np.full(256, len(BUFFERS), dtype=np.uint8)
    for number, letter in enumerate(BUFFERS):
        found[ord(letter)] = number
    return found
