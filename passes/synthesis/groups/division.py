"""Dividing the links among groups that run at the same time: the multi-commodity optimum of their trees.

Variables: c_i(e), the part of link e that group i uses, and r_i, the vectors that it moves in a unit of time. Every set
of nodes must let out in group i's parts what its members have to send, r_i times (the cuts of :mod:`.demand`, found by
max-flows when they are violated). In a *plan* switches and relays send as much as they receive, so trees of the groups
reach the rates. The *bound* leaves that out: relays may copy and add. Its rows are cuts that no schedule avoids, so its
dual is a proof: prices of cuts and of links.

Rates are fair: the least is as large as it can be, then the least of the others, and so on. Links and groups that an
automorphism exchanges have one variable. Values are exact: the solver's last basis is solved again in fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import error
from collc.ir.graph.cuts import FlowNetwork
from collc.ir.graph.members import Inside, member_parts
from collc.ir.topology import Topology

from .classes import Classes
from .demand import Half, halves, single_sets
from .exact_program import Optimum, Row, about_maximum, maximum

if TYPE_CHECKING:
    from .partitions import Partition

__all__ = ["MOST_EXACT", "JointCuts", "Parts", "PricedCut", "divided", "in_proportion", "joint_bound"]

_MOST_ROUNDS = 200
#: rounds for programs that are not solved exactly
_FEW_ROUNDS = 12
#: more kinds of shares are not solved exactly
MOST_EXACT = 600
#: a cut is clearly violated if it is too small for this part of a rate
_CLEARLY = 1 - Fraction(1, 10**6)

Key = tuple[int, int, frozenset[int]]  # kind of group, half, nodes


@attrs.frozen(eq=False)
class Parts:
    """``rates[i]`` is the number of vectors that group i moves in a unit of time (its links' unit of bandwidth: bytes);
    ``shares[i][j]`` the bandwidth of link j of its network that it uses.
    """

    rates: tuple[Fraction, ...]
    shares: tuple[tuple[Fraction, ...], ...]


@attrs.frozen
class PricedCut:
    """``carries`` vectors of group ``group``, and of every equivalent group, go out of ``parts``, sets of nodes: a
    single one or a partition (``inward``: into them), at this price for a byte.
    """

    group: int
    parts: tuple[tuple[int, ...], ...]
    inward: bool
    carries: Fraction
    price: Fraction


@attrs.frozen
class JointCuts:
    """Prices of cuts of groups: a lower bound on the time in which all groups finish.

    Every cut is priced for all its images under automorphisms, in equal parts. A link's price is at least that of all
    cuts of one group over it. So the bytes that the cuts carry, times their prices (``carried``), over the bandwidth of
    all links, times their prices (``paid``), is a lower bound.
    """

    cuts: tuple[PricedCut, ...]
    carried: Fraction
    paid: Fraction

    @property
    def value(self) -> Fraction:
        """The lower bound: the seconds (or units of time) until the last group has finished."""
        return self.carried / self.paid if self.carried else Fraction(0)


class _Joint:
    """The linear program of groups: columns are the kinds of shares, then the rate of each kind of group, then the
    least rate. ``sizes[i]`` are the bytes of group i's vector.
    """

    def __init__(
        self, topology: Topology, networks: Sequence[Inside], sizes: Sequence[Fraction], classes: Classes,
        balanced: bool, prices: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        self.prices = prices
        self.topology, self.networks, self.sizes, self.classes = topology, networks, sizes, classes
        self.balanced, self.cuts = balanced, dict[Key, Row]()
        self.first = self.classes.first
        self.kinds = 1 + max((int(share.max(initial=-1)) for share in self.classes.share), default=-1)
        self.least = self.kinds + len(self.first)
        self.halves = [halves(self.networks[i].collective, not self.balanced) for i in self.first]
        self.unit = max((kind.bandwidth for kind in self.topology.classes), default=Fraction(1))
        self.budgets = list(self._budgets())
        self.balances = list(self._balances()) if balanced else []
        self.partitions = [] if balanced else list(self._partitions())
        self.fixed = [*self.budgets, *self.balances, *(row for row, *_ in self.partitions)]
        for kind, number in enumerate(self.first):
            for nodes in single_sets(self.networks[number]):
                for half in range(len(self.halves[kind])):
                    self.add(kind, half, nodes)

    # ---- rows

    def _budgets(self) -> Iterator[Row]:
        """Yield for every kind of link: the parts of all groups together are at most its bandwidth."""
        firsts = np.unique(self.classes.link, return_index=True)[1].tolist()
        terms: dict[int, dict[int, Fraction]] = {link: {} for link in firsts}
        for network, share in zip(self.networks, self.classes.share, strict=True):
            for link, kind in zip(network.links.tolist(), share.tolist(), strict=True):
                if link in terms:
                    terms[link][kind] = terms[link].get(kind, Fraction(0)) + 1
        for link in firsts:
            if terms[link]:
                yield Row(terms[link], self.topology.bandwidth(link) / self.unit)

    def _balances(self) -> Iterator[Row]:
        """Yield for every switch and relay of a first group: as much goes into it as comes out of it."""
        seen = set[tuple[tuple[int, Fraction], ...]]()
        for number in self.first:
            network, share = self.networks[number], self.classes.share[number]
            sums: list[dict[int, Fraction]] = [{} for _ in range(network.topology.num_nodes)]
            for sign, ends in ((1, network.topology.dst.tolist()), (-1, network.topology.src.tolist())):
                for node, kind in zip(ends, share.tolist(), strict=True):
                    sums[node][kind] = sums[node].get(kind, Fraction(0)) + sign
            for terms in sums[network.topology.num_ranks :]:
                left = {kind: factor for kind, factor in terms.items() if factor}
                key = tuple(sorted(left.items()))
                if left and key not in seen:
                    seen.add(key)
                    yield Row(left, equal=True)

    def _partitions(self) -> Iterator[tuple[Row, int, tuple[tuple[int, ...], ...], bool]]:
        """Yield for each partition of an allreduce's ranks: 2 (p - 1) vectors leave the p parts, and enter them.

        With each row come its kind of group, its parts, and whether data enter them.
        """
        for kind, number in enumerate(self.first):
            network = self.networks[number]
            if network.collective.kind != "allreduce":
                continue
            for parts in dict.fromkeys((*member_parts(network), *self._priced_parts(network))):
                part = np.full(network.topology.num_nodes, -1)
                for place, nodes in enumerate(parts):
                    part[list(nodes)] = place
                tails, heads = part[network.topology.src], part[network.topology.dst]
                for inward, ends in enumerate((tails, heads)):
                    terms = self._sum(self.classes.share[number][(tails != heads) & (ends >= 0)])
                    row = self._within(terms, kind, 2 * (len(parts) - 1) * self.sizes[number])
                    yield row, kind, parts, bool(inward)

    def _priced_parts(self, network: Inside) -> Iterator[Partition]:
        if self.prices is None:
            return iter(())
        from .partitions import priced_partitions  # allreduces without symmetry alone need it

        return priced_partitions(network, self.prices)

    def _sum(self, shares: Array) -> dict[int, Fraction]:
        kinds, counts = np.unique(shares, return_counts=True)
        return {kind: Fraction(count) for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)}

    def _within(self, terms: dict[int, Fraction], kind: int, amount: Fraction) -> Row:
        """Return the row: the rate of a kind of group times an amount is at most a sum of parts."""
        return Row({**{k: -x for k, x in terms.items()}, self.kinds + kind: amount / self.scale})

    @property
    def scale(self) -> Fraction:
        """Bytes in which rates are counted, so that the numbers of the program are near 1."""
        return max(self.sizes)

    def add(self, kind: int, half: int, nodes: frozenset[int]) -> bool:
        """Add the row of a cut of the first group of a kind; return whether it is new and needs anything."""
        number = self.first[kind]
        network, one = self.networks[number], self.halves[kind][half]
        amount = one.needed(nodes)
        if not amount or (kind, half, nodes) in self.cuts:
            return False
        inside = np.zeros(network.topology.num_nodes, dtype=bool)
        inside[list(nodes)] = True
        tails, heads = (network.topology.src, network.topology.dst)[:: -1 if one.inward else 1]
        terms = self._sum(self.classes.share[number][inside[tails] & ~inside[heads]])
        if not terms:
            raise _apart(self.networks[number])
        self.cuts[kind, half, nodes] = self._within(terms, kind, amount * self.sizes[number])
        return True

    # ---- solving

    def settled(self, objective: dict[int, Fraction], more: Sequence[Row], rounds: int | None = None) -> Optimum:
        """Return the optimum of an objective when no cut is violated.

        Cuts are found by the solver's own values as long as these violate some clearly, then by exact ones.
        """
        is_large = self.kinds > MOST_EXACT and not self.balanced
        for turn in range(_MOST_ROUNDS):
            about = about_maximum(objective, self._rows(more), self.least + 1)
            if is_large and turn == min(_FEW_ROUNDS, _FEW_ROUNDS if rounds is None else rounds - 1):
                return about  # any prices prove a bound
            if self.violate(about.values, _CLEARLY):
                continue
            if is_large:
                return about
            found = maximum(objective, self._rows(more), self.least + 1)
            if found is None:
                raise _inexact()
            if not self.violate(found.values):
                return found
        raise _inexact()

    def _rows(self, more: Sequence[Row]) -> list[Row]:
        return [*self.fixed, *more, *self.cuts.values()]

    def violate(self, values: Sequence[Fraction], part: Fraction = Fraction(1)) -> bool:
        """Add the rows of cuts that violate a part of the rates of a solution; return whether there are any."""
        new = False
        for kind, number in enumerate(self.first):
            rate = values[self.kinds + kind] * part
            for half, one in enumerate(self.halves[kind]):
                for nodes in self._small_cuts(number, one, rate / self.scale * self.sizes[number], values):
                    new |= self.add(kind, half, nodes)
        return new

    def _small_cuts(
        self, number: int, half: Half, rate: Fraction, values: Sequence[Fraction]
    ) -> Iterator[frozenset[int]]:
        network, share = self.networks[number], self.classes.share[number].tolist()
        widths = {kind: values[kind] for kind in set(share)}
        amounts = [amount * rate for amount in half.supply]
        whole = lcm(*(one.denominator for one in (*widths.values(), *amounts)))
        ends = (network.topology.src.tolist(), network.topology.dst.tolist())[:: -1 if half.inward else 1]
        arcs = ((a, b, int(widths[kind] * whole)) for a, b, kind in zip(*ends, share, strict=True))
        flows = FlowNetwork(network.topology.num_nodes, arcs)
        supply = [int(amount * whole) for amount in amounts] + [0] * network.topology.num_switches
        for cut in flows.violated(supply, half.sinks, most=len(half.sinks)):
            yield frozenset(cut.nodes)

    def at_least(self, kind: int, rate: Fraction) -> Row:
        """Return the row: the rate of a kind of group is at least this."""
        return Row({self.kinds + kind: Fraction(-1)}, -rate)

    def above_least(self, kind: int) -> Row:
        """Return the row: the least rate is at most that of a kind of group."""
        return Row({self.least: Fraction(1), self.kinds + kind: Fraction(-1)})


def divided(topology: Topology, networks: Sequence[Inside], sizes: Sequence[Fraction], classes: Classes) -> Parts:
    """Return fair rates of groups and the parts of links that reach them.

    ``sizes`` are the bytes of the groups' vectors. Raises C0301 if the members of a group are not connected in its
    network, C0568 if the program cannot be solved exactly.
    """
    joint = _Joint(topology, networks, sizes, classes, balanced=True)
    active, reached = list(range(len(joint.first))), dict[int, Fraction]()
    while True:
        kept = [joint.at_least(kind, rate) for kind, rate in reached.items()]
        found = joint.settled({joint.least: Fraction(1)}, [*kept, *map(joint.above_least, active)])
        start = len(joint.fixed) + len(kept)
        prices = found.prices[start : start + len(active)]
        # what has a price is at the least rate in every optimum
        reached |= {kind: found.values[joint.least] for kind, price in zip(active, prices, strict=True) if price > 0}
        if found.values[joint.least] not in reached.values():
            raise _inexact()
        active = [kind for kind in active if kind not in reached]
        if not active:
            return _parts(joint, found.values, reached)


def in_proportion(networks: Sequence[Inside], times: Sequence[Fraction]) -> Parts:
    """Return parts of links in proportion to the times that groups take alone: all finish when their times add up."""
    total = sum(times, Fraction(0))
    parts = [time / total for time in times]
    shares = [
        tuple(part * network.topology.bandwidth(link) for link in range(network.topology.num_links))
        for part, network in zip(parts, networks, strict=True)
    ]
    return Parts(tuple(1 / total for _ in times), tuple(shares))


def _parts(joint: _Joint, values: Sequence[Fraction], reached: dict[int, Fraction]) -> Parts:
    rates = [reached[kind] * joint.unit / joint.scale for kind in joint.classes.group.tolist()]
    shares = [tuple(values[kind] * joint.unit for kind in share.tolist()) for share in joint.classes.share]
    return Parts(tuple(rates), tuple(shares))


def joint_bound(
    topology: Topology, networks: Sequence[Inside], sizes: Sequence[Fraction], classes: Classes,
    rounds: int | None = None, prices: Sequence[int] | None = None,
) -> JointCuts:  # fmt: skip
    """Return a lower bound on the time in which all groups, begun together, can finish, and its proof.

    ``networks`` have all relays. The bound is that of schedules without coding. Programs that are not solved exactly
    take a dozen rounds, or fewer ``rounds``. ``prices`` of links suggest partitions for allreduces.
    """
    joint = _Joint(topology, networks, sizes, classes, False, prices)
    rows = [joint.above_least(kind) for kind in range(len(joint.first))]
    found = joint.settled({joint.least: Fraction(1)}, rows, rounds)
    return _proof(joint, found, len(rows))


def _proof(joint: _Joint, found: Optimum, between: int) -> JointCuts:
    """Return the bound of the prices of cuts, with the least prices of links that they need: right for any prices."""
    budgets, fixed = len(joint.budgets), len(joint.fixed)
    start = fixed + between
    prices = [max(price, Fraction(0)) for price in (*found.prices[budgets:fixed], *found.prices[start:])]
    total: dict[int, Fraction] = {}
    carried = Fraction(0)
    for row, price in zip((*joint.fixed[budgets:], *joint.cuts.values()), prices, strict=True):
        for column, factor in row.terms.items():
            if column < joint.kinds:
                total[column] = total.get(column, Fraction(0)) - factor * price
            else:
                carried += factor * price
    paid = sum((row.most * _link_price(row, total) for row in joint.budgets), Fraction(0))
    priced = zip(_cuts(joint), prices, strict=True)
    cuts = tuple(attrs.evolve(cut, price=price / joint.unit) for cut, price in priced if price)
    return JointCuts(cuts, carried * joint.scale / joint.unit, paid)


def _link_price(budget: Row, total: dict[int, Fraction]) -> Fraction:
    return max(total.get(kind, Fraction(0)) / count for kind, count in budget.terms.items())


def _cuts(joint: _Joint) -> Iterator[PricedCut]:
    """Yield the partitions and cuts of the program, without their prices, in numbers of the whole network."""
    for _, kind, parts, inward in joint.partitions:
        number = joint.first[kind]
        whole = tuple(joint.networks[number].outside(nodes) for nodes in parts)
        yield PricedCut(number, whole, inward, Fraction(2 * (len(parts) - 1)), Fraction(0))
    for kind, half, nodes in joint.cuts:
        number, one = joint.first[kind], joint.halves[kind][half]
        yield PricedCut(number, (joint.networks[number].outside(nodes),), one.inward, one.needed(nodes), Fraction(0))


def _apart(network: Inside) -> Exception:
    network.topology.require_connected("a group")
    return _inexact()


def _inexact() -> Exception:
    return error(
        "C0568", "the division of the links among the groups cannot be computed exactly",
        hint="schedule the groups one by one, without `together`", exit_status=3,
    )  # fmt: skip
