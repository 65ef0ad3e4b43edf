"""Programs of some ranks of a network, as programs for a communicator of these ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs
import numpy as np

from collc.ir.editing import with_ranks
from collc.ir.program import Program
from collc.ir.symmetric_program import AnyProgram

from ..base import Window
from .rooted import Rooted
from .source import Function

__all__ = ["Parts", "among_members", "function_of", "has_relays", "ranks_of"]

#: the programs of one collective, each with the calls that it serves
Parts: TypeAlias = "Sequence[tuple[Window | None, AnyProgram]]"


def function_of(name: str, parts: Parts, rooted: Rooted | None = None) -> Function:
    """Return the C function of a collective's programs, for a communicator of the ranks that take part.

    With ``rooted``, the function takes the root, and the programs are for one orbit.
    """
    programs = [program for _, program in parts]
    among = among_members(programs)
    return Function(name, tuple(zip([window for window, _ in parts], among, strict=True)), ranks_of(programs), rooted)


def has_relays(parts: Parts) -> bool:
    """Return whether some ranks of the communicator only relay."""
    ranks = ranks_of([program for _, program in parts])
    return ranks is not None and len(ranks) > parts[0][1].collective.num_members


def ranks_of(programs: Sequence[AnyProgram]) -> tuple[int, ...] | None:
    """Return the ranks of the network that the ranks of the communicator are; None if all take part.

    These are the members, then all ranks that forward data in any of the programs, each ascending.
    """
    members = programs[0].collective.members
    if members is None:
        return None
    relays = np.setdiff1d(np.concatenate([_plain(program).block_rank for program in programs]), members)
    return (*members, *relays.tolist())


def among_members(programs: Sequence[AnyProgram]) -> list[AnyProgram]:
    """Return programs of one collective among members, for a communicator of the members and all ranks that relay.

    Rank k is the k-th of :func:`ranks_of`. The collective has members only if some ranks relay.
    """
    ranks = ranks_of(programs)
    if ranks is None:
        return list(programs)
    collective = programs[0].collective
    root = None if collective.root is None else int(collective.places[collective.root])
    members = tuple(range(collective.num_members)) if len(ranks) > collective.num_members else None
    placed = attrs.evolve(collective, num_ranks=len(ranks), root=root, members=members)
    return [with_ranks(_plain(program), ranks, placed) for program in programs]


def _plain(program: AnyProgram) -> Program:
    assert isinstance(program, Program), "a template is of all ranks"
    return program
