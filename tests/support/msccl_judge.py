"""Brute force: does a file compute what it says, whatever the timing, at the sizes it is used for?

Shares nothing with the backend. A file's text becomes concurrent threadblocks over finite FIFOs that move random
numbers, tile after tile, one primitive at a time, in orders drawn at random; which order that is, how chunks are cut
and how deep FIFOs are follow the notes on the runtimes alone. One run that hangs or ends with a wrong number condemns
the file; runs that all end well acquit it of nothing but those orders.
"""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree
from collections import defaultdict, deque
from collections.abc import Iterator
from functools import lru_cache
from heapq import heappop, heappush
from typing import Any

import attrs

__all__ = ["File", "Wrong", "every_split", "judge", "load", "run", "split_of"]

SENDS, RECEIVES = frozenset({"s", "rcs", "rrs", "rrcs"}), frozenset({"r", "rcs", "rrc", "rrs", "rrcs"})
DEPTH = {"Simple": 2, "LL": 8, "LL128": 8}
#: runtime -> protocol -> bytes of a chunk that one pass over the steps moves
TILE = {
    "executor": {"Simple": 2 << 20, "LL": 32 << 10, "LL128": 576_000},
    "msccl": {"Simple": 2 << 20, "LL": 32 << 10, "LL128": 576_000},
    "rccl": {"Simple": 2 << 20, "LL": 16 << 10, "LL128": 50_176},
}
_MODULUS = 1 << 61


class Wrong(Exception):
    """A run hangs, leaves data in a connection, touches what it may not, or ends with a wrong number."""


@attrs.define
class Action:
    kind: str
    sources: list[tuple[str, int]]
    dst: tuple[str, int]
    count: int
    waits: list[tuple[int, int]]
    step: int  # the device's number when it is done
    flag: bool


@attrs.define
class Worker:
    """One threadblock: what it does, and how far it is."""

    rank: int
    name: int
    inward: tuple[int, int, int]
    outward: tuple[int, int, int]
    actions: list[Action]
    tile: int = 0
    at: int = 0
    chunk: int = 0
    flagged: tuple[int, int] = (-1, -1)


@attrs.define
class File:
    head: dict[str, str]
    scratch: dict[int, int]
    workers: list[Worker]


def load(text: str) -> File:
    """Return what the runtimes make of a file; raises Wrong where they would reject it or overwrite memory."""
    root = ElementTree.fromstring(text)
    scratch, workers = {}, []
    owners: set[tuple[str, int, int, int]] = set()
    for gpu in root.iter("gpu"):
        rank = int(gpu.get("id", ""))
        scratch[rank] = int(gpu.get("s_chunks", ""))
        for block in gpu.iter("tb"):
            name, send, recv, chan = (int(block.get(key, "")) for key in ("id", "send", "recv", "chan"))
            if not 0 <= chan < int(root.get("nchannels", "")):
                raise Wrong("a channel that is not connected")
            for side, peer in (("send", send), ("recv", recv)):
                if peer == rank or peer >= int(root.get("ngpus", "")):
                    raise Wrong("a peer that is none")
                if peer >= 0 and (side, rank, peer, chan) in owners:
                    raise Wrong("two threadblocks use one end of a connection")
                owners.add((side, rank, peer, chan))
            actions = list(_actions([dict(step.attrib) for step in block.iter("step")]))
            for action in actions:
                if (action.kind in SENDS and send < 0) or (action.kind in RECEIVES and recv < 0):
                    raise Wrong("no peer")
            workers.append(Worker(rank, name, (recv, rank, chan), (rank, send, chan), actions))
    ends = {
        (rank, peer, chan) if side == "send" else (peer, rank, chan) for side, rank, peer, chan in owners if peer >= 0
    }
    if 2 * len(ends) != sum(peer >= 0 for _, _, peer, _ in owners):
        raise Wrong("a connection that only one rank sets up hangs")
    return File(dict(root.attrib), scratch, workers)


def _actions(steps: list[dict[str, Any]]) -> Iterator[Action]:
    """Yield what the parsers make of a threadblock's steps: waits folded, reductions merged, steps counted anew."""
    made: list[Action] = []
    waits: list[tuple[int, int]] = []
    number, reductions, run = -1, 0, None
    for step in steps:
        wait = (int(step["depid"]), int(step["deps"]))
        if wait[0] >= 0:
            waits.append(wait)
        if step["type"] == "nop":
            continue
        number += 1
        adds = step["type"] == "re"
        src, dst = (step["srcbuf"], int(step["srcoff"])), (step["dstbuf"], int(step["dstoff"]))
        if adds and run == (dst, src[0]) and wait[0] < 0:
            last = made[-1]
            last.sources.append(src)
            last.count, last.flag, last.step = int(step["cnt"]), step["hasdep"] == "1", number
        else:
            if waits and wait[0] < 0:
                raise Wrong("the parsers reject a nop before a step without a wait")
            number += max(len(waits) - 1, 0)
            if int(step["cnt"]) < 1:
                raise Wrong("nothing to move")
            made.append(Action(step["type"], [src], dst, int(step["cnt"]), waits, number, step["hasdep"] == "1"))
            waits = []
        reductions += adds
        run = (dst, src[0]) if adds and step["hasdep"] != "1" and reductions != 16 else None
    if any(len(action.sources) > 16 for action in made):
        raise Wrong("more than 16 sources overrun an array")
    yield from made


# ---- one run


class _Device:
    """All ranks at work: memory by rank and buffer, FIFOs by connection, threadblocks that can go or wait."""

    def __init__(self, file: File, inplace: bool, split: int, tiles: int, luck: random.Random):
        self.file, self.split, self.tiles, self.luck = file, split, tiles, luck
        self.ranks = int(file.head["ngpus"])
        self.total = int(file.head["nchunksperloop"])
        self.kind = file.head["coll"].replace("_", "")
        per = self.total // self.ranks
        self.into = per if self.kind == "allgather" else self.total
        self.out = per if self.kind == "reducescatter" else self.total
        self.inplace = inplace
        self.depth = DEPTH[file.head["proto"]]
        self.fifos: dict[tuple[int, int, int], deque[list[int]]] = defaultdict(deque)
        self.workers = [attrs.evolve(worker) for worker in file.workers]
        self.by_name = {(worker.rank, worker.name): worker for worker in self.workers}
        self.asleep: dict[Any, list[int]] = defaultdict(list)
        self._fill()

    def _fill(self) -> None:
        """Give every rank random input, and junk elsewhere; in place, input and output are one buffer."""
        draw = self.luck.randrange
        self.size = {(r, "s"): self.file.scratch[r] for r in range(self.ranks)}
        self.base: dict[tuple[int, str], int] = {}
        self.memory: dict[tuple[int, str], list[int]] = {}
        self.given = [[draw(_MODULUS) for _ in range(self.into * self.tiles)] for _ in range(self.ranks)]
        for r in range(self.ranks):
            self.size[r, "i"], self.size[r, "o"] = self.into, self.out
            wide = max(self.into, self.out)
            cells = [draw(_MODULUS) for _ in range(wide * self.tiles)]
            self.memory[r, "o"] = cells
            self.memory[r, "i"] = cells if self.inplace else [draw(_MODULUS) for _ in range(wide * self.tiles)]
            self.memory[r, "s"] = [draw(_MODULUS) for _ in range(self.file.scratch[r] * self.tiles)]
            own = r * min(self.into, self.out) if self.into != self.out else 0
            self.base[r, "i"] = own if self.into < self.out else 0
            self.base[r, "o"] = own if self.out < self.into else 0
            self.base[r, "s"] = 0
            start = self.base[r, "i"] * self.tiles
            self.memory[r, "i"][start : start + self.into * self.tiles] = self.given[r]

    def cell(self, worker: Worker, place: tuple[str, int], chunk: int) -> tuple[list[int], int]:
        """Return the list and the index where this tile of a chunk lies."""
        key, offset = (worker.rank, place[0]), place[1] + chunk
        if not 0 <= offset < self.size[key]:
            raise Wrong(f"rank {worker.rank}, threadblock {worker.name} leaves buffer {place[0]}")
        return self.memory[key], (self.base[key] + offset) * self.tiles + worker.tile

    def obstacle(self, worker: Worker) -> Any:
        """Return what the next primitive of a worker waits for, or nothing."""
        action = worker.actions[worker.at]
        if worker.chunk == 0:
            for block, step in action.waits:
                other = self.by_name.get((worker.rank, block))
                if other is None:
                    raise Wrong("a wait for no threadblock")
                if other.flagged < (worker.tile, step):
                    return ("flag", worker.rank, block)
        if action.kind in RECEIVES and not self.fifos[worker.inward]:
            return ("data", worker.inward)
        if action.kind in SENDS and len(self.fifos[worker.outward]) >= self.depth:
            return ("slot", worker.outward)
        return None

    def primitive(self, worker: Worker) -> list[Any]:
        """Do the next primitive, up to ``split`` chunks of an action; return what others may have waited for."""
        action = worker.actions[worker.at]
        stop = min(worker.chunk + self.split, action.count)
        events: list[Any] = []
        came: list[int] = []
        if action.kind in RECEIVES:
            came = self.fifos[worker.inward].popleft()
            events.append(("slot", worker.inward))
            if len(came) != stop - worker.chunk:
                raise Wrong("the two ends of a connection differ in count")
        # all of a primitive is read before any of it is written, and the other way round: timing decides
        chunks = list(range(worker.chunk, stop))
        values = [0] * len(chunks)
        places = [(k, c) for k, c in enumerate(chunks)]
        if self.luck.random() < 0.5:
            places.reverse()
        for k, chunk in places:
            values[k] = self._value(worker, action, chunk, came[k] if came else 0)
            if action.kind not in ("s", "rrs"):
                cells, at = self.cell(worker, action.dst, chunk)
                cells[at] = values[k]
        if action.kind in SENDS:
            self.fifos[worker.outward].append(values)
            events.append(("data", worker.outward))
        worker.chunk = stop
        if stop >= action.count:
            if action.flag:
                worker.flagged = (worker.tile, action.step)
                events.append(("flag", worker.rank, worker.name))
            worker.chunk, worker.at = 0, worker.at + 1
            if worker.at == len(worker.actions):
                worker.at, worker.tile = 0, worker.tile + 1
        return events

    def _value(self, worker: Worker, action: Action, chunk: int, came: int) -> int:
        value = came
        if action.kind in ("s", "cpy", "re", "rrc", "rrs", "rrcs"):
            for source in action.sources:
                cells, at = self.cell(worker, source, chunk)
                value += cells[at]
        if action.kind == "re":
            cells, at = self.cell(worker, action.dst, chunk)
            value += cells[at]
        return value % _MODULUS

    def go(self, restless: float) -> None:
        """Run to the end: the ready worker of the highest rank in a random order that changes now and then."""
        draw = self.luck.random
        ready = [(draw(), n) for n, worker in enumerate(self.workers) if worker.actions]
        unfinished = len(ready)
        ready.sort()
        while ready:
            place, n = heappop(ready)
            worker = self.workers[n]
            obstacle = self.obstacle(worker)
            if obstacle is not None:
                self.asleep[obstacle].append(n)
                continue
            events = self.primitive(worker)
            if worker.tile < self.tiles:
                heappush(ready, (draw() if draw() < restless else place, n))
            else:
                unfinished -= 1
            for event in events:
                for other in self.asleep.pop(event, ()):
                    heappush(ready, (draw(), other))
        if unfinished:
            raise Wrong(f"{unfinished} threadblocks hang")
        if any(self.fifos.values()):
            raise Wrong("data are left in a connection")

    def check(self) -> None:
        """Compare with what the collective promises; out of place, input stays as it was."""
        for r in range(self.ranks):
            for tile in range(self.tiles):
                start, cells = self.base[r, "o"], self.memory[r, "o"]
                found = [cells[(start + k) * self.tiles + tile] for k in range(self.out)]
                if self._owed(r) and found != self._promised(r, tile):
                    raise Wrong(f"rank {r} ends with wrong numbers")
            first, count = self.base[r, "i"] * self.tiles, self.into * self.tiles
            if not self.inplace and self.memory[r, "i"][first : first + count] != self.given[r]:
                raise Wrong(f"rank {r} overwrites its input out of place")

    def _owed(self, rank: int) -> bool:
        return self.kind != "reduce" or rank == 0

    def _promised(self, rank: int, tile: int) -> list[int]:
        every, per = range(self.ranks), self.total // self.ranks

        def given(source: int, chunk: int) -> int:
            return self.given[source][chunk * self.tiles + tile]

        match self.kind:
            case "allreduce" | "reduce":
                return [sum(given(r, k) for r in every) % _MODULUS for k in range(self.total)]
            case "reducescatter":
                return [sum(given(r, rank * per + k) for r in every) % _MODULUS for k in range(per)]
            case "allgather":
                return [given(r, k) for r in every for k in range(per)]
            case "broadcast":
                return [given(0, k) for k in range(self.total)]
        assert self.kind == "alltoall"
        return [given(r, rank * per + k) for r in every for k in range(per)]


def run(file: File, *, inplace: bool, split: int, seed: int, tiles: int = 1) -> None:
    """Run once, in the order that ``seed`` draws; raises Wrong."""
    luck = random.Random(seed)
    device = _Device(file, inplace, split, tiles, luck)
    device.go(luck.choice([0.0, 0.02, 0.2, 1.0]))
    device.check()


# ---- all the runs of a file


def split_of(runtime: str, proto: str, chunks: int, size: int) -> int:
    """Return how many chunks one primitive moves in calls of ``size`` bytes."""
    return max(1, min(71, TILE[runtime][proto] // -(-size // chunks)))


@lru_cache(maxsize=64)
def _sizes(runtime: str, proto: str, chunks: int, smallest: int, largest: int) -> tuple[tuple[int, int], ...]:
    """Return (split, tiles) of small, large and some sizes between: least size first."""
    unit, found = chunks, {}
    low = max(-(-max(smallest, 1) // unit), 1) * unit
    high = max(largest // unit * unit, low)
    sizes = {low, high}
    for split in (2, 3, 4, 5, 8, 16):
        at = chunks * (TILE[runtime][proto] // split)
        sizes |= {size for size in (at, at + unit) if low <= size <= high}
    for size in sorted(sizes):
        tiles = min(-(-size // chunks // TILE[runtime][proto]) or 1, 2)
        found[split_of(runtime, proto, chunks, size), tiles] = size
    return tuple(found)


def _modes(head: dict[str, str], runtime: str) -> list[bool]:
    """Return the uses a runtime makes of a file: in place (True), out of place (False).

    msccl compares a call's in-placeness with `inplace` and does not read `outofplace`; the others read both.
    """
    if runtime == "msccl":
        return [head["inplace"] == "1"]
    return [use for use, flag in ((True, "inplace"), (False, "outofplace")) if head[flag] == "1"]


def _largest(head: dict[str, str], runtime: str) -> int:
    return int(head["maxBytes"]) - (runtime == "msccl") if int(head["maxBytes"]) else 1 << 36


def every_split(text: str, runtime: str, seed: int = 0) -> str:
    """Return what goes wrong in one run for each number of chunks a message may hold at the sizes the file is for."""
    file = load(text)
    head, chunks = file.head, int(file.head["nchunksperloop"])
    high = split_of(runtime, head["proto"], chunks, max(int(head["minBytes"]), chunks))
    low = split_of(runtime, head["proto"], chunks, _largest(head, runtime) // chunks * chunks)
    longest = max((action.count for worker in file.workers for action in worker.actions), default=1)
    try:
        for split in {min(split, longest) for split in range(low, high + 1)}:
            for inplace in _modes(head, runtime):
                run(file, inplace=inplace, split=split, seed=seed + split)
    except Wrong as problem:
        return str(problem)
    return ""


def judge(text: str, runtime: str, runs: int, seed: int = 0) -> str:
    """Return what goes wrong in one of ``runs`` runs of each claimed use and several sizes; nothing if all end well."""
    try:
        file = load(text)
        head = file.head
        if int(head["minBytes"]) and int(head["maxBytes"]) and int(head["minBytes"]) > int(head["maxBytes"]):
            return ""
        chunks, largest, modes = int(head["nchunksperloop"]), _largest(head, runtime), _modes(head, runtime)
        cuts = _sizes(runtime, head["proto"], chunks, int(head["minBytes"]), largest)
        for k in range(runs):
            for inplace in modes:
                for split, tiles in cuts if k == 0 else [random.Random(seed + k).choice(cuts)]:
                    run(file, inplace=inplace, split=split, seed=seed + k, tiles=tiles)
    except Wrong as problem:
        return str(problem)
    return ""
