"""Networks as imported from NCCL's topology files, link by link, and what must hold of rings on any network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from collc.ir.graph.nics import Cabling
from collc.ir.topology import LinkClass, Topology

__all__ = ["GBPS", "named", "pcie_box", "ring_flaws"]

GBPS = 10**9

#: a node of 8 GPUs on four PCIe switches of two CPUs, with a NIC at the first and at the third switch: (end, end, GB/s)
_PCIE = [
    *((f"gpu{gpu}", f"pci{gpu // 2}", 16) for gpu in range(8)),
    *((f"pci{plx}", f"cpu{plx // 2}", 16) for plx in range(4)),
    ("cpu0", "cpu1", 10), ("mlx5_0", "pci0", 16), ("mlx5_1", "pci2", 16),
]  # fmt: skip


def named(edges: Sequence[tuple[str, str, float]], name: str = "net") -> Topology:
    """Return the network of duplex links between named nodes, in GB/s; nodes with ``gpu`` in their names are ranks."""
    nodes = list(dict.fromkeys(node for a, b, _ in edges for node in (a, b)))
    nodes.sort(key=lambda node: "gpu" not in node)  # stable: ranks first, in the order in which they appear
    at = {node: number for number, node in enumerate(nodes)}
    ranks = sum("gpu" in node for node in nodes)
    links = [
        (at[x], at[y], LinkClass(Fraction(speed) * GBPS)) for a, b, speed in edges for x, y in ((a, b), (b, a))
    ]  # fmt: skip
    return Topology.from_links(name, ranks, links, len(nodes) - ranks, unit="B/s", node_names=nodes)


def pcie_box(hosts: int, nic: float = 12.5) -> Topology:
    """Return nodes ``h0``, ``h1``, .. of PCIe only, joined by a fabric; a single one leads to ``fabric`` alone."""
    edges: list[tuple[str, str, float]] = []
    for host in range(hosts):
        edges += [(f"h{host}/{a}", f"h{host}/{b}", speed) for a, b, speed in _PCIE]
        edges += [(f"h{host}/mlx5_{number}", "fabric", nic) for number in range(2)]
    return named(edges, "pcie")


def ring_flaws(
    cables: Cabling, orders: Sequence[Sequence[int]], routes: Sequence[Sequence[Sequence[int]]], rate: Fraction
) -> Iterator[str]:
    """Yield what is wrong with rings: ranks, the order of boxes, routes, and links that carry too much."""
    topology, load = cables.topology, [0] * cables.topology.num_links
    for order, links in zip(orders, routes, strict=True):
        if sorted(order) != list(range(topology.num_ranks)):
            yield "a rank is missing or comes twice"
        boxes = [int(cables.box_of[rank]) for rank in order]
        if boxes != sorted(boxes):
            yield "boxes are not visited one after the other"
        for rank, other, route in zip(order, [*order[1:], order[0]], links, strict=True):
            ends = [int(topology.src[route[0]]), *(int(topology.dst[link]) for link in route)]
            if [int(topology.src[link]) for link in route] != ends[:-1] or (ends[0], ends[-1]) != (rank, other):
                yield f"the route from {rank} to {other} does not connect them"
            if any(node < topology.num_ranks for node in ends[1:-1]):
                yield f"the route from {rank} to {other} passes a rank"
            for link in route:
                load[link] += 1
    for link, count in enumerate(load):
        if count * rate > topology.bandwidth(link):
            yield f"link {link} carries too much"
