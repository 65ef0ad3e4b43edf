"""Programs that list all ranks, most of which are images of a few: a rotation that keeps the other ranks in place.

Clusters with a few odd boxes have such programs: the rotation moves each alike box to the next, and keeps odd ranks.
Ranks get *places*: first those that stay, then box after box, so that element g moves place k + e*w + i to place
k + (e + g)*w + i, if k ranks stay and a box has w. Units of the vector, of equally many chunks, have places alike: an
allgather's are the shards of the ranks, an allreduce's whatever moves together. So the program of the ranks that stay
and of one box, in places, is the program of all ranks.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from .arrays import Array, as_column
from .frozen import frozen
from .program import Buffer, Program
from .ragged import inverse, owners, ranges, starts

__all__ = ["Turning", "all_images"]


@frozen(eq=False)
class Turning:
    """A rotation of ``order`` elements: ``ranks`` and ``units`` are the rank and the unit at each place.

    The first ``kept`` ranks and the first ``kept_units`` units stay. A unit has ``unit`` chunks.
    """

    order: int
    kept: int
    kept_units: int
    unit: int
    ranks: Array = attrs.field(converter=as_column)
    units: Array = attrs.field(converter=as_column)

    @property
    def width(self) -> int:
        """Ranks that stay, and ranks of one box: those that are listed."""
        return self.kept + (len(self.ranks) - self.kept) // self.order

    @cached_property
    def place(self) -> Array:
        """The place of each rank."""
        return inverse(self.ranks)

    @cached_property
    def place_of_unit(self) -> Array:
        """The place of each unit."""
        return inverse(self.units)

    def element(self, place: Array) -> Array:
        """Return the element that moves a listed rank to each place; 0 for places that stay."""
        element: Array = np.maximum(place - self.kept, 0) // max(self.width - self.kept, 1)
        return element

    def listed(self, place: Array) -> Array:
        """Return the place of the listed rank whose image is at each place."""
        box = max(self.width - self.kept, 1)
        return np.where(place < self.kept, place, self.kept + (place - self.kept) % box)

    def moved(self, element: Array | int, place: Array) -> Array:
        """Return the places of the images of ranks; the arrays broadcast (int64)."""
        return _turned(element, place, self.kept, len(self.ranks), self.order)

    def moved_units(self, element: Array | int, place: Array) -> Array:
        """Return the places of the images of units; the arrays broadcast (int64)."""
        return _turned(element, place, self.kept_units, len(self.units), self.order)

    def chunk(self, element: Array, chunk: Array) -> Array:
        """Return where the images of chunks lie in the vector, given their places; the arrays broadcast (int64)."""
        unit, inside = np.divmod(chunk.astype(np.int64), self.unit)
        found: Array = self.units[self.moved_units(element, unit)].astype(np.int64) * self.unit + inside
        return found

    def flaw(self, ranks: int, chunks: int) -> str:
        """Return why this is no rotation of this number of ranks and of chunks of the vector; "" if it is one."""
        if self.order < 1 or self.unit < 1:
            return "the rotation has no elements, or units without chunks"
        for what, numbers, kept, size in (
            ("ranks", self.ranks, self.kept, ranks), ("units", self.units, self.kept_units, chunks // self.unit),
        ):  # fmt: skip
            if not np.array_equal(np.sort(numbers), np.arange(size)):
                return f"the rotation does not list the {what} from 0 to {size - 1} once each"
            if not 0 <= kept <= size or (size - kept) % self.order:
                return f"the rotation of order {self.order} moves no {size - kept} {what} in equal boxes"
        return f"units of {self.unit} chunks do not divide {chunks}" if chunks % self.unit else ""


def _turned(element: Array | int, place: Array, kept: int, size: int, order: int) -> Array:
    moving, box = size - kept, (size - kept) // order
    place = np.asarray(place, dtype=np.int64)
    image: Array = np.where(place < kept, place, kept + (place - kept + element * box) % max(moving, 1))
    return image


def all_images(seed: Program, joined: Array, turning: Turning, moves: frozenset[Buffer]) -> tuple[Program, Array]:
    """Return the program of all ranks, and its flags of joined instructions.

    ``seed`` has the blocks of the listed ranks, which are named by their places, as are peers; so are chunks in the
    buffers that hold the vector, ``moves``.
    """
    place = turning.place.astype(np.int64)
    listed, element = turning.listed(place), turning.element(place)
    first, number = seed.rank_blocks.astype(np.int64)[listed], np.diff(seed.rank_blocks)[listed].astype(np.int64)
    block, rank = ranges(first, number), owners(number)
    size = np.diff(seed.block_start).astype(np.int64)[block]
    row = ranges(seed.block_start[:-1].astype(np.int64)[block], size)
    turned = element[rank][owners(size)]
    columns = {name: getattr(seed, name)[row] for name in ("opcode", "src_buffer", "dst_buffer", "count")}
    for end in ("src", "dst"):
        offset, buffer = getattr(seed, f"{end}_offset")[row].astype(np.int64), columns[f"{end}_buffer"]
        at = np.flatnonzero(np.isin(buffer, [int(one) for one in moves]) & seed.uses(end)[row])
        offset[at] = turning.chunk(turned[at], offset[at])
        columns[f"{end}_offset"] = offset
    for name in ("send_peer", "recv_peer"):
        peer = getattr(seed, name)[block].astype(np.int64)
        image = turning.ranks.astype(np.int64)[turning.moved(element[rank], np.maximum(peer, 0))]
        columns[name] = np.where(peer >= 0, image, -1)
    needs = seed.num_dependencies.astype(np.int64)[row]
    dep = ranges(seed.dep_start[:-1].astype(np.int64)[row], needs)
    block_start = starts(size)
    opening = np.zeros(len(seed.scratch) + 1, dtype=np.int64)  # the first instruction of each listed rank
    opening[: turning.width + 1] = seed.block_start[seed.rank_blocks[: turning.width + 1]]
    here = block_start[starts(number)[:-1]]  # and of each rank
    of = rank[owners(size)][owners(needs)]
    program = Program(
        seed.collective, seed.chunks, seed.scratch[listed], block_rank=rank, channel=seed.channel[block],
        block_start=block_start, dep_start=starts(needs), deps=seed.deps[dep] - opening[listed[of]] + here[of],
        name=seed.name, scheduler=seed.scheduler, placed=False, **columns,
    )  # fmt: skip
    return program, joined[row]
