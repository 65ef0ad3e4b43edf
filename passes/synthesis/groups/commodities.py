"""What groups send, commodity by commodity, and the cheapest trees or routes of each at prices of links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.graph.members import Inside
from collc.ir.topology import Topology

from .demand import LEAST
from .steiner import UNUSABLE, Hop, Network, arborescence, distances, hops, path, spanning_tree, trees

__all__ = ["Column", "Commodity", "Market", "commodities_of"]

#: groups of more members have trees in which no relay copies
MOST_MEMBERS = 9
#: roots of an allreduce that give a tree each at the same prices
_ROOTS = 6
#: passes over the links until cheapest routes are found, about
_PASSES = 12

Target = tuple[int, int, int]  # member, units that are planned, units that must be sent


@attrs.frozen
class Commodity:
    """Data of one group that take one tree, or one route to each target: ``planned`` bytes, of which ``needed`` move.

    ``root`` is a rank, or -1 if any rank may be the root. ``targets`` (of routes) count in units of these bytes.
    """

    group: int
    root: int
    outward: bool
    inward: bool
    planned: Fraction
    needed: Fraction
    targets: tuple[Target, ...] | None = None


@attrs.frozen
class Column:
    """One way to move a commodity: a tree to its root, a tree from it, or routes; ``loads`` count units by link."""

    commodity: int
    root: int
    inward: tuple[Hop, ...]
    outward: tuple[Hop, ...]
    loads: tuple[tuple[int, int], ...]


def commodities_of(group: int, collective: Collective, size: Fraction) -> Iterator[Commodity]:
    """Yield what a group of members sends; shards of weight 0 have a little room, as :mod:`.demand` says."""
    kind, ranks, n = collective.kind, collective.ranks.tolist(), collective.num_members
    into = kind in ("reduce-scatter", "reduce", "gather")
    match kind:
        case "allreduce":
            yield Commodity(group, -1, True, True, size, size)
        case "broadcast" | "reduce":
            yield Commodity(group, collective.root or 0, not into, into, size, size)
        case "allgather" | "reduce-scatter":
            weight = collective.weight.tolist()
            for rank, amount in zip(ranks, weight, strict=True):
                needed = size * amount / collective.whole
                yield Commodity(group, rank, not into, into, max(needed, size * LEAST / n), needed)
        case "gather" | "scatter" | "alltoall":
            rows = np.array(collective.weight, dtype=object).reshape(-1, n)
            sources = ranks if kind == "alltoall" else [collective.root or 0]
            for source, row in zip(sources, rows.tolist(), strict=True):
                yield _routed(group, source, ranks, row, size / collective.whole, into)
        case _:
            raise ValueError(f"what a `{kind}` sends does not follow from its kind")


def _routed(
    group: int, source: int, ranks: Sequence[int], row: Sequence[int], unit: Fraction, into: bool
) -> Commodity:  # fmt: skip
    finer = max(int(1 / (LEAST / len(ranks))), 1) if 0 in row else 1
    targets = tuple(
        (place, max(amount * finer, 1), amount * finer)
        for place, (rank, amount) in enumerate(zip(ranks, row, strict=True))
        if rank != source
    )
    return Commodity(group, source, not into, into, unit / finer, unit / finer, targets)


@attrs.frozen(eq=False)
class _Batch:
    """Groups of one number of members, and their networks outward and inward, as commodities need them.

    ``divided``: relays may copy and add.
    """

    groups: tuple[int, ...]
    divided: bool
    networks: tuple[Network | None, Network | None]

    def priced(self, prices: Array) -> tuple[Array | None, Array | None]:
        """Return the prices of all trees, or of all routes, outward and inward."""
        table = trees if self.divided else distances
        out, into = (None if network is None else table(network, prices) for network in self.networks)
        return out, into

    @property
    def work(self) -> int:
        """The elementary steps of :meth:`priced` and of its trees, about."""
        total = 0
        for network in filter(None, self.networks):
            groups, members = network.members.shape
            columns, joins = (1 << members, 3**members) if self.divided else (members, members**2)
            total += groups * (network.heads.size * _PASSES * columns + network.num_nodes * joins)
        return total


Tables = Sequence[tuple[Array | None, Array | None]]


class Market:
    """The commodities of groups on one network, which buy the cheapest trees and routes at prices of links.

    ``networks[i]`` holds the nodes that group i may use.
    """

    def __init__(self, topology: Topology, networks: Sequence[Inside], commodities: Sequence[Commodity]) -> None:
        self.topology, self.networks, self.commodities = topology, networks, commodities
        self.members = [network.nodes[: network.topology.num_ranks] for network in networks]
        self.routed = {one.group for one in commodities if one.targets is not None}
        self.batches = list(self._batches())
        self.place = {group: (number, row) for number, batch in enumerate(self.batches)
                      for row, group in enumerate(batch.groups)}  # fmt: skip

    @property
    def proves(self) -> bool:
        """Whether costs are those of all trees: no relays of groups that are too large could copy."""
        return all(
            batch.divided or group in self.routed or not len(self.networks[group].relays)
            for batch in self.batches for group in batch.groups
        )  # fmt: skip

    @property
    def dearest(self) -> int:
        """The largest price for which trees cost less than ``UNUSABLE``: routes to all members pass no node twice."""
        return (UNUSABLE - 1) // (MOST_MEMBERS * (self.topology.num_nodes + 1))

    @property
    def work(self) -> int:
        """The elementary steps of one round, about."""
        return sum(batch.work for batch in self.batches)

    def _batches(self) -> Iterator[_Batch]:
        kinds = [(len(one), self._divides(group)) for group, one in enumerate(self.members)]
        for kind in sorted(set(kinds)):
            groups = [group for group, own in enumerate(kinds) if own == kind]
            usable = np.zeros((len(groups), self.topology.num_nodes), dtype=bool)
            for row, group in zip(usable, groups, strict=True):
                row[self.networks[group].nodes] = True
            members = np.array([self.members[group] for group in groups])
            some = [one for one in self.commodities if one.group in groups]
            out = Network.of(self.topology, members, usable, False) if any(one.outward for one in some) else None
            into = Network.of(self.topology, members, usable, True) if any(one.inward for one in some) else None
            yield _Batch(tuple(groups), kind[1], (out, into))

    def _divides(self, group: int) -> bool:
        few = len(self.members[group]) <= MOST_MEMBERS
        return few and bool(len(self.networks[group].relays)) and group not in self.routed

    # ---- costs

    def _priced(self, prices: Array) -> Tables:
        return [batch.priced(prices) for batch in self.batches]

    def _is_divided(self, group: int) -> bool:
        return self.batches[self.place[group][0]].divided

    def cost(self, prices: Array) -> Fraction:
        """Return the bytes that must move, times the cheapest prices of their trees and routes."""
        tables = self._priced(prices)
        return sum((self._cost(one, tables) * one.needed for one in self.commodities), Fraction(0))

    def _cost(self, one: Commodity, tables: Tables) -> int:
        if one.targets is not None:
            cost = self._distances(one, tables)
            return sum(int(cost[one.root, place]) * needed for place, _, needed in one.targets)
        return self._roots(one, tables)[0][0]

    def _distances(self, one: Commodity, tables: Tables) -> Array:
        number, place = self.place[one.group]
        cost = tables[number][one.inward]
        assert cost is not None, "a table for every direction"
        return cost[:, place]

    def _roots(self, one: Commodity, tables: Tables) -> list[tuple[int, int]]:
        """Return the least costs of trees and their roots, cheapest first."""
        number, place = self.place[one.group]
        roots, total = self._candidates(one), np.zeros(0)
        for inward in (False, True):
            if (one.inward if inward else one.outward) and (cost := tables[number][inward]) is not None:
                own = self._of_roots(one.group, cost[:, place], roots)
                total = total + own if len(total) else own
        order = np.lexsort((roots, total))[:_ROOTS]
        return [(int(total[i]), int(roots[i])) for i in order]

    def _candidates(self, one: Commodity) -> Array:
        if one.root >= 0:
            return np.array([one.root])
        nodes = self.networks[one.group].nodes
        return nodes[nodes < self.topology.num_ranks] if self._is_divided(one.group) else self.members[one.group]

    def _of_roots(self, group: int, cost: Array, roots: Array) -> Array:
        if self._is_divided(group):
            found: Array = cost[roots, -1].astype(np.int64)
            return found
        weights = cost[self.members[group]].astype(np.int64)
        return np.array([sum(weights[a, b] for b, a in enumerate(self._below(group, weights, root)) if a >= 0)
                         for root in roots.tolist()])  # fmt: skip

    def _below(self, group: int, weights: Array, root: int) -> list[int]:
        return arborescence(weights, int(np.flatnonzero(self.members[group] == root)[0]))  # type: ignore[arg-type]

    def general(self, prices: Array) -> Fraction | None:
        """Return the least price of what must move in any schedules without coding; None if it is not known.

        If members alone take part in an allreduce, every partition of them into p parts is crossed by 2 (p - 1)
        messages of every byte. So a byte costs twice the least spanning tree at least, with the cheaper of both
        directions between two members (Tutte and Nash-Williams: partitions prove the tree's price).
        """
        if not self.proves or any(one.root < 0 and len(self.networks[one.group].relays) for one in self.commodities):
            return None
        tables = self._priced(prices)
        return sum(
            ((self._spanning(one, tables) if one.root < 0 else self._cost(one, tables)) * one.needed
             for one in self.commodities), Fraction(0),
        )  # fmt: skip

    def _spanning(self, one: Commodity, tables: Tables) -> int:
        number, place = self.place[one.group]
        cost = tables[number][False]
        assert cost is not None, "an allreduce needs both directions"
        between = cost[self.members[one.group], place].astype(np.int64)
        return 2 * spanning_tree(np.minimum(between, between.T))

    # ---- columns

    def columns(self, prices: Array) -> tuple[Fraction, list[Column]]:
        """Return :meth:`cost`, and a cheapest column (of an allreduce: several) for every commodity; prices above 0."""
        tables, found, total = self._priced(prices), list[Column](), Fraction(0)
        for number, one in enumerate(self.commodities):
            if one.targets is not None:
                total += self._cost(one, tables) * one.needed
                found.append(self._routes(number, one, tables, prices))
                continue
            roots = self._roots(one, tables)
            total += roots[0][0] * one.needed
            found += [self._tree(number, one, root, tables, prices) for _, root in roots]
        return total, found

    def _routes(self, number: int, one: Commodity, tables: Tables, prices: Array) -> Column:
        batch, place = self.place[one.group]
        network, cost = self.batches[batch].networks[one.inward], self._distances(one, tables)
        assert network is not None, "a network for every direction"
        loads: dict[int, int] = {}
        for member, planned, _ in one.targets or ():
            for _, _, links in path(network, prices, cost[:, member], place, one.root):
                for link in links:
                    loads[link] = loads.get(link, 0) + planned
        return Column(number, one.root, (), (), tuple(sorted(loads.items())))

    def _tree(self, number: int, one: Commodity, root: int, tables: Tables, prices: Array) -> Column:
        batch, _ = self.place[one.group]
        halves = list[tuple[Hop, ...]]()
        for inward, needs in enumerate((one.outward, one.inward)):
            network, cost = self.batches[batch].networks[inward], tables[batch][inward]
            known = needs and network is not None and cost is not None
            halves.append(tuple(self._hops(one.group, root, network, cost, prices)) if known else ())  # type: ignore[arg-type]
        loads: dict[int, int] = {}
        for _, _, links in (*halves[0], *halves[1]):
            for link in links:
                loads[link] = loads.get(link, 0) + 1
        return Column(number, root, halves[1], halves[0], tuple(sorted(loads.items())))

    def _hops(self, group: int, root: int, network: Network, cost: Array, prices: Array) -> list[Hop]:
        _, place = self.place[group]
        if self._is_divided(group):
            return _in_order(hops(network, prices, cost, place, root), root, self.members[group].tolist())
        ranks, found = self.members[group].tolist(), list[Hop]()
        below = self._below(group, cost[self.members[group], place].astype(np.int64), root)
        for member, above in enumerate(below):
            if above >= 0:
                found += path(network, prices, cost[:, place, member], place, ranks[above])
        return _in_order(found, root, ranks)


def _in_order(found: Sequence[Hop], root: int, members: Sequence[int]) -> list[Hop]:
    """Return the hops of a tree, parents first: one into every rank that leads to a member."""
    beside: dict[int, list[Hop]] = {}
    for hop in found:
        beside.setdefault(hop[0], []).append(hop)
    reached, order, front = {root}, list[Hop](), [root]
    for node in front:
        for hop in beside.get(node, ()):
            if hop[1] not in reached:
                reached.add(hop[1])
                order.append(hop)
                front.append(hop[1])
    needed, kept = set(members), list[Hop]()
    for hop in reversed(order):
        if hop[1] in needed:
            needed.add(hop[0])
            kept.append(hop)
    return kept[::-1]
