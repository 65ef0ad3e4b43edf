"""The trees of one group in a mixture, as a forest on the whole network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collc.ir.collective import Collective
from collc.ir.schedule import Forest, Routes
from collc.ir.topology import Topology

from .commodities import Column
from .mixture import Mixture
from .steiner import Hop

__all__ = ["forest_of"]

Tree = tuple[int, int, bool, tuple[Hop, ...]]  # root, weight, inward, hops


def forest_of(topology: Topology, collective: Collective, mixture: Mixture, group: int) -> Forest | None:
    """Return the forest of a group in one piece; None if it sends over routes."""
    chosen = [
        (column, units) for column, units in zip(mixture.columns, mixture.units, strict=True)
        if mixture.commodities[column.commodity].group == group
    ]  # fmt: skip
    if any(mixture.commodities[column.commodity].targets is not None for column, _ in chosen):
        return None
    chosen.sort(key=lambda one: (one[0].commodity, one[0].root))
    trees = [*_trees(chosen, True), *_trees(chosen, False)]
    number: dict[tuple[int, ...], int] = {}
    rows = [
        (tree, *hop[:2], number.setdefault(hop[2], len(number))) for tree, one in enumerate(trees) for hop in one[3]
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return Forest(
        topology, collective, mixture.parts, root=[one[0] for one in trees], weight=[one[1] for one in trees],
        tree=table[0], parent=table[1], child=table[2], route=table[3], routes=Routes.of(list(number)),
        inward=np.array([one[2] for one in trees]), whole=collective.kind == "allreduce",
    )  # fmt: skip


def _trees(columns: Sequence[tuple[Column, int]], inward: bool) -> list[Tree]:
    halves = [(column, units, column.inward if inward else column.outward) for column, units in columns]
    return [(column.root, units, inward, hops) for column, units, hops in halves if hops]
