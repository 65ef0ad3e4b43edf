"""Brute force: does a one-sided program compute what its collective promises, whatever the timing?

Shares nothing with the verifier: only the notes on the executor were used. Threads of all blocks of all ranks go on at
random, an element at a time; launches of ranks follow each other without waiting for others; a write is seen by others
at any time until a signal publishes it. One run that hangs or ends with a wrong number condemns the program; runs that
all end well acquit it of nothing but those orders.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from collc.ir.one_sided import Item, OneSided, Op, Operation

__all__ = ["Wrong", "judge", "run"]

_MODULUS = 1 << 61
_MEMORY, _PORT, _SWITCH = 0, 1, 2
_INPUT, _OUTPUT, _SCRATCH = range(3)

Address = tuple[int, str, int]  # rank, space, element


class Wrong(Exception):
    """A run hangs or ends with a wrong number."""


def judge(program: OneSided, runs: int, seed: int = 0, **options: int) -> str:
    """Return what goes wrong in some of the runs, "" if nothing does."""
    for number in range(runs):
        try:
            run(program, random.Random(seed * 1_000_003 + number), **options)
        except Wrong as wrong:
            return str(wrong)
    return ""


def run(
    program: OneSided, chance: random.Random, *, launches: int = 3, threads: int = 2, elements: int = 4, turns: int = 2,
    width: int = 0,
) -> None:  # fmt: skip
    """Run launches once, in a random order; raise Wrong.

    Every loop takes ``turns`` equal turns. With a ``width`` of elements in bytes, its turns are slices of its bytes.
    """
    _Machine(program, chance, launches, threads, elements, turns, width).run()


def _turns(program: OneSided, elements: int, turns: int, width: int) -> list[int]:
    """Return the turns of each loop."""
    loops = zip(program.loop_unit.tolist(), program.loop_chunks.tolist(), strict=True)
    return [-(-count * elements * width // unit) if width else turns for unit, count in loops]


def _expanded(program: OneSided, turns: list[int]) -> list[tuple[int, list[tuple[Operation, int, int]]]]:
    """Return the rank and the operations of each block, with the turn and turns of its loop for each."""
    operations, starts = program.operations(), program.block_start.tolist()
    found = []
    for block, rank in enumerate(program.block_rank.tolist()):
        rows, listed = operations[starts[block] : starts[block + 1]], []
        while rows:
            count = 1
            while rows[0].loop >= 0 and count < len(rows) and rows[count].loop == rows[0].loop:
                count += 1
            times = turns[rows[0].loop] if rows[0].loop >= 0 else 1
            listed += [(row, turn, times) for turn in range(times) for row in rows[:count]]
            rows = rows[count:]
        found.append((rank, listed))
    return found


class _Thread:
    """Thread ``number`` of a block: its place in the block's operations, and its writes that others may not see."""

    def __init__(self, block: _Block, number: int):
        self.block, self.number = block, number
        self.pending: list[tuple[Address, Any]] = []
        self.reset()

    def reset(self) -> None:
        self.at, self.queue, self.arrived, self.asked = 0, None, False, False


class _Block:
    def __init__(self, number: int, rank: int, rows: list[tuple[Operation, int, int]], threads: int):
        self.number, self.rank, self.rows = number, rank, rows
        self.met: list[tuple[Address, Any]] = []  # writes that all threads of the block see
        self.threads = [_Thread(self, k) for k in range(threads)]


class _Machine:
    def __init__(self, program, chance, launches, threads, elements, turns, width):
        self.program, self.chance, self.launches = program, chance, launches
        self.elements, self.width = elements, width
        listed = _expanded(program, _turns(program, elements, turns, width))
        most = max([threads, *(len(row[0].links) for _, rows in listed for row in rows)])
        self.blocks = [_Block(k, rank, rows, most) for k, (rank, rows) in enumerate(listed)]
        self.threads = most
        self.memory: dict[Address, Any] = {}
        self.channels = program.channels
        self.inbound: dict[int, int] = defaultdict(int)
        self.expected: dict[int, int] = defaultdict(int)
        self.semaphores = program.semaphore_value.tolist()
        self.barriers: dict[tuple[int, int], list[Any]] = defaultdict(list)
        self.posts: dict[int, list[Any]] = defaultdict(list)
        self.launch = [0] * program.num_ranks
        self.state = ["user"] * program.num_ranks
        self.inputs: dict[tuple[int, int, int], int] = {}
        for rank in range(program.num_ranks):
            for k in range(self._user_size(rank)):
                self.memory[rank, "user", k] = self._junk()

    def _junk(self) -> int:
        return self.chance.randrange(_MODULUS)

    # ---- places

    def _user_size(self, rank: int) -> int:
        into, out = int(self.program.inputs[rank]), int(self.program.outputs[rank])
        both = max(into, out) if self._aliased(rank) else into + out
        return both * self.elements

    def _aliased(self, rank: int) -> bool:
        program = self.program
        return (
            program.inplace and program.collective.pre is None and min(program.inputs[rank], program.outputs[rank]) > 0
        )

    def _base(self, rank: int, buffer: int) -> int:
        """Return the first chunk of an input or output in the user's memory."""
        program = self.program
        into, out = int(program.inputs[rank]), int(program.outputs[rank])
        if not self._aliased(rank):
            return 0 if buffer == _INPUT else into
        members = program.collective.ranks.tolist()
        own = members.index(rank) * program.chunks if rank in members else 0
        own = min(own, abs(into - out))
        small = _INPUT if into < out else _OUTPUT if out < into else -1
        return own if buffer == small else 0

    def _address(self, rank: int, buffer: int, chunk: int, element: int, packet: bool) -> Address:
        k = chunk * self.elements + element
        if buffer == _SCRATCH:
            space = "packets" if packet else "scratch"
            if self.program.double_scratch:
                space += str(self.now % 2)
            return rank, space, k
        return rank, "user", self._base(rank, buffer) * self.elements + k

    # ---- running

    def run(self) -> None:
        """Let agents go on at random. Now and then some of them stop for a while, as slow threads and ranks do."""
        quiet, left, slow = 0, 0, set[Any]()
        while agents := self._agents():
            if left <= 0 or quiet > 2:
                left, slow = self.chance.randrange(1, 60), self._slow(agents) if quiet <= 2 else set()
            left -= 1
            moved = False
            self.chance.shuffle(agents)
            for rank, key, agent in agents:
                if rank in slow or key in slow:
                    continue
                for _ in range(self.chance.choice((1, 1, 3, 12))):
                    if not agent():
                        break
                    moved = True
                if self.chance.random() < 0.2:
                    break
            quiet = 0 if moved else quiet + 1
            if quiet > 200:
                raise Wrong("nothing goes on")

    def _slow(self, agents: list[Any]) -> set[Any]:
        """Return the ranks, threads, proxies and pending writes that stop."""
        ranks, keys = {rank for rank, _, _ in agents}, {key for _, key, _ in agents}
        found = {rank for rank in sorted(ranks, key=str) if self.chance.random() < 0.35}
        return found | {key for key in sorted(keys, key=str) if self.chance.random() < 0.25}

    def _agents(self) -> list[Any]:
        """Return (rank, name, step) of all that can act."""
        found: list[Any] = []
        for rank, state in enumerate(self.state):
            if state == "user":
                found.append((rank, ("user", rank), lambda r=rank: self._user(r)))
            elif state == "ready":
                found.append((rank, ("start", rank), lambda r=rank: self._start(r)))
            elif state == "kernel":
                for block in self.blocks:
                    if block.rank == rank:
                        found += [
                            (rank, ("thread", block.number, t.number), lambda t=t: self._thread(t))
                            for t in block.threads
                        ]
                        found.append((rank, ("writes", block.number), lambda b=block: self._publish_one(b)))
                found.append((rank, ("end", rank), lambda r=rank: self._end(r)))
        posts = [(None, ("proxy", c), lambda c=c: self._proxy(c)) for c, posts in self.posts.items() if posts]
        return found + posts

    def _user(self, rank: int) -> bool:
        """Let the user read the output of the last launch, and write the input of the next."""
        program = self.program
        if self.state[rank] != "user" or (program.together and min(self.launch) < self.launch[rank]):
            return False
        if self.launch[rank]:
            self._compare(rank, self.launch[rank] - 1)
        if self.launch[rank] == self.launches:
            for k in range(self._user_size(rank)):
                self.memory[rank, "user", k] = self._junk()
            self.state[rank] = "gone"
            return True
        for k in range(self._user_size(rank)):
            self.memory[rank, "user", k] = self._junk()
        collective = program.collective
        shards = collective.shards_at(rank, output=False)
        for shard, slot in zip(shards.tolist(), collective.input_slots(rank, shards).tolist(), strict=True):
            if slot >= 0:
                for k in range(program.chunks * self.elements):
                    value = self._junk()
                    self.inputs[self.launch[rank], rank, shard * program.chunks * self.elements + k] = value
                    at = (self._base(rank, _INPUT) + slot * program.chunks) * self.elements + k
                    self.memory[rank, "user", at] = value
        self.state[rank] = "ready"
        return True

    def _compare(self, rank: int, launch: int) -> None:
        program, collective = self.program, self.program.collective
        shards = collective.shards_at(rank, output=True)
        size = program.chunks * self.elements
        for shard, slot in zip(shards.tolist(), collective.output_slots(rank, shards).tolist(), strict=True):
            if slot < 0:
                continue
            source = collective.source(shard)
            givers = collective.ranks.tolist() if source is None else [source]
            for k in range(size):
                due = sum(self.inputs.get((launch, giver, shard * size + k), -1) for giver in givers) % _MODULUS
                at = (self._base(rank, _OUTPUT) + slot * program.chunks) * self.elements + k
                if self.memory[rank, "user", at] != due:
                    raise Wrong(f"launch {launch}: output of shard {shard} on rank {rank} is wrong")

    def _start(self, rank: int) -> bool:
        if self.state[rank] != "ready" or (self.program.together and not self._all_ready(rank)):
            return False
        self.state[rank] = "kernel"
        for block in self.blocks:
            if block.rank == rank:
                for thread in block.threads:
                    thread.reset()
        return True

    def _all_ready(self, rank: int) -> bool:
        """Return whether no rank is still before the launch that a rank begins."""
        launch = self.launch[rank]
        return all(n > launch or (n == launch and s != "user") for s, n in zip(self.state, self.launch, strict=True))

    def _end(self, rank: int) -> bool:
        if self.state[rank] != "kernel":
            return False
        mine = [block for block in self.blocks if block.rank == rank]
        if any(thread.at < len(block.rows) for block in mine for thread in block.threads):
            return False
        for block in mine:
            self._publish(block)
        self.launch[rank] += 1
        self.state[rank] = "user"
        return True

    # ---- memory

    def _read(self, thread: _Thread, address: Address) -> Any:
        for pending in (thread.pending, thread.block.met):
            for where, value in reversed(pending):
                if where == address:
                    return value
        return self.memory.get(address, 0)

    def _publish(self, block: _Block, thread: _Thread | None = None) -> None:
        """Make writes visible to all: those before the last nop, and those of one thread (or of all)."""
        for where, value in block.met:
            self.memory[where] = value
        block.met.clear()
        for one in block.threads if thread is None else [thread]:
            for where, value in one.pending:
                self.memory[where] = value
            one.pending.clear()

    def _publish_one(self, block: _Block) -> bool:
        """Let one write, any that is the first of its address, become visible."""
        lists = [pending for pending in (block.met, *(t.pending for t in block.threads)) if pending]
        if not lists or self.chance.random() < 0.6:
            return False
        pending = self.chance.choice(lists)
        where = self.chance.choice(pending)[0]
        if pending is not block.met and any(at == where for at, _ in block.met):
            return False
        k = next(k for k, (at, _) in enumerate(pending) if at == where)
        self.memory[where] = pending.pop(k)[1]
        return True

    # ---- threads

    def _thread(self, thread: _Thread) -> bool:
        """Go one step on; return whether anything happened."""
        block = thread.block
        if thread.at >= len(block.rows) or self.state[block.rank] != "kernel":
            return False
        operation, turn, turns = block.rows[thread.at]
        self.now = self.launch[block.rank]
        if operation.op in (Op.NOP, Op.BARRIER):
            return self._meet(thread, operation)
        if thread.queue is None:
            thread.queue = self._steps(thread, operation, turn, turns)
        if not thread.queue:
            thread.queue, thread.asked, thread.arrived = None, False, False
            thread.at += 1
            return True
        if thread.queue[0]():
            thread.queue.pop(0)
            return True
        return False

    def _meet(self, thread: _Thread, operation: Operation) -> bool:
        if thread.arrived:
            return False
        thread.arrived = True
        block = thread.block
        if not all(other.arrived and other.at == thread.at for other in block.threads):
            return True
        if operation.op is Op.NOP or operation.blocks == 1:
            self._pass([block])
            return True
        here = self.barriers[block.rank, operation.number]
        here.append(block)
        if len(here) == operation.blocks:
            for other in here:
                self._gather(other)
                self._publish(other)
            self._pass(here)
            here.clear()
        return True

    def _gather(self, block: _Block) -> None:
        for thread in block.threads:
            block.met += thread.pending
            thread.pending.clear()

    def _pass(self, blocks: list[_Block]) -> None:
        for block in blocks:
            self._gather(block)
            for thread in block.threads:
                thread.arrived = False
                thread.at += 1

    def _steps(self, thread: _Thread, operation: Operation, turn: int, turns: int) -> list[Any]:
        op, k = operation.op, thread.number
        mine = k < len(operation.links)
        link = operation.links[k] if mine else -1
        if op in (Op.SIGNAL, Op.RLXSIGNAL):
            relaxed = op is Op.RLXSIGNAL and operation.transport == _MEMORY
            return [lambda: self._signal(thread, link, relaxed)] if mine else []
        if op in (Op.WAIT, Op.RLXWAIT):
            return [lambda: self._wait(thread, link)] if mine else []
        if op is Op.SEM_RELEASE:
            return [lambda: self._release(thread, link)] if mine else []
        if op is Op.SEM_ACQUIRE:
            return [lambda: self._acquire(thread, link)] if mine else []
        if op is Op.FLUSH:
            return [lambda: self._flushed(link)] if mine and k < len(operation.dst) else []
        if operation.transport == _PORT and op in (Op.PUT, Op.PWS, Op.PWSF, Op.PPKT):
            if not mine:
                return []
            steps = [lambda: self._post(thread, link, self._pairs(operation, k, turn, turns, op is Op.PPKT))]
            if op in (Op.PWS, Op.PWSF):
                steps.append(lambda: self._signal(thread, link, False))
            if op is Op.PWSF:
                steps.append(lambda: self._flushed(link))
            return steps
        return self._elements(thread, operation, turn, turns)

    # ---- channels

    def _partner(self, link: int) -> int:
        me = self.channels[link]
        ordinal = sum(c[:3] == me[:3] for c in self.channels[:link])
        back = [k for k, c in enumerate(self.channels) if c[:3] == (me.peer, me.rank, me.transport)]
        return back[ordinal] if ordinal < len(back) else -1

    def _signal(self, thread: _Thread, link: int, relaxed: bool) -> bool:
        if not relaxed:
            self._publish(thread.block, thread)
        if self.channels[link].transport == _PORT:
            self.posts[link].append(None)
        else:
            self.inbound[self._partner(link)] += 1
        return True

    def _wait(self, thread: _Thread, link: int) -> bool:
        if not thread.asked:
            thread.asked = True
            self.expected[link] += 1
            thread.due = self.expected[link]
        if self.inbound[link] < thread.due:
            return False
        thread.asked = False
        return True

    def _release(self, thread: _Thread, link: int) -> bool:
        self._publish(thread.block, thread)
        self.semaphores[link] += 1
        return True

    def _acquire(self, thread: _Thread, link: int) -> bool:
        if not thread.asked:
            thread.asked = True
            self.semaphores[link] -= 1
        if self.semaphores[link] < 0:
            return False
        thread.asked = False
        return True

    def _post(self, thread: _Thread, link: int, pairs: list[tuple[Address, Address]]) -> bool:
        self._publish(thread.block, thread)
        self.posts[link].append(pairs)
        return True

    def _flushed(self, link: int) -> bool:
        return not self.posts[link]

    def _proxy(self, link: int) -> bool:
        """Let the proxy of a port do one thing: it copies some elements, or passes a signal on."""
        if self.chance.random() < 0.5 or not self.posts[link]:
            return False
        first = self.posts[link][0]
        if first is None:
            self.inbound[self._partner(link)] += 1
        elif first:
            source, target = first.pop(self.chance.randrange(len(first)))
            self.memory[target] = self.memory.get(source, 0)
        if not first:
            self.posts[link].pop(0)
        return True

    # ---- elements

    def _span(self, operation: Operation, item: Item, turn: int, turns: int) -> range:
        """Return the elements of an item that an operation moves, from the item's first chunk on."""
        size = item.count * self.elements
        low, high = size * operation.share // operation.shares, size * (operation.share + 1) // operation.shares
        if operation.loop >= 0 and self.width:
            unit = int(self.program.loop_unit[operation.loop]) // self.width
            return range(unit * turn, min(unit * (turn + 1), size))
        if operation.loop >= 0:
            return range(size * turn // turns, size * (turn + 1) // turns)
        return range(low, high)

    def _places(
        self, operation: Operation, item: Item, turn: int, turns: int, packet: bool, buffer: int, offset: int
    ) -> list[list[Address]]:
        """Return for every element its address, or those of all ranks of a switch."""
        ranks = [item.rank] if item.channel < 0 else list(self.channels[item.channel].group)
        return [
            [self._address(rank, buffer, offset, k, packet) for rank in ranks]
            for k in self._span(operation, item, turn, turns)
        ]

    def _pairs(
        self, operation: Operation, k: int, turn: int, turns: int, packet: bool
    ) -> list[tuple[Address, Address]]:
        src, dst = operation.src[k], operation.dst[k]
        one = self._places(operation, src, turn, turns, packet, src.buffer, src.offset)
        other = self._places(operation, dst, turn, turns, packet, dst.buffer, dst.offset)
        return [(a[0], b[0]) for a, b in zip(one, other, strict=True)]

    def _elements(self, thread: _Thread, operation: Operation, turn: int, turns: int) -> list[Any]:
        """Return the steps of this thread's elements, in the order of items."""
        op, src, dst = operation.op, operation.src, operation.dst
        sets: list[tuple[list[Item], list[Item]]] = [(list(src), list(dst))]
        if op in (Op.PUT, Op.PWS, Op.PWSF, Op.PPKT, Op.GET):
            sets = [([a], [b]) for a, b in zip(src, dst, strict=True)]
        packets = "PKT" in op.name
        steps: list[Any] = []
        port = operation.transport == _PORT and op is Op.RPPKT
        for one, other in sets:
            reads, writes = [], []
            for k, item in enumerate(one):
                buffer, offset = item.buffer, item.offset
                if op in (Op.PUT, Op.PWS, Op.PWSF, Op.PPKT):
                    buffer = src[0].buffer
                if op is Op.GET:
                    offset = other[0].offset
                slot = op in (Op.UPKT, Op.RPPKT, Op.GSTOREPKT) or (packets and op not in (Op.PPKT, Op.CPKT) and k > 0)
                reads.append((slot, self._places(operation, item, turn, turns, slot, buffer, offset)))
            for k, item in enumerate(other):
                offset = one[0].offset if op is Op.GET else item.offset
                slot = op in (Op.PPKT, Op.CPKT, Op.RPPKT, Op.GSTOREPKT) or (
                    op in (Op.RESPKT, Op.RECPKT, Op.RECSPKT) and k > 0
                )
                writes.append((slot, self._places(operation, item, turn, turns, slot, item.buffer, offset)))
            count = len(reads[0][1])
            for element in range(count):
                owner = element if packets else element // 2
                if owner % self.threads == thread.number:
                    steps.append(
                        lambda e=element, r=reads, w=writes: self._element(
                            thread, [(s, p[e]) for s, p in r], [] if port else [(s, p[e]) for s, p in w]
                        )
                    )
        if port:
            steps.append(lambda: self._arrive(thread))
            if thread.number < len(operation.links):
                link, number = operation.links[thread.number], thread.number
                target = dst[number]
                pairs = [
                    (a[0], b[0])
                    for a, b in zip(
                        self._places(operation, src[0], turn, turns, True, src[0].buffer, src[0].offset),
                        self._places(operation, target, turn, turns, True, target.buffer, target.offset),
                        strict=True,
                    )
                ]
                steps.append(lambda: self._post(thread, link, pairs))
        return steps

    def _arrive(self, thread: _Thread) -> bool:
        """Meet the other threads of the block inside an operation."""
        thread.arrived = True
        if all(t.at > thread.at or (t.at == thread.at and t.arrived) for t in thread.block.threads):
            self._gather(thread.block)
            return True
        return False

    def _element(
        self, thread: _Thread, reads: list[tuple[bool, list[Address]]], writes: list[tuple[bool, list[Address]]]
    ) -> bool:
        total = 0
        for slot, addresses in reads:
            for address in addresses:
                value = self._read(thread, address)
                if slot:
                    if not isinstance(value, tuple) or value[1] != self.now + 1:
                        return False
                    value = value[0]
                total += value if isinstance(value, int) else self._junk()
        total %= _MODULUS
        for slot, addresses in writes:
            for address in addresses:
                value = (total, self.now + 1) if slot else total
                if len(addresses) > 1:  # a switch stores past the caches
                    self.memory[address] = value
                else:
                    thread.pending.append((address, value))
        return True
