"""Faults of an algorithm as values. They become errors when collc writes, and failed checks when it verifies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collc.ir.diagnostic import CollcError, Diagnostic, Excess, Kind, Severity, warning
from collc.ir.frozen import frozen
from collc.ir.verify import Check

if TYPE_CHECKING:
    from .model import Gpu, Step, Threadblock

__all__ = ["Finding", "as_check", "as_warnings", "place", "refuse"]

_SHOWN = 3


_OF_SIZES = ("C0630", "C0642")  # the sizes of calls, which an option of the target sets


@frozen
class Finding:
    """One violation: its check, its code, a message with the place, and a hint.

    If a finding is ``fatal``, the file has no program to execute. A ``mild`` finding is a difference between the file
    and its execution: a warning if everything else is correct, else a fault. ``kind`` and ``excess`` are the
    diagnostic's.
    """

    check: str
    code: str
    message: str
    hint: str | None = None
    fatal: bool = False
    mild: bool = False
    kind: Kind = Kind.MISTAKE
    excess: Excess | None = None


def place(gpu: Gpu, block: Threadblock | None = None, step: Step | int | None = None) -> str:
    """Return ``rank R, threadblock T, step S``, as far as given.

    A step has its number ``s``, and its line if it comes from a text.
    """
    words = [f"rank {gpu.id}"]
    if block is not None:
        words.append(f"threadblock {block.id}")
    if isinstance(step, int):
        words.append(f"step {step}")
    elif step is not None:
        words.append(f"step {step.s}" + (f" (line {step.line})" if step.line else ""))
    return ", ".join(words)


def as_check(name: str, findings: Sequence[Finding], tried: str) -> Check:
    """Return the check with this name: passed with the detail ``tried``, or failed with the first findings."""
    own = [f for f in findings if f.check == name and not f.mild]
    if not own:
        return Check(name, True, tried)
    more = f"; and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
    return Check(name, False, "; ".join(f.message for f in own[:_SHOWN]) + more)


def as_warnings(findings: Sequence[Finding]) -> tuple[Diagnostic, ...]:
    """Return the mild findings as warnings, the first few in full."""
    mild = [f for f in findings if f.mild]
    more = len(mild) - _SHOWN
    notes = (f"and {more} more like it",) if more > 0 else ()
    shown = mild[:_SHOWN]
    return tuple(warning(f.code, f.message, notes=notes if f is shown[-1] else ()) for f in shown)


def refuse(findings: Sequence[Finding]) -> None:
    """Raise the findings as errors, one for each code, unless there are none."""
    first: dict[str, Finding] = {}
    count: dict[str, int] = {}
    for finding in findings:
        first.setdefault(finding.code, finding)
        count[finding.code] = count.get(finding.code, 0) + 1
    if not first:
        return
    raise CollcError(
        [
            Diagnostic(
                code, f.message, Severity.ERROR, None,
                (f"and {count[code] - 1} more like it",) if count[code] > 1 else (), f.hint,
                f.kind, f.excess, option="max-bytes" if code in _OF_SIZES else None,
            )
            for code, f in first.items()
        ]
    )  # fmt: skip
