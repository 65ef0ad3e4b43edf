"""Routes through relays, cut at the relays: ranks forward by receiving and sending."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from collc.ir.graph.members import Inside
from collc.ir.schedule import Routes

__all__ = ["Hops", "has_relays", "within"]

Hop = tuple[int, ...]


def within(inside: Inside, routes: Routes) -> Routes:
    """Return routes of the members' network in links of the whole network."""
    return Routes(routes.start, inside.links[routes.links])


def has_relays(inside: Inside, routes: Routes) -> bool:
    """Return whether some route passes a rank that is no member."""
    lengths = routes.lengths
    inner = [routes.links[place] for place in routes.places((lengths > 1).nonzero()[0]).tolist()]
    heads = inside.nodes[inside.topology.dst[inner]] if inner else inside.nodes[:0]
    ranks = inside.topology.num_ranks
    passed = inside.topology.dst[inner] >= ranks if inner else heads > 0
    return bool((heads[passed] < inside.whole.num_ranks).any())


@attrs.define(eq=False)
class Hops:
    """Collects routes of the whole network, each once; a hop is the links from a rank to the next rank."""

    inside: Inside
    routes: Routes
    known: dict[Hop, int] = attrs.Factory(dict)

    def of(self, route: int) -> list[tuple[int, int, int]]:
        """Return (sender, receiver, number) of each hop of a route of the members' network, in order.

        Routes may pass members, as routes of some schedulers pass ranks; they are cut at relays only.
        """
        whole, found, links = self.inside.whole, list[tuple[int, int, int]](), list[int]()
        relays = set(self.inside.relays.tolist())
        every = self.inside.links[self.routes.links_of(route)].tolist()
        for place, link in enumerate(every):
            links.append(link)
            if place == len(every) - 1 or int(whole.dst[link]) in relays:
                number = self.known.setdefault(tuple(links), len(self.known))
                found.append((int(whole.src[links[0]]), int(whole.dst[link]), number))
                links = []
        return found

    def each(self) -> list[list[tuple[int, int, int]]]:
        """Return the hops of every route."""
        return [self.of(route) for route in range(len(self.routes))]

    def numbered(self) -> Routes:
        """Return all hops so far as routes."""
        listed: Sequence[Hop] = list(self.known)
        return Routes.of(listed)
