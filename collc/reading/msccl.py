"""MSCCL-XML as a format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import attrs

from collc.backends.markup import root_of
from collc.ir.levels import Executable
from collc.ir.program import Program
from collc.ir.spec import Spec
from collc.ir.verify import Report

from .base import Reader, ReadOptions, Reports
from .loading import program_spec

if TYPE_CHECKING:
    from collc.backends.msccl_xml.published import Published

__all__ = ["MscclReader"]


class MscclReader(Reader):
    """Reads MSCCL-XML files of any origin; also XML that no format recognizes, to report what is wrong with it."""

    name: ClassVar[str] = "msccl-xml"
    names_collective: ClassVar[bool] = False

    def sniff(self, text: str) -> bool:
        return root_of(text) == "algo"

    def load(self, text: str, path: str, options: ReadOptions) -> tuple[Spec, Executable | None]:
        """Return the specification of the file, and its program made right in place and out of place."""
        program = _published(text, path, options).both_ways
        spec = program_spec(program, path)
        return spec, attrs.evolve(program, name=next(iter(spec.collectives)))

    def publish(self, text: str, path: str, options: ReadOptions) -> tuple[Spec, Program, Published]:
        published = _published(text, path, options)
        return program_spec(published.program, path), published.program, published

    def verify(self, text: str, path: str, options: ReadOptions) -> Reports:
        from collc.backends.msccl_xml import verify_text

        collective = next(iter(options.collective), None)
        report = verify_text(
            text, path, runtime=options.runtime, collective=collective, multiprocessors=options.multiprocessors
        )
        return Reports((("", report),))

    def together(self, texts: Sequence[tuple[str, str]], runtime: str | None) -> Report | None:
        from collc.backends.msccl_xml.bundle import Member, check_together
        from collc.backends.msccl_xml.reader import read

        members = [Member(path, read(text, path)) for text, path in texts]
        kinds = ", ".join(dict.fromkeys(member.algorithm.coll for member in members))
        ranks = max(member.algorithm.ngpus for member in members)
        return Report(self.name, kinds, ranks, tuple(check_together(members, runtime)))


def _published(text: str, path: str, options: ReadOptions) -> Published:
    from collc.backends.msccl_xml.published import publish

    return publish(text, path, collective=next(iter(options.collective), None), root=options.root)
