"""The scheduler ``forest``: spanning trees that together keep the bottleneck cut always busy."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, lcm
from typing import TYPE_CHECKING, ClassVar, Literal

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Subject, error
from collc.ir.schedule import Forest, Routes
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ...base import Pass
from ...knobs import Knob
from ...ranges import Range
from .inputs import check_inputs, require_balanced

# Judging a problem needs no algorithm: functions import those that they run.
if TYPE_CHECKING:
    from collc.ir.levels import Scheduled

    from .optimum import Choice
    from .orbits import OrbitForest
    from .routes import Routed

__all__ = ["ForestScheduler"]
#: is called with the name of every phase when it is over
Mark = Callable[[str], None]

_MOST_TREES = 1 << 12
_MOST_PIECES = 1 << 12


def _ignore_phase(phase: str) -> None:
    pass


@attrs.frozen(eq=False)
class _Half:
    """The trees of one direction: ``parts`` equal shares of a root's data, and the columns of a forest."""

    parts: int
    trees: Routed


def _trees_per_root(forest: Forest) -> int:
    """Return the number of trees of equal shares per root; 1 if shards differ in size: then it cannot be reduced."""
    if forest.collective.weights is not None:
        return 1
    return forest.parts // int(np.gcd.reduce([forest.parts, *forest.weight.tolist()]))


@attrs.frozen
class ForestScheduler(Pass):
    """Synthesize spanning trees of optimal bandwidth on any strongly connected network, switches included.

    Every rank (the root alone, if there is one) sends k trees of equal shares. ``k`` is a number, ``optimal`` (what the
    optimum needs), ``auto`` (the best up to 10 if the optimum needs more), or ``fewest`` (the smallest number that
    reaches the optimum). If shards differ in size, a rank sends k trees for each unit of its weight, and one tree if it
    has no data. Data that flow to the root use the same trees backwards, or trees of the transpose if links
    are one-way. An allreduce is a reduce-scatter followed piece by piece by an allgather, or with ``via: reduce`` a
    reduce to one rank and a broadcast from there. ForestColl, sections 4 and C to F; trees of Blink for one root.

    Raises C0501 and C0580 to C0589 for problems that it cannot schedule.
    """

    name: ClassVar[str] = "forest"
    summary: ClassVar[str] = "spanning trees of optimal bandwidth, for any network, switches included (ForestColl)"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    varies: ClassVar[tuple[Knob, ...]] = (
        Knob("pieces", "pieces", "pieces", lambda this, given, make: make().pieces, noted=True, word="piece"),
        Knob("k", "trees", "trees a rank", lambda this, given, make: _trees_per_root(make()), word="tree a rank"),
    )

    k: int | Literal["optimal", "auto", "fewest"] = attrs.field(
        default="optimal",
        metadata={
            "help": "trees per rank: a number, `optimal`, `fewest` (that are as fast), or `auto` (at most 10)",
            "range": Range(1, _MOST_TREES, "C0585"),
        },
    )  # fmt: skip
    pieces: int | None = attrs.field(
        default=None,
        metadata={
            "help": "number of pipelined pieces (default: the number with the least predicted time)",
            "range": Range(1, _MOST_PIECES, "C0585", divides="shard"),
        },
    )
    via: Literal["reduce-scatter", "reduce"] = attrs.field(
        default="reduce-scatter", metadata={"help": "first half of an allreduce; `reduce` uses a single root"}
    )
    root: int = attrs.field(default=0, metadata={"help": "the root of an allreduce via `reduce`"})
    unbalanced: bool = attrs.field(
        default=False, metadata={"help": "accept nodes whose bandwidth in and bandwidth out differ"}
    )

    def run(self, ir: Problem) -> Forest:
        return self._piped(self.grow(ir))

    def _piped(self, forest: Forest) -> Forest:
        """Return a forest in the number of pieces of the option, else in the best number for its size."""
        from collc.ir.costs.pieces import best_pieces, pieces_that_fit

        pieces = best_pieces(forest, most=pieces_that_fit(forest)) if self.pieces is None else self.pieces
        return attrs.evolve(forest, pieces=pieces)

    def plans_by_size(self, ir: Problem) -> bool:
        return self.pieces is None

    def resized(self, ir: Problem, known: Scheduled) -> Forest:
        assert isinstance(known, Forest), "this scheduler returns a forest"
        return self._piped(attrs.evolve(known, collective=ir.collective))

    @property
    def takes_trees(self) -> bool:
        return self.k == "optimal" and self.via == "reduce-scatter"

    def in_pieces(self, pieces: int) -> ForestScheduler:
        return attrs.evolve(self, pieces=pieces)

    def grow(self, ir: Problem, mark: Mark = _ignore_phase) -> Forest:
        """Return the forest in one piece; ``mark`` is called with the name of every phase when it is over."""
        self.require(ir)
        topology, collective = ir.topology, ir.collective
        supply, rooted = self._supply(ir)
        halves = []
        if topology.num_ranks == 1:
            return _forest(ir, [_no_trees()], rooted)
        if collective.kind not in ("reduce-scatter", "reduce") or topology.reverse_links is not None:
            halves.append(self._outward(topology, collective, supply, mark))
        if collective.kind not in ("allgather", "broadcast"):
            if topology.reverse_links is not None:
                back = _backwards(halves[0], topology.reverse_links)
            else:
                back = _backwards(self._outward(topology.transpose(), collective, supply, mark))
            halves = [back, *halves] if collective.kind == "allreduce" else [back]
        return _forest(ir, halves, rooted)

    def choices(self, ir: Problem) -> tuple[Choice, ...]:
        """Return the choices of the number of trees, for data from the roots and for data to the roots.

        If links go both ways, both choices are equal and returned once.
        """
        check_inputs(ir.topology, ir.collective, self.unbalanced)
        topology, kind, (supply, _) = ir.topology, ir.collective.kind, self._supply(ir)
        both = topology.reverse_links is not None
        networks = [topology] if both or kind not in ("reduce-scatter", "reduce") else []
        networks += [topology.transpose()] if not both and kind not in ("allgather", "broadcast") else []
        return tuple(self._choice(network, supply) for network in networks)

    def _supply(self, ir: Problem) -> tuple[list[int], bool]:
        """Return how often every rank sends k trees, and whether only one rank does."""
        collective = ir.collective
        if collective.weights is not None:
            common = gcd(*collective.weights)
            return [weight // common for weight in collective.weights], False
        root = self.root if collective.kind == "allreduce" and self.via == "reduce" else collective.root
        return [int(root is None or rank == root) for rank in range(ir.topology.num_ranks)], root is not None

    def require(self, ir: Problem) -> None:
        check_inputs(ir.topology, ir.collective, self.unbalanced)
        if not 0 <= self.root < ir.topology.num_ranks:
            message = f"found root {self.root}: ranks of `{ir.topology.name}` are 0 to {ir.topology.num_ranks - 1}"
            hint = "use one of these ranks, or leave `root` out"
            raise error("C0585", message, hint=hint, option="root", about=(Subject.TOPOLOGY,))

    def _outward(self, topology: Topology, collective: Collective, supply: list[int], mark: Mark) -> _Half:
        orbits = self._orbits(topology, supply)
        mark("orbits")
        if orbits is not None:
            return _symmetric(topology, orbits)
        choice = self._choice(topology, supply)
        mark("optimum")
        half = _packed(topology, supply, choice, mark)
        return half if collective.weights is None else _in_shards(topology, supply, half)

    def _choice(self, topology: Topology, supply: list[int]) -> Choice:
        from .optimum import choose

        return choose(topology, supply, None if self.k == "optimal" else self.k)

    def _orbits(self, topology: Topology, supply: list[int]) -> OrbitForest | None:
        """Return trees of the network's symmetry if every rank sends: they reach the cut of a single rank."""
        from .orbits import orbit_forest

        if set(supply) != {1}:
            return None
        found = orbit_forest(topology, None if isinstance(self.k, str) else self.k)
        if found is None or (self.k == "auto" and found.trees > 10):
            return None
        return None if self.k == "fewest" and found.trees > self._choice(topology, supply).k else found


def _packed(topology: Topology, supply: list[int], choice: Choice, mark: Mark) -> _Half:
    from .capacities import flow_network, link_capacities
    from .packing import height, pack
    from .routes import routed
    from .switches import removals

    held = link_capacities(topology, choice.per_unit)
    trees = [choice.k * amount for amount in supply]
    try:
        choices = list(removals(flow_network(topology, held), topology.num_ranks, trees, topology.names))
    except CollcError:
        require_balanced(
            topology, range(topology.num_ranks, topology.num_nodes)
        )  # if bandwidths do not balance, no number of trees helps
        raise
    mark("switches")
    forests = [(pack(topology.num_ranks, logical.capacity, trees), logical) for logical in choices]
    packed, logical = min(forests, key=lambda found: (height(found[0]), len(found[0])))
    mark("trees")
    found = routed(packed, logical, topology, held)
    mark("routes")
    return _Half(choice.k, found)


def _in_shards(topology: Topology, supply: list[int], half: _Half) -> _Half:
    """Return the trees with shares of shards that differ in size, and trees of ranks without data."""
    from .uneven import in_shards

    return _Half(*in_shards(topology, half.trees, [half.parts * amount for amount in supply]))


def _symmetric(topology: Topology, orbits: OrbitForest) -> _Half:
    from .routes import Routed

    columns = (orbits.root, orbits.weight, orbits.tree, orbits.parent, orbits.child, orbits.link)
    return _Half(orbits.trees, Routed(*columns, Routes.direct(topology.num_links)))


# ---- both directions


def _no_trees() -> _Half:
    from .routes import Routed

    none = np.zeros(0, dtype=np.int64)
    return _Half(1, Routed(none, none, none, none, none, none, Routes.of([])))


def _backwards(half: _Half, partner: Array | None = None) -> _Half:
    """Return the trees with every route reversed: over the links' partners, or over the same links of the transpose."""
    trees, routes = half.trees, half.trees.routes
    if routes.is_direct:
        return half if partner is None else _Half(half.parts, attrs.evolve(trees, route=partner[trees.route]))
    links = routes.links[::-1]
    start = int(routes.start[-1]) - routes.start[::-1].astype(np.int64)
    reversed_routes = Routes(start, links if partner is None else partner[links])
    route = len(routes) - 1 - trees.route.astype(np.int64)
    return _Half(half.parts, attrs.evolve(trees, routes=reversed_routes, route=route))


def _forest(ir: Problem, halves: list[_Half], whole: bool) -> Forest:
    """Return the forest of one direction, or of both: then the inward trees come first."""
    inward = {"reduce-scatter": [True], "reduce": [True], "allreduce": [True, False]}.get(ir.collective.kind, [False])
    inward = inward[: len(halves)]
    parts = lcm(*(half.parts for half in halves))
    trees = [half.trees for half in halves]
    first = [0, *np.cumsum([len(one.root) for one in trees])[:-1].tolist()]
    routes, shift = _joined([one.routes for one in trees])
    columns: Columns = {c: np.concatenate([getattr(one, c) for one in trees]) for c in ("root", "parent", "child")}
    weight = [half.trees.weight.astype(np.int64) * (parts // half.parts) for half in halves]
    tree = [one.tree.astype(np.int64) + begin for one, begin in zip(trees, first, strict=True)]
    route = [one.route.astype(np.int64) + begin for one, begin in zip(trees, shift, strict=True)]
    flags = [np.full(len(one.root), flag) for one, flag in zip(trees, inward, strict=True)]
    return Forest(
        ir.topology, ir.collective, parts, weight=np.concatenate(weight), tree=np.concatenate(tree),
        route=np.concatenate(route), routes=routes, inward=np.concatenate(flags), whole=whole, **columns,
    )  # fmt: skip


def _joined(routes: list[Routes]) -> tuple[Routes, list[int]]:
    """Return all routes one after the other, and where each list begins; routes of single links are the same."""
    if all(r.is_direct for r in routes):
        return routes[0], [0] * len(routes)
    starts = [routes[0].start.astype(np.int64)]
    for more in routes[1:]:
        starts.append(more.start[1:].astype(np.int64) + starts[-1][-1])
    shift = [0, *np.cumsum([len(r) for r in routes])[:-1].tolist()]
    return Routes(np.concatenate(starts), np.concatenate([r.links for r in routes])), shift
