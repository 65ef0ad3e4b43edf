"""The single faults of a network, and the names of the files for them, which a launcher can compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from urllib.parse import quote

import numpy as np

from collc.frontends.coll.faults import Fault
from collc.ir.arrays import Array
from collc.ir.frozen import frozen
from collc.ir.node_names import split_name
from collc.ir.topology import Topology

__all__ = ["SingleFault", "fault_file", "orbits", "single_faults"]

#: what joins the two ends of a link in the name of a file
_DUPLEX, _SIMPLEX = "--", "-to-"


@frozen
class SingleFault:
    """A fault of one node, or of the links between two ``nodes``: of both directions (``duplex``), or of one."""

    fault: Fault
    nodes: tuple[int, ...]
    duplex: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What distinguishes it from the others of a network."""
        return self.fault.kind, self.fault.rate, tuple(sorted(self.nodes)) if self.duplex else self.nodes

    def image(self, nodes: Sequence[int]) -> tuple[object, ...]:
        """Return the key of its image under a map of nodes."""
        moved = [nodes[node] for node in self.nodes]
        return self.fault.kind, self.fault.rate, tuple(sorted(moved) if self.duplex else moved)


def single_faults(topology: Topology, factor: Fraction | None = None) -> Iterator[SingleFault]:
    """Yield every single fault: each rank gone, each switch gone, each pair of opposite links gone, and each pair with
    ``factor`` times its bandwidth if there is one. A link without a reverse link is alone. Parallel links count once.

    >>> from collc.frontends.coll import topology
    >>> [str(one.fault) for one in single_faults(topology("uniring(2)"))]
    ['without 0', 'without 1', 'without 0 <-> 1']
    """
    pairs = list(_pairs(topology))
    for node in range(topology.num_nodes):
        yield SingleFault(Fault("without", topology.node_text(node)), (node,))
    for kind, rate in [("without", ""), *([] if factor is None else [("slow", str(factor))])]:
        for a, b, duplex in pairs:
            where = f"{topology.node_text(a)} {'<->' if duplex else '->'} {topology.node_text(b)}"
            yield SingleFault(Fault("without" if kind == "without" else "slow", where, rate), (a, b), duplex)


def _pairs(topology: Topology) -> Iterator[tuple[int, int, bool]]:
    """Yield the pairs of nodes with links between them, and whether these lead both ways."""
    links = dict.fromkeys(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    for a, b in links:
        if a == b or (a > b and (b, a) in links):
            continue
        yield a, b, (b, a) in links


def orbits(faults: Sequence[SingleFault], maps: Sequence[Array], size: int) -> list[tuple[int, Array]]:
    """Return for each fault the number of its representative, and a map of the nodes that takes that fault to it.

    ``maps`` are automorphisms of the network of ``size`` nodes. Faults that they, one after the other, take to one
    another are an orbit; its representative is the first of them.

    >>> from collc.frontends.coll import topology
    >>> ring = topology("uniring(3)")
    >>> [(first, nodes.tolist()) for first, nodes in orbits(list(single_faults(ring)), [np.array([1, 2, 0])], 3)][:3]
    [(0, [0, 1, 2]), (0, [1, 2, 0]), (0, [2, 0, 1])]
    """
    number = {one.key: place for place, one in enumerate(faults)}
    listed = [one.tolist() for one in maps]
    found: dict[int, tuple[int, Array]] = {}
    for first in range(len(faults)):
        if first in found:
            continue
        found[first] = first, np.arange(size)
        front = [first]
        for at in front:  # grows
            for nodes, values in zip(maps, listed, strict=True):
                other = number[faults[at].image(values)]
                if other not in found:
                    found[other] = first, nodes[found[at][1]]
                    front.append(other)
    return [found[place] for place in range(len(faults))]


def fault_file(fault: Fault) -> str:
    """Return the name of the file for a fault of one node, or of the links between two, without suffix.

    Indices stand after points, and ``--`` joins the ends of a pair of links, ``-to-`` those of a single link. Other
    characters than letters, digits and ``_.-`` are percent-encoded, as in addresses.

    >>> [fault_file(Fault("without", where)) for where in ("gpu[3, 1] <-> ib", "gpu[7, 5]", "0 -> 1")]
    ['without-gpu.3.1--ib', 'without-gpu.7.5', 'without-0-to-1']
    >>> fault_file(Fault("slow", "gpu[3, 1] <-> ib", "1/2"))
    'slow-1of2-gpu.3.1--ib'
    """
    sign, joined = (" <-> ", _DUPLEX) if " <-> " in fault.where else (" -> ", _SIMPLEX)
    place = joined.join(_node(end) for end in fault.where.split(sign))
    rate = f"{quote(fault.rate.replace('/', 'of'), safe='')}-" if fault.rate else ""
    return f"{fault.kind}-{rate}{place}"


def _node(text: str) -> str:
    family, indices = split_name(text.strip().strip('"'))
    words: Sequence[str] = [quote(family, safe="").replace("--", "-%2D"), *map(str, indices)]
    return ".".join(words)
