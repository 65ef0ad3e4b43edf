"""Square tables in pasted text: a header with names, and for each name a row of cells.

Words count, not columns or lines: a header or a row may go on in the next line, blanks and tabs are the same, bars of
Markdown and comment marks are skipped. A word that a terminal broke at its last column is joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from collc.ir.diagnostic import Source, error
from collc.ir.frozen import frozen

from .pasted import Line, Word, lines

__all__ = ["MOST_COLUMNS", "Row", "Shape", "Square", "squares", "table_lines"]

#: The largest table; a machine has at most a few dozen GPUs and NICs.
MOST_COLUMNS = 256

#: The longest text; the largest table has 70,000 words.
_MOST_WORDS, _MOST_LINES = 200_000, 50_000

_WORD = re.compile(r"[^\s|*`#]+")
_MEANS = re.compile(r"\w|\N{MULTIPLICATION SIGN}")


@frozen
class Shape:
    """How the words of a format's tables look.

    ``first`` is a name that begins a header, ``sure`` a name that is nothing else, ``name`` any name of a column.
    ``cell`` is what stands in a row, ``heading`` a word of the other columns' headings, ``beside`` a word that may
    stand behind the cells of a row.
    """

    first: re.Pattern[str]
    sure: re.Pattern[str]
    name: Callable[[str], bool]
    cell: re.Pattern[str]
    heading: Callable[[str], bool]
    beside: re.Pattern[str]

    def knows(self, text: str) -> bool:
        """Return whether a word is a name or a cell."""
        return self.name(text) or bool(self.cell.fullmatch(text))


@frozen(eq=False)
class Row:
    """One row: its name, its cells, and the words behind them."""

    label: Word
    cells: tuple[Word, ...]
    beside: tuple[Word, ...]


@frozen(eq=False)
class Square:
    """A table: the names of its columns, the headings of further columns, and its rows.

    ``begins`` is the index of the header's line among the lines.
    """

    columns: tuple[Word, ...]
    headings: str
    rows: tuple[Row, ...]
    begins: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(map(str, self.columns))


@frozen(eq=False)
class _Token:
    word: Word
    leads: bool  # whether it is the first word of its line
    line: int

    @property
    def text(self) -> str:
        return self.word.text


def table_lines(sources: Sequence[Source]) -> list[Line]:
    """Return the cleaned lines of texts with tables; raise C0963 for texts that are much longer than tables."""
    for source in sources:
        count = len(source.text.split())
        if count > _MOST_WORDS or source.text.count("\n") > _MOST_LINES:
            message = f"`{source.path}` has more than {_MOST_WORDS} words or {_MOST_LINES} lines"
            raise error("C0963", message, hint="cut the tables out of it")
    return [line for source in sources for line in lines(source)]


def squares(texts: Sequence[Line], shape: Shape) -> tuple[list[Square], list[Line]]:
    """Return the tables of a text, and the lines that belong to none.

    Rows without a header, short rows and unknown cells are kept; the reader judges them. A table without rows is none.
    Raises C0933 for more than 256 columns.
    """
    scan = _Scan(list(_tokens(texts, shape)), shape)
    scan.run()
    return scan.found, [line for number, line in enumerate(texts) if number in scan.others]


def _tokens(texts: Sequence[Line], shape: Shape) -> Iterator[_Token]:
    widest = max((len(line.text) for line in texts), default=0)
    before: _Token | None = None
    for number, line in enumerate(texts):
        leads = True
        for found in _WORD.finditer(line.text):
            if not _MEANS.search(found[0]):
                continue
            token = _Token(line.part(found), leads, number)
            if before and leads and _is_broken(before.word, token.word, widest, shape):
                word = Word(before.text + token.text, before.word.line, before.word.start, before.word.end)
                token = _Token(word, before.leads, before.line)
            elif before:
                yield before
            before, leads = token, False
    if before:
        yield before


def _is_broken(first: Word, second: Word, widest: int, shape: Shape) -> bool:
    """Return whether a terminal broke one word in two: at its last column, and the two together are known.

    Else one of two words that end and begin there would have a blank beside it.
    """
    if first.end < widest or second.start or first.end != len(first.line.text):
        return False
    whole = first.text + second.text
    if shape.sure.fullmatch(second.text):
        return False
    if shape.cell.fullmatch(whole):
        both = shape.cell.fullmatch(first.text) and shape.cell.fullmatch(second.text)
        return not both or second.text.isdigit() or first.text[0].isdigit()
    if shape.sure.fullmatch(whole):
        return second.text.isdigit() or not shape.sure.fullmatch(first.text)
    return shape.name(whole) and not (shape.knows(first.text) or shape.heading(first.text))


class _Scan:
    """Goes through the words once and collects tables."""

    def __init__(self, tokens: list[_Token], shape: Shape):
        self.tokens, self.shape = tokens, shape
        self.at = 0
        self.names: dict[str, Word] = {}
        self.rows: list[Row] = []
        self.headings, self.begins = "", 0
        self.found: list[Square] = []
        self.others: set[int] = set()

    def run(self) -> None:
        while self.at < len(self.tokens):
            if not (self._header() or self._row()):
                self.others.add(self.tokens[self.at].line)
                self.at += 1
        self._close()

    def _close(self) -> None:
        if self.rows:
            self.found.append(Square(tuple(self.names.values()), self.headings, tuple(self.rows), self.begins))
        self.rows = []

    def _text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def _is_cell(self, at: int) -> bool:
        return bool(self.shape.cell.fullmatch(self._text(at)))

    # ---- headers

    def _header(self) -> bool:
        """Read a header, if one begins here: names, then headings up to the first row."""
        first = self.tokens[self.at]
        if not first.leads or not self.shape.first.fullmatch(first.text) or self._is_cell(self.at + 1):
            return False
        names, end = self._columns()
        stop = self._after_headings(end, names)
        if stop is None:
            return False
        if len(names) > MOST_COLUMNS:
            message = f"found a table with {len(names)} columns, needed at most {MOST_COLUMNS}"
            raise error("C0933", message, span=first.word.span)
        self._close()
        self.names, self.begins = names, first.line
        self.headings = " ".join(self._text(i) for i in range(end, stop))
        self.at = stop
        return True

    def _columns(self) -> tuple[dict[str, Word], int]:
        """Return the names that stand in a row here, and where they end: at a name twice, or at a row."""
        names = dict[str, Word]()
        end = self.at
        while self._text(end) not in names and self.shape.name(self._text(end)):
            if self.tokens[end].leads and self._is_cell(end + 1):
                break
            names[self._text(end)] = self.tokens[end].word
            end += 1
        return names, end

    def _after_headings(self, end: int, names: dict[str, Word]) -> int | None:
        """Return where the first row begins; None if no row follows, so that it is no header."""
        line = self.tokens[end - 1].line
        for at in range(end, len(self.tokens)):
            token = self.tokens[at]
            if token.text in names and (token.leads or self._is_cell(at + 1)):
                return at
            if token.line != line and not self.shape.heading(token.text):
                break
        return None

    # ---- rows

    def _row(self) -> bool:
        """Read a row of the last table, if one begins here."""
        label = self.tokens[self.at]
        if label.text not in self.names or not self._is_row(label):
            return False
        cells = list[Word]()
        self.at += 1
        while len(cells) < len(self.names) and self.at < len(self.tokens) and not self._is_end(self.tokens[self.at]):
            cells.append(self.tokens[self.at].word)
            self.at += 1
        self.rows.append(Row(label.word, tuple(cells), tuple(self._beside())))
        return True

    def _is_row(self, label: _Token) -> bool:
        """Return whether a name begins a row: a cell follows it, or an unknown word and then a cell."""
        if self._is_cell(self.at + 1):
            return True
        return label.leads and self._text(self.at + 1) not in self.names and self._is_cell(self.at + 2)

    def _is_end(self, token: _Token) -> bool:
        """Return whether a word ends a row that has too few cells."""
        if self.shape.cell.fullmatch(token.text):
            return False
        return token.leads or token.text in self.names or bool(self.shape.beside.fullmatch(token.text))

    def _beside(self) -> Iterator[Word]:
        """Yield the words behind the cells; they may go on in the next lines if those have no others."""
        line = self.tokens[self.at - 1].line
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.line != line:
                if not self._is_beside(token.line):
                    return
                line = token.line
            elif token.text in self.names and self._is_cell(self.at + 1):
                return
            yield token.word
            self.at += 1

    def _is_beside(self, line: int) -> bool:
        """Return whether all words of a line may stand behind cells."""
        at = self.at
        while at < len(self.tokens) and self.tokens[at].line == line:
            if not self.shape.beside.fullmatch(self._text(at)):
                return False
            at += 1
        return True
