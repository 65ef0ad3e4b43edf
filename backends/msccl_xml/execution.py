"""Executes a file's program with unbounded FIFOs: checks its results and the order of its accesses.

Both depend only on program order, waits and messages. The size of messages and the depth of FIFOs only decide whether a
run hangs, which :mod:`.fifos` finds.
"""

from __future__ import annotations

from collections.abc import Sequence

from collc.ir.program import Program
from collc.ir.verify import Check, verify_program

__all__ = ["data_checks", "mode_name"]

_UNLIMITED = 1 << 40

#: checks of `verify_program` that do not depend on the use -> their names here
_INDEPENDENT = {"structure": "program", "bounds": "buffers", "matched": "messages", "deadlock": "deadlock"}

_OUT = "out-of-place "


def mode_name(inplace: bool) -> str:
    """Return the name of a use in reports.

    >>> mode_name(True), mode_name(False)
    ('in place', 'out of place')
    """
    return "in place" if inplace else "out of place"


def data_checks(program: Program, modes: Sequence[bool]) -> list[Check]:
    """Return the checks of a program with unbounded FIFOs. The use is in the name of a check that depends on it."""
    checks: dict[str, Check] = {}
    # Usually all uses pass, and one execution shows it. Otherwise each use is executed for its own failures.
    both = verify_program(program, fifo_depth=_UNLIMITED) if len(set(modes)) > 1 else None
    for inplace in modes:
        report = (
            both if both is not None and both.ok else verify_program(program, inplace=inplace, fifo_depth=_UNLIMITED)
        )
        for check in report.checks:
            if inplace and check.name.startswith(_OUT):
                continue
            mode = mode_name(inplace)
            name = _INDEPENDENT.get(check.name) or f"{mode}: {check.name.removeprefix(_OUT)}"
            # The name of the check has the mode, so the detail need not.
            executed = check.detail in (mode, "out of place and in place")
            checks.setdefault(
                name, Check(name, check.ok, "executed" if executed else check.detail.replace(f"{mode}: ", ""))
            )
    if checks.get("deadlock", Check("", False)).ok:
        checks["deadlock"] = Check("deadlock", True, "no cycle of waits")
    return list(checks.values())
