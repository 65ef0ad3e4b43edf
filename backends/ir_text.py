"""The textual IR as a target: what the compiler itself works on, for people and for the next run of collc."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal

import attrs

from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.text import parse_ir, print_ir
from collc.ir.verify import Report, verify

from .base import Artifact, Target

__all__ = ["IrText"]


@attrs.frozen
class IrText(Target):
    """Emits ``print_ir`` of the program, or of the schedule before it is lowered."""

    name: ClassVar[str] = "ir"
    summary: ClassVar[str] = "the textual IR of the final level"
    suffix: ClassVar[str] = ".ir"

    level: Literal["program", "schedule"] = attrs.field(  # type: ignore[misc]  # an option here
        default="program",
        validator=attrs.validators.in_(("program", "schedule")),
        metadata={"help": "program: what each rank executes; schedule: who sends what when"},
    )

    def emit(self, ir: Program | Schedule | SymmetricSchedule | Forest) -> Sequence[Artifact]:
        """Return one file, named after the program (a schedule has no name: after its collective)."""
        name = ir.name if isinstance(ir, Program) else ir.collective.kind
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", name) or "collective"
        return [Artifact(stem + self.suffix, print_ir(ir), self.name)]

    def check(self, artifacts: Sequence[Artifact]) -> Report:
        """Parse the file and execute what it holds."""
        return verify(parse_ir(artifacts[0].text, artifacts[0].filename))
