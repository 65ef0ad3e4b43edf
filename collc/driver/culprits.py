"""Internal errors: find the pass that caused a failure, and make the error that names it and can be replayed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from collc.backends import TARGETS
from collc.backends.base import Target
from collc.ir.diagnostic import CollcError
from collc.ir.levels import Executable, Level, Scheduled
from collc.ir.spec import Problem
from collc.passes import PASSES
from collc.passes.base import Pass

from ..messages.internal import InternalError, is_fatal
from ..registry.elements import element_text, pipeline_text
from .judging import is_right
from .plan import Plan
from .session import Session

if TYPE_CHECKING:
    from .blame import Wrong

__all__ = ["Culprits"]


class Culprits:
    """The last IRs of a session that were executed and right, and the one that a pass refused."""

    def __init__(self, session: Session):
        self.session = session
        #: the last IR that was executed and the passes that made it: the last program (True), the last schedule (False)
        self.executed: dict[bool, tuple[tuple[Pass, ...], Executable]] = {}
        self.refused: tuple[Plan, int, Level] | None = None  # the last pass that raised a CollcError, and its input

    @property
    def _unverified(self) -> bool:
        return self.session.settings.verify == "off"

    def pass_error(self, chain: Plan, count: int, ir: Level, what: str) -> InternalError:
        """Return the error that names a pass, or the earlier pass that first left a wrong IR."""
        first = self._first_wrong(chain, count)
        if first is None:
            from .blame import Wrong

            return self._error(chain, Wrong(count, ir, what), unverified=self._unverified)
        return self._error(chain, first, f"pass `{chain.passes[count].name}`: {what}")

    def target_error(self, chain: Plan | None, target: Target, ir: Level | None, what: str) -> InternalError:
        """Return the error that names the first pass that left a wrong IR; if there is none, the target."""
        seen = f"target `{target.name}` {what}"
        first = None if chain is None else self._first_wrong(chain, len(chain.passes)) or self._misread(chain, target)
        if chain is not None and first is not None:
            return self._error(chain, first, seen, target)
        name = self.session.request.name
        return InternalError(
            f"{seen} (for `{name}`)", collective=name, ir=ir, target=element_text(target),
            done=() if chain is None else tuple(this.name for this in chain.passes), unverified=self._unverified,
            package=TARGETS.package(target.name),
        )  # fmt: skip

    def reconsider(self, mistake: CollcError) -> CollcError:
        """Return a mistake, or an internal error if an earlier pass returned an IR that the later one refuses."""
        verify = self.session.settings.verify
        if self.refused is None or verify != "each" or is_fatal(mistake) or mistake.exit_status == 2:
            return mistake
        chain, count, ir = self.refused
        first = None
        if not isinstance(ir, Problem):
            before = chain.passes[count - 1].name if count else "input"
            right = self.session.timed(f"verify {before}", lambda: is_right(ir))
            first = None if right else self._first_wrong(chain, count)
        if first is None:
            return mistake
        return self._error(chain, first, f"pass `{chain.passes[count].name}`: {mistake.diagnostics[0].message}")

    def _error(
        self, chain: Plan, wrong: Wrong, seen: str = "", target: Target | None = None, unverified: bool = False
    ) -> InternalError:
        """Return the error that names a pass, with its input for a replay; ``seen`` is where the failure appeared."""
        rest, target, name = chain.passes[wrong.count :], target or chain.target, self.session.request.name
        return InternalError(
            f"pass `{rest[0].name}` failed on `{name}`: {wrong.what}",
            collective=name, ir=wrong.before, remaining=pipeline_text(rest),
            done=tuple(this.name for this in chain.passes[: wrong.count]),
            target=element_text(target) if target else "", seen=seen, unverified=unverified,
            package=PASSES.package(rest[0].name),
        )  # fmt: skip

    def _last_executed(self, chain: Plan, programs: bool = True) -> tuple[int, Level]:
        """Return the last IR of a plan that was executed, and the number of passes that made it.

        Return the input of the plan if none was executed. Programs count only if ``programs``.
        """
        found = [self.executed[level] for level in (True, False)[not programs :] if level in self.executed]
        for passes, ir in found:
            if passes == chain.passes[: len(passes)]:
                return len(passes), ir
        return 0, self.session.first

    def _first_wrong(self, chain: Plan, end: int) -> Wrong | None:
        """Return the first pass before number ``end`` that left a wrong IR; None if there is none.

        An input that was read without verification may be wrong itself, and then says nothing about passes.
        """
        begin, ir = self._last_executed(chain)
        if self.session.settings.verify == "full" or begin >= end:
            return None
        if self._unverified and not isinstance(ir, Problem) and not is_right(ir):
            return None
        from .blame import first_wrong

        found = first_wrong(chain.passes, begin, end, ir, self.session.again, self.session.network)
        return None if found is not None and chain.passes[found.count].by_hand else found

    def _misread(self, chain: Plan, target: Target) -> Wrong | None:
        """Return the first pass after which the target fails, though it wrote the program before that pass."""
        begin, ir = self._last_executed(chain, programs=False)
        from .blame import first_misread, misread

        verified = not self._unverified
        reads = partial(misread, target, verified=verified)
        return first_misread(chain.passes, begin, ir, self.session.again, reads)

    def note_executed(self, chain: Plan, count: int, after: Executable) -> None:
        """Remember the IR of pass number ``count``, which was executed and right."""
        self.executed[not isinstance(after, Scheduled)] = chain.passes[: count + 1], after
