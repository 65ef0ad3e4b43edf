"""The limits of the executor and its traps, judged on the columns of a program: before writing, and after reading.

The executor checks only the operations of a block, at the first launch. What exceeds another limit writes past arrays,
hangs, or adds wrongly (notes, 3 and 5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypedDict

import numpy as np

from collc.ir.arrays import Array, distinct, distinct_rows
from collc.ir.diagnostic import Excess, Kind
from collc.ir.one_sided.opcodes import FLAGS, Op, table
from collc.ir.one_sided.program import NO_CHANNEL, OneSided, Transport
from collc.ir.program import Buffer

from ..msccl_xml.findings import Finding
from .runtimes import (
    MAX_BARRIERS,
    MAX_LINK_IDS,
    MAX_LINKS,
    MAX_OPERATIONS,
    MAX_RANKS_PER_NODE,
    MAX_SEMAPHORE_IDS,
    RUNTIMES,
    Runtime,
)  # fmt: skip

__all__ = ["CHECKS", "broken_limits", "check_residency", "counted_operations", "linked", "reached"]

#: name of a check -> what it says if it passed
CHECKS = {
    "limits": "operations, channels, buffers, numbers and barriers are within the executor's arrays",
    "traps": "no operation does anything else than its name says",
}

_Findings = Iterator[Finding]
_Make = Callable[..., Finding]

_SEMAPHORES = table(Op.SEM_ACQUIRE, Op.SEM_RELEASE)
_FEWER = "use packets (`protocol=LL`), which need fewer operations, or fewer chunks (`discretize{max-chunks=..}`)"


class _Exceeded(TypedDict):
    kind: Kind
    excess: Excess


def _excess(what: str, found: int, allowed: int) -> _Exceeded:
    return {"kind": Kind.LIMIT, "excess": Excess(what, found, allowed)}


def broken_limits(program: OneSided, runtime: Runtime | None = None) -> list[Finding]:
    """Return the limits and rules that a program breaks for one version of the runtime, or for the newest."""
    runtime = runtime or RUNTIMES["main"]
    limit, trap = partial(Finding, "limits"), partial(Finding, "traps")
    return [
        *_operations(limit, program), *_lists(limit, program), *_numbers(limit, program, runtime),
        *_missing(limit, program, runtime), *_barriers(limit, program), *_nodes(limit, program),
        *_flushes(trap, program), *_crossed(trap, program), *_several(trap, program), *_alignment(trap, program),
        *_sub_allocated(trap, program), *_packets(trap, program), *_halves(trap, program), *_loops(trap, program),
    ]  # fmt: skip


def check_residency(program: OneSided, multiprocessors: int | None) -> tuple[list[Finding], str]:
    """Return the ranks whose blocks cannot all run at once, and the detail of the check.

    The kernel starts as usual, not cooperatively: a block without a multiprocessor starts only after another ends.
    """
    blocks = np.diff(program.rank_blocks)
    most = int(blocks.max(initial=0))
    if multiprocessors is None:
        return [], f"{most} blocks of a rank run at once: a GPU needs {most} multiprocessors"
    found = [
        Finding(
            "residency", "C0673", f"rank {rank} has {blocks[rank]} blocks, but {multiprocessors} run at once: block "
            f"{multiprocessors} has no place, and others may wait for it forever", _FEWER,
            **_excess("blocks", int(blocks[rank]), multiprocessors),
        )
        for rank in np.flatnonzero(blocks > multiprocessors).tolist()
    ]  # fmt: skip
    return found, f"{most} blocks of a rank run at once on {multiprocessors} multiprocessors"


# ---- limits


def counted_operations(program: OneSided) -> Array:
    """Return the operations of each block as the executor counts them: nops, and one more for each pipeline."""
    loop = program.loop.astype(np.int64)
    begins = (loop >= 0) & (np.diff(loop, prepend=-1) != 0)
    counts = np.diff(program.block_start.astype(np.int64))
    return counts + np.bincount(program.block[begins], minlength=program.num_blocks).astype(np.int64)


def _block(program: OneSided, block: int) -> str:
    return f"rank {program.block_rank[block]}, block {program.block_id[block]}"


def _operations(finding: _Make, program: OneSided) -> _Findings:
    counts = counted_operations(program)
    for block in np.flatnonzero(counts > MAX_OPERATIONS).tolist():
        found = f"{_block(program, block)} has {counts[block]} operations, the executor takes {MAX_OPERATIONS}"
        yield finding("C0669", found, "let `fit-operations` cut it", **_excess(
            "operations", int(counts[block]), MAX_OPERATIONS))  # fmt: skip


def linked(program: OneSided) -> Array:
    """Return the distinct (block, transport, channel) of all operations: shape (n, 3), ascending."""
    of = program.link_operation
    own = ~_SEMAPHORES[program.opcode[of]]
    channel = np.concatenate([program.links[own], program.item_channel[program.item_channel != NO_CHANNEL]])
    operation = np.concatenate([of[own], program.item_operation[program.item_channel != NO_CHANNEL]])
    if not len(channel):
        return np.zeros((0, 3), dtype=np.int64)
    rows = (program.block[operation], program.channel_transport[channel], channel)
    return distinct_rows(np.stack([np.asarray(row, dtype=np.int64) for row in rows], axis=1))


def reached(program: OneSided) -> Array:
    """Return the distinct (block, transport, rank, buffer) of remote items: shape (n, 4), ascending."""
    of = program.item_operation
    remote = (program.item_rank != program.rank[of]) & (program.item_channel == NO_CHANNEL)
    of = of[remote]
    if not len(of):
        return np.zeros((0, 4), dtype=np.int64)
    rows = (program.block[of], program.transport[of], program.item_rank[remote], program.item_buffer[remote])
    return distinct_rows(np.stack([np.asarray(row, dtype=np.int64) for row in rows], axis=1))


def _lists(finding: _Make, program: OneSided) -> _Findings:
    for what, rows in (("channels", linked(program)), ("remote buffers", reached(program))):
        pairs, counts = np.unique(rows[:, :2], axis=0, return_counts=True)
        for at in np.flatnonzero(counts > MAX_LINKS).tolist():
            block, transport = pairs[at].tolist()
            kind = Transport(transport).name.lower()
            found = f"{_block(program, block)} uses {counts[at]} {what} by {kind}, the executor takes {MAX_LINKS}"
            hint = "let `fit-operations` cut it"
            yield finding("C0670", found, hint, **_excess(what, int(counts[at]), MAX_LINKS))


def _numbers(finding: _Make, program: OneSided, runtime: Runtime) -> _Findings:
    links = np.diff(program.link_start.astype(np.int64))
    own = _SEMAPHORES[program.opcode]
    sides = program.sources.astype(np.int64), np.diff(program.item_start.astype(np.int64)) - program.sources
    for code, what, counts, most in (
        ("C0671", "channels", np.where(own, 0, links), MAX_LINK_IDS),
        ("C0671", "semaphores", np.where(own, links, 0), MAX_SEMAPHORE_IDS),
        ("C0672", "sources", sides[0], runtime.max_items),
        ("C0672", "destinations", sides[1], runtime.max_items),
    ):
        for at in np.flatnonzero(counts > most).tolist():
            name = f"{program.place(at)} ({program.word(at)})"
            found = f"{name} has {counts[at]} {what}, {runtime.title} takes {most}"
            yield finding(code, found, "let `fit-operations` cut it", **_excess(what, int(counts[at]), most))


def _missing(finding: _Make, program: OneSided, runtime: Runtime) -> _Findings:
    for at in np.flatnonzero(table(*runtime.lacks)[program.opcode]).tolist():
        found = f"{program.place(at)}: {runtime.title} lacks `{program.word(at)}`"
        yield finding("C0668", found, "use a later `runtime`")


def _barriers(finding: _Make, program: OneSided) -> _Findings:
    own = program.opcode == Op.BARRIER
    for at in np.flatnonzero(own & (program.number >= MAX_BARRIERS)).tolist():
        found = f"{program.place(at)} has barrier {program.number[at]}, a GPU has {MAX_BARRIERS}"
        yield finding("C0675", found, None, **_excess("barriers", int(program.number[at]) + 1, MAX_BARRIERS))


def _nodes(finding: _Make, program: OneSided) -> _Findings:
    ports = program.channel_transport == Transport.PORT
    near = program.channel_transport == Transport.MEMORY
    if not ports.any() or not near.any():
        return
    peers = distinct_rows(np.stack([program.channel_rank[near], program.channel_peer[near]], axis=1).astype(np.int64))
    most = int(np.bincount(peers[:, 0]).max(initial=0)) + 1
    if most > MAX_RANKS_PER_NODE:
        found = f"{most} ranks share memory beside ports, but the executor has {MAX_RANKS_PER_NODE} NICs of a node"
        yield finding("C0676", found, "set `ranks-per-node`", mild=True)


# ---- traps


def _flushes(finding: _Make, program: OneSided) -> _Findings:
    bare = (program.opcode == Op.FLUSH) & (np.diff(program.item_start.astype(np.int64)) == 0)
    for at in np.flatnonzero(bare).tolist():
        found = f"{program.place(at)}: a flush without destinations does nothing, for the executor counts those"
        yield finding("C0678", found, "give it a destination for each channel", mild=True)


def _sides(program: OneSided, rows: Array) -> tuple[Array, Array]:
    """Return the items of the sources and of the destinations of operations with pairs of them, in order."""
    first = program.item_start.astype(np.int64)
    counts = program.sources[rows].astype(np.int64)
    at = np.repeat(first[rows], counts) + np.concatenate([np.arange(count) for count in counts.tolist()] or [counts])
    return at, at + np.repeat(counts, counts)


def _crossed(finding: _Make, program: OneSided) -> _Findings:
    rows = np.flatnonzero(program.opcode == Op.GET)
    src, dst = _sides(program, rows)
    crossed = program.item_offset[src] != program.item_offset[dst]
    for at in distinct(program.item_operation[src[crossed]]).tolist():
        found = f"{program.place(at)}: a get reads at the offset of its destination and writes at that of its source"
        yield finding("C0679", found, "use a put, or equal offsets")


def _several(finding: _Make, program: OneSided) -> _Findings:
    puts = (program.opcode == Op.PUT) & (program.transport == Transport.MEMORY)
    own = puts[program.item_operation] & program.item_is_source
    first = program.item_buffer[program.item_start[program.item_operation[own]]]
    mixed = program.item_operation[own][program.item_buffer[own] != first]
    for at in distinct(mixed).tolist():
        found = f"{program.place(at)}: a put of several buffers takes all its sources from the first one's"
        yield finding("C0681", found, "use a put for each buffer")


def _alignment(finding: _Make, program: OneSided) -> _Findings:
    if program.alignment < 16 or program.alignment % 16:
        found = f"found `buffer_alignment` {program.alignment}, needed a multiple of 16: the executor adds less wrongly"
        yield finding("C0682", found, None)


def _sub_allocated(finding: _Make, program: OneSided) -> _Findings:
    """Find puts over ports from the caller's buffers, whose offset in their allocation the executor forgets."""
    puts = table(Op.PUT, Op.PWS, Op.PWSF)[program.opcode] & (program.transport == Transport.PORT)
    of = program.item_operation
    held = puts[of] & program.item_is_source & (program.item_buffer != Buffer.SCRATCH)
    for at in distinct(of[held]).tolist():
        found = f"{program.place(at)} ({program.word(at)}) sends from the caller's buffer over a port"
        yield finding("C0693", f"{found}: right only for buffers at the start of an allocation", mild=True)


def _packets(finding: _Make, program: OneSided) -> _Findings:
    """Find packets outside of scratch, and packets in scratch that has no room for their flags."""
    of = program.item_operation
    slots = _slots(program)
    for at in distinct(of[slots & (program.item_buffer != Buffer.SCRATCH)]).tolist():
        yield finding("C0683", f"{program.place(at)} ({program.word(at)}): packets are in scratch only", None)
    if program.packets or not slots.any():
        return
    ends = 2 * (program.item_offset[slots].astype(np.int64) + program.item_count[slots])
    beyond = np.flatnonzero(ends > program.scratch[program.item_rank[slots]].astype(np.int64))
    for at in distinct(of[slots][beyond])[:1].tolist():
        found = f"{program.place(at)} ({program.word(at)}): packets take twice their chunks of scratch"
        yield finding("C0683", f"{found}, and only protocol LL has twice the scratch", "use protocol LL")


def _slots(program: OneSided) -> Array:
    """Return which items hold packets."""
    of, op = program.item_operation, program.opcode[program.item_operation]
    place = np.arange(len(of)) - program.item_start[of].astype(np.int64)
    source = program.item_is_source
    second = np.where(source, place, place - program.sources[of])
    whole = table(Op.UPKT, Op.RPPKT, Op.GSTOREPKT)[op] & source
    whole |= table(Op.PPKT, Op.CPKT, Op.RPPKT, Op.GSTOREPKT)[op] & ~source
    later = table(Op.REPKT, Op.RESPKT, Op.RECPKT, Op.RECSPKT)[op] & (second > 0)
    found: Array = whole | later
    return found


def _halves(finding: _Make, program: OneSided) -> _Findings:
    """Find plain operations on scratch of peers, whose halves the executor does not distinguish for them."""
    if not program.double_scratch:
        return
    if len(distinct(program.scratch)) > 1:
        found = "ranks have scratch of different sizes, but a rank finds the halves of all by its own"
        yield finding("C0684", found, "use the same `scratch_chunks`")
    of = program.item_operation
    plain = ~FLAGS[program.opcode[of]] & (program.item_buffer == Buffer.SCRATCH)
    remote = (program.item_rank != program.rank[of]) | (program.item_channel != NO_CHANNEL)
    for at in distinct(of[plain & remote]).tolist():
        found = f"{program.place(at)} ({program.word(at)}) reaches scratch of a peer: only packets find its half"
        yield finding("C0684", found, "use packets, or no double scratch")


def _loops(finding: _Make, program: OneSided) -> _Findings:
    of = program.item_operation
    inside = program.loop[of] >= 0
    chunks = program.loop_chunks.astype(np.int64)[program.loop[of][inside]]
    for at in distinct(of[inside][program.item_count[inside] != chunks]).tolist():
        found = f"{program.place(at)} ({program.word(at)}): its items have other chunks than its pipeline"
        yield finding("C0685", f"{found}, so the last turns go past their ends", "use `num_chunks` chunks")
    for loop, unit in enumerate(program.loop_unit.tolist()):
        if unit % program.alignment:
            found = f"pipeline {loop} works in slices of {unit} bytes, needed a multiple of {program.alignment}"
            yield finding("C0685", found, None)
    if program.reuse:
        yield from _folded(finding, program)


def _folded(finding: _Make, program: OneSided) -> _Findings:
    """Find local sums in pipelines whose sources fold otherwise than their destination (trap 7)."""
    own = table(Op.RE, Op.RES)[program.opcode] & (program.loop >= 0)
    scratch = program.item_buffer == Buffer.SCRATCH
    of = program.item_operation
    last = program.item_start[1:].astype(np.int64) - (np.diff(program.item_start.astype(np.int64)) - program.sources)
    held = own[of] & program.item_is_source & (scratch != scratch[np.minimum(last, max(len(scratch) - 1, 0))][of])
    for at in distinct(of[held]).tolist():
        found = f"{program.place(at)} ({program.word(at)}) in a pipeline adds scratch and other buffers"
        yield finding("C0685", f"{found}: with reused resources its offsets fold like those of its destination", None)
