"""Whether an order of instructions executes a program, and whether the program completes whatever its FIFOs hold.

An order that was found for one program often executes another one, with other dependencies of the same instructions. To
check an order takes a fraction of the time of an execution that finds one.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .connections import partners, receivers
from .program import Program

__all__ = ["executes", "meets"]


def executes(program: Program, wave: Array) -> bool:
    """Return whether every instruction is in a later wave than all that it waits for, with unbounded FIFOs.

    ``wave`` has the number of each instruction's wave. What an instruction waits for are the one before it in its
    block, its dependencies, and the send of what it receives.
    """
    received = np.flatnonzero(program.receives)
    sent = partners(program).take(received)
    if len(sent) and int(sent.min()) < 0:
        return False
    return _ascends(program, wave) and bool((wave.take(sent) < wave.take(received)).all())


def meets(program: Program, wave: Array) -> bool:
    """Return whether a program completes with FIFOs of any depth from 1 on, and any split, as an order shows.

    False says nothing. The order must execute the program (see :func:`executes`).

    A receive that also sends passes on what it receives. So a message and all that pass it on are a chain of
    instructions, of different blocks. Number each chain by the wave of its last instruction. The program completes if
    these numbers ascend in every block and from every dependency to its dependent.

    Proof: execute the chains by ascending numbers. When the turn of a chain comes, all earlier instructions of its
    blocks have finished, and all dependencies. So each of its blocks is at its instruction of the chain. The FIFOs
    between them are empty, since the messages before it are parts of finished chains. The chain moves its first
    primitive through its FIFOs, of one slot at least, then the next one. Both ends of a message have the same count, so
    all its instructions finish. The wave's numbers ascend along a chain, so no chain returns to its beginning. By the
    argument of :mod:`.machine` every execution completes.
    """
    partner = partners(program)
    received = np.flatnonzero(program.receives)
    sent = partner.take(received)
    if len(sent) != np.count_nonzero(program.sends) or (program.count.take(sent) != program.count.take(received)).any():
        return False
    last = receivers(partner)
    last = np.where(last < 0, np.arange(len(last)), last)
    while (further := last.take(last)).tobytes() != last.tobytes():
        last = further
    return _ascends(program, wave.take(last))


def _ascends(program: Program, number: Array) -> bool:
    """Return whether numbers of instructions ascend in every block, and from dependencies to their dependents."""
    if not ((number[1:] > number[:-1]) | (program.step[1:] == 0)).all():
        return False
    return bool((number.take(program.deps) < np.repeat(number, program.num_dependencies)).all())
