"""The program as C tables: columns of the smallest integer types, all ranks in one file."""

from __future__ import annotations

from typing import Any

import numpy as np

from collc.ir.arrays import fit
from collc.ir.diagnostic import error
from collc.ir.program import Buffer, Opcode, Program

from .progress import Allowance, allowance
from .scratch import Segments, lay_out, span

__all__ = ["tables"]

Array = np.ndarray[Any, np.dtype[Any]]

#: tags up to this are good everywhere; one more than the channels is needed, for copies of a rank to itself
_MAX_CHANNELS = 32767

#: a step's code is its opcode, and whether it sends a copy: always, or in calls in place (engine_step.c)
_BUFFERED, _BUFFERED_IN_PLACE = 16, 32

_WIDTH = 100


def tables(program: Program) -> str:
    """Return the constants and tables that the engine runs; raise C0704 where it could not."""
    _require_carried(program)
    program, segments = lay_out(program)
    allowed = allowance(program)
    collective = program.collective
    constants = {
        "RANKS": program.num_ranks, "ROOT": -1 if collective.root is None else collective.root,
        "REDUCES": int(collective.reduces), "CHUNKS": span(program), "CHANNELS": program.num_channels,
    }  # fmt: skip
    parts = [f"enum {{ {', '.join(f'{name} = {value}' for name, value in constants.items())} }};\n"]
    for title, columns in (
        ("Ranks: their first block (those before it are other ranks'), scratch cells and first segment.",
         _ranks(program, segments)),
        ("Blocks: peers (-1: none), channel, first step and first wait; slots for copies, their size in chunks,\n"
         " * and the most sends in flight.", _blocks(program, allowed)),
        ("Steps of the blocks, one after the other: opcode and flags, where from, where to, how many chunks, and\n"
         " * for how many others the step waits.", _steps(program, allowed)),
        ("Waits of the steps, one after the other: a block of the same rank, and the step of it to be done.",
         _waits(program)),
        ("Segments of scratch: their first cell and the chunk in it.",
         {"segment_cell": segments.cell, "segment_chunk": segments.chunk}),
    ):  # fmt: skip
        parts.append(f"/* {title} */\n" + "".join(_column(name, values) for name, values in columns.items()))
    return "\n".join(parts)


def _require_carried(program: Program) -> None:
    writes = np.array([op.writes_dst for op in Opcode])[program.opcode]
    bad = np.flatnonzero(writes & (program.dst_buffer == Buffer.INPUT))
    if len(bad):
        raise error(
            "C0704",
            f"{program.place(int(bad[0]))} writes to the input",
            notes=["an MPI call leaves its send buffer as it was"],
        )
    if program.num_channels > _MAX_CHANNELS:
        raise error(
            "C0704",
            f"this program uses {program.num_channels} channels; channels are message tags, of which every MPI "
            f"has {_MAX_CHANNELS}",
        )


def _ranks(program: Program, segments: Segments) -> dict[str, Any]:
    return {"rank_blocks": program.rank_blocks, "rank_scratch": segments.cells, "rank_segments": segments.first}


def _blocks(program: Program, allowed: Allowance) -> dict[str, Any]:
    return {
        "block_send_peer": program.send_peer, "block_recv_peer": program.recv_peer, "block_channel": program.channel,
        "block_steps": program.block_start, "block_waits": program.dep_start[program.block_start],
        "block_slots": allowed.slots, "block_slot_chunks": allowed.slot_chunks, "block_sends": allowed.sends,
    }  # fmt: skip


def _steps(program: Program, allowed: Allowance) -> dict[str, Any]:
    code = program.opcode.astype(np.int64)
    code[sorted(allowed.copied)] |= _BUFFERED
    code[sorted(allowed.copied_in_place)] |= _BUFFERED_IN_PLACE
    return {
        "step_code": code, "step_src_buffer": program.src_buffer, "step_src": program.src_offset,
        "step_dst_buffer": program.dst_buffer, "step_dst": program.dst_offset, "step_count": program.count,
        "step_waits": np.diff(program.dep_start.astype(np.int64)),
    }  # fmt: skip


def _waits(program: Program) -> dict[str, Any]:
    return {"wait_block": program.block_id[program.block[program.deps]], "wait_step": program.step[program.deps]}


def _column(name: str, values: Any) -> str:
    """Return one table, wrapped; an empty one gets an entry, for C knows no arrays without."""
    numbers = np.asarray(values, dtype=np.int64)
    if not len(numbers):
        numbers = np.zeros(1, dtype=np.int64)
    kind = np.dtype(fit(int(numbers.min()), int(numbers.max()))).name
    lines, line = [], "   "
    for text in map(str, numbers.tolist()):
        if len(line) + len(text) + 2 > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {text},"
    return "\n".join([f"static const {kind}_t {name}[] = {{", *lines, line, "};\n"])
