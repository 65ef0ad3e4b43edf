"""An IR as rows of text: what `print_ir` prints of it, without its network and collective."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen
from collc.ir.levels import Executable
from collc.ir.one_sided.program import OneSided
from collc.ir.program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Program
from collc.ir.ragged import ranges, starts
from collc.ir.schedule import Forest, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.text import print_ir

__all__ = ["Row", "rows"]

#: what a level is called, by its class
_LEVELS: dict[type, str] = {
    Schedule: "schedule", SymmetricSchedule: "template of a schedule", Forest: "trees",
    SymmetricForest: "template of trees", Program: "program", SymmetricProgram: "template of a program",
    OneSided: "one-sided program",
}  # fmt: skip
_HEAD = re.compile(r"(schedule|symmetric-schedule|forest|program|symmetric-program|one-sided)\b")
_RANK = re.compile(r"  rank (\d+)\b")
_NUMBER = re.compile(r"( *)\d+: ")


@frozen
class Row:
    """A line of an IR.

    Rows of two IRs with an equal ``key`` are versions of one row. It is changed if its ``body`` differs, which is the
    line without the number of its step.
    """

    key: str
    text: str
    body: str

    @property
    def is_numbered(self) -> bool:
        """Whether the row is an instruction."""
        return self.body != self.text


def rows(ir: Executable, ranks: Collection[int] | None = None) -> tuple[str, list[Row]]:
    """Return what an IR is, in words, and its rows.

    With ``ranks``, they are the transfers from or to these ranks, the trees of these roots, or the threadblocks of
    these ranks. Templates, which stand for all ranks, have all their rows.
    """
    level: Executable = ir
    if isinstance(ir, SymmetricForest) or (isinstance(ir, SymmetricSchedule) and ir.orbits is not None):
        level = ir.seed  # which `print_ir` would print as that of all ranks
    elif ranks is not None:
        level = _of_ranks(level, ranks)
    lines = print_ir(level).splitlines()
    begin = next(number for number, line in enumerate(lines) if _HEAD.match(line))
    return _LEVELS.get(type(ir), type(ir).__name__), list(_keyed(lines[begin + 1 : -1], ranks))


def _keyed(lines: list[str], ranks: Collection[int] | None) -> Iterator[Row]:
    """Yield the rows of lines, without ranks that were not asked for.

    The key of an instruction has its rank and the peers that it uses, not its threadblock and its dependencies. So it
    is the same one where a pass moves it to another threadblock.
    """
    rank = send = recv = ""
    listed = True
    for line in lines:
        if found := _RANK.match(line):
            listed = ranks is None or int(found[1]) in ranks
            rank = found[1]
        elif line.startswith("    threadblock "):
            _, _, _, send, _, recv, *_ = line.split()
        elif line.startswith("  ") and not line.startswith("   ") and line != "  }":
            rank, listed = "", True
        if not listed or line.strip() == "}":
            continue
        body = _NUMBER.sub(r"\1", line, count=1)
        if body == line:
            text = line.partition(" send ")[2] if line.startswith("    threadblock ") else line
            yield Row(f"{rank}\n{text}", line, body)
            continue
        act, _, _ = body.partition(" after ")
        peers = f"{send if 'send' in act else ''} {recv if 'recv' in act else ''}"
        yield Row(f"{rank}\n{peers}\n{act}", line, body)


def _of_ranks(level: Executable, ranks: Collection[int]) -> Executable:
    """Return the rows of a level that concern some ranks; a level without such rows is returned as it is."""
    chosen = np.array(sorted(ranks), dtype=np.int64)
    if isinstance(level, Schedule):
        return level.rows(np.isin(level.src, chosen) | np.isin(level.dst, chosen))
    if isinstance(level, Forest):
        return _trees(level, np.isin(level.root, chosen))
    return _blocks(level, np.isin(level.block_rank, chosen)) if isinstance(level, Program) else level


def _trees(forest: Forest, keep: Array) -> Forest:
    edges = np.flatnonzero(keep.take(forest.tree))
    number = np.cumsum(keep) - 1
    columns = {name: getattr(forest, name)[edges] for name in ("parent", "child", "route")}
    of_tree = {name: getattr(forest, name)[keep] for name in ("root", "weight", "inward")}
    return attrs.evolve(forest, tree=number.take(forest.tree[edges]), **columns, **of_tree)


def _blocks(program: Program, keep: Array) -> Program:
    """Return some threadblocks of a program; dependencies are within ranks, of which all are kept or none."""
    kept = np.flatnonzero(keep)
    begin = program.block_start.astype(np.int64)
    size = np.diff(begin)[kept]
    row = ranges(begin[kept], size)
    number = np.zeros(program.num_instructions, dtype=np.int64)
    number[row] = np.arange(len(row))
    waits = program.num_dependencies[row]
    deps = program.deps[ranges(program.dep_start.astype(np.int64)[row], waits)]
    return attrs.evolve(
        program, block_start=starts(size), dep_start=starts(waits), deps=number[deps],
        **{name: getattr(program, name)[kept] for name in BLOCK_COLUMNS},
        **{name: getattr(program, name)[row] for name in INSTRUCTION_COLUMNS},
    )  # fmt: skip
