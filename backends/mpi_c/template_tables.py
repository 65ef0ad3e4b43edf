"""Tables of algorithms that list the first ranks only -> symmetric programs. It shares no code with the writer."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.group import Group, Translations
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.ragged import first_of_group, owners, starts
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram
from collc.ir.turning import Turning, all_images

from .cursor import Unreadable
from .numbers import Numbers
from .piece_tables import runs_of
from .turns import TURNS
from .word_tables import WordGroup, group_differs, word_group

__all__ = [
    "ALGORITHM_TABLES", "few_of", "in_all_ranks", "is_template", "is_turned", "listed_ranks", "most_listed",
    "segment_differences", "template_differences", "template_of", "template_shortages", "turn_sizes", "word_sizes",
]  # fmt: skip

ALGORITHM_TABLES = ("algorithm_group", "algorithm_sizes", "algorithm_moves", "algorithm_shard")
WORD_COLUMNS = ("word_generator", "word_rest")


def is_template(numbers: Numbers, number: int) -> bool:
    """Return whether an algorithm lists the first ranks only."""
    return "algorithm_sizes" in numbers and int(numbers["algorithm_sizes"][number]) > 0


def listed_ranks(numbers: Numbers, number: int, ranks: int) -> int:
    """Return how many of its ranks an algorithm lists; raise Unreadable for an impossible number."""
    width = int(numbers["algorithm_width"][number]) if "algorithm_width" in numbers else 1
    if not is_template(numbers, number):
        if width != 1:
            raise Unreadable("`algorithm_width` has a number for an algorithm that lists all ranks")
        return ranks
    if not 1 <= width <= ranks:
        raise Unreadable(f"`algorithm_width` is {width} for {ranks} ranks")
    return width


def most_listed(numbers: Numbers) -> int:
    """Return the most ranks that an algorithm with a group lists, 0 without groups; raise Unreadable for 1 stated."""
    if "algorithm_group" not in numbers:
        return 0
    if "algorithm_width" not in numbers:
        return 1
    width = int(numbers["algorithm_width"].max())
    if width < 2:
        raise Unreadable("`algorithm_width` has no number above 1")
    return width


def in_all_ranks(scratch: Array, ranks: int) -> Array:
    """Return a column of all ranks with the scratch of the first ranks; the others' is not listed."""
    found = np.zeros(ranks, dtype=np.int64)
    found[: len(scratch)] = scratch
    return found


def template_of(numbers: Numbers, number: int, messages: Program, steps: slice) -> SymmetricProgram:
    """Return the symmetric program of an algorithm; ``messages`` has its steps, each as one instruction.

    Raises Unreadable for a group of another order, buffers that do not move as the group says, or wrong pieces.
    """
    first, size = int(numbers["algorithm_group"][number]), int(numbers["algorithm_sizes"][number])
    if first != int(numbers["algorithm_sizes"][:number].sum()):
        raise Unreadable("`algorithm_group` does not count the sizes of the groups")
    sizes, ranks = tuple(numbers["group_sizes"][first : first + size].tolist()), messages.num_ranks
    width = listed_ranks(numbers, number, ranks)
    if is_turned(numbers, number):
        return _turned(numbers, number, messages, steps, sizes)
    if min(sizes) < 1 or prod(sizes) * width != ranks:
        raise Unreadable(f"the group of sizes {sizes} of algorithm {number} does not move {width} of {ranks} ranks")
    group = _worded(numbers, number, sizes) if has_words(numbers, number) else Translations(sizes)
    program = _with_pieces(numbers, messages, group, numbers["step_pieces"][steps])
    if messages.collective.kind == "allreduce":  # all chunks have fixed places if none moves
        program = attrs.evolve(program, fixed=not numbers["algorithm_moves"][number])
    moves = sum(1 << buffer for buffer in Buffer if program.moves(buffer))
    if moves != numbers["algorithm_moves"][number] or messages.chunks != numbers["algorithm_shard"][number]:
        raise Unreadable(f"`algorithm_moves` or `algorithm_shard` of algorithm {number} is not that of its buffers")
    return program


def is_turned(numbers: Numbers, number: int) -> bool:
    """Return whether a rotation that keeps some ranks makes all ranks of an algorithm of those listed."""
    return "algorithm_kept" in numbers and int(numbers["algorithm_unit"][number]) != 0


def turn_sizes(numbers: Numbers) -> dict[str, int]:
    """Return the sizes that the tables of rotations must have, but for the list of places."""
    return dict.fromkeys(TURNS[:-1], len(numbers["algorithm_sizes"]))


def _turned(numbers: Numbers, number: int, messages: Program, steps: slice, sizes: tuple[int, ...]) -> SymmetricProgram:
    """Return the program of all ranks; raise Unreadable for a rotation of other ranks or units."""
    kept, kept_units, box, unit, first, units = (int(numbers[name][number]) for name in TURNS[:-1])
    width, ranks, places = listed_ranks(numbers, number, messages.num_ranks), messages.num_ranks, numbers[TURNS[-1]]
    if len(sizes) != 1 or has_words(numbers, number) or not 0 <= kept < width:
        raise Unreadable(f"the group of algorithm {number} is no rotation of boxes")
    order, chunks = sizes[0], messages.collective.num_shards * messages.chunks
    count = kept_units + box * order
    whole = 0 <= first <= len(places) - ranks and 0 <= units and 0 <= kept_units <= count <= len(places) - units
    if order < 1 or kept + (width - kept) * order != ranks or unit < 1 or count * unit != chunks or not whole:
        raise Unreadable(f"the rotation of algorithm {number} does not move its {ranks} ranks and {chunks} chunks")
    turning = Turning(
        order, kept, kept_units, unit, places[first : first + ranks], places[units : units + count]
    )  # fmt: skip
    if flaw := turning.flaw(ranks, chunks):
        raise Unreadable(f"algorithm {number}: {flaw}")
    few = _with_pieces(numbers, messages, Translations((1,)), numbers["step_pieces"][steps])
    seed, moves = few.seed, [buffer for buffer in Buffer if few.moves(buffer)]
    if (
        sum(1 << b for b in moves) != numbers["algorithm_moves"][number]
        or few.chunks != numbers["algorithm_shard"][number]
    ):
        raise Unreadable(f"`algorithm_moves` or `algorithm_shard` of algorithm {number} is not that of its buffers")
    for peer in (seed.send_peer, seed.recv_peer):
        if (peer < -1).any() or (peer >= ranks).any():
            raise Unreadable("a block has a peer that there is not")
    for end in ("src", "dst"):
        at, count_ = getattr(seed, f"{end}_offset").astype(np.int64), seed.count.astype(np.int64)
        used = seed.uses(end) & np.isin(getattr(seed, f"{end}_buffer"), moves)
        if (
            used & ((at < 0) | (count_ < 1) | (at + count_ > chunks) | (at // unit != (at + count_ - 1) // unit))
        ).any():
            raise Unreadable("a step is outside its buffer, or crosses units")
    program, joined = all_images(seed, few.joined, turning, frozenset(moves))
    found = SymmetricProgram(program, Translations((1,)), joined, turning=turning)
    found.found["few"] = few
    return found


def few_of(program: AnyProgram) -> SymmetricProgram | None:
    """Return the program of the listed ranks of a program that :func:`template_of` has returned; None if all are."""
    few: SymmetricProgram | None = program.found.get("few") if isinstance(program, SymmetricProgram) else None
    return few


def has_words(numbers: Numbers, number: int) -> bool:
    """Return whether the group of an algorithm is none of vectors."""
    return "algorithm_words" in numbers and int(numbers["algorithm_words"][number]) != 0


def word_sizes(numbers: Numbers) -> dict[str, int]:
    """Return the sizes that the tables of words must have, but for `generator_times`, which ends with its last row.

    Raises Unreadable for words of an algorithm that lists all ranks, and if the first elements do not count them.
    """
    sizes, first = numbers["algorithm_sizes"], numbers["algorithm_group"]
    worded = np.array([has_words(numbers, number) for number in range(len(sizes))])
    if not worded.any() or (worded & (sizes != 1)).any() or (first != starts(sizes)[:-1]).any():
        raise Unreadable("an algorithm with words has not one size, or no algorithm has words")
    orders = np.zeros(len(sizes), dtype=np.int64)
    orders[worded] = numbers["group_sizes"][first[worded]]
    if (orders[worded] < 1).any():
        raise Unreadable("a group with words has no elements")
    begin = starts(orders)
    if (numbers["algorithm_words"] != np.where(worded, begin[:-1] + 1, 0)).any():
        raise Unreadable("`algorithm_words` does not count the elements of the groups")
    return dict.fromkeys(WORD_COLUMNS, int(begin[-1]))


def _worded(numbers: Numbers, number: int, sizes: tuple[int, ...]) -> WordGroup:
    words, order = int(numbers["algorithm_words"][number]) - 1, sizes[0]
    ends = np.append(numbers["algorithm_times"], len(numbers["generator_times"]))
    if ends[0] != 0 or (np.diff(ends) < 0).any():
        raise Unreadable("`algorithm_times` does not ascend from 0")
    of, rows = slice(words, words + order), slice(int(ends[number]), int(ends[number + 1]))
    return word_group(numbers["word_generator"][of], numbers["word_rest"][of], numbers["generator_times"][rows])


def _with_pieces(numbers: Numbers, messages: Program, group: Group, pieces: Array) -> SymmetricProgram:
    """Return the program in which a message of ``pieces``, if these are more than 0, has their runs."""
    runs, columns = runs_of(numbers, messages, pieces)
    owner, first = owners(runs), starts(runs)
    fresh = first_of_group(owner)
    needs = np.where(fresh, messages.num_dependencies[owner], 0)
    seed = attrs.evolve(
        messages, block_start=first[messages.block_start], opcode=messages.opcode[owner], dep_start=starts(needs),
        deps=first[messages.deps], **columns,
    )  # fmt: skip
    return SymmetricProgram(seed, group, ~fresh)


def segment_differences(found: SymmetricProgram, first: Array, cell: Array, held: Array) -> Iterator[str]:
    """Yield the listed ranks if the scratch of one is not one segment of whole shards, from its first cell on."""
    used = found.seed.scratch[: len(first) - 1] > 0
    if not np.array_equal(np.diff(first), used) or cell.any() or held.any():
        yield f"scratch of {found.seeds} is not one segment of whole shards"


def template_differences(found: SymmetricProgram, emitted: SymmetricProgram) -> Iterator[str]:
    """Yield the columns in which a program that was read differs from the emitted one."""
    if group_differs(found.group, emitted.group):
        yield f"the group {found.group.expression} has other products than {emitted.group.expression}"
    if found.chunks != emitted.chunks:
        yield f"shards have {found.chunks} chunks, not {emitted.chunks}"
    for name in ("name", "num_ranks", "root", "reduces"):
        if getattr(found.collective, name) != getattr(emitted.collective, name):
            yield f"{name} is {getattr(found.collective, name)}, not {getattr(emitted.collective, name)}"
    if found.fixed != emitted.fixed:
        yield f"chunks {'have fixed places' if found.fixed else 'move with their shards'}, which is not so"
    if not np.array_equal(found.joined, emitted.joined):
        yield "the messages have other pieces"
    for name in Program.COLUMNS:
        if not np.array_equal(getattr(found.seed, name), getattr(emitted.seed, name)):
            yield f"the blocks or instructions of {emitted.seeds} differ in {name.replace('_', ' ')}"


def template_shortages(
    program: SymmetricProgram, copied: Array, slots: Array, slot_chunks: Array, sends: Array
) -> Iterator[str]:
    """Yield the resources that a message needs beyond those of the engine: slots, their size, and sends.

    Messages of several pieces leave from slots and arrive in slots; so do additions onto what they read.
    """
    batched, seed = program.batched, program.seed
    several = np.diff(program.message_start) > 1
    first = program.message_start[:-1]
    # only the bindings of these put the input into the output
    overlaid = program.collective.kind in ("allreduce", "allgather")
    inward = (seed.src_buffer == seed.dst_buffer) | (overlaid & (seed.dst_buffer == Buffer.OUTPUT))
    near = np.abs(seed.src_offset.astype(np.int64) - seed.dst_offset) < seed.count
    onto = (inward & near & (seed.opcode == Opcode.RECV_REDUCE_COPY))[first]
    takes = (batched.sends & (several | (copied > 0))) | (batched.receives & (several | onto))
    block = batched.block
    for wrong, what in (
        (takes & (slots < 1)[block], "has no slot for a copy"),
        (takes & (batched.count > slot_chunks[block]), "needs a larger slot than its block has"),
        (batched.sends & (sends < 1)[block], "may not send"),
        ((copied > 0) & ~batched.sends, "is marked to send a copy, but does not send"),
    ):
        if wrong.any():
            yield f"{seed.place(int(first[np.argmax(wrong)]))} {what}"
    if (slots < 0).any() or (slot_chunks < 0).any() or (sends < 0).any():
        yield "a block has a negative allowance"
