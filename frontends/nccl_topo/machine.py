"""The devices that a topology file lists: CPUs, PCIe switches, GPUs and NICs, each with its link to the one above."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from fractions import Fraction

import attrs

from ..importing.model import Draft
from ..importing.planned import INSIDE, between_sockets, network, pcie
from .attributes import decimal, integer, quantity
from .markup import Element

__all__ = ["GUESSED", "Device", "Kind", "Machine", "bus_number", "machine"]

#: rail and plane numbers from here on are NCCL's guesses
GUESSED = 1 << 30
_MOST_DEVICES = 20_000
_BUS = re.compile(r"[0-9a-fA-F:.]{1,32}")
_FASTEST_NIC = 3_200_000  # Mb/s; a larger number is a mistake of the unit
_MOST_LANES = 255
_MOST_LATENCY = 10**6  # us
_KNOWN = {"system", "cpu", "pci", "gpu", "nic", "net", "nvlink", "xgmi", "c2c", "pcilink", "gin", "rma"}


class Kind(Enum):
    """What a device is. ``CARD`` is a PCIe device with several GPUs or ports on it."""

    CPU = auto()
    BRIDGE = auto()
    CARD = auto()
    GPU = auto()
    NIC = auto()


@attrs.define(eq=False)
class Device:
    """A device, and the bandwidth of its link to the device above it.

    ``also`` are further links up, of a NIC that the file lists below several CPUs. ``card`` is the PCI element of a GPU
    or NIC, which has the speed of its slot. Bandwidths in bytes per second, latency in seconds.
    """

    kind: Kind
    element: Element
    host: int
    above: Device | None = None
    bandwidth: Fraction = Fraction(0)
    card: Element | None = None
    also: list[tuple[Device, Fraction]] = attrs.field(factory=list, repr=False)
    name: str = ""
    number: int | None = None
    order: int | None = None
    speed: Fraction = Fraction(0)
    latency: Fraction = Fraction(0)


@attrs.define(eq=False)
class Machine:
    """All devices in the order of the file, parents first; ``hosts`` is how many hosts they are of.

    ``hints`` says that the file lists GPUs only as PCI devices, as files for cloud images do.
    """

    devices: list[Device] = attrs.field(factory=list)
    hosts: int = 1
    hints: bool = False

    def of(self, *kinds: Kind) -> Iterator[Device]:
        """Yield the devices of some kinds."""
        return (device for device in self.devices if device.kind in kinds)


def machine(system: Element, draft: Draft, nic: Fraction | None) -> Machine:
    """Return the devices below a `system` element; ``nic`` is the bandwidth of NICs without a speed; 0 leaves
    out those that have no name either.

    Mistakes are added to ``draft``.
    """
    return _Reader(system, draft, nic).run(system)


def bus_number(text: str) -> int:
    """Return a bus id as a number: only its hexadecimal digits count.

    >>> bus_number("0000:4f:00.0") == bus_number("00000000:4F:00.0")
    True
    """
    digits = re.sub(r"[^0-9a-fA-F]", "", text)
    return int(digits[:32], 16) if digits else 0


class _Reader:
    def __init__(self, system: Element, draft: Draft, nic: Fraction | None):
        self.draft, self.nic = draft, nic
        self.machine = Machine()
        self.hosts: dict[str, int] = {}
        self.nets: dict[tuple[object, ...], Device] = {}
        self.links: set[tuple[Device, Device]] = set()
        self.unknown: dict[str, Element] = {}
        self._survey(system)

    def _survey(self, system: Element) -> None:
        """Note which kinds of elements the file has at all."""
        gpus, classes = list[Element](), False
        self.has_nets = False
        stack = [system]
        while stack:
            element = stack.pop()
            if element.tag not in _KNOWN:
                self.unknown.setdefault(element.tag, element)
            gpus += [element] if element.tag == "gpu" else []
            classes = classes or (element.tag == "pci" and element.get("class") is not None)
            self.has_nets = self.has_nets or element.tag == "net"
            stack += reversed(element.children)
        self.machine.hints, self.classes = not gpus, classes
        self.ranked = any(gpu.get("rank") is not None for gpu in gpus)

    def run(self, system: Element) -> Machine:
        for tag, element in self.unknown.items():
            self.draft.warn("C0942", f"ignored `{tag}`: NCCL's topology files have no such element", element.span())
        stack = list[tuple[Element, Device | None]]((one, None) for one in reversed(system.children))
        while stack and len(self.machine.devices) <= _MOST_DEVICES:
            element, above = stack.pop()
            stack += reversed([(one, device) for one, device in self._read(element, above) if one.tag != "pcilink"])
        if stack:
            message = f"found more than {_MOST_DEVICES} devices"
            self.draft.wrong("C0933", message, stack[-1][0].span())
        self.machine.hosts = max(len(self.hosts), 1)
        return self.machine

    def _read(self, element: Element, above: Device | None) -> Sequence[tuple[Element, Device | None]]:
        """Read one element; return the elements below it that are devices, with the device they are below."""
        device: Device | None
        if above is None:
            if element.tag != "cpu":
                self._misplaced(element, "`cpu`")
                return []
            device = self._cpu(element)
        elif element.tag == "nic":
            self._nics(element, above, None, INSIDE)
            return []
        elif element.tag != "pci":
            self._misplaced(element, "`pci` or `nic`")
            return []
        else:
            device = self._pci(element, above)
        return [(one, device) for one in element.children] if device else []

    def _misplaced(self, element: Element, needed: str) -> None:
        if element.tag in _KNOWN:
            above = element.parent.tag if element.parent else ""
            self.draft.wrong("C0924", f"found `{element.tag}` in `{above}`, needed {needed}", element.span())

    def _add(self, device: Device) -> Device:
        self.machine.devices.append(device)
        return device

    # ---- devices

    def _cpu(self, element: Element) -> Device:
        host = self.hosts.setdefault((element.get("host_hash") or "0").lower(), len(self.hosts))
        device = Device(Kind.CPU, element, host)
        device.number = integer(self.draft, element, "numaid", 0 if element.get("numaid") is None else None)
        device.name = "cpu" if device.number is None or device.number < 0 else f"cpu{device.number}"
        arch, vendor = element.get("arch"), element.get("vendor") or ""
        if arch is not None:
            family, model = integer(self.draft, element, "familyid", 0), integer(self.draft, element, "modelid", 0)
            device.speed = between_sockets(arch, vendor, family or 0, model or 0) or Fraction(0)
        return self._add(device)

    def _pci(self, element: Element, above: Device) -> Device | None:
        """Read a PCI device; return it if other devices may be below it."""
        bandwidth, kind = self._slot(element), self._class(element)
        bus = element.get("busid")
        if bus is None or not _BUS.fullmatch(bus) or not re.search(r"\w", bus):
            found = "`pci` without `busid`" if bus is None else f"`{bus[:40]}`"
            span = element.span(None if bus is None else "busid")
            self.draft.wrong("C0924", f"found {found}, needed a bus id such as `0000:4f:00.0`", span)
        gpus, nics = list(element.below("gpu")), list(element.below("nic"))
        if gpus:
            self._gpus(gpus, element, above, bandwidth)
        for nic in nics:
            self._nics(nic, above, element, bandwidth)
        if gpus or nics:
            return None
        if kind is Kind.GPU and self.machine.hints:
            self._add(Device(Kind.GPU, element, above.host, above, bandwidth, element))
        if kind is Kind.NIC and not self.has_nets and self.nic != 0:
            self._add(self._unnamed_nic(element, above, bandwidth))
        if kind is not Kind.BRIDGE:
            return None
        return self._add(Device(Kind.BRIDGE, element, above.host, above, bandwidth, name=bus or ""))

    def _class(self, element: Element) -> Kind:
        """Return what the class of a PCI device stands for. ``CARD`` is a device without links of interest."""
        text = (element.get("class") or "").lower()
        if text.startswith("0x0680"):
            return Kind.CARD
        if text.startswith(("0x03", "0x12")) or (self.machine.hints and not self.classes and not element.children):
            return Kind.GPU
        return Kind.NIC if text.startswith("0x02") else Kind.BRIDGE

    def _slot(self, element: Element) -> Fraction:
        """Return the bandwidth of a PCI device's link to the one above."""
        width = quantity(self.draft, element, "link_width", _MOST_LANES, 0)
        rate, known = pcie(element.get("link_speed"), width)
        if not known:
            what = "8 GT/s for PCIe links whose `link_speed` is empty or unknown"
            self.draft.assume(what, "NCCL's default", element.span("link_speed"))
        if not width:
            self.draft.assume("16 lanes for PCIe links without a width", "NCCL's default", element.span("link_width"))
        return rate

    def _gpus(self, gpus: Sequence[Element], card: Element, above: Device, bandwidth: Fraction) -> None:
        present = [gpu for gpu in gpus if gpu.get("rank") is not None or not self.ranked]
        for gpu in gpus:
            if gpu not in present:
                message = "ignored a GPU without `rank`: other GPUs have one, and NCCL skips those without"
                self.draft.warn("C0942", message, gpu.span())
        if len(present) > 1:
            above = self._add(Device(Kind.CARD, card, above.host, above, bandwidth, name=card.get("busid") or ""))
        for gpu in present:
            device = Device(Kind.GPU, gpu, above.host, above, bandwidth, card)
            device.number = integer(self.draft, gpu, "dev", None if gpu.get("dev") else -1)
            device.order = integer(self.draft, gpu, "rank") if self.ranked else None
            self._add(device)

    # ---- NICs

    def _unnamed_nic(self, element: Element, above: Device, bandwidth: Fraction) -> Device:
        device = Device(Kind.NIC, element, above.host, above, bandwidth, element, speed=self.nic or bandwidth)
        if self.nic is None:
            self.draft.assume(
                "that NICs without a speed are as fast as their PCIe links", "the file names no NIC", element.span(),
                "give it: `--nic 400Gbps`",
            )  # fmt: skip
        return device

    def _nics(self, element: Element, above: Device, card: Element | None, bandwidth: Fraction) -> None:
        """Read the ports of a NIC; several ports share the link of their card."""
        nets = [net for net in element.below("net") if (net.get("net") or "1") != "0"]
        fresh = [net for net in nets if not self._repeated(net, above, bandwidth, card)]
        if len(fresh) > 1 and card is not None:
            above = self._add(Device(Kind.CARD, card, above.host, above, bandwidth, name=card.get("busid") or ""))
        for net in fresh:
            device = self._port(net, above, card)
            single = len(fresh) == 1 and card is not None
            device.bandwidth = bandwidth if single else device.speed
            self.nets[self._key(net, above.host, card)] = self._add(device)
            self.links.add((device, above))

    def _repeated(self, net: Element, above: Device, bandwidth: Fraction, card: Element | None) -> bool:
        """Add another link to a NIC that the file lists again, below another CPU."""
        known = self.nets.get(self._key(net, above.host, card))
        if known is None:
            return False
        if (known, above) in self.links:
            self.draft.warn("C0942", f"ignored `{net.get('name')}`: the same NIC is listed twice", net.span())
        else:
            known.also.append((above, bandwidth if card is not None else known.speed))
            self.links.add((known, above))
        return True

    def _key(self, net: Element, host: int, card: Element | None) -> tuple[object, ...]:
        """Return what two entries of one NIC have in common: the host, the slot, the name and the number."""
        return host, card and card.get("busid"), net.get("name"), net.get("dev")

    def _port(self, net: Element, above: Device, card: Element | None) -> Device:
        device = Device(Kind.NIC, net, above.host, above, card=card)
        device.number = integer(self.draft, net, "dev", None if net.get("dev") else -1)
        device.name = net.get("name") or f"net{device.number}"
        device.speed = self._speed(net)
        latency = decimal(self.draft, net, "latency", Fraction(0))
        if not 0 <= latency <= _MOST_LATENCY:
            self.draft.wrong("C0924", "found a latency out of range, needed microseconds", net.span("latency"))
        device.latency = latency / 10**6
        return device

    def _speed(self, net: Element) -> Fraction:
        megabits = decimal(self.draft, net, "speed", Fraction(0))
        name = net.get("name")
        if megabits > _FASTEST_NIC:
            self.draft.fault(f"`{name}` has a speed of {net.get('speed')} Mb/s", net.span("speed"))
        if megabits > 0:
            return network(megabits)
        if not self.nic:
            hint = "give it: `--nic 400Gbps`"
            self.draft.assume("10 Gb/s for NICs without a speed", "NCCL's default", net.span("speed"), hint)
        return self.nic or network(Fraction(10_000))
