"""The programs of a specification, and the choice among them for a call."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import attrs

from collc.ir.program import Program
from collc.ir.text import parse_ir, print_ir
from collc.ir.verify import adds_once

from .moves import ProgramLayout
from .settings import Settings

__all__ = ["Algorithm", "Entry", "compiled", "load", "printed"]


@attrs.frozen(eq=False)
class Algorithm:
    """One program, for calls of up to ``most`` bytes of the whole vector (None: no limit)."""

    layout: ProgramLayout
    most: int | None


@attrs.frozen(eq=False)
class Entry:
    """One collective of the specification; ``once``: it adds every contribution once, as sums need."""

    name: str
    kind: str
    ranks: int
    root: int | None
    once: bool
    algorithms: tuple[Algorithm, ...]

    def choose(self, size: int) -> int:
        """Return the index of the algorithm for a whole vector of ``size`` bytes."""
        last = len(self.algorithms) - 1
        return next((k for k, a in enumerate(self.algorithms) if a.most is None or size <= a.most), last)


#: (collective's name, most bytes, printed program)
Printed = tuple[str, int | None, str]


def compiled(settings: Settings) -> list[Printed]:
    """Compile a specification and return its programs, printed; raises CollcError.

    A collective that cannot be scheduled is left out, with a Python warning: gloo executes its calls.
    """
    from ..compiling import Request, possible, shielded

    request = Request("ir", dict(settings.defines), collective=settings.collectives)
    result, left = shielded("compile", lambda: possible(settings.spec, request, "gloo"))
    for reason in left:
        warnings.warn(f"collc: {reason.message} [{reason.code}]", RuntimeWarning, stacklevel=2)
    found: list[Printed] = []
    for name, one in result.collectives.items():
        for each in one.each:
            assert each.program is not None  # the target needs programs
            found.append((name, each.window.high if each.window else None, print_ir(each.program)))
    return found


def printed(rows: Sequence[Sequence[object]]) -> list[Printed]:
    """Return printed programs from JSON."""
    return [(str(name), None if most is None else int(str(most)), str(text)) for name, most, text in rows]


def load(rows: Sequence[Printed]) -> list[Entry]:
    """Return the collectives of printed programs, in order, ready for planning; raises C0704."""
    found: dict[str, list[tuple[int | None, Program]]] = {}
    for name, most, text in rows:
        program = parse_ir(text, f"{name}.ir")
        assert isinstance(program, Program)
        found.setdefault(name, []).append((most, program))
    return [_entry(name, programs) for name, programs in found.items()]


def _entry(name: str, programs: Sequence[tuple[int | None, Program]]) -> Entry:
    collective = programs[0][1].collective
    once = all(adds_once(program) for _, program in programs)
    algorithms = tuple(Algorithm(ProgramLayout.of(program), most) for most, program in programs)
    return Entry(name, collective.kind, collective.num_ranks, collective.root, once, algorithms)
