"""What is wrong with what a pass left: its kind, its form, the request, its messages; and what it means.

Every pass is judged by the same rules when it runs and when the driver looks for the first pass that went wrong.
"""

from __future__ import annotations

from typing import Any

from collc.ir.layout import total
from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import Topology
from collc.ir.validate import structure
from collc.ir.verify import Report, verify
from collc.ir.verify.connections import carried, excess, strayed
from collc.ir.verify.program import MAX_CHUNKS
from collc.passes.base import FACTS, Pass

from .requested import other_collective, other_network

__all__ = ["failures", "flaw", "is_right", "wrong"]


def flaw(this: Pass, before: Any, after: Any, network: Topology | None, formed: bool = True) -> str:
    """Return what shows that a pass went wrong without executing what it left; nothing where it is in order.

    ``network`` is the one asked for, nothing where a program was read, which has none. Columns are looked at only where
    ``formed``.
    """
    gives: Any = (Schedule, SymmetricSchedule) if this.gives is Schedule else this.gives
    gives = Forest if this.takes_forests and isinstance(before, Forest) else gives
    if not isinstance(after, gives):
        return f"it left a {type(after).__name__}"
    malformed = structure(after) if formed else []
    if malformed:
        return f"what it left is malformed: {malformed[0]}"
    if other := _other(this, before, after, network):
        return f"what it left is not what was asked for: {other}"
    return _lost(before, after, this) or (_strayed(before, after) if formed else "")


def wrong(this: Pass, before: Any, after: Any, network: Topology | None) -> str:
    """Return what is wrong with what a pass left, executing it where nothing else shows it; nothing where it is right.

    Whatever the checks themselves raise, but for a lack of memory, comes of what they were given.
    """
    try:
        if found := flaw(this, before, after, network):
            return found
        report = None if _is_large(after) else verify(after)
    except MemoryError:
        raise
    except Exception as problem:
        return f"what it left cannot be checked: {type(problem).__name__}: {problem}"
    return "" if report is None or report.ok else f"what it left is wrong: {failures(report)}"


def is_right(ir: Any) -> bool:
    """Return whether an IR is well formed and executes, as far as it can be executed."""
    try:
        return not structure(ir) and (_is_large(ir) or verify(ir).ok)
    except MemoryError:
        raise
    except Exception:
        return False


def _is_large(ir: Any) -> bool:
    """Return whether a program has more chunks than are executed, which says nothing against it."""
    return isinstance(ir, Program) and total(ir) > MAX_CHUNKS


def failures(report: Report) -> str:
    """Return the checks that failed, and why, in one line."""
    return "; ".join(f"{check.name}: {check.detail}" for check in report.failed)


def _other(this: Pass, before: Any, after: Any, network: Topology | None) -> str:
    """Return in what an IR differs from what was asked for."""
    if network is not None and not isinstance(after, Program) and (other := other_network(network, after.topology)):
        return other
    return other_collective(this.turned(before.collective, after.collective), after.collective)


def _lost(before: Any, after: Any, this: Pass) -> str:
    """Return the first fact that held, or that the pass is there for, and no longer holds."""
    if isinstance(after, Program):
        return ""
    lost = [fact for fact, holds in FACTS.items() if (fact in this.establishes or holds(before)) and not holds(after)]
    return f"what it left is not {lost[0]}" if lost else ""


def _strayed(before: Any, after: Any) -> str:
    """Return where a program sends what it was not given to send."""
    if not isinstance(after, Program):
        return ""
    if isinstance(before, SymmetricSchedule):
        before = before.unfold()
    more = excess(carried(after), carried(before)) if isinstance(before, Program) else strayed(after, before)
    return f"what it left sends what it should not: {more}" if more else ""
