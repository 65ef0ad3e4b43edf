"""Checking the result of a pass: its level, its form, the request, its messages, and by execution its data.

The same checks apply when a pass runs and when the driver looks for the first pass that went wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collc.ir.layout import total
from collc.ir.levels import Scheduled
from collc.ir.program import Program
from collc.ir.regular import moved_by_ranks
from collc.ir.schedule import Forest, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.ir.validate import structure
from collc.ir.verify import Report, verify
from collc.ir.verify.connections import carried, excess, strayed
from collc.ir.verify.program import MAX_CHUNKS
from collc.ir.verify.symmetric_program import template_strayed
from collc.passes.base import FACTS, Pass

from .requested import other_collective, other_network

if TYPE_CHECKING:
    from collc.ir.levels import Executable, Level

__all__ = ["failures", "flaw", "is_right", "wrong"]


_TEMPLATES: dict[type, tuple[type, ...]] = {
    Schedule: (Schedule, SymmetricSchedule), Forest: (Forest, SymmetricForest),
}  # fmt: skip


def flaw(this: Pass, before: Level, after: Executable, network: Topology | None, formed: bool = True) -> str:
    """Return what is wrong with the result of a pass, without executing it; "" if nothing is.

    ``network`` is the requested one, None for a program that was read, which has none. Columns are checked only if
    ``formed``.
    """
    gives: type | tuple[type, ...] = _TEMPLATES.get(this.gives, this.gives)
    if this.gives is Program and isinstance(before, Schedule | SymmetricSchedule | SymmetricProgram):
        gives = (Program, SymmetricProgram)
    gives = Forest if this.takes_forests and isinstance(before, Forest) else gives
    if not isinstance(after, gives):
        return f"it returned a {type(after).__name__}"
    malformed = structure(after) if formed else []
    if malformed:
        return f"its result is malformed: {malformed[0]}"
    if other := _other(this, before, after, network):
        return f"its result is not the requested one: {other}"
    return _lost(before, after, this) or (_strayed(before, after) if formed else "")


def wrong(this: Pass, before: Level, after: Executable, network: Topology | None) -> str:
    """Return what is wrong with the result of a pass, executing it if needed; "" if it is right.

    If a check itself raises anything but MemoryError, its input is wrong.
    """
    try:
        if found := flaw(this, before, after, network):
            return found
        report = None if _is_large(after) else verify(after)
    except MemoryError:
        raise
    except Exception as problem:
        return f"its result cannot be checked: {type(problem).__name__}: {problem}"
    return "" if report is None or report.ok else f"its result is wrong: {failures(report)}"


def is_right(ir: Executable) -> bool:
    """Return whether an IR is well formed and, unless it is too large to be executed, right."""
    try:
        return not structure(ir) and (_is_large(ir) or verify(ir).ok)
    except MemoryError:
        raise
    except Exception:
        return False


def _is_large(ir: Executable) -> bool:
    """Return whether a program has more chunks than the verifier executes."""
    return isinstance(ir, Program) and total(ir) > MAX_CHUNKS


def failures(report: Report) -> str:
    """Return the failed checks and their reasons in one line."""
    return "; ".join(f"{check.name}: {check.detail}" for check in report.failed)


def _other(this: Pass, before: Level, after: Executable, network: Topology | None) -> str:
    """Return how an IR differs from the request."""
    if network is not None and isinstance(after, Scheduled) and (other := other_network(network, after.topology)):
        return other
    return other_collective(this.turned(before.collective, after.collective), after.collective)


def _lost(before: Level, after: Executable, this: Pass) -> str:
    """Return the first fact that held before, or that the pass establishes, and that does not hold after it."""
    if not isinstance(after, Scheduled):
        return ""
    lost = [fact for fact, holds in FACTS.items() if (fact in this.establishes or holds(before)) and not holds(after)]
    return f"its result is not {lost[0]}" if lost else ""


def _strayed(before: Level, after: Executable) -> str:
    """Return what a program sends that its input does not send.

    If the program is one rank's moved by a group, the group must move the transfers of the schedule too.
    """
    if isinstance(after, SymmetricProgram) and after.group.order > 1 and isinstance(before, Schedule):
        before = moved_by_ranks(before) or before
    if isinstance(after, SymmetricProgram) and isinstance(before, SymmetricSchedule):
        more = template_strayed(after, before)
        return f"its result sends too much: {more}" if more else ""
    if isinstance(after, SymmetricProgram) and isinstance(before, SymmetricProgram):
        before = before if after.width == before.width else before.widened(after.width)
        before, after = before.seed, after.seed  # what the first ranks send determines what all send
    elif isinstance(after, SymmetricProgram):
        after = after.unfold()
    if not isinstance(after, Program):
        return ""
    if isinstance(before, SymmetricSchedule):
        before = before.unfold()
    assert isinstance(before, Program | Schedule), "a program is made of a program or a schedule"
    more = excess(carried(after), carried(before)) if isinstance(before, Program) else strayed(after, before)
    return f"its result sends too much: {more}" if more else ""
