"""The textual IR as a target: what the compiler itself works on, for people and for the next run of collc."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import attrs

from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.text import parse_ir, print_ir
from collc.ir.verify import Check, Report, verify

from .base import Artifact, Target, first_difference

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
        return [Artifact(_filename(ir), print_ir(ir), self.name)]

    def check(self, ir: Program | Schedule | SymmetricSchedule | Forest, artifacts: Sequence[Artifact]) -> Report:
        """Parse the file, require the very IR that was printed, byte by byte and column by column, and execute it.

        The text carries everything but how a topology was built (``Topology.origin``).
        """
        kind = "program" if isinstance(ir, Program) else "forest" if isinstance(ir, Forest) else "schedule"
        return Report(kind, ir.collective.kind, ir.collective.num_ranks, tuple(self._checks(ir, artifacts)))

    def _checks(self, ir: Any, artifacts: Sequence[Artifact]) -> Iterator[Check]:
        name = _filename(ir)
        if [a.filename for a in artifacts] != [name]:
            yield Check("files", False, f"these are {', '.join(a.filename for a in artifacts)}, not {name}")
            return
        try:
            found = parse_ir(artifacts[0].text, artifacts[0].filename)
        except CollcError as problem:
            yield Check("reading", False, problem.diagnostics[0].message)
            return
        detail = "all columns and names are equal" if found == ir else "what was parsed is not what was to be printed"
        yield Check("same IR", found == ir, detail)
        if found == ir:
            text = print_ir(found)
            wrong = "" if text == artifacts[0].text else first_difference(artifacts[0].text, text)
            yield Check("as written", not wrong, wrong or "byte for byte what was to be written")
            yield from verify(found).checks


def _filename(ir: Program | Schedule | SymmetricSchedule | Forest) -> str:
    """Return the name of the file: the program's (a schedule has no name: its collective's)."""
    name = ir.name if isinstance(ir, Program) else ir.collective.kind
    return (re.sub(r"[^A-Za-z0-9_-]", "_", name) or "collective") + IrText.suffix
