"""Run HiGHS so that it can be interrupted, reports its progress, and stops at limits that do not depend on time.

One call of HiGHS may take minutes, and Python runs no signal handler meanwhile. So HiGHS runs in a thread, and the
caller's thread waits and reports, if it is the main thread or if an observer takes its reports. Limits count the work
of HiGHS, so its result is the same on every machine.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, Protocol

import attrs

from collc.ir.progress import is_watched, progress

__all__ = ["run"]

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 0.5


class Callback(Protocol):
    """An event at which HiGHS asks whether to continue."""

    def subscribe(self, answer: Callable[[Any], None]) -> object: ...  # Any: highspy's event, which has no type

    def unsubscribe(self, answer: Callable[[Any], None]) -> object: ...  # Any: as above


class Solver(Protocol):
    """The part of ``highspy.Highs`` that this module uses."""

    cbMipInterrupt: Callback
    cbSimplexInterrupt: Callback
    cbIpmInterrupt: Callback

    def run(self) -> object: ...


@attrs.define
class _Run:
    """The state of one run, shared by its thread and the waiting thread."""

    most: int | None
    questions: int = 0
    nodes: int = 0
    best: float = math.inf
    bound: float = -math.inf
    is_cancelled: bool = False
    failure: BaseException | None = None

    def answer(self, event: Any) -> None:  # Any: highspy's, which has no types
        """Answer HiGHS, which asks regularly whether to continue."""
        self.questions += 1
        data = event.data_out
        self.nodes, self.best, self.bound = int(data.mip_node_count), data.mip_primal_bound, data.mip_dual_bound
        if self.is_cancelled or (self.most is not None and self.questions > self.most):
            event.interrupt()

    def carry_out(self, solver: Solver) -> None:
        try:
            solver.run()
        except BaseException as reason:
            self.failure = reason

    def report(self, what: str) -> None:
        """Report the progress of a branch and bound."""
        known = [f"{self.nodes} nodes"] if self.nodes > 0 else []
        known += [f"best {self.best:.6g}"] if abs(self.best) < 1e20 else []
        known += [f"bound {self.bound:.6g}"] if known and 0 < abs(self.bound) < 1e20 else []
        progress(", ".join([what, *known]))


def run(solver: Solver, what: str, questions: int | None = None) -> int:
    """Run a ``highspy.Highs`` that has its model; return the number of its questions whether to continue.

    ``what`` names the work in reports of progress. ``questions`` is the most questions, then HiGHS stops: branch and
    bound asks about once per linear program. An exception in the waiting thread is raised at once, and HiGHS stops at
    its next question.
    """
    state = _Run(questions)
    callbacks = [solver.cbMipInterrupt, solver.cbSimplexInterrupt, solver.cbIpmInterrupt]
    for callback in callbacks:
        callback.subscribe(state.answer)
    try:
        _carry_out(state, solver, what)
    finally:
        if not state.is_cancelled:
            for callback in callbacks:
                callback.unsubscribe(state.answer)
    if state.failure is not None:
        raise state.failure
    return state.questions


def _carry_out(state: _Run, solver: Solver, what: str) -> None:
    if threading.current_thread() is not threading.main_thread() and not is_watched():
        state.carry_out(solver)
        return
    thread = threading.Thread(target=state.carry_out, args=(solver,), name="solver", daemon=True)
    try:
        thread.start()
        while True:
            thread.join(_POLL_SECONDS)
            if not thread.is_alive():
                return
            state.report(what)
    except BaseException:
        state.is_cancelled = True
        thread.join(_GRACE_SECONDS)
        raise
