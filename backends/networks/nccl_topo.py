"""XML of NCCL's topology dump: the CPUs, bridges, GPUs, NVLinks or xGMI links, and NICs of one machine.

NCCL has no bandwidths in the file but those of NICs: it looks them up by the speed and width of a PCIe link, the
compute capability of a GPU, the model of a CPU. So the writer finds a machine that has the network's bandwidths, and
refuses a network if there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from collc.ir.diagnostic import CollcError
from collc.ir.graph.boxes import boxes_of
from collc.ir.shown import clipped

from ..nccl_topo.elements import Element, element, require_limits, text_of
from ..nccl_topo.figures import NVLINKS, XGMIS, cpu_class, pcie_link
from ..nccl_topo.machine import Bridge, Cpu, Device, Machine, Neighbours, kinds_of, named_machine
from .values import decimal_text, refused

if TYPE_CHECKING:
    from collc.ir.topology import Topology

__all__ = ["write"]

_FORM = "NCCL's topology file"
_NVSWITCH = "0x068000"
_GPU = "0x030200"
_NIC = "0x020000"
_BRIDGE = "0x060400"
#: the target of links to an NVSwitch that has no bus id, as NCCL prints it
_NO_ID = "fffffff:ff:ff.0"

Rates = dict[tuple[int, int], Fraction]


def write(topology: Topology) -> str:
    """Return the XML; raise C0780 for a network that NCCL's file cannot say, C0781 for one beyond its limits.

    Without CPUs among the nodes, all GPUs hang from one CPU, which the network lacks; the first line of the file says
    so.
    """
    if topology.unit != "B/s":
        raise _refused("its links have no bandwidth in B/s")
    root, comment = _Writer(topology).system()
    require_limits(root)
    return text_of(root, comment)


def _refused(reason: str) -> CollcError:
    return refused(_FORM, reason, "`--as nodelink` writes any network")


class _Writer:
    """The elements of one network, and the GB/s between nodes that they say."""

    def __init__(self, topology: Topology) -> None:
        self.topology, self.kinds, self.links = topology, kinds_of(topology), Neighbours(topology)
        self.expressed: Rates = {}
        self.fabrics = [node for node, kind in enumerate(self.kinds) if kind == "fabric"]
        named = named_machine(topology)
        self.is_named, self.machine = named is not None, named or self._bare()
        if sum(kind == "nvswitch" for kind in self.kinds) > 1:
            raise _refused("it has several NVSwitches, which NCCL takes for one")
        self.bus_ids = self._bus_ids()
        self.link_of, self.numbers = self._link_kind(), self._numbers()

    def system(self) -> tuple[Element, str]:
        """Return the root, and the comment before it."""
        cpus = [self._cpu(cpu) for cpu in self.machine.cpus]
        self._join()
        self._require_whole()
        comment = "" if self.is_named else "the network has no CPUs and bus ids: these are invented"
        return element("system", {"version": 1}, cpus), comment

    # ---- what the network is

    def _bare(self) -> Machine:
        if any(kind in ("cpu", "pci") for kind in self.kinds):
            raise _refused("its CPUs and PCIe switches are no tree")
        boxes = boxes_of(self.topology)
        if boxes is not None:
            raise _refused(f"it has {len(boxes)} boxes, and the file is for one machine")
        if any(kind in ("nic", "fabric") for kind in self.kinds):
            raise _refused("it has NICs but no CPUs that they hang from")
        ranks = range(self.topology.num_ranks)
        return Machine((Cpu(0, "", tuple(Device("gpu", rank) for rank in ranks)),))

    def _bus_ids(self) -> dict[int, str]:
        """Return the bus id of every device: that of its name, else one that no other has."""
        taken = {one.bus_id.lower() for _, one in self.machine.walk() if one.bus_id}
        free = (f"0000:{bus:02x}:00.0" for bus in range(1, 256))
        fresh = (one for one in free if one not in taken)
        return {one.node: one.bus_id or next(fresh, "") for one in self.machine.devices}

    def _numbers(self) -> list[int]:
        """Return the numbers of the GPUs: those of names such as ``gpu3``, else their ranks."""
        ranks = range(self.topology.num_ranks)
        found = [re.fullmatch(r"gpu(\d{1,4})", self.topology.names[rank].rpartition("/")[2]) for rank in ranks]
        named = [int(match[1]) for match in found if match is not None]
        return named if sorted(set(named)) == sorted(named) and len(named) == len(ranks) else list(ranks)

    def _link_kind(self) -> tuple[str, Mapping[str, object], Fraction]:
        """Return the element of links between GPUs, the attributes of the GPUs, and the GB/s of one such link."""
        ranks = range(self.topology.num_ranks)
        rates = {rate for a in ranks for b, rate in self.links[a].items() if self.kinds[b] in ("gpu", "nvswitch")}
        direct = all(kind != "nvswitch" for kind in self.kinds)
        known: list[tuple[str, Mapping[str, object], Fraction]] = [
            ("nvlink", {"sm": sm}, rate) for sm, rate in NVLINKS.items()
        ]
        known += [("xgmi", {"gcn": gcn}, rate) for gcn, rate in XGMIS.items()] * direct
        if not rates:
            return known[0]
        fitting = [one for one in known if all((rate / one[2]).denominator == 1 for rate in rates)]
        if not fitting:
            listed = ", ".join(f"{decimal_text(rate) or rate} GB/s" for rate in sorted(rates)[:3])
            raise _refused(f"links of {listed} between GPUs are no multiple of a link that NCCL knows")
        return min(fitting, key=lambda one: sum(rate / one[2] for rate in rates))

    # ---- elements

    def _cpu(self, cpu: Cpu) -> Element:
        attributes = cpu_class(self.machine.joint)
        if attributes is None:
            raise _refused(f"no CPU that NCCL knows has links of {self.machine.joint} GB/s")
        above = next((node for node, name in enumerate(self.topology.names) if self._is_cpu(node, cpu, name)), None)
        children = [self._below(one, above) for one in cpu.children]
        return element("cpu", {"numaid": cpu.numa, "affinity": cpu.affinity or None, **attributes}, children)

    def _is_cpu(self, node: int, cpu: Cpu, name: str) -> bool:
        return self.kinds[node] == "cpu" and int("".join(filter(str.isdigit, name.rpartition("/")[2]))) == cpu.numa

    def _below(self, one: Bridge | Device, above: int | None) -> Element:
        node = one.node
        assert node is not None, "bridges come from nodes of the network"
        if isinstance(one, Device) and above is not None and self._is_without_pcie(one, above):
            self._express(above, node, self.links[above][node])
            return self._nic(node)
        speed = self._pcie(one, node, above)
        if isinstance(one, Bridge):
            children = [self._below(child, node) for child in one.children]
            if children and all(child.name == "nic" for child in children):  # a card with several ports
                ports = element("nic", {}, [port for child in children for port in child.children])
                return element("pci", {"busid": one.bus_id, "class": _NIC, **speed}, [ports])
            return element("pci", {"busid": one.bus_id, "class": _BRIDGE, **speed}, children)
        kind, content = (_GPU, self._gpu(node)) if one.kind == "gpu" else (_NIC, self._nic(node))
        return element("pci", {"busid": self.bus_ids[node], "class": kind, **speed}, [content])

    def _is_without_pcie(self, one: Device, above: int) -> bool:
        """Return whether a NIC hangs from a CPU or bridge as fast as it is: no PCIe link of it is known."""
        rate = self.links[above][one.node]
        outward = [self.links[one.node][other] for other in self.links[one.node] if self.kinds[other] == "fabric"]
        return one.kind == "nic" and outward == [rate] and pcie_link(rate) is None

    def _pcie(self, one: Bridge | Device, node: int, above: int | None) -> Mapping[str, object]:
        if one.rate is None or above is None:
            return {}
        found = pcie_link(one.rate)
        if found is None:
            raise _refused(f"no PCIe link has the {decimal_text(one.rate) or one.rate} GB/s of "
                           f"`{clipped(self.topology.names[node])}`")  # fmt: skip
        self._express(above, node, one.rate)
        return {"link_speed": f"{found[0]} GT/s", "link_width": found[1]}

    def _gpu(self, node: int) -> Element:
        name, about, rate = self.link_of
        children = list(self._gpu_links(node, name, rate))
        return element("gpu", {"dev": self.numbers[node], **about, "rank": node, "gdr": 1}, children)

    def _gpu_links(self, node: int, name: str, rate: Fraction) -> Iterator[Element]:
        for other, total in sorted(self.links[node].items()):
            if self.kinds[other] not in ("gpu", "nvswitch"):
                continue
            count = int(total / rate)
            switch = self.kinds[other] == "nvswitch"
            target, kind = (_NO_ID, _NVSWITCH) if switch else (self.bus_ids[other], _GPU)
            self.expressed[node, other] = rate * count
            if switch:
                self.expressed[other, node] = rate * count
            yield element(name, {"target": target, "count": count, "tclass": kind})

    def _nic(self, node: int) -> Element:
        outward = [other for other in self.links[node] if self.kinds[other] == "fabric"]
        name = self.topology.names[node]
        if len(outward) != 1:
            raise _refused(f"the NIC `{clipped(name)}` has {len(outward)} links to the fabric, not one")
        fabric = outward[0]
        rate = self.links[node][fabric]
        speed, latency = rate * 8000, decimal_text(self._latency(node, fabric) * 10**6)
        if speed.denominator != 1 or latency is None:
            raise _refused(f"speed or latency of the NIC `{clipped(name)}` is no decimal")
        self._express(node, fabric, rate)
        nics = [one.node for one in self.machine.devices if one.kind == "nic"]
        number = nics.index(node)
        attributes = {
            "name": name.rpartition("/")[2], "dev": number, "speed": int(speed), "port": 1, "latency": latency,
            "guid": f"0x{number + 1:x}", "maxconn": 131072, "gdr": 1, **self._rail(fabric),
        }  # fmt: skip
        return element("nic", {}, [element("net", attributes)])

    def _rail(self, fabric: int) -> Mapping[str, object]:
        """Return the attribute that tells fabrics apart, by names such as ``fabric/rail0``."""
        if len(self.fabrics) == 1:
            return {}
        for word in ("rail", "plane"):
            number = self.topology.names[fabric].removeprefix(f"fabric/{word}")
            if number.isdecimal():
                return {word: int(number)}
        raise _refused("its NICs are on several fabrics, which are not called `fabric/rail0`, `fabric/rail1`, ..")

    # ---- nothing is lost

    def _express(self, a: int, b: int, rate: Fraction) -> None:
        self.expressed[a, b] = self.expressed[b, a] = rate

    def _join(self) -> None:
        """Note the links between CPUs, which follow from their model."""
        cpus = [node for node, kind in enumerate(self.kinds) if kind == "cpu"]
        for a in cpus:
            for b in cpus:
                if a != b and self.machine.joint is not None:
                    self.expressed[a, b] = self.machine.joint

    def _latency(self, a: int, b: int) -> Fraction:
        topology = self.topology
        ends = zip(topology.src.tolist(), topology.dst.tolist(), strict=True)
        return next(topology.latency(link) for link, pair in enumerate(ends) if pair == (a, b))

    def _require_whole(self) -> None:
        """Raise C0780 unless the elements say every link with its bandwidth, and no other."""
        topology = self.topology
        for link, (a, b) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
            names = f"`{clipped(topology.names[a])}` to `{clipped(topology.names[b])}`"
            if self.expressed.get((a, b)) != self.links[a].get(b):
                raise _refused(f"the link from {names} has no place in it")
            outward = {self.kinds[a], self.kinds[b]} == {"nic", "fabric"}
            if topology.latency(link) and not outward:
                raise _refused(f"the link from {names} has a latency, and only those of NICs have one")
            if outward and topology.latency(link) != self._latency(b, a):
                raise _refused(f"the link from {names} and its reverse differ in latency")
        extra = [pair for pair in self.expressed if pair[1] not in self.links[pair[0]]]
        if extra:
            a, b = extra[0]
            raise _refused(f"there is no link from `{clipped(topology.names[a])}` to `{clipped(topology.names[b])}`")
