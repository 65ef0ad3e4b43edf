"""The bucket algorithm: rings along one dimension after the other, on all ports of a torus at once.

2 D chunks, each beginning with a dimension of its own and going one way round; after d - 1 steps along a dimension of
size d what is left is one d-th. Chunks change dimensions together (Sack and Gropp, Faster topology-aware collective
algorithms through non-minimal communication, 2012). Where sizes differ, a chunk in a shorter dimension would send
larger pieces for fewer steps and then wait: it is cut, and its pieces follow each other, so that steps are about equal.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil, lcm, prod
from typing import ClassVar

import attrs

from collc.ir.spec import Problem

from .base import TorusPass
from .build import Plan
from .chunks import Chunk, Turn
from .lines import ring_line
from .shape import logical_shape

__all__ = ["Bucket"]

_MOST_PIECES = 64


@attrs.frozen
class Bucket(TorusPass):
    """Synthesize the bucket algorithm with 2 D ports. Raises C0590, C0591, C0593 as Swing does."""

    name: ClassVar[str] = "bucket"
    summary: ClassVar[str] = "allreduce and its halves by rings along one dimension of a torus after the other"

    shape: str | None = attrs.field(default=None, metadata={"help": "the sizes of the torus, such as `8x8`"})

    def _plan(self, ir: Problem) -> Plan:
        shape = logical_shape(ir.topology, self.shape)
        cuts = _cuts(shape)
        parts, chunks = lcm(*(m for row in cuts for m in row)), list[Chunk]()
        for way, start, piece in product((0, 1), range(len(shape)), range(parts)):
            turns = []
            for phase, pieces in enumerate(cuts[start]):
                dim = (start + phase) % len(shape)
                step = phase * (max(shape) - 1) + piece * pieces // parts * (shape[dim] - 1)
                turns.append(Turn(step, dim, 0, shape[dim] - 1))
            lines = tuple(ring_line(size, 1 - 2 * way) for size in shape)
            part = len(chunks)
            chunks.append(Chunk(shape, part, part + 1, way, lines=lines, turns=tuple(turns)))
        return Plan(ir, self._router(ir), len(chunks), chunks, self.name)


def _cuts(shape: tuple[int, ...]) -> list[list[int]]:
    """Return in how many pieces, one after the other, a chunk goes in every phase, by the dimension it begins with.

    In each phase the largest message is as small as the steps of the longest dimension allow, in as few pieces as that
    takes.
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
