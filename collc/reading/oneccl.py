"""oneCCL-XML as a format: algorithms for CPU ranks."""

from __future__ import annotations

from typing import ClassVar

import attrs

from collc.backends.markup import root_of
from collc.ir.levels import Executable
from collc.ir.program import Program
from collc.ir.spec import Spec

from .base import Reader, ReadOptions, Reports
from .loading import program_spec

__all__ = ["OneCclReader"]


class OneCclReader(Reader):
    """Reads oneCCL-XML files."""

    name: ClassVar[str] = "oneccl-xml"
    names_collective: ClassVar[bool] = False

    def sniff(self, text: str) -> bool:
        return root_of(text) == "oneccl"

    def load(self, text: str, path: str, options: ReadOptions) -> tuple[Spec, Executable | None]:
        """Return the specification of the file, and its program made right in place and out of place."""
        program = _both_ways(text, path)
        spec = program_spec(program, path)
        return spec, attrs.evolve(program, name=next(iter(spec.collectives)))

    def verify(self, text: str, path: str, options: ReadOptions) -> Reports:
        from collc.backends.oneccl_xml import verify_text

        return Reports((("", verify_text(text, path)),))


def _both_ways(text: str, path: str) -> Program:
    from collc.backends.msccl_xml.both_ways import with_both_uses
    from collc.backends.oneccl_xml import load

    document, found = load(text, path)
    # Only the program's own columns: places of instructions in the file would not survive passes.
    program = Program(**{name: getattr(found, name) for name in (*Program.SCALARS, *Program.COLUMNS)})
    if document.inplace and document.outofplace:
        return program
    return with_both_uses(program, inplace=bool(document.inplace))
