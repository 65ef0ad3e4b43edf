"""Which locations each instruction reads and writes."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, lexsort
from ..frozen import frozen
from ..layout import Layout, locations
from ..program import Buffer, Opcode, Program
from ..ragged import parts, ranges
from ._structure import MOST, doing

__all__ = ["LOCATIONS", "Accesses", "accesses", "bounds", "input_writes", "overlaps", "reads_input_first"]

#: locations that are compared or executed at a time: they bound the memory for addresses, and fit into caches
LOCATIONS = 1 << 18


@frozen(eq=False)
class Accesses:
    """Addresses that instructions touch: in row j ``instruction[j]`` reads or writes ``lo[j]`` .. ``hi[j]``.

    ``hi`` is exclusive; rows are sorted by instruction, its reads before its write.
    """

    instruction: Array
    lo: Array
    hi: Array
    write: Array


def accesses(program: Program, where: Layout) -> Accesses:
    """Return every read and write of a program whose accesses are within bounds.

    A copy of a place onto itself, as copies of input to output become in place, changes nothing that another
    instruction could read: it counts as a read alone. (It still must not meet a write, which it could undo.)
    """
    src, dst = locations(program, where)
    moves = (program.opcode != Opcode.COPY) | (src != dst)
    used = (program.reads_src, program.reads_dst, program.writes_dst & moves)
    rows = [np.flatnonzero(mask) for mask in used]
    instruction = np.concatenate(rows)
    lo = np.concatenate([src[rows[0]], dst[rows[1]], dst[rows[2]]])
    write = np.repeat([False, False, True], [len(r) for r in rows])
    order = lexsort((write, instruction))
    instruction, lo, write = instruction.take(order), lo.take(order), write.take(order)
    return Accesses(instruction, lo, lo + program.count.take(instruction), write)


def bounds(program: Program, size: Array) -> list[str]:
    """Return the accesses that leave their buffer; ``size`` as :func:`sizes` gives it."""
    rank = program.rank
    problems: list[str] = []
    for side, does in (("src", "reads"), ("dst", "writes")):
        buffer, offset = (
            getattr(program, f"{side}_buffer"),
            getattr(program, f"{side}_offset").astype(np.int64),
        )
        rows = np.flatnonzero(program.uses(side))
        last = size[rank.take(rows), buffer.take(rows)] - program.count.take(rows).astype(
            np.int64
        )  # this way it cannot overflow
        for i in rows[(offset.take(rows) < 0) | (offset.take(rows) > last)][:MOST].tolist():
            name, chunks = Buffer(int(buffer[i])).name.lower(), size[rank[i], buffer[i]]
            has = f"has chunks 0 to {chunks - 1}" if chunks else "has none"
            span = f"{name} chunks {offset[i]} to {int(offset[i]) + int(program.count[i]) - 1}"
            problems.append(f"{doing(program, i)} {does} {span}, but rank {rank[i]}'s {name} {has}")
    return problems


def input_writes(program: Program) -> list[str]:
    """Return the instructions that write into an input buffer."""
    rows = np.flatnonzero(program.uses("dst", Buffer.INPUT))
    return [f"{doing(program, i)} writes input chunk {program.dst_offset[i]}" for i in rows[:MOST].tolist()]


def overlaps(program: Program, where: Layout) -> list[str]:
    """Return the instructions whose src and dst overlap without being the same.

    What such an instruction does depends on the order in which a runtime moves its chunks.
    """
    src, dst = locations(program, where)
    used = program.reads_src & program.writes_dst
    clash = used & (src != dst) & (np.abs(src - dst) < program.count)
    return [
        f"{doing(program, i)} reads {where.name(program, int(src[i]))} and writes "
        f"{where.name(program, int(dst[i]))}, {program.count[i]} chunks that overlap"
        for i in np.flatnonzero(clash)[:MOST].tolist()
    ]


def reads_input_first(program: Program, where: Layout, time: Array) -> bool:
    """Return whether no instruction reads a chunk of an input after the output at the same address is written.

    ``time`` is the place of each instruction in an order. An instruction reads before it writes.
    """
    addresses = locations(program, where)
    writes = np.flatnonzero(program.uses("dst", Buffer.OUTPUT))
    writes = writes[lexsort([-time.take(writes)])]
    count = program.count.astype(np.int64)
    first = np.full(where.total, len(time), dtype=np.int32 if len(time) < 2**31 else np.int64)
    # the last of several values for one address stays: the earliest time
    for part in parts(count.take(writes), LOCATIONS):
        rows = writes[part]
        first[ranges(addresses[1].take(rows), count.take(rows))] = np.repeat(time.take(rows), count.take(rows))
    for reads, address, buffer in (
        (program.reads_src, addresses[0], program.src_buffer),
        (program.reads_dst, addresses[1], program.dst_buffer),
    ):
        inputs = np.flatnonzero(reads & (buffer == Buffer.INPUT))
        for part in parts(count.take(inputs), LOCATIONS):
            rows = inputs[part]
            written = first.take(ranges(address.take(rows), count.take(rows)))
            if (written < np.repeat(time.take(rows), count.take(rows))).any():
                return False
    return True
