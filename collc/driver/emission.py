"""Writing a target's files and reading them back; with a window, files for calls of some sizes only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from collc.backends.base import Artifact, Target, Window
from collc.ir.collective import CUSTOM, Collective
from collc.ir.diagnostic import CollcError, Kind, Subject, error, warning
from collc.ir.equal_shards import in_equal_shards
from collc.ir.frozen import frozen
from collc.ir.laid_out import laid_out
from collc.ir.levels import Executable
from collc.ir.program import Program
from collc.ir.ranges import runs
from collc.ir.shown import counted
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.verify import Report
from collc.passes.program.participants import participants, participating

from ..messages.internal import is_fatal, memory_error
from .culprits import Culprits
from .judging import failures
from .plan import Plan
from .requested import describe
from .result import Emitted
from .session import Session

__all__ = ["Emission", "other_collective"]


def other_collective(session: Session, found: Collective) -> CollcError:
    """Return the error C0013 for a pipeline that ends with another collective than the requested one.

    It is about the pipeline of the command line, or else about the scheduler's options.
    """
    request, requested = session.request, session.request.problem.collective
    message = f"`{request.name}` is to be {describe(requested, found)}, but the pipeline ends with "
    return session.places.placed(_of_pipeline(message + describe(found, requested), session))


def _of_pipeline(message: str, session: Session) -> CollcError:
    if session.settings.recipe.elements:
        hint = "leave out -p, or add the pass that leads to it (`reverse`, `compose`)"
        return error("C0013", message, span=session.request.span, hint=hint, exit_status=2)
    hint = "leave the option `collective` out: it is for pipelines that compose both halves (-p)"
    return error("C0013", message, hint=hint, option="collective", about=(Subject.COLLECTIVE,))


def _relaying(target: Target, relays: Sequence[int]) -> CollcError:
    able = "`mpi-c`, `oneccl-xml` and `msccl-xml{runtime=msccl}` have such ranks"
    optional = target.title != target.name
    instead = f"use the target `{target.name}` without these options" if optional else "use the target `mpi-c`"
    return error(
        "C0062", f"{target.title} has no ranks that only relay, as {counted(len(relays), 'rank')} here do",
        notes=[f"those that relay: {', '.join(runs(relays))}", able],
        hint=f"{instead}, or add them to the members", exit_status=3, kind=Kind.MISFIT,
    )  # fmt: skip


@frozen(eq=False)
class Emission:
    """Emits the IRs that the plans of a session left."""

    session: Session
    culprits: Culprits

    def finish(self, chain: Plan, ir: Executable) -> Emitted | None:
        """Return the files of an IR for the plan's target; None if there is no target."""
        window = self.session.window
        if self.session.start is None:
            self._require_requested(ir)
        target = chain.target
        if target is None or (window is not None and target.selects):
            return None
        if window is None:
            return self.emit(target, ir, chain=chain)
        return self._emit_within(chain, target, ir, window)

    def emit(
        self, target: Target, ir: Executable | None, write: Callable[[], Sequence[Artifact]] | None = None,
        check: Callable[[Sequence[Artifact]], Report] | None = None, chain: Plan | None = None,
    ) -> Emitted:  # fmt: skip
        """Return a target's files, read back; ``write`` and ``check`` replace the target's ``emit`` and ``check``."""
        session, report = self.session, None
        ir = self.narrowed(target, ir)
        try:
            files = tuple(session.timed(f"emit {target.name}", write or (lambda: target.emit(ir)), kind="emission"))
            if session.settings.verify != "off":
                self._require_readable(target, files)
                judge = check or (lambda files: target.check(ir, files))
                report = session.timed(f"read back {target.name}", lambda: judge(files))
        except CollcError as mistake:
            raise session.places.of_target(mistake, target) from None
        except MemoryError:
            raise memory_error(f"target `{target.name}`", session.request.span) from None
        except Exception as problem:
            what = f"failed: {type(problem).__name__}: {problem}"
            raise self.culprits.target_error(chain, target, ir, what) from problem
        if report is not None:
            session.reports.append(report)
            if not report.ok:
                raise self.culprits.target_error(chain, target, ir, f"wrote a wrong file: {failures(report)}")
        return target, tuple(attrs.evolve(file, model=None) for file in files)

    def _require_readable(self, target: Target, files: Sequence[Artifact]) -> None:
        """Raise C0065 if a file is too large to be read back."""
        large = max((len(file.content) for file in files), default=0)
        if target.most_read is not None and large > target.most_read:
            raise error(
                "C0065",
                f"{target.title} would write a file of {large >> 20} MiB; collc reads back at most "
                f"{target.most_read >> 20} MiB, so it cannot prove the file",
                hint="use the target `mpi-c`, fewer ranks, or `--verify off` for a file that was not read back",
                exit_status=3, kind=Kind.MISFIT,
            )  # fmt: skip

    def narrowed(self, target: Target, ir: Executable | None) -> Executable | None:
        """Return a program of members with the ranks that take part only.

        Raises C0062 if some of them only relay, and the target has no such ranks.
        """
        if isinstance(ir, SymmetricProgram):
            # files that hold a template move sets of chunks, whose numbers need no order
            ir = attrs.evolve(ir, numbering=[]) if target.limits.templates else laid_out(ir)
        if target.level == "one-sided" and ir is not None:
            return self._of_members(target, ir)
        if not isinstance(ir, Program):
            return ir
        if ir.collective.members is None:
            members = self.session.request.problem.collective.members
            return participating(ir, members) if members is not None and ir.collective.kind == CUSTOM else ir
        relays = participants(ir)[ir.collective.num_members :]
        if relays and not target.takes_relays:
            raise self.session.places.of_target(_relaying(target, relays), target)
        return ir if target.takes_members else participating(ir)

    def _of_members(self, target: Target, ir: Executable) -> Executable:
        """Return a one-sided program of the members; raise C0062 if other ranks relay."""
        from collc.ir.one_sided.program import OneSided
        from collc.passes.one_sided.members import members_only, relays

        if not isinstance(ir, OneSided) or ir.collective.members is None:
            return ir
        if found := relays(ir):
            raise self.session.places.of_target(_relaying(target, found), target)
        return members_only(ir)

    def _require_requested(self, ir: Executable) -> None:
        """Raise C0013 unless the pipeline ended with the requested collective.

        It may be in equal shards, if the request's differ in size. Each pass was checked against its own declaration,
        so here the pipeline as a whole is wrong.
        """
        requested = self.session.request.problem.collective
        if requested.weights is not None and ir.collective.weights is None and ir.collective.kind == CUSTOM:
            requested = in_equal_shards(requested)
        if requested != ir.collective:
            raise other_collective(self.session, ir.collective)

    def _emit_within(self, chain: Plan, target: Target, ir: Executable, window: Window) -> Emitted | None:
        """Return the target's files for calls of some sizes, or for those of them that its runtime can run."""
        narrowed = target.within(window)
        if narrowed is None:
            return None
        try:
            _, files = self.emit(narrowed, ir, chain=chain)
        except CollcError as mistake:
            if mistake.is_only(Kind.UNUSED):
                return None  # no call has a size of this window
            if not mistake.is_only(Kind.SIZE):
                raise
            self._warn_of_sizes(window, mistake)
            try:
                unbounded = target.within(attrs.evolve(window, high=None))
                _, files = self.emit(unbounded or narrowed, ir, chain=chain)
            except CollcError as beyond:
                if is_fatal(beyond):
                    raise
                return None
        return target, tuple(attrs.evolve(file, label=window.label) for file in files)

    def _warn_of_sizes(self, window: Window, mistake: CollcError) -> None:
        first, request = mistake.diagnostics[0], self.session.request
        message = f"no file of `{request.name}` is for all calls of {window.label}"
        self.session.warnings.append(
            warning("C0049", message, span=request.span, notes=[first.message, *first.notes])
        )  # fmt: skip
