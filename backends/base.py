"""What a target is: one frozen class whose fields are its options, like a pass.

``emit`` turns a Program into files and never changes it; emitting twice gives the same bytes. Limits of the runtime
are a :class:`Limits`; the driver hands them to the passes as defaults for options of the same name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, ClassVar

import attrs

from collc.ir.verify import Report

__all__ = ["Artifact", "Limits", "Target", "Window", "first_difference"]

_SHOWN = 100


@attrs.frozen
class Artifact:
    """One file to be written: a suggested file name, its text, and the target that made it.

    ``label`` tells files of one collective for different sizes apart; ``part`` is what a target that shares its files
    among collectives (``Target.shared``) makes them of, with the main file. ``model`` is what the text was written
    from, which :meth:`Target.check` compares with what it reads; it stays in its process.
    """

    filename: str
    text: str = attrs.field(repr=False)
    target: str
    label: str = ""
    part: Any = attrs.field(default=None, repr=False, eq=False)
    model: Any = attrs.field(default=None, repr=False, eq=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Artifact, (self.filename, self.text, self.target, self.label, self.part)


def first_difference(text: str, wanted: str) -> str:
    """Return where a text differs from the one that was to be written, and what stands there.

    >>> first_difference("a b", "a c")
    'line 1 is `a b`, not `a c`'
    """
    lines = zip_longest(text.splitlines(), wanted.splitlines(), fillvalue="")
    for number, (found, due) in enumerate(lines, 1):
        if found != due:
            return f"line {number} is `{found[:_SHOWN]}`, not `{due[:_SHOWN]}`"
    return "it differs in its line breaks"


@attrs.frozen
class Limits:
    """What a runtime can take; nothing (None) means no limit."""

    max_threadblocks: int | None = None
    max_steps: int | None = None
    max_channels: int | None = None
    max_count: int | None = None
    max_offset: int | None = None
    fifo_depth: int | None = None
    fused: bool = True


@attrs.frozen
class Window:
    """The calls that one of several algorithms of a collective is for: ``low`` to ``high`` bytes of the whole vector,
    both included; without ``high`` there is no largest. ``label`` names algorithm and sizes.
    """

    algorithm: str
    low: int
    high: int | None
    label: str


@attrs.frozen
class Target(ABC):
    """Base of all targets. Subclasses are ``@attrs.frozen`` with typed fields, as passes are.

    ``level`` is what ``emit`` takes: ``Program`` for code, ``Schedule`` for what describes schedules.
    ``suffix`` is appended to the input's stem for the default output name.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str]
    level: ClassVar[str] = "program"
    #: whether one set of files holds several algorithms and chooses between them by the size of a call
    selects: ClassVar[bool] = False

    @property
    def limits(self) -> Limits:
        return Limits()

    @abstractmethod
    def emit(self, ir: Any) -> Sequence[Artifact]:
        """Return the files, the main one first; raise CollcError where the target cannot carry the program."""

    def within(self, window: Window) -> Target | None:
        """Return the target for calls of these sizes only, as far as it knows sizes; nothing where it is for none."""
        return self

    def require_stem(self, stem: str) -> None:
        """Raise CollcError where files that are called so, without their suffixes, would be taken for others."""
        return

    def emit_selected(self, parts: Sequence[tuple[Window, Any]]) -> Sequence[Artifact]:
        """Return the files of several algorithms, windows ascending; for targets that ``select``."""
        raise NotImplementedError

    @property
    def shared(self) -> str | None:
        """The stem of the files that all collectives share; nothing where each collective has its own."""
        return None

    def join(self, made: Sequence[Artifact]) -> Sequence[Artifact]:
        """Return the files of several collectives, given the main file of each; for targets that share."""
        raise NotImplementedError

    @abstractmethod
    def check(self, ir: Any, artifacts: Sequence[Artifact]) -> Report:
        """Read back the files that ``emit`` made of an IR, compare what they say with it, and execute what was read.

        A file that says anything else than what was to be emitted fails, even where that would be right by itself;
        so does a text that the reader does not understand. Never raises for what a file holds.
        """

    def check_selected(self, parts: Sequence[tuple[Window, Any]], artifacts: Sequence[Artifact]) -> Report:
        """Read back the files that ``emit_selected`` made, as :meth:`check` does."""
        raise NotImplementedError

    def check_joined(self, made: Sequence[Artifact], artifacts: Sequence[Artifact]) -> Report:
        """Read back the files that ``join`` made of the main file of each collective, as :meth:`check` does."""
        raise NotImplementedError
