"""The PCI tree of one machine: CPUs, bridges, GPUs and NICs, from the names of nodes or from the user's lists.

Networks that were read from a topology dump keep its names: ``cpu0``, ``0000:17:00.0`` or ``pci 0000:17:00.0``. NCCL's
maintainers advise to give a virtual machine this tree, bridges only, with bus ids as the machine sees them; bridges
that it does not show get ids that no device has (NVIDIA/nccl, threads 1843 and nccl-tests 86).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from collc.ir.frozen import frozen

if TYPE_CHECKING:
    from collc.ir.topology import Topology

__all__ = ["BUS_ID", "Bridge", "Cpu", "Device", "Machine", "Neighbours", "bus_id_in", "kinds_of", "named_machine"]

BUS_ID = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]"
_CPU = re.compile(r"cpu[ _-]?(\d{1,4})")
_PCI = re.compile(rf"(pci[ _-])?{BUS_ID}(#\d+)?")
_NVSWITCH = re.compile(r"(nv|nvs|nvswitch)\b.*")

Kind: TypeAlias = Literal["gpu", "cpu", "pci", "nvswitch", "nic", "fabric"]


@frozen
class Device:
    """A GPU or NIC: its node, its bus id ("" if unknown), and the GB/s of its PCIe link (None if unknown)."""

    kind: Literal["gpu", "nic"]
    node: int
    bus_id: str = ""
    rate: Fraction | None = None


@frozen
class Bridge:
    """A PCIe switch: its bus id, the GB/s of its uplink (None if unknown), what hangs from it, and its node if any."""

    bus_id: str
    rate: Fraction | None
    children: tuple[Bridge | Device, ...]
    node: int | None = None


@frozen
class Cpu:
    """A NUMA node: its number, its mask of processors ("" if unknown), and what hangs from it."""

    numa: int
    affinity: str
    children: tuple[Bridge | Device, ...]


@frozen
class Machine:
    """One machine; ``joint`` is the GB/s between any two CPUs (None for one CPU, or if unknown)."""

    cpus: tuple[Cpu, ...]
    joint: Fraction | None = None

    def walk(self) -> Iterator[tuple[tuple[str, ...], Bridge | Device]]:
        """Yield each bridge and device with its route from the CPU: ``numa N``, then the ids of the bridges."""
        for cpu in self.cpus:
            yield from _walk(cpu.children, (f"numa {cpu.numa}",))

    @property
    def devices(self) -> tuple[Device, ...]:
        """All GPUs and NICs, in order."""
        return tuple(one for _, one in self.walk() if isinstance(one, Device))


def _walk(
    children: Sequence[Bridge | Device], route: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Bridge | Device]]:
    for one in children:
        yield route, one
        if isinstance(one, Bridge):
            yield from _walk(one.children, (*route, one.bus_id))


def bus_id_in(name: str) -> str:
    """Return the bus id in a node's name; "" if it has none.

    >>> bus_id_in("n001/pci 0000:17:00.0"), bus_id_in("gpu[0, 3]")
    ('0000:17:00.0', '')
    """
    found = re.search(rf"(?<![0-9a-fA-F]){BUS_ID}(?![0-9a-fA-F])", name)
    return found[0] if found else ""


# ---- from names


class Neighbours:
    """The links of a network by their ends: GB/s, in all, from one node to another."""

    def __init__(self, topology: Topology) -> None:
        self.of: dict[int, dict[int, Fraction]] = {node: {} for node in range(topology.num_nodes)}
        for link, (src, dst) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
            rate = topology.bandwidth(link) / 10**9
            self.of[src][dst] = self.of[src].get(dst, Fraction(0)) + rate

    def __getitem__(self, node: int) -> dict[int, Fraction]:
        return self.of[node]


def kinds_of(topology: Topology) -> tuple[Kind, ...]:
    """Return what each node of a machine's network is, by its name, and by its links if the name does not say.

    Ranks are GPUs. A switch named by a bus id is a PCIe switch, or a NIC if it is linked to the fabric. A switch that
    is linked to GPUs alone is an NVSwitch; other switches are NICs if GPUs, CPUs or PCIe switches are linked to them,
    and else the fabric.
    """
    names = [_own(name) for name in topology.names]
    known: list[Kind | None] = ["gpu" if node < topology.num_ranks else _by_name(n) for node, n in enumerate(names)]
    links = Neighbours(topology)
    for node in range(topology.num_ranks, topology.num_nodes):
        near = {known[other] for other in links[node]}
        if known[node] == "pci" and "fabric" in near:
            known[node] = "nic"
        if known[node] is None and near and near <= {"gpu"} and len(links[node]) > 1:
            known[node] = "nvswitch"
    inside: set[Kind | None] = {"gpu", "cpu", "pci"}
    return tuple(
        kind or ("nic" if inside & {known[other] for other in links[node]} else "fabric")
        for node, kind in enumerate(known)
    )


def _own(name: str) -> str:
    """Return a node's name without its host: ``n001/mlx5_0`` is the NIC ``mlx5_0``."""
    return name if name.startswith("fabric") else name.rpartition("/")[2]


def _by_name(name: str) -> Kind | None:
    if name.startswith("fabric"):
        return "fabric"
    patterns: tuple[tuple[re.Pattern[str], Kind], ...] = ((_CPU, "cpu"), (_PCI, "pci"), (_NVSWITCH, "nvswitch"))
    return next((kind for pattern, kind in patterns if pattern.fullmatch(name)), None)


def named_machine(topology: Topology) -> Machine | None:
    """Return the machine whose CPUs and bridges are nodes; None if the names say none, or the tree is none."""
    kinds, links = kinds_of(topology), Neighbours(topology)
    cpus = [node for node, kind in enumerate(kinds) if kind == "cpu"]
    if not cpus:
        return None
    seen = set(cpus)
    trees = [_below(cpu, cpu, topology, kinds, links, seen) for cpu in cpus]
    inside = {node for node, kind in enumerate(kinds) if kind in ("gpu", "pci", "nic")}
    joints = {links[a].get(b) for a in cpus for b in cpus if a != b}
    if any(tree is None for tree in trees) or not inside <= seen or len(joints) > 1 or None in joints:
        return None
    found = [(_number(topology.names[cpu]), tree) for cpu, tree in zip(cpus, trees, strict=True) if tree is not None]
    if len({number for number, _ in found}) < len(found):
        return None
    return Machine(tuple(Cpu(number, "", tree) for number, tree in found), next(iter(joints), None))


def _number(name: str) -> int:
    found = _CPU.fullmatch(_own(name))
    assert found is not None
    return int(found[1])


def _below(
    parent: int, above: int, topology: Topology, kinds: Sequence[Kind], links: Neighbours, seen: set[int]
) -> tuple[Bridge | Device, ...] | None:
    """Return what hangs from a CPU or bridge, in the order of nodes; None if a node hangs from two."""
    children = [n for n in sorted(links[parent]) if kinds[n] in ("gpu", "pci", "nic") and n != above]
    if not seen.isdisjoint(children):
        return None
    seen.update(children)
    found = list[Bridge | Device]()
    for node in children:
        rate, bus_id = links[parent][node], bus_id_in(topology.names[node])
        kind = kinds[node]
        if kind == "gpu" or kind == "nic":
            found.append(Device(kind, node, bus_id, rate))
            continue
        inside = _below(node, parent, topology, kinds, links, seen)
        if inside is None:
            return None
        found.append(Bridge(bus_id, rate, inside, node))
    return tuple(found)
