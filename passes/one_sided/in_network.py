"""Lower an in-network schedule: switches add and multicast what ranks let them, by the operations that a runtime has.

A cell is an interval of a shard that every transfer moves as a whole or not at all. The events of a cell are bundles of
transfers (:mod:`collc.ir.bundles`) through a switch that joins its ranks directly, and single transfers. A sum to one
rank that the rank only passes on to the same ranks is one operation (``glres``): a load that the switch adds, and a
store that it multicasts. A bundle of copies is a multicast store (``gstore``). Runtimes have no sum by a switch without
a store. There a rank reads its peers' inputs and adds them itself, or the switch stores the sum in scratch of the rank
and of one other, whichever loads the busiest link less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import gcd
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.diagnostic import Subject, error
from collc.ir.frozen import frozen
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import Channel, Item, OneSided, Operation, Transport
from collc.ir.program import Buffer
from collc.ir.schedule import Action, Schedule

from ..base import Pass, remark
from ..ranges import Range
from .crossings import Crossings
from .nops import with_nops

__all__ = ["SwitchOperations", "plan_time"]

#: channels of one signal or wait, and sources of one sum besides the rank's own
_MOST = 7


@frozen
class SwitchOperations(Pass):
    """Lower an in-network schedule to operations of switches, puts and signals (mscclpp notes, section 6).

    Each rank has one block. It executes step after step: it waits for what came in the step before, adds it, and sends.
    If switches do everything in one operation for each cell, steps have no meaning, and cells that are adjacent become
    one. Raises C0578 for a schedule that shares links in no switch of single ranks.
    """

    name: ClassVar[str] = "switch-operations"
    summary: ClassVar[str] = "lower an in-network schedule to operations of switches, puts and signals"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = OneSided

    ranks_per_node: int | None = attrs.field(
        default=None, metadata={"help": "ranks of a node, which share memory (default: all)", "range": Range(1)}
    )
    inplace: bool = attrs.field(default=False, metadata={"help": "serve calls in place, not out of place"})

    def run(self, ir: Schedule) -> OneSided:
        return with_nops(self._faster(ir).program())

    def _faster(self, ir: Schedule) -> _Lowering:
        per_node = self.ranks_per_node or ir.topology.num_ranks
        reads = _Lowering(ir, per_node, self.inplace)
        if not reads.reads_peers:
            return reads
        stores = _Lowering(ir, per_node, self.inplace, stores_sums=True)
        return stores if stores.crossings.time() < reads.crossings.time() else reads


def plan_time(schedule: Schedule) -> Fraction:
    """Return the time per byte (and unit of bandwidth) of an in-network schedule as a plan of MSCCL++, exact.

    It is that of the link with the largest load in all, as the time of trees in many pieces. Raises C0578 if transfers
    overlap in part.
    """
    return SwitchOperations()._faster(schedule).crossings.time() / schedule.vector


@attrs.frozen
class _Cell:
    """Chunks ``lo`` to ``hi`` (exclusive) of a shard."""

    shard: int
    lo: int
    hi: int


@attrs.frozen
class _Event:
    """``ranks`` send a cell to ``end`` in a step, which adds it; or, if it is no sum, ``end`` sends it to them.

    ``switch`` is the switch of a bundle that has all its other ranks; -1: each transfer is on its own. ``routes`` has
    the links of each rank's transfer.
    """

    step: int
    sums: bool
    end: int
    ranks: tuple[int, ...]
    switch: int = -1
    routes: tuple[tuple[int, ...], ...] = ()


class _Lowering:
    """A discrete schedule, and the operations of every rank by step.

    If it ``stores_sums``, a switch adds what one rank needs, and stores it in scratch of the rank and of another, as
    groups have two ranks at least. Otherwise the rank reads its peers' inputs.
    """

    def __init__(self, schedule: Schedule, per_node: int, inplace: bool, stores_sums: bool = False):
        self.schedule, self.per_node, self.inplace = schedule, per_node, inplace
        self.stores_sums, self.reads_peers = stores_sums, False
        self.crossings = Crossings(schedule.topology)
        c, n = schedule.collective, schedule.topology.num_ranks
        ranks, shards = np.arange(n)[:, None], np.arange(c.num_shards)[None, :]
        self.input, self.output = (slots(ranks, shards).tolist() for slots in (c.input_slots, c.output_slots))
        self.scratch, self.parts = [0] * n, schedule.parts
        self.groups = _groups(schedule)
        self._require_nodes()
        self.channels: list[Channel] = []
        self.row: dict[tuple[object, ...], int] = {}
        #: (rank, step) -> what the rank executes
        self.sent = defaultdict[tuple[int, int], list[Operation]](list)
        self.added = defaultdict[tuple[int, int], list[Operation]](list)
        #: (rank, step) -> peers that learn of its stores; (rank, step, peer) -> puts over ports that come
        self.informed = defaultdict[tuple[int, int], set[int]](set)
        self.posted = defaultdict[tuple[int, int], list[int]](list)
        self.steps = self._follow(_events(schedule, self.groups))

    def _follow(self, cells: dict[_Cell, list[_Event]]) -> int:
        """Add the operations of all cells, and return the number of steps that they have."""
        fused = {cell: event for cell, events in cells.items() if (event := self._fused(events)) is not None}
        for cell in fused:
            for event in cells[cell]:
                self.crossings.shared(event.routes, cell.hi - cell.lo)
        if len(fused) == len(cells):
            for cell, event in self._coarser(dict(_adjacent(fused))).items():
                self._load_reduce(cell, event, 0)
            return 0
        for cell, events in cells.items():
            if cell in fused:
                self._load_reduce(cell, fused[cell], fused[cell].step)
            else:
                _Values(self, cell).follow(events)
        return self.schedule.num_steps

    def program(self) -> OneSided:
        if self.reads_peers:
            remark(
                "switch-operations: ranks read and add what switches could add: the runtime has no sum without a store"
            )
        elif self.stores_sums:
            remark("switch-operations: switches store sums in scratch of two ranks: the runtime has no sum without it")
        return self._built(self.steps)

    def _coarser(self, cells: dict[_Cell, _Event]) -> dict[_Cell, _Event]:
        """Return the cells in the largest chunks that hold them, which become the program's."""
        common = gcd(self.parts, *(end for cell in cells for end in (cell.lo, cell.hi)))
        self.parts //= common
        return {_Cell(cell.shard, cell.lo // common, cell.hi // common): event for cell, event in cells.items()}

    def _require_nodes(self) -> None:
        for group in self.groups.values():
            if len({rank // self.per_node for rank in group}) > 1:
                found = f"`ranks-per-node={self.per_node}` divides ranks {group[0]} to {group[-1]} of a switch"
                hint = "give a number of ranks that keeps the ranks of a switch together"
                raise error("C0578", found, hint=hint, about=(Subject.TOPOLOGY,))

    # ---- sums and stores by one operation of a switch

    def _fused(self, events: Sequence[_Event]) -> _Event | None:
        """Return the event of a cell that one operation of a switch does: a sum and a store, or a store by itself."""
        if any(event.switch < 0 for event in events):
            return None
        single = len(events) == 1 and not events[0].sums
        if single or (
            len(events) == 2 and events[0].sums and not events[1].sums
            and (events[0].end, events[0].switch) == (events[1].end, events[1].switch)
        ):  # fmt: skip
            return events[0]
        return None

    def _load_reduce(self, cell: _Cell, event: _Event, step: int) -> None:
        rank, group, size = event.end, self.groups[event.switch], cell.hi - cell.lo
        to = self._behind(rank, group, Item(rank, Buffer.OUTPUT, self._place(self.output, rank, cell), size))
        here = Item(rank, Buffer.INPUT, self._place(self.input, rank, cell), size)
        if event.sums:
            source = self._behind(rank, group, here)
            self.sent[rank, step].append(Operation(Op.GLRES, Transport.SWITCH, (), (source,), (to,)))
        else:
            self.sent[rank, step].append(Operation(Op.GSTORE, Transport.SWITCH, (), (here,), (to,)))
        self.informed[rank, step].update(event.ranks)

    # ---- places and channels

    def _place(self, slots: list[list[int]], rank: int, cell: _Cell) -> int:
        return slots[rank][cell.shard] * self.parts + cell.lo

    def _behind(self, rank: int, group: tuple[int, ...], item: Item) -> Item:
        """Return an item as the switch of a group has it. All ranks of the group have a channel: it needs them all."""
        buffer = Buffer(item.buffer)
        for each in group:
            self._channel((each, group, buffer), Channel(each, -1, Transport.SWITCH, buffer, group))
        return item._replace(channel=self.row[rank, group, buffer])

    def _channel(self, key: tuple[object, ...], channel: Channel) -> int:
        if key not in self.row:
            self.row[key] = len(self.channels)
            self.channels.append(channel)
        return self.row[key]

    def transport(self, rank: int, peer: int) -> Transport:
        """Return how a rank reaches another."""
        return Transport.MEMORY if rank // self.per_node == peer // self.per_node else Transport.PORT

    def link(self, owner: int, sender: int, receiver: int) -> int:
        """Return a rank's channel for messages from one rank to another, of which it is one.

        Ports have a channel for each direction: signals and posts of one channel are not flushed alike.
        """
        transport = self.transport(sender, receiver)
        ends = (sender, receiver) if transport == Transport.PORT else (min(sender, receiver), max(sender, receiver))
        for rank, peer in (ends, ends[::-1]):
            self._channel((*ends, rank), Channel(rank, peer, transport))
        return self.row[(*ends, owner)]

    def room(self, ranks: Sequence[int], cell: _Cell) -> int:
        """Return where new chunks begin in the scratch of ranks, the same place for all."""
        start = max(self.scratch[rank] for rank in ranks)
        for rank in ranks:
            self.scratch[rank] = start + cell.hi - cell.lo
        return start

    def own_room(self, rank: int, cell: _Cell) -> Item:
        """Return new chunks in a rank's scratch."""
        return Item(rank, Buffer.SCRATCH, self.room((rank,), cell), cell.hi - cell.lo)

    # ---- the whole

    def _built(self, steps: int) -> OneSided:
        s, c = self.schedule, self.schedule.collective
        members, each = set(c.ranks.tolist()), [self._block(rank, steps) for rank in range(c.num_ranks)]
        blocks = [(rank, block) for rank, block in enumerate(each) if block or rank in members]
        order = sorted(range(len(self.channels)), key=lambda row: (self.channels[row].rank, row))
        place = {row: new for new, row in enumerate(order)}
        sizes = [max(1, *((max(row) + 1) * self.parts for row in slots)) for slots in (self.input, self.output)]
        return OneSided.build(
            c, self.parts, [(sizes[0], sizes[1], max(self.scratch))] * c.num_ranks,
            [self.channels[row] for row in order],
            [(rank, [_renumbered(operation, place) for operation in block]) for rank, block in blocks],
            inplace=self.inplace, together=True, name=f"{c.name}_{s.scheduler}", scheduler=s.scheduler,
        )  # fmt: skip

    def _block(self, rank: int, steps: int) -> list[Operation]:
        found = list[Operation]()
        for step in range(steps + 1):
            if step:
                found += self._waits(rank, step - 1)
            found += self.added[rank, step]
            found += self.sent[rank, step]
            found += self._signals(rank, step)
        found += self._waits(rank, steps)
        return found

    def _signals(self, rank: int, step: int) -> Iterator[Operation]:
        yield from _linked(
            Op.SIGNAL, Transport.MEMORY, [self.link(rank, rank, peer) for peer in sorted(self.informed[rank, step])]
        )

    def _waits(self, rank: int, step: int) -> Iterator[Operation]:
        ranks = range(self.schedule.topology.num_ranks)
        tellers = [peer for peer in ranks if rank in self.informed.get((peer, step), ())]
        yield from _linked(Op.WAIT, Transport.MEMORY, [self.link(rank, peer, rank) for peer in tellers])
        for peer in self.posted.get((rank, step), ()):
            yield Operation(Op.WAIT, Transport.PORT, (self.link(rank, peer, rank),))


def _linked(op: Op, transport: Transport, links: Sequence[int]) -> Iterator[Operation]:
    for first in range(0, len(links), _MOST):
        yield Operation(op, transport, tuple(links[first : first + _MOST]))


def _renumbered(operation: Operation, place: dict[int, int]) -> Operation:
    """Return an operation with the new numbers of its channels."""
    src, dst = (
        tuple(item if item.channel < 0 else item._replace(channel=place[item.channel]) for item in side)
        for side in (operation.src, operation.dst)
    )
    return operation._replace(links=tuple(place[link] for link in operation.links), src=src, dst=dst)


# ---- cells and events


def _groups(schedule: Schedule) -> dict[int, tuple[int, ...]]:
    """Return the members that each switch which multicasts joins directly: runtimes let it join any ranks."""
    t, members = schedule.topology, set(schedule.collective.ranks.tolist())
    found = {}
    for switch in t.multicast:
        near = [{int(a) for a in ends[other == switch]} for ends, other in ((t.src, t.dst), (t.dst, t.src))]
        found[switch] = tuple(sorted(near[0] & near[1] & members))
    return found


def _events(schedule: Schedule, groups: dict[int, tuple[int, ...]]) -> dict[_Cell, list[_Event]]:
    """Return the events of every cell in order; raise C0578 if intervals overlap in part."""
    t = schedule.topology
    able = {False: set(t.multicast), True: set(t.multicast) & set(t.reduces)}
    links = [tuple(schedule.routes.links_of(route)) for route in range(len(schedule.routes))]
    found = defaultdict[_Cell, dict[tuple[int, bool, int, int], list[tuple[int, tuple[int, ...]]]]](dict)
    columns = (schedule.step, schedule.action, schedule.shard, schedule.lo, schedule.hi, schedule.src, schedule.dst)
    rows = zip(*(column.tolist() for column in (*columns, schedule.route)), strict=True)
    for step, action, shard, lo, hi, src, dst, route in rows:
        sums = action == Action.REDUCE
        middle = int(t.dst[links[route][0]]) if len(links[route]) == 2 else -1
        switch = middle if middle in able[sums] else -1
        end, other = (dst, src) if sums else (src, dst)
        found[_Cell(shard, lo, hi)].setdefault((step, sums, end, switch), []).append((other, links[route]))
    _require_apart(found)
    return {
        cell: [
            _event(step, sums, end, sorted(sent), switch, groups.get(switch, ()))
            for (step, sums, end, switch), sent in sorted(events.items(), key=_turn)
        ]
        for cell, events in sorted(found.items(), key=lambda one: (one[0].shard, one[0].lo))
    }


def _event(
    step: int, sums: bool, end: int, sent: Sequence[tuple[int, tuple[int, ...]]], switch: int, group: Sequence[int]
) -> _Event:  # fmt: skip
    ranks = tuple(rank for rank, _ in sent)
    return _Event(step, sums, end, ranks, _whole(group, end, ranks, switch), tuple(route for _, route in sent))


def _pair(group: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return a rank of a group with a second one. All ranks are in one such pair, or three if their number is odd."""
    first = min(group.index(rank) // 2 * 2, len(group) // 2 * 2 - 2)
    return tuple(group[first:] if first + 3 == len(group) else group[first : first + 2])


def _turn(event: tuple[tuple[int, bool, int, int], object]) -> tuple[int, bool, bool, int, int]:
    """Return the place of an event: in a step switches come first, which read what ranks had before it."""
    step, sums, end, switch = event[0]
    return step, sums, switch < 0, end, switch


def _whole(group: Sequence[int], end: int, ranks: Sequence[int], switch: int) -> int:
    """Return the switch if a bundle has all its ranks, and each once."""
    return switch if sorted([*ranks, end]) == list(group) and len(group) > 2 else -1


def _require_apart(cells: Iterable[_Cell]) -> None:
    ordered = sorted(cells, key=lambda cell: (cell.shard, cell.lo, cell.hi))
    for one, other in pairwise(ordered):
        if one.shard == other.shard and other.lo < one.hi:
            message = f"transfers of shard {one.shard} overlap in part, so they share no operation of a switch"
            hint = "use `forest`, whose transfers move whole intervals"
            raise error("C0578", message, hint=hint, about=(Subject.TOPOLOGY,))


def _adjacent(cells: dict[_Cell, _Event]) -> Iterator[tuple[_Cell, _Event]]:
    """Yield cells with their events; those that follow each other and have one switch and rank are one."""
    last: tuple[_Cell, _Event] | None = None
    for cell, event in cells.items():
        if last is not None and _follows(*last, cell, event):
            last = attrs.evolve(last[0], hi=cell.hi), last[1]
            continue
        if last is not None:
            yield last
        last = cell, event
    if last is not None:
        yield last


def _follows(one: _Cell, before: _Event, other: _Cell, after: _Event) -> bool:
    same = attrs.evolve(after, step=before.step) == before
    return same and (one.shard, one.hi) == (other.shard, other.lo)


class _Values:
    """Where the ranks hold a cell, event after event."""

    def __init__(self, lowering: _Lowering, cell: _Cell):
        self.all, self.cell = lowering, cell
        self.at: dict[int, Item] = {}
        for rank, slots in enumerate(lowering.input):
            if slots[cell.shard] >= 0:
                start = lowering._place(lowering.input, rank, cell)
                self.at[rank] = Item(rank, Buffer.INPUT, start, cell.hi - cell.lo)
        self.first = dict(self.at)

    def follow(self, events: Sequence[_Event]) -> None:
        """Add the operations of all events."""
        sends = {event.end for event in events if not event.sums and event.switch >= 0}
        stored = set[int]()
        for event in events:
            if event.sums and event.switch >= 0 and all(self.at[r] == self.first[r] for r in (event.end, *event.ranks)):
                self._sum(event)
            elif event.sums:
                self._collect(event)
            elif event.switch >= 0:
                self._multicast(event)
                stored.update((event.end, *event.ranks))
            else:
                self.all.crossings.alone(event.routes, self.cell.hi - self.cell.lo)
                for rank in event.ranks:
                    self._copy(event, rank, rank in sends)
                    stored.update({rank} - sends)
        self._keep(stored, events)

    def _sum_into(self, rank: int) -> Item:
        """Return where a rank keeps a sum: in scratch, from where it can be sent on and stored in every output."""
        here = self.at[rank]
        return here if here.buffer == Buffer.SCRATCH else self.all.own_room(rank, self.cell)

    def _sum(self, event: _Event) -> None:
        """Let a rank have the sum of what all ranks of a switch have as inputs."""
        if self.all.stores_sums:
            self._store_sum(event)
        else:
            self._pull(event)

    def _store_sum(self, event: _Event) -> None:
        """Let the switch store the sum in scratch. The signal after it makes later steps find the sum there."""
        pair = _pair(self.all.groups[event.switch], event.end)
        room, size = self.all.room(pair, self.cell), self.cell.hi - self.cell.lo
        source = self.all._behind(event.end, self.all.groups[event.switch], self.first[event.end])
        to = self.all._behind(event.end, pair, Item(event.end, Buffer.SCRATCH, room, size))
        self.all.sent[event.end, event.step].append(Operation(Op.GLRES, Transport.SWITCH, (), (source,), (to,)))
        self.all.informed[event.end, event.step].update(set(pair) - {event.end})
        self.at[event.end] = Item(event.end, Buffer.SCRATCH, room, size)
        self.all.crossings.shared(event.routes, size)
        self.all.crossings.stored(event.end, event.switch, pair, size)

    def _pull(self, event: _Event) -> None:
        """Let a rank add what its peers' inputs hold."""
        self.all.reads_peers = True
        self.all.crossings.alone(event.routes, self.cell.hi - self.cell.lo)
        to = self._sum_into(event.end)
        sources = [self.first[rank] for rank in event.ranks]
        for first in range(0, len(sources), _MOST):
            src = (self.at[event.end], *sources[first : first + _MOST])
            self.all.sent[event.end, event.step].append(Operation(Op.RRE, Transport.MEMORY, (), src, (to,)))
            self.at[event.end] = to

    def _collect(self, event: _Event) -> None:
        """Let ranks put their sums into scratch of one, which adds them in the next step."""
        self.all.crossings.alone(event.routes, self.cell.hi - self.cell.lo)
        to, slots = self._sum_into(event.end), []
        for rank in event.ranks:
            slots.append(self.all.own_room(event.end, self.cell))
            self._put(rank, self.at[rank], slots[-1], event.step)
        for first in range(0, len(slots), _MOST):
            src = (self.at[event.end], *slots[first : first + _MOST])
            self.all.added[event.end, event.step + 1].append(Operation(Op.RE, src=src, dst=(to,)))
            self.at[event.end] = to

    def _multicast(self, event: _Event) -> None:
        to = self.all._behind(event.end, self.all.groups[event.switch], self._out(event.end))
        self.all.crossings.shared(event.routes, self.cell.hi - self.cell.lo)
        self.all.sent[event.end, event.step].append(
            Operation(Op.GSTORE, Transport.SWITCH, (), (self.at[event.end],), (to,))
        )
        self.all.informed[event.end, event.step].update(event.ranks)
        for rank in event.ranks:
            self.at[rank] = self._out(rank)

    def _copy(self, event: _Event, rank: int, passes_on: bool) -> None:
        to = self.all.own_room(rank, self.cell) if passes_on else self._out(rank)
        self._put(event.end, self.at[event.end], to, event.step)
        self.at[rank] = to

    def _out(self, rank: int) -> Item:
        where = self.all._place(self.all.output, rank, self.cell)
        return Item(rank, Buffer.OUTPUT, where, self.cell.hi - self.cell.lo)

    def _put(self, rank: int, source: Item, to: Item, step: int) -> None:
        channel, transport = self.all.link(rank, rank, to.rank), self.all.transport(rank, to.rank)
        if transport == Transport.PORT:
            self.all.sent[rank, step].append(Operation(Op.PWS, transport, (channel,), (source,), (to,)))
            self.all.posted[to.rank, step].append(rank)
            self.all.sent[rank, step].append(Operation(Op.FLUSH, transport, (channel,), (), (source,)))
        else:
            self.all.sent[rank, step].append(Operation(Op.PUT, transport, (), (source,), (to,)))
            self.all.informed[rank, step].add(to.rank)

    def _keep(self, stored: set[int], events: Sequence[_Event]) -> None:
        """Let ranks whose result no other rank stores copy it into their output."""
        for rank, here in self.at.items():
            if rank not in stored and self.all.output[rank][self.cell.shard] >= 0:
                last = max(event.step for event in events) + 1
                self.all.added[rank, last].append(Operation(Op.COPY, src=(here,), dst=(self._out(rank),)))
