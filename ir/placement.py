"""Where the author of a schedule places its transfers: channels, threadblocks and scratch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from .arrays import Array, Columnar, as_column, distinct, lexsort
from .frozen import frozen
from .shown import counted, shown

if TYPE_CHECKING:
    from .schedule import Schedule

__all__ = ["UNPLACED", "Placement", "channels"]

#: The number of a channel, threadblock or place in scratch that collc chooses.
UNPLACED = -1


@frozen(eq=False)
class Placement(Columnar):
    """The choices for the transfers of a schedule, one row for each of its rows; -1 leaves a choice to collc.

    ``channel`` is the channel of the message. ``sender`` and ``receiver`` are threadblocks of the two ranks: their
    numbers order the threadblocks of a rank. ``scratch`` is the place in the receiver's scratch, in shards, at which
    the data arrive.
    """

    channel: Array = attrs.field(converter=as_column)
    sender: Array = attrs.field(converter=as_column)
    receiver: Array = attrs.field(converter=as_column)
    scratch: Array = attrs.field(converter=as_column)

    COLUMNS = ("channel", "sender", "receiver", "scratch")

    def __repr__(self) -> str:
        return shown(self, counted(len(self), "transfer"))

    def __len__(self) -> int:
        return len(self.channel)

    @classmethod
    def of(cls, columns: Array) -> Placement | None:
        """Return the placement of an array of shape (rows, 4); None if it leaves every choice to collc."""
        return cls(*np.ascontiguousarray(columns.T)) if (columns != UNPLACED).any() else None

    @property
    def places_threadblocks(self) -> bool:
        """Whether any channel or threadblock is chosen."""
        return any(bool((getattr(self, c) != UNPLACED).any()) for c in ("channel", "sender", "receiver"))

    def rows(self, keep: Array) -> Placement:
        """Return the placement of these rows (a mask or row numbers)."""
        return Placement(*(getattr(self, c)[keep] for c in self.COLUMNS))


def channels(s: Schedule) -> Array:
    """Return the channel of each transfer: the chosen one, 0 of a transfer with a chosen threadblock, otherwise the
    number of its route among the parallel ones.
    """
    found: Array = _parallel(s).take(s.route)
    if s.placement is None:
        return found
    placed = s.placement
    found = np.where((placed.sender >= 0) | (placed.receiver >= 0), 0, found)  # a threadblock has one channel
    return np.where(placed.channel >= 0, placed.channel, found)


def _parallel(s: Schedule) -> Array:
    """Number the used routes between each pair of ranks: each parallel route is a channel.

    Routes over the same links are one route.
    """
    named = distinct(s.route)
    if s.routes.is_direct:
        first = named
    else:
        known: dict[tuple[int, ...], int] = {}
        first = np.array([known.setdefault(tuple(s.routes.links_of(r)), r) for r in named.tolist()], dtype=np.int64)
    used = distinct(first)
    src, dst = s.routes.tails(s.topology)[used], s.routes.heads(s.topology)[used]
    order = lexsort((used, dst, src))
    pair = np.stack([src, dst])[:, order]
    fresh = np.concatenate([[True], (pair[:, 1:] != pair[:, :-1]).any(axis=0)]) if len(used) else np.zeros(0, bool)
    index = np.arange(len(used))
    channel = np.zeros(len(s.routes), dtype=np.int64)
    channel[used[order]] = index - np.maximum.accumulate(np.where(fresh, index, 0)) if len(used) else index
    channel[named] = channel[first]
    return channel
