"""Execution plans of MSCCL++ as a format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import attrs

from collc.ir.diagnostic import warning
from collc.ir.levels import Executable
from collc.ir.one_sided.program import OneSided
from collc.ir.spec import Spec
from collc.ir.verify import Report

from .base import Reader, ReadOptions, Reports
from .loading import program_spec

if TYPE_CHECKING:
    from collc.ir.program import Program

__all__ = ["MscclppReader", "two_sided_program"]


class MscclppReader(Reader):
    """Reads execution plans of MSCCL++ of any origin, of every version whose form is known."""

    name: ClassVar[str] = "mscclpp-json"
    names_collective: ClassVar[bool] = False

    def sniff(self, text: str) -> bool:
        from collc.backends.mscclpp_json.reader import is_plan

        return is_plan(text)

    def read(self, text: str, path: str) -> OneSided:
        """Return the one-sided program of a plan; raise C0696 if it is wrong."""
        from collc.backends.mscclpp_json.reader import read
        from collc.backends.mscclpp_json.verify import load

        return load(read(text, path))

    def load(self, text: str, path: str, options: ReadOptions) -> tuple[Spec, Executable | None]:
        """Return the specification of a plan, and its sends and receives, right in place and out of place."""
        program = two_sided_program(_plan(text, path, options))
        spec = program_spec(program, path)
        return spec, attrs.evolve(program, name=next(iter(spec.collectives)))

    def publish(self, text: str, path: str, options: ReadOptions) -> tuple[Spec, OneSided, None]:
        """Return the specification of a plan and its one-sided program, as its author arranged it."""
        plan = _plan(text, path, options)
        spec = program_spec(plan, path)
        return spec, attrs.evolve(plan, name=next(iter(spec.collectives))), None

    def verify(self, text: str, path: str, options: ReadOptions) -> Reports:
        from collc.backends.mscclpp_json.bundle import fixed_name
        from collc.backends.mscclpp_json.reader import read
        from collc.backends.mscclpp_json.verify import runtime_of, verify_plan

        plan = read(text, path)
        report = verify_plan(
            plan, runtime=runtime_of(options.runtime), collective=next(iter(options.collective), None),
            multiprocessors=options.multiprocessors,
        )  # fmt: skip
        if reason := fixed_name(path, plan):
            report = attrs.evolve(report, warnings=(*report.warnings, warning("C0695", reason)))
        return Reports((("", report),))

    def together(self, texts: Sequence[tuple[str, str]], runtime: str | None) -> Report | None:
        from collc.backends.mscclpp_json.bundle import Member, check_together
        from collc.backends.mscclpp_json.reader import read

        members = [Member(path, read(text, path)) for text, path in texts]
        kinds = ", ".join(dict.fromkeys(member.plan.collective for member in members))
        return Report(self.name, kinds, max(len(one.plan.gpus) for one in members), tuple(check_together(members)))


def _plan(text: str, path: str, options: ReadOptions) -> OneSided:
    from collc.backends.mscclpp_json.reader import read
    from collc.backends.mscclpp_json.verify import load

    return load(read(text, path), next(iter(options.collective), None))


def two_sided_program(plan: OneSided) -> Program:
    """Return the sends and receives of a verified plan, right in place and out of place; raises C0576."""
    from collc.backends.msccl_xml.both_ways import with_both_uses
    from collc.ir.verify import verify_program
    from collc.passes.one_sided.two_sided import two_sided

    program = two_sided(plan)
    if verify_program(program, inplace=not plan.inplace).ok:
        return program
    return with_both_uses(program, inplace=plan.inplace)
