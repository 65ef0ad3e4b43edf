"""Brute force on plans of MSCCL++: runs the JSON as the runtime's kernel does, thread by thread, in random orders.

It is written from the description of the format alone and shares nothing with the verifier. Numbers move through the
buffers of all ranks over several launches, which ranks begin and end on their own. A write is seen by its thread at
once, by its block after a join of its threads, by its rank after a barrier or semaphore, by peers after a signal; or
earlier, at any time. A wrong sum, a chunk that was not replaced, a launch that never ends, or an access outside a
buffer is a problem. So is a file that the runtime cannot load.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from math import lcm
from typing import Any

__all__ = ["judge", "judge_folder", "unloadable"]

Json = dict[str, Any]  # Any: values of JSON
Condition = Callable[[], bool]
#: an array, and a place in it
Cell = tuple[str, int, int]
Thread = Iterator[Condition | None]

_PACKET_OPS = frozenset(["ppkt", "rppkt", "respkt", "cpkt", "upkt", "repkt", "recpkt", "recspkt"])
_NAMES = _PACKET_OPS | {
    "nop", "barrier", "put", "pws", "pwsf", "get", "copy", "signal", "wait", "flush", "re", "res", "rre", "rres",
    "glres", "gstore", "rlxsignal", "rlxwait", "pipeline", "sem_acquire", "sem_release",
}  # fmt: skip
_MODULUS = (1 << 61) - 1


class Wrong(Exception):
    """What goes wrong in a run."""


# ---- files


def unloadable(plan: Json) -> str:
    """Return why the runtime cannot load a plan, or writes past its tables; empty if it can."""
    for rank, gpu in enumerate(plan["gpus"]):
        if gpu["id"] != rank:
            return f"rank {rank} has id {gpu['id']}"
        if not gpu["input_chunks"] or not gpu["output_chunks"]:
            return f"rank {rank} divides by zero chunks"
        for number, block in enumerate(gpu["threadblocks"]):
            if found := _unloadable_block(gpu, number, block):
                return f"rank {rank}, block {number}: {found}"
    return _meeting(plan)


def _meeting(plan: Json) -> str:
    """Return which rank waits for others to bind its switch channel, which they bind one after the other.

    A rank named twice waits for a second binding of its own.
    """
    lists = [
        [
            (tuple(group["ranks"]), entry["buffer_type"])
            for entry in gpu["channels"]
            for group in entry.get("rank_groups", ())
        ]
        for gpu in plan["gpus"]
    ]
    at, moved = [0] * len(lists), True
    while moved:
        moved = False
        for rank, channels in enumerate(lists):
            if at[rank] == len(channels):
                continue
            ranks = channels[at[rank]][0]
            once = rank in ranks and len(set(ranks)) == len(ranks)
            if once and all(lists[one][at[one] : at[one] + 1] == [channels[at[rank]]] for one in ranks):
                for one in ranks:
                    at[one] += 1
                moved = True
    return "".join(f"rank {rank} waits for a switch" for rank in range(len(lists)) if at[rank] < len(lists[rank]))


def _unloadable_block(gpu: Json, number: int, block: Json) -> str:
    ops = [inner for op in block["ops"] for inner in (op, *op.get("ops", ()))]
    if block["id"] != number:
        return f"its id is {block['id']}"
    if len(ops) > 64:
        return f"{len(ops)} operations"
    width = Counter[str]()
    for entry in block["channels"]:
        width[entry["channel_type"]] += len(entry["channel_ids"])
    for entry in block.get("remote_buffer_refs", ()):
        width[entry["access_channel_type"] + " buffers"] += len(entry["remote_buffer_ids"])
    if any(count > 16 for count in width.values()):
        return "more than 16 channels or buffers"
    for op in ops:
        if op["name"] not in _NAMES:
            return f"no operation `{op['name']}`"
        if len(op.get("channel_ids", ())) > 8 or max(len(op.get(f"{s}_buff", ())) for s in ("src", "dst")) > 10:
            return f"`{op['name']}` has more items than its tables"
        if op["name"] == "barrier" and op["barrier_id"] >= 16:
            return "a barrier beyond 15"
    return ""


def judge_folder(plans: list[Json]) -> str:
    """Return why the runtime cannot choose among plans of one process; empty if it can."""
    for k, a in enumerate(plans):
        for b in plans[:k]:
            if a["inplace"] != b["inplace"]:
                return "two in-place modes"
            if a["name"] == b["name"]:
                return "one name"
            same = a["collective"] == b["collective"] and len(a["gpus"]) == len(b["gpus"])
            low = max(one.get("min_message_size", 0) for one in (a, b))
            high = min(one.get("max_message_size", 2**64 - 1) for one in (a, b))
            if same and low <= high:
                return "two plans for one call"
    return ""


# ---- runs


def judge(plan: Json, runs: int = 20, seed: int = 0, launches: int = 3, root: int = 0) -> str:
    """Return what goes wrong with a plan in some run; empty if nothing was found."""
    try:
        found = unloadable(plan)
    except (KeyError, TypeError, ValueError) as problem:
        return f"cannot be loaded: {problem!r}"
    for run in range(0 if found else runs):
        try:
            _Run(plan, random.Random(1000003 * seed + run), launches, root).run()
        except Wrong as problem:
            return str(problem)
        except (IndexError, KeyError, TypeError, ValueError) as problem:
            return f"reads past a table: {problem!r}"
    return found


class _Buffers:
    """Writes on their way to memory: those of threads, of blocks and of ranks."""

    def __init__(self) -> None:
        self.memory: dict[Cell, object] = {}
        self.levels: list[defaultdict[tuple[int, ...], dict[Cell, object]]] = [defaultdict(dict) for _ in range(3)]

    def read(self, thread: tuple[int, int, int], cell: Cell) -> object:
        for depth, level in enumerate(self.levels):
            found = level.get(thread[: 3 - depth])
            if found and cell in found:
                return found[cell]
        return self.memory.get(cell)

    def write(self, thread: tuple[int, int, int], cell: Cell, value: object) -> None:
        self.levels[0][thread][cell] = value

    def publish(self, thread: tuple[int, ...], depth: int) -> None:
        """Show what a thread wrote to its block (1), its rank (2) or all (3), and what it was shown."""
        for level in range(depth):
            found = self.levels[level].pop(thread[: 3 - level], None)
            if found:
                self._above(thread, level).update(found)

    def finish(self, rank: int) -> None:
        """Show all writes of a rank to all, as the end of a kernel does."""
        for level in range(3):
            for key in [key for key in self.levels[level] if key[0] == rank]:
                self._above(key, level).update(self.levels[level].pop(key))

    def _above(self, key: tuple[int, ...], level: int) -> dict[Cell, object]:
        return self.memory if level == 2 else self.levels[level + 1][key[: 2 - level]]

    def leak(self, luck: random.Random) -> bool:
        """Show one write early; return whether there was one."""
        pending = [(level, key) for level in range(3) for key, found in self.levels[level].items() if found]
        if not pending:
            return False
        level, key = luck.choice(pending)
        cell = luck.choice(list(self.levels[level][key]))
        self._above(key, level)[cell] = self.levels[level][key].pop(cell)
        return True


class _Run:
    """One run of all ranks over several launches in one random order."""

    def __init__(self, plan: Json, luck: random.Random, launches: int, root: int):
        self.plan, self.luck, self.launches, self.root = plan, luck, launches, root
        self.gpus, self.ranks = plan["gpus"], len(plan["gpus"])
        ops = [o for g in self.gpus for b in g["threadblocks"] for o in b["ops"] for o in (o, *o.get("ops", ()))]
        slices = lcm(1, *(op["tbg_info"]["tbg_size"] for op in ops if "tbg_info" in op))
        self.width = 2 * slices
        self.threads = max(2, *(len(op.get("channel_ids", ())) for op in ops), 2)
        self.iterations = luck.choice((1, 2))
        self.packets, self.double = plan["protocol"] == "LL", plan.get("use_double_scratch_buffer", False)
        self.buffers = _Buffers()
        self.inbound: Counter[tuple[int, str, int]] = Counter()
        self.expected: Counter[tuple[int, str, int]] = Counter()
        self.semaphores = {(r, k): s["init_value"] for r, g in enumerate(self.gpus)
                           for k, s in enumerate(g.get("semaphores", ()))}  # fmt: skip
        self.barriers: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        self.queues: defaultdict[tuple[int, int], list[Callable[[], None]]] = defaultdict(list)
        self.data: dict[tuple[int, int, int], int] = {}
        self.partners = self._partners()

    def _partners(self) -> dict[tuple[int, str, int], tuple[int, str, int]]:
        """Return the other end of each channel: the k-th from a to b pairs with the k-th from b to a."""
        ends: defaultdict[tuple[int, int, str], list[int]] = defaultdict(list)
        for rank, gpu in enumerate(self.gpus):
            number = Counter[str]()
            for entry in gpu["channels"]:
                kind = entry["channel_type"]
                for peer in entry.get("connected_to", ()):
                    ends[rank, peer, kind].append(number[kind])
                    number[kind] += 1
        found = {}
        for (rank, peer, kind), numbers in ends.items():
            for mine, other in zip(numbers, ends.get((peer, rank, kind), ()), strict=False):
                found[rank, kind, mine] = (peer, kind, other)
        return found

    def _whole(self, rank: int, buffer: str) -> int:
        """Return the elements of a buffer."""
        name = {"i": "input", "o": "output", "s": "scratch"}[buffer]
        return int(self.gpus[rank][f"{name}_chunks"]) * self.width

    # ---- places

    def cell(self, rank: int, buffer: str, element: int) -> Cell:
        """Return the cell of an element of the input or output, which overlap in place."""
        if not 0 <= element < self._whole(rank, buffer):
            raise Wrong(f"rank {rank}: element {element} is outside buffer {buffer}")
        sizes = self._whole(rank, "i"), self._whole(rank, "o")
        if not self.plan["inplace"]:
            return buffer, rank, element
        smaller = "i" if sizes[0] < sizes[1] else "o"
        begin = rank * min(sizes) if buffer == smaller and sizes[0] != sizes[1] else 0
        return "d", rank, begin + element

    def scratch(self, rank: int, element: int, halved: bool, launch: int, packet: bool) -> list[Cell]:
        """Return the cells of an element of scratch: two for a packet."""
        size = self._whole(rank, "s") * (2 if self.packets else 1)
        first = 2 * element if packet else element
        last = first + (1 if packet else 0)
        if not 0 <= first <= last < size:
            raise Wrong(f"rank {rank}: element {element} is outside scratch")
        begin = size * (launch % 2) if halved and self.double else 0
        return [("s", rank, begin + k) for k in range(first, last + 1)]

    # ---- the user

    def fill(self, rank: int, launch: int) -> None:
        """Write new input, and rubbish into an output of its own."""
        if not self.plan["inplace"]:
            for element in range(self._whole(rank, "o")):
                self.buffers.memory[self.cell(rank, "o", element)] = -1 - launch
        else:
            for element in range(max(self._whole(rank, "i"), self._whole(rank, "o"))):
                self.buffers.memory["d", rank, element] = -1 - launch
        for element in range(self._whole(rank, "i")):
            value = self.value(rank, element, launch)
            self.buffers.memory[self.cell(rank, "i", element)] = value

    def value(self, rank: int, element: int, launch: int) -> int:
        key = (rank, element, launch)
        if key not in self.data:
            self.data[key] = self.luck.randrange(_MODULUS)
        return self.data[key]

    def check(self, rank: int, launch: int) -> None:
        for element in range(self._whole(rank, "o")):
            due = self.due(rank, element, launch)
            if due is not None and self.buffers.memory.get(self.cell(rank, "o", element)) != due:
                raise Wrong(f"launch {launch}, rank {rank}: element {element} of the output is wrong")

    def due(self, rank: int, element: int, launch: int) -> int | None:
        """Return what the collective promises for an element of the output; None if nothing."""
        share = self._whole(rank, "o") // self.ranks
        match self.plan["collective"]:
            case "allreduce":
                return sum(self.value(r, element, launch) for r in range(self.ranks)) % _MODULUS
            case "allgather":
                return self.value(element // (self._whole(rank, "i")), element % self._whole(rank, "i"), launch)
            case "reducescatter":
                at = rank * self._whole(rank, "o") + element
                return sum(self.value(r, at, launch) for r in range(self.ranks)) % _MODULUS
            case "alltoall":
                return self.value(element // share, rank * share + element % share, launch)
            case "broadcast":
                return self.value(self.root, element, launch)
        return None

    # ---- running

    def run(self) -> None:
        agents: dict[object, Iterator[Condition | None]] = {r: self.rank(r) for r in range(self.ranks)}
        waits: dict[object, Condition | None] = dict.fromkeys(agents)
        self.agents, self.waits = agents, waits
        priority: defaultdict[object, float] = defaultdict(self.luck.random)
        orderly, leaky = self.luck.random() < 0.6, self.luck.choice((0.0, 0.02, 0.3))
        while agents or any(self.queues.values()):
            ready: list[object] = [key for key, until in waits.items() if until is None or until()]
            ready += [("queue", *key) for key, queue in self.queues.items() if queue]
            if not ready:
                if self.buffers.leak(self.luck):
                    continue
                raise Wrong("some launch never ends")
            if self.luck.random() < leaky:
                self.buffers.leak(self.luck)
            if orderly:
                chosen = max(ready, key=lambda key: priority[key])
                if self.luck.random() < 0.03:
                    priority[chosen] = self.luck.random()
            else:
                chosen = self.luck.choice(ready)
            if isinstance(chosen, tuple) and chosen[0] == "queue":
                self.queues[chosen[1], chosen[2]].pop(0)()
                continue
            try:
                waits[chosen] = next(agents[chosen])
            except StopIteration:
                del agents[chosen], waits[chosen]

    def rank(self, rank: int) -> Thread:
        """Launch after launch: new input, the threads of all blocks, and a look at the output."""
        for launch in range(1, self.launches + 1):
            self.fill(rank, launch)
            yield None
            started = []
            for block in range(len(self.gpus[rank]["threadblocks"])):
                joined = [0, 0]
                for thread in range(self.threads):
                    key = (rank, block, thread)
                    self.agents[key] = _Thread(self, rank, block, thread, launch, joined).run()
                    self.waits[key] = None
                    started.append(key)
            yield lambda started=started: not any(key in self.agents for key in started)  # type: ignore[misc]
            # The shipped plans leave a launch before the proxy has read what they sent over ports.
            yield lambda: not any(queue for (owner, _), queue in self.queues.items() if owner == rank)
            self.buffers.finish(rank)
            self.check(rank, launch)
            yield None


class _Thread:
    """A thread of a block in one launch."""

    def __init__(self, run: _Run, rank: int, block: int, number: int, launch: int, joined: list[int]):
        self.of, self.rank, self.number, self.launch, self.joined = run, rank, number, launch, joined
        self.key = (rank, block, number)
        self.gpu = run.gpus[rank]
        self.block = self.gpu["threadblocks"][block]
        self.channels: defaultdict[str, list[int]] = defaultdict(list)
        for entry in self.block["channels"]:
            self.channels[entry["channel_type"]] += entry["channel_ids"]
        self.refs: defaultdict[str, list[Json]] = defaultdict(list)
        for entry in self.block.get("remote_buffer_refs", ()):
            kind = entry["access_channel_type"]
            self.refs[kind] += [self.gpu["remote_buffers"][k] for k in entry["remote_buffer_ids"]]
        self.switches = [
            (entry["buffer_type"], group["ranks"])
            for entry in self.gpu["channels"] for group in entry.get("rank_groups", ())
        ]  # fmt: skip
        self.window: tuple[int, int] | None = None

    def run(self) -> Thread:
        for op in self.block["ops"]:
            if op["name"] == "pipeline":
                whole = op["iter_context"]["num_chunks"] * self.of.width
                unit = -(-whole // self.of.iterations)
                for first in range(0, whole, unit):
                    self.window = (first, min(first + unit, whole))
                    for inner in op["ops"]:
                        yield from self.execute(inner)
                self.window = None
            else:
                yield from self.execute(op)

    def execute(self, op: Json) -> Thread:
        name = op["name"]
        yield None
        if name == "nop":
            yield from self.join()
        elif name == "barrier":
            yield from self.join(2)
            yield from self.barrier(op)
        elif name in ("signal", "rlxsignal"):
            yield from self.signal(op)
        elif name in ("wait", "rlxwait"):
            yield from self.wait(op)
        elif name in ("sem_acquire", "sem_release"):
            yield from self.semaphore(op)
        elif name == "flush":
            if op.get("dst_buff"):
                yield from self.drained(op)
        elif op.get("channel_type") == "port" and name in ("put", "pws", "pwsf", "rppkt", "ppkt"):
            yield from self.post(op)
        else:
            yield from self.work(op)

    # ---- joins

    def join(self, depth: int = 1) -> Thread:
        """Wait for all threads of the block; they show each other what they wrote."""
        self.of.buffers.publish(self.key, depth)
        self.joined[0] += 1
        due = -(-self.joined[0] // self.of.threads) * self.of.threads
        yield lambda: self.joined[0] >= due

    def barrier(self, op: Json) -> Thread:
        state = self.of.barriers[self.rank, op["barrier_id"]]
        if self.number == 0:
            state[0] += 1
            due = -(-state[0] // op["num_threadblocks"]) * op["num_threadblocks"]
            yield lambda: state[0] >= due
        yield from self.join()

    def ids(self, op: Json, key: str = "channel_ids") -> list[int]:
        """Return the items of an operation that this thread does."""
        return list(op.get(key, ()))[self.number :: self.of.threads]

    def end(self, op: Json, number: int) -> tuple[int, str, int]:
        return self.rank, op["channel_type"], self.channels[op["channel_type"]][number]

    def signal(self, op: Json) -> Thread:
        for number in self.ids(op):
            end = self.end(op, number)
            if op["channel_type"] == "port":
                self.of.buffers.publish(self.key, 3)
                self.of.queues[end[0], end[2]].append(partial(self.raise_peer, end))
            else:
                if op["name"] == "signal":
                    self.of.buffers.publish(self.key, 3)
                self.raise_peer(end)
            yield None

    def raise_peer(self, end: tuple[int, str, int]) -> None:
        if end in self.of.partners:
            self.of.inbound[self.of.partners[end]] += 1

    def wait(self, op: Json) -> Thread:
        for number in self.ids(op):
            end = self.end(op, number)
            self.of.expected[end] += 1
            due = self.of.expected[end]
            yield lambda end=end, due=due: self.of.inbound[end] >= due  # type: ignore[misc]

    def semaphore(self, op: Json) -> Thread:
        for number in self.ids(op, "semaphore_ids"):
            key = (self.rank, number)
            if op["name"] == "sem_release":
                self.of.buffers.publish(self.key, 2)
                self.of.semaphores[key] += 1
                yield None
            else:
                yield lambda key=key: self.of.semaphores[key] > 0  # type: ignore[misc]
                self.of.semaphores[key] -= 1

    # ---- data

    def spans(self, items: list[Json], op: Json) -> list[tuple[int, str, int, int]]:
        """Return rank, buffer (``*`` and a group: of a switch), first element and elements of each item's slice."""
        found = []
        for item in items:
            first, count = item["index"] * self.of.width, item["size"] * self.of.width
            if "buffer_id" in item:
                there = self.refs[op["channel_type"]][item["buffer_id"]]
                rank, buffer = there["rank"], there["type"]
            elif "switch_channel_id" in item:
                rank, buffer = -1 - self.channels["switch"][item["switch_channel_id"]], ""
            else:
                rank, buffer = self.rank, item["type"]
            if "tbg_info" in op:
                share, shares = op["tbg_info"]["tb_id"], op["tbg_info"]["tbg_size"]
                first, count = first + count * share // shares, count // shares
            if self.window is not None:
                low, high = self.window
                first, count = first + low, max(0, min(high, count) - low)
            found.append((rank, buffer, first, count))
        return found

    def cells(self, rank: int, buffer: str, element: int, packet: bool) -> list[Cell]:
        if buffer == "s":
            halved = rank == self.rank or packet
            return self.of.scratch(rank, element, halved, self.launch, packet)
        return [self.of.cell(rank, buffer, element)]

    def read(self, place: tuple[int, str], element: int, packet: bool) -> object:
        values = [self.of.buffers.read(self.key, cell) for cell in self.cells(*place, element, packet)]
        return values[0] if len(set(map(repr, values))) == 1 else None

    def write(self, place: tuple[int, str], element: int, value: object, packet: bool) -> None:
        for cell in self.cells(*place, element, packet):
            self.of.buffers.write(self.key, cell, ("packet", self.launch, value) if packet else value)

    def has_packet(self, place: tuple[int, str], element: int) -> bool:
        found = self.read(place, element, True)
        return isinstance(found, tuple) and found[:2] == ("packet", self.launch)

    def work(self, op: Json) -> Thread:
        """Do this thread's elements of an operation that moves data by loads and stores."""
        name = op["name"]
        src, dst = self.spans(op["src_buff"], op), self.spans(op["dst_buff"], op)
        if name == "get":
            pairs = [((s[0], s[1], d[2], d[3]), (d[0], d[1], s[2], s[3])) for s, d in zip(src, dst, strict=True)]
        elif name in ("put", "pws", "pwsf"):
            pairs = [((*src[0][:2], *s[2:]), d) for s, d in zip(src, dst, strict=True)]
        elif name in ("copy", "cpkt", "upkt", "ppkt", "rppkt", "gstore"):
            pairs = [(src[min(k, len(src) - 1)], d) for k, d in enumerate(dst)]
        else:
            pairs = []
        for s, d in pairs:
            for k in range(self.number, s[3], self.of.threads):
                value = yield from self.load(s[:2], s[2] + k, name in ("upkt", "rppkt"))
                self.store(d, k, value, name in ("ppkt", "cpkt", "rppkt"))
                yield None
        if not pairs:
            yield from self.sum(op, src, dst)

    def load(self, place: tuple[int, str], element: int, packet: bool) -> Iterator[Condition | None]:
        """Return a value, after its packet has come; the sum over the members of a switch."""
        if packet:
            yield lambda: self.has_packet(place, element)
            return self.read(place, element, True)[2]  # type: ignore[index]
        if place[0] < 0:
            buffer, ranks = self.switches[-1 - place[0]]
            memory = self.of.buffers.memory  # a switch sees what is in memory
            return _total([memory.get(cell) for rank in ranks for cell in self.cells(rank, buffer, element, False)])
        return self.read(place, element, False)

    def store(self, span: tuple[int, str, int, int], k: int, value: object, packet: bool) -> None:
        if span[0] < 0:
            buffer, ranks = self.switches[-1 - span[0]]
            for rank in ranks:
                for cell in self.cells(rank, buffer, span[2] + k, packet):
                    self.of.buffers.memory[cell] = value
        else:
            self.write(span[:2], span[2] + k, value, packet)

    def sum(self, op: Json, src: list[tuple[int, str, int, int]], dst: list[tuple[int, str, int, int]]) -> Thread:
        name = op["name"]
        for k in range(self.number, src[0][3], self.of.threads):
            values = []
            for at, span in enumerate(src):
                packet = name in _PACKET_OPS and at > 0
                values.append((yield from self.load(span[:2], span[2] + k, packet)))
            total = _total(values)
            for at, span in enumerate(dst):
                self.store(span, k, total, name in _PACKET_OPS and at > 0)
            yield None

    # ---- ports

    def post(self, op: Json) -> Thread:
        """Post this thread's items to the queue of the proxy, which moves them later."""
        src, dst = self.spans(op["src_buff"], op), self.spans(op["dst_buff"], op)
        for at in range(len(dst))[self.number :: self.of.threads]:
            s, d = src[min(at, len(src) - 1)], dst[at]
            packet = op["name"] in ("rppkt", "ppkt")
            if op["name"] == "rppkt":
                for k in range(s[3]):
                    yield lambda s=s, k=k: self.has_packet(s[:2], s[2] + k)  # type: ignore[misc]
            self.of.buffers.publish(self.key, 3)
            end = self.end(op, op["channel_ids"][at])
            queue = self.of.queues[end[0], end[2]]
            queue.append(partial(self.moved, s, d, packet))
            if op["name"] in ("pws", "pwsf"):
                queue.append(partial(self.raise_peer, end))
            if op["name"] == "pwsf":
                yield lambda queue=queue: not queue  # type: ignore[misc]
            yield None

    def moved(self, s: tuple[int, str, int, int], d: tuple[int, str, int, int], packet: bool) -> None:
        memory = self.of.buffers.memory
        for k in range(s[3]):
            there = self.cells(*d[:2], d[2] + k, packet)
            here = self.cells(*s[:2], s[2] + k, packet)
            for a, b in zip(here, there, strict=True):
                memory[b] = memory.get(a)

    def drained(self, op: Json) -> Thread:
        for number in self.ids(op):
            end = self.end(op, number)
            yield lambda end=end: not self.of.queues[end[0], end[2]]  # type: ignore[misc]


def _total(values: list[object]) -> object:
    """Return the sum of values; nonsense for what is no number."""
    return sum(value if isinstance(value, int) else hash(repr(value)) for value in values) % _MODULUS
