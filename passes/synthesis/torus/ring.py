"""Rings: every rank passes blocks on to the next, N - 1 steps to scatter and as many to gather, with all links busy.

Where the network has several rings without common links, both ways round count, each carries its share: two Hamiltonian
cycles of a 2-D torus, the two rings of ``shifted_ring``, the parallel links of ``biring(m, d)``.
"""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from .base import TorusPass
from .build import Plan
from .chunks import Chunk, Turn
from .cycles import one_cycle, two_cycles
from .lines import ring_line
from .routing import Router, router
from .shape import grid, logical_shape

__all__ = ["Ring"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen
class Ring(TorusPass):
    """Synthesize the ring algorithm over the cycles that the network has.

    Raises C0591 (a collective it cannot do), C0593 (an operation that is not commutative), C0595 (no ring).
    """

    name: ClassVar[str] = "ring"
    summary: ClassVar[str] = "allreduce and its halves over rings: one, two of a 2-D torus, both ways round"

    shape: str | None = attrs.field(default=None, metadata={"help": "the sizes of the torus, such as `8x8`"})

    def _plan(self, ir: Problem) -> Plan:
        n = ir.topology.num_ranks
        cycles, by = self._cycles(ir.topology)
        both = not ir.topology.is_direct or _linked(ir.topology, np.roll(cycles[0], -1), cycles[0])
        lanes = range(by.lanes if len(cycles) == 1 else 1)
        chunks: list[Chunk] = []
        for (number, cycle), lane, way in product(enumerate(cycles), lanes, (1, -1)):
            # What is gathered travels the other way: on a one-way ring the halves of an allreduce are two chunks.
            part = len(chunks) if both else lane
            link = number if len(cycles) > 1 else int(way < 0)  # in a dimension of 2: which of the two links
            line, turn = ring_line(n, way), Turn(0, 0, 0, n - 1)
            chunks.append(
                Chunk((n,), part, part + 1, link, lane, cycle, both or way > 0, both or way < 0, lines=(line,),
                      turns=(turn,))
            )  # fmt: skip
        return Plan(ir, by, len(chunks) if both else len(lanes), chunks, self.name)

    def _cycles(self, topology: Topology) -> tuple[list[Array], Router]:
        """Return the cycles to use, and what routes along them; raise C0595 where there is none."""
        shape = logical_shape(topology, self.shape)
        if grid(topology, shape) is not None:
            for cycles in (two_cycles(shape) or [], [one_cycle(shape)], [one_cycle(shape, flipped=True)]):
                if cycles and all(_linked(topology, cycle, np.roll(cycle, -1)) for cycle in cycles):
                    return self._shifted(topology) or (cycles, router(topology, shape))
        in_order = np.arange(topology.num_ranks)
        if not topology.is_direct or _linked(topology, in_order, np.roll(in_order, -1)):
            return [in_order], Router(topology, _parallel(topology))
        raise error(
            "C0595",
            f"`{topology.name}` has no ring through all ranks that `ring` knows",
            notes=["it looks for cycles of a torus or mesh, and for the ranks in their order"],
            hint="`bucket` uses rings of single dimensions, `bfb` needs no particular links",
            exit_status=3,
        )

    def _shifted(self, topology: Topology) -> tuple[list[Array], Router] | None:
        """Return the two rings of ``shifted_ring``, told by the links of rank 0."""
        n = topology.num_ranks
        offsets = np.unique(topology.dst[topology.src == 0].astype(np.int64)).tolist()
        if topology.symmetry is None or len(offsets) != 4 or topology.degree != 4 or offsets[0] != 1:
            return None
        if logical_shape(topology) != (n,) or np.gcd(offsets[1], n) != 1:
            return None
        at = np.arange(n)
        cycles = [at, at * offsets[1] % n]
        if not all(_linked(topology, cycle, np.roll(cycle, -1)) for cycle in cycles):
            return None
        return cycles, Router(topology)


def _parallel(topology: Topology) -> int:
    """Return how many links every pair of linked nodes has at least."""
    _, count = np.unique(topology.src.astype(np.int64) * topology.num_nodes + topology.dst, return_counts=True)
    return int(count.min(initial=1 << 30))


def _linked(topology: Topology, src: Array, dst: Array) -> bool:
    """Return whether there is a link from each source to its target."""
    nodes = topology.num_nodes
    return bool(np.isin(src * nodes + dst, topology.src.astype(np.int64) * nodes + topology.dst).all())
