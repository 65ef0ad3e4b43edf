"""Programs for every collective and any number of ranks, built from rules; random programs; planted mistakes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from collc.ir.collective import ROOTED, Collective
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program

__all__ = [
    "Builder",
    "collective_of",
    "direct",
    "dropped",
    "edited",
    "find",
    "random_program",
    "ring",
    "swapped",
    "with_blocks",
    "with_deps",
]

IN, OUT, SCRATCH = Buffer
Location = tuple[Buffer, int]
NOWHERE: Location = (IN, 0)
#: rank, send peer, receive peer, channel
Key = tuple[int, int, int, int]


class Builder:
    """Collects instructions by threadblock, in any order of ranks; instructions are named by tokens until
    the end."""

    def __init__(self, collective: Collective, chunks: int):
        self.collective, self.chunks = collective, chunks
        self.rows: dict[Key, list[tuple[int, tuple[object, ...], tuple[int, ...]]]] = {}
        self.scratch = [0] * collective.num_ranks
        self.tokens = 0

    def add(
        self, key: Key, op: Opcode, src: Location = NOWHERE, dst: Location = NOWHERE, count: int | None = None,
        deps: Sequence[int] = (),
    ) -> int:  # fmt: skip
        """Append an instruction (of a shard's chunks unless ``count`` is given) and return its token."""
        size = self.chunks if count is None else count
        self.rows.setdefault(key, []).append((self.tokens, (op, *src, *dst, size), tuple(deps)))
        self.tokens += 1
        return self.tokens - 1

    def build(self) -> Program:
        keys = sorted(self.rows)
        listed = [row for key in keys for row in self.rows[key]]
        row_of = {token: i for i, (token, _, _) in enumerate(listed)}
        instructions = [[(*fields, [row_of[d] for d in deps]) for _, fields, deps in self.rows[key]] for key in keys]
        return Program.build(self.collective, self.chunks, self.scratch, keys, instructions)


def collective_of(kind: str, ranks: int, root: int = 0) -> Collective:
    return Collective(kind, ranks, root if kind in ROOTED else None)


def direct(kind: str, ranks: int, chunks: int = 1, root: int = 0) -> Program:
    """Everyone sends to whoever wants it, one threadblock a pair; sums are made in scratch. Right in place
    too."""
    collective = collective_of(kind, ranks, root)
    build = Builder(collective, chunks)
    if kind == "allreduce":
        _gathered_sum(build)
    elif collective.reduces:
        _sums(build)
    else:
        _moves(build)
    return build.build()


def _pair(rank: int, peer: int) -> Key:
    return (rank, peer, peer, 0)


def _moves(build: Builder) -> None:
    """Shards go from where they are to where they are wanted; everything is sent before anything is
    overwritten."""
    collective, c = build.collective, build.chunks
    ranks, everyone = collective.num_ranks, range(collective.num_ranks)
    inputs = {(r, v): int(collective.input_slots(r, v)) for r in everyone for v in range(collective.num_shards)}
    shards = range(collective.num_shards)
    sends: dict[int, list[int]] = {r: [] for r in everyone}
    arrivals: dict[int, list[tuple[int, int]]] = {r: [] for r in everyone}
    for v in shards:
        source = collective.source(v)
        assert source is not None
        for r in everyone:
            slot = int(collective.output_slots(r, v))
            if slot < 0:
                continue
            if r != source:
                sends[source].append(build.add(_pair(source, r), Opcode.SEND, src=(IN, inputs[source, v] * c)))
            arrivals[r].append((v, slot))
    for r in everyone:
        staged = collective.kind == "alltoall"  # in place the input is overwritten by what arrives
        build.scratch[r] = ranks * c if staged else 0
        for v, slot in arrivals[r]:
            source = collective.source(v)
            if source == r:
                build.add((r, -1, -1, 0), Opcode.COPY, src=(IN, inputs[r, v] * c), dst=(OUT, slot * c))
            elif staged:
                got = build.add(_pair(r, int(source or 0)), Opcode.RECV, dst=(SCRATCH, slot * c))
                build.add(
                    (r, -1, -1, 0), Opcode.COPY, src=(SCRATCH, slot * c), dst=(OUT, slot * c), deps=[got, *sends[r]]
                )
            else:
                build.add(_pair(r, int(source or 0)), Opcode.RECV, dst=(OUT, slot * c))


def _sums(build: Builder) -> None:
    """Everyone sends its contributions to whoever wants the sum, who collects them in scratch and adds them
    up."""
    collective, c = build.collective, build.chunks
    ranks = collective.num_ranks
    for r in range(ranks):
        wanted = [v for v in range(ranks) if collective.wants(r, v)]
        build.scratch[r] = len(wanted) * ranks * c
        for k, v in enumerate(wanted):
            got = []
            for peer in range(ranks):
                if peer != r:
                    build.add(_pair(peer, r), Opcode.SEND, src=(IN, v * c))
                    got.append(build.add(_pair(r, peer), Opcode.RECV, dst=(SCRATCH, (k * ranks + peer) * c)))
            target = (OUT, int(collective.output_slots(r, v)) * c)
            build.add((r, -1, -1, 0), Opcode.COPY, src=(IN, v * c), dst=target)
            for n, peer in enumerate(p for p in range(ranks) if p != r):
                place = (SCRATCH, (k * ranks + peer) * c)
                build.add((r, -1, -1, 0), Opcode.REDUCE, src=place, dst=target, deps=got if n == 0 else ())


def _gathered_sum(build: Builder) -> None:
    """Each rank adds up its own shard in scratch and sends the sum to all."""
    c, ranks = build.chunks, build.collective.num_ranks
    sums: dict[int, int] = {}
    sends: dict[int, list[int]] = {r: [] for r in range(ranks)}
    for r in range(ranks):
        build.scratch[r] = ranks * c
        for peer in range(ranks):
            if peer != r:
                sends[peer].append(build.add(_pair(peer, r), Opcode.SEND, src=(IN, r * c)))
    for r in range(ranks):
        got = [build.add(_pair(r, p), Opcode.RECV, dst=(SCRATCH, p * c)) for p in range(ranks) if p != r]
        local = (r, -1, -1, 0)
        sums[r] = build.add(local, Opcode.COPY, src=(IN, r * c), dst=(SCRATCH, r * c))
        for n, peer in enumerate(p for p in range(ranks) if p != r):
            sums[r] = build.add(
                local, Opcode.REDUCE, src=(SCRATCH, peer * c), dst=(SCRATCH, r * c), deps=got if n == 0 else ()
            )
        build.add(local, Opcode.COPY, src=(SCRATCH, r * c), dst=(OUT, r * c))
    for r in range(ranks):
        for peer in range(ranks):
            if peer != r:
                build.add(_pair(r, peer), Opcode.SEND, src=(SCRATCH, r * c), deps=[sums[r]])
    for r in range(ranks):
        for peer in range(ranks):
            if peer != r:
                # in place the output is the input: what it holds must have left before the sum arrives
                build.add(_pair(r, peer), Opcode.RECV, dst=(OUT, peer * c), deps=sends[r])


def ring(kind: str, ranks: int, chunks: int = 1, root: int = 0) -> Program:
    """One threadblock a rank, fused instructions: allgather, reduce-scatter, allreduce, broadcast and
    reduce."""
    build = Builder(collective_of(kind, ranks, root), chunks)
    for rank in range(ranks):
        _RINGS[kind](build, rank)
    return build.build()


def _around(build: Builder, rank: int) -> tuple[Key, int, int]:
    ranks = build.collective.num_ranks
    return (rank, (rank + 1) % ranks, (rank - 1) % ranks, 0), ranks, build.chunks


def _ring_allgather(build: Builder, r: int) -> None:
    key, n, c = _around(build, r)
    if n == 1:
        build.add((r, -1, -1, 0), Opcode.COPY, src=(IN, 0), dst=(OUT, 0))
        return
    build.add(key, Opcode.COPY, src=(IN, 0), dst=(OUT, r * c))
    build.add(key, Opcode.SEND, src=(IN, 0))
    for step in range(1, n):
        op = Opcode.RECV_COPY_SEND if step < n - 1 else Opcode.RECV
        build.add(key, op, dst=(OUT, (r - step) % n * c))


def _ring_reduce_scatter(build: Builder, r: int, out: bool = True) -> None:
    key, n, c = _around(build, r)
    if n == 1:
        build.add((r, -1, -1, 0), Opcode.COPY, src=(IN, 0), dst=(OUT, 0))
        return
    build.add(key, Opcode.SEND, src=(IN, (r - 1) % n * c))
    for step in range(2, n):
        build.add(key, Opcode.RECV_REDUCE_SEND, src=(IN, (r - step) % n * c))
    if out:
        build.add(key, Opcode.RECV_REDUCE_COPY, src=(IN, r * c), dst=(OUT, 0))


def _ring_allreduce(build: Builder, r: int) -> None:
    key, n, c = _around(build, r)
    _ring_reduce_scatter(build, r, out=n == 1)
    if n == 1:
        return
    build.add(key, Opcode.RECV_REDUCE_COPY_SEND, src=(IN, r * c), dst=(OUT, r * c))
    for step in range(1, n):
        op = Opcode.RECV_COPY_SEND if step < n - 1 else Opcode.RECV
        build.add(key, op, dst=(OUT, (r - step) % n * c))


def _chain(build: Builder, r: int, first: int) -> tuple[Key, int]:
    """Return the block of a rank in the chain from ``first`` on round to the rank before it, and its place
    there."""
    n = build.collective.num_ranks
    place = (r - first) % n
    return (r, (r + 1) % n if place < n - 1 else -1, (r - 1) % n if place else -1, 0), place


def _ring_broadcast(build: Builder, r: int) -> None:
    n = build.collective.num_ranks
    key, place = _chain(build, r, build.collective.root or 0)
    every = n * build.chunks
    if place == 0:
        build.add(key, Opcode.COPY, src=(IN, 0), dst=(OUT, 0), count=every)
        if n > 1:
            build.add(key, Opcode.SEND, src=(IN, 0), count=every)
    else:
        build.add(key, Opcode.RECV_COPY_SEND if place < n - 1 else Opcode.RECV, dst=(OUT, 0), count=every)


def _ring_reduce(build: Builder, r: int) -> None:
    n = build.collective.num_ranks
    key, place = _chain(build, r, ((build.collective.root or 0) + 1) % n)
    every = n * build.chunks
    if n == 1:
        build.add(key, Opcode.COPY, src=(IN, 0), dst=(OUT, 0), count=every)
    elif place == 0:
        build.add(key, Opcode.SEND, src=(IN, 0), count=every)
    elif place < n - 1:
        build.add(key, Opcode.RECV_REDUCE_SEND, src=(IN, 0), count=every)
    else:
        build.add(key, Opcode.RECV_REDUCE_COPY, src=(IN, 0), dst=(OUT, 0), count=every)


_RINGS = {
    "allgather": _ring_allgather,
    "reduce-scatter": _ring_reduce_scatter,
    "allreduce": _ring_allreduce,
    "broadcast": _ring_broadcast,
    "reduce": _ring_reduce,
}


def random_program(
    seed: int, ranks: int, messages: int, *, size: int = 4, widest: int = 4, waits: int = 2, tangled: bool = False
) -> Program:
    """Return a well formed program that computes nothing in particular.

    Messages travel along a few fixed paths, each of a channel of its own, in a random order, so that the
    program completes with unbounded FIFOs, unless it is ``tangled``: then blocks do what they do in an order
    of their own, and may wait for each other for ever. Scratch of ``size`` chunks a rank is read and written
    at random.
    """
    draw = random.Random(seed)
    build = Builder(Collective("allgather", ranks), size)
    build.scratch = [size] * ranks
    done: dict[int, list[tuple[Key, int]]] = {rank: [] for rank in range(ranks)}

    def act(key: Key, op: Opcode, count: int) -> None:
        src, dst = ((SCRATCH, draw.randint(0, size - count)) for _ in range(2))
        dst = src if abs(src[1] - dst[1]) < count else dst
        picked = draw.choices(done[key[0]], k=draw.randint(0, waits)) if done[key[0]] else []
        deps = sorted({token for other, token in picked if other != key})
        here = (src if op.reads_src else NOWHERE, dst if op.writes_dst else NOWHERE)
        done[key[0]].append((key, build.add(key, op, *here, count, deps)))

    paths = [_random_path(draw, ranks) for _ in range(draw.randint(1, 4))]
    for _ in range(messages):
        channel = draw.randrange(len(paths))
        path, count = paths[channel], draw.randint(1, min(widest, size))
        first = draw.randrange(len(path) - 1)
        last = draw.randint(first + 1, len(path) - 1)
        for k in range(first, last + 1):
            key = (path[k], path[k + 1] if k + 1 < len(path) else -1, path[k - 1] if k else -1, channel)
            act(key, draw.choice(_ops(sends=k < last, receives=k > first)), count)
        if draw.random() < 0.5:
            act((draw.randrange(ranks), -1, -1, 9), draw.choice([Opcode.COPY, Opcode.REDUCE]), 1)
    if tangled:
        for rows in build.rows.values():
            draw.shuffle(rows)
    return build.build()


def _random_path(draw: random.Random, ranks: int) -> list[int]:
    """Return 2 or more ranks, all different but that the last may be the first again."""
    path = draw.sample(range(ranks), draw.randint(2, ranks))
    return [*path, path[0]] if draw.random() < 0.5 else path


def _ops(sends: bool, receives: bool) -> list[Opcode]:
    return [op for op in Opcode if op.sends == sends and op.receives == receives]


# ---- planting mistakes


def find(program: Program, rank: int, block: int, step: int) -> int:
    """Return the instruction at a place."""
    return int(program.block_start[int(program.rank_blocks[rank]) + block]) + step


def edited(program: Program, instruction: int, **fields: int) -> Program:
    """Return the program with fields of one instruction changed."""
    columns: dict[str, Any] = {}
    for name, value in fields.items():
        columns[name] = getattr(program, name).astype(np.int64)
        columns[name][instruction] = value
    return attrs.evolve(program, **columns)


def with_blocks(program: Program, block: int, **fields: int) -> Program:
    """Return the program with fields of one threadblock changed."""
    return edited(program, block, **fields)


def with_deps(program: Program, instruction: int, deps: Sequence[int]) -> Program:
    """Return the program in which one instruction waits for exactly ``deps``."""
    waits = [program.dependencies(i) for i in range(program.num_instructions)]
    waits[instruction] = list(deps)
    return attrs.evolve(program, dep_start=np.cumsum([0, *map(len, waits)]), deps=[d for w in waits for d in w])


def swapped(program: Program, first: int, second: int) -> Program:
    """Return the program with what two instructions do exchanged; who waits for which row stays."""
    columns = {name: getattr(program, name).copy() for name in INSTRUCTION_COLUMNS}
    for column in columns.values():
        column[[first, second]] = column[[second, first]]
    return attrs.evolve(program, **columns)


def dropped(program: Program, instruction: int) -> Program:
    """Return the program without one instruction; who waited for it waits no more."""
    keep = np.arange(program.num_instructions) != instruction
    waits = [
        [d - (d > instruction) for d in program.dependencies(i) if d != instruction]
        for i in np.flatnonzero(keep).tolist()
    ]
    return attrs.evolve(
        program,
        **{name: getattr(program, name)[keep] for name in INSTRUCTION_COLUMNS},
        block_start=program.block_start.astype(np.int64) - (program.block_start > instruction),
        dep_start=np.cumsum([0, *map(len, waits)]),
        deps=[d for w in waits for d in w],
    )
