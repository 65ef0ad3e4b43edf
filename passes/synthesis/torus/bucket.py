"""The bucket algorithm: rings along one dimension after the other, on all ports of a torus at once.

There are 2 D parts; each begins with its own dimension and goes in one direction. After d - 1 steps along a dimension
of size d, one d-th is left. Parts change dimensions together (Sack and Gropp, Faster topology-aware collective
algorithms through non-minimal communication, 2012). Where sizes differ, a part in a shorter dimension would send
larger messages for fewer steps and then idle. So it is pipelined in pieces, and all steps are about equal.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil, lcm, prod
from typing import ClassVar

import attrs

from collc.ir.spec import Problem

from .base import TEMPLATE, TorusPass
from .build import Plan
from .chunks import ScatteredPart, Stage
from .lines import ring_line
from .shape import logical_shape

__all__ = ["Bucket"]

_MOST_PIECES = 64


@attrs.frozen
class Bucket(TorusPass):
    """Synthesize the bucket algorithm with 2 D ports. Raises C0590, C0591, C0593 as Swing does."""

    name: ClassVar[str] = "bucket"
    summary: ClassVar[str] = "allreduce, reduce-scatter, allgather by rings along one torus dimension after another"

    shape: str | None = attrs.field(default=None, metadata={"help": "the sizes of the torus, such as `8x8`"})
    template: bool | None = attrs.field(default=None, metadata=TEMPLATE)

    def _plan(self, ir: Problem) -> Plan:
        shape = logical_shape(ir.topology, self.shape)
        cuts = _cuts(shape)
        num_parts, parts = lcm(*(m for row in cuts for m in row)), list[ScatteredPart]()
        for direction, start, piece in product((0, 1), range(len(shape)), range(num_parts)):
            stages = []
            for phase, pieces in enumerate(cuts[start]):
                dim = (start + phase) % len(shape)
                step = phase * (max(shape) - 1) + piece * pieces // num_parts * (shape[dim] - 1)
                stages.append(Stage(step, dim, 0, shape[dim] - 1))
            lines = tuple(ring_line(size, 1 - 2 * direction) for size in shape)
            index = len(parts)
            parts.append(ScatteredPart(shape, index, index + 1, direction, lines=lines, stages=tuple(stages)))
        return Plan(ir, self._router(ir), len(parts), parts, self.name)


def _cuts(shape: tuple[int, ...]) -> list[list[int]]:
    """Return the number of pieces of a part in every phase, by the dimension it begins with.

    In each phase the largest message is as small as the steps of the longest dimension allow, with the fewest pieces.
    """
    dims, longest = len(shape), max(shape)
    cuts = [[1] * dims for _ in shape]
    for phase in range(dims):
        order = [[shape[(start + q) % dims] for q in range(phase + 1)] for start in range(dims)]
        amount = [Fraction(1, prod(sizes)) for sizes in order]
        most = [(longest - 1) // (sizes[-1] - 1) for sizes in order]
        target = max(a / m for a, m in zip(amount, most, strict=True))
        for start in range(dims):
            cuts[start][phase] = ceil(amount[start] / target)
    if lcm(*(m for row in cuts for m in row)) > _MOST_PIECES:  # powers of two have a small multiple in common
        cuts = [[1 << (m.bit_length() - 1) for m in row] for row in cuts]
    return cuts
