"""The devices of a machine in hwloc's tree: CPU packages, PCIe switches, GPUs, NICs and NVSwitches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from ..importing.figures import gigabytes
from ..importing.model import Draft
from .text import Text

if TYPE_CHECKING:
    from lxml.etree import _Element

__all__ = ["Kind", "Machine", "Node", "machine"]

_MOST_NODES = 20_000
_SPEED = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,12})?")
_BUS = re.compile(r"[0-9a-fA-F]{1,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
#: a PCIe 3.0 link of 16 lanes, as hwloc computes it
_USUAL_SPEED = "15.753846"
#: names of GPUs in programming systems, by preference; a GPU has a name in each that is installed
_SYSTEMS = ("cuda", "nvml", "rsmi", "amdsmi", "ze", "opencl")
_GPU_NAME = re.compile(rf"({'|'.join(_SYSTEMS)})([0-9]{{1,6}})(?:[d.]([0-9]{{1,6}}))?")
#: devices of fabrics: InfiniBand and RoCE, Omni-Path, Slingshot, BXI, EFA
_FABRIC_NAME = re.compile(
    r"(?:mlx|hfi|bxi|cxi|hsi|hsn|bnxt_re|irdma|qedr|efa_?|rdmap|rocep|ibp|ib|opa|usnic_|erdma)[0-9].*"
)
_NETWORK_NAME = re.compile(r"(?:eth|en|em|p[0-9]+p|bond|net)[0-9a-z].*")


class Kind(Enum):
    """What a node is."""

    CPU = auto()
    BRIDGE = auto()
    GPU = auto()
    NIC = auto()
    NVSWITCH = auto()


@attrs.define(eq=False)
class Node:
    """A device, and the bandwidth of its link to the node above, in bytes per second.

    ``model`` are the numbers of the vendor and the device, ``order`` puts GPUs in the order of their numbers.
    """

    kind: Kind
    element: _Element = attrs.field(repr=False)
    name: str
    above: Node | None = None
    bandwidth: Fraction = Fraction(0)
    model: str = ""
    order: tuple[int, int] = (1, 0)


@attrs.define(eq=False)
class Machine:
    """The devices, parents first, and which of them each object of hwloc is, by its type and ``gp_index``.

    ``infos`` are the properties of the whole machine. ``ignored`` are Ethernet ports beside NICs of a fabric.
    """

    nodes: list[Node] = attrs.field(factory=list)
    objects: dict[str, Node] = attrs.field(factory=dict)
    infos: dict[str, str] = attrs.field(factory=dict)
    counts: dict[str, int] = attrs.field(factory=dict)
    ignored: list[tuple[str, _Element]] = attrs.field(factory=list, repr=False)

    def of(self, kind: Kind) -> Iterator[Node]:
        """Yield the nodes of a kind."""
        return (node for node in self.nodes if node.kind is kind)


def machine(text: Text, draft: Draft) -> Machine:
    """Return the devices of a text. Mistakes are added to ``draft``."""
    return _Reader(text, draft).run()


def infos(element: _Element) -> dict[str, str]:
    """Return the properties of an object."""
    return {str(one.get("name")): str(one.get("value", "")) for one in element.iterchildren("info")}


@attrs.frozen
class _Place:
    """Where an object stands: below which CPU or PCIe switch, whether in a package, and whether in a PCI device."""

    above: Node
    in_package: bool
    in_device: bool = False


class _Reader:
    def __init__(self, text: Text, draft: Draft):
        self.text, self.draft = text, draft
        self.machine = Machine()
        self.ports: list[tuple[Node, list[str], _Element]] = []

    def run(self) -> Machine:
        root = self.text.root
        self.machine.infos.update(infos(root))
        stack = [(one, None) for one in root.iterchildren("object")][::-1]
        pending: list[tuple[_Element, _Place | None]] = list(stack)
        while pending and len(self.machine.nodes) <= _MOST_NODES:
            element, place = pending.pop()
            inside = self._read(element, place)
            pending += [(one, inside) for one in element.iterchildren("object")][::-1]
        if pending:
            message = f"found more than {_MOST_NODES} devices"
            self.draft.wrong("C0933", message, self.text.span(pending[-1][0]))
        self._name_gpus()
        self._choose_ports()
        return self.machine

    def _read(self, element: _Element, place: _Place | None) -> _Place:
        """Read an object and return the place of those in it."""
        kind = str(element.get("type", ""))
        self.machine.counts[kind] = self.machine.counts.get(kind, 0) + 1
        if kind == "Machine" or place is None:
            self.machine.infos.update(infos(element))
            return self._cpu(element, "machine", False)
        if kind in ("Package", "Socket"):
            return self._cpu(element, f"package{self._index(element, kind)}", True)
        if kind in ("NUMANode", "Group") and not place.in_package:
            name = "numa" if kind == "NUMANode" else "group"
            return self._cpu(element, f"{name}{self._index(element, kind)}", False)
        if kind == "Bridge":
            return self._bridge(element, place)
        if kind == "PCIDev":
            return self._device(element, place)
        if kind == "OSDev" and not place.in_device:
            self._loose(element, place)
        self._remember(element, place.above)
        return place

    def _index(self, element: _Element, kind: str) -> str:
        index = element.get("os_index")
        return index if index is not None and index.isdecimal() and index.isascii() else f"#{self.machine.counts[kind]}"

    def _add(self, node: Node) -> Node:
        self.machine.nodes.append(node)
        self._remember(node.element, node)
        return node

    def _remember(self, element: _Element, node: Node) -> None:
        number = element.get("gp_index")
        if number is not None:
            self.machine.objects.setdefault(f"{element.get('type')}:{number}", node)

    # ---- CPUs and PCIe

    def _cpu(self, element: _Element, name: str, in_package: bool) -> _Place:
        node = self._add(Node(Kind.CPU, element, name))
        return _Place(node, in_package)

    def _bridge(self, element: _Element, place: _Place) -> _Place:
        bus = self._bus(element)
        if bus is None:  # a host bridge is part of the CPU
            return place
        node = Node(Kind.BRIDGE, element, bus, place.above, self._speed(element))
        return attrs.evolve(place, above=self._add(node))

    def _device(self, element: _Element, place: _Place) -> _Place:
        """Read a PCI device: a GPU or an NVSwitch; NICs are remembered, and others passed over."""
        bus, words = self._bus(element) or "", str(element.get("pci_type", "")).split()
        systems = [one for one in element.iterchildren("object") if one.get("type") == "OSDev"]
        names = [str(one.get("name", "")) for one in systems]
        code, model = (words[0].lower() if words else ""), (words[1] if len(words) > 1 else "")
        if element.get("subtype") == "NVSwitch" or (code == "0680" and "10de" in model):
            node = self._add(Node(Kind.NVSWITCH, element, bus))
        elif any(_is_gpu(one) for one in systems) or code in ("0302", "0380") or code.startswith("12"):
            node = self._add(Node(Kind.GPU, element, bus, place.above, self._speed(element), model))
        elif code.startswith("02") or any(map(_FABRIC_NAME.fullmatch, names)):
            node = Node(Kind.NIC, element, bus, place.above, Fraction(0), model)
            self.ports.append((node, names, element))
        else:
            return attrs.evolve(place, in_device=True)
        for one in systems:
            self._remember(one, node)
        return attrs.evolve(place, in_device=True)

    def _bus(self, element: _Element) -> str | None:
        bus: str | None = element.get("pci_busid")
        if bus is not None and not _BUS.fullmatch(bus):
            message = f"found `{bus[:40]}`, needed a bus id such as `0000:4f:00.0`"
            self.draft.wrong("C0924", message, self.text.span(element, "pci_busid"))
        return bus

    def _speed(self, element: _Element) -> Fraction:
        """Return the bandwidth of the link of a PCI device; hwloc writes 0 if it may not read it."""
        text = str(element.get("pci_link_speed", "0"))
        if not _SPEED.fullmatch(text):
            message = f"found `{text[:40]}`, needed a number of GB/s"
            self.draft.wrong("C0924", message, self.text.span(element, "pci_link_speed"))
            return gigabytes(1)
        if Fraction(text):
            return gigabytes(text)
        self.draft.assume(
            f"{_USUAL_SPEED} GB/s for PCIe links of unknown speed", "PCIe 3.0 with 16 lanes",
            self.text.span(element, "pci_link_speed"), "run lstopo as root: it then reads the speeds",
        )  # fmt: skip
        return gigabytes(_USUAL_SPEED)

    # ---- GPUs and NICs

    def _loose(self, element: _Element, place: _Place) -> None:
        """Read a GPU that hwloc lists without its PCI device; other names of it are passed over."""
        name = _GPU_NAME.fullmatch(str(element.get("name", "")))
        if name is None or not _is_gpu(element):
            return
        loose = [node for node in self.machine.of(Kind.GPU) if node.element.get("type") == "OSDev"]
        if all(str(node.element.get("name")).startswith(name[1]) for node in loose[:1]):
            self.draft.assume(
                f"{_USUAL_SPEED} GB/s for PCIe links of unknown speed", "PCIe 3.0 with 16 lanes",
                self.text.span(element), "run lstopo as root: it then reads the speeds",
            )  # fmt: skip
            self._add(Node(Kind.GPU, element, "", place.above, gigabytes(_USUAL_SPEED)))

    def _name_gpus(self) -> None:
        """Name each GPU as the first programming system does that is installed, or by its number or bus id."""
        gpus = list(self.machine.of(Kind.GPU))
        found = {gpu: _system_name(gpu.element) for gpu in gpus}
        named = any(found.values())
        for number, gpu in enumerate(gpus):
            match = found[gpu]
            if match is not None:
                gpu.name = match[0]
                gpu.order = (0, int(match[3] or match[2]) if match[1] == "opencl" else int(match[2]))
            elif named:
                gpu.name, gpu.order = f"gpu-{gpu.name}", (1, number)
            else:
                gpu.name, gpu.order = f"gpu{number}", (1, number)

    def _choose_ports(self) -> None:
        """Take the NICs of fabrics; without any, those with a name; without any, all."""
        ports = [(node, _port_name(names), element) for node, names, element in self.ports]
        fabric = [port for port in ports if _FABRIC_NAME.fullmatch(port[1])]
        named = [port for port in ports if port[1]]
        chosen = fabric or named or ports
        taken = {name for _, name, _ in chosen}
        self.machine.ignored = [(name, element) for _, name, element in named if fabric and (name not in taken)]
        for node, name, element in chosen:
            node.name, node.bandwidth = name or f"nic-{node.name}", self._speed(element)
            self.machine.nodes.append(node)


def _is_gpu(element: _Element) -> bool:
    """Return whether an OS device is a GPU of a programming system; OpenCL also lists CPUs."""
    if not _GPU_NAME.fullmatch(str(element.get("name", ""))):
        return False
    return infos(element).get("OpenCLDeviceType", "GPU") == "GPU"


def _system_name(element: _Element) -> re.Match[str] | None:
    """Return the preferred name of a GPU in the programming systems."""
    devices = [element, *element.iterchildren("object")]
    names = [_GPU_NAME.fullmatch(str(one.get("name", ""))) for one in devices if _is_gpu(one)]
    return min((one for one in names if one), key=lambda one: (_SYSTEMS.index(one[1]), int(one[2])), default=None)


def _port_name(names: list[str]) -> str:
    """Return the preferred name of a NIC: of the verbs, of the fabric's network interface, of any other."""
    fabric = [name for name in names if _FABRIC_NAME.fullmatch(name)]
    verbs = [name for name in fabric if not re.fullmatch(r"(?:ib|hsi|hsn)[0-9].*", name)]
    others = [name for name in names if _NETWORK_NAME.fullmatch(name)]
    return next(iter([*verbs, *fabric, *others]), "")
