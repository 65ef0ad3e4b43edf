"""Executing a file's program with room in every FIFO: what it computes, what is ordered before what.

Both follow from program order, waits and messages alone. The size of messages and the depth of FIFOs decide only
whether a run gets stuck, which is :mod:`.fifos`' question.
"""

from __future__ import annotations

from collections.abc import Sequence

from collc.ir.program import Program
from collc.ir.verify import Check, verify_program

__all__ = ["data_checks", "mode_name"]

_ROOMY = 1 << 40

#: what `verify_program` checks of the program as such, once for all uses -> what it is called here
_SHARED = {"structure": "program", "bounds": "buffers", "matched": "messages", "deadlock": "deadlock"}

_OUT = "out-of-place "


def mode_name(inplace: bool) -> str:
    """Return what a use is called in reports.

    >>> mode_name(True), mode_name(False)
    ('in place', 'out of place')
    """
    return "in place" if inplace else "out of place"


def data_checks(program: Program, modes: Sequence[bool]) -> list[Check]:
    """Return the checks of a program whose FIFOs never fill, those that depend on the use named after it."""
    checks: dict[str, Check] = {}
    # What all uses share is tried once where they all pass, as they mostly do; else each is told what fails in it.
    both = verify_program(program, fifo_depth=_ROOMY) if len(set(modes)) > 1 else None
    for inplace in modes:
        report = both if both is not None and both.ok else verify_program(program, inplace=inplace, fifo_depth=_ROOMY)
        for check in report.checks:
            if inplace and check.name.startswith(_OUT):
                continue
            mode = mode_name(inplace)
            name = _SHARED.get(check.name) or f"{mode}: {check.name.removeprefix(_OUT)}"
            # The check's name says the mode, so each of the problems in the detail need not.
            executed = check.detail in (mode, "out of place and in place")
            checks.setdefault(
                name, Check(name, check.ok, "executed" if executed else check.detail.replace(f"{mode}: ", ""))
            )
    if checks.get("deadlock", Check("", False)).ok:
        checks["deadlock"] = Check("deadlock", True, "no cycle of waits")
    return list(checks.values())
