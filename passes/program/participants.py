"""Number a program's ranks anew, so that those come first that take part: files are for these ranks only."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.editing import with_ranks
from collc.ir.program import Program
from collc.ir.ranges import runs

__all__ = ["participants", "participating"]


def participants(program: Program, members: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Return the ranks of the network that execute instructions: the members, then the relays, each ascending.

    ``members`` are those of a collective that has become a custom one.
    """
    found = program.collective.ranks if members is None else np.array(members)
    relays = np.setdiff1d(program.block_rank, found)
    return (*found.tolist(), *relays.tolist())


def participating(program: Program, members: tuple[int, ...] | None = None) -> Program:
    """Return the program of the participants alone: rank v is the v-th of :func:`participants`.

    Its collective has members only if some ranks relay; a custom one has none. The text ``scheduler`` says which ranks
    of the network they are. A program whose collective has no members is unchanged, unless ``members`` are given.
    """
    if program.collective.members is None and members is None:
        return program
    ranks = participants(program, members)
    num_members = program.collective.num_members if members is None else len(members)
    renamed = attrs.evolve(program, scheduler=_title(program, ranks, num_members))
    return with_ranks(renamed, ranks, _collective(program, ranks))


def _collective(program: Program, ranks: Sequence[int]) -> Collective:
    collective = program.collective
    if collective.pre is not None and collective.post is not None:
        number = {rank: v for v, rank in enumerate(ranks)}
        pre = tuple(number[rank] for rank in collective.pre)
        post = tuple(tuple(number[rank] for rank in needing) for needing in collective.post)
        return attrs.evolve(collective, num_ranks=len(ranks), pre=pre, post=post)
    root = None if collective.root is None else int(collective.places[collective.root])
    members = None if len(ranks) == collective.num_members else tuple(range(collective.num_members))
    return attrs.evolve(collective, num_ranks=len(ranks), root=root, members=members)


def _title(program: Program, ranks: Sequence[int], members: int) -> str:
    """Return the scheduler, and which ranks of the network the participants are."""
    relays = f", then relays {_listed(ranks[members:])}" if len(ranks) > members else ""
    return f"{program.scheduler} (ranks {_listed(ranks[:members])} of the network{relays})"


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(runs(ranks))
