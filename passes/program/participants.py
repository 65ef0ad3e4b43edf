"""Number a program's ranks anew, so that those come first that take part: files are for these ranks only."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Program
from collc.ir.ragged import inverse, ranges, starts
from collc.ir.ranges import runs

__all__ = ["participants", "participating"]


def participants(program: Program) -> tuple[int, ...]:
    """Return the ranks of the network that execute instructions: the members, then the relays, each ascending."""
    members = program.collective.ranks
    relays = np.setdiff1d(program.block_rank, members)
    return (*members.tolist(), *relays.tolist())


def participating(program: Program) -> Program:
    """Return the program of the participants alone: rank v is the v-th of :func:`participants`.

    Its collective has members only if some ranks relay. The text ``scheduler`` says which ranks of the network they
    are. A program whose collective has no members is unchanged.
    """
    if program.collective.members is None:
        return program
    ranks = participants(program)
    renamed = attrs.evolve(program, collective=_collective(program, len(ranks)), scheduler=_title(program, ranks))
    return _sorted(renamed, program, ranks)


def _collective(program: Program, count: int) -> Collective:
    collective = program.collective
    root = None if collective.root is None else int(collective.places[collective.root])
    members = None if count == collective.num_members else tuple(range(collective.num_members))
    return attrs.evolve(collective, num_ranks=count, root=root, members=members)


def _title(program: Program, ranks: Sequence[int]) -> str:
    """Return the scheduler, and which ranks of the network the participants are."""
    members = program.collective.num_members
    relays = f", then relays {_listed(ranks[members:])}" if len(ranks) > members else ""
    return f"{program.scheduler} (ranks {_listed(ranks[:members])} of the network{relays})"


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(runs(ranks))


def _sorted(renamed: Program, program: Program, ranks: Sequence[int]) -> Program:
    """Return the program with new numbers of ranks, and its blocks in their order."""
    number = np.full(program.num_ranks + 1, -1, dtype=np.int64)  # the last is that of no peer
    number[list(ranks)] = np.arange(len(ranks))
    block_rank = number[program.block_rank]
    blocks = np.argsort(block_rank, kind="stable")
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
        renamed, scratch=program.scratch[list(ranks)], block_start=starts(sizes), dep_start=starts(count),
        deps=inverse(rows)[deps], **of_blocks, **columns,
    )  # fmt: skip
