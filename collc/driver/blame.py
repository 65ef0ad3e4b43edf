"""Finding the first pass that went wrong: the driver runs the passes again and checks the result of each.

By default the driver executes an IR only at the end of a level, so a failure shows after the pass that caused it: at
the end of the level, in a pass that cannot handle its input, or in the file that a target reads back. The driver keeps
no IRs for this: failures are rare, and passes are deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from collc.backends.base import Target
from collc.ir.diagnostic import CollcError
from collc.ir.frozen import frozen
from collc.ir.levels import Executable, Level
from collc.ir.program import Program
from collc.ir.topology import Topology
from collc.passes.base import Pass

from .judging import failures, wrong

__all__ = ["Wrong", "first_misread", "first_wrong", "misread"]

#: ``apply(passes, count, ir)``: what the driver does to run pass number ``count``
Apply = Callable[[Sequence[Pass], int, Level], Executable]


@frozen(eq=False)
class Wrong:
    """Pass number ``count`` of a plan was given the correct ``before``; ``what`` is the mistake in its result."""

    count: int
    before: Level
    what: str


def first_wrong(
    passes: Sequence[Pass], begin: int, end: int, ir: Level, apply: Apply, network: Topology | None
) -> Wrong | None:
    """Return the first of the passes ``begin`` to ``end`` (exclusive) that makes a wrong IR of a right one.

    None if all IRs are right, or a pass refuses its input.
    """
    for count in range(begin, end):
        try:
            after = apply(passes, count, ir)
            found = wrong(passes[count], ir, after, network)
        except (CollcError, MemoryError):
            return None
        except Exception as problem:
            return Wrong(count, ir, f"{type(problem).__name__}: {problem}")
        if found:
            return Wrong(count, ir, found)
        ir = after
    return None


def misread(target: Target, program: Level, verified: bool = True) -> str | None:
    """Return what is wrong with a target's files of a program, "" if they are right; None if it refuses the program."""
    try:
        files = tuple(target.emit(program))
        report = target.check(program, files) if verified else None
    except (CollcError, MemoryError):
        return None
    except Exception as problem:
        return f"target `{target.name}` fails on its result: {type(problem).__name__}: {problem}"
    if report is None or report.ok:
        return ""
    return f"target `{target.name}` writes a wrong file of its result: {failures(report)}"


def first_misread(
    passes: Sequence[Pass], begin: int, ir: Level, apply: Apply, reads: Callable[[Program], str | None]
) -> Wrong | None:
    """Return the first pass after which ``reads`` (as :func:`misread`) finds a program wrong that was right before it.

    None if no program was right before; then the target is to blame.
    """
    right = isinstance(ir, Program) and reads(ir) == ""
    for count in range(begin, len(passes)):
        try:
            after = apply(passes, count, ir)
        except Exception:
            return None
        found = reads(after) if isinstance(after, Program) else None
        if right and found:
            return Wrong(count, ir, found)
        right, ir = found == "", after
    return None
