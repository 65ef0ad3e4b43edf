"""The optimum of an allreduce by trees, exactly: ForestColl's appendix on allreduce, by classes and generated cuts.

    maximize    X, the sum of x_v >= 0 over ranks v
    subject to  out(e) + in(e) <= b(e)              of every link e
                out(links out of S) >= x(S)         of every set S of nodes that lacks a rank
                in(links into S) >= x(S)            of every such set
                out(into w) = out(out of w)         of every switch w, and the same of in

An allreduce of M bytes takes M / X at large sizes. Switches that balance can be split off without loss, so trees exist
for every solution. A switch that multicasts may send more outward bandwidth than it gets, one that reduces may get more
inward bandwidth than it sends; neither has to be reached. Then X is what no trees exceed, and they reach it where such
switches form a tree; elsewhere they may have to be packed as Steiner trees.

Automorphisms join variables (:mod:`.allreduce_classes`). Cuts are found by flows: solve, find sets that are too small,
add their rows, until none is left. What is returned was checked in exact arithmetic: the division by flows to every
rank, the certificate by adding up its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.costs.partitions import Partition, bandwidths_of_groups, crossing, worst_partition
from collc.ir.shown import brief_fields
from collc.ir.topology import Topology

from .allreduce_certificate import Balance, Certificate, TreeCut
from .allreduce_classes import Classes, classes
from .allreduce_division import (
    Shares,
    alike_division,
    division_holds,
    equal_division,
    whole_division,
    whole_trees,
)
from .division import Division
from .exact_lp import LinearProgram, Vertex, whole

__all__ = ["MOST_COLUMNS", "AllreduceOptimum", "allreduce_optimum", "division_by_boxes"]

#: larger programs are not tried
MOST_COLUMNS = 1500
_FINE = 1 << 40  # bandwidths of the solver as whole numbers
_SLACK = 1e-7  # what cuts of the solver's bandwidths may lack
_LONG = 1 << 40  # terms of fractions that rows hold
_CUTS = 64  # cuts per round and direction


@attrs.frozen(eq=False)
class AllreduceOptimum:
    """The most bandwidth of an allreduce by trees, ``value`` in the topology's unit, reached and proved.

    ``division`` reaches it. ``certificate`` proves that nothing exceeds it; ``partition`` too, if the dual is one: then
    2 (p-1) vectors cross between its p parts. ``columns`` and ``rows`` are the program's, 0 if none was needed.
    """

    value: Fraction
    division: Division
    certificate: Certificate
    partition: Partition | None = None
    columns: int = 0
    rows: int = 0

    __repr__ = brief_fields

    @property
    def cuts(self) -> tuple[TreeCut, ...]:
        """The certificate's cuts; each stands for all its images under the certificate's automorphisms."""
        return self.certificate.cuts

    @property
    def has_equal_roots(self) -> bool:
        """Return whether every rank is the root of as many trees."""
        return len(set(self.division.roots)) == 1


def allreduce_optimum(
    topology: Topology,
    *,
    multicast: Collection[int] = (),
    reduces: Collection[int] = (),
    most_columns: int = MOST_COLUMNS,
) -> AllreduceOptimum | None:
    """Return the optimum; None for a single rank, or if the program has more than ``most_columns`` unknowns.

    Switches (nodes) in ``multicast`` send copies of what they get to several neighbours: outward trees branch in them.
    Switches in ``reduces`` send the sum of what they get from several neighbours: inward trees meet in them. Data cross
    every link to or from such a switch once per tree.

    Of all solutions, the division is that of a reduce-scatter and an allgather with equal shards if this reaches the
    optimum. Otherwise the largest and the smallest root differ as little as possible, then links are divided as evenly
    between inward and outward trees as possible, and as much of them is given away as possible: trees that have more
    links to choose from are lower. Or links come first and roots second, if that takes fewer trees. If they still are
    more than twice as many as ranks, equivalent ranks may root one tree more or less.

    Raises C0301 unless every rank reaches every other.

    >>> from collc.frontends.coll import topology
    >>> found = allreduce_optimum(topology("hypercube(3)"))
    >>> found.value, len(found.partition.parts), found.division.trees
    (Fraction(12, 7), 8, 24)
    """
    topology.require_connected("an allreduce")
    if topology.num_ranks < 2:
        return None
    able = tuple(sorted(set(multicast))), tuple(sorted(set(reduces)))
    equal = None if any(able) else equal_division(topology)
    parts = None
    if equal is not None:
        parts = worst_partition(topology, effort=0)
        if equal.value * parts.ratio == 1 and division_holds(topology, equal):
            return _proved(topology, equal, partition_certificate(topology, parts), parts)
    found = classes(topology, *able)
    if found.num_kinds + found.num_columns > most_columns:
        return None
    return _Program(topology, found, *able).optimum(equal, parts)


def division_by_boxes(topology: Topology, boxes: Sequence[Sequence[int]]) -> Division | None:
    """Return a division that reaches the optimum, in which every box sends the data of its ranks to all others itself.

    ``boxes`` are the nodes of each; what leaves one enters others. Equivalent ranks root equal amounts, and links of
    one class hold as many trees. None if no such division reaches the optimum, or if the program is too large.
    """
    topology.require_connected("an allreduce")
    found = classes(topology)
    if found.num_kinds + found.num_columns > MOST_COLUMNS:
        return None
    program = _Program(topology, found, (), ())
    vertex = program._solved(program.primary())
    assert vertex is not None, "the program starts at 0"
    value = sum((x * int(n) for x, n in zip(vertex.values, found.count, strict=False)), Fraction(0))
    for box in boxes:
        near = np.zeros(found.num_nodes, dtype=bool)
        near[list(box)] = True
        program.send(near, len(boxes) - 1)
    own = list(program.extra)
    for box in boxes:
        program.enter_evenly(box)
    for extra in (list(program.extra), own):
        program.extra = extra
        shares = program.even(value)
        division = None if shares is None else alike_division(topology, found, shares)
        if division is not None:
            return division
    return None


def partition_certificate(topology: Topology, parts: Partition) -> Certificate:
    """Return a partition as rows: of every part, all trees rooted outside enter it, and leave it inward.

    Switches outside of all parts turn what enters the parts into what leaves them.
    """
    share = Fraction(1, 2 * (len(parts.parts) - 1))
    cuts = [TreeCut(share, nodes, inward, rooted=False) for inward in (False, True) for nodes in parts.parts]
    inside = {node for nodes in parts.parts for node in nodes}
    sign = -1 if parts.inward else 1
    balances = [
        Balance(share * (sign if inward == parts.inward else 0), switch, inward)
        for switch in range(topology.num_ranks, topology.num_nodes)
        if switch not in inside
        for inward in (False, True)
    ]
    return Certificate(tuple(cuts), tuple(row for row in balances if row.multiplier))


def _proved(
    topology: Topology,
    found: Division,
    certificate: Certificate,
    parts: Partition | None,
    size: tuple[int, int] = (0, 0),
) -> AllreduceOptimum:
    if certificate.bound(topology) != found.value:
        raise ArithmeticError(f"the optimum {found.value} of an allreduce is not proved")
    return AllreduceOptimum(found.value, found, certificate, parts, *size)


# ---- the program


@attrs.frozen
class _Row:
    """A cut of the program: the roots' side, a flag for every node, and its direction."""

    near: Array
    inward: bool


class _Program:
    """The columns are x of every class of ranks, then what trees have of every class of arcs and direction."""

    def __init__(
        self, topology: Topology, found: Classes, multicast: tuple[int, ...], reduces: tuple[int, ...]
    ) -> None:
        self.topology, self.classes, self.able = topology, found, (multicast, reduces)
        self.kinds, self.columns = found.num_kinds, found.num_kinds + found.num_columns
        self.folded = [found.folded(bool(half)) for half in found.halves]
        self.cuts: list[_Row] = []
        self.extra: list[Array] = []  # rows besides cuts
        self._known: set[bytes] = set()
        for row in self._first_cuts():
            self._take(row)

    def optimum(self, equal: Division | None, known: Partition | None) -> AllreduceOptimum:
        """Return the optimum; ``equal`` is the division of equal shards, if it may be right, ``known`` a partition."""
        program = self.primary()
        vertex = self._solved(program)
        assert vertex is not None, "the program starts at 0"
        certificate, size = self._certificate(vertex), (self.columns, len(program.rows))
        value = sum((x * int(n) for x, n in zip(vertex.values, self.classes.count, strict=False)), Fraction(0))
        if equal is None or equal.value * self.classes.scale != value or not division_holds(self.topology, equal):
            equal = whole_division(self.topology, self.classes, self._even(value, vertex), *self.able)
        parts = self._partition(certificate, known, 1 / equal.value)
        if parts is not None:
            certificate = partition_certificate(self.topology, parts)
        return _proved(self.topology, equal, certificate, parts, size)

    def even(self, value: Fraction) -> Shares | None:
        """Return shares of an optimum with roots that differ least, and then links divided most evenly; or None."""
        roots = self._alike(value, None)
        held = None if roots is None else self._halved(value, roots)
        return None if roots is None or held is None else Shares(roots, held)

    def send(self, near: Array, times: int) -> None:
        """Let the outward links out of a set of nodes hold ``times`` what its ranks are roots of."""
        self.size = self.columns
        self._require(self._wide(times * self.classes.inside(near), -self.classes.crossing(near, False)))

    def enter_evenly(self, box: Sequence[int]) -> None:
        """Let trees enter the nodes of a box from outside in proportion to the width of arcs."""
        found, own, self.size = self.classes, np.zeros(self.classes.num_nodes, dtype=bool), self.columns
        own[list(box)] = True
        arcs = np.flatnonzero(~own[found.arcs[0]] & own[found.arcs[1]]).tolist()
        first = self.kinds + int(found.column[0][arcs[0]])
        for arc in arcs[1:]:
            other = self.kinds + int(found.column[0][arc])
            if other != first:
                row = self._row({first: found.width[arc]}, {other: -found.width[arcs[0]]})
                self._require(row)
                self._require(-row)

    def _require(self, row: Array) -> None:
        """Let the product of a row and the solution be at most 0."""
        if not any(np.array_equal(row, one) for one in self.extra):
            self.extra.append(row)

    # ---- rows

    def primary(self) -> LinearProgram:
        """Return the program of the optimum, with the cuts that are known."""
        return self._program([int(n) for n in self.classes.count] + [0] * self.classes.num_columns)

    def _program(self, objective: list[int]) -> LinearProgram:
        """Return the program with an objective; columns beyond the usual ones are extra."""
        program = LinearProgram(objective, max(self.classes.width))
        self.size = len(objective)
        for (a, b), width in self._budgets().items():
            program.add(self._row({self.kinds + a: 1}, {self.kinds + b: 1}), width)
        for switch in self.classes.first_switches():
            for half in self.classes.halves:
                row = self._wide(np.zeros(self.kinds), self.classes.balance(switch, bool(half)))
                able = switch in self.able[half]
                program.add(-row if half and able else row, 0, equal=not able)
        for row in self.extra:
            program.add(self._wide(row[: self.kinds], row[self.kinds :]), 0)
        self._first = len(program.rows)
        for cut in self.cuts:
            program.add(self._cut(cut), 0)
        return program

    def _row(self, *entries: dict[int, int]) -> Array:
        row = np.zeros(self.size, dtype=np.int64)
        for one in entries:
            for column, value in one.items():
                row[column] += value
        return row

    def _wide(self, roots: Array, held: Array) -> Array:
        row = np.zeros(self.size, dtype=np.int64)
        row[: self.kinds], row[self.kinds : self.columns] = roots, held
        return row

    def _cut(self, cut: _Row) -> Array:
        return self._wide(self.classes.inside(cut.near), -self.classes.crossing(cut.near, cut.inward))

    def _budgets(self) -> dict[tuple[int, int], int]:
        pairs = np.sort(self.classes.column, axis=0).T.tolist()
        return {(a, b): width for (a, b), width in zip(pairs, self.classes.width, strict=True)}

    # ---- cuts

    def _first_cuts(self) -> Iterable[_Row]:
        """Yield single ranks and all nodes but one, and the same of groups that the widest links join."""
        nodes = self.classes.num_nodes
        sides = [[rank] for rank in self.classes.first_ranks()]
        sides += [list(group) for group, _, _ in bandwidths_of_groups(self.topology) if len(group) > 1]
        for side in sides:
            flags = np.zeros(nodes, dtype=bool)
            flags[side] = True
            for half in self.classes.halves:
                yield _Row(flags, bool(half))
                yield _Row(~flags, bool(half))

    def _take(self, row: _Row) -> bool:
        """Add a cut unless its row is known."""
        self.size = self.columns
        key = self._cut(row).tobytes()
        if key in self._known:
            return False
        self._known.add(key)
        self.cuts.append(row)
        return True

    def _solved(self, program: LinearProgram) -> Vertex | None:
        """Return an exact optimum that no cut violates: cuts of floating-point solutions first, then of exact ones.

        None if the program fixes sums of columns and the solver fails.
        """
        while self._extend(program, self._rounded(program.approximate())):
            pass
        while True:
            vertex = program.exact()
            if vertex is None or not self._extend(program, self._exactly(vertex.values)):
                return vertex

    def _extend(self, program: LinearProgram, scaled: tuple[list[int], list[int]]) -> bool:
        """Add the cuts that a solution violates; return whether there are new ones."""
        roots, held = scaled
        supply = [roots[kind] for kind in self.classes.node[: self.classes.num_ranks].tolist()]
        supply += [0] * (self.classes.num_nodes - len(supply))
        before = len(self.cuts)
        for half in self.classes.halves:
            for cut in self.folded[half].violated(supply, held, self.classes.first_ranks(), _CUTS):
                near = np.zeros(self.classes.num_nodes, dtype=bool)
                near[list(cut.nodes)] = True
                self._take(_Row(near, bool(half)))
        fresh = self.cuts[before:]
        self.size = len(program.objective)
        for row in fresh:
            program.add(self._cut(row), 0)
        return bool(fresh)

    def _rounded(self, values: Array) -> tuple[list[int], list[int]]:
        scale = _FINE / max(self.classes.width)
        roots = np.floor(values[: self.kinds] * scale * (1 - _SLACK)).astype(np.int64).tolist()
        held = np.ceil(values[self.kinds : self.columns] * scale).astype(np.int64).tolist()
        return roots, held

    def _exactly(self, values: Sequence[Fraction]) -> tuple[list[int], list[int]]:
        numbers, _ = whole(values[: self.columns])
        return numbers[: self.kinds], numbers[self.kinds :]

    # ---- solutions

    def _even(self, value: Fraction, vertex: Vertex) -> Shares:
        """Return shares with links divided most evenly and then roots that differ least, or the reverse.

        Of both, those with fewer trees: they are cheaper to pack, and their shares are larger. Those of the optimal
        ``vertex`` if its fractions are too long to begin with.
        """
        held, roots = self._halved(value, None), self._alike(value, None)
        alike = None if held is None else self._alike(value, held)
        halved = None if roots is None else self._halved(value, roots)
        found = [] if held is None or alike is None else [Shares(alike, held)]
        found += [] if roots is None or halved is None else [Shares(roots, halved)]
        found = found or [Shares(vertex.values[: self.kinds], vertex.values[self.kinds :])]
        return min(found, key=lambda shares: whole_trees(self.classes, shares))

    def _alike(self, value: Fraction, held: Sequence[Fraction] | None) -> tuple[Fraction, ...] | None:
        """Return roots of the optimum's sum that differ least, with these bandwidths of links or any."""
        program = self._program([0] * self.columns + [-1, 1])  # the largest root, the smallest
        for kind in range(self.kinds):
            program.add(self._row({kind: 1, self.columns: -1}), 0)
            program.add(self._row({self.columns + 1: 1, kind: -1}), 0)
        fixed = [({self.kinds + column: 1}, amount) for column, amount in enumerate(held or ())]
        found = self._with(program, [(dict(enumerate(self.classes.count.tolist())), value), *fixed])
        return None if found is None else found.values[: self.kinds]

    def _halved(self, value: Fraction, roots: Sequence[Fraction] | None) -> tuple[Fraction, ...] | None:
        """Return bandwidths of links for these roots or any, as even and as large as possible."""
        pairs = Counter(map(tuple, np.sort(self.classes.column, axis=0).T.tolist()))
        weight = [0] * self.columns
        for (a, b), links in pairs.items():
            weight[self.kinds + a] += links
            weight[self.kinds + b] += links
        program = self._program(weight + [3 * links for links in pairs.values()])
        for at, pair in enumerate(pairs):
            for column in set(pair):
                program.add(self._row({self.columns + at: 1, self.kinds + column: -1}), 0)
        fixed = [({kind: 1}, root) for kind, root in enumerate(roots or ())]
        found = self._with(program, [(dict(enumerate(self.classes.count.tolist())), value), *fixed])
        return None if found is None else found.values[self.kinds : self.columns]

    def _with(self, program: LinearProgram, fixed: Sequence[tuple[dict[int, int], Fraction]]) -> Vertex | None:
        """Solve a program with sums of columns fixed; None if a fraction is too long, or the solver fails."""
        if any(max(total.numerator, total.denominator) >= _LONG for _, total in fixed):
            return None
        for entries, total in fixed:
            row = {column: count * total.denominator for column, count in entries.items()}
            program.add(self._row(row), total.numerator, equal=True)
        return self._solved(program)

    # ---- certificates

    def _certificate(self, vertex: Vertex) -> Certificate:
        found, budgets = self.classes, len(self._budgets())
        rows = [(switch, half) for switch in found.first_switches() for half in found.halves]
        balances = []
        for price, (switch, half) in zip(vertex.prices[budgets : self._first], rows, strict=True):
            sign = 1 if half and switch in self.able[half] else -1
            if price:
                balances.append(Balance(sign * price, switch, bool(half)))
        cuts = [
            TreeCut.of(price, cut.near, cut.inward)
            for price, cut in zip(vertex.prices[self._first :], self.cuts, strict=True)
            if price
        ]
        return Certificate(tuple(cuts), tuple(balances), found.maps, found.mirrored, *self.able)

    def _partition(self, certificate: Certificate, known: Partition | None, ratio: Fraction) -> Partition | None:
        """Return a partition that proves the optimum: of the certificate's cuts, or of groups; None if none is seen."""
        if any(self.able):
            return None
        for parts in self._candidates(certificate, known):
            if parts.ratio == ratio:
                return parts
        return None

    def _candidates(self, certificate: Certificate, known: Partition | None) -> Iterable[Partition]:
        yield worst_partition(self.topology, effort=0) if known is None else known
        cuts = certificate.every_cut(16 * self.topology.num_nodes)
        for inward in (False, True):
            parts = sorted({cut.nodes for cut in cuts or () if not cut.rooted and cut.inward == inward})
            ranks = sorted(node for nodes in parts for node in nodes if node < self.topology.num_ranks)
            if ranks == list(range(self.topology.num_ranks)) and len(parts) > 1:
                yield Partition(tuple(parts), inward, crossing(self.topology, parts, inward))
