"""Tables -> the programs that the engine executes. It shares no code with the writer."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import CUSTOM, CUSTOM_REDUCTION, KINDS, UNEVEN, Collective, preconditions
from collc.ir.diagnostic import CollcError
from collc.ir.program import Opcode, Program
from collc.ir.ragged import owners, starts
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from .cursor import Unreadable
from .numbers import Numbers
from .piece_tables import listed_pieces, piece_columns
from .reader import PlanRow, SourceText
from .scratch import is_whole
from .template_tables import (
    ALGORITHM_TABLES,
    few_of,
    in_all_ranks,
    is_template,
    listed_ranks,
    template_of,
    turn_sizes,
    word_sizes,
)  # fmt: skip

__all__ = ["ALWAYS", "IN_PLACE", "Decoded", "decode"]

#: the bits of a step's code: its opcode, and that it sends a copy, always or in calls in place
_OPCODE, ALWAYS, IN_PLACE = 15, 16, 32


@attrs.frozen(eq=False)
class Decoded:
    """One algorithm: its program, with scratch counted in cells, and the allowances of the engine.

    Of a symmetric program, ``copied`` has the messages of the first ranks in place of the instructions.

    ``copied`` has for each instruction whether it sends a copy (``ALWAYS``, ``IN_PLACE``). The columns of blocks are
    ``slots``, ``slot_chunks`` and ``sends``. ``first``, ``cell`` and ``held`` are the segments of scratch: the first
    segment of each rank, the first cell of each segment, and the chunk in it. ``few`` has the ranks of a program that a
    rotation makes all ranks of; then the other columns are of it.
    """

    program: AnyProgram
    most_bytes: int
    copied: Array
    slots: Array
    slot_chunks: Array
    sends: Array
    first: Array
    cell: Array
    held: Array
    few: SymmetricProgram | None = None

    @property
    def plain(self) -> Program:
        """The program of all ranks; no algorithm that lists the first ranks only has one."""
        assert isinstance(self.program, Program), "a program of all ranks"
        return self.program


def decode(source: SourceText) -> list[list[Decoded]]:
    """Return the algorithms of each collective of a source; raise Unreadable if the tables are inconsistent."""
    numbers = _sized(source)
    algorithm, found = 0, []
    for plan in source.plans:
        if plan.algorithm != algorithm or plan.algorithms < 1:
            raise Unreadable(f"the first algorithm of a plan is {plan.algorithm}, needed {algorithm}")
        algorithm += plan.algorithms
        of = range(plan.algorithm, algorithm)
        found.append([_algorithm(numbers, plan, number) for number in of])
    if algorithm != len(numbers["algorithm_row"]):
        raise Unreadable(f"there are {len(numbers['algorithm_row'])} algorithms, but plans have {algorithm}")
    _require_channels(source, found)
    return found


def _require_channels(source: SourceText, found: list[list[Decoded]]) -> None:
    """Raise Unreadable unless CHANNELS is the number of channels: the next tag is for copies."""
    channels = max((one.program.num_channels for group in found for one in group), default=0)
    if channels != source.channels:
        raise Unreadable(f"CHANNELS is {source.channels}, but the blocks have {channels}")


# ---- sizes of tables


def _sized(source: SourceText) -> Numbers:
    """Return the tables, empty ones without their placeholder; raise Unreadable for wrong sizes."""
    found = dict(source.numbers)
    if sum(max(plan.algorithms, 0) for plan in source.plans) != len(found["algorithm_row"]):
        raise Unreadable("`algorithm_row` does not have the algorithms of all plans")
    ranks = [plan.ranks + plan.relays for plan in source.plans for _ in range(max(plan.algorithms, 0))]
    if "algorithm_sizes" in found:
        widths = ("algorithm_width",) if "algorithm_width" in found else ()
        _trim(found, dict.fromkeys((*ALGORITHM_TABLES, *widths), len(ranks)))
        ranks = [listed_ranks(found, number, all_ranks) for number, all_ranks in enumerate(ranks)]
    rows = sum(ranks)
    algorithms = dict.fromkeys(("algorithm_chunks", "algorithm_bytes", "algorithm_row"), len(ranks))
    _trim(found, {**algorithms, "rank_blocks": rows + 1, "rank_scratch": rows, "rank_segments": rows + 1})
    if found["algorithm_row"].tolist() != starts(ranks)[:-1].tolist():
        raise Unreadable("`algorithm_row` does not count the ranks of the algorithms")
    blocks = _last(found, "rank_blocks")
    columns = ("send_peer", "recv_peer", "channel", "slots", "slot_chunks", "sends")
    sizes = dict.fromkeys((f"block_{name}" for name in columns), blocks)
    _trim(found, {**sizes, "block_steps": blocks + 1, "block_waits": blocks + 1})
    steps = ("code", "src_buffer", "src", "dst_buffer", "dst", "count", "waits")
    _trim(found, dict.fromkeys((f"step_{name}" for name in steps), _last(found, "block_steps")))
    _trim(found, dict.fromkeys(("wait_block", "wait_step"), _last(found, "block_waits")))
    _trim(found, dict.fromkeys(("segment_cell", "segment_chunk"), _last(found, "rank_segments")))
    if "algorithm_sizes" in found:
        _trim(found, {"group_sizes": int(found["algorithm_sizes"].sum()), "step_pieces": _last(found, "block_steps")})
        _trim(found, dict.fromkeys(piece_columns(found), listed_pieces(found)))
    if "algorithm_kept" in found:
        _trim(found, turn_sizes(found))
    if "algorithm_words" in found:
        _trim(found, dict.fromkeys(("algorithm_words", "algorithm_times"), len(found["algorithm_sizes"])))
        _trim(found, word_sizes(found))
    return found


def _last(numbers: Numbers, name: str) -> int:
    """Return the number of rows that a table of beginnings states."""
    column = numbers[name]
    if column[0] != 0 or (np.diff(column) < 0).any():
        raise Unreadable(f"`{name}` does not ascend from 0")
    return int(column[-1])


def _trim(numbers: Numbers, sizes: dict[str, int]) -> None:
    """Require tables of these sizes. An empty table has one 0, because C has no empty arrays."""
    for name, size in sizes.items():
        column = numbers[name]
        if len(column) != max(size, 1) or (size == 0 and column[0] != 0):
            raise Unreadable(f"`{name}` has {len(column)} numbers, needed {size}")
        numbers[name] = column[:size]


# ---- one algorithm


def _algorithm(numbers: Numbers, plan: PlanRow, number: int) -> Decoded:
    collective = _collective(plan)
    cut, row = int(numbers["algorithm_chunks"][number]), int(numbers["algorithm_row"][number])
    shards = collective.num_shards if is_whole(collective) and not plan.shards else 1
    if cut < 1 or cut % shards:
        raise Unreadable(f"algorithm {number} cuts a count in {cut} chunks, not a multiple of {shards} shards")
    turned = is_template(numbers, number)
    end = row + listed_ranks(numbers, number, plan.ranks + plan.relays)
    ranks, first_blocks = slice(row, end), numbers["rank_blocks"][row : end + 1]
    blocks = slice(int(first_blocks[0]), int(first_blocks[-1]))
    begin = numbers["block_steps"][blocks.start : blocks.stop + 1]
    steps = slice(int(begin[0]), int(begin[-1]))
    dep_start = starts(numbers["step_waits"][steps])
    rows = numbers["block_waits"][blocks.start : blocks.stop + 1]
    if (numbers["step_waits"][steps] < 0).any() or (rows - rows[0] != dep_start[begin - begin[0]]).any():
        raise Unreadable("`block_waits` does not count the dependencies of the steps")
    code = numbers["step_code"][steps]
    opcode = code & _OPCODE
    if (code != (opcode | code & (ALWAYS | IN_PLACE))).any() or (opcode >= len(Opcode)).any():
        raise Unreadable("`step_code` has an unknown code")
    scratch = numbers["rank_scratch"][ranks]
    scratch = in_all_ranks(scratch, plan.ranks) if turned else scratch
    program = Program(
        collective, cut // shards, scratch, owners(np.diff(first_blocks)),
        numbers["block_send_peer"][blocks], numbers["block_recv_peer"][blocks], numbers["block_channel"][blocks],
        begin - begin[0], opcode, numbers["step_src_buffer"][steps], numbers["step_src"][steps],
        numbers["step_dst_buffer"][steps], numbers["step_dst"][steps], numbers["step_count"][steps],
        dep_start, _dependencies(numbers, first_blocks, begin, dep_start, slice(int(rows[0]), int(rows[-1]))),
    )  # fmt: skip
    first = numbers["rank_segments"][row : end + 1]
    segments = slice(int(first[0]), int(first[-1]))
    whole = template_of(numbers, number, program, steps) if turned else program
    return Decoded(
        whole, int(numbers["algorithm_bytes"][number]), code & ~_OPCODE,
        numbers["block_slots"][blocks], numbers["block_slot_chunks"][blocks], numbers["block_sends"][blocks],
        first - first[0], numbers["segment_cell"][segments], numbers["segment_chunk"][segments],
        few_of(whole),
    )  # fmt: skip


def _collective(plan: PlanRow) -> Collective:
    """Return the collective of a plan, with an operation for which its programs are correct."""
    kind = plan.kind.replace("_", "-")
    counted = plan.shards > 0
    if kind in (CUSTOM, CUSTOM_REDUCTION) and counted:
        return _custom(plan)
    if counted != (kind in UNEVEN.values()):
        raise Unreadable(f"the plan of {kind} has {plan.shards} shards with counts")
    kind = next(even for even, uneven in UNEVEN.items() if uneven == kind) if counted else kind
    op = "max" if plan.twice else "sum"
    if kind not in KINDS or plan.ranks < 1 or plan.relays < 0 or not -1 <= plan.root < plan.ranks:
        raise Unreadable(f"`bind_{plan.kind}` with {plan.ranks} ranks and root {plan.root} is no collective")
    try:
        members = tuple(range(plan.ranks)) if plan.relays else None
        root = None if plan.root == -1 else plan.root
        found = Collective(kind, plan.ranks + plan.relays, root, op=op, members=members)
        if counted:
            found = attrs.evolve(found, weights=(1,) * found.num_shards)
    except CollcError as problem:
        raise Unreadable(f"a plan has no collective: {problem}") from None
    if (plan.reduces, plan.twice) != (int(found.reduces), int(bool(plan.twice) and found.reduces)):
        raise Unreadable(f"the plan of {kind} says reduces {plan.reduces} and twice {plan.twice}")
    if counted and plan.shards != found.num_shards:
        raise Unreadable(f"the plan of {kind} has {plan.shards} shards, needed {found.num_shards}")
    return found


def _custom(plan: PlanRow) -> Collective:
    """Return the collective of a plan that lists the shards of each rank; if it reduces, some are on several before."""
    begins, listed = plan.begins, plan.listed
    wrong = Unreadable("the plan of a custom collective does not list its shards, each before on one rank")
    reduces = plan.kind.replace("_", "-") == CUSTOM_REDUCTION
    flags = (plan.root, plan.reduces, plan.relays)
    if begins is None or listed is None or flags != (-1, reduces, 0) or plan.twice > reduces:
        raise wrong
    length = int(begins[-1])
    if len(begins) != 2 * plan.ranks + 1 or begins[0] != 0 or (np.diff(begins) < 0).any() or len(listed) != length:
        raise wrong
    if (listed < 0).any() or (listed >= plan.shards).any():
        raise wrong
    before, post = ([list[int]() for _ in range(plan.shards)] for _ in range(2))
    for k in range(2 * plan.ranks):
        shards = listed[begins[k] : begins[k + 1]]
        if (np.diff(shards) <= 0).any():
            raise wrong
        for shard in shards.tolist():
            if k % 2:
                post[shard].append(k // 2)
            else:
                before[shard].append(k // 2)
    if not all(before) or any(len(ranks) > 1 for ranks in before) != reduces:
        raise wrong
    pre, contributors = preconditions([tuple(ranks) for ranks in before])
    op, after = "max" if plan.twice else "sum", tuple(map(tuple, post))
    return Collective(CUSTOM, plan.ranks, op=op, pre=pre, post=after, contributors=contributors)


def _dependencies(numbers: Numbers, first_blocks: Array, begin: Array, dep_start: Array, rows: slice) -> Array:
    """Return the column ``deps``; ``first_blocks`` are the first blocks of the ranks."""
    block, step = numbers["wait_block"][rows], numbers["wait_step"][rows]
    dependent = np.searchsorted(dep_start, np.arange(len(block)), side="right") - 1
    own = np.searchsorted(begin - begin[0], dependent, side="right") - 1  # the block of the dependent instruction
    rank = np.searchsorted(first_blocks - first_blocks[0], own, side="right") - 1
    named = first_blocks[rank] - first_blocks[0] + block
    if (block < 0).any() or (named >= first_blocks[rank + 1] - first_blocks[0]).any():
        raise Unreadable("`wait_block` names a block that its rank does not have")
    if (step < 0).any() or (step >= begin[named + 1] - begin[named]).any():
        raise Unreadable("`wait_step` names a step that its block does not have")
    place: Array = begin[named] - begin[0] + step
    return place
