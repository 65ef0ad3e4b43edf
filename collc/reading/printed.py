"""The textual IR as a format."""

from __future__ import annotations

from typing import ClassVar

import attrs

from collc.ir.levels import Executable
from collc.ir.program import Program
from collc.ir.spec import Spec
from collc.ir.text import parse_ir
from collc.ir.validate import structure
from collc.ir.verify import Check, Report, verify
from collc.ir.verify.residency import residency

from . import judged
from .base import Reader, ReadOptions, Reports
from .loading import read_ir

__all__ = ["IrReader"]


class IrReader(Reader):
    """Reads printed IR; a topology or collective can only be verified."""

    name: ClassVar[str] = "ir"

    def load(self, text: str, path: str, options: ReadOptions) -> tuple[Spec, Executable | None]:
        return read_ir(text, path)

    def verify(self, text: str, path: str, options: ReadOptions) -> Reports:
        return Reports((("", _report(text, path, options.multiprocessors)),))


def _report(text: str, path: str, multiprocessors: int | None) -> Report:
    level = parse_ir(text, path)
    if multiprocessors is not None:
        from collc.ir.one_sided.program import OneSided

        if not isinstance(level, (Program, OneSided)):
            raise judged("multiprocessors", path)
        report = verify(level)
        return attrs.evolve(report, checks=(*report.checks, residency(level, multiprocessors)))
    if hasattr(level, "collective"):
        return verify(level)
    wrong = structure(level)
    name = type(level).__name__.lower()
    detail = "; ".join(wrong) or "well formed"
    ranks = level.num_ranks
    return Report(name, getattr(level, "kind", "none"), ranks, (Check("structure", not wrong, detail),))
