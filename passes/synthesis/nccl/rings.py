"""The rings of most bandwidth through the boxes of a cluster, and what proves that no others have more.

R rings carry equal shares of the data. If the busiest link of bandwidth b carries k of them, each has b / k, and all
together R b / k. Every ring leaves every set of ranks, so no rings have more than the smallest cut. The search tries
the values R b / k from the cut downwards, and for each the paths through every box (:mod:`.search`). Where it finds
none in its time, full meshes have rings by construction (:mod:`.meshes`), and other boxes may have some by exchanges
(:mod:`.exchange`).

Rings visit the boxes in order. They cross from box to box by *lanes*: a NIC of one box and a NIC of the next, of the
same number if the fabric joins these. A ring leaves a box by another lane than it entered, if a NIC serves a single
rank. Then lanes alternate from box to box, and an odd number of boxes needs a third.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from heapq import merge
from itertools import groupby, pairwise, product
from math import ceil, lcm

import attrs
import numpy as np

from collc.ir.graph.cuts import FlowNetwork
from collc.ir.graph.nics import Cabling, Nic, Pair
from collc.ir.topology import Topology

from .exchange import exchanged_paths
from .inside import Ends, Inside, Paths, inside_of
from .search import Packing

__all__ = ["Rings", "best_rings", "smallest_cut"]

#: steps of all searches of a network; then each search only goes straight ahead
_MOST_STEPS = 40_000
#: exchanges of all searches of a network, and of one
_MOST_EXCHANGES = 400_000
_MOST_EXCHANGES_ONCE = 100_000

#: minus the bandwidth of rings, their number, and the bandwidth of each
_Value = tuple[Fraction, int, Fraction]
#: by which NICs a ring goes from box to box: (leaving, entering)
Lane = tuple[Nic, Nic]


@attrs.frozen(eq=False)
class Rings:
    """Rings through all ranks: ``orders[r]`` are the ranks in the order of ring r, ``routes[r]`` its routes, in links.

    Route i leads from rank i of the order to the next. Every ring has a bandwidth of ``rate``. No rings have more than
    ``bound`` together. If ``exhausted``, no other rings of this kind have more than these.
    """

    orders: tuple[tuple[int, ...], ...]
    routes: tuple[tuple[tuple[int, ...], ...], ...]
    rate: Fraction
    bound: Fraction
    exhausted: bool

    @property
    def total(self) -> Fraction:
        """The bandwidth of all rings."""
        return self.rate * len(self.orders)


def smallest_cut(topology: Topology, direct: bool = False) -> Fraction:
    """Return the least bandwidth out of a set of ranks (with any switches) that is not all ranks.

    With ``direct``, only links between ranks count.

    >>> from collc.frontends.coll import topology
    >>> int(smallest_cut(topology("mi250(1)"))) // 10**9
    300
    """
    scale = lcm(*(kind.bandwidth.denominator for kind in topology.classes))
    amounts = [int(kind.bandwidth * scale) for kind in topology.classes]
    least = []
    for tails, heads in ((topology.src, topology.dst), (topology.dst, topology.src)):
        ends = [
            one for one in zip(tails.tolist(), heads.tolist(), topology.link_class.tolist(), strict=True)
            if not direct or max(one[:2]) < topology.num_ranks
        ]  # fmt: skip
        network = FlowNetwork(topology.num_nodes, ((a, b, amounts[kind]) for a, b, kind in ends))
        limit = network.leaving([0]) + 1
        supply = [limit, *[0] * (topology.num_nodes - 1)]
        cut = network.smallest_cut(supply, range(1, topology.num_ranks), limit)
        least.append(limit - 1 if cut is None else cut.value)
    return Fraction(min(least), scale)


def best_rings(cables: Cabling, count: int | None, most: int, through_nics: bool) -> Rings | None:
    """Return the rings of most bandwidth, at most ``most`` or exactly ``count``; None if there is no ring.

    With ``through_nics``, the rings of a single box leave it by a NIC and enter it again.

    Where the ranks of every box have links to each other besides switches, as GPUs with xGMI and PCIe do, the paths
    over these links are searched first: among all paths they are too few for the search to list them.
    """
    counts = (count,) if count else range(1, most + 1)
    search = _Search(cables, through_nics)
    bound = search.bound
    first = _first_rings(_Search(cables, through_nics, direct=True), counts, bound) if _meshed(search) else None
    better = _first_rings(search, counts, bound, first.total if first else Fraction(0))
    found = better or first
    if found is None:
        return None
    exhausted = max(search.open_value, bound / 2) <= found.total
    return attrs.evolve(found, bound=bound, exhausted=exhausted)


def _first_rings(
    search: _Search, counts: Sequence[int], bound: Fraction, least: Fraction = Fraction(0)
) -> Rings | None:
    """Return the first rings that a search finds, from a bound downwards; None if none have more than ``least``."""
    for rings, rate in _values(search.cables.topology, min(bound, search.bound), counts):
        if rings * rate <= least:
            return None
        found = search.rings(rings, rate)
        if found is not None:
            return found
    return None


def _meshed(search: _Search) -> bool:
    """Return whether boxes have hops over switches, and links between ranks that join all ranks of each box."""
    boxes = list({id(one): one for one in search.boxes if one.size > 1}.values())
    return any(len(route) > 1 for one in boxes for route in one.hops.values()) and all(map(_joined_directly, boxes))


def _joined_directly(inside: Inside) -> bool:
    near: dict[int, list[int]] = {}
    for (a, b), route in inside.hops.items():
        if len(route) == 1:
            near.setdefault(a, []).append(b)
    reached, front = {0}, [0]
    while front:
        new = [other for other in near.get(front.pop(), ()) if other not in reached]
        reached.update(new)
        front += new
    return len(reached) == inside.size


def _values(topology: Topology, bound: Fraction, counts: Sequence[int]) -> Iterator[tuple[int, Fraction]]:
    """Yield numbers of rings and their bandwidths, those of most bandwidth together first, then the fewest rings.

    All values above half the bound are among them at which a link has room for fewer rings than at lower ones, and the
    largest of each link. A ring has as many hops as ranks. Where a link has room for all hops of all rings, more room
    makes no difference. A bound of 0, of links that do not join all ranks, has none.
    """
    if not bound:
        return
    columns: list[Iterator[_Value]] = []
    for rings, speed in product(counts, {kind.bandwidth for kind in topology.classes}):
        least = max(ceil(speed * rings / bound), 1)
        last = max(least, min(2 * least, rings * topology.num_ranks))
        columns.append(_falling(rings, speed, range(least, last + 1)))
        if rings == counts[0]:
            columns.append(_falling(rings, speed, range(least, 4 * rings + 1)))
    # Next to slow links fast ones have very many values, and the first few are enough.
    for (_, rings, rate), _ in groupby(merge(*columns)):
        yield rings, rate


def _falling(rings: int, speed: Fraction, uses: range) -> Iterator[_Value]:
    for load in uses:
        yield -rings * speed / load, rings, speed / load


class _Search:
    """Finds rings of a bandwidth.

    ``open_value`` is the most bandwidth together of rings that were not found, but may exist.
    """

    def __init__(self, cables: Cabling, through_nics: bool, direct: bool = False) -> None:
        self.cables, self.direct = cables, direct
        self.closing = len(cables) == 1 and not through_nics
        self.boxes = self._boxes()
        # Switches may offer other routes than the shortest, and boxes other lanes, which the search does not try.
        self.proving = self.closing and cables.topology.is_direct
        self.open_value, self.steps, self.exchanges = Fraction(0), 0, 0
        #: what rings over the listed paths of a closed box have at most, as soon as a program is needed
        self.most: Fraction | None = None
        self.known: dict[object, list[tuple[int, ...]] | None] = {}
        self.lanes = [] if self.closing else [self._lanes(box) for box in range(len(cables))]

    @cached_property
    def bound(self) -> Fraction:
        """What no rings exceed: the smallest cut, and the links that paths from outside can use."""
        cut = smallest_cut(self.cables.topology, self.direct and self.closing)
        return cut if self.closing else min([cut, *(one.most for one in self.boxes if one.size > 1)])

    def _boxes(self) -> list[Inside]:
        """Return all boxes; equal ones are one object, which lists its paths once."""
        known: dict[object, Inside] = {}
        found = [inside_of(self.cables, box, self.direct) for box in range(len(self.cables))]
        return [known.setdefault(one.key, one) for one in found]

    def rings(self, count: int, rate: Fraction) -> Rings | None:
        """Return rings of a bandwidth each; None if none were found."""
        found = self._closed(count, rate) if self.closing else self._between_boxes(count, rate)
        if found is None and not self.proving:
            self.open_value = max(self.open_value, count * rate)
        return found

    def _closed(self, count: int, rate: Fraction) -> Rings | None:
        paths = self._paths(0, [None] * count, rate)
        return None if paths is None else self._joined([paths], [])

    def _between_boxes(self, count: int, rate: Fraction) -> Rings | None:
        for lanes in self._choices(count, rate):
            columns = self._through(lanes, rate)
            if columns is not None:
                return self._joined(columns, lanes)
        return None

    def _through(self, lanes: Sequence[Sequence[Lane]], rate: Fraction) -> list[list[tuple[int, ...]]] | None:
        """Return for every box a path for each ring, given the lanes by which the rings enter the boxes."""
        ends: list[list[Ends]] = [
            [(a[1].number, b[0].number) for a, b in zip(lanes[box], lanes[(box + 1) % len(lanes)], strict=True)]
            for box in range(len(lanes))
        ]
        if not all(self.boxes[box].has_room(both, rate) for box, both in enumerate(ends)):
            return None
        # A box without a path is found at once, a box whose paths do not fit together only by searching.
        listed = [(self.boxes[box], both) for box, both in enumerate(ends) if not self.boxes[box].is_crowded(len(both))]
        if not all(box.paths(one).orders for box, both in listed for one in both):
            return None
        columns = []
        for box, both in enumerate(ends):
            paths = self._paths(box, both, rate)
            if paths is None:
                return None
            columns.append(paths)
        return columns

    def _paths(self, box: int, ends: Sequence[Ends], rate: Fraction) -> list[tuple[int, ...]] | None:
        """Return a path of places for the ends of every ring."""
        inside = self.boxes[box]
        key = id(inside), tuple(ends), rate
        if key not in self.known:
            self.known[key] = self._packed(inside, ends, rate)
        return self.known[key]

    def _packed(self, inside: Inside, ends: Sequence[Ends], rate: Fraction) -> list[tuple[int, ...]] | None:
        if not inside.has_room(ends, rate):
            return None
        if self.most is not None and len(ends) * rate > self.most:
            return None
        crowded = inside.is_crowded(len(ends))
        if crowded and (known := self._exchanged(inside, ends, rate)):
            return known
        listed = [inside.paths(one) for one in ends]
        packing = Packing([one.uses for one in listed], inside.room(rate), inside.groups, self._left(len(ends)))
        rows: list[int] | bool | None = packing.solve()
        self.steps += packing.steps
        if rows is None:
            rows = not packing.exhausted or not all(one.complete for one in listed)
        if rows is True and self.closing and listed[0].complete:
            rows = self._by_program(inside, listed[0], len(listed), rate)
        if isinstance(rows, bool):
            return self._exchanged(inside, ends, rate) if rows and not crowded else None
        return [one.orders[row] for one, row in zip(listed, rows, strict=True)]

    def _by_program(self, inside: Inside, listed: Paths, rings: int, rate: Fraction) -> list[int] | bool:
        """Return a path for every ring from an integer program; False if they do not fit, True if that is unknown."""
        from .program import fitting_rows, most_bandwidth

        if self.most is None:
            self.most = most_bandwidth(listed.uses, [sum(links, Fraction(0)) for links in inside.links])
        if self.most is not None and rings * rate > self.most:
            return False
        return fitting_rows(listed.uses, inside.room(rate), rings)

    def _exchanged(self, inside: Inside, ends: Sequence[Ends], rate: Fraction) -> list[tuple[int, ...]] | None:
        """Return a path for every ring from exchanges, as the search found none among the listed paths in its time."""
        most = min(_MOST_EXCHANGES - self.exchanges, _MOST_EXCHANGES_ONCE)
        found, exchanges, impossible = exchanged_paths(inside, ends, rate, most)
        self.exchanges += exchanges
        if found is None and not impossible:
            self.open_value = max(self.open_value, len(ends) * rate)
        return found

    def _left(self, rings: int) -> int:
        return rings + min(max(_MOST_STEPS - self.steps, 1), _MOST_STEPS // 10)

    # ---- lanes between boxes

    def _lanes(self, box: int) -> list[Lane]:
        """Return the lanes into a box from the one before, by number; every NIC is in one lane at most."""
        cables, before = self.cables, box - 1 if box else len(self.cables) - 1
        pairs = product(cables.nics[before], cables.nics[box])
        near = sorted(pairs, key=lambda lane: (lane[0].number != lane[1].number, lane[0].number, lane[1].number))
        used: tuple[set[int], set[int]] = set(), set()
        found = []
        for leaving, entering in near:
            if leaving.number in used[0] or entering.number in used[1] or cables.across(leaving, entering) is None:
                continue
            used[0].add(leaving.number)
            used[1].add(entering.number)
            found.append((leaving, entering))
        return sorted(found, key=lambda lane: lane[0].number)

    def _choices(self, count: int, rate: Fraction) -> Iterator[list[list[Lane]]]:
        """Yield for every box the lanes by which the rings enter it."""
        given = [self._chosen(lanes, count, rate) for lanes in self.lanes]
        if None in given:
            return
        lanes, distinct = [one for one in given if one is not None], min(map(len, self.lanes))
        orders = _turns(count, distinct)
        if len(lanes) == 1:
            yield from ([crossed] for turn in orders if (crossed := self._crossed(lanes[0], lanes[0], turn)))
            return
        odd = len(lanes) % 2 == 1
        for one, other in product(orders, orders) if odd else ((order, order) for order in orders):
            turns = [orders[0] if box % 2 == 0 else one for box in range(len(lanes))]
            if odd:
                turns[-1] = other
            yield [[column[ring] for ring in turn] for column, turn in zip(lanes, turns, strict=True)]
        for turn in orders if odd else ():  # two lanes alternate, and cross each other once
            if crossed := self._crossed([lanes[0][ring] for ring in turn], lanes[0], orders[0]):
                turns = [orders[0] if box % 2 == 0 else turn for box in range(len(lanes))]
                rest = [[column[ring] for ring in one] for column, one in zip(lanes[1:], turns[1:], strict=True)]
                yield [crossed, *rest]

    def _crossed(self, leaving: Sequence[Lane], entering: Sequence[Lane], turn: Sequence[int]) -> list[Lane] | None:
        """Return lanes that leave by some NICs and enter by those of other lanes; None if the fabric lacks one."""
        found = [(lane[0], entering[ring][1]) for lane, ring in zip(leaving, turn, strict=True)]
        return found if all(self.cables.across(*lane) is not None for lane in found) else None

    def _chosen(self, lanes: list[Lane], count: int, rate: Fraction) -> list[Lane] | None:
        """Return a lane for every ring, each lane as often as its NICs have room; None if the room is too small."""
        room = [min(self._room(a.node, a.outside, rate), self._room(b.outside, b.node, rate)) for a, b in lanes]
        found: list[Lane] = []
        for turn in range(max(room, default=0)):
            found += [lane for lane, most in zip(lanes, room, strict=True) if most > turn]
            if len(found) >= count:
                return found[:count]
        return None

    def _room(self, tail: int, head: int, rate: Fraction) -> int:
        return sum(int(speed // rate) for speed in _speeds(self.cables.topology, (tail, head)))

    # ---- rings

    def _joined(self, columns: Sequence[list[tuple[int, ...]]], lanes: Sequence[list[Lane]]) -> Rings:
        """Return the rings that go through the boxes by paths of places."""
        orders, routes = [], []
        for ring in range(len(columns[0])):
            paths = [
                [self.cables.boxes[box][place] for place in column[ring]] for box, column in enumerate(columns)
            ]  # fmt: skip
            orders.append(tuple(rank for path in paths for rank in path))
            routes.append(list(self._route(paths, [of[ring] for of in lanes])))
        links, rate = _on_links(self.cables.topology, routes)
        return Rings(tuple(orders), links, rate, rate, False)

    def _route(self, paths: Sequence[Sequence[int]], lanes: Sequence[Lane]) -> Iterator[tuple[Pair, ...]]:
        for box, path in enumerate(paths):
            ends = [*path, path[0]] if not lanes else path
            for a, b in pairwise(ends):
                route = self.cables.inside(a, b)
                assert route is not None, "the search uses these routes only"
                yield route
            if lanes:
                after = (box + 1) % len(paths)
                route = self.cables.crossing(path[-1], *lanes[after], paths[after][0])
                assert route is not None, "the lane was found before"
                yield route


def _turns(count: int, lanes: int) -> list[tuple[int, ...]]:
    """Return orders of rings in which each takes the lane of another: first none, then neighbours, then far ones."""
    rings = range(count)
    found = [tuple(rings)]
    if count % 2 == 0:
        found.append(tuple(ring ^ 1 for ring in rings))
    found += [tuple((ring + shift) % count for ring in rings) for shift in (lanes // 2, 1, 2, 3)]
    return list(dict.fromkeys(found))


def _speeds(topology: Topology, pair: Pair) -> list[Fraction]:
    return [topology.bandwidth(link) for link in _between(topology, pair)]


def _between(topology: Topology, pair: Pair) -> list[int]:
    """Return the parallel links of a pair of nodes."""
    start, links = topology.out_links
    row = links[start[pair[0]] : start[pair[0] + 1]]
    found: list[int] = row[topology.dst[row] == pair[1]].tolist()
    return found


def _on_links(
    topology: Topology, routes: Sequence[Sequence[tuple[Pair, ...]]]
) -> tuple[tuple[tuple[tuple[int, ...], ...], ...], Fraction]:
    """Return the routes in links, and the bandwidth of a ring; of parallel links each ring takes the least loaded."""
    load = np.zeros(topology.num_links, dtype=np.int64)
    known: dict[Pair, list[tuple[Fraction, int]]] = {}

    def link(pair: Pair) -> int:
        among = known.setdefault(pair, [(topology.bandwidth(one), one) for one in _between(topology, pair)])
        chosen = min(among, key=lambda one: (Fraction(int(load[one[1]]) + 1) / one[0], one[1]))[1]
        load[chosen] += 1
        return chosen

    found = tuple(tuple(tuple(link(pair) for pair in route) for route in ring) for ring in routes)
    rate = min(topology.bandwidth(one) / int(load[one]) for one in np.flatnonzero(load).tolist())
    return found, rate
