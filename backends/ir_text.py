"""The textual IR as a target: the compiler's own form, for people and for later runs of collc."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import attrs

from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.schedule import Forest
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.text import parse_ir, print_ir
from collc.ir.verify import Check, Report, verify

from .base import Artifact, Target, first_difference

if TYPE_CHECKING:
    from collc.ir.levels import Executable
    from collc.ir.roots import Roots

__all__ = ["IrText"]


@attrs.frozen
class IrText(Target):
    """Emits ``print_ir`` of the program, or of the schedule before lowering."""

    name: ClassVar[str] = "ir"
    summary: ClassVar[str] = "the textual IR of the final level"
    suffix: ClassVar[str] = ".ir"
    takes_members: ClassVar[bool] = True

    level: Literal["program", "schedule"] = attrs.field(  # type: ignore[misc]  # an option here
        default="program",
        validator=attrs.validators.in_(("program", "schedule")),
        metadata={"help": "program: what each rank executes; schedule: the transfers of every step"},
    )

    @property
    def takes_relays(self) -> bool:
        return True

    @property
    def shares_links(self) -> bool:
        return self.level == "schedule"

    def for_roots(self, roots: Roots, planned: int) -> IrText:
        """Return the target itself: of several roots the text holds the plan of one."""
        return self

    def emit(self, ir: Executable) -> Sequence[Artifact]:
        """Return one file, named after the program (a schedule has no name: after its collective)."""
        return [Artifact(_filename(ir), print_ir(ir), self.name)]

    def check(self, ir: Executable, artifacts: Sequence[Artifact]) -> Report:
        """Parse the file, compare it with the IR byte by byte and column by column, and execute it.

        The text has all data except the operators that built a topology (``Topology.origin``).
        """
        trees = isinstance(ir, (Forest, SymmetricForest))
        kind = "program" if isinstance(ir, Program) else "forest" if trees else "schedule"
        return Report(kind, ir.collective.kind, ir.collective.num_ranks, tuple(self._checks(ir, artifacts)))

    def _checks(self, ir: Executable, artifacts: Sequence[Artifact]) -> Iterator[Check]:
        ir = ir.unfold() if isinstance(ir, SymmetricForest) else ir
        name = _filename(ir)
        if [a.filename for a in artifacts] != [name]:
            yield Check("files", False, f"found {', '.join(a.filename for a in artifacts)}, needed {name}")
            return
        try:
            found = parse_ir(artifacts[0].text, artifacts[0].filename)
        except CollcError as problem:
            yield Check("reading", False, problem.diagnostics[0].message)
            return
        detail = "all columns and names are equal" if found == ir else "the parsed IR differs from the emitted one"
        yield Check("same IR", found == ir, detail)
        if found == ir:
            text = print_ir(found)
            wrong = "" if text == artifacts[0].text else first_difference(artifacts[0].text, text)
            yield Check("as written", not wrong, wrong or "byte for byte the emitted text")
            yield from verify(found).checks


def _filename(ir: Executable) -> str:
    """Return the name of the file: the program's, or that of the schedule's collective."""
    name = ir.name if isinstance(ir, Program) else ir.collective.kind
    return (re.sub(r"[^A-Za-z0-9_-]", "_", name) or "collective") + IrText.suffix
