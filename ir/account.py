"""What became of a collective in a compilation: schedules, programs, checks, contenders; for targets that show it.

An account holds data only. It names no pass and no target of its own: their names and options are texts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from .frozen import frozen
from .shown import counted, shown

if TYPE_CHECKING:
    from .costs.cost import Cost
    from .levels import Scheduled
    from .program import Program
    from .schedule import Forest
    from .spec import CollectiveRequest
    from .symmetric_forest import SymmetricForest
    from .topology import Topology
    from .verify import Report

__all__ = ["Account", "Algorithm", "Allowance", "Contender", "Step"]


@frozen
class Step:
    """A pass that ran: its name with its options, the rows of the IR that it left, and why the driver added it.

    ``rows`` is None if unknown, ``why`` is empty for passes that the user wrote.
    """

    name: str
    rows: int | None = None
    why: str = ""


@frozen
class Allowance:
    """What a target allows: the most of ``what`` (``threadblocks``, ``channels``, ``steps``), and how much is used."""

    target: str
    what: str
    used: int
    allowed: int


@frozen
class Contender:
    """An algorithm that was compared, and its exact seconds at every size of the account.

    ``text`` is the algorithm in the language, ``chosen`` whether it is the fastest at some size.
    """

    name: str
    text: str
    steps: int
    chosen: bool
    seconds: tuple[Fraction, ...] = attrs.field(repr=False)


@frozen(eq=False)
class Algorithm:
    """One algorithm: its schedule with its cost, and its program.

    It serves calls of ``low`` to ``high`` bytes, both inclusive; None: no upper limit. ``absent`` says why there is no
    ``program``. ``forest`` are the trees that the schedule was made of, if any.
    """

    schedule: Scheduled
    cost: Cost
    program: Program | None = None
    absent: str = ""
    low: int = 0
    high: int | None = None
    passes: tuple[Step, ...] = ()
    remarks: tuple[str, ...] = ()
    reports: tuple[Report, ...] = ()
    allowances: tuple[Allowance, ...] = ()
    forest: Forest | SymmetricForest | None = None

    def __repr__(self) -> str:
        return shown(self, f"{self.cost.scheduler}, {counted(self.cost.T_L, 'step')}")


@frozen(eq=False)
class Account:
    """What became of the collective of a ``request``.

    ``algorithms`` are in the order of the sizes that they serve, at least one. ``sizes`` (bytes, ascending) are those
    of curves. ``contenders`` were compared at each of them, and hold at least what was compiled; ``skipped`` are names
    and reasons of what was not compared. ``own`` is the size of the collective as it was declared, None without one.
    """

    request: CollectiveRequest
    algorithms: tuple[Algorithm, ...]
    sizes: tuple[int, ...]
    own: int | None = None
    contenders: tuple[Contender, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return shown(self, f"{self.name}: {counted(len(self.algorithms), 'algorithm')}")

    @property
    def name(self) -> str:
        """The name of the collective."""
        return self.request.name

    @property
    def topology(self) -> Topology:
        """The network."""
        return self.algorithms[0].schedule.topology

    @property
    def shown(self) -> Algorithm:
        """The algorithm of pictures: that of the collective's own size, or of the largest sizes."""
        return self.at(self.own) if self.own else self.algorithms[-1]

    def at(self, size: int) -> Algorithm:
        """Return the algorithm that serves calls of a size; the first or last one if none does."""
        return next((one for one in self.algorithms if one.high is None or size <= one.high), self.algorithms[-1])
