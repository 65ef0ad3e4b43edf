"""Topology -> wires, rates, addresses and routes of the namespaces of a testbed, which are not built here."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import error
from collc.ir.topology import LinkClass, Topology

__all__ = ["MOST_NODES", "Plan", "Wire", "plan"]

#: namespaces of a testbed: MPI processes and their switches share this machine's processors
MOST_NODES = 128
#: limits of a wire in bytes per second: tc counts in bits, and above a Gbit/s processors are slower than wires
SLOWEST, FASTEST = Fraction(1000), Fraction(10**9, 8)
#: the largest delay of a wire, in seconds
LONGEST_DELAY = Fraction(1)

#: share of a one-way link's rate that its other direction has, for acknowledgements
_BACK_CHANNEL = Fraction(1, 20)


@attrs.frozen
class Wire:
    """The wire between nodes ``a`` < ``b``: one pair of devices for all links, in bytes per second each way.

    ``a_to_b`` and ``b_to_a`` sum up parallel links. Without a link in one direction, ``one_way`` is true, and that
    direction has a twentieth of the other, for the acknowledgements of TCP.
    """

    a: int
    b: int
    a_to_b: Fraction
    b_to_a: Fraction
    one_way: bool = False

    def rate(self, node: int) -> Fraction:
        """Return the bytes per second out of one of its ends."""
        return self.a_to_b if node == self.a else self.b_to_a

    def other(self, node: int) -> int:
        """Return the other end."""
        return self.b if node == self.a else self.a


@attrs.frozen(eq=False)
class Plan:
    """The plan of a testbed for a topology: a namespace for each node, a wire for each pair of nodes with links.

    ``rate`` is that of the topology's widest link (bytes per second), and other links are scaled to it; ``delay`` is
    that of every wire (seconds). ``toward[v, t]`` is the next node from v to t on a shortest path of links; v + t
    breaks ties. Packets from v to the other end of a wire always use it, even without a link in that direction.
    """

    topology: Topology
    rate: Fraction
    delay: Fraction
    wires: tuple[Wire, ...]
    toward: Array = attrs.field(repr=False)

    @property
    def num_nodes(self) -> int:
        """Namespaces of the testbed: ranks and switches."""
        return self.topology.num_nodes

    @property
    def num_ranks(self) -> int:
        """Namespaces that run a process."""
        return self.topology.num_ranks

    @property
    def hosts(self) -> list[str]:
        """The namespaces of ranks, in their order."""
        return [self.namespace(rank) for rank in range(self.num_ranks)]

    def namespace(self, node: int) -> str:
        """Return the name of a node's namespace, unique in the folder of the network."""
        return f"n{node}"

    def address(self, node: int) -> str:
        """Return the address on the network, the same on all the node's wires."""
        return f"10.77.{(node + 1) >> 8}.{(node + 1) & 255}"

    def control_address(self, node: int) -> str:
        """Return the address on the bridge over which launchers start ranks; it carries nothing else."""
        return f"10.99.{(node + 1) >> 8}.{(node + 1) & 255}"

    def hardware_address(self, node: int, peer: int) -> str:
        """Return the address of the device in ``node`` toward ``peer``, fixed, so that no node has to ask for it."""
        return f"02:cc:{node >> 8:02x}:{node & 255:02x}:{peer >> 8:02x}:{peer & 255:02x}"

    @cached_property
    def wires_of(self) -> tuple[tuple[Wire, ...], ...]:
        """The wires of every node."""
        found: list[list[Wire]] = [[] for _ in range(self.num_nodes)]
        for wire in self.wires:
            found[wire.a].append(wire)
            found[wire.b].append(wire)
        return tuple(tuple(wires) for wires in found)

    def path(self, src: int, dst: int) -> list[int]:
        """Return the nodes that packets from one rank to another pass, both included."""
        nodes = [src, dst] if (src, dst) in self._link else [src]
        while nodes[-1] != dst:
            nodes.append(int(self.toward[nodes[-1], dst]))
        return nodes

    @cached_property
    def network(self) -> Topology:
        """The wires as a topology in bytes per second, two links each, in the order of ``wires``."""
        kinds = sorted({w.a_to_b for w in self.wires} | {w.b_to_a for w in self.wires})
        ends = [(w.a, w.b, w.a_to_b) for w in self.wires], [(w.b, w.a, w.b_to_a) for w in self.wires]
        links = [link for both in zip(*ends, strict=True) for link in both]
        return Topology(
            self.topology.name, self.num_ranks, [a for a, _, _ in links], [b for _, b, _ in links],
            self.topology.num_switches, [kinds.index(rate) for _, _, rate in links],
            tuple(LinkClass(rate, self.delay) for rate in kinds), "B/s",
        )  # fmt: skip

    def links(self, src: int, dst: int) -> list[int]:
        """Return the links of :attr:`network` that packets from one rank to another take."""
        nodes = self.path(src, dst)
        return [self._link[hop] for hop in pairwise(nodes)]

    @cached_property
    def _link(self) -> dict[tuple[int, int], int]:
        net = self.network
        return {(a, b): i for i, (a, b) in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True))}


def plan(topology: Topology, rate: Fraction | int, delay: Fraction | int = 0) -> Plan:
    """Return the plan of a topology whose widest link has ``rate`` bytes per second, with ``delay`` seconds a wire.

    Raises C0075 for a network of too many nodes or too few ranks, impossible rates, and C0301 if a rank cannot
    reach another.
    """
    rate, delay = Fraction(rate), Fraction(delay)
    if not 2 <= topology.num_ranks <= topology.num_nodes <= MOST_NODES:
        raise error(
            "C0075", f"a testbed has 2 to {MOST_NODES} nodes, ranks and switches; `{topology.name}` has "
            f"{topology.num_ranks} ranks and {topology.num_switches} switches",
        )  # fmt: skip
    topology.require_connected("a testbed")
    if not 0 <= delay <= LONGEST_DELAY:
        raise error("C0075", f"links have a delay of 0 to {LONGEST_DELAY} s, found {float(delay):g} s")
    wires = tuple(_wires(topology, rate))
    for value in {r for wire in wires for r in (wire.a_to_b, wire.b_to_a)}:
        if not SLOWEST <= value <= FASTEST:
            raise error(
                "C0075", f"a wire of {float(value) * 8 / 1e6:g} Mbit/s is not one that can be limited: "
                f"{float(SLOWEST) * 8 / 1e6:g} to {float(FASTEST) * 8 / 1e6:g} Mbit/s",
                hint="at 20 to 40 Mbit/s a link, processors are fast enough",
            )  # fmt: skip
    return Plan(topology, rate, delay, wires, _toward(topology))


def _wires(topology: Topology, rate: Fraction) -> Iterator[Wire]:
    """Sum up parallel links; self-loops carry nothing."""
    widest = max(kind.bandwidth for kind in topology.classes)
    sums: dict[tuple[int, int], Fraction] = {}
    for link, (a, b) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        if a != b:
            sums[a, b] = sums.get((a, b), Fraction(0)) + topology.bandwidth(link) / widest * rate
    for a, b in sorted({(min(pair), max(pair)) for pair in sums}):
        there, back = sums.get((a, b)), sums.get((b, a))
        one_way = there is None or back is None
        slow = max((there or back or rate) * _BACK_CHANNEL, SLOWEST)
        yield Wire(a, b, there or slow, back or slow, one_way)


def _toward(topology: Topology) -> Array:
    """Return the next node on a shortest route at ``[from, to]``; -1 for a node itself and without a route."""
    n, hops = topology.num_nodes, topology.distances
    near: list[set[int]] = [set() for _ in range(n)]
    for a, b in zip(topology.src.tolist(), topology.dst.tolist(), strict=True):
        if a != b:
            near[a].add(b)
    result = np.full((n, n), -1, dtype=np.int64)
    for v in range(n):
        for t in range(n):
            if v != t and hops[v, t] > 0:
                neighbors = [w for w in sorted(near[v]) if hops[w, t] == hops[v, t] - 1]
                result[v, t] = neighbors[(v + t) % len(neighbors)]
    return result
