"""What a target is: one frozen class whose fields are its options, like a pass.

``emit`` turns a Program into files and never changes it; emitting twice gives the same bytes. Limits of the runtime
are a :class:`Limits`; the driver hands them to the passes as defaults for options of the same name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from collc.ir.verify import Report

__all__ = ["Artifact", "Limits", "Target", "Window"]


@attrs.frozen
class Artifact:
    """One file to be written: a suggested file name, its text, and the target that made it.

    ``label`` tells files of one collective for different sizes apart; ``part`` is what a target that shares its files
    among collectives (``Target.shared``) makes them of, with the main file.
    """

    filename: str
    text: str = attrs.field(repr=False)
    target: str
    label: str = ""
    part: Any = attrs.field(default=None, repr=False, eq=False)


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

    def check(self, artifacts: Sequence[Artifact]) -> Report | None:
        """Read the files back and execute them; nothing where the target has no reader."""
        return None
