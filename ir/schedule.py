"""Who sends which part of which shard over which links, and when: the chunk-level IR.

Two forms. A :class:`Schedule` gives every transfer a step; a :class:`Forest` gives every shard weighted spanning
trees. Both are columns, one row a transfer or tree edge, because a torus of 2,500 ranks has 6 million.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from .arrays import Columnar, as_column
from .collective import Collective
from .topology import Topology

__all__ = ["Action", "Forest", "Routes", "Schedule"]

Array = np.ndarray[Any, np.dtype[Any]]


class Action(IntEnum):
    """What the receiver does with what arrives: keep it, or add it to what it has."""

    COPY = 0
    REDUCE = 1


@attrs.frozen(eq=False)
class Routes(Columnar):
    """Paths of links through switches: route r is ``links[start[r]:start[r+1]]``, rank to rank."""

    start: Array = attrs.field(converter=as_column)
    links: Array = attrs.field(converter=as_column)

    COLUMNS = ("start", "links")

    def __len__(self) -> int:
        return len(self.start) - 1

    @classmethod
    def of(cls, paths: Sequence[Sequence[int]]) -> Routes:
        """Return the routes with these lists of links."""
        start = np.cumsum([0, *(len(p) for p in paths)])
        return cls(start, [link for path in paths for link in path])

    @classmethod
    def direct(cls, num_links: int) -> Routes:
        """Return the routes of a network without switches: route r is link r alone."""
        return cls(np.arange(num_links + 1), np.arange(num_links))

    def path(self, route: int) -> list[int]:
        return [int(x) for x in self.links[self.start[route] : self.start[route + 1]]]

    @cached_property
    def is_direct(self) -> bool:
        """Whether route r is link r alone, for every r."""
        return len(self.links) == len(self) and np.array_equal(self.links, np.arange(len(self)))

    def tails(self, topology: Topology) -> Array:
        """Return the node each route starts from."""
        return topology.src[self.links[self.start[:-1]]]

    def heads(self, topology: Topology) -> Array:
        """Return the node each route ends at."""
        return topology.dst[self.links[self.start[1:].astype(np.int64) - 1]]


@attrs.frozen(eq=False)
class Schedule(Columnar):
    """Step form: each row is a transfer.

    Row i moves parts ``lo[i]`` .. ``hi[i]`` (exclusive) of shard ``shard[i]`` along ``route[i]`` at ``step[i]``; the
    receiver copies or reduces, as ``action[i]`` says.

    A shard is cut in ``parts`` equal parts, so the row moves the exact interval [lo/parts, hi/parts) of it. Before the
    discretize pass ``parts`` is merely a common denominator; after it (``discrete``) a part is a chunk that runtimes
    move whole. Steps count from 0 and never decrease from row to row; transfers of one step happen together:
    all read what was there before the step.
    """

    topology: Topology
    collective: Collective
    parts: int
    step: Array = attrs.field(converter=as_column)
    action: Array = attrs.field(converter=as_column)
    shard: Array = attrs.field(converter=as_column)
    lo: Array = attrs.field(converter=as_column)
    hi: Array = attrs.field(converter=as_column)
    route: Array = attrs.field(converter=as_column)
    routes: Routes = attrs.field(
        default=attrs.Factory(lambda self: Routes.direct(self.topology.num_links), takes_self=True)
    )
    discrete: bool = False
    scheduler: str = "steps"

    SCALARS = ("topology", "collective", "parts", "routes", "discrete", "scheduler")
    COLUMNS = ("step", "action", "shard", "lo", "hi", "route")

    def __len__(self) -> int:
        return len(self.step)

    @property
    def num_steps(self) -> int:
        return int(self.step[-1]) + 1 if len(self) else 0

    @cached_property
    def src(self) -> Array:
        """The rank each row sends from."""
        return self.routes.tails(self.topology)[self.route]

    @cached_property
    def dst(self) -> Array:
        """The rank each row sends to."""
        return self.routes.heads(self.topology)[self.route]

    @cached_property
    def step_start(self) -> Array:
        """The first row of each step, then the number of rows: ``num_steps + 1`` entries."""
        return np.searchsorted(self.step, np.arange(self.num_steps + 1))

    def rows(self, keep: Array) -> Schedule:
        """Return the schedule of the rows that ``keep`` selects (a mask or row numbers, steps not decreasing)."""
        return attrs.evolve(self, **{c: getattr(self, c)[keep] for c in self.COLUMNS})


def _directions(values: Any) -> Array:
    """Return a column of 0 (outward) and 1 (inward); one truth value for all trees stays one until their number is
    known.
    """
    return np.asarray(values, dtype=np.uint8) if np.ndim(values) == 0 else as_column(values)


@attrs.frozen(eq=False)
class Forest(Columnar):
    """Forest form: tree t carries the share ``weight[t]/parts`` of shard ``root[t]``; its edges are rows.

    Row i says that in tree ``tree[i]`` rank ``parent[i]`` passes data to rank ``child[i]`` along ``route[i]``
    (out-trees: allgather, broadcast), or the reverse, reducing, where ``inward[tree[i]]`` (reduce-scatter, reduce; the
    route then runs from child to parent). Rows of a tree stand parents first. ``inward`` may be given as one truth
    value for all trees. An allreduce has trees of both directions; each direction carries every shard whole.

    Where trees carry the ``whole`` vector their shares are of all shards together: so it is in rooted collectives,
    whose trees have the root as theirs, and in an allreduce by reduce and broadcast, where what is reduced to a root
    is broadcast from it. Trees of one direction (and root, unless ``whole``) are stacked in row order to cover [0, 1).

    In time the data are cut in ``pieces`` equal pieces that follow each other; every tree carries its share of every
    piece (:meth:`to_steps`).
    """

    topology: Topology
    collective: Collective
    parts: int
    root: Array = attrs.field(converter=as_column)
    weight: Array = attrs.field(converter=as_column)
    tree: Array = attrs.field(converter=as_column)
    parent: Array = attrs.field(converter=as_column)
    child: Array = attrs.field(converter=as_column)
    route: Array = attrs.field(converter=as_column)
    routes: Routes = attrs.field(
        default=attrs.Factory(lambda self: Routes.direct(self.topology.num_links), takes_self=True)
    )
    inward: Array = attrs.field(default=False, converter=_directions)
    whole: bool = False
    pieces: int = 1
    scheduler: str = "forest"

    SCALARS = ("topology", "collective", "parts", "routes", "whole", "pieces", "scheduler")
    COLUMNS = ("root", "weight", "inward", "tree", "parent", "child", "route")

    def __attrs_post_init__(self) -> None:
        if self.inward.ndim == 0:
            object.__setattr__(self, "inward", as_column(np.broadcast_to(self.inward, len(self.root))))
        if self.collective.root is not None:
            object.__setattr__(self, "whole", True)

    @property
    def num_trees(self) -> int:
        return len(self.root)

    def share(self, tree: int) -> Fraction:
        """Return the share of its shard (of the vector, where trees carry that) that a tree carries."""
        return Fraction(int(self.weight[tree]), self.parts)

    @cached_property
    def parent_row(self) -> Array:
        """For each row, the first row of its tree whose child is this row's parent; -1 where the parent is the root."""
        ranks = self.collective.num_ranks
        base = self.tree.astype(np.int64) * ranks
        key, wanted = base + self.child, base + self.parent
        order = np.argsort(key, kind="stable")
        place = np.searchsorted(key[order], wanted)
        row = np.append(order, -1)[place]
        at_root = (key[row] != wanted) | (self.parent == self.root[self.tree])
        return np.where(at_root, -1, row)

    @cached_property
    def depth(self) -> Array:
        """Hops (tree edges) from the root to the child of each row."""
        depth, above = np.ones(len(self.tree), dtype=np.int64), self.parent_row
        for _ in range(len(self.tree).bit_length()):  # every round doubles the hops that are counted
            depth = depth + np.where(above >= 0, depth[above], 0)
            above = np.where(above >= 0, above[above], -1)
            if (above < 0).all():
                break
        return depth

    @property
    def height(self) -> int:
        """Edges on the longest path from a root to a leaf."""
        return int(self.depth.max(initial=0))

    @cached_property
    def heights(self) -> tuple[int, int]:
        """The height of the trees that point inward, and of those that point outward."""
        inward = self.inward[self.tree].astype(bool)
        return int(self.depth[inward].max(initial=0)), int(self.depth[~inward].max(initial=0))

    def to_steps(self, pieces: int | None = None) -> Schedule:
        """Return the step form, with the data cut in so many pieces (the forest's own number unless given).

        Piece j of P is [j/P, (j+1)/P) of every shard (of the vector, where trees carry that), and within it each tree
        carries its share: a share of weight w/parts becomes P intervals of w/(P parts) each, so a piece that was
        reduced to a root is the piece that leaves it. Piece j uses an outward edge at depth h in step h - 1 + j, an
        inward one in step H - h + j, where H is the height of the inward trees; in an allreduce outward edges act H
        steps later, so piece j turns round at its root in no time and both phases overlap. There are
        ``sum(heights) + P - 1`` steps. Where trees carry the whole vector their shares are cut where shards end.
        """
        from .pipelining import to_steps

        return to_steps(self, self.pieces if pieces is None else pieces)
