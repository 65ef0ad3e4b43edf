"""The verifier: executes schedules and programs symbolically, and reports the result of each check.

It trusts no schedule or program because of its origin. A value is the set of ranks whose contributions it combines. The
checks are those of design section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..later import imported_later
from .report import Check, Report, joined

if TYPE_CHECKING:
    from .forest import verify_forest
    from .once import adds_once
    from .program import verify_program
    from .schedule import verify_schedule

__all__ = ["Check", "Report", "adds_once", "joined", "verify", "verify_forest", "verify_program", "verify_schedule"]

# Most users of this package need only its reports.
__getattr__ = imported_later(__name__, {
    "adds_once": "once", "verify_forest": "forest", "verify_program": "program", "verify_schedule": "schedule",
})  # fmt: skip


def verify(level: object) -> Report:
    """Verify a schedule or forest, as rows or as a template, or a program, one-sided or not."""
    from ..program import Program
    from ..schedule import Forest, Schedule
    from ..symmetric import SymmetricSchedule
    from ..symmetric_forest import SymmetricForest
    from ..symmetric_program import SymmetricProgram
    from .forest import verify_forest
    from .program import verify_program
    from .schedule import verify_schedule

    if isinstance(level, Program):
        return verify_program(level)
    if isinstance(level, SymmetricProgram):
        from .symmetric_program import verify_symmetric_program

        return verify_symmetric_program(level)
    if isinstance(level, (Forest, SymmetricForest)):
        return verify_forest(level)
    if isinstance(level, (Schedule, SymmetricSchedule)):
        return verify_schedule(level)
    if type(level).__name__ == "OneSided":
        from ..one_sided.program import OneSided
        from ..one_sided.verify import verify_one_sided

        assert isinstance(level, OneSided)
        if "report" not in level.found:
            level.found["report"] = verify_one_sided(level)
        report: Report = level.found["report"]
        return report
    raise TypeError(f"a {type(level).__name__} cannot be verified")
