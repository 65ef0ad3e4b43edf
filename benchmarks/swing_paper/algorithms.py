"""The algorithms that are compared, each in the variants of which the fastest counts at every size."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from collc.backends.simulator import Level
from collc.ir.collective import Collective
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.torus.base import TorusPass
from collc.passes.synthesis.torus.bine import Bine
from collc.passes.synthesis.torus.bucket import Bucket
from collc.passes.synthesis.torus.doubling import Rabenseifner, RecursiveDoubling
from collc.passes.synthesis.torus.pat import PAT
from collc.passes.synthesis.torus.ring import Ring
from collc.passes.synthesis.torus.swing import Swing
from collc.passes.synthesis.torus.trivance import Trivance
from collc.passes.synthesis.trees.double_binary_tree import DoubleBinaryTree

__all__ = ["BUCKET", "DOUBLING", "EVERY", "MIRRORED", "PAPER", "RING", "SWING", "Algorithm", "allreduce"]

Make = Callable[[Topology], Level]


@attrs.frozen
class Algorithm:
    """A curve of a figure; ``letter`` is the paper's; ``variants`` make what goes over a torus, in ``rings`` or not."""

    name: str
    letter: str
    variants: tuple[Make, ...]
    rings: bool = False


def allreduce(net: Topology) -> Problem:
    """Return an allreduce on a network."""
    return Problem(net, Collective("allreduce", net.num_ranks))


def _torus(*passes: TorusPass) -> tuple[Make, ...]:
    """Return the messages of passes that exchange along the dimensions of a torus."""
    return tuple((lambda net, chosen=chosen: chosen.messages(allreduce(net))) for chosen in passes)  # type: ignore[misc]


def _tree(pieces: int) -> Make:
    """Return the double binary tree in this number of pieces, over shortest routes of the torus."""
    return lambda net: DoubleBinaryTree(pipeline=pieces).messages(allreduce(net))


SWING = Algorithm("Swing", "S", _torus(Swing(variant="latency"), Swing(variant="bandwidth")))
DOUBLING = Algorithm("recursive doubling", "D", _torus(RecursiveDoubling(), Rabenseifner()))
MIRRORED = Algorithm("mirrored doubling", "M", _torus(RecursiveDoubling(mirrored="neg"), Rabenseifner(mirrored="neg")))
BUCKET = Algorithm("bucket", "B", _torus(Bucket()), rings=True)
RING = Algorithm("ring", "H", _torus(Ring()), rings=True)

#: what the paper compares; the ring where two cycles without a common link exist
PAPER = (SWING, DOUBLING, BUCKET, RING)

#: and what has been published before and since
EVERY = (
    *PAPER, MIRRORED, Algorithm("Bine", "N", _torus(Bine())), Algorithm("PAT", "P", _torus(PAT())),
    Algorithm("Trivance", "T", _torus(Trivance(variant="bandwidth"))),
    Algorithm("double binary tree", "2", tuple(_tree(pieces) for pieces in (1, 8, 64, 512))),
    Algorithm("BFB", "F", (lambda net: BFB().run(allreduce(net)),)),
)  # fmt: skip
