"""Recursive doubling and Rabenseifner's algorithm, dimension after dimension of a torus, plain and mirrored.

Peers are 1, 2, 4, .. away. Recursive doubling exchanges everything in log2(N) steps; Rabenseifner's algorithm halves
what is left in every step of a reduce-scatter, nearest peers first since they take the most, and gathers it again
(Thakur, Rabenseifner and Gropp, 2005). Sizes that are no powers of two fold. Plain, all data go one way at a time; the
mirrored forms cut them in 2 D chunks, one for every port, as Swing does.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import attrs
import numpy as np

from collc.ir.spec import Problem

from .base import Script, TorusPass, exchange, scattered
from .build import Plan
from .peers import Mirror, doubling_line, doubling_peers
from .shape import logical_shape

__all__ = ["Rabenseifner", "RecursiveDoubling"]

_MIRRORED = {
    "help": "use all ports: half of the data go as far the other way round (neg), or by coordinates -a (reflect)"
}
_SHAPE = {"help": "the sizes of the torus, such as `8x8`"}


def _starts(shape: tuple[int, ...], mirrored: str | bool) -> list[tuple[int, Mirror, int]]:
    """Return (dimension to begin with, mirror, way) of every chunk.

    With one port at a time two chunks take the same steps, but for ways that are as long either way round.
    """
    if not mirrored:
        return [(0, "same", 0), (0, "same", 1)]
    mirrors: tuple[Mirror, ...] = ("same", str(mirrored))
    return [(start, mirror, way) for way, mirror in enumerate(mirrors) for start in range(len(shape))]


@attrs.frozen
class RecursiveDoubling(TorusPass):
    """Synthesize the exchange of everything with peers 1, 2, 4, .. away; broadcast and reduce over its tree.

    Raises C0590, C0591, C0593 as Swing does.
    """

    name: ClassVar[str] = "recursive-doubling"
    summary: ClassVar[str] = "allreduce that exchanges everything in log2(N) steps, peers 1, 2, 4, .. away"
    kinds: ClassVar[tuple[str, ...]] = ("allreduce", "broadcast", "reduce")

    mirrored: Literal["neg", "reflect", False] = attrs.field(default=False, metadata=_MIRRORED)
    shape: str | None = attrs.field(default=None, metadata=_SHAPE)

    def _plan(self, ir: Problem) -> Plan:
        if ir.collective.root is not None:
            return _scattered(self, ir, self.mirrored)
        shape = logical_shape(ir.topology, self.shape)
        starts, folds = _starts(shape, self.mirrored), [bool(size & size - 1) for size in shape]
        chunks: list[Any] = []
        for start, mirror, way in starts:
            scripts = [_script(size, mirror) for size in shape]
            chunks.append(exchange(shape, scripts, folds, start, len(chunks), way))
        return Plan(ir, self._router(ir), len(chunks), chunks, self.name)


@attrs.frozen
class Rabenseifner(TorusPass):
    """Synthesize reduce-scatter and allgather by halving and doubling.

    Raises C0590, C0591, C0593 as Swing does.
    """

    name: ClassVar[str] = "rabenseifner"
    summary: ClassVar[str] = "allreduce by recursive halving and doubling, and its halves"

    mirrored: Literal["neg", "reflect", False] = attrs.field(default=False, metadata=_MIRRORED)
    shape: str | None = attrs.field(default=None, metadata=_SHAPE)

    def _plan(self, ir: Problem) -> Plan:
        return _scattered(self, ir, self.mirrored)


def _scattered(algorithm: Any, ir: Problem, mirrored: str | bool) -> Plan:
    shape = logical_shape(ir.topology, algorithm.shape)
    chunks: list[Any] = []
    for start, mirror, way in _starts(shape, mirrored):
        lines = [doubling_line(size, mirror) for size in shape]
        chunks.append(scattered(shape, lines, start, len(chunks), way=way))
    return Plan(ir, algorithm._router(ir), len(chunks), chunks, algorithm.name)


def _script(size: int, mirror: Mirror) -> Script:
    core = 1 << (size.bit_length() - 1)
    return [(np.arange(core), peer) for peer in doubling_peers(core, mirror)]
