"""The scheduler ``forest``: spanning trees that together keep the bottleneck cut always busy."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.diagnostic import Subject, error
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.topology import Topology

from ...base import Pass, remark
from ...knobs import Knob
from ...ranges import Range
from .halves import (
    Half,
    Mark,
    backwards,
    divided,
    in_shards_of,
    joined_halves,
    no_trees,
    packed_half,
    partner_links,
    symmetric,
    with_switches,
    without_switches,
)  # fmt: skip
from .inputs import check_inputs

# Judging a problem needs no algorithm: functions import those that they run.
if TYPE_CHECKING:
    from collc.ir.levels import Scheduled

    from ...base import Kept, Replanned
    from .allreduce_optimum import AllreduceOptimum
    from .optimum import Choice
    from .orbits import OrbitForest

__all__ = ["ForestScheduler"]

Trees = TypeVar("Trees", Forest, SymmetricForest)

_MOST_TREES = 1 << 12
_MOST_PIECES = 1 << 12


def _ignore_phase(phase: str) -> None:
    pass


def _trees_per_root(level: Forest | SymmetricForest) -> int:
    """Return the number of trees of equal shares per root; 1 if shards differ in size: then it cannot be reduced."""
    forest = level if isinstance(level, Forest) else level.seed
    if forest.collective.weights is not None:
        return 1
    trees = forest.parts // int(np.gcd.reduce([forest.parts, *forest.weight.tolist()]))
    return trees if trees <= _MOST_TREES else 1


@attrs.frozen
class ForestScheduler(Pass):
    """Synthesize spanning trees of optimal bandwidth on any strongly connected network, switches included.

    Every rank (the root alone, if there is one) sends k trees of equal shares. ``k`` is a number, ``optimal`` (what the
    optimum needs), ``fewest`` (the smallest number that reaches the optimum), or ``auto`` (of the optimal number and of
    1 to 10, the fastest at the collective's size, or at 1 MiB without one). If shards differ in size, a rank sends k
    trees for each unit of its weight, and one tree if it has no data. Data that flow to the root use the same trees
    backwards, or trees of the transpose if links are one-way. An allreduce is a reduce-scatter followed piece by piece
    by an allgather, or with ``via: reduce`` a reduce to one rank and a broadcast from there. ForestColl, sections 4 and
    C to F; trees of Blink for one root.

    Raises C0501 and C0580 to C0589 for problems that it cannot schedule.
    """

    name: ClassVar[str] = "forest"
    by_size: ClassVar[tuple[str, str]] = ("k", "auto")
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
            "help": "trees per rank: a number, `optimal` (per vector if an allreduce's roots differ), `fewest` "
            "(as fast), or `auto` (the fastest)",
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

    division: Literal["free", "equal"] = attrs.field(
        default="free",
        metadata={"help": "roots and links of an allreduce: as fast as possible, or `equal` ones in both halves"},
    )
    in_network: bool = attrs.field(
        default=True, metadata={"help": "use switches that multicast or reduce; without, switches only forward"}
    )

    template: bool | None = attrs.field(
        default=None,
        metadata={"help": "on a symmetric network, keep some roots' trees (default: from 16,384 edges)"},
    )

    def run(self, ir: Problem) -> Forest | SymmetricForest:
        if self.k == "auto":
            from .front import fastest

            self.require(ir)
            return self._kept(ir, fastest(self, ir))
        from .template import template

        found = template(self, ir)
        return self._kept(ir, self._piped(self.grow(ir)) if found is None else self._piped(found))

    def _kept(self, ir: Problem, forest: Forest | SymmetricForest) -> Forest | SymmetricForest:
        """Return a forest as the option ``template`` asks."""
        if self.template and not isinstance(forest, SymmetricForest):
            remark(f"forest: no template, because collc knows no group of `{ir.topology.name}` that moves trees")
        return forest.unfold() if self.template is False and isinstance(forest, SymmetricForest) else forest

    def _piped(self, forest: Trees) -> Trees:
        """Return a forest in the number of pieces of the option, else in the best number for its size."""
        from collc.ir.costs.pieces import best_pieces, pieces_that_fit

        pieces = best_pieces(forest, most=pieces_that_fit(forest)) if self.pieces is None else self.pieces
        return attrs.evolve(forest, pieces=pieces) if isinstance(forest, Forest) else forest.revised(pieces=pieces)

    def plans_by_size(self, ir: Problem) -> bool:
        return self.pieces is None or self.chooses_trees

    @property
    def shares_links(self) -> bool:
        return self.in_network

    @property
    def chooses_trees(self) -> bool:
        return self.k == "auto"

    def in_fewer_trees(self, ir: Problem) -> Iterator[ForestScheduler]:
        if not self.chooses_trees:
            return
        from .front import numbers

        optimal = attrs.evolve(self, k="optimal")
        for number in sorted(numbers(optimal, ir), key=lambda one: (one.per_byte, -one.k)):
            yield number.of(self)

    def resized(self, ir: Problem, known: Scheduled) -> Forest | SymmetricForest:
        if isinstance(known, SymmetricForest):
            return self._piped(known.revised(ir.collective))
        assert isinstance(known, Forest), "this scheduler returns a forest"
        return self._piped(attrs.evolve(known, collective=ir.collective))

    @property
    def takes_trees(self) -> bool:
        return self.k == "optimal" and self.via == "reduce-scatter" and self.division == "free"

    @property
    def moves_trees(self) -> bool:
        """Whether trees may be those of a few roots and their images."""
        return self.k != "auto" and self.via == "reduce-scatter" and self.division == "free"

    def in_pieces(self, pieces: int) -> ForestScheduler:
        return attrs.evolve(self, pieces=pieces)

    def regrowing(self, ir: Problem, by_choice: bool) -> ForestScheduler | None:
        if not ir.is_whole or ir.collective.weights is not None or self.via != "reduce-scatter" or self.k == "auto":
            return None
        if self.division != "free":
            return None
        if self.k != "optimal" and (by_choice or ir.collective.kind == "allreduce"):
            return None  # other numbers may be better now
        return attrs.evolve(self, unbalanced=True)  # one direction of a link may be gone

    def regrown(self, ir: Problem, before: Kept) -> Replanned | None:
        from .replanning import regrown_after

        return regrown_after(self, ir, before)

    def grow(self, ir: Problem, mark: Mark = _ignore_phase, known: AllreduceOptimum | None = None) -> Forest:
        """Return the forest in one piece; ``mark`` is called with the name of every phase when it is over.

        ``known`` is the optimum of the allreduce program, if it is solved already.
        """
        if self.k == "auto":
            taken = self.run(ir)
            return attrs.evolve(taken if isinstance(taken, Forest) else taken.unfold(), pieces=1)
        self.require(ir)
        topology, collective = self._network(ir.topology), ir.collective
        supply, rooted = self._supply(ir)
        halves, partner = [], partner_links(topology)
        if topology.num_ranks == 1:
            return joined_halves(ir, [no_trees()], rooted)
        if self.divides(ir) and (found := divided(ir, topology, self.k, known)) is not None:
            mark("trees")
            return found
        if topology.in_network and collective.kind == "allreduce" and self.takes_trees and collective.weights is None:
            found = self._through_switches(ir, topology, supply)
            if found is not None:
                return found
        if collective.kind not in ("reduce-scatter", "reduce") or partner is not None:
            halves.append(self._outward(topology, collective, supply, mark))
        if collective.kind not in ("allgather", "broadcast"):
            if partner is not None:
                back = backwards(halves[0], partner)
            else:
                back = backwards(self._outward(topology.transpose(), collective, supply, mark))
            halves = [back, *halves] if collective.kind == "allreduce" else [back]
        return joined_halves(ir, halves, rooted, topology.in_network)

    def _through_switches(self, ir: Problem, topology: Topology, supply: list[int]) -> Forest | None:
        """Return an allreduce whose halves divide the links; None if a reduce-scatter and an allgather are as fast."""
        from .in_network import divided as divided_by_switches

        least = sum((self._choice(*one).optimum.one_over_x for one in self.networks(ir)), Fraction(0))
        composed = least * (2 if partner_links(topology) is not None else 1) / len(supply)
        found = divided_by_switches(topology, composed)
        if found is None:
            return None
        trees, inward, outward, equal = found
        parts = trees // len(supply) if equal else trees
        return joined_halves(ir, [Half(parts, inward), Half(parts, outward)], not equal, in_network=True)

    def _network(self, topology: Topology) -> Topology:
        """Return the network as trees may use it."""
        return topology if self.in_network else attrs.evolve(topology, multicast=(), reduces=())

    def divides_links(self, ir: Problem) -> bool:
        """Whether the trees are those of the optimum, whose inward and outward trees may divide a link unevenly."""
        return self.k == "optimal" and self.divides(ir)

    def divides(self, ir: Problem) -> bool:
        """Whether an allreduce may divide roots and links: with equal shards, where no switch adds or copies."""
        both = ir.collective.kind == "allreduce" and self.via == "reduce-scatter" and self.division == "free"
        return both and not ir.collective.weights and not self._network(ir.topology).in_network

    def choices(self, ir: Problem) -> tuple[Choice, ...]:
        """Return the choices of the number of trees, for data from the roots and for data to the roots.

        If links go both ways, both choices are equal and returned once.
        """
        check_inputs(ir.topology, ir.collective, self.unbalanced)
        return tuple(self._choice(network, supply) for network, supply in self.networks(ir))

    def networks(self, ir: Problem) -> list[tuple[Topology, list[int]]]:
        """Return the networks on which trees lead outward, each with how often every rank sends k trees.

        They are the topology for data from the roots, and its transpose for data to the roots; one if links go both
        ways. Switches that multicast are ranks without data.
        """
        topology, kind, (supply, _) = self._network(ir.topology), ir.collective.kind, self._supply(ir)
        both = partner_links(topology) is not None
        networks = [topology] if both or kind not in ("reduce-scatter", "reduce") else []
        networks += [topology.transpose()] if not both and kind not in ("allgather", "broadcast") else []
        return [with_switches(network, supply) for network in networks]

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

    def _outward(self, topology: Topology, collective: Collective, supply: list[int], mark: Mark) -> Half:
        orbits = self._orbits(topology, supply)
        mark("orbits")
        if orbits is not None:
            return symmetric(topology, orbits)
        network, sent = with_switches(topology, supply)
        choice = self._choice(network, sent)
        mark("optimum")
        half = without_switches(packed_half(network, sent, choice, mark, self.k == "optimal"), topology)
        return half if collective.weights is None else in_shards_of(topology, supply, half)

    def _choice(self, topology: Topology, supply: list[int]) -> Choice:
        from .optimum import choose

        return choose(topology, supply, None if self.k == "optimal" else self.k)

    def _orbits(self, topology: Topology, supply: list[int]) -> OrbitForest | None:
        """Return trees of the network's symmetry if every rank sends: they reach the cut of a single rank."""
        from .orbits import orbit_forest

        if set(supply) != {1} or topology.multicast:
            return None
        found = orbit_forest(topology, None if isinstance(self.k, str) else self.k)
        if found is None:
            return None
        return None if self.k == "fewest" and found.trees > self._choice(topology, supply).k else found
