"""The result of a verification."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..diagnostic import CollcError, Diagnostic
from ..frozen import frozen

__all__ = ["Check", "Report", "joined"]


@frozen
class Check:
    """One check. ``detail`` states what was checked, or what failed and where."""

    name: str
    ok: bool
    detail: str = ""


@frozen
class Report:
    """The checks of one IR; ``kind`` is ``schedule``, ``forest``, ``program`` or a file format's name.

    ``warnings`` are about unusual but correct contents.
    """

    kind: str
    collective: str
    ranks: int
    checks: tuple[Check, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every check passed; warnings do not count."""
        return all(check.ok for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not pass, in order."""
        return tuple(check for check in self.checks if not check.ok)

    def require(self, code: str = "C0401", what: str = "") -> None:
        """Raise ``code`` with one diagnostic per failed check."""
        if not self.ok:
            what = what or f"this {self.kind} of {self.collective}"
            raise CollcError([Diagnostic(code, f"{what} is wrong: {c.name}: {c.detail}") for c in self.failed])


def joined(names: Sequence[str], reports: Sequence[Report]) -> Report:
    """Return the reports on one or more files of a collective as one; several files are named in the checks."""
    if len(reports) == 1:
        return reports[0]
    checks = [
        Check(f"{name}: {c.name}", c.ok, c.detail)
        for name, report in zip(names, reports, strict=True)
        for c in report.checks
    ]
    return attrs.evolve(reports[0], checks=tuple(checks), warnings=tuple(w for one in reports for w in one.warnings))
