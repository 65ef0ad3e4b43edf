"""A program stored as that of the first ranks and a group: every other rank's program is the image of one of them.

The first ``width`` ranks are one of every orbit. Rank e*width + i is the image of rank i under element e: element g
maps it to (g*e)*width + i, and shards alike. So it executes the instructions of rank i with its peers and shards moved
by e. A regular group has one orbit: there ranks are elements, and all are images of rank 0, the identity.
A buffer that holds the whole vector holds shard s at place s, so there an offset moves with its shard. So it does in an
all-to-all, whose buffers have a place for each rank. A buffer of one shard, and scratch, look alike on all ranks of an
orbit.

The messages of one step of a connection go together: an instruction that is ``joined`` moves its data in the message of
the instruction before it. So a message is a set of chunks, which lie in other places on every rank. For files that list
all ranks, messages are laid out as runs of chunks (:mod:`.laid_out`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import attrs
import numpy as np

from .arrays import Array, Columnar, Columns, as_column, lexsort
from .collective import Collective
from .connections import Connections
from .frozen import frozen
from .group import Group, Translations
from .program import Buffer, Program
from .ragged import owners, starts
from .shown import clipped, counted, shown
from .turning import Turning

__all__ = ["AnyProgram", "SymmetricProgram"]


@frozen(eq=False)
class SymmetricProgram(Columnar):
    """The program of the first ranks, ``seed``, and the group that makes it the program of every rank.

    All blocks of the seed are those of its first :attr:`width` ranks; its instructions do not cross shards. ``joined``
    (a flag of each instruction) says that an instruction moves its data in the message of the instruction before it,
    which is of the same block and opcode. Copies join only from input to scratch, in no order. Dependencies are those
    of the first instruction of a message, on first instructions.

    Where every rank has the whole vector before and after, chunks may lie in any order: ``numbering`` is the place of
    each chunk of the vector in input and output, the same on all ranks. Offsets are numbers of chunks, not places.
    Without a numbering (an empty column) both are equal.

    ``fixed`` programs exchange whole vectors: a message has the same place on all ranks. Then offsets are places of the
    vector, and no shard moves. An instruction may have chunks of many shards.

    ``unfused`` says that each fused instruction stands for what replaces it in a runtime without them: a receive into
    scratch of its block, a copy, a sum and a send (:class:`collc.passes.program.unfuse.Unfuse`).

    A program that lists all ranks may have a ``turning``, of which its ranks are images: files then list few ranks. It
    says nothing that the columns do not say, so it is not compared.
    """

    seed: Program
    group: Group
    joined: Array = attrs.field(converter=as_column)
    numbering: Array = attrs.field(factory=lambda: np.zeros(0, dtype=np.int64), converter=as_column)
    fixed: bool = False
    unfused: bool = False
    turning: Turning | None = None

    SCALARS = ("seed", "group", "fixed", "unfused")
    COLUMNS = ("joined", "numbering")

    def __repr__(self) -> str:
        what = f"{counted(self.seed.num_blocks, 'threadblock')}, {counted(len(self.message_start) - 1, 'message')}"
        ranks = counted(self.num_ranks, "rank")
        return shown(
            self, f"{clipped(self.name)}: {self.collective.kind}, {ranks}, {what} of {self.seeds} in a template"
        )

    @cached_property
    def found(self) -> dict[Any, Any]:  # Any: each function has its own key and type
        """Cached results of functions of other modules, by name. No function changes a cached result."""
        return {}

    @property
    def collective(self) -> Collective:
        """The collective of all ranks."""
        return self.seed.collective

    @property
    def chunks(self) -> int:
        """Chunks of a shard."""
        return self.seed.chunks

    @property
    def name(self) -> str:
        """The name of the collective in the file."""
        return self.seed.name

    @property
    def scheduler(self) -> str:
        """The name of the schedule's scheduler."""
        return self.seed.scheduler

    @property
    def num_ranks(self) -> int:
        """Ranks of the collective, ``width`` times the elements of the group."""
        return self.seed.num_ranks

    @property
    def width(self) -> int:
        """The number of ranks in the seed, one of every orbit."""
        return max(self.num_ranks // max(self.group.order, 1), 1)

    @property
    def seeds(self) -> str:
        """The ranks of the seed in words."""
        return "rank 0" if self.width == 1 else f"ranks 0 to {self.width - 1}"

    def moved(self, element: Array | int, number: Array | int) -> Array:
        """Return the images of ranks or shards under elements of the group, elementwise (int64)."""
        number = np.asarray(number, dtype=np.int64)
        image: Array = self.group.multiply(element, number // self.width) * self.width + number % self.width
        return image

    def moved_shards(self, element: Array | int, shard: Array | int) -> Array:
        """Return the images of shards under elements: of an all-to-all, those of both its ranks (int64)."""
        if self.fixed:
            return np.asarray(shard, dtype=np.int64) + np.zeros_like(np.asarray(element, dtype=np.int64))
        return self.collective.moved(shard, lambda rank: self.moved(element, rank))

    def placed(self, element: Array, offset: Array, moves: Array) -> Array:
        """Return the places of chunks on the images of their ranks; only those that ``moves`` marks move.

        ``offset`` are offsets of the seed, ``element`` is one or a column; shape (elements, chunks) or (chunks).
        """
        shard, inside = np.divmod(np.where(moves, offset, 0), self.chunks)
        places = np.arange(self.num_ranks)
        if len(shard) < len(places):
            image = self.moved(element, shard) * self.chunks
        else:
            image = (self.moved(element, places) * self.chunks).take(shard, axis=-1)
        image += inside
        if len(self.numbering):
            image = self.numbering.astype(np.int64).take(image)
        if not moves.all():
            image[..., ~moves] = offset[~moves]
        return image

    @property
    def num_channels(self) -> int:
        """One more than the largest channel number."""
        return self.seed.num_channels

    @property
    def forwards(self) -> bool:
        """Whether instructions send on what they receive; then each message is one instruction on all ranks."""
        return bool((self.seed.sends & self.seed.receives).any())

    @property
    def num_blocks(self) -> int:
        """Threadblocks of all ranks together."""
        return self.seed.num_blocks * self.group.order

    @property
    def num_instructions(self) -> int:
        """Messages and copies of all ranks together."""
        return self.batched.num_instructions * self.group.order

    def renamed(self, name: str) -> SymmetricProgram:
        """Return the program under another name."""
        if name == self.name:
            return self
        return attrs.evolve(self, seed=attrs.evolve(self.seed, name=name))

    def moves(self, buffer: Buffer) -> bool:
        """Return whether a buffer has a place for each rank's shard, so that its offsets move with their shards."""
        if buffer == Buffer.SCRATCH or self.fixed:
            return False
        output = buffer == Buffer.OUTPUT
        slots = self.collective.output_slots if output else self.collective.input_slots
        return np.array_equal(slots(0, self.collective.shards_at(0, output)), np.arange(self.num_ranks))

    def moving(self, end: str) -> Array:
        """Return which instructions of the seed use their location ``end`` in a buffer whose shards move."""
        buffers = [buffer for buffer in Buffer if self.moves(buffer)]
        moving: Array = self.seed.uses(end) & np.isin(getattr(self.seed, f"{end}_buffer"), buffers)
        return moving

    # ---- messages

    @cached_property
    def message_start(self) -> Array:
        """The first instruction of each message, and after the last the number of instructions."""
        return np.append(np.flatnonzero(self.joined == 0), self.seed.num_instructions)

    @cached_property
    def message(self) -> Array:
        """The message of each instruction."""
        return owners(np.diff(self.message_start))

    @cached_property
    def batched(self) -> Program:
        """The messages as instructions of the seed's ranks, for the machine that executes programs.

        Rank i stands for all images of itself. What it sends to the image of rank j under f arrives at rank j from the
        image of rank i under the inverse of f. So the program has the connections of :attr:`links`, and a channel says
        which of them a block has. All ranks of an orbit do the same at the same time, so an execution of this program
        is one of all ranks, and no choice depends on time (:mod:`collc.ir.machine`). ``count`` is the chunks of a
        message, peers are named by all ranks.
        """
        seed, first = self.seed, self.message_start[:-1]
        sent, received = self.connections
        length = np.add.reduceat(seed.count.astype(np.int64), first) if len(first) else first
        dependent, dependency = self.message[seed.dependent], self.message[seed.deps]
        order = lexsort([dependent])
        counts = np.bincount(dependent, minlength=len(first))
        places = ("src_buffer", "src_offset", "dst_buffer", "dst_offset")
        columns: Columns = {c: getattr(seed, c)[first] for c in places}
        width = self.width
        channel = np.maximum(np.maximum(sent, received), 0)
        both = (sent >= 0) & (received >= 0)
        found = Program(
            Collective("allreduce", width), seed.chunks, np.zeros(width, dtype=np.int64), block_rank=seed.block_rank,
            send_peer=seed.send_peer, recv_peer=seed.recv_peer,
            channel=np.where(both, (sent + 1) * len(self.links) + received, channel),
            block_start=np.searchsorted(first, seed.block_start), opcode=seed.opcode[first], count=length,
            dep_start=starts(counts), deps=dependency[order], **columns,
        )  # fmt: skip
        found.found["connections"] = self.links  # channels of blocks that send and receive are not those of their peers
        return found

    @property
    def connections(self) -> tuple[Array, Array]:
        """Return numbers of the connections that each block sends into and receives from, as all ranks name them."""
        return self.links.outward, self.links.inward

    @cached_property
    def links(self) -> Connections:
        """The connections out of the seed's ranks, each of which stands for all its images.

        ``src`` is a rank of the seed, ``dst`` any rank. The block that receives is one of the rank of the seed whose
        image ``dst`` is. Sorted by channel, then by both ranks.
        """
        seed, n, width = self.seed, self.num_ranks, self.width
        send, source = seed.send_peer.astype(np.int64), seed.recv_peer.astype(np.int64)
        channel, own = seed.channel.astype(np.int64), seed.block_rank.astype(np.int64)
        to = self.group.inverse(np.maximum(source, 0) // width) * width + own  # the peer that the sender names
        keys = [
            np.where(send >= 0, (channel * width + own) * n + send, -1),
            np.where(source >= 0, (channel * width + source % width) * n + to, -1),
        ]
        named = np.unique(np.concatenate(keys))
        named = named[named >= 0]
        sent, received = (np.where(k >= 0, np.searchsorted(named, k), -1) for k in keys)
        sender, receiver = np.full((2, len(named)), -1, dtype=np.int64)
        sender[sent[sent >= 0]], receiver[received[received >= 0]] = (
            np.flatnonzero(sent >= 0),
            np.flatnonzero(received >= 0),
        )
        columns = named // n % width, named % n, named // (width * n), sent, received, sender, receiver
        for column in columns:
            column.flags.writeable = False
        return Connections(*columns)

    # ---- all ranks

    def images(self, element: int) -> Columns:
        """Return the columns of the images of the seed's ranks: peers, and where instructions read and write."""
        seed = self.seed
        found: Columns = {}
        for name in ("send_peer", "recv_peer"):
            peer = getattr(seed, name).astype(np.int64)
            found[name] = np.where(peer >= 0, self.moved(element, np.maximum(peer, 0)), -1)
        for end in ("src", "dst"):
            offset = getattr(seed, f"{end}_offset").astype(np.int64)
            found[f"{end}_offset"] = self.placed(np.array(element), offset, self.moving(end))
        return found

    def unfold(self) -> Program:
        """Return the program of all ranks, with an instruction for each of the seed's, not joined and not numbered."""
        return self._listed(self.group.order)

    def widened(self, width: int) -> SymmetricProgram:
        """Return the program as that of the first ``width`` ranks, of which others are images by fewer elements.

        So ranks may differ that were images of each other, in their channels for example. The group must be cyclic and
        have one orbit, ``width`` divides its order, and each message is one instruction.
        """
        assert self.width == 1 and isinstance(self.group, Translations) and len(self.group.shape) == 1
        assert self.group.order % width == 0 and not self.joined.any()
        seed = self._listed(width)
        scratch = np.zeros(self.num_ranks, dtype=np.int64)
        scratch[:width] = self.seed.scratch[0]
        joined, group = np.tile(self.joined, width), Translations((self.group.order // width,))
        return attrs.evolve(self, seed=attrs.evolve(seed, scratch=scratch), group=group, joined=joined)

    def _listed(self, order: int) -> Program:
        """Return the program of the images under the first elements, with an instruction for each of the seed's."""
        seed = self.seed
        plain = attrs.evolve(self, numbering=[])
        images = [plain.images(element) for element in range(order)]
        columns: Columns = {c: np.concatenate([image[c] for image in images]) for c in images[0]}
        same = ("channel", "opcode", "src_buffer", "dst_buffer", "count")
        columns |= {c: np.tile(getattr(seed, c), order) for c in same}
        size = seed.num_instructions
        elements = np.arange(order)[:, None]
        rows = elements * size
        last = self.message_start[1:] - 1  # a message is over when its last instruction is
        return Program(
            seed.collective, seed.chunks, np.resize(seed.scratch[: self.width], self.num_ranks),
            block_rank=(elements * self.width + seed.block_rank[None, :]).ravel(),
            block_start=np.append((rows + seed.block_start[None, :-1].astype(np.int64)).ravel(), order * size),
            dep_start=starts(np.tile(seed.num_dependencies, order)),
            deps=(rows + last[self.message[seed.deps]]).ravel(), name=seed.name, scheduler=seed.scheduler,
            placed=False, **columns,
        )  # fmt: skip


#: programs of all ranks, or of the first ranks and a group
AnyProgram: TypeAlias = Program | SymmetricProgram
