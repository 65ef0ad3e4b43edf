"""The result of a verification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import attrs

from ..diagnostic import CollcError, Diagnostic
from ..frozen import frozen
from ..shown import clipped, counted, shown

if TYPE_CHECKING:
    import pandas

__all__ = ["Check", "Report", "Row", "joined"]


class Row(NamedTuple):
    """A row of a schedule that explains why a check failed, and what happens in it; "" of the row that is wrong."""

    number: int
    what: str = ""


@frozen
class Check:
    """One check. ``detail`` states what was checked, or what failed and where; ``notes`` say more of a failure.

    ``rows`` are the rows of a schedule that show a failure, the wrong one first; ``hint`` says how to mend it.
    """

    name: str
    ok: bool
    detail: str = ""
    notes: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    hint: str = ""


@frozen
class Report:
    """The checks of one IR; ``kind`` is ``schedule``, ``forest``, ``program`` or a file format's name.

    ``warnings`` are about unusual but correct contents.

    >>> checks = Check("structure", True), Check("links", False, "link 9 is missing")
    >>> found = Report("schedule", "allgather", 4, checks)
    >>> found, found.ok, [check.name for check in found.failed]
    (Report(schedule of allgather, 4 ranks: WRONG, 1 failed of 2 checks), False, ['links'])
    """

    kind: str
    collective: str
    ranks: int
    checks: tuple[Check, ...]
    warnings: tuple[Diagnostic, ...] = ()

    def __repr__(self) -> str:
        checks = counted(len(self.checks), "check")
        verdict = f"ok, {checks}" if self.ok else f"WRONG, {len(self.failed)} failed of {checks}"
        return shown(self, f"{self.kind} of {clipped(self.collective)}, {counted(self.ranks, 'rank')}: {verdict}")

    @property
    def ok(self) -> bool:
        """Whether every check passed; warnings do not count."""
        return all(check.ok for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not pass, in order."""
        return tuple(check for check in self.checks if not check.ok)

    def _repr_html_(self) -> str:
        """Return the checks as a table, for notebooks."""
        from ..html import html_table

        rows = [("ok" if check.ok else "FAILED", check.name, check.detail) for check in self.checks]
        return html_table(f"{self.kind} of {self.collective}, {self.ranks} ranks", ("", "check", "found"), rows)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the checks as a data frame of pandas; raise C0028 without pandas."""
        from ..frames import dataframe

        kinds = {"name": "text", "ok": "flag", "detail": "text", "notes": "text", "hint": "text"}
        rows = [{**attrs.asdict(check, recurse=False), "notes": "; ".join(check.notes)} for check in self.checks]
        return dataframe(kinds, rows)

    def require(self, code: str = "C0401", what: str = "") -> None:
        """Raise ``code`` with one diagnostic per failed check."""
        if not self.ok:
            what = what or f"this {self.kind} of {self.collective}"
            raise CollcError(
                [Diagnostic(code, f"{what} is wrong: {c.name}: {c.detail}", notes=c.notes) for c in self.failed]
            )


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
