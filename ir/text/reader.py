"""A cursor over the lines of a textual IR around its tables. Its errors name what it found and what it needed."""

from __future__ import annotations

import re
from fractions import Fraction

import attrs

from ..diagnostic import CollcError, nearest
from .source import Text, shown
from .words import MAX_INTEGER, MAX_RATIONAL_DIGITS, TABLES

__all__ = ["Line", "Reader", "Table"]

_TOKEN = re.compile(
    r"""[ \t\r]*(?:
    (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<number>[0-9]+(?:/[0-9]+)?)
  | (?P<word>[A-Za-z_][A-Za-z0-9_/-]*)
  | (?P<mark>->|[:{}])
  | (?P<other>[^ \t\r\n]+)
    )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r'\\(?:(["\\ntr])|u\{([0-9a-f]{1,6})\}|.?)', re.DOTALL)
_CLOSING = re.compile(r"^[ \t\r]*\}", re.MULTILINE)
_PLAIN = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r"}


@attrs.frozen
class Table:
    """The header of a table and the place of its rows: the lines of ``text[begin:end]`` that are not blank."""

    name: str
    columns: tuple[str, ...]
    rows: int  # the number in the header, at ``place``
    place: int
    begin: int
    end: int

    def check_rows(self, text: Text, found: int) -> None:
        """Raise C0804 unless the table has the number of rows in its header."""
        if found != self.rows:
            message = f"table `{self.name}` has {self.rows} rows by its header, found {found}"
            raise text.fail("C0804", message, self.place, self.place + len(str(self.rows)))


@attrs.define
class Line:
    """One line that is not blank, read from left to right."""

    text: Text
    pos: int
    end: int
    kind: str = ""
    found: str = ""
    place: int = 0

    def __attrs_post_init__(self) -> None:
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self.text.text, self.pos, self.end)
        if match is None:
            self.kind, self.found, self.place = "end", "", self.end
            return
        self.kind = match.lastgroup or ""
        self.found, self.place, self.pos = match[self.kind], match.start(self.kind), match.end()

    def fail(self, code: str, message: str, hint: str | None = None) -> CollcError:
        """Return the error for the current token."""
        return self.text.fail(code, message, self.place, self.place + len(self.found), hint=hint)

    def expected(self, what: str, hint: str | None = None) -> CollcError:
        """Return the error C0802 for a token that is not ``what``."""
        return self.fail("C0802", f"expected {what}, found {shown(self.found)}", hint)

    def word(self, *words: str) -> str:
        """Read one of these words."""
        if self.kind not in ("word", "mark") or self.found not in words:
            listed = " or ".join(f"`{w}`" for w in words)
            raise self.expected(listed, nearest(self.found, words))
        return self._take()

    def at(self, word: str) -> bool:
        """Return whether the current token is this word, without reading it."""
        return self.kind == "word" and self.found == word

    def integer(self, most: int = MAX_INTEGER) -> int:
        """Read a whole number of 0 to ``most``."""
        if self.kind != "number" or "/" in self.found:
            raise self.expected("a whole number")
        if len(self.found) > len(str(MAX_INTEGER)) or int(self.found) > most:
            code = "C0803" if most == MAX_INTEGER else "C0805"
            raise self.fail(code, f"{shown(self.found)} is too large: at most {most} is allowed here")
        return int(self._take())

    def integers(self, most: int) -> tuple[int, ...]:
        """Read whole numbers of 0 to ``most``, as many as follow."""
        found = []
        while self.kind == "number":
            found.append(self.integer(most))
        return tuple(found)

    def rational(self) -> Fraction:
        """Read ``p`` or ``p/q``."""
        if self.kind != "number":
            raise self.expected("a number `p` or `p/q`")
        upper, _, lower = self.found.partition("/")
        if len(self.found) > MAX_RATIONAL_DIGITS:
            raise self.fail("C0803", f"a rational has at most {MAX_RATIONAL_DIGITS} digits, found {len(self.found)}")
        if lower and int(lower) == 0:
            raise self.fail("C0803", f"{shown(self.found)} divides by zero")
        self._take()
        return Fraction(int(upper), int(lower or 1))

    def string(self, bare: bool = False) -> str:
        """Read a quoted string, or with ``bare`` a plain word too."""
        if bare and self.kind == "word":
            return self._take()
        if self.kind == "other" and self.found.startswith('"'):
            raise self.fail(
                "C0807", "this string does not end on its line", hint='close it with `"`; a newline is `\\n`'
            )
        if self.kind != "string":
            raise self.expected("a word or a quoted string" if bare else "a quoted string")
        value = _ESCAPE.sub(self._unescape, self.found[1:-1])
        self._take()
        return value

    def _unescape(self, match: re.Match[str]) -> str:
        plain, code = match.groups()
        if plain is not None:
            return _PLAIN[plain]
        if code is not None and int(code, 16) <= 0x10FFFF:
            return chr(int(code, 16))
        start = self.place + 1 + match.start()
        raise self.text.fail(
            "C0807", f"unknown escape {shown(match[0])} in a string", start, start + len(match[0]),
            hint='escapes are \\" \\\\ \\n \\t \\r and \\u{hexadecimal}',
        )  # fmt: skip

    def done(self) -> None:
        """Require the end of the line."""
        if self.kind != "end":
            raise self.expected("the end of the line")

    def _take(self) -> str:
        found = self.found
        self._advance()
        return found


@attrs.define
class Reader:
    """A cursor over the lines of a text."""

    text: Text
    pos: int = 0

    def line(self, needed: str) -> Line:
        """Return the next line that is neither blank nor a comment; ``needed`` describes it in the message."""
        line = self.peek()
        if line is None:
            end = len(self.text.text)
            raise self.text.fail("C0802", f"expected {needed}, found the end of the text", end, end + 1)
        self.pos = line.end + 1
        return line

    def peek(self) -> Line | None:
        """Return the result of :meth:`line` without moving on, or None at the end of the text."""
        text = self.text.text
        while self.pos < len(text):
            end = self.text.line_end(self.pos)
            line = Line(self.text, self.pos, end)
            if line.kind != "end" and not line.found.startswith("#"):
                return line
            self.pos = end + 1
        return None

    def at(self, word: str) -> bool:
        """Return whether the next line begins with this word."""
        line = self.peek()
        return line is not None and line.at(word)

    def value(self, name: str) -> Line:
        """Return the line ``NAME ..`` after its name."""
        line = self.line(f"`{name}`")
        line.word(name)
        return line

    def integer(self, name: str, most: int = MAX_INTEGER) -> int:
        """Read the line ``NAME NUMBER``."""
        line = self.value(name)
        number = line.integer(most)
        line.done()
        return number

    def choice(self, name: str, *words: str) -> str:
        """Read the line ``NAME WORD``."""
        line = self.value(name)
        word = line.word(*words)
        line.done()
        return word

    def bare(self, name: str) -> str:
        """Read the line ``NAME WORD`` or ``NAME "STRING"``."""
        line = self.value(name)
        word = line.string(bare=True)
        line.done()
        return word

    def open(self, line: Line) -> None:
        """Read the ``{`` that ends a line."""
        line.word("{")
        line.done()

    def close(self, needed: str = "`}`") -> None:
        """Read the line ``}``."""
        line = self.line(needed)
        line.word("}")
        line.done()

    def table(self, name: str, extra: tuple[str, ...] = ()) -> Table:
        """Read ``NAME COUNT: COLUMNS { .. }``, and return the place of its rows; ``extra`` columns may be missing."""
        line = self.value(name)
        place, rows = line.place, line.integer()
        line.word(":")
        columns = TABLES[name]
        for column in columns:
            line.word(column)
        if extra and line.at(extra[0]):
            columns += tuple(line.word(column) for column in extra)
        self.open(line)
        begin = min(line.end + 1, len(self.text.text))
        self.pos = self._closing(begin, place)
        table = Table(name, columns, rows, place, begin, self.pos)
        self.close()
        return table

    def _closing(self, begin: int, place: int) -> int:
        """Return the offset of the line that closes a table whose rows begin at ``begin``."""
        if found := _CLOSING.search(self.text.text, begin):
            return found.start()
        raise self.text.fail("C0802", "this table is not closed by a line `}`", place, place + 1)
