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

__all__ = ["Artifact", "Limits", "Target"]


@attrs.frozen
class Artifact:
    """One file to be written: a suggested file name, its text, and the target that made it."""

    filename: str
    text: str = attrs.field(repr=False)
    target: str


@attrs.frozen
class Limits:
    """What a runtime can take; nothing (None) means no limit."""

    max_threadblocks: int | None = None
    max_steps: int | None = None
    max_channels: int | None = None
    max_count: int | None = None
    fifo_depth: int | None = None
    fused: bool = True


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

    @property
    def limits(self) -> Limits:
        return Limits()

    @abstractmethod
    def emit(self, ir: Any) -> Sequence[Artifact]:
        """Return the files, the main one first; raise CollcError where the target cannot carry the program."""

    def check(self, artifacts: Sequence[Artifact]) -> Report | None:
        """Read the files back and execute them; nothing where the target has no reader."""
        return None
