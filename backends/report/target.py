"""The target ``report``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from collc.ir.account import Account
from collc.ir.frozen import frozen
from collc.ir.verify import Check, Report

from ..base import Artifact, Target
from .document import page
from .fitting import fitted
from .reader import checks
from .section import Section, section_of

__all__ = ["HtmlReport"]


@frozen
class HtmlReport(Target):
    """One HTML page for all collectives: times, network, schedule, bounds, checks. It fetches nothing.

    The page has its data, styles and script in one file of less than 2 MB. The data of many collectives are shortened:
    transfers and instructions of the last ones are left out first.
    """

    name: ClassVar[str] = "report"
    summary: ClassVar[str] = "one HTML page to look at: times, network, schedule, bounds, checks"
    suffix: ClassVar[str] = ".html"
    level: ClassVar[str] = "account"

    @property
    def shared(self) -> str | None:
        """The stem of the page that all collectives share."""
        return self.name

    def emit(self, ir: Account) -> Sequence[Artifact]:
        """Return the page of one collective; raise C0301 if a message has no route."""
        section = section_of(ir)
        text = page(fitted([section]))
        return [Artifact(f"{self.name}{self.suffix}", text, self.name, part=section, model=(ir, section))]

    def join(self, mains: Sequence[Artifact]) -> Sequence[Artifact]:
        """Return the page of several collectives."""
        sections = fitted([main.part for main in mains])
        return [Artifact(f"{self.name}{self.suffix}", page(sections), self.name)]

    def check(self, ir: Account, artifacts: Sequence[Artifact]) -> Report:
        """Read the page, compare its data with the account, and execute the transfers that it lists."""
        return self._checked([_section(ir, artifacts)], artifacts, ir)

    def check_joined(self, mains: Sequence[Artifact], artifacts: Sequence[Artifact]) -> Report:
        """Read the page of several collectives, and compare its data with those of each alone."""
        return self._checked([main.part for main in mains], artifacts, None)

    def _checked(self, sections: Sequence[Section], artifacts: Sequence[Artifact], account: Account | None) -> Report:
        found: tuple[Check, ...]
        if [one.filename for one in artifacts] != [f"{self.name}{self.suffix}"]:
            names = ", ".join(one.filename for one in artifacts)
            found = (Check("files", False, f"found {names or 'no file'}, needed {self.name}{self.suffix}"),)
        else:
            found = tuple(checks(artifacts[0].text, fitted(sections), account))
        collective = "" if account is None else account.algorithms[0].schedule.collective.kind
        return Report("page", collective, account.topology.num_ranks if account else 0, found)


def _section(account: Account, artifacts: Sequence[Artifact]) -> Section:
    """Return the data of an account: those that its page was written from, if this is that page."""
    for artifact in artifacts:
        if isinstance(artifact.model, tuple) and artifact.model[0] is account:
            found: Section = artifact.model[1]
            return found
    return section_of(account)
