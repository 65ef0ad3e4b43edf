"""Build programs from the rows of other programs: select, insert, cut and move rows; renumber blocks.

A pass that may move accesses takes rows without dependencies (:func:`take`), and recomputes the dependencies
(``collc.passes.analysis.hazards``). A pass that moves no access keeps them, by :func:`select`, :func:`insert` and
:func:`cut`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from .arrays import Array, Columns, are_among, distinct_pairs, lexsort
from .machine import partners
from .program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Opcode, Program
from .ragged import group_starts, inverse, owners, ranges, starts

if TYPE_CHECKING:
    from .collective import Collective

__all__ = [
    "add_blocks",
    "cut",
    "insert",
    "join_blocks",
    "select",
    "shifted",
    "take",
    "with_dependencies",
    "with_ranks",
    "without_empty_blocks",
    "without_idle_nops",
]


def take(
    program: Program,
    rows: Array,
    owner: Array | None = None,
    blocks: Columns | None = None,
    **changed: Any,  # Any: new values of Program's fields, each of its own type
) -> Program:
    """Return the program of these rows in this order, without dependencies; rows may be missing or repeated.

    ``owner`` is the block of each new row and ascends (default: the block of the old row). ``blocks`` are the columns
    of new blocks. ``changed`` are fields that replace those of the old rows: columns of instructions, ``scratch``.
    """
    owner = program.block.take(rows) if owner is None else owner
    number = program.num_blocks if blocks is None else len(blocks["block_rank"])
    taken = {c: getattr(program, c).take(rows) for c in INSTRUCTION_COLUMNS if c not in changed}
    return attrs.evolve(
        program, block_start=group_starts(owner, number), dep_start=np.zeros(len(rows) + 1, dtype=np.int64), deps=[],
        **{**(blocks or {}), **taken, **changed},
    )  # fmt: skip


def without_idle_nops(program: Program) -> Program:
    """Return the program without nops that have no dependencies and on which no instruction depends.

    They change neither the results of a program nor whether it completes.
    """
    if "without idle nops" not in program.found:
        program.found["without idle nops"] = _without_idle_nops(program)
    found: Program | None = program.found["without idle nops"]
    return program if found is None else found


def _without_idle_nops(program: Program) -> Program | None:
    """Return the program without idle nops; None if it has none."""
    nop = program.opcode == Opcode.NOP
    if not nop.any():
        return None
    is_dependency = np.zeros(program.num_instructions, dtype=bool)
    is_dependency[program.deps] = True
    kept = ~nop | is_dependency | (program.num_dependencies > 0)
    if kept.all():
        return None
    place = np.cumsum(kept) - 1
    return with_dependencies(take(program, np.flatnonzero(kept)), place[program.dependent], place.take(program.deps))


def shifted(program: Program, rows: Array, by: Array) -> Columns:
    """Return the columns of offsets of ``rows``, increased by ``by`` chunks if the opcode uses the location."""
    return {
        f"{end}_offset": getattr(program, f"{end}_offset")[rows] + np.where(program.uses(end)[rows], by, 0)
        for end in ("src", "dst")
    }


def with_dependencies(program: Program, dependent: Array, dependency: Array) -> Program:
    """Return the program with these dependencies instead of its own: ``dependent[k]`` depends on ``dependency[k]``.

    Those of one instruction keep the order given.
    """
    if (dependent[1:] < dependent[:-1]).any():
        dependency = dependency[lexsort([dependent])]
    number = np.bincount(dependent, minlength=program.num_instructions)
    return attrs.evolve(program, dep_start=starts(number), deps=dependency)


def select(program: Program, kept: Array) -> Program:
    """Return the program of the instructions in the mask ``kept``, without empty blocks.

    The order among kept instructions is exactly the old one. An instruction that depended on a removed one depends on
    the instruction before the removed one in its block, and on the dependencies of the removed one. The next
    instruction of the removed one's block gets its dependencies. Dependencies are sorted and distinct, and none is on
    an earlier instruction of the same block. The order that removed messages imply between ranks is lost.

    Raises ValueError if one end of a message is kept and the other is removed: later messages would have other ends.
    """
    _check_messages(program, kept)
    dependent, dependency = _bridged(program, kept)
    rows, place = np.flatnonzero(kept), np.cumsum(kept) - 1
    return with_dependencies(without_empty_blocks(take(program, rows)), place[dependent], place[dependency])


def _check_messages(program: Program, kept: Array) -> None:
    if (kept | program.local).all():
        return
    sender = partners(program)
    received = np.flatnonzero(sender >= 0)
    torn = received[kept[received] != kept[sender[received]]]
    if len(torn):
        ends = [int(torn[0]), int(sender[torn[0]])]
        remaining, removed = ends if kept[ends[0]] else reversed(ends)
        raise ValueError(
            f"{program.place(remaining)} is kept, but {program.place(removed)}, its message's other end, is not"
        )


def _bridged(program: Program, kept: Array) -> tuple[Array, Array]:
    """Return the dependencies (dependent, dependency) of the kept rows, across removed rows; sorted, distinct."""
    rows, first = np.arange(program.num_instructions), program.block_start.astype(np.int64)[program.block]
    before = np.maximum.accumulate(np.where(kept, rows, -1))
    before = np.where(before >= first, before, -1)  # itself, or the last kept row before it in its block
    heir = np.minimum.accumulate(np.where(kept, rows, len(rows))[::-1])[::-1]
    heir = np.where(heir < program.block_start.astype(np.int64)[program.block + 1], heir, -1)
    # A removed row stands for the kept row before its run of removed rows, and for their dependencies up to it.
    low = program.dep_start[np.maximum(before + 1, first)].astype(np.int64)
    high = program.dep_start[1:].astype(np.int64)
    known = fresh = _pairs(heir[program.dependent], program.deps)
    while len(fresh[0]):
        dependent, dependency = (column[~kept[fresh[1]]] for column in fresh)
        number = high[dependency] - low[dependency]
        dependent = np.append(dependent, np.repeat(dependent, number))
        dependency = np.append(before[dependency], program.deps[ranges(low[dependency], number)])
        fresh = _without(_pairs(dependent, dependency), known)
        known = distinct_pairs(np.append(known[0], fresh[0]), np.append(known[1], fresh[1]))
    dependent, dependency = known
    block = program.block
    remaining = kept[dependency] & ((block[dependent] != block[dependency]) | (dependency >= dependent))
    return dependent[remaining], dependency[remaining]


def _pairs(dependent: Array, dependency: Array) -> tuple[Array, Array]:
    """Return the pairs of two instructions (-1: none), sorted, distinct."""
    real = (dependent >= 0) & (dependency >= 0)
    return distinct_pairs(dependent[real], dependency[real])


def _without(pairs: tuple[Array, Array], known: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the pairs that are not known."""
    width = np.int64(max(pairs[1].max(initial=0), known[1].max(initial=0)) + 1)
    new = ~are_among(pairs[0] * width + pairs[1], known[0] * width + known[1])
    return pairs[0][new], pairs[1][new]


# Any: as for `take`
def cut(program: Program, times: Array, **changed: Any) -> Program:
    """Return the program with every row ``times`` times (at least once), one after the other in its block.

    The first copy has the row's dependencies; instructions that depended on the row depend on the last copy.
    ``changed`` are the columns in which the copies differ from the row.
    """
    last = np.cumsum(times, dtype=np.int64) - 1
    result = take(program, owners(times), **changed)
    return with_dependencies(result, (last - times + 1)[program.dependent], last[program.deps])


def insert(program: Program, block: Array, step: Array | int, columns: Columns) -> tuple[Program, Array, Array]:
    """Insert instructions, rows of ``columns``, before step ``step`` of ``block``; the block's length means its end.

    Those at one place keep the order given. They have no dependencies, and no instruction depends on them. Returns the
    program, and its row of each old and of each new instruction.
    """
    owner = np.append(program.block, block)
    front = np.append(2 * program.step + 1, 2 * np.broadcast_to(np.asarray(step, dtype=np.int64), len(block)))
    rows = lexsort((front, owner))
    place = inverse(rows)
    old, new = place[: program.num_instructions], place[program.num_instructions :]
    mixed: Columns = {
        c: np.append(getattr(program, c), np.broadcast_to(np.asarray(columns[c], dtype=np.int64), len(new)))[rows]
        for c in INSTRUCTION_COLUMNS
    }
    result = attrs.evolve(
        program, block_start=group_starts(owner[rows], program.num_blocks),
        dep_start=np.zeros(len(rows) + 1, dtype=np.int64), deps=[], **mixed,
    )  # fmt: skip
    return with_dependencies(result, old[program.dependent], old[program.deps]), old, new


def add_blocks(program: Program, rank: Array) -> tuple[Program, Array]:
    """Append an empty block without peers to each of these ranks, which ascend.

    Returns the program and the numbers of the new blocks.
    """
    at = program.rank_blocks[np.asarray(rank) + 1]
    fill: Columns = {"block_rank": rank, "send_peer": -1, "recv_peer": -1, "channel": 0}
    blocks: Columns = {c: np.insert(getattr(program, c).astype(np.int64), at, fill[c]) for c in BLOCK_COLUMNS}
    block_start = np.insert(program.block_start.astype(np.int64), at, program.block_start[at])
    return attrs.evolve(program, block_start=block_start, **blocks), at + np.arange(len(at))


def join_blocks(program: Program, host: Array) -> tuple[Columns, Array]:
    """Return the columns of the blocks after block b joins block ``host[b]``, and the new number of each block b.

    A host is its own host. A block has the rank and channel of its host, and the peers of all blocks that join it.
    """
    kept = np.flatnonzero(host == np.arange(len(host)))
    owner = np.searchsorted(kept, host)
    blocks: Columns = {c: getattr(program, c)[kept] for c in ("block_rank", "channel")}
    for name in ("send_peer", "recv_peer"):
        blocks[name] = np.full(len(kept), -1, dtype=np.int64)
        np.maximum.at(blocks[name], owner, getattr(program, name).astype(np.int64))
    return blocks, owner


def without_empty_blocks(program: Program) -> Program:
    """Return the program without the blocks that have no instructions."""
    full = np.flatnonzero(np.diff(program.block_start.astype(np.int64)))
    blocks: Columns = {c: getattr(program, c)[full] for c in BLOCK_COLUMNS}
    end = program.num_instructions
    return attrs.evolve(program, block_start=np.append(program.block_start[full].astype(np.int64), end), **blocks)


def with_ranks(program: Program, ranks: Sequence[int], collective: Collective) -> Program:
    """Return a program in which rank v is rank ``ranks[v]`` of this one, with its blocks in their order.

    ``ranks`` have all ranks that execute instructions. ``collective`` is the one of the new ranks.
    """
    number = np.full(program.num_ranks + 1, -1, dtype=np.int64)  # the last is that of no peer
    number[list(ranks)] = np.arange(len(ranks))
    block_rank = number[program.block_rank]
    blocks = lexsort([block_rank])
    begin = program.block_start.astype(np.int64)
    sizes = np.diff(begin)[blocks]
    rows = ranges(begin[:-1][blocks], sizes)
    count = program.num_dependencies[rows]
    deps = program.deps[ranges(program.dep_start[rows], count)]
    columns = {name: getattr(program, name)[rows] for name in INSTRUCTION_COLUMNS}
    of_blocks = {name: getattr(program, name)[blocks] for name in BLOCK_COLUMNS}
    of_blocks |= {"block_rank": block_rank[blocks]}
    of_blocks |= {name: number[of_blocks[name]] for name in ("send_peer", "recv_peer")}
    return attrs.evolve(
        program, collective=collective, scratch=program.scratch[list(ranks)], block_start=starts(sizes),
        dep_start=starts(count), deps=inverse(rows)[deps], **of_blocks, **columns,
    )  # fmt: skip
