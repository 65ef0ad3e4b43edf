"""What a verification found."""

from __future__ import annotations

import attrs

from ..diagnostic import CollcError, Diagnostic

__all__ = ["Check", "Report"]


@attrs.frozen
class Check:
    """One property that was tried. ``detail`` says what was tried, or what failed and where."""

    name: str
    ok: bool
    detail: str = ""


@attrs.frozen
class Report:
    """The checks of one IR; ``kind`` is ``schedule``, ``forest``, ``program`` or a file format's name."""

    kind: str
    collective: str
    ranks: int
    checks: tuple[Check, ...]

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
