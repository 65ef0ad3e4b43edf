"""The cut that proves a bound, as nodes on its sides."""

from __future__ import annotations

from collc.ir.costs.certificate import Cut
from collc.ir.costs.cost import Cost
from collc.ir.costs.partitions import Partition
from collc.ir.frozen import frozen
from collc.ir.topology import Topology

__all__ = ["CutParts", "cut_parts"]


@frozen
class CutParts:
    """The ``parts`` of nodes between which links are counted, and the cut in words; None if every rank is a part."""

    parts: tuple[tuple[int, ...], ...] | None
    text: str


def cut_parts(cost: Cost, topology: Topology) -> CutParts | None:
    """Return the cut of the tightest bound; None if its certificate is not a cut or a partition of nodes."""
    proof = cost.tightest.certificate
    if isinstance(proof, Cut):
        inside, nodes = proof.nodes, topology.num_nodes
        if len(inside) > nodes // 2:
            inside = tuple(sorted(set(range(nodes)).difference(inside)))
        return CutParts((tuple(inside),), proof.text)
    if isinstance(proof, Partition):
        return CutParts(None if proof.is_finest else tuple(tuple(part) for part in proof.parts), proof.text)
    return None
