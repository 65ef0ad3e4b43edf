"""Rings: every rank passes blocks on to the next, N - 1 steps to scatter and as many to gather, with all links busy.

Where the network has several rings without common links, both ways round count, each carries its share: two Hamiltonian
cycles of a 2-D torus, the two rings of ``shifted_ring``, the parallel links of ``biring(m, d)``. Breadth first (section
8.2 of the direct-connect paper: ShiftedBFBRing) blocks take the shorter way round, floor(N / 2) steps a phase and no
more bandwidth time.
"""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar, Literal

import attrs
import numpy as np

from collc.ir.diagnostic import CollcError, error
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from .base import TorusPass
from .build import Plan
from .chunks import Chunk, Turn
from .cycles import one_cycle, two_cycles, two_exist
from .lines import Line, ring_line, short_ring_line
from .routing import Router, router
from .shape import grid, logical_shape

__all__ = ["Ring"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen
class Ring(TorusPass):
    """Synthesize the ring algorithm over the cycles that the network has.

    Raises C0591 (a collective it cannot do), C0593 (an operation that needs an order), C0595 (no ring),
    C0597 (no second ring).
    """

    name: ClassVar[str] = "ring"
    summary: ClassVar[str] = "allreduce and its halves over rings: one, two of a 2-D torus, both ways round"

    schedule: Literal["traditional", "bfb"] = attrs.field(
        default="traditional",
        metadata={"help": "all the way round in N - 1 steps, or breadth first: the shorter way, in half as many"},
    )
    rings: Literal["auto", 1, 2] = attrs.field(
        default="auto", metadata={"help": "use one ring, two without a common link, or all that are known"}
    )
    shape: str | None = attrs.field(default=None, metadata={"help": "the sizes of the torus, such as `8x8`"})

    def _plan(self, ir: Problem) -> Plan:
        n = ir.topology.num_ranks
        cycles, by = self._cycles(ir.topology)
        both = not ir.topology.is_direct or _linked(ir.topology, np.roll(cycles[0], -1), cycles[0])
        lanes = range(by.lanes if len(cycles) == 1 else 1)
        if self.rings == 2 and max(len(cycles), len(lanes)) < 2:
            raise self._no_second(ir.topology)
        if self.rings != "auto":
            cycles, lanes = cycles[: self.rings], lanes[: self.rings]
        shorter = self.schedule == "bfb" and both
        ways = (1,) if (n % 2 and shorter) or not both else (1, -1)
        chunks: list[Chunk] = []
        for part, ((number, cycle), lane, way) in enumerate(product(enumerate(cycles), lanes, ways)):
            link = number if len(cycles) > 1 else int(way < 0)  # in a dimension of 2: which of the two links
            # What is gathered travels against its line. It should follow the sums: whoever completes one passes it on.
            for line_way, forwards in ((way, True),) if shorter else ((way, True), (-way, False)):
                line, turns = _round(n, line_way, shorter)
                chunks.append(
                    Chunk((n,), part, part + 1, link, lane, cycle, forwards, shorter or not forwards, lines=(line,),
                          turns=turns)
                )  # fmt: skip
        return Plan(ir, by, part + 1, chunks, self.name)

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

    def _no_second(self, topology: Topology) -> CollcError:
        shape = logical_shape(topology, self.shape)
        why = "two are known of 2-D tori, of `shifted_ring`, and of rings with parallel links"
        if len(shape) == 2:
            rows, columns = max(shape), min(shape)
            why = f"a torus of r x c has two where r = c k and gcd(r, c - 1) = 1: here r is {rows}, c is {columns}"
            if two_exist(rows, columns):
                why = f"of a torus of {rows} x {columns} they need all links, also those that wrap round"
        return error(
            "C0597", f"`{topology.name}` has no two rings without a common link that `ring` knows", notes=[why],
            hint="leave `rings` out; `bucket` uses all links of any torus", exit_status=3,
        )  # fmt: skip

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


def _round(size: int, way: int, shorter: bool) -> tuple[Line, tuple[Turn, ...]]:
    """Return what a chunk does on a ring, all the way round or the shorter way; steps of a turn are alike."""
    if not shorter:
        return ring_line(size, way), (Turn(0, 0, 0, size - 1),)
    far = size // 2
    turns = [Turn(0, 0, 0, far)] if size % 2 else [Turn(0, 0, 0), Turn(1, 0, 1, far - 1)]
    return short_ring_line(size, way), tuple(turn for turn in turns if turn.length)


def _parallel(topology: Topology) -> int:
    """Return how many links every pair of linked nodes has at least."""
    _, count = np.unique(topology.src.astype(np.int64) * topology.num_nodes + topology.dst, return_counts=True)
    return int(count.min(initial=1 << 30))


def _linked(topology: Topology, src: Array, dst: Array) -> bool:
    """Return whether there is a link from each source to its target."""
    nodes = topology.num_nodes
    return bool(np.isin(src * nodes + dst, topology.src.astype(np.int64) * nodes + topology.dst).all())
