"""Check the form of a program's columns, on which every later check relies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from ..arrays import Array, lexsort
from ..machine import connections
from ..program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Buffer, Opcode, Program

__all__ = [
    "MOST",
    "block_place",
    "doing",
    "matched",
    "structure",
    "summary",
]

#: the most problems that are described
MOST = 100


def summary(problems: Sequence[str], most: int = 3) -> str:
    """Return the first problems in one line, and the number of others.

    >>> summary(["one", "two", "three"], most=2)
    'one; two; and 1 more'
    """
    more = [f"and {len(problems) - most} more"] if len(problems) > most else []
    return "; ".join([*problems[:most], *more])


def structure(program: Program) -> list[str]:
    """Return the problems of the first group of checks that finds any."""
    for check in (_shape, _blocks, _instructions, _dependencies):
        if problems := list(islice(check(program), MOST)):
            return problems
    return []


def block_place(program: Program, block: int) -> str:
    """Return ``rank R, threadblock T`` for messages."""
    return f"rank {int(program.block_rank[block])}, threadblock {int(program.block_id[block])}"


def _shape(program: Program) -> Iterator[str]:
    for names in (BLOCK_COLUMNS, INSTRUCTION_COLUMNS):
        lengths = {name: len(getattr(program, name)) for name in names}
        if len(set(lengths.values())) > 1:
            yield "columns of different lengths: " + ", ".join(f"{k} {n}" for k, n in lengths.items())
    yield from _starts(program.block_start, len(program.block_rank), len(program.opcode), "block_start")
    yield from _starts(program.dep_start, len(program.opcode), len(program.deps), "dep_start")
    if program.chunks < 1:
        yield f"a shard has {program.chunks} chunks; at least 1 is needed"
    if len(program.scratch) != program.num_ranks:
        yield f"scratch sizes for {len(program.scratch)} ranks, but there are {program.num_ranks} ranks"
    for rank in np.flatnonzero(program.scratch.astype(np.int64) < 0).tolist():
        yield f"rank {rank} has a scratch buffer of {program.scratch[rank]} chunks"


def _starts(start: Array, rows: int, total: int, name: str) -> Iterator[str]:
    if len(start) != rows + 1:
        yield f"{name} has {len(start)} entries; {rows + 1} are needed"
    elif start[0] != 0 or start[-1] != total or (np.diff(start.astype(np.int64)) < 0).any():
        yield f"{name} must ascend from 0 to {total}"


def _blocks(program: Program) -> Iterator[str]:
    rank = program.block_rank.astype(np.int64)
    if ((rank < 0) | (rank >= program.num_ranks)).any() or (np.diff(rank) < 0).any():
        yield f"block_rank must ascend within ranks 0 to {program.num_ranks - 1}"
        return
    for name in ("send_peer", "recv_peer"):
        peer = getattr(program, name).astype(np.int64)
        verb = name.split("_")[0]
        for block in np.flatnonzero((peer < -1) | (peer >= program.num_ranks)).tolist():
            yield f"{block_place(program, block)} has {verb} peer {peer[block]}, which is not a rank"
        for block in np.flatnonzero(peer == rank).tolist():
            yield f"{block_place(program, block)} has its own rank as {verb} peer"
    for block in np.flatnonzero(program.channel.astype(np.int64) < 0).tolist():
        yield f"{block_place(program, block)} has channel {program.channel[block]}"
    yield from _ownership(program)


def _ownership(program: Program) -> Iterator[str]:
    """Check that at most one block sends into, and one receives from, each (peer, channel): else order is undefined."""
    rank, channel = program.block_rank.astype(np.int64), program.channel.astype(np.int64)
    for name, verb in (("send_peer", "send to"), ("recv_peer", "receive from")):
        peer = getattr(program, name).astype(np.int64)
        blocks = np.flatnonzero(peer >= 0)
        blocks = blocks[lexsort((blocks, channel[blocks], peer[blocks], rank[blocks]))]
        key = np.stack([rank[blocks], peer[blocks], channel[blocks]])
        for i in np.flatnonzero((key[:, 1:] == key[:, :-1]).all(axis=0)).tolist():
            first, second = blocks[i], blocks[i + 1]
            yield (
                f"{block_place(program, first)} and threadblock {program.block_id[second]} both {verb} "
                f"rank {peer[first]} on channel {channel[first]}; one connection needs one owner"
            )


def _instructions(program: Program) -> Iterator[str]:
    opcode = program.opcode.astype(np.int64)
    for i in np.flatnonzero((opcode < 0) | (opcode >= len(Opcode))).tolist():
        yield f"{program.place(i)} has opcode {opcode[i]}, which does not exist"
    if ((opcode < 0) | (opcode >= len(Opcode))).any():
        return
    sends, receives = program.send_peer.take(program.block) >= 0, program.recv_peer.take(program.block) >= 0
    for i in np.flatnonzero(program.sends & ~sends).tolist():
        yield f"{doing(program, i)} sends, but its threadblock has no send peer"
    for i in np.flatnonzero(program.receives & ~receives).tolist():
        yield f"{doing(program, i)} receives, but its threadblock has no receive peer"
    count = program.count.astype(np.int64)
    for i in np.flatnonzero((opcode != Opcode.NOP) & (count < 1)).tolist():
        yield f"{doing(program, i)} has count {count[i]}; at least 1 is needed"
    for i in np.flatnonzero((opcode == Opcode.NOP) & (count != 0)).tolist():
        yield f"{program.place(i)} (nop) has count {count[i]}; 0 is needed"
    for side in ("src", "dst"):
        buffer = getattr(program, f"{side}_buffer").astype(np.int64)
        for i in np.flatnonzero(program.uses(side) & ((buffer < 0) | (buffer >= len(Buffer)))).tolist():
            yield f"{doing(program, i)} names {side} buffer {buffer[i]}, which does not exist"


def doing(program: Program, instruction: int) -> str:
    """Return ``rank R, threadblock T, step S (recv-reduce-copy)``."""
    name = Opcode(int(program.opcode[instruction])).name.lower().replace("_", "-")
    return f"{program.place(instruction)} ({name})"


def _dependencies(program: Program) -> Iterator[str]:
    deps = program.deps.astype(np.int64)
    dependent = program.dependent
    outside = (deps < 0) | (deps >= program.num_instructions)
    for k in np.flatnonzero(outside).tolist():
        yield f"{program.place(dependent[k])} depends on instruction {deps[k]}, which does not exist"
    if outside.any():
        return
    for k in np.flatnonzero(deps == dependent).tolist():
        yield f"{program.place(dependent[k])} depends on itself"
    rank = program.rank
    for k in np.flatnonzero(rank.take(deps) != rank.take(dependent)).tolist():
        yield f"{program.place(dependent[k])} depends on {program.place(deps[k])}, which is another rank"
    for k in np.flatnonzero((program.block.take(deps) == program.block.take(dependent)) & (deps > dependent)).tolist():
        yield f"{program.place(dependent[k])} depends on step {program.step[deps[k]]} of its own threadblock"


def matched(program: Program, partner: Array) -> list[str]:
    """Return the messages whose send or receive is missing, or whose ends differ in count.

    ``partner`` is the result of :func:`~..machine.partners`.
    """
    problems: list[str] = []
    rows = np.flatnonzero(program.receives)
    received = partner.take(rows)
    unmatched = program.sends.copy()
    unmatched[received.compress(received >= 0)] = False
    for i in np.flatnonzero(unmatched)[:MOST].tolist():
        peer = f"rank {program.send_peer[program.block[i]]}"
        problems.append(f"{doing(program, i)} sends to {peer}, which never receives it ({_ends(program, i, True)})")
    for i in rows[received < 0][:MOST].tolist():
        peer = f"rank {program.recv_peer[program.block[i]]}"
        problems.append(f"{doing(program, i)} receives from {peer}, which never sends it ({_ends(program, i, False)})")
    rows, received = rows.compress(received >= 0), received.compress(received >= 0)
    differ = program.count.take(rows) != program.count.take(received)
    for i, j in zip(rows[differ][:MOST].tolist(), received[differ][:MOST].tolist(), strict=True):
        taken = f"{doing(program, i)} receives {program.count[i]}"
        problems.append(f"{doing(program, j)} sends {program.count[j]} chunks, but {taken}")
    return problems


def _ends(program: Program, instruction: int, sends: bool) -> str:
    """Return the number of messages at both ends of an instruction's connection, as text."""
    links = connections(program)
    connection = (links.outward if sends else links.inward)[program.block[instruction]]
    words = []
    for does, block, what in ((program.sends, links.sender, "sends"), (program.receives, links.receiver, "receives")):
        end = int(block[connection])
        number = int(does[program.block == end].sum()) if end >= 0 else 0
        words.append(f"{number} {what}" + (f" by {block_place(program, end)}" if end >= 0 else ""))
    return f"channel {links.channel[connection]} has {words[0]} and {words[1]}"
