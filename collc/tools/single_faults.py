"""The single faults of a network, and the names of the files for them, which a launcher can compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from urllib.parse import quote

from collc.frontends.coll.faults import Fault
from collc.ir.node_names import split_name
from collc.ir.topology import Topology

__all__ = ["fault_file", "single_faults"]

#: what joins the two ends of a link in the name of a file
_DUPLEX, _SIMPLEX = "--", "-to-"


def single_faults(topology: Topology, factor: Fraction | None = None) -> Iterator[Fault]:
    """Yield every single fault: each rank gone, each pair of opposite links gone, and each pair with ``factor`` times
    its bandwidth if there is one. A link without a reverse link is alone. Parallel links count once.

    >>> from collc.frontends.coll import topology
    >>> [str(fault) for fault in single_faults(topology("uniring(2)"))]
    ['without 0', 'without 1', 'without 0 <-> 1']
    """
    pairs = list(_pairs(topology))
    yield from (Fault("without", topology.node_text(rank)) for rank in range(topology.num_ranks))
    yield from (Fault("without", pair) for pair in pairs)
    if factor is not None:
        yield from (Fault("slow", pair, str(factor)) for pair in pairs)


def _pairs(topology: Topology) -> Iterator[str]:
    """Yield the pairs of nodes with links between them, as the language writes these links."""
    links = dict.fromkeys(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    for a, b in links:
        if a == b or (a > b and (b, a) in links):
            continue
        yield f"{topology.node_text(a)} {'<->' if (b, a) in links else '->'} {topology.node_text(b)}"


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
