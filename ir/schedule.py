"""Schedules: which part of which shard moves along which route in which step.

There are two forms. A :class:`Schedule` gives every transfer a step; a :class:`Forest` gives every shard weighted
spanning trees. Both are columns with one row per transfer or tree edge, because a torus of 2,500 ranks has 6 million.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from .arrays import Array, Columnar, as_column, lexsort, times
from .collective import Collective
from .frozen import frozen
from .pipelining import crossings
from .placement import Placement
from .ragged import group_starts, ranges, starts
from .shown import clipped, counted, shown
from .topology import Topology

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .symmetric import SymmetricSchedule
    from .symmetric_forest import SymmetricForest

__all__ = ["Action", "Forest", "Routes", "Schedule", "about"]


class Action(IntEnum):
    """What the receiver does with the data: store them, or add them to its own."""

    COPY = 0
    REDUCE = 1


@frozen(eq=False)
class Routes(Columnar):
    """Routes from rank to rank: route r is ``links[start[r]:start[r+1]]``.

    For costs, ``carries`` may say of every link of ``links`` whether data on the route load it (:mod:`.bundles`).
    """

    start: Array = attrs.field(converter=as_column)
    links: Array = attrs.field(converter=as_column)
    carries: Array = attrs.field(converter=as_column, default=())

    COLUMNS = ("start", "links", "carries")

    def __repr__(self) -> str:
        return shown(self, counted(len(self), "route"))

    def __len__(self) -> int:
        return len(self.start) - 1

    @cached_property
    def lengths(self) -> Array:
        """The number of links of each route."""
        return np.diff(self.start.astype(np.int64))

    @cached_property
    def first_alike(self) -> Array:
        """For each route the first one over the same links."""
        if self.is_direct:
            return np.arange(len(self))
        seen: dict[tuple[int, ...], int] = {}
        return np.array([seen.setdefault(tuple(self.links_of(r)), r) for r in range(len(self))], dtype=np.int64)

    def places(self, chosen: Array) -> Array:
        """Return the places in ``links`` of the links of the chosen routes, route after route."""
        return ranges(self.start[chosen], self.lengths[chosen])

    def chosen(self, routes: Array) -> Routes:
        """Return some routes of those that carry data on all their links, in this order."""
        return Routes(starts(self.lengths[routes]), self.links[self.places(routes)])

    def loads(self, places: Array, amount: Array) -> Array:
        """Return the load of the links at some ``places`` in ``links`` by these amounts: 0 where others carry them."""
        return amount * self.carries[places] if len(self.carries) else amount

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Routes:
        """Return the routes with these lists of links."""
        start = starts([len(links) for links in lists])
        return cls(start, [link for links in lists for link in links])

    @classmethod
    def direct(cls, num_links: int) -> Routes:
        """Return the routes of a network without switches: route r is link r alone."""
        return cls(np.arange(num_links + 1), np.arange(num_links))

    def links_of(self, route: int) -> list[int]:
        """Return the links of one route, from its sender to its receiver."""
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


@frozen(eq=False)
class Schedule(Columnar):
    """Step form: each row is a transfer.

    Row i moves parts ``lo[i]`` .. ``hi[i]`` (exclusive) of shard ``shard[i]`` along ``route[i]`` at ``step[i]``; the
    receiver copies or reduces, as ``action[i]`` says.

    A row moves the exact interval [lo/parts, hi/parts) of its shard. Before the pass `discretize`, ``parts`` is only a
    common denominator; after it (``discrete``) it is the number of chunks per shard. Steps count from 0 and never
    decrease from row to row. Transfers of one step happen at the same time: all read the data from before the step.
    ``placement`` are the channels, threadblocks and scratch that the author of the schedule chose, if any.

    If transfers share links ``in_network``, switches that multicast copy what several of them send, and switches that
    reduce add it (:mod:`.bundles`). The rows are the same, and what ranks have after every step.
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
    placement: Placement | None = None
    in_network: bool = False

    SCALARS = ("topology", "collective", "parts", "routes", "discrete", "scheduler", "placement", "in_network")
    COLUMNS = ("step", "action", "shard", "lo", "hi", "route")

    def __repr__(self) -> str:
        text = f"{counted(self.num_steps, 'step')}, {counted(len(self), 'transfer')}"
        return shown(self, f"{about(self)}, {text}")

    def __len__(self) -> int:
        return len(self.step)

    @property
    def num_steps(self) -> int:
        """Steps, counted to the last that has a transfer."""
        return int(self.step[-1]) + 1 if len(self) else 0

    @cached_property
    def found(self) -> dict[Any, Any]:  # Any: each function has its own key and type
        """Cached results of functions of other modules, by name. No function changes a cached result."""
        return {}

    @cached_property
    def src(self) -> Array:
        """The rank each row sends from."""
        return self.routes.tails(self.topology).take(self.route)

    @cached_property
    def dst(self) -> Array:
        """The rank each row sends to."""
        return self.routes.heads(self.topology).take(self.route)

    @cached_property
    def amount(self) -> Array:
        """What each row moves, in 1/``vector`` of M: parts of its shard times the shard's weight."""
        moved = self.hi.astype(np.int64) - self.lo
        return moved if self.collective.weights is None else times(moved, self.collective.weight[self.shard])

    @property
    def vector(self) -> int:
        """M in the unit of ``amount``."""
        return self.parts * self.collective.whole

    @cached_property
    def step_start(self) -> Array:
        """The first row of each step, then the number of rows: ``num_steps + 1`` entries."""
        return group_starts(self.step, self.num_steps)

    def rows(self, keep: Array) -> Schedule:
        """Return the schedule of the rows that ``keep`` selects (a mask or row numbers, steps not decreasing)."""
        placement = None if self.placement is None else self.placement.rows(keep)
        keep = np.asarray(keep)
        keep = np.flatnonzero(keep) if keep.dtype == bool else keep
        return attrs.evolve(self, placement=placement, **{c: getattr(self, c).take(keep) for c in self.COLUMNS})


def about(level: Schedule | SymmetricSchedule | Forest | SymmetricForest) -> str:
    """Return ``KIND on TOPOLOGY, N ranks, SCHEDULER`` of a schedule, for its ``repr``."""
    place = f"{level.collective.name} on {clipped(level.topology.name)}, {counted(level.collective.num_ranks, 'rank')}"
    return f"{place}, {clipped(level.scheduler)}"


def _directions(values: ArrayLike) -> Array:
    """Return a column of 0 (outward) and 1 (inward); a single truth value waits until the number of trees is known."""
    return np.asarray(values, dtype=np.uint8) if np.ndim(values) == 0 else as_column(values)


@frozen(eq=False)
class Forest(Columnar):
    """Forest form: tree t carries the share ``weight[t]/parts`` of shard ``root[t]``; its edges are rows.

    In tree ``tree[i]``, rank ``parent[i]`` sends data to rank ``child[i]`` along ``route[i]`` (out-trees: allgather,
    broadcast). If ``inward[tree[i]]``, the child sends to the parent, which reduces; the route then runs from child to
    parent (reduce-scatter, reduce). Rows of a tree have parents first. ``inward`` may be one truth value for all trees.
    An allreduce has trees of both directions; each direction carries every shard as a whole.

    If trees carry the ``whole`` vector, their shares are of all shards together. This holds for rooted collectives,
    whose trees have the collective's root, and for an allreduce by reduce and broadcast, where a part that is reduced
    to a root is broadcast from it. The shares of trees of one direction (and root, unless ``whole``), in row order,
    cover [0, 1).

    The data are sent in ``pieces`` equal pieces, one after another. Every tree carries its share of every piece
    (:meth:`to_steps`). Edges of one parent may share links ``in_network``, as transfers of a :class:`Schedule`.
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
    in_network: bool = False

    SCALARS = ("topology", "collective", "parts", "routes", "whole", "pieces", "scheduler", "in_network")
    COLUMNS = ("root", "weight", "inward", "tree", "parent", "child", "route")

    def __attrs_post_init__(self) -> None:
        if self.inward.ndim == 0:
            object.__setattr__(self, "inward", as_column(np.broadcast_to(self.inward, len(self.root))))
        if self.collective.root is not None:
            object.__setattr__(self, "whole", True)

    def __repr__(self) -> str:
        return shown(self, f"{about(self)}, {counted(self.num_trees, 'tree')}, {counted(self.pieces, 'piece')}")

    @property
    def num_trees(self) -> int:
        """Trees of both directions together."""
        return len(self.root)

    def share(self, tree: int) -> Fraction:
        """Return the share of its shard (if ``whole``, of the vector) that a tree carries."""
        return Fraction(int(self.weight[tree]), self.parts)

    @cached_property
    def amount(self) -> Array:
        """What each tree carries, in 1/``vector`` of M: its weight, times that of its shard unless ``whole``."""
        weight, collective = self.weight.astype(np.int64), self.collective
        if self.whole or collective.weights is None:
            return weight
        return times(weight, collective.weight[collective.places[self.root]])

    @property
    def vector(self) -> int:
        """M in the unit of ``amount``."""
        return self.parts * (1 if self.whole else self.collective.whole)

    @cached_property
    def parent_row(self) -> Array:
        """For each row, the first row of its tree whose child is this row's parent; -1 if the parent is the root."""
        ranks = self.collective.num_ranks
        base = self.tree.astype(np.int64) * ranks
        key, parent_key = base + self.child, base + self.parent
        order = lexsort([key])
        place = np.searchsorted(key[order], parent_key)
        row = np.append(order, -1)[place]
        at_root = (key[row] != parent_key) | (self.parent == self.root[self.tree])
        return np.where(at_root, -1, row)

    @cached_property
    def depth(self) -> Array:
        """Hops (tree edges) from the root to the child of each row."""
        depth, above = np.ones(len(self.tree), dtype=np.int64), self.parent_row
        for _ in range(len(self.tree).bit_length()):  # every round doubles the counted hops
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
        """Return the step form with this number of pieces (default: the forest's own).

        Piece j of P is [j/P, (j+1)/P) of every shard (if ``whole``, of the vector), and each tree carries its share of
        it. A share of weight w/parts becomes P intervals of w/(P parts) each, so the root sends the same piece that was
        reduced to it. Piece j uses an outward edge at depth h in step h - 1 + j, and an inward edge in step H - h + j,
        where H is the height of the inward trees. In an allreduce outward edges act H steps later, so that both phases
        overlap. There are ``sum(heights) + P - 1`` steps. If ``whole``, shares are cut at the ends of shards.
        """
        pieces = self.pieces if pieces is None else pieces
        rows = crossings(self, pieces)
        action = np.where(self.inward == 1, Action.REDUCE, Action.COPY)[self.tree]
        return Schedule(
            self.topology, self.collective, self.parts * pieces, step=rows.step, action=action[rows.edge],
            shard=rows.shard, lo=rows.lo, hi=rows.hi, route=self.route[rows.edge], routes=self.routes,
            scheduler=self.scheduler, in_network=self.in_network,
        )  # fmt: skip
