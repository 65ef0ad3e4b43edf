"""Check where a schedule places its transfers: a threadblock has one peer each way and one channel; data in scratch
stay until the last transfer that reads them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Array
from ..placement import UNPLACED, Placement, channels
from ..schedule import Action, Schedule
from ._atoms import Atoms, Wrong, row_text
from .report import Check, Row

__all__ = ["check_placement"]

_NAME = "placement"


def check_placement(s: Schedule, placed: Placement) -> Check:
    """Return the check of a schedule's placement; raise Wrong at the first row that does not fit."""
    blocks = _threadblocks(s, placed)
    places = _scratch(s, placed)
    return Check(_NAME, True, f"{blocks} threadblocks and {places} places in scratch are chosen, and fit")


# ---- threadblocks


def _threadblocks(s: Schedule, placed: Placement) -> int:
    """Return how many threadblocks are chosen; raise Wrong if one has two peers each way or two channels."""
    names, channel = s.topology.names, channels(s)
    once = _Once()
    blocks: set[tuple[int, int]] = set()
    directions = ("sends to", s.src, s.dst, placed.sender), ("receives from", s.dst, s.src, placed.receiver)
    for verb, ranks, peers, chosen in directions:
        for row in np.flatnonzero(chosen != UNPLACED).tolist():
            rank, peer, number, block = int(ranks[row]), int(peers[row]), int(channel[row]), int(chosen[row])
            blocks.add((rank, block))
            here = f"threadblock {block} of rank {names[rank]}"
            there = f"rank {names[rank]} {verb} rank {names[peer]} on channel {number}"
            once.add((verb, rank, block), peer, row, f"{here} {verb} rank {names[peer]}", _PEERS)
            once.add(("channel", rank, block), number, row, f"{here} has channel {number}", _CHANNEL)
            once.add((verb, rank, peer, number), block, row, f"{there} in threadblock {block}", _BLOCK)
    return len(blocks)


_PEERS = "a threadblock sends to one rank and receives from one: give the transfers different threadblocks"
_CHANNEL = "a threadblock has one channel: give the transfers different threadblocks, or one channel"
_BLOCK = "messages of one channel between two ranks keep their order: give them one threadblock, or two channels"


class _Once:
    """What may have one value only, with the row that gave it."""

    def __init__(self) -> None:
        self.first: dict[tuple[str | int, ...], tuple[int, int, str]] = {}

    def add(self, key: tuple[str | int, ...], value: int, row: int, text: str, hint: str) -> None:
        """Raise Wrong if an earlier row gave another value."""
        before, other, earlier = self.first.setdefault(key, (value, row, text))
        if before != value:
            raise Wrong(_NAME, f"{text} too", (), (Row(row), Row(other, earlier)), hint)


# ---- scratch


def _scratch(s: Schedule, placed: Placement) -> int:
    """Return how many places in scratch are chosen; raise Wrong if data are overwritten before they are read."""
    rows = np.flatnonzero(placed.scratch != UNPLACED)
    if not len(rows):
        return 0
    homes = _homes(s, placed, rows)
    atoms = Atoms.of(s)
    holder: dict[tuple[int, int, int], tuple[int, int]] = {}  # (rank, place, atom) -> shard, row; -1: data on their way
    for now in _steps(s):
        _read(s, atoms, now, homes, holder)
        written: dict[tuple[int, int, int], int] = {}
        for row in now[placed.scratch[now] != UNPLACED].tolist():
            rank, place, shard = int(s.dst[row]), int(placed.scratch[row]), int(s.shard[row])
            home = homes.get((rank, shard), (-1, -1))
            stays = home[1] >= 0 and s.action[row] == Action.COPY
            if home[0] == place and not stays:
                detail = f"{row_text(s, row)}, at place {place} of its scratch, where its sum is"
                raise Wrong(_NAME, detail, (), (Row(row), Row(home[1], "the sum is stored here")), _ANOTHER)
            for atom in range(int(atoms.first[row]), int(atoms.last[row])):
                cell = rank, place, atom
                if cell in written:
                    detail = f"{row_text(s, row)}, at place {place} of its scratch; so do other data in this step"
                    raise Wrong(_NAME, detail, (), (Row(row), Row(written[cell], "the other transfer")), _ANOTHER)
                written[cell] = row
                holder[cell] = (shard if stays else -1, row)
    return len({cell[:2] for cell in holder})


_ANOTHER = "choose another place in scratch"


def _homes(s: Schedule, placed: Placement, rows: Array) -> dict[tuple[int, int], tuple[int, int]]:
    """Return (rank, shard) -> place and row of what ranks only pass on, which stays at the chosen place."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    outputs = s.collective.output_slots(s.dst[rows], s.shard[rows]) >= 0
    for row in rows[(s.action[rows] == Action.COPY) & ~outputs].tolist():
        key, place = (int(s.dst[row]), int(s.shard[row])), int(placed.scratch[row])
        first = found.setdefault(key, (place, row))
        if first[0] != place:
            detail = f"{row_text(s, row)}, at place {place} of its scratch"
            rows_ = (Row(row), Row(first[1], f"it arrives at place {first[0]} here"))
            raise Wrong(_NAME, detail, (), rows_, "a shard has one place in the scratch of a rank")
    return found


def _steps(s: Schedule) -> Iterator[Array]:
    """Yield the rows of each step."""
    start = s.step_start.astype(np.int64)
    for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        yield np.arange(a, b)


def _read(
    s: Schedule, atoms: Atoms, rows: Array, homes: dict[tuple[int, int], tuple[int, int]],
    holder: dict[tuple[int, int, int], tuple[int, int]],
) -> None:  # fmt: skip
    """Raise Wrong if a rank sends data from scratch that others have replaced."""
    for row in rows.tolist():
        rank, shard = int(s.src[row]), int(s.shard[row])
        if (home := homes.get((rank, shard))) is None:
            continue
        for atom in range(int(atoms.first[row]), int(atoms.last[row])):
            there = holder.get((rank, home[0], atom))
            if there is not None and there[0] != shard:
                detail = f"{row_text(s, row)}, but place {home[0]} of its scratch has other data by then"
                raise Wrong(_NAME, detail, (), (Row(row), Row(there[1], "these arrive at the same place")), _ANOTHER)
