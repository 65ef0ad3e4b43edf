"""The base class of passes: a pass is one frozen class whose fields are its options.

A pass receives a verified IR and returns one. It never verifies, prints or times: the driver does. ``takes`` and
``gives`` are the IR levels. ``requires`` names facts (:data:`FACTS`) that the driver checks before the pass runs;
``establishes`` names facts that hold after it. A fact that holds before a pass holds after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.frozen import frozen
from collc.ir.schedule import Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest

from .knobs import Knob
from .ranges import require_ranges

if TYPE_CHECKING:
    from collc.ir.costs.messages import Messages
    from collc.ir.levels import Executable, Level, Scheduled
    from collc.ir.schedule import Forest
    from collc.ir.spec import Problem
    from collc.ir.symmetric_program import SymmetricProgram

__all__ = ["FACTS", "Kept", "Pass", "Replanned", "Solver", "has_collector", "remark", "remarks", "solver", "solving"]

_REMARKS: ContextVar[list[str] | None] = ContextVar("remarks", default=None)
_SOLVER: ContextVar[Solver | None] = ContextVar("solver", default=None)


@contextmanager
def remarks() -> Iterator[list[str]]:
    """Collect the remarks of passes that run inside; an outer collector receives them too."""
    collected: list[str] = []
    token = _REMARKS.set(collected)
    try:
        yield collected
    finally:
        _REMARKS.reset(token)
        for text in collected:
            remark(text)


def has_collector() -> bool:
    """Return whether anyone collects remarks; a remark that takes long to find is left out otherwise.

    >>> has_collector()
    False
    """
    return _REMARKS.get() is not None


def remark(text: str) -> None:
    """State a choice of a pass, for the collector of :func:`remarks`, if there is one."""
    collected = _REMARKS.get()
    if collected is not None:
        collected.append(text)


@frozen
class Solver:
    """Runs the scheduler of a schedule again, with all its options except the number of chunks.

    ``solve(n)`` divides every shard into ``n`` chunks, or into a divisor of ``n``. If ``takes_fewer``, it takes the
    best of 1 to ``n``, so no smaller number need be tried.
    """

    solve: Callable[[int], Schedule | SymmetricSchedule]
    takes_fewer: bool = False


@contextmanager
def solving(by: Solver | None) -> Iterator[None]:
    """Give this solver to passes that run inside; None: they have none."""
    token = _SOLVER.set(by)
    try:
        yield
    finally:
        _SOLVER.reset(token)


def solver() -> Solver | None:
    """Return the solver of the schedule that a pass receives; None if no scheduler made it."""
    return _SOLVER.get()


@frozen(eq=False)
class Kept:
    """A forest before faults; new numbers of its ranks and links, -1 for what is gone; links gone or slower."""

    forest: Forest
    rank: Array
    link: Array
    touched: Array


@frozen(eq=False)
class Replanned:
    """A forest after faults: ``kept`` of its trees are trees of before, on the same routes, the other ``new``."""

    forest: Forest
    kept: int
    new: int


#: fact -> whether it holds for an IR
FACTS: dict[str, Callable[[Level], bool]] = {
    "discrete": lambda ir: isinstance(ir, (Schedule, SymmetricSchedule)) and ir.discrete,
}


@frozen
class Pass(ABC):
    """Base of all passes. Subclasses are ``@attrs.frozen``; fields are ``int``, ``bool``, ``str``, or these or None.

    A field's help text is its ``metadata["help"]``, its range of numbers is its ``metadata["range"]``
    (:class:`~collc.passes.ranges.Range`). An instance with an option out of range cannot be made: CollcError.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    takes: ClassVar[type | tuple[type, ...]]
    gives: ClassVar[type]
    requires: ClassVar[tuple[str, ...]] = ()
    establishes: ClassVar[tuple[str, ...]] = ()
    #: whether its schedules are pipelined, so that joining messages of different steps would undo its work
    pipelined: ClassVar[bool] = False
    #: the most pieces that :meth:`in_pieces` takes; None: no limit
    most_pieces: ClassVar[int | None] = None
    #: whether it takes a SymmetricSchedule as a Schedule, a SymmetricForest as a Forest; others receive them unfolded
    takes_templates: ClassVar[bool] = False
    #: whether its option for templates also serves targets that list all ranks, since later passes work by orbits
    for_orbits: ClassVar[bool] = False
    #: whether it turns a Forest into a Forest, as it does with a Schedule; others receive the forest's steps
    takes_forests: ClassVar[bool] = False
    #: whether it changes a schedule only to improve the program
    for_programs: ClassVar[bool] = False
    #: passes that a plan runs before it if a target needs them, because they do not take its result
    follows: ClassVar[tuple[str, ...]] = ()
    #: whether the user wrote its schedule: it comes with the request, and its mistakes are the user's
    by_hand: ClassVar[bool] = False
    #: the option, and its value, with which a scheduler chooses its trees by the size of the collective
    by_size: ClassVar[tuple[str, str] | None] = None
    #: the numbers that can be reduced if the program does not fit a target
    varies: ClassVar[tuple[Knob, ...]] = ()
    #: whether it may run the scheduler again (:func:`solver`)
    resolves: ClassVar[bool] = False
    #: whether a scheduler with an option for the number of chunks takes fewer if they are as good
    takes_fewer: ClassVar[bool] = False

    def __attrs_post_init__(self) -> None:
        require_ranges(self)

    def require(self, ir: Problem) -> None:  # noqa: B027  # most passes take every problem
        """Raise CollcError unless this scheduler takes a problem with its options. It computes no schedule.

        What takes long to find out, such as limits on the size of a search, shows only in ``run``.
        """

    # Any: of ``takes``, as for ``run``
    def within(self, given: Any, limits: Mapping[str, int]) -> Pass:
        """Return the pass to run on an IR for a target with these limits: by default itself."""
        return self

    def turned(self, collective: Collective, found: Collective) -> Collective:
        """Return the collective of the pass's result for an IR of ``collective``: by default the same.

        ``found`` is the result's own collective, for values that do not follow from ``collective``. The driver requires
        that both are equal.
        """
        return collective

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        """Return whether this pass takes the program of the first ranks and a group, and gives one.

        It gets the program of all ranks otherwise: by default always.
        """
        return False

    def of_all_ranks(self) -> Pass:
        """Return this pass as it runs on an IR that is no template: by default itself.

        A pass with an option for templates returns itself without it.
        """
        return self

    def unstuck(self) -> Pass | None:
        """Return the pass to run instead if the program hangs because its connections have too few slots.

        By default None: there is no other.
        """
        return None

    def on(self, ir: Level) -> Pass:
        """Return this pass without the options that do not matter for an IR.

        So targets that take templates share what they have in common with others.
        """
        return self if isinstance(ir, SymmetricSchedule | SymmetricForest) else self.of_all_ranks()

    def with_chunks(self, chunks: int) -> Pass | None:
        """Return this scheduler with ``chunks`` chunks per shard; None if it has no such option."""
        return None

    @property
    def takes_trees(self) -> bool:
        """Whether this scheduler takes the trees that were planned with a problem's shares as its own."""
        return False

    def plans_by_size(self, ir: Problem) -> bool:
        """Return whether this scheduler's schedule may depend on the size of the collective."""
        return False

    @property
    def shares_links(self) -> bool:
        """Whether transfers of this scheduler's schedules may share links in switches that multicast or reduce."""
        return False

    @property
    def chooses_trees(self) -> bool:
        """Whether this scheduler chooses its trees by the size of the collective; else only their number of pieces."""
        return False

    def in_fewer_trees(self, ir: Problem) -> Iterator[Pass]:
        """Yield this scheduler with the numbers of trees that it may take where its own choice exceeds a limit.

        The best come first. There are none if it does not choose its number of trees.
        """
        yield from ()

    def resized(self, ir: Problem, known: Scheduled) -> Executable:
        """Return the schedule of ``ir``; ``known`` is the schedule of the same problem for another size."""
        return self.run(ir)

    def regrowing(self, ir: Problem, by_choice: bool) -> Pass | None:
        """Return the scheduler whose :meth:`regrown` grows the trees of ``ir`` again after faults; None: all are new.

        ``by_choice``: `auto` chose this scheduler for ``ir``, and may choose another one after faults.
        """
        return None

    def regrown(self, ir: Problem, before: Kept) -> Replanned | None:
        """Return the trees of ``ir``, a problem after faults, with those of ``before`` that no fault touches.

        The result is None if the scheduler cannot reach the optimum, and then all trees are new.
        """
        return None

    def num_pieces(self, ir: Problem) -> int | None:
        """Return in how many pieces this scheduler's schedule sends the data, one after the other; None: in no pieces.

        A forest states its own number.
        """
        return None

    def in_pieces(self, pieces: int) -> Pass | None:
        """Return this scheduler with a number of pieces; None if its schedules have none."""
        return None

    def messages(self, ir: Problem) -> Messages | None:
        """Return the messages of the schedule that ``run`` makes, without data; None if they need the schedule."""
        return None

    def gives_template(self, ir: Problem) -> bool:
        """Return whether a schedule with known messages is a template, so that no transfers of all ranks are listed."""
        return False

    def num_transfers(self, ir: Problem, most: int) -> int | None:
        """Return about how many transfers a schedule with known messages has; None for other schedules.

        If it has more than ``most``, the result is any number above ``most``.
        """
        return None

    @abstractmethod
    def run(self, ir: Any) -> Executable:  # Any: an IR of the level ``takes``, which the driver ensures
        """Return the new IR; raise CollcError if the pass does not apply."""
