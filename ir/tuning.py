"""The choice among a library's own algorithms: which is the fastest at which size, as data of the IR."""

from __future__ import annotations

from collections.abc import Sequence

from .collective import Collective
from .frozen import frozen
from .shown import counted, shown

__all__ = ["LARGEST", "TunedRange", "Tuning", "TuningRequest"]

#: the largest size of a call that NCCL's 64-bit numbers hold
LARGEST = 2**64 - 1


@frozen
class TunedRange:
    """Calls of ``low`` to ``high`` bytes, both included, use an algorithm with a protocol, by NCCL's names."""

    low: int
    high: int
    algorithm: str
    protocol: str


@frozen
class TuningRequest:
    """What a target needs of a :class:`Tuning`: the number of machines, where times come from, what may be chosen.

    ``nodes`` is None if the network shows it. ``measured`` is the path of fitted times; None for the cost model.
    ``multicast`` is whether switches add and copy (NVLS); ``protocol`` that of rows from the cost model.
    """

    nodes: int | None = None
    measured: str | None = None
    multicast: bool = False
    protocol: str = "simple"


@frozen(eq=False)
class Tuning:
    """The fastest algorithm of a library for every size of a collective on ``nodes`` machines.

    ``ranges`` ascend from 0 to :data:`LARGEST` without gaps. ``notes`` state the assumptions, one a line.

    >>> half = TunedRange(0, 4095, "tree", "simple"), TunedRange(4096, LARGEST, "ring", "simple")
    >>> tuning = Tuning("sums", Collective("allreduce", 16), 2, half)
    >>> tuning, tuning.at(4096).algorithm
    (Tuning(sums: allreduce on 16 ranks and 2 machines, 2 ranges), 'ring')
    """

    name: str
    collective: Collective
    nodes: int
    ranges: Sequence[TunedRange]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        ranks, nodes = counted(self.collective.num_ranks, "rank"), counted(self.nodes, "machine")
        return shown(self, f"{self.name}: {self.collective.kind} on {ranks} and {nodes}, "
                     f"{counted(len(self.ranges), 'range')}")  # fmt: skip

    def at(self, size: int) -> TunedRange:
        """Return the range of a size, in bytes."""
        return next(one for one in self.ranges if one.low <= size <= one.high)

    @property
    def borders(self) -> tuple[int, ...]:
        """The first size of every range but the first."""
        return tuple(one.low for one in self.ranges[1:])
