"""Executing a file's program: what it computes with room in every FIFO, and whether the FIFOs there are suffice.

The two are independent. What is computed, and what is ordered before what, follows from program order, waits and
messages alone; the size of messages and the depth of FIFOs decide only whether a run gets stuck.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collc.ir.machine import execute
from collc.ir.program import Program
from collc.ir.verify import Check, verify_program

from .program import Loaded
from .windows import behaviours

__all__ = ["data_checks", "fifo_check", "mode_name", "needed_splits", "stuck"]

_ROOMY = 1 << 40

#: what `verify_program` checks of the program as such, once for all uses -> what it is called here
_SHARED = {"structure": "program", "bounds": "buffers", "matched": "messages", "deadlock": "deadlock"}


def mode_name(inplace: bool) -> str:
    """Return what a use is called in reports.

    >>> mode_name(True), mode_name(False)
    ('in place', 'out of place')
    """
    return "in place" if inplace else "out of place"


def data_checks(program: Program, modes: Sequence[bool]) -> list[Check]:
    """Return the checks of a program whose FIFOs never fill, those that depend on the use named after it."""
    checks: dict[str, Check] = {}
    for inplace in modes:
        for check in verify_program(program, inplace=inplace, fifo_depth=_ROOMY).checks:
            mode = mode_name(inplace)
            name = _SHARED.get(check.name) or f"{mode}: {check.name.removeprefix('out-of-place ')}"
            # The check's name says the mode, so each of the problems in the detail need not.
            detail = "executed" if check.detail == mode else check.detail.replace(f"{mode}: ", "")
            checks.setdefault(name, Check(name, check.ok, detail))
    if checks.get("deadlock", Check("", False)).ok:
        checks["deadlock"] = Check("deadlock", True, "no cycle of waits")
    return list(checks.values())


def stuck(loaded: Loaded, depth: int, split: int) -> str:
    """Return where the program gets stuck with FIFOs of ``depth`` and messages of ``split`` chunks, or ""."""
    deadlock = execute(loaded.program, depth, split * loaded.scale).deadlock
    return deadlock.describe(loaded.program) if deadlock else ""


def fifo_check(loaded: Loaded, depth: int, tried: Sequence[int]) -> Check:
    """Return whether the program completes with FIFOs of ``depth``, for messages of each of ``tried`` chunks."""
    for split in tried:
        if problem := stuck(loaded, depth, split):
            return Check("deadlock", False, f"FIFOs of depth {depth}, messages of {_chunks([split])}: {problem}")
    return Check("deadlock", True, f"completes with FIFOs of depth {depth}, messages of {_chunks(tried)}")


def _chunks(sizes: Sequence[int]) -> str:
    """Return ``at most 1 chunk``, ``at most 2 and 3 chunks``."""
    return f"at most {' and '.join(str(size) for size in sizes)} chunk{'' if list(sizes) == [1] else 's'}"


def needed_splits(counts: Iterable[int], low: int, high: int) -> list[int]:
    """Return the message sizes A of ``low`` to ``high`` that decide on deadlock for all of them.

    Where A = 1 occurs it alone does: were a run with a greater A stuck while the run with A = 1 completes, take the
    first chunk that the latter moves beyond what the former has done. It is the first chunk of the primitive at which
    its threadblock is stuck. All before it is done, in whole primitives of the greater A, which are the same at both
    ends: so its data are there whole, and of the primitives sent before it no more wait to be taken than such chunks,
    fewer than the FIFO holds. So it can go on.
    """
    return [1] if low == 1 else behaviours(counts, low, high)
