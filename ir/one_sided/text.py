"""The textual form of one-sided programs: one line for each channel, semaphore, loop and operation.

>>> from collc.ir.collective import Collective
>>> from collc.ir.program import Buffer
>>> from .program import Channel, Item, OneSided, Operation, Transport
>>> put = Operation(
...     Op.PUT, Transport.MEMORY, (), (Item(0, Buffer.INPUT, 0, 1),), (Item(1, Buffer.SCRATCH, 2, 1),)
... )
>>> print_operation(put, 0)
'put memory input 0 count 1 -> rank 1 scratch 2 count 1'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..program import Buffer
from ..ragged import group_starts
from .opcodes import WORDS, Op
from .program import NO_CHANNEL, Channel, Item, OneSided, Operation, Transport

__all__ = ["BUFFERS", "TRANSPORTS", "print_body", "print_operation"]

BUFFERS = tuple(buffer.name.lower() for buffer in Buffer)
TRANSPORTS = tuple(transport.name.lower() for transport in Transport if transport >= 0)
#: yes-no settings of a program, as words of its text
FLAGS = ("packets", "inplace", "double_scratch", "together", "reuse")


def print_body(program: OneSided) -> Iterator[str]:
    """Yield the lines between the braces of a one-sided program."""
    flags = [name.replace("_", "-") for name in FLAGS if getattr(program, name)]
    yield f"  chunks {program.chunks}"
    yield f"  threads {program.threads}"
    yield f"  alignment {program.alignment}"
    if flags:
        yield f"  with {' '.join(flags)}"
    for unit, count in zip(program.loop_unit.tolist(), program.loop_chunks.tolist(), strict=True):
        yield f"  loop unit {unit} chunks {count}"
    channels, operations = program.channels, program.operations()
    first_channel, first_semaphore = (
        group_starts(column, program.num_ranks).tolist() for column in (program.channel_rank, program.semaphore_rank)
    )
    start, first = program.block_start.tolist(), program.rank_blocks.tolist()
    semaphores = list(zip(program.semaphore_rank.tolist(), program.semaphore_value.tolist(), strict=True))
    sizes = zip(*(column.tolist() for column in (program.inputs, program.outputs, program.scratch)), strict=True)
    for rank, (into, out, scratch) in enumerate(sizes):
        yield f"  rank {rank} input {into} output {out} scratch {scratch} {{"
        yield from (f"    {_channel(channel)}" for channel in channels if channel.rank == rank)
        yield from (f"    semaphore {value}" for owner, value in semaphores if owner == rank)
        for number, block in enumerate(range(first[rank], first[rank + 1])):
            yield f"    block {number} {{"
            for operation in operations[start[block] : start[block + 1]]:
                yield f"      {print_operation(operation, rank, first_channel[rank], first_semaphore[rank])}"
            yield "    }"
        yield "  }"


def _channel(channel: Channel) -> str:
    if channel.transport != Transport.SWITCH:
        return f"channel {_transport(channel.transport)} peer {channel.peer}"
    return f"channel switch {BUFFERS[channel.buffer]} ranks {_numbers(channel.group)}"


def print_operation(operation: Operation, rank: int, first_channel: int = 0, first_semaphore: int = 0) -> str:
    """Return the line of an operation of ``rank``, whose channels and semaphores count from these rows."""
    of_semaphores = operation.op in (Op.SEM_ACQUIRE, Op.SEM_RELEASE)
    words = [WORDS[operation.op]]
    if operation.transport != Transport.LOCAL:
        words.append(_transport(operation.transport))
    if operation.op is Op.BARRIER:
        words.append(f"{operation.number} blocks {operation.blocks}")
    if operation.links:
        first = first_semaphore if of_semaphores else first_channel
        words.append(f"on {_numbers([link - first for link in operation.links])}")
    words += [_item(item, rank, first_channel) for item in operation.src]
    if operation.dst:
        words += ["->", *(_item(item, rank, first_channel) for item in operation.dst)]
    if operation.shares != 1 or operation.share:
        words.append(f"share {operation.share} of {operation.shares}")
    if operation.loop >= 0:
        words.append(f"loop {operation.loop}")
    return " ".join(words)


def _item(item: Item, rank: int, first_channel: int) -> str:
    where = f"{BUFFERS[item.buffer]} {item.offset} count {item.count}"
    if item.channel != NO_CHANNEL:
        return f"switch {item.channel - first_channel} {where}"
    return where if item.rank == rank else f"rank {item.rank} {where}"


def _transport(transport: int) -> str:
    return TRANSPORTS[transport] if 0 <= transport < len(TRANSPORTS) else str(transport)


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values))
