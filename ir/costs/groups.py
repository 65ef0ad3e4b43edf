"""Certificates of bounds of the network of members, in numbers of the whole network."""

from __future__ import annotations

import attrs

from ..graph.members import Inside
from .certificate import Bound, Cut, Prices, cut
from .partitions import Partition

__all__ = ["outside"]


def outside(small: Bound, found: Inside) -> Bound:
    """Return a bound of the members' network with its certificate in numbers of the whole network."""
    proof = small.certificate
    if isinstance(proof, Cut):
        inner = proof.nodes
        if proof.inward:
            inner = tuple(sorted(set(range(found.topology.num_nodes)).difference(inner)))
        proof = cut(found.whole, found.outside(inner), proof.carries)
    elif isinstance(proof, Partition):
        parts = tuple(sorted(tuple(sorted(found.nodes[list(part)].tolist())) for part in proof.parts))
        proof = attrs.evolve(proof, parts=parts)
    elif isinstance(proof, Prices):
        proof = attrs.evolve(proof, prices=_prices(proof.prices, found))
    return attrs.evolve(small, certificate=proof)


def _prices(prices: tuple[int, ...], found: Inside) -> tuple[int, ...]:
    whole = [0] * found.whole.num_links
    for number, link in enumerate(found.links.tolist()):
        whole[link] = prices[number % len(prices)]
    return tuple(whole)
