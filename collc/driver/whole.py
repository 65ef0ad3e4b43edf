"""Collectives that run together as a whole: the time of all at once, and its bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.frozen import frozen
from collc.ir.graph.members import with_shares
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.topology import Topology

from .blocks import Block

if TYPE_CHECKING:
    from collc.backends.simulator import Level
    from collc.passes.synthesis.groups.division import JointCuts
    from collc.passes.synthesis.groups.mixture import Priced

    from .result import CollectiveResult

__all__ = ["Whole", "on_its_part", "size_of", "wholes"]


@frozen
class Whole:
    """The collectives of one block at once, each in its own size.

    ``time`` is that in which the busiest link, ``link``, carries the data of all, ``bound`` a lower bound on the time
    of any schedules of all, ``tree_bound`` one of schedules by trees, if it was computed. ``parts`` are the times in
    which trees of each finish on its part of the links, None for one that shares no link. Times are in seconds, or in
    bytes a unit of bandwidth.
    """

    names: tuple[str, ...]
    topology: Topology
    time: Fraction
    link: int
    bound: JointCuts | Priced
    parts: tuple[Fraction | None, ...]
    tree_bound: Priced | None = None

    @property
    def ratio(self) -> Fraction | None:
        """The time over its bound; None if no data move."""
        return self.time / self.bound.value if self.bound.value else None


def wholes(blocks: Iterable[Block | None], results: Sequence[CollectiveResult]) -> Iterator[Whole]:
    """Yield the whole of every block all of whose collectives have a schedule; a block may stand several times."""
    found: Mapping[str, CollectiveResult] = {result.name: result for result in results}
    seen: list[Block] = []
    for block in blocks:
        if block is None or block in seen:
            continue
        seen.append(block)
        names = tuple(request.name for request in block.requests)
        if all(name in found for name in names):
            yield _whole(block, names, [found[name] for name in names])


def _whole(block: Block, names: tuple[str, ...], results: Sequence[CollectiveResult]) -> Whole:
    from collc.passes.synthesis.groups.together import time_together

    levels = [result.forest or result.schedule for result in results]
    known = [level for level in levels if level is not None]
    assert len(known) == len(levels), "results with schedules"
    time, link = time_together(known, [size_of(result) for result in results])
    return Whole(names, known[0].topology, time, link, block.found.bound, block.found.times, block.found.tree_bound)


def size_of(result: CollectiveResult) -> int:
    """Return the size of a collective in bytes, the usual one if it has none."""
    own = result.request.problem.collective.size
    return USUAL_SIZE if own is None else own


def on_its_part(level: Level, shares: Sequence[Fraction] | None) -> Level:
    """Return a schedule, or its traffic, on the same links with these bandwidths; links with 0 stay unchanged."""
    if shares is None:
        return level
    if isinstance(level, (SymmetricSchedule, SymmetricForest)):
        level = level.unfold()
    return attrs.evolve(level, topology=with_shares(level.topology, shares))
