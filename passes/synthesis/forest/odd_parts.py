"""What the odd parts of a cluster carry: trees of their own ranks, and trees along which the others' data enter.

Every link to the fabric is divided first: what enters and leaves needs a fixed number of trees, in proportion to
bandwidth. Odd parts use the rest to reach each other. What enters does so in equal trees for all alike boxes, so links
hold as many of these as all boxes need together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .capacities import flow_network
from .odd_boxes import OddBoxes
from .odd_orientation import Shares, oriented
from .packing import height, pack
from .routes import Routed, routed
from .supplies import Supply
from .switches import removals

__all__ = ["OddParts", "bandwidth", "packed_parts"]

#: how many times the share of the odd ranks' own data the links inside odd parts hold of these
_SHARES = (1, 2, 4, 8)


@attrs.frozen(eq=False)
class OddParts:
    """Trees of odd ranks within the odd parts, and those along which data enter.

    Ranks of ``own`` and ``entering`` are numbered in order of the odd ranks; the next rank of ``entering`` is the
    outside. ``leaving`` has the rank from which each tree of an odd rank goes on to the alike boxes.
    """

    own: Routed | None
    entering: Routed
    leaving: tuple[Array, ...]


def packed_parts(odd: OddBoxes, held: Sequence[int], supply: Supply) -> OddParts | None:
    """Return the trees of the odd ranks, and as many for every place of the alike boxes; None if they do not fit.

    ``held`` has the trees that every link holds.
    """
    enter, leave = dict[int, int](), dict[int, int]()
    for part in odd.parts:
        own = sum(supply.odd[odd.place(v)] for v in part)
        down, up = ({v: links[v] for v in part if v in links} for links in (odd.down, odd.up))
        enter |= _divided({v: odd.topology.bandwidth(link) for v, link in down.items()}, supply.entering(odd))
        room = {v: odd.topology.bandwidth(link) for v, link in up.items()}
        if supply.both:  # what enters takes its part of the same links
            room = {v: Fraction(max(held[link] // odd.alike.count - enter[v], 0)) for v, link in up.items()}
        if own and not any(room.values()):
            return None
        leave |= _divided(room, own) if own else dict.fromkeys(room, 0)
    for times in _SHARES:
        share = times * Fraction(sum(supply.odd), supply.total(odd))
        if share >= 1:
            return None
        for shares in _shares(odd, held, supply, share, enter):
            found = _Division(odd, held, supply, shares, enter, leave).packed()
            if found is not None:
                return found
    return None


def _shares(
    odd: OddBoxes, held: Sequence[int], supply: Supply, share: Fraction, enter: dict[int, int]
) -> Iterator[Shares]:
    """Yield divisions of the links inside: trees of odd ranks have a ``share`` of each.

    Trees that are used both ways share a link and its reverse: first half and half, so that links carry as much in one
    direction as in the other.
    """
    links, boxes = links_inside(odd), odd.alike.count
    room = {link: held[link] // 2 if supply.both else held[link] for link in links}
    own = {link: _least(room[link], share, boxes) for link in links}
    yield Shares({link: (room[link] - own[link]) // boxes for link in links}, own)
    if supply.both:
        yield from oriented(odd, held, supply, enter, links, share)


def _least(held: int, share: Fraction, boxes: int) -> int:
    """Return the least part of at least a share that leaves a multiple of the number of boxes: nothing is lost."""
    rest = held % boxes
    return min(held, rest + -(-max(int(held * share) - rest, 0) // boxes) * boxes)


class _Division:
    """Links of the odd parts divided into what their own trees take, and whole trees for all alike boxes."""

    def __init__(
        self, odd: OddBoxes, held: Sequence[int], supply: Supply, shares: Shares, enter: dict[int, int],
        leave: dict[int, int],
    ) -> None:  # fmt: skip
        self.odd, self.held, self.supply, self.boxes = odd, held, supply, odd.alike.count
        self.links, self.enter, self.leave = links_inside(odd), dict(enter), leave
        self.whole, self.own = dict(shares.entering), dict(shares.own)
        self._let_enter(supply.entering(odd))

    def packed(self) -> OddParts | None:
        """Return the trees; None if they do not fit."""
        left = self._left()
        own = None if left is None or not self._is_needed else _own(self.odd, left, self.supply)
        if left is None or (own is None and self._is_needed):
            return None
        entering = _entering(self.odd, self.whole, self.enter, self.supply)
        return None if entering is None else OddParts(own, entering, _leaving(self.odd, self.leave, self.supply))

    @property
    def _is_needed(self) -> bool:
        return len(self.odd.ranks) > 1 and any(self.supply.odd)

    def _let_enter(self, trees: int) -> None:
        """Let every rank get this number of whole trees: also from its link to the fabric, then from own trees."""
        into: dict[int, list[int]] = {}
        for link in self.links:
            into.setdefault(int(self.odd.topology.dst[link]), []).append(link)
        for v in self.odd.ranks:
            links = into.get(v, [])
            short = trees - self.enter.get(v, 0) - sum(self.whole[link] for link in links)
            if short > 0 and v in self.enter:
                more = max(min(short, self._spare(v, inward=True) // self.boxes), 0)
                self.enter[v] += more
                short -= more
            while short > 0 and links:
                link = max(links, key=lambda i: (self.own[i], -i))
                if self.own[link] < self.boxes:
                    break
                self.own[link] -= self.boxes
                self.whole[link] += 1
                short -= 1

    def _spare(self, v: int, inward: bool) -> int:
        """Return the trees that a link to the fabric holds besides those that enter or leave."""
        odd, boxes = self.odd, self.boxes
        enter, leave = boxes * self.enter.get(v, 0), boxes * self.leave.get(v, 0)
        if self.supply.both:
            return self.held[odd.down[v]] - enter - leave
        return self.held[odd.down[v]] - enter if inward else self.held[odd.up[v]] - leave

    def _left(self) -> dict[int, int] | None:
        """Return what own trees have of every link, alike in both directions of the fabric; None if less than 0."""
        odd = self.odd
        spare = [self._spare(v, True) for v in odd.down] + [self._spare(v, False) for v in odd.up]
        if min(spare) < 0:
            return None
        if self.supply.both:
            return self._left_of_both()
        both = {v: min(self._spare(v, True), self._spare(v, False)) for v in odd.down if v in odd.up}
        return self.own | {link: least for v, least in both.items() for link in (odd.up[v], odd.down[v])}

    def _left_of_both(self) -> dict[int, int] | None:
        """Return what own trees have of every link: of the fabric what odd parts need to reach each other."""
        odd, found, total = self.odd, dict(self.own), sum(self.supply.odd)
        for part in odd.parts:
            own = sum(self.supply.odd[odd.place(v)] for v in part)
            spare = {v: Fraction(self._spare(v, True)) for v in part if v in odd.down}
            if not sum(spare.values()):
                if total > own or own * (len(odd.parts) - 1):
                    return None
                continue
            into, out = _divided(spare, total - own), _divided(spare, own * (len(odd.parts) - 1))
            if any(into[v] + out[v] > room for v, room in spare.items()):
                return None
            found |= {odd.down[v]: into[v] for v in spare} | {odd.up[v]: out[v] for v in spare}
        return found


def _divided(room: dict[int, Fraction], total: int) -> dict[int, int]:
    """Divide a number of trees among ranks in proportion, in whole trees."""
    width = sum(room.values(), Fraction(0))
    exact = {v: total * amount / width for v, amount in room.items()}
    found = {v: int(amount) for v, amount in exact.items()}
    rest = sorted(exact, key=lambda v: (found[v] - exact[v], v))
    for v in rest[: total - sum(found.values())]:
        found[v] += 1
    return found


def _own(odd: OddBoxes, held: dict[int, int], supply: Supply) -> Routed | None:
    """Return the trees of every odd rank to all others, in the links that hold some."""
    topology, ranks = odd.topology, odd.ranks
    nodes = [*ranks, *odd.switches, odd.fabric]
    number = {node: place for place, node in enumerate(nodes)}
    links = [*held]
    ends = [(number[int(topology.src[link])], number[int(topology.dst[link])]) for link in links]
    found = _trees(_network(topology, number, len(ranks), ends), [*held.values()], supply.odd)
    return None if found is None else _over(found, links)


def _entering(odd: OddBoxes, held: dict[int, int], enter: dict[int, int], supply: Supply) -> Routed | None:
    """Return the trees of every place, from outside to all odd ranks; links from outside are numbered -1 - rank."""
    topology, ranks = odd.topology, odd.ranks
    number = {node: place for place, node in enumerate([*ranks, -1, *odd.switches])}
    links = [*held]
    ends = [(number[int(topology.src[link])], number[int(topology.dst[link])]) for link in links]
    ends += [(len(ranks), number[v]) for v in enter]
    network = _network(topology, number, len(ranks) + 1, ends)
    amounts = [*held.values(), *enter.values()]
    found = _trees(network, amounts, [0] * len(ranks) + [supply.entering(odd)])
    return None if found is None else _over(found, [*links, *(-1 - number[v] for v in enter)])


def links_inside(odd: OddBoxes) -> list[int]:
    """Return the links inside the odd parts."""
    topology = odd.topology
    own = np.zeros(topology.num_nodes, dtype=bool)
    own[[*odd.ranks, *odd.switches]] = True
    found: list[int] = np.flatnonzero(own[topology.src] & own[topology.dst]).tolist()
    return found


def _network(topology: Topology, number: dict[int, int], ranks: int, ends: Sequence[tuple[int, int]]) -> Topology:
    tails, heads = zip(*ends, strict=True)
    return Topology(f"odd parts of {topology.name}", ranks, np.array(tails), np.array(heads), len(number) - ranks)


def _trees(network: Topology, held: Sequence[int], supply: Sequence[int]) -> Routed | None:
    """Return trees within the capacities of links; None if there are none, or if a switch is not balanced."""
    balance = [0] * network.num_nodes
    for tail, head, amount in zip(network.src.tolist(), network.dst.tolist(), held, strict=True):
        balance[tail] -= amount
        balance[head] += amount
    ranks = network.num_ranks
    flow = flow_network(network, list(held))
    if any(balance[ranks:]) or flow.violated([*supply, *[0] * network.num_switches], range(ranks)):
        return None
    forests = [(pack(ranks, one.capacity, supply), one) for one in removals(flow, ranks, supply, network.names)]
    trees, logical = min(forests, key=lambda found: (height(found[0]), len(found[0])))
    return routed(trees, logical, network, held)


def _over(trees: Routed, links: Sequence[int]) -> Routed:
    """Return the trees over the links with these numbers."""
    chosen = np.array(links, dtype=np.int64)[trees.routes.links.astype(np.int64)]
    return attrs.evolve(trees, routes=Routes(trees.routes.start, chosen))


def _leaving(odd: OddBoxes, leave: dict[int, int], supply: Supply) -> tuple[Array, ...]:
    """Return for every odd rank the rank from which each of its trees leaves: itself as often as its link permits."""
    sent = dict(zip(odd.ranks, supply.odd, strict=True))
    own = {v: min(sent[v], leave.get(v, 0)) for v in odd.ranks}
    found = dict[int, Array]()
    for part in odd.parts:
        spare = np.repeat(np.array(part), [leave.get(v, 0) - own[v] for v in part])
        for v in part:
            other = sent[v] - own[v]
            found[v] = np.concatenate([np.full(own[v], v), spare[:other]])
            spare = spare[other:]
    return tuple(found[v] for v in odd.ranks)


def bandwidth(topology: Topology, links: Sequence[int]) -> Fraction:
    """Return the bandwidth of some links together."""
    return sum((topology.bandwidth(link) for link in links), Fraction(0))
