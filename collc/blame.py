"""Which pass went wrong first: passes run again, one after the other, and everything each leaves is judged.

By default only the end of a level is executed, so a failure shows later than it came about: at the end of the level, in
a pass that cannot handle what it was given, or in the file that a target reads back. IRs are not kept for this. A
failure is rare, and passes do the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from collc.backends.base import Target
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.topology import Topology
from collc.passes.base import Pass

from .judging import failures, wrong

__all__ = ["Wrong", "first_misread", "first_wrong", "misread"]

#: ``apply(pass, ir)``: what the driver does to run a pass
Apply = Callable[[Pass, Any], Any]


@attrs.frozen(eq=False)
class Wrong:
    """Pass number ``count`` of a plan was given ``before``, which was right, and left what ``what`` says."""

    count: int
    before: Any
    what: str


def first_wrong(
    passes: Sequence[Pass], begin: int, end: int, ir: Any, apply: Apply, network: Topology | None
) -> Wrong | None:
    """Return the first of the passes ``begin`` to ``end`` (exclusive) that leaves something wrong of a right IR.

    Nothing where all leave something right, or one refuses what it is given.
    """
    for count in range(begin, end):
        try:
            after = apply(passes[count], ir)
            found = wrong(passes[count], ir, after, network)
        except (CollcError, MemoryError):
            return None
        except Exception as problem:
            return Wrong(count, ir, f"{type(problem).__name__}: {problem}")
        if found:
            return Wrong(count, ir, found)
        ir = after
    return None


def misread(target: Target, program: Any, verified: bool = True) -> str | None:
    """Return what is wrong with a target's files of a program: "" if nothing, nothing where it refuses the program."""
    try:
        files = tuple(target.emit(program))
        report = target.check(program, files) if verified else None
    except (CollcError, MemoryError):
        return None
    except Exception as problem:
        return f"target `{target.name}` fails on what it left: {type(problem).__name__}: {problem}"
    if report is None or report.ok:
        return ""
    return f"target `{target.name}` writes a wrong file of what it left: {failures(report)}"


def first_misread(
    passes: Sequence[Pass], begin: int, ir: Any, apply: Apply, reads: Callable[[Any], str | None]
) -> Wrong | None:
    """Return the first pass after which ``reads`` (as :func:`misread`) finds a program wrong that was right before it.

    Nothing where no program was right before: then the target is to blame, as far as anybody can tell.
    """
    right = isinstance(ir, Program) and reads(ir) == ""
    for count in range(begin, len(passes)):
        try:
            after = apply(passes[count], ir)
        except Exception:
            return None
        found = reads(after) if isinstance(after, Program) else None
        if right and found:
            return Wrong(count, ir, found)
        right, ir = found == "", after
    return None
