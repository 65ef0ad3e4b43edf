"""Brute force: do a program and a schedule compute what their collective promises, whatever the timing?

Shares nothing with the verifier, the machine or the layout of ``ir``. Columns become plain lists, and random numbers
move through them: through a program in orders drawn at random, one primitive at a time. One run that hangs or ends with
a wrong number condemns the IR; runs that all end well acquit it of nothing but those orders.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from itertools import pairwise
from typing import Any

import attrs

from collc.ir.collective import Collective
from collc.ir.program import Program
from collc.ir.schedule import Schedule

__all__ = ["Wrong", "judge_program", "judge_schedule", "run_program"]

_MODULUS = 1 << 61
_INPUT, _OUTPUT, _SCRATCH = range(3)
#: opcodes by what they do: nop, send, recv, copy, reduce, rcs, rrc, rrs, rrcs
_SENDS, _RECEIVES, _READS, _WRITES = {1, 5, 7, 8}, {2, 5, 6, 7, 8}, {1, 3, 4, 6, 7, 8}, {2, 3, 4, 5, 6, 8}
_IDEMPOTENT = {"min", "max", "band", "bor", "land", "lor"}


class Wrong(Exception):
    """A run hangs, leaves data in a connection, touches what it may not, or ends with a wrong number."""


# ---- what a collective promises


@attrs.frozen
class _Promise:
    """Inputs drawn at random, and what every rank must have: numbers, one a chunk; None where no buffer is."""

    given: list[list[int] | None]
    owed: list[list[int] | None]


def _combined(collective: Collective, values: list[int]) -> int:
    return max(values) if collective.op in _IDEMPOTENT else sum(values) % _MODULUS


def _members(collective: Collective) -> list[int]:
    return list(range(collective.num_ranks) if collective.members is None else collective.members)


def _promise(collective: Collective, chunks: int, luck: random.Random) -> _Promise:
    """Return inputs and owed outputs of a collective whose shards are ``chunks`` chunks, by MPI's definitions.

    Other ranks than members have neither.
    """
    if collective.members is not None:
        members = _members(collective)
        root = None if collective.root is None else members.index(collective.root)
        alone = attrs.evolve(collective, num_ranks=len(members), root=root, members=None)
        found, ranks = _promise(alone, chunks, luck), range(collective.num_ranks)
        at = {rank: place for place, rank in enumerate(members)}
        given, owed = (
            [listed[at[r]] if r in at else None for r in ranks] for listed in (found.given, found.owed)
        )  # fmt: skip
        return _Promise(given, owed)
    ranks, kind, root = range(collective.num_ranks), collective.kind, collective.root
    whole = len(ranks) * chunks

    def drawn(length: int) -> list[int]:
        return [luck.randrange(_MODULUS) for _ in range(length)]

    def own(rank: int) -> slice:
        return slice(rank * chunks, (rank + 1) * chunks)

    match kind:
        case "custom":
            assert collective.pre is not None and collective.post is not None
            sources = collective.contributors or [(source,) for source in collective.pre]
            blocks = [{source: drawn(chunks) for source in of_shard} for of_shard in sources]
            sums = [[_combined(collective, list(x)) for x in zip(*block.values(), strict=True)] for block in blocks]
            given = [[x for block in blocks if r in block for x in block[r]] for r in ranks]
            owed = [[x for one, to in zip(sums, collective.post, strict=True) if r in to for x in one] for r in ranks]
            return _Promise([one or None for one in given], [one or None for one in owed])
        case "allgather" | "gather":
            blocks = [drawn(chunks) for _ in ranks]
            every = [x for block in blocks for x in block]
            return _Promise([*blocks], [every if kind == "allgather" or r == root else None for r in ranks])
        case "allreduce" | "reduce" | "reduce-scatter":
            vectors = [drawn(whole) for _ in ranks]
            total = [_combined(collective, list(column)) for column in zip(*vectors, strict=True)]
            if kind == "reduce-scatter":
                return _Promise([*vectors], [total[own(r)] for r in ranks])
            return _Promise([*vectors], [total if kind == "allreduce" or r == root else None for r in ranks])
        case "broadcast":
            vector = drawn(whole)
            return _Promise([vector if r == root else None for r in ranks], [vector for _ in ranks])
        case "scatter":
            vector = drawn(whole)
            return _Promise([vector if r == root else None for r in ranks], [vector[own(r)] for r in ranks])
    vectors = [drawn(whole) for _ in ranks]
    return _Promise([*vectors], [[x for s in ranks for x in vectors[s][own(r)]] for r in ranks])


# ---- programs


@attrs.define
class _Block:
    """One threadblock: its rows of instructions, and how far it is."""

    rank: int
    inward: tuple[int, int, int]
    outward: tuple[int, int, int]
    at: int
    end: int
    done: int = 0  # chunks of the instruction at hand


class _Memory:
    """Cells of all ranks; in place, the smaller of input and output lies at the rank's own block of the larger."""

    def __init__(self, program: Program, promise: _Promise, inplace: bool, luck: random.Random):
        self.cells: dict[tuple[int, int], list[int]] = {}
        self.base: dict[tuple[int, int], int] = {}
        self.size: dict[tuple[int, int], int] = {}
        chunks = int(program.chunks)
        place = {rank: at for at, rank in enumerate(_members(program.collective))}
        for rank in range(program.num_ranks):
            own = place.get(rank, 0) * chunks
            given, owed = promise.given[rank], promise.owed[rank]
            into, out = len(given or ()), len(owed or ())
            shared = inplace and given is not None and owed is not None and program.collective.kind != "custom"
            junk = [luck.randrange(_MODULUS) for _ in range(max(into, out) if shared else out)]
            low, high = (own if shared and into < out else 0), (own if shared and out < into else 0)
            first = junk if shared else list(given or ())
            first[low : low + into] = given or ()
            scratch = [luck.randrange(_MODULUS) for _ in range(int(program.scratch[rank]))]
            for buffer, cells, base, size in (
                (_INPUT, first, low, into), (_OUTPUT, junk, high, out), (_SCRATCH, scratch, 0, len(scratch)),
            ):  # fmt: skip
                self.cells[rank, buffer], self.base[rank, buffer] = cells, base
                self.size[rank, buffer] = size

    def place(self, rank: int, buffer: int, offset: int, length: int) -> tuple[list[int], int]:
        """Return the list of some chunks, and the index of the first."""
        if (rank, buffer) not in self.cells or offset < 0 or offset + length > self.size[rank, buffer]:
            raise Wrong(f"rank {rank} leaves buffer {buffer}")
        return self.cells[rank, buffer], self.base[rank, buffer] + offset


class _Run:
    """One run of a program: blocks that can go are drawn at random."""

    def __init__(self, program: Program, inplace: bool, split: int, luck: random.Random):
        self.program, self.inplace, self.split, self.luck = program, inplace, split, luck
        self.promise = _promise(program.collective, int(program.chunks), luck)
        self.memory = _Memory(program, self.promise, inplace, luck)
        names = ("opcode", "src_buffer", "src_offset", "dst_buffer", "dst_offset", "count")
        columns = [getattr(program, name).tolist() for name in names]
        self.rows = list(zip(*columns, strict=True))
        start, deps = program.dep_start.tolist(), program.deps.tolist()
        self.waits = [deps[a:b] for a, b in pairwise(start)]
        self.finished = [False] * len(self.rows)
        self.fifos: dict[tuple[int, int, int], deque[list[int]]] = defaultdict(deque)
        self.blocks = self._blocks()

    def _blocks(self) -> list[_Block]:
        p = self.program
        columns = (p.block_rank, p.send_peer, p.recv_peer, p.channel, p.block_start[:-1], p.block_start[1:])
        blocks = []
        for rank, send, recv, channel, begin, end in zip(*(c.tolist() for c in columns), strict=True):
            blocks.append(_Block(rank, (recv, rank, channel), (rank, send, channel), begin, end))
        owners = [end for b in blocks for end in (("in", *b.inward), ("out", *b.outward)) if -1 not in end[1:]]
        if len(set(owners)) < len(owners):
            raise Wrong("two threadblocks use one end of a connection")
        return blocks

    def can_go(self, block: _Block) -> bool:
        finished = self.finished
        for other in self.waits[block.at]:
            if not finished[other]:
                return False
        return self.rows[block.at][0] not in _RECEIVES or bool(self.fifos[block.inward])

    def go(self, block: _Block) -> None:
        """Do the next primitive of a block: up to ``split`` chunks of its instruction."""
        opcode, count = self.rows[block.at][0], self.rows[block.at][5]
        stop = min(block.done + self.split, count)
        came = self.fifos[block.inward].popleft() if opcode in _RECEIVES else None
        if came is not None and len(came) != stop - block.done:
            raise Wrong("the two ends of a connection differ in count")
        if opcode in _SENDS | _RECEIVES and -1 in (block.outward if opcode in _SENDS else block.inward):
            raise Wrong("no peer")
        backwards = self.luck.random() < 0.5
        values = self.moved(block, stop - block.done, came, backwards) if stop > block.done else []
        if opcode in _SENDS:
            self.fifos[block.outward].append(values)
        block.done = stop
        if stop >= count:
            self.finished[block.at] = True
            block.at, block.done = block.at + 1, 0

    def moved(self, block: _Block, length: int, came: list[int] | None, backwards: bool) -> list[int]:
        """Return the numbers of a primitive of at least a chunk, in order, and write them if it does so."""
        opcode, src_buffer, src, dst_buffer, dst, _ = self.rows[block.at]
        rank, done, operands = block.rank, block.done, [] if came is None else [(came, 0)]
        if opcode in _READS:
            operands.append(self.memory.place(rank, src_buffer, src + done, length))
        if opcode == 4:
            operands.append(self.memory.place(rank, dst_buffer, dst + done, length))
        if opcode not in _WRITES:
            return self.values(operands, range(length))
        if dst_buffer == _INPUT and not self.inplace:
            raise Wrong(f"rank {rank} overwrites its input out of place")
        cells, at = self.memory.place(rank, dst_buffer, dst + done, length)
        if all(other is not cells or first == at for other, first in operands):
            # No chunk is read after another is written there: the order shows nowhere.
            values = cells[at : at + length] = self.values(operands, range(length))
            return values
        values = [0] * length
        for k in reversed(range(length)) if backwards else range(length):
            (values[k],) = self.values(operands, range(k, k + 1))
            cells[at + k] = values[k]
        return values

    def values(self, operands: list[tuple[list[int], int]], span: range) -> list[int]:
        """Return what comes of the operands' chunks of a span: their sums, or largest, where there are two."""
        parts = [cells[at + span.start : at + span.stop] for cells, at in operands] or [[0] * len(span)]
        if len(parts) == 1:
            return parts[0]
        if self.program.collective.op in _IDEMPOTENT:
            return list(map(max, *parts))
        return [(one + other) % _MODULUS for one, other in zip(*parts, strict=True)]

    def all(self) -> None:
        left = [block for block in self.blocks if block.at < block.end]
        while left:
            at = self.luck.randrange(len(left))
            found = next((k for k in (*range(at, len(left)), *range(at)) if self.can_go(left[k])), None)
            if found is None:
                raise Wrong(f"{len(left)} threadblocks hang")
            self.go(left[found])
            if left[found].at >= left[found].end:
                left[found] = left[-1]
                left.pop()
        if any(self.fifos.values()):
            raise Wrong("data are left in a connection")

    def check(self) -> None:
        for rank, owed in enumerate(self.promise.owed):
            cells, at = self.memory.place(rank, _OUTPUT, 0, len(owed or ()))
            if cells[at : at + len(owed or ())] != (owed or []):
                raise Wrong(f"rank {rank} ends with wrong numbers")


def run_program(program: Program, *, inplace: bool, split: int, seed: int) -> None:
    """Run once, in the order that ``seed`` draws, in primitives of at most ``split`` chunks; raise Wrong."""
    run = _Run(program, inplace, split, random.Random(seed))
    run.all()
    run.check()


def judge_program(program: Program, runs: int, seed: int = 0) -> str:
    """Return what goes wrong in one of ``runs`` runs, in place or out of place; nothing if all end well."""
    longest = max((int(c) for c in program.count.tolist()), default=1)
    try:
        for k in range(runs):
            split = longest if k % 3 == 0 else 1 + (seed + k) % max(longest, 1)
            for inplace in (False, True):
                run_program(program, inplace=inplace, split=max(split, 1), seed=seed * 1009 + k)
    except Wrong as problem:
        return str(problem)
    return ""


# ---- schedules


def judge_schedule(schedule: Schedule, seed: int = 0) -> str:
    """Return what goes wrong when a schedule is executed step by step; nothing if it does what it promises."""
    try:
        _require_routes(schedule)
        _executed(schedule, random.Random(seed))
    except Wrong as problem:
        return str(problem)
    return ""


def _require_routes(schedule: Schedule) -> None:
    """Raise Wrong unless every route is a path of links from a rank to a rank."""
    src, dst = schedule.topology.src.tolist(), schedule.topology.dst.tolist()
    start, links = schedule.routes.start.tolist(), schedule.routes.links.tolist()
    for route in set(schedule.route.tolist()):
        path = links[start[route] : start[route + 1]]
        if not path or any(dst[a] != src[b] for a, b in pairwise(path)):
            raise Wrong(f"route {route} is no path")
        if max(src[path[0]], dst[path[-1]]) >= schedule.topology.num_ranks:
            raise Wrong(f"route {route} ends at a switch")


def _executed(schedule: Schedule, luck: random.Random) -> None:
    collective, parts = schedule.collective, int(schedule.parts)
    ranks, shards = range(collective.num_ranks), range(collective.num_shards)
    state: dict[tuple[int, int, int], int] = {}
    owed: dict[tuple[int, int, int], int] = {}
    for shard in shards:
        holders = [r for r in ranks if _has(collective, r, shard, before=True)]
        takers = [r for r in ranks if _has(collective, r, shard, before=False)]
        for part in range(parts):
            given = {r: luck.randrange(_MODULUS) for r in holders}
            value = _combined(collective, list(given.values())) if len(given) > 1 else sum(given.values())
            state |= {(r, shard, part): x for r, x in given.items()}
            owed |= {(r, shard, part): value for r in takers}
    names = ("step", "action", "shard", "lo", "hi", "src", "dst")
    by_step: dict[int, list[Any]] = defaultdict(list)
    for row in zip(*(getattr(schedule, name).tolist() for name in names), strict=True):
        by_step[row[0]].append(row[1:])
    for step in sorted(by_step):
        _do(by_step[step], state, collective)
    if any(state.get(key) != value for key, value in owed.items()):
        raise Wrong("a rank ends with wrong numbers")


def _do(rows: list[Any], state: dict[tuple[int, int, int], int], collective: Collective) -> None:
    """Do all transfers of a step: all read what was there before it."""
    copies: dict[tuple[int, int, int], int] = {}
    added: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for action, shard, lo, hi, src, dst in rows:
        for part in range(lo, hi):
            value = state.get((src, shard, part))
            if value is None:
                raise Wrong(f"rank {src} sends what it does not have")
            key = dst, shard, part
            if action == 0:
                if copies.get(key, value) != value:
                    raise Wrong("two copies of one step differ")
                copies[key] = value
            else:
                added[key].append(value)
    if any(key in copies for key in added):
        raise Wrong("a step copies to and reduces at one place")
    state |= copies
    for key, values in added.items():
        own = [state[key]] if key in state else []
        # Ranks that relay, and those that have no part of a sum, begin with what arrives.
        if not own and collective.contributors is None and key[0] in _members(collective):
            raise Wrong("a reduction finds nothing to add to")
        state[key] = _combined(collective, [*own, *values]) if own or len(values) > 1 else values[0]


def _has(collective: Collective, rank: int, shard: int, *, before: bool) -> bool:
    """Return whether a rank has (a contribution to) a shard before, or must have it after."""
    kind = collective.kind
    if collective.pre is not None and collective.post is not None:
        sources = collective.contributors[shard] if collective.contributors else (collective.pre[shard],)
        return rank in (sources if before else collective.post[shard])
    members = _members(collective)
    if rank not in members:
        return False
    at_root, rank, ranks = rank == collective.root, members.index(rank), len(members)
    every, owner = True, rank == shard
    places = {
        "allgather": (owner, every), "reduce-scatter": (every, owner), "allreduce": (every, every),
        "broadcast": (at_root, every), "reduce": (every, at_root), "gather": (owner, at_root),
        "scatter": (at_root, owner), "alltoall": (rank == shard // ranks, rank == shard % ranks),
    }  # fmt: skip
    return places[kind][0 if before else 1]
