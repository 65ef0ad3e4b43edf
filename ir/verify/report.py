"""What a verification found."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..diagnostic import CollcError, Diagnostic

__all__ = ["Check", "Report", "joined"]


@attrs.frozen
class Check:
    """One property that was tried. ``detail`` says what was tried, or what failed and where."""

    name: str
    ok: bool
    detail: str = ""


@attrs.frozen
class Report:
    """The checks of one IR; ``kind`` is ``schedule``, ``forest``, ``program`` or a file format's name.

    ``warnings`` are of what is odd and yet right.
    """

    kind: str
    collective: str
    ranks: int
    checks: tuple[Check, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.ok)

    def require(self, code: str = "C0401", what: str = "") -> None:
        """Raise ``code`` with one diagnostic per failed check."""
        if not self.ok:
            what = what or f"this {self.kind} of {self.collective}"
            raise CollcError([Diagnostic(code, f"{what} is wrong: {c.name}: {c.detail}") for c in self.failed])


def joined(names: Sequence[str], reports: Sequence[Report]) -> Report:
    """Return the reports on one or more files of a collective as one, checks named by their files where several."""
    if len(reports) == 1:
        return reports[0]
    checks = [
        Check(f"{name}: {c.name}", c.ok, c.detail)
        for name, report in zip(names, reports, strict=True)
        for c in report.checks
    ]
    return attrs.evolve(reports[0], checks=tuple(checks), warnings=tuple(w for one in reports for w in one.warnings))
