"""Tables of numbers and words, a megabyte at a time: text -> tokens -> columns, without a Python loop.

A token is a run of digits, a run of letters and ``->``, or one mark. The scanner looks at every character, so it
accepts only the documented form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from ..arrays import Array
from ..diagnostic import CollcError
from .source import Text, shown
from .words import MAX_INTEGER, MAX_LINE

__all__ = ["Tokens", "slabs"]

_SLAB = 1 << 20  # characters read at once, rounded up to a whole line

_OTHER, _BLANK, _NEWLINE, _DIGIT, _LETTER, _MARK = range(6)


def _character_classes() -> Array:
    table = np.full(256, _OTHER, dtype=np.uint8)
    for characters, kind in [
        (b" \t\r", _BLANK), (b"\n", _NEWLINE), (b"0123456789", _DIGIT),
        (b"abcdefghijklmnopqrstuvwxyz->", _LETTER), (b":.{}", _MARK),
    ]:  # fmt: skip
        table[np.frombuffer(characters, dtype=np.uint8)] = kind
    return table


_CLASS = _character_classes()
_DIGITS = len(str(MAX_INTEGER))


@attrs.frozen(eq=False)
class Tokens:
    """The tokens of some whole lines of a text.

    Token i is ``data[start[i]:stop[i]]``, ``base`` characters further in the text. The tokens of line j are
    ``lines[j]`` to ``lines[j+1]``.
    """

    text: Text
    base: int
    data: Array
    start: Array
    stop: Array
    lines: Array

    @classmethod
    def scan(cls, text: Text, begin: int, end: int) -> Tokens:
        """Return the tokens of ``text[begin:end]``; raise C0802 at a character that no token has."""
        piece = text.text[begin:end]
        if not piece.isascii():
            odd = re.search(r"[^\x00-\x7f]", piece)
            assert odd is not None
            raise _stray(text, begin + odd.start())
        data = np.frombuffer(piece.encode("ascii"), dtype=np.uint8)
        kind = _CLASS[data]
        if (kind == _OTHER).any():
            raise _stray(text, begin + int(np.argmax(kind == _OTHER)))
        solid = kind >= _DIGIT
        change = np.empty(len(kind) + 1, dtype=bool)
        change[0] = change[-1] = True
        np.not_equal(kind[1:], kind[:-1], out=change[1:-1])
        mark = kind == _MARK
        start = np.flatnonzero(solid & (change[:-1] | mark))
        stop = np.flatnonzero(solid & (change[1:] | mark)) + 1
        newline = np.flatnonzero(kind == _NEWLINE)
        if len(data) and kind[-1] != _NEWLINE:
            newline = np.append(newline, len(data))
        lines = np.concatenate([[0], np.searchsorted(start, newline)])
        tokens = cls(text, begin, data, start, stop, lines)
        tokens._refuse_glued(kind)
        return tokens

    def _refuse_glued(self, kind: Array) -> None:
        first, last = kind[self.start], kind[self.stop - 1]
        glued = (self.start[1:] == self.stop[:-1]) & (first[1:] != _MARK) & (last[:-1] != _MARK)
        if glued.any():
            token = int(np.argmax(glued))
            raise self.fail("C0802", token, f"a blank is needed within {shown(self.string(token, 2))}", 2)

    # ---- values

    def is_number(self, which: Array) -> Array:
        """Return whether each of these tokens is a number."""
        digits: Array = _CLASS[self.data[self.start[which]]] == _DIGIT
        return digits

    def numbers(self, which: Array) -> Array:
        """Return the values (int64) of these tokens; raise C0802 or C0803 at one that has none."""
        if len(which) == 0:
            return np.zeros(0, dtype=np.int64)
        good = self.is_number(which)
        if not good.all():
            token = int(which[np.argmin(good)])
            raise self.fail("C0802", token, f"expected a number, found {shown(self.string(token))}")
        start, stop = self.start[which], self.stop[which]
        length = stop - start
        self._refuse_large(which, length > _DIGITS)
        value = np.zeros(len(which), dtype=np.uint64)
        for place in range(int(length.max())):
            digit = self.data[np.maximum(stop - 1 - place, start)] - np.uint8(ord("0"))
            value += np.where(place < length, digit, 0).astype(np.uint64) * np.uint64(10**place)
        self._refuse_large(which, value > MAX_INTEGER)
        return value.astype(np.int64)

    def _refuse_large(self, which: Array, large: Array) -> None:
        if large.any():
            token = int(which[np.argmax(large)])
            raise self.fail("C0803", token, f"{shown(self.string(token))} is too large: at most {MAX_INTEGER} fits")

    def words(self, which: Array, vocabulary: Sequence[str]) -> Array:
        """Return which word of the vocabulary each of these tokens is (int64), -1 if it is none."""
        start, length = self.start[which], self.stop[which] - self.start[which]
        result = np.full(len(which), -1, dtype=np.int64)
        for index, word in enumerate(vocabulary):
            spelled = np.frombuffer(word.encode("ascii"), dtype=np.uint8)
            same = np.flatnonzero(length == len(spelled))
            for place, character in enumerate(spelled):
                same = same[self.data[start[same] + place] == character]
            result[same] = index
        return result

    # ---- messages

    def string(self, token: int, count: int = 1) -> str:
        """Return the text of ``count`` consecutive tokens."""
        start, stop = int(self.start[token]), int(self.stop[token + count - 1])
        return self.text.text[self.base + start : self.base + stop]

    def fail(self, code: str, token: int, message: str, count: int = 1, hint: str | None = None) -> CollcError:
        """Return the error for ``count`` tokens."""
        start, stop = int(self.start[token]), int(self.stop[token + count - 1])
        return self.text.fail(code, message, self.base + start, self.base + stop, hint=hint)

    def fail_at_end(self, token: int, message: str) -> CollcError:
        """Return the error for the end of a line that needs more than its last token."""
        end = self.base + int(self.stop[token])
        return self.text.fail("C0802", message, end, end + 1)


def _stray(text: Text, place: int) -> CollcError:
    return text.fail("C0802", f"unexpected character {shown(text.text[place])}", place, place + 1)


def slabs(text: Text, begin: int, end: int) -> Iterator[Tokens]:
    """Yield the tokens of ``text[begin:end]`` (whole lines) slab by slab, so memory stays small."""
    while begin < end:
        stop = min(begin + _SLAB, end)
        if stop < end:
            newline = text.text.find("\n", stop, end)
            stop = end if newline < 0 else newline + 1
            if stop - begin > _SLAB + MAX_LINE:
                long = text.text.rfind("\n", begin, begin + _SLAB) + 1 or begin
                raise text.fail("C0805", f"a line of a table is longer than {MAX_LINE} characters", long, long + 1)
        yield Tokens.scan(text, begin, stop)
        begin = stop
