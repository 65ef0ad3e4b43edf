"""How the links inside odd parts are divided between their two directions, for trees that are used in both.

Half and half is enough where all ranks have much of them. A rank that has lost links is a leaf of most trees: more has
to enter it than to leave it. How much enters and leaves every rank at least is known, so the division is a flow: what a
link holds goes to the ends that it enters. Of all such flows, one that is closest to halves is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import attrs

from .odd_boxes import OddBoxes
from .supplies import Supply

__all__ = ["Shares", "oriented"]

#: whole trees of all boxes that may enter every node beyond what it needs, if links permit
_MARGINS = (4, 2, 1, 0)


@attrs.frozen
class Shares:
    """What links inside odd parts hold in their own direction: whole trees of all boxes, and trees of odd ranks."""

    entering: dict[int, int]
    own: dict[int, int]


def oriented(
    odd: OddBoxes, held: Sequence[int], supply: Supply, enter: Mapping[int, int], links: Sequence[int], share: Fraction
) -> Iterator[Shares]:
    """Yield divisions of links, the trees of a link and its reverse together at most ``held``; best spread first.

    ``enter`` has the trees that enter at every odd rank from the ranks of one alike box, ``links`` are those inside.
    Trees of odd ranks have ``share`` of every link.
    """
    reverse = odd.topology.reverse_links
    assert reverse is not None  # trees are used in both directions only where every link has a reverse
    back = {link: int(reverse[link]) for link in links}
    ends = {link: (int(odd.topology.src[link]), int(odd.topology.dst[link])) for link in links if link < back[link]}
    switched = {link: any(end >= odd.topology.num_ranks for end in pair) for link, pair in ends.items()}
    # what enters a switch leaves it: twice as much is a whole number in both directions
    whole = {link: _even((held[link] - int(held[link] * share)) // odd.alike.count, switched[link]) for link in ends}
    rest = {link: _even(held[link] - odd.alike.count * whole[link], switched[link]) for link in ends}
    sets = _sets(odd, ends)
    sent = dict(zip(odd.ranks, supply.odd, strict=True))
    for margin in _MARGINS:
        own = _flow(odd, rest, ends, sets, sent, {part: sum(sent[v] for v in part) for part in odd.parts}, margin)
        if own is not None:
            break
    else:
        return
    for margin in _MARGINS:
        trees = dict.fromkeys(odd.parts, supply.entering(odd))
        entering = _flow(odd, whole, ends, sets, enter, trees, margin)
        if entering is not None:
            yield Shares(_both(entering, whole, back), _both(own, rest, back))


def _even(amount: int, needed: bool) -> int:
    return amount - amount % 2 if needed else amount


def _both(forth: dict[int, int], total: Mapping[int, int], back: Mapping[int, int]) -> dict[int, int]:
    """Return what links hold, and in their reverses the rest."""
    return forth | {back[link]: total[link] - amount for link, amount in forth.items()}


Sets = dict[tuple[int, ...], tuple[int, ...]]


def _sets(odd: OddBoxes, ends: Mapping[int, tuple[int, int]]) -> Sets:
    """Return single nodes and the sets joined by wider and wider links, each with the least set around it; () is all.

    These are the sets that cuts of a box are about: the links between them are narrower than those inside.
    """
    width = {link: odd.topology.bandwidth(link) for link in ends}
    whole = {frozenset(part) for part in odd.parts}
    level = {node: frozenset({node}) for node in (*odd.ranks, *odd.switches)}
    found: Sets = {}
    inside = dict(level)
    for least in sorted(set(width.values()), reverse=True):
        for link, (tail, head) in ends.items():
            if width[link] >= least and level[tail] != level[head]:
                joined = level[tail] | level[head]
                level |= dict.fromkeys(joined, joined)
        for node, small in inside.items():
            if small != level[node]:
                found[tuple(sorted(small))] = tuple(sorted(level[node]))
        inside = dict(level)
    for small in set(inside.values()):
        found[tuple(sorted(small))] = ()
    ranks = odd.topology.num_ranks
    return {
        small: () if frozenset(v for v in around if v < ranks) in whole else around
        for small, around in found.items()
        if frozenset(v for v in small if v < ranks) not in whole
    }


def _flow(
    odd: OddBoxes, held: Mapping[int, int], ends: Mapping[int, tuple[int, int]], sets: Sets, outward: Mapping[int, int],
    trees: Mapping[tuple[int, ...], int], margin: int,
) -> dict[int, int] | None:  # fmt: skip
    """Return what every link holds in its own direction; None if sets cannot have what they need.

    All ``trees`` of a part enter a set of its ranks once, those that begin or enter from the fabric there (``outward``)
    not by links: these leave it. So much enters the nodes of a set together: that, and what links inside it hold.
    """
    import networkx as nx

    graph, part_of = nx.MultiDiGraph(), {v: part for part in odd.parts for v in part}
    for link, pair in ends.items():
        graph.add_node(("link", link), demand=-held[link])
        for end in pair:
            half = held[link] // 2
            graph.add_edge(("link", link), (end,), key="half", capacity=held[link] - half, weight=0)
            graph.add_edge(("link", link), (end,), key="more", capacity=half, weight=1)
    demand = dict.fromkeys(sets, 0) | {(): sum(held.values())}
    for nodes, around in sets.items():
        here = frozenset(nodes)
        crossing = sum(held[link] for link, pair in ends.items() if len(here.intersection(pair)) == 1)
        inside = sum(held[link] for link, pair in ends.items() if here.issuperset(pair))
        ranks = [v for v in nodes if v in part_of]
        out = sum(outward.get(v, 0) for v in ranks)
        into = max(trees[part_of[ranks[0]]] - out, 0) + margin if ranks else crossing // 2
        most = crossing - out - margin if ranks else into
        if into > most:
            return None
        graph.add_edge(nodes, around, capacity=most - into, weight=0)
        demand[nodes] += into + inside
        demand[around] -= into + inside
    for nodes, amount in demand.items():
        graph.add_node(nodes, demand=amount)
    try:
        _, flow = nx.network_simplex(graph)
    except nx.NetworkXUnfeasible:
        return None
    return {link: sum(flow[("link", link)][(pair[1],)].values()) for link, pair in ends.items()}
