"""Certificates of bounds of the network of members, in numbers of the whole network."""

from __future__ import annotations

import attrs

from ..collective import Collective
from ..graph.members import Inside
from .certificate import Bound, Cut, Prices
from .partitions import Partition
from .readable import cut, named_partition

__all__ = ["outside"]


def outside(small: Bound, found: Inside, collective: Collective) -> Bound:
    """Return a bound of the members' network with its certificate in numbers and names of the whole network.

    ``collective`` is that of the members in the whole network.
    """
    proof, name = small.certificate, small.name
    if isinstance(proof, Cut):
        inner = proof.nodes
        if proof.inward:
            inner = tuple(sorted(set(range(found.topology.num_nodes)).difference(inner)))
        proof = cut(found.whole, found.outside(inner), proof.carries, collective)
        name = proof.text
    elif isinstance(proof, Partition):
        parts = tuple(sorted(tuple(sorted(found.nodes[list(part)].tolist())) for part in proof.parts))
        proof = named_partition(found.whole, attrs.evolve(proof, parts=parts), "member")
        name = proof.text
    elif isinstance(proof, Prices):
        proof = attrs.evolve(proof, prices=_prices(proof.prices, found))
    return attrs.evolve(small, name=name, certificate=proof)


def _prices(prices: tuple[int, ...], found: Inside) -> tuple[int, ...]:
    whole = [0] * found.whole.num_links
    for number, link in enumerate(found.links.tolist()):
        whole[link] = prices[number % len(prices)]
    return tuple(whole)
