"""Diagnostics: the place of a mistake, what was found, what was needed, and a hint.

Every mistake in a user's input becomes one or more :class:`Diagnostic`, which a :class:`CollcError` carries.
:mod:`collc.ir.codes` lists the codes, with the explanations that ``collc explain`` prints.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import cached_property

import attrs

from .frozen import frozen
from .shown import shown

__all__ = [
    "CollcError", "Diagnostic", "Excess", "Kind", "Related", "Severity", "Source", "Span", "Subject", "error",
    "nearest", "warning",
]  # fmt: skip


class Severity(StrEnum):
    """Whether a diagnostic stops the command."""

    ERROR = "error"
    WARNING = "warning"


class Kind(StrEnum):
    """Whether another attempt may succeed. Code that tries alternatives depends on this and on no other field.

    ``mistake``: an input or an output place is wrong. ``limit``: a number exceeds what a target or a pass takes; a
    smaller one may fit. ``misfit``: the target does not take the program's arrangement, and may take another
    arrangement or schedule. ``size``: there are no calls of some of the requested sizes. ``unused``: no call would use
    the output. ``infeasible``: there is no such schedule. ``memory`` and ``internal``: the machine or the compiler
    failed, which implies nothing for the attempt. ``cancelled``: the caller ended the work.
    """

    MISTAKE = "mistake"
    LIMIT = "limit"
    MISFIT = "misfit"
    SIZE = "size"
    UNUSED = "unused"
    INFEASIBLE = "infeasible"
    MEMORY = "memory"
    INTERNAL = "internal"
    CANCELLED = "cancelled"


@frozen
class Excess:
    """A quantity (``steps``, ``threadblocks``, ``channels``, ..), the number found, and the number allowed."""

    what: str
    found: int
    allowed: int


class Subject(StrEnum):
    """The part of a request that a mistake is about. The driver knows its place; passes do not."""

    COLLECTIVE = "collective"
    TOPOLOGY = "topology"
    SCHEDULER = "scheduler"
    TARGET = "target"


@frozen
class Source:
    """One input text: its name as the user gave it, and its content.

    Messages quote no content of a ``hidden`` source, only places in it.
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

    def line_at(self, offset: int) -> int:
        """Return the number of the line (from 1) with the character at an offset."""
        return bisect_right(self._starts, offset)

    def line(self, number: int) -> str:
        """Return line ``number`` (from 1) without its line end; an empty text if there is no such line."""
        if not 0 < number <= len(self._starts):
            return ""
        start = self.start_of(number)
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else None].rstrip("\r")


@frozen
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

    def first(self, length: int) -> Span:
        """Return the span of the first ``length`` characters, on the first line."""
        return attrs.evolve(self, end_line=self.line, end_column=self.column + length)


@frozen
class Related:
    """A second place that explains a mistake, and what stands there: ``the first declaration``."""

    message: str
    span: Span


_LONGEST = 2000  # characters of a message; longer messages have shortened quotes
_QUOTED = re.compile(r"`([^`\n]{200,})`|\"([^\"\n]{200,})\"")


def _bounded(text: str) -> str:
    return text if len(text) <= _LONGEST else _QUOTED.sub(lambda quote: f"{quote[0][:80]}...{quote[0][-1]}", text)


@frozen
class Diagnostic:
    """One mistake. ``message`` starts lower-case and ends without a period; long quotes in it and in the
    hint are shortened.

    ``span`` is where the mistake is, ``related`` are the other places that explain it. Passes do not know places. They
    name the wrong ``option``, or the parts of the request that the mistake is ``about``. The driver adds the places.
    The first place is that of the option or of the first part. The others are ``related``.

    >>> Diagnostic("C0301", "there is no route from rank 0 to rank 1", hint="add a link")
    Diagnostic(error: there is no route from rank 0 to rank 1 [C0301])
    """

    code: str
    message: str = attrs.field(converter=_bounded)
    severity: Severity = Severity.ERROR
    span: Span | None = None
    notes: tuple[str, ...] = ()
    hint: str | None = attrs.field(default=None, converter=attrs.converters.optional(_bounded))
    kind: Kind = Kind.MISTAKE
    excess: Excess | None = None
    related: tuple[Related, ...] = ()
    option: str | None = None
    about: tuple[Subject, ...] = ()

    def __repr__(self) -> str:
        return shown(self, str(self))

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        return f"{place}{self.severity}: {self.message} [{self.code}]"


class CollcError(Exception):
    """The input cannot be compiled; ``diagnostics`` are all mistakes at once.

    ``exit_status`` is the command's exit status: 1 for errors in the input, 2 for wrong usage, 3 if no schedule exists
    within the limits.

    >>> import collc
    >>> try:
    ...     collc.topology("toruss(3)")
    ... except collc.CollcError as mistake:
    ...     [found.code for found in mistake.diagnostics], mistake.exit_status
    (['C0122'], 1)
    """

    def __init__(self, diagnostics: Diagnostic | Sequence[Diagnostic], exit_status: int = 1):
        if isinstance(diagnostics, Diagnostic):
            diagnostics = [diagnostics]
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        self.exit_status = exit_status
        super().__init__("\n".join(str(d) for d in self.diagnostics))

    def __repr__(self) -> str:
        first = str(self.diagnostics[0]) if self.diagnostics else ""
        number = f"{len(self.diagnostics)} diagnostics: " if len(self.diagnostics) > 1 else ""
        return shown(self, f"{number}{first}")

    def is_only(self, *kinds: Kind) -> bool:
        """Return whether every diagnostic is of one of these kinds."""
        return all(d.kind in kinds for d in self.diagnostics)

    def is_partly(self, *kinds: Kind) -> bool:
        """Return whether some diagnostic is of one of these kinds."""
        return any(d.kind in kinds for d in self.diagnostics)

    def __reduce__(self) -> tuple[Callable[..., CollcError], tuple[object, ...]]:
        return type(self), (self.diagnostics, self.exit_status)


def error(
    code: str,
    message: str,
    *,
    span: Span | None = None,
    notes: Iterable[str] = (),
    hint: str | None = None,
    exit_status: int = 1,
    kind: Kind | None = None,
    excess: Excess | None = None,
    related: Iterable[Related] = (),
    option: str | None = None,
    about: Iterable[Subject] = (),
) -> CollcError:
    """Return the exception for one mistake.

    The default kind is ``limit`` with an excess, otherwise ``infeasible`` with exit status 3, otherwise ``mistake``.
    """
    if kind is None:
        kind = Kind.LIMIT if excess is not None else Kind.INFEASIBLE if exit_status == 3 else Kind.MISTAKE
    found = Diagnostic(
        code, message, Severity.ERROR, span, tuple(notes), hint, kind, excess, tuple(related), option, tuple(about)
    )
    return CollcError(found, exit_status)


def warning(
    code: str, message: str, *, span: Span | None = None, notes: Iterable[str] = (), hint: str | None = None
) -> Diagnostic:
    """Return a diagnostic that does not stop the compiler."""
    return Diagnostic(code, message, Severity.WARNING, span, tuple(notes), hint)


_LONG_NAME = 200  # comparing longer names takes long, and they are no typing errors


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return a hint with the known name nearest to ``name``; None if no name is near.

    >>> nearest("hypercub", ["torus", "hypercube"])
    'did you mean `hypercube`?'
    """
    if len(name) > _LONG_NAME:
        return None
    from difflib import get_close_matches  # imported where a name is wrong

    match = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean `{match[0]}`?" if match else None
