"""What is wrong with an algorithm, as values that become errors when writing and failed checks when verifying."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Severity, warning
from collc.ir.verify import Check

from .model import Gpu, Step, Threadblock

__all__ = ["Finding", "as_check", "as_warnings", "place", "refuse"]

_SHOWN = 3


@attrs.frozen
class Finding:
    """One violation: the check it belongs to, its code, where and what, and a way out.

    ``fatal`` marks what leaves nothing to execute: no program can be made of the file. ``mild`` marks what is not as
    the file says: a warning where everything else is right, else as bad as any.
    """

    check: str
    code: str
    message: str
    hint: str | None = None
    fatal: bool = False
    mild: bool = False


def place(gpu: Gpu, block: Threadblock | None = None, step: Step | int | None = None) -> str:
    """Return ``rank R, threadblock T, step S``, as far as given.

    A step is named by its number ``s``, with its line where it was read from a text.
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
    """Return the check of this name: passed with what was tried, or failed with the first findings."""
    mine = [f for f in findings if f.check == name and not f.mild]
    if not mine:
        return Check(name, True, tried)
    more = f"; and {len(mine) - _SHOWN} more" if len(mine) > _SHOWN else ""
    return Check(name, False, "; ".join(f.message for f in mine[:_SHOWN]) + more)


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
            )
            for code, f in first.items()
        ]
    )  # fmt: skip
