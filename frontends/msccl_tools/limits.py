"""Limits that several links share, as switches.

A link that several limits hold passes their switches one after another, those with the fewest sources first. A switch
that only passes on is left out, and switches with all links between each other become one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..importing.json_fields import Fields
    from ..importing.model import Draft

__all__ = ["Limit", "network_of_limits"]

Link = tuple[int, int]


class Limit(NamedTuple):
    """All links from ``sources`` to ``destinations`` carry ``bandwidth`` together; ``number`` counts in the file."""

    number: int
    name: str
    sources: frozenset[int]
    destinations: frozenset[int]
    bandwidth: Fraction


#: a rank, the entry of a limit, or its exit
Vertex = tuple[str, int]


def network_of_limits(
    draft: Draft, names: Sequence[str], links: Mapping[Link, Fraction], limits: Sequence[Limit], fields: Fields
) -> None:
    """Add the links to a draft that has the ranks ``names``, and the switches of the limits.

    Raises CollcError with C0986 for a limit that no switch can express: it would join ranks that have no link, or give
    links more bandwidth than they have.
    """
    binding = [limit for limit in limits if limit.bandwidth < _held(links, limit)]
    chains = {link: _chain(link, binding) for link in links}
    edges = _edges(links, chains, limits)
    for limit in limits:
        if limit not in binding:
            message = f"ignored the switch `{limit.name}`: its links have no more bandwidth than it allows"
            draft.warn("C0942", message, fields.place("switches", limit.number))
    _check_limits(links, chains, limits, edges, fields)
    _check_reach(names, links, limits, edges, fields)
    fields.require()
    _add(draft, names, _with_hubs(_without_wires(edges)), limits)


def _held(links: Mapping[Link, Fraction], limit: Limit) -> Fraction:
    """Return the bandwidth of all links that a limit holds."""
    held = (bandwidth for (a, b), bandwidth in links.items() if a in limit.sources and b in limit.destinations)
    return sum(held, Fraction(0))


def _chain(link: Link, limits: Sequence[Limit]) -> tuple[int, ...]:
    """Return the limits that hold a link, from its source to its destination."""
    a, b = link
    found = [limit for limit in limits if a in limit.sources and b in limit.destinations]
    found.sort(key=lambda limit: (len(limit.sources), -len(limit.destinations), limit.number))
    return tuple(limit.number for limit in found)


def _passed(link: Link, chain: Sequence[int]) -> list[Vertex]:
    """Return the vertices that a link passes."""
    inner = [(side, number) for number in chain for side in ("in", "out")]
    return [("rank", link[0]), *inner, ("rank", link[1])]


def _pairs(vertices: Sequence[Vertex]) -> list[tuple[Vertex, Vertex]]:
    return list(pairwise(vertices))


Edges = dict[tuple[Vertex, Vertex], Fraction]


def _edges(links: Mapping[Link, Fraction], chains: Mapping[Link, Sequence[int]], limits: Sequence[Limit]) -> Edges:
    """Return the bandwidths between vertices: of a limit its own, else the sum of the links that pass."""
    bandwidths = {limit.number: limit.bandwidth for limit in limits}
    edges: Edges = defaultdict(Fraction)
    for link, bandwidth in links.items():
        for a, b in _pairs(_passed(link, chains[link])):
            if a[0] == "in":
                edges[a, b] = bandwidths[a[1]]
            else:
                edges[a, b] += bandwidth
    return dict(edges)


def _check_limits(
    links: Mapping[Link, Fraction], chains: Mapping[Link, Sequence[int]], limits: Sequence[Limit], edges: Edges,
    fields: Fields,
) -> None:  # fmt: skip
    """Add a mistake for each limit by which a link would get more than its own bandwidth."""
    bandwidths = {limit.number: limit for limit in limits}
    wrong = set[int]()
    for link, bandwidth in links.items():
        chain = chains[link]
        if not chain or any(bandwidth >= bandwidths[number].bandwidth for number in chain):
            continue
        own = any(edges[pair] == bandwidth for pair in _pairs(_passed(link, chain)) if pair[0][0] != "in")
        if not own and chain[0] not in wrong:
            wrong.add(chain[0])
            fields.wrong(
                f"found the switch `{bandwidths[chain[0]].name}`, in which links have bandwidths of their own below it",
                "switches", chain[0], code="C0986",
            )  # fmt: skip


def _check_reach(
    names: Sequence[str], links: Mapping[Link, Fraction], limits: Sequence[Limit], edges: Edges, fields: Fields
) -> None:
    """Add a mistake for each first switch that would join two ranks that have no link."""
    after: dict[Vertex, list[Vertex]] = defaultdict(list)
    for a, b in edges:
        after[a].append(b)
    wrong = set[int]()
    for rank, name in enumerate(names):
        seen, pending = set[Vertex](), [("rank", rank)]
        while pending:
            for vertex in after[pending.pop()]:
                if vertex[0] != "rank" and vertex not in seen:
                    seen.add(vertex)
                    pending.append(vertex)
        for vertex in sorted(seen):
            for kind, other in after[vertex]:
                if kind == "rank" and other != rank and (rank, other) not in links and vertex[1] not in wrong:
                    wrong.add(vertex[1])
                    found = f"found the switch `{_name_of(limits, vertex[1])}`, which would join `{name}` to "
                    fields.wrong(f"{found}`{names[other]}`, and there is no link", "switches", vertex[1], code="C0986")


def _name_of(limits: Sequence[Limit], number: int) -> str:
    """Return the name of the limit with a number."""
    return next(limit.name for limit in limits if limit.number == number)


def _without_wires(edges: Edges) -> Edges:
    """Return the edges without vertices of switches that have one edge in and one out: the smaller bandwidth stays."""
    edges = dict(edges)
    into: dict[Vertex, set[Vertex]] = defaultdict(set)
    out: dict[Vertex, set[Vertex]] = defaultdict(set)
    for a, b in edges:
        into[b].add(a)
        out[a].add(b)
    for vertex in [vertex for vertex in {**into, **out} if vertex[0] != "rank"]:
        if len(into[vertex]) == 1 and len(out[vertex]) == 1:
            [a], [b] = into[vertex], out[vertex]
            if (a, b) in edges or a == b:
                continue
            edges[a, b] = min(edges.pop((a, vertex)), edges.pop((vertex, b)))
            out[a] = out[a] - {vertex} | {b}
            into[b] = into[b] - {vertex} | {a}
    return edges


def _with_hubs(edges: Edges) -> Edges:
    """Return the edges with one vertex in the place of all limits of a switch: each rank has one limit out and one in.

    The limits out of ranks lead to all limits into other ranks, and no link between is below both.
    """
    tails: dict[Vertex, list[Vertex]] = defaultdict(list)
    for a, b in edges:
        if a[0] != "rank" and b[0] != "rank":
            tails[a].append(b)
    everything = tuple(sorted({b for heads in tails.values() for b in heads}))
    members = {*tails, *everything}
    outer = {pair for pair in edges if (pair[0] in members) != (pair[1] in members)}
    inward = {b: a for a, b in outer if b in tails}
    outward = {a: b for a, b in outer if a in everything}
    is_single = len(outer) == len(members) == len(inward) + len(outward) and not set(tails) & set(everything)
    if not tails or not is_single:
        return edges
    for u in tails:
        for v in everything:
            if inward[u] == outward[v]:
                continue
            if edges.get((u, v), Fraction(0)) < min(edges[inward[u], u], edges[v, outward[v]]):
                return edges
    hub: Vertex = ("hub", 0)
    found = {pair: bandwidth for pair, bandwidth in edges.items() if not members & set(pair)}
    found.update({(inward[u], hub): edges[inward[u], u] for u in tails})
    found.update({(hub, outward[v]): edges[v, outward[v]] for v in everything})
    return found


def _add(draft: Draft, names: Sequence[str], edges: Edges, limits: Sequence[Limit]) -> None:
    """Add vertices of limits as switches, and all edges; equal ones in both directions as one cable."""
    found = {vertex for pair in edges for vertex in pair if vertex[0] != "rank"}
    shown: dict[Vertex, str] = {("rank", number): name for number, name in enumerate(names)}
    taken = {limit.name for limit in limits}
    for limit in limits:
        sides = [side for side in ("in", "out") if (side, limit.number) in found]
        for side in sides:
            name = limit.name if side == sides[0] else _unused(f"{limit.name}_out", draft, taken)
            shown[side, limit.number] = draft.switch(name)
    if ("hub", 0) in found:
        shown["hub", 0] = draft.switch(_unused("hub", draft, taken))
    order = {vertex: number for number, vertex in enumerate(shown)}
    for a, b in sorted(edges, key=lambda pair: (min(order[pair[0]], order[pair[1]]), max(map(order.__getitem__, pair)),
                                               order[pair[0]])):  # fmt: skip
        duplex = edges.get((b, a)) == edges[a, b]
        if not duplex or order[a] < order[b]:
            draft.link(shown[a], shown[b], edges[a, b], duplex=duplex)


def _unused(name: str, draft: Draft, taken: set[str]) -> str:
    """Return a name that no node and no limit has."""
    while name in draft or name in taken:
        name += "_"
    return name
