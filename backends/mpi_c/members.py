"""Programs of some ranks of a network, as programs for a communicator of these ranks."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import error
from collc.ir.program import Program

__all__ = ["among_members"]


def among_members(program: Program) -> Program:
    """Return the program of a collective among members as one of all ranks of a communicator: rank k is member k.

    Raises C0704 if other ranks forward data: they would have to call, too.
    """
    c = program.collective
    if c.members is None:
        return program
    relays = np.setdiff1d(program.block_rank, c.ranks)
    if len(relays):
        raise error(
            "C0704",
            f"rank {int(relays[0])} forwards data and is no member of the collective",
            notes=["all ranks of the communicator take part in a call of target `mpi-c`"],
        )
    places = np.append(c.places, -1)  # the place of peer -1
    root = None if c.root is None else int(places[c.root])

    def placed(column: Array) -> Array:
        found: Array = places[column.astype(np.int64)]
        return found

    collective = attrs.evolve(c, num_ranks=c.num_members, root=root, members=None)
    return attrs.evolve(
        program, collective=collective, scratch=program.scratch[c.ranks], block_rank=placed(program.block_rank),
        send_peer=placed(program.send_peer), recv_peer=placed(program.recv_peer),
    )  # fmt: skip
