"""Recursive doubling and Rabenseifner's algorithm, dimension after dimension of a torus, plain and mirrored.

Peers are 1, 2, 4, .. away. Recursive doubling exchanges whole vectors in log2(N) steps. Rabenseifner's algorithm halves
the data in every step of a reduce-scatter, nearest peers first since they receive the most, and gathers them again
(Thakur, Rabenseifner and Gropp, 2005). Sizes that are not powers of two fold. The plain forms use one direction at a
time; the mirrored forms have 2 D parts, one for every port, as Swing does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import attrs
import numpy as np

from collc.ir.spec import Problem

from .base import TEMPLATE, Script, TorusPass, exchange, scattered
from .build import Plan
from .peers import Mirror, doubling_line, doubling_peers
from .shape import logical_shape

if TYPE_CHECKING:
    from .chunks import ExchangedPart, ScatteredPart

__all__ = ["Rabenseifner", "RecursiveDoubling"]

_MIRRORED = {
    "help": "use all ports: half of the data go in the opposite direction (neg), or by coordinates -a (reflect)"
}
_SHAPE = {"help": "the sizes of the torus, such as `8x8`"}


def _starting_points(shape: tuple[int, ...], mirrored: str | bool) -> list[tuple[int, Mirror, int]]:
    """Return (dimension to begin with, mirror, direction) of every part.

    With one port at a time two parts take the same steps, but different routes where two are equally short.
    """
    if not mirrored:
        return [(0, "same", 0), (0, "same", 1)]
    mirrors: tuple[Mirror, ...] = ("same", str(mirrored))
    return [(start, mirror, direction) for direction, mirror in enumerate(mirrors) for start in range(len(shape))]


@attrs.frozen
class RecursiveDoubling(TorusPass):
    """Synthesize the exchange of whole vectors with peers 1, 2, 4, .. away; broadcast and reduce over its tree.

    Raises C0590, C0591, C0593 as Swing does.
    """

    name: ClassVar[str] = "recursive-doubling"
    summary: ClassVar[str] = "allreduce that exchanges whole vectors in log2(N) steps with peers 1, 2, 4, .. away"
    kinds: ClassVar[tuple[str, ...]] = ("allreduce", "broadcast", "reduce")

    mirrored: Literal["neg", "reflect", False] = attrs.field(default=False, metadata=_MIRRORED)
    shape: str | None = attrs.field(default=None, metadata=_SHAPE)
    template: bool | None = attrs.field(default=None, metadata=TEMPLATE)

    def _plan(self, ir: Problem) -> Plan:
        if ir.collective.root is not None:
            return _scattered(self, ir)
        shape = logical_shape(ir.topology, self.shape)
        starts, folds = _starting_points(shape, self.mirrored), [bool(size & size - 1) for size in shape]
        parts: list[ScatteredPart | ExchangedPart] = []
        for start, mirror, direction in starts:
            scripts = [_script(size, mirror) for size in shape]
            parts.append(exchange(shape, scripts, folds, start, len(parts), direction))
        return Plan(ir, self._router(ir), len(parts), parts, self.name)


@attrs.frozen
class Rabenseifner(TorusPass):
    """Synthesize reduce-scatter and allgather by halving and doubling.

    Raises C0590, C0591, C0593 as Swing does.
    """

    name: ClassVar[str] = "rabenseifner"
    summary: ClassVar[str] = "allreduce, reduce-scatter, allgather by recursive halving and doubling"

    mirrored: Literal["neg", "reflect", False] = attrs.field(default=False, metadata=_MIRRORED)
    shape: str | None = attrs.field(default=None, metadata=_SHAPE)
    template: bool | None = attrs.field(default=None, metadata=TEMPLATE)

    def _plan(self, ir: Problem) -> Plan:
        return _scattered(self, ir)


def _scattered(algorithm: RecursiveDoubling | Rabenseifner, ir: Problem) -> Plan:
    shape = logical_shape(ir.topology, algorithm.shape)
    parts: list[ScatteredPart | ExchangedPart] = []
    for start, mirror, direction in _starting_points(shape, algorithm.mirrored):
        lines = [doubling_line(size, mirror) for size in shape]
        parts.append(scattered(shape, lines, start, len(parts), direction=direction))
    return Plan(ir, algorithm._router(ir), len(parts), parts, algorithm.name)


def _script(size: int, mirror: Mirror) -> Script:
    core = 1 << (size.bit_length() - 1)
    return [(np.arange(core), peer) for peer in doubling_peers(core, mirror)]
