"""Making files by a plan: run its passes, then emit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from collc.ir.diagnostic import CollcError
from collc.ir.levels import Executable, Level
from collc.ir.symmetric_program import AnyProgram

from .culprits import Culprits
from .emission import Emission
from .plan import Plan
from .result import Emitted
from .runner import Runner
from .session import Session

__all__ = ["Maker", "program_of"]


class Maker:
    """Makes the files of one session's plans; with ``share``, passes that two plans begin with run once."""

    def __init__(self, session: Session, share: bool = False):
        self.session = session
        self.culprits = Culprits(session)
        self.runner = Runner(session, self.culprits, share)
        self.emission = Emission(session, self.culprits)

    def trial(self) -> Maker:
        """Return a maker without observer, for trying whether a plan works."""
        return Maker(self.session.trial())

    def announce(self, chain: Plan) -> None:
        """Tell the observer which passes run."""
        if self.session.observer:
            self.session.observer.planned(self.session.request.name, chain)

    def remark(self, text: str) -> None:
        """Add a remark about a choice of the driver."""
        self.session.remarks.append(text)

    @contextmanager
    def remarks_of_files(self) -> Iterator[None]:
        """Forget the remarks of the work inside if an error ends it."""
        kept = len(self.session.remarks)
        try:
            yield
        except CollcError:
            del self.session.remarks[kept:]
            raise

    def run(self, ir: Level, chain: Plan, begin: int = 0, end: int | None = None) -> Level:
        """Return the IR after all passes of a plan, or those from ``begin`` to ``end`` (exclusive)."""
        return self.runner.run(ir, chain, begin, end)

    def finish(self, chain: Plan, ir: Executable) -> Emitted | None:
        """Return the files of an IR for the plan's target; None if there is no target."""
        return self.emission.finish(chain, ir)


def program_of(session: Session, chain: Plan) -> AnyProgram | None:
    """Return the verified program that a plan makes of a session's first IR; None if the plan ends before programs."""
    result = Maker(session).run(session.first, chain)
    return result if isinstance(result, AnyProgram) else None
