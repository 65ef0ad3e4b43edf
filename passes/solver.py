"""HiGHS, run so that it can be ended at any time, that says how far it is, and that no clock stops.

One call of HiGHS takes minutes where a program is hard, and no signal's handler runs in Python meanwhile. So it runs in
a thread of its own, and the main thread waits. Limits are counts of what HiGHS does: its result is the same on every
machine, however fast.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import attrs

from collc.ir.progress import progress

__all__ = ["run"]

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 0.5


@attrs.define
class _Run:
    """One run as its thread and the thread that waits see it."""

    most: int | None
    questions: int = 0
    nodes: int = 0
    best: float = math.inf
    bound: float = -math.inf
    unwanted: bool = False
    failure: BaseException | None = None

    def asked(self, event: Any) -> None:
        """Answer HiGHS, which asks every now and then whether to go on."""
        self.questions += 1
        data = event.data_out
        self.nodes, self.best, self.bound = int(data.mip_node_count), data.mip_primal_bound, data.mip_dual_bound
        if self.unwanted or (self.most is not None and self.questions > self.most):
            event.interrupt()

    def carry_out(self, solver: Any) -> None:
        try:
            solver.run()
        except BaseException as reason:
            self.failure = reason

    def tell(self, what: str) -> None:
        """Say how far a branch and bound is."""
        known = [f"{self.nodes} nodes"] if self.nodes > 0 else []
        known += [f"best {self.best:.6g}"] if abs(self.best) < 1e20 else []
        known += [f"bound {self.bound:.6g}"] if known and 0 < abs(self.bound) < 1e20 else []
        progress(", ".join([what, *known]))


def run(solver: Any, what: str, questions: int | None = None) -> int:
    """Run a ``highspy.Highs`` that has its model, and return how often it asked whether to go on.

    ``what`` names the work for who watches it. With ``questions`` it is stopped when it asks once more than that:
    branch and bound asks between steps of its work, about as often as it solves a linear program. An exception in the
    thread that waits is passed on at once, and HiGHS ends when it asks next.
    """
    state = _Run(questions)
    callbacks = [solver.cbMipInterrupt, solver.cbSimplexInterrupt, solver.cbIpmInterrupt]
    for callback in callbacks:
        callback.subscribe(state.asked)
    try:
        _carry_out(state, solver, what)
    finally:
        if not state.unwanted:
            for callback in callbacks:
                callback.unsubscribe(state.asked)
    if state.failure is not None:
        raise state.failure
    return state.questions


def _carry_out(state: _Run, solver: Any, what: str) -> None:
    if threading.current_thread() is not threading.main_thread():
        state.carry_out(solver)
        return
    thread = threading.Thread(target=state.carry_out, args=(solver,), name="solver", daemon=True)
    try:
        thread.start()
        while True:
            thread.join(_POLL_SECONDS)
            if not thread.is_alive():
                return
            state.tell(what)
    except BaseException:
        state.unwanted = True
        thread.join(_GRACE_SECONDS)
        raise
