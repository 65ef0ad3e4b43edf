"""Mistakes as values: where, what was found, what was needed, and a way out.

Everything that can go wrong because of what a user gave us ends as one or more :class:`Diagnostic`,
carried by a :class:`CollcError`. Codes are listed, with the paragraph ``collc explain`` prints, in
:mod:`collc.ir.codes`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property

import attrs

__all__ = ["CollcError", "Diagnostic", "Severity", "Source", "Span", "error", "nearest", "warning"]


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@attrs.frozen
class Source:
    """One text that was read: its name as the user gave it, and its content.

    Messages show nothing of a ``hidden`` one's content, only places in it.
    """

    path: str
    text: str = attrs.field(repr=False)
    hidden: bool = False

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return (0, *(found.end() for found in re.finditer("\n", self.text)))

    def start_of(self, line: int) -> int:
        """Return the offset at which a line (from 1) begins."""
        return self._starts[line - 1]

    def line(self, number: int) -> str:
        """Return line ``number`` (from 1) without its end, or nothing past the last one."""
        if not 0 < number <= len(self._starts):
            return ""
        start = self.start_of(number)
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else None].rstrip("\r")


@attrs.frozen
class Span:
    """A place in a source: lines and columns count from 1, ``end_column`` is exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source.path}:{self.line}:{self.column}"

    def to(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of ``other``."""
        return attrs.evolve(self, end_line=other.end_line, end_column=other.end_column)


_LONGEST = 2000  # characters of a message; what is quoted in longer ones is cut
_QUOTED = re.compile(r"`([^`\n]{200,})`|\"([^\"\n]{200,})\"")


def _bounded(text: str) -> str:
    return text if len(text) <= _LONGEST else _QUOTED.sub(lambda quote: f"{quote[0][:80]}...{quote[0][-1]}", text)


@attrs.frozen
class Diagnostic:
    """One mistake. ``message`` starts lower-case and ends without a period; it quotes no more than can be read."""

    code: str
    message: str = attrs.field(converter=_bounded)
    severity: Severity = Severity.ERROR
    span: Span | None = None
    notes: tuple[str, ...] = ()
    hint: str | None = None

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        return f"{place}{self.severity}: {self.message} [{self.code}]"


class CollcError(Exception):
    """The input cannot be compiled; ``diagnostics`` says why, all mistakes at once.

    ``exit_status`` is what the command ends with: 1 for errors in the input, 2 for wrong usage, 3 where
    no schedule exists within the limits.
    """

    def __init__(self, diagnostics: Diagnostic | Sequence[Diagnostic], exit_status: int = 1):
        if isinstance(diagnostics, Diagnostic):
            diagnostics = [diagnostics]
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        self.exit_status = exit_status
        super().__init__("\n".join(str(d) for d in self.diagnostics))

    def __reduce__(self) -> tuple[type, tuple[tuple[Diagnostic, ...], int]]:
        return type(self), (self.diagnostics, self.exit_status)


def error(
    code: str,
    message: str,
    *,
    span: Span | None = None,
    notes: Iterable[str] = (),
    hint: str | None = None,
    exit_status: int = 1,
) -> CollcError:
    """Return the exception for one mistake, ready to raise."""
    return CollcError(Diagnostic(code, message, Severity.ERROR, span, tuple(notes), hint), exit_status)


def warning(code: str, message: str, *, span: Span | None = None, notes: Iterable[str] = ()) -> Diagnostic:
    """Return a diagnostic that does not stop the compiler."""
    return Diagnostic(code, message, Severity.WARNING, span, tuple(notes))


_LONG_NAME = 200  # comparing longer ones takes long, and nobody meant another


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return a hint with the known name nearest to ``name``, or nothing where none is near.

    >>> nearest("hypercub", ["torus", "hypercube"])
    'did you mean `hypercube`?'
    """
    if len(name) > _LONG_NAME:
        return None
    match = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean `{match[0]}`?" if match else None
