"""A forest stored as a template and a group: the trees of a few roots determine those of all roots.

The roots of the template are the least ranks of all orbits. Element g of the group (:mod:`.symmetries`) moves a tree
of root r to a tree of root g*r, over the images of its routes. So a link carries what the template's trees put on all
links of its orbit, and shards do not interact: executing the template executes all. Ranks that the group keeps in place
(those of boxes that are not like the others) have all their trees in the template, and nothing moves these.
Trees of 10,240 ranks have 10^8 edges; the template of boxes of 8 has 8 * 10^4.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import attrs
import numpy as np

from .arrays import Array, Columnar, Columns, fit
from .collective import Collective
from .diagnostic import Excess, error
from .frozen import frozen
from .schedule import Forest, Routes, about
from .shown import counted, shown
from .symmetric import MOST_ROWS
from .symmetries import Regular, Symmetries, moved_routes
from .topology import Topology

__all__ = ["SymmetricForest"]

#: parts of a shard up to which boxes have a program of one box
_FEW_PARTS = 16


@frozen(eq=False)
class SymmetricForest(Columnar):
    """The forest whose trees are those of ``seed``, each moved by every element of ``group`` unless its root stays.

    ``len`` counts the edges of the whole forest, ``num_trees`` its trees.
    """

    seed: Forest
    group: Symmetries

    SCALARS = ("seed",)

    def __repr__(self) -> str:
        return shown(self, f"{about(self)}, {counted(self.num_trees, 'tree')} of {self.seed.num_trees} in a template")

    def __len__(self) -> int:
        return self._all(~self.stays[self.seed.tree])

    @property
    def topology(self) -> Topology:
        """The network."""
        return self.seed.topology

    @property
    def collective(self) -> Collective:
        """The collective that all trees together perform."""
        return self.seed.collective

    @property
    def works_by_orbits(self) -> bool:
        """Whether a program of the first ranks is as good as one of all ranks, if elements of the group move ranks in
        order.

        On boxes, messages of shards in many parts are more than all ranks need: there passes join neighbouring parts.
        """
        if isinstance(self.group, Regular):
            return True
        return self.group.numbered is not None and self.group.order > 1 and self.parts <= _FEW_PARTS

    @property
    def parts(self) -> int:
        """Equal parts of a shard, as in :class:`~collc.ir.schedule.Forest`."""
        return self.seed.parts

    @property
    def vector(self) -> int:
        """M in the unit of the trees' weights."""
        return self.seed.vector

    @property
    def whole(self) -> bool:
        """Whether weights are shares of the vector, as in :class:`~collc.ir.schedule.Forest`."""
        return self.seed.whole

    def carried(self, inward: int) -> int:
        """Return the sum of the weights of all trees of a direction."""
        own = self.seed.inward == inward
        weight = np.where(self.stays, 1, self.group.order) * self.seed.weight.astype(np.int64)
        return int(weight[own].sum())

    @property
    def pieces(self) -> int:
        """Equal pieces that are sent one after another."""
        return self.seed.pieces

    @property
    def scheduler(self) -> str:
        """The name of its scheduler."""
        return self.seed.scheduler

    @property
    def routes(self) -> Routes:
        """The routes of the template."""
        return self.seed.routes

    @property
    def in_network(self) -> bool:
        """Whether edges share links in switches, as in :class:`~collc.ir.schedule.Forest`."""
        return self.seed.in_network

    @property
    def num_trees(self) -> int:
        """Trees of both directions together."""
        return self._all(~self.stays)

    def _all(self, moves: Array) -> int:
        moved = int(np.count_nonzero(moves))
        return moved * self.group.order + len(moves) - moved

    @cached_property
    def stays(self) -> Array:
        """Whether the root of each tree of the template stays."""
        stays: Array = self.group.stays[self.seed.root]
        return stays

    @property
    def roots(self) -> Array:
        """Roots of the template."""
        return self.group.roots

    @property
    def heights(self) -> tuple[int, int]:
        """The heights of the trees of both directions, as in :class:`~collc.ir.schedule.Forest`."""
        return self.seed.heights

    def share(self, tree: int) -> Fraction:
        """Return the share of its shard that a tree of the template carries."""
        return self.seed.share(tree)

    def revised(self, collective: Collective | None = None, pieces: int | None = None) -> SymmetricForest:
        """Return the same trees for a collective that differs in its size only, or in this number of pieces."""
        seed = self.seed if collective is None else attrs.evolve(self.seed, collective=collective)
        return attrs.evolve(self, seed=seed if pieces is None else attrs.evolve(seed, pieces=pieces))

    def unfold(self, most: int = MOST_ROWS) -> Forest:
        """Return all trees as rows, by direction and then by element; raise C0808 for more than ``most`` rows."""
        if len(self) > most:
            raise error(
                "C0808",
                f"this forest of {self.collective.kind} on {self.topology.num_ranks} ranks has {len(self)} edges; at "
                f"most {most} can be listed",
                notes=["`collc cost` needs only its template"],
                hint="use fewer ranks",
                exit_status=3,
                excess=Excess("transfers", len(self), most),
            )
        seed = self.seed
        routes, moved = moved_routes(seed.routes, self.group)
        directions = list(dict.fromkeys(seed.inward.tolist()))
        columns: dict[str, list[Array]] = {name: [] for name in seed.COLUMNS}
        trees = 0
        for direction in directions:
            for stays in (False, True):
                chosen = (seed.inward == direction) & (self.stays == stays)
                own, rows = np.flatnonzero(chosen), np.flatnonzero(chosen[seed.tree])
                number = np.zeros(seed.num_trees, dtype=np.int64)
                number[own] = np.arange(len(own))
                elements = np.arange(1 if stays else self.group.order)
                for name, column in self._images(elements, own, rows, trees + number, moved).items():
                    columns[name].append(column)
                trees += len(own) * len(elements)
        joined: Columns = {
            name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in columns.items()
        }
        return attrs.evolve(seed, routes=routes, **joined)

    def _images(self, element: Array, own: Array, rows: Array, number: Array, moved: Array) -> Columns:
        """Return the columns of the images of the trees ``own``, whose edges are ``rows``, element by element."""
        seed, group, order = self.seed, self.group, len(element)
        ranks, trees = fit(0, self.topology.num_ranks), fit(0, self.num_trees)
        tree = np.empty((order, len(rows)), dtype=trees)
        ends = {name: np.empty((order, len(rows)), dtype=ranks) for name in ("parent", "child")}
        route = np.empty((order, len(rows)), dtype=moved.dtype)
        for g in element.tolist():  # a row at a time: the group works in 64 bits
            tree[g] = g * len(own) + number[seed.tree[rows]]
            for name, table in ends.items():
                table[g] = group.nodes(g, getattr(seed, name)[rows].astype(np.int64))
            route[g] = moved[g][seed.route[rows]]
        return {
            "root": group.nodes(element[:, None], seed.root[own].astype(np.int64)[None, :]).ravel(),
            "weight": np.tile(seed.weight[own], order),
            "inward": np.tile(seed.inward[own], order),
            "tree": tree.ravel(),
            "parent": ends["parent"].ravel(),
            "child": ends["child"].ravel(),
            "route": route.ravel(),
        }
