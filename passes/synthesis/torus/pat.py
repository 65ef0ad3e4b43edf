"""PAT: allgather and reduce-scatter in logarithmically many steps with a bounded buffer (Jeaugey, 2025).

A Bruck allgather with shrinking distances: first few shards travel far, then many travel near. ``buffer`` limits the
shards of a message. The first distances multiply the shards up to that number; then the rest of the binomial tree is
walked depth first with that many shards at a time. For any number of ranks, subtrees beyond the last rank are left out.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, fit
from collc.ir.ragged import inverse
from collc.ir.spec import Problem

from ...ranges import Range
from .base import TEMPLATE, TorusPass, scattered
from .build import Plan
from .lines import Line

__all__ = ["PAT", "pat_line"]


@attrs.frozen
class PAT(TorusPass):
    """Synthesize PAT schedules.

    Raises C0591 (a collective it cannot do), C0593 (an operation that needs an order), C0596 (no room for a shard).
    """

    name: ClassVar[str] = "pat"
    summary: ClassVar[str] = "allgather and reduce-scatter in log2(N) steps or within a buffer, any number of ranks"

    in_line: ClassVar[bool] = True

    buffer: int | None = attrs.field(
        default=None,
        metadata={
            "help": "maximum shards per message, rounded down to a power of two (default: no limit)",
            "range": Range(1, code="C0596"),
        },
    )

    template: bool | None = attrs.field(default=None, metadata=TEMPLATE)

    def _plan(self, ir: Problem) -> Plan:
        n = ir.topology.num_ranks
        line = pat_line(n, min(self.buffer or n, n).bit_length() - 1 if self.buffer else n.bit_length())
        return Plan(ir, self._router(ir), 1, [scattered((n,), [line], 0, 0)], self.name)


@cache
def pat_line(size: int, doublings: int) -> Line:
    """Return the reduce-scatter line; messages have at most 2^``doublings`` shards."""
    step, at = _receive_steps(size, doublings), np.arange(size)
    substeps = int(step.max()) + 1
    when, to = np.empty((size, size), dtype=fit(0, substeps)), np.empty((size, size), dtype=fit(-1, size))
    for shard in range(size):  # column by column: whole tables of wide integers would take gigabytes
        offset = (at - shard) % size
        when[:, shard] = np.where(offset == 0, substeps, substeps - 1 - step[offset])
        to[:, shard] = np.where(offset == 0, -1, (at - (offset & -offset)) % size)
    return Line(substeps, when, to)


def _receive_steps(size: int, doublings: int) -> Array:
    """Return the step of an allgather in which a rank receives, from the rank ``x & -x`` below, the shard of x below.

    Shard 0 is its own (-1).
    """
    bits = (size - 1).bit_length()
    far = min(doublings, bits)
    low = bits - far
    at = np.arange(size)
    inner = at & (1 << low) - 1
    place = inverse(_depth_first(low))
    zeros = np.array([(int(x) & -int(x)).bit_length() - 1 for x in at])
    step = np.where(inner > 0, far + place[inner] - 1, bits - 1 - zeros)
    step[0] = -1
    step[1:] = np.unique(step[1:], return_inverse=True)[1]  # without empty steps
    return step


def _depth_first(bits: int) -> Array:
    """Return the numbers below 2^bits as a walk over the binomial tree meets them, largest subtree first."""
    walk = np.zeros(1, dtype=np.int64)
    subtrees = [walk]
    for bit in range(bits):
        subtrees.append(np.concatenate([[0], *((1 << k) + subtrees[k] for k in range(bit, -1, -1))]))
    return subtrees[bits]
