"""Programs as C tables: columns of the smallest integer types, all ranks in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, fit
from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.program import Buffer, Program
from collc.ir.ragged import starts
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram
from collc.ir.verify import adds_once

from .fixed_pieces import TITLE as FIXED_PIECES
from .fixed_pieces import all_fixed, fixed_pieces
from .pieces import ENDS, Pieces, pieces_of
from .progress import Allowance, allowance, messages_allowance
from .rooted import TITLE as ROOTS_TITLE
from .rooted import Rooted, root_columns
from .scratch import Segments, is_counted, is_whole, lay_out, span
from .shared_pieces import TITLE as SHARED_PIECES
from .shared_pieces import shared_pieces, shares
from .templates import (
    GroupTables,
    algorithm_columns,
    messages_of,
    messages_of_few,
    shards_in_scratch,
    word_columns,
)
from .turns import TITLE as TURNS_TITLE
from .turns import folded, turn_columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Plan", "column", "tables"]

#: every MPI has this tag; collc needs one tag for each channel, and one for copies of a rank to itself
_MAX_CHANNELS = 32767

#: a step's code is its opcode, and whether it sends a copy: always, or in calls in place (engine_step.c)
_BUFFERED, _BUFFERED_IN_PLACE = 16, 32

_WIDTH = 100


@attrs.frozen
class Plan:
    """The data of one collective for the engine, besides its algorithms, which are rows of the tables.

    ``ranks`` are its members, the first ranks of the communicator; ``relays`` are the others.
    """

    ranks: int
    root: int
    reduces: bool
    twice: bool
    algorithm: int
    algorithms: int
    relays: int


def tables(
    groups: Sequence[Sequence[tuple[AnyProgram, int | None]]], roots: Sequence[Rooted | None] = ()
) -> tuple[str, list[Plan], dict[str, Array]]:
    """Return the text of the constants and tables, the plans, and the numbers in the tables, of all programs in order.

    A group has the programs of one collective, each with the largest whole vector (bytes) that it serves; that of the
    last is ignored. ``roots`` are those of the functions that take the root. Raises C0704 if the engine cannot run a
    program.
    """
    listed, lists = _form([program for group in groups for program, _ in group])
    prepared = [[_Ready.of(program, listed) for program, _ in group] for group in groups]
    plans, ready = _plans(prepared), _numbered(one for group in prepared for one in group)
    channels = max(one.program.num_channels for one in ready)
    parts = [f"/* Channels are message tags. */\nenum {{ CHANNELS = {channels} }};\n"]
    rows_of = [one.program.num_ranks for one in ready]
    algorithms: dict[str, list[int]] = {
        "algorithm_chunks": [_chunks(program) for group in groups for program, _ in group],
        "algorithm_bytes": [_most(program, most) for group in groups for program, most in group],
    }
    rows = starts(rows_of)[:-1]
    whole: dict[str, ArrayLike] = {**algorithms, "algorithm_row": rows}
    numbers = {name: _listed(values) for name, values in whole.items()}
    parts.append("/* Algorithms: chunks of a count, the bytes of a count up to which each is the one to use, and the\n"
                 " * first row of the tables of ranks. */\n"
                 + "".join(column(name, values, "int64_t") for name, values in algorithms.items())
                 + column("algorithm_row", rows))  # fmt: skip
    for title, columns in (
        ("Ranks: their first block (those before it are other ranks'), scratch cells and first segment.", _ranks),
        ("Blocks: peers (-1: none), channel, first step and first wait; slots for copies, their size in chunks,\n"
         " * and the most sends in flight.", _blocks),
        ("Steps of the blocks, one after the other: opcode and flags, where from, where to, how many chunks, and\n"
         " * for how many others the step waits.", _steps),
        ("Waits of the steps, one after the other: a block of the same rank, and the step of it to be done.", _waits),
        ("Segments of scratch: their first cell and the chunk in it.", _segments),
    ):  # fmt: skip
        joined = _joined([columns(one) for one in ready])
        numbers |= {name: _listed(values) for name, values in joined.items()}
        parts.append(f"/* {title} */\n" + "".join(column(name, values) for name, values in joined.items()))
    if any(one.group.sizes for one in ready):
        text, more = _groups(ready, lists)
        parts.append(text)
        numbers |= more
    if moves := root_columns(roots):
        numbers |= {name: _listed(values) for name, values in moves.items()}
        parts.append(f"/* {ROOTS_TITLE} */\n" + "".join(column(name, values) for name, values in moves.items()))
    return "\n".join(parts), plans, numbers


def _form(programs: Sequence[AnyProgram]) -> tuple[Callable[[AnyProgram], Pieces], str]:
    """Return the function that lists the pieces of each algorithm of a file, and the title of their tables."""
    if all_fixed(programs):
        return fixed_pieces, FIXED_PIECES
    if any(map(shares, programs)):
        return shared_pieces, SHARED_PIECES
    return pieces_of, _PIECES


def _plans(prepared: Sequence[Sequence[_Ready]]) -> list[Plan]:
    plans: list[Plan] = []
    for group in prepared:
        c, first = group[0].collective, sum(plan.algorithms for plan in plans)
        root = -1 if c.root is None else c.root
        twice, relays = any(one.twice for one in group), c.num_ranks - c.num_members
        plans.append(Plan(c.num_members, root, c.reduces, twice, first, len(group), relays))
    return plans


def _numbered(ready: Iterable[_Ready]) -> list[_Ready]:
    """Return the algorithms of a file with the numbers of their first pieces."""
    every = list(ready)
    before = starts([len(one.pieces) for one in every])[:-1].tolist()
    return [attrs.evolve(one, first_piece=first) for one, first in zip(every, before, strict=True)]


def _groups(ready: Sequence[_Ready], pieces: str) -> tuple[str, dict[str, Array]]:
    """Return the text and the numbers of the tables that only files with groups have; ``pieces`` titles pieces."""
    found: dict[str, Array] = {}
    parts = []
    for title, columns in (
        ("Groups of algorithms that list rank 0 only: the first of their sizes, and how many; bits of the buffers\n"
         " * that hold the whole vector; chunks of a shard.", algorithm_columns([one.group for one in ready])),
        (pieces, _joined([{"step_pieces": one.pieces.number, **one.pieces.columns} for one in ready])),
        ("Groups that are none of vectors: one more than the place of each algorithm's first element (0: a group of\n"
         " * vectors), and its first product; the generator and the element whose product each element is;\n"
         " * the products of all elements and each generator.", word_columns([one.group for one in ready])),
    ):  # fmt: skip
        if not columns:
            continue
        found |= {name: _listed(values) for name, values in columns.items()}
        parts.append(f"/* {title} */\n" + "".join(column(name, values) for name, values in columns.items()))
    widths = [one.group.width for one in ready]
    if max(widths) > 1:
        found["algorithm_width"] = _listed(widths)
        title = "Ranks that the algorithms of groups list, one of every orbit; 1 is rank 0 only."
        parts.append(f"/* {title} */\n" + column("algorithm_width", widths))
    if turns := turn_columns([one.group.turning for one in ready]):
        found |= {name: _listed(values) for name, values in turns.items()}
        parts.append(f"/* {TURNS_TITLE} */\n" + "".join(column(name, values) for name, values in turns.items()))
    return "\n".join(parts), found


def _most(program: AnyProgram, most: int | None) -> int:
    """Return the bytes of a count, given those of the whole vector."""
    return 0 if most is None else most // (1 if is_whole(program.collective) else program.collective.num_members)


def _chunks(program: AnyProgram) -> int:
    return program.chunks if is_counted(program.collective) else span(program)


#: tables of first rows in another table, with the end of the last
_BEGINS = frozenset({"rank_blocks", "rank_segments", "block_steps", "block_waits"})

_PIECES = (
    "Pieces of messages: how many each step has (0: it is one run; else its places are its first pieces);\n"
    " * buffer, place and chunks of a piece's first run, its runs, and the way from each to the next."
)


def _joined(tables: Sequence[Columns]) -> dict[str, Array]:
    """Return the tables of several programs one after the other; first rows move with their table."""
    joined = {}
    for name in tables[0]:
        columns = [np.asarray(one[name], dtype=np.int64) for one in tables]
        if name in _BEGINS:
            ends = starts([int(column[-1]) for column in columns])[:-1].tolist()
            moved = [column[:-1] + end for column, end in zip(columns, ends, strict=True)]
            joined[name] = np.concatenate([*moved, columns[-1][-1:] + ends[-1]])
        else:
            joined[name] = np.concatenate(columns)
    return joined


@attrs.frozen(eq=False)
class _Ready:
    """A program with a layout of scratch and the engine's allowances; ``twice``: it adds a contribution twice.

    Of a symmetric program, ``program`` has the messages of the first ranks, and is of these.
    """

    program: Program
    collective: Collective
    segments: Segments
    allowed: Allowance
    twice: bool
    group: GroupTables
    pieces: Pieces
    first_piece: int = 0

    @classmethod
    def of(cls, program: AnyProgram, listed: Callable[[AnyProgram], Pieces]) -> _Ready:
        twice = not adds_once(program)
        few = folded(program) if isinstance(program, SymmetricProgram) else None
        if few is not None:
            group, messages, allowed = GroupTables.of_few(few), messages_of_few(few), few.allowance()
            _require_channels(messages)
            segments = shards_in_scratch(few.few, group.width)
            return cls(messages, program.collective, segments, allowed, twice, group, listed(few.few))
        if isinstance(program, SymmetricProgram):
            group, messages, allowed = GroupTables.of(program), messages_of(program), messages_allowance(program)
            _require_channels(messages)
            segments = shards_in_scratch(program)
            return cls(messages, program.collective, segments, allowed, twice, group, listed(program))
        _require_supported(program)
        renumbered, segments = lay_out(program)
        found = allowance(renumbered)
        return cls(renumbered, program.collective, segments, found, twice, GroupTables(), listed(renumbered))


def _require_supported(program: Program) -> None:
    writes = program.writes_dst
    bad = np.flatnonzero(writes & (program.dst_buffer == Buffer.INPUT))
    if len(bad):
        raise error(
            "C0704",
            f"{program.place(int(bad[0]))} writes to the input",
            notes=["an MPI call must not write its send buffer"],
        )
    _require_channels(program)


def _require_channels(program: Program) -> None:
    if program.num_channels > _MAX_CHANNELS:
        raise error(
            "C0704",
            f"this program uses {program.num_channels} channels, but the limit is {_MAX_CHANNELS}: each channel is "
            f"a message tag",
        )


def _ranks(one: _Ready) -> Columns:
    program, segments = one.program, one.segments
    return {"rank_blocks": program.rank_blocks, "rank_scratch": segments.cells, "rank_segments": segments.first}


def _blocks(one: _Ready) -> Columns:
    program, allowed = one.program, one.allowed
    return {
        "block_send_peer": program.send_peer, "block_recv_peer": program.recv_peer, "block_channel": program.channel,
        "block_steps": program.block_start, "block_waits": program.dep_start[program.block_start],
        "block_slots": allowed.slots, "block_slot_chunks": allowed.slot_chunks, "block_sends": allowed.sends,
    }  # fmt: skip


def _steps(one: _Ready) -> Columns:
    program, allowed = one.program, one.allowed
    code = program.opcode.astype(np.int64)
    code[sorted(allowed.copied)] |= _BUFFERED
    code[sorted(allowed.copied_in_place)] |= _BUFFERED_IN_PLACE
    src, dst = (getattr(program, f"{end}_offset") + one.pieces.first(end, one.first_piece) for end in ENDS)
    return {
        "step_code": code, "step_src_buffer": program.src_buffer, "step_src": src,
        "step_dst_buffer": program.dst_buffer, "step_dst": dst, "step_count": program.count,
        "step_waits": program.num_dependencies,
    }  # fmt: skip


def _waits(one: _Ready) -> Columns:
    program = one.program
    return {"wait_block": program.block_id[program.block[program.deps]], "wait_step": program.step[program.deps]}


def _segments(one: _Ready) -> Columns:
    return {"segment_cell": one.segments.cell, "segment_chunk": one.segments.chunk}


def _listed(values: ArrayLike) -> Array:
    """Return the numbers of a table; an empty table gets one 0, because C has no empty arrays."""
    numbers = np.asarray(values, dtype=np.int64)
    return numbers if len(numbers) else np.zeros(1, dtype=np.int64)


def column(name: str, values: ArrayLike, kind: str | None = None) -> str:
    """Return the text of one table, wrapped, of ``kind`` or the smallest type."""
    numbers = _listed(values)
    kind = kind or f"{np.dtype(fit(int(numbers.min()), int(numbers.max()))).name}_t"
    lines, line = [], "   "
    for text in map(str, numbers.tolist()):
        if len(line) + len(text) + 2 > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {text},"
    return "\n".join([f"static const {kind} {name}[] = {{", *lines, line, "};\n"])
