"""The tables of a C file, read from its text."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, fit

from .cursor import Cursor
from .rooted import TABLES as ROOT_TABLES
from .rooted import TITLE as ROOTS
from .turns import TITLE as ROTATIONS
from .turns import TURNS

__all__ = ["Numbers", "read_table", "read_tables"]
#: tables by name, as 64-bit integers
Numbers = dict[str, Array]

#: the comment before each group of tables, their types where these are not the narrowest, and their names
_GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Algorithms: chunks of a count, the bytes of a count up to which each is the one to use, and the\n"
        " * first row of the tables of ranks.",
        "int64_t",
        ("algorithm_chunks", "algorithm_bytes"),
    ),
    ("", "", ("algorithm_row",)),
    (
        "Ranks: their first block (those before it are other ranks'), scratch cells and first segment.",
        "",
        ("rank_blocks", "rank_scratch", "rank_segments"),
    ),
    (
        "Blocks: peers (-1: none), channel, first step and first wait; slots for copies, their size in chunks,\n"
        " * and the most sends in flight.",
        "",
        (
            "block_send_peer", "block_recv_peer", "block_channel", "block_steps", "block_waits", "block_slots",
            "block_slot_chunks", "block_sends",
        ),
    ),
    (
        "Steps of the blocks, one after the other: opcode and flags, where from, where to, how many chunks, and\n"
        " * for how many others the step waits.",
        "",
        ("step_code", "step_src_buffer", "step_src", "step_dst_buffer", "step_dst", "step_count", "step_waits"),
    ),
    (
        "Waits of the steps, one after the other: a block of the same rank, and the step of it to be done.",
        "",
        ("wait_block", "wait_step"),
    ),
    ("Segments of scratch: their first cell and the chunk in it.", "", ("segment_cell", "segment_chunk")),
)  # fmt: skip

#: those of files with algorithms of one rank and a group
_GROUPED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Groups of algorithms that list rank 0 only: the first of their sizes, and how many; bits of the buffers\n"
        " * that hold the whole vector; chunks of a shard.",
        ("algorithm_group", "algorithm_sizes", "algorithm_moves", "algorithm_shard", "group_sizes"),
    ),
    (
        "Pieces of messages: how many each step has (0: it is one run; else its places are its first pieces);\n"
        " * buffer, place and chunks of a piece's first run, its runs, and the way from each to the next.",
        ("step_pieces", "piece_buffer", "piece_place", "piece_count", "piece_times", "piece_stride"),
    ),
)  # fmt: skip

#: those instead of pieces in files in which both ends of a message share a list
_SHARED = (
    "Lists of the runs of messages, which both ends share: how many rows each step has (0: it is one run; else its\n"
    " * places are its first row). A row has the chunks of a run, and its distance from the end of the run before,\n"
    " * where it is read and where it is written. Of 0 chunks: these are the buffers of what follows, which begins at\n"
    " * their beginning. Below 0: the chunks of each of several runs, negated; the next row has the number of runs,\n"
    " * and the distances from each to the next.",
    ("step_pieces", "piece_count", "piece_src", "piece_dst"),
)
#: those instead of pieces in files of messages with fixed places
_FIXED = (
    "Lists of the runs of messages with fixed places: how many rows each step has (0: it is one run; else its places\n"
    " * are the first row). A row has twice the chunks of a run, and 1 more if it is read from the output; and the\n"
    " * distance from the end of the run before. Below 0: the same of each of several runs, negated; the next row has\n"
    " * the number of runs, and the distance from each to the next. All runs are written to the output.",
    ("step_pieces", "piece_count", "piece_place"),
)
#: that of files in which such algorithms list several ranks
_WIDTHS = ("Ranks that the algorithms of groups list, one of every orbit; 1 is rank 0 only.", "algorithm_width")
#: those of files with a group that is none of vectors
_WORDED = (
    "Groups that are none of vectors: one more than the place of each algorithm's first element (0: a group of\n"
    " * vectors), and its first product; the generator and the element whose product each element is;\n"
    " * the products of all elements and each generator.",
    ("algorithm_words", "algorithm_times", "word_generator", "word_rest", "generator_times"),
)

_NUMBER = "(?:0|-?[1-9][0-9]{0,18})"
_ROWS = rf"(?:   (?: {_NUMBER},)++\n)++"
#: numpy reads numbers of more than 64 bits as the largest 64-bit number; from here on Python reads them
_LARGE = 10**18
_MOST_IN_LINE = 100


def read_tables(cursor: Cursor) -> tuple[int, Numbers]:
    """Return the number of channels and all tables; raise Unreadable unless the text is as collc writes it.

    Each type is the narrowest for its table, and each line is as long as the limit allows.
    """
    channels = cursor.match(
        rf"/\* Channels are message tags\. \*/\nenum {{ CHANNELS = ({_NUMBER}) }};\n", "the number of channels"
    )
    found: Numbers = {}
    for title, kind, names in _GROUPS:
        if title:
            cursor.expect(f"\n/* {title} */\n")
        for name in names:
            found[name] = read_table(cursor, name, kind)
    if cursor.accept(f"\n/* {_GROUPED[0][0]} */\n"):
        found |= {name: read_table(cursor, name, "") for name in _GROUPED[0][1]}
        lists = [one for one in (_SHARED, _FIXED) if cursor.accept(f"\n/* {one[0]} */\n")]
        title, names = lists[0] if lists else _GROUPED[1]
        if not lists:
            cursor.expect(f"\n/* {title} */\n")
        found |= {name: read_table(cursor, name, "") for name in names}
        if cursor.accept(f"\n/* {_WORDED[0]} */\n"):
            found |= {name: read_table(cursor, name, "") for name in _WORDED[1]}
        if cursor.accept(f"\n/* {_WIDTHS[0]} */\n"):
            found[_WIDTHS[1]] = read_table(cursor, _WIDTHS[1], "")
        if cursor.accept(f"\n/* {ROTATIONS} */\n"):
            found |= {name: read_table(cursor, name, "") for name in TURNS}
    if cursor.accept(f"\n/* {ROOTS} */\n"):
        found |= {name: read_table(cursor, name, "") for name in ROOT_TABLES}
    return int(channels[1]), found


def read_table(cursor: Cursor, name: str, kind: str) -> Array:
    """Return one table, of the type ``kind`` or the narrowest; raise Unreadable as :func:`read_tables` does."""
    declared = cursor.match(rf"static const (\w+) {name}\[\] = {{\n", f"the table `{name}`")[1]
    place = cursor.at
    body = cursor.match(_ROWS, f"numbers of `{name}`")[0]
    cursor.expect("};\n")
    after, cursor.at = cursor.at, place
    values = _values(body)
    if values is None:
        raise cursor.fail(f"numbers of 64 bits in `{name}`")
    needed = kind or f"{np.dtype(fit(int(values.min()), int(values.max()))).name}_t"
    if declared != needed:
        raise cursor.fail(f"type {needed} of `{name}`, not {declared},")
    if not _is_wrapped(body):
        raise cursor.fail(f"lines of `{name}` as long as {_MOST_IN_LINE} characters allow")
    cursor.at = after
    return values


def _values(body: str) -> Array | None:
    """Return the numbers of a table's text; None if one has more than 64 bits."""
    text = body.rstrip(",\n")
    values = np.fromstring(text, dtype=np.int64, sep=",")
    if -_LARGE < values.min() and values.max() < _LARGE:
        return values
    found = [int(word) for word in text.split(",")]
    return np.array(found, dtype=np.int64) if all(-(2**63) <= number < 2**63 for number in found) else None


def _is_wrapped(body: str) -> bool:
    """Return whether no line is too long, and no line has room for the first number of the next."""
    data = np.frombuffer(body.encode("ascii"), dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    length = np.diff(np.concatenate([[-1], ends])) - 1
    commas = np.flatnonzero(data == ord(","))
    first = commas[np.searchsorted(commas, ends[:-1])] - ends[:-1] - len("   ")  # blank, digits and comma
    return bool((length <= _MOST_IN_LINE).all() and (length[:-1] + first > _MOST_IN_LINE).all())
