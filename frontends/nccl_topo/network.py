"""The network of a machine: what its devices become, and the links between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import attrs

from ..importing.figures import Figures, bandwidth_text
from ..importing.model import OPEN_END, Draft
from ..importing.planned import INSIDE, PARTS, SLOWEST_SOCKETS
from ..importing.wires import without_wires
from .gpu_links import SWITCH, GpuLinks, gpu_links
from .machine import GUESSED, Device, Kind, Machine, bus_number
from .markup import Element

__all__ = ["draw"]

_MOST_LINKS = 400_000
_LONGEST_CHIP = 100
_PCIE, _SOCKETS, _PARTS = "PCIe", "between CPUs: NCCL's planning value", "parts of a GPU, in the device: NCCL's value"


def draw(machine: Machine, gpus: Sequence[Device], draft: Draft, figures: Figures) -> GpuLinks:
    """Add the devices and links of a machine to a draft: GPUs are ranks, all others are switches.

    PCIe switches with one device below them are contracted, and those with none are left out.
    """
    links = gpu_links(machine, gpus, draft, figures)
    pairs = list(_switch_pairs(machine, draft))
    _contract(machine, {one for pair in pairs for one in pair})
    _leave_out_idle(machine, links)
    for gpu in gpus:
        draft.rank(gpu.name, gpu.element.span())
    for device in machine.of(Kind.CPU, Kind.BRIDGE, Kind.CARD, Kind.NIC):
        draft.switch(device.name, device.element.span())
    if links.switched:
        draft.switch(SWITCH)
    if _count(machine) > _MOST_LINKS:
        draft.wrong("C0933", f"found more than {_MOST_LINKS} links", machine.devices[0].element.span())
        return links
    links.draw(draft)
    _draw_slots(machine, draft)
    for one, other in pairs:
        draft.link(one.name, other.name, INSIDE, duplex=False, label="inside a PCIe switch: NCCL's value")
    _draw_sockets(machine, draft)
    _draw_ports(machine, draft)
    return links


def _count(machine: Machine) -> int:
    sockets = defaultdict[int, int](int)
    for cpu in machine.of(Kind.CPU):
        sockets[cpu.host] += 1
    return sum(count * (count - 1) for count in sockets.values()) + 4 * len(machine.devices)


# ---- PCIe


def _switch_pairs(machine: Machine, draft: Draft) -> Iterator[tuple[Device, Device]]:
    """Yield the PCIe switches that `pcilink` joins inside one chip."""
    bridges: dict[tuple[int, int], Device] = {}
    for bridge in machine.of(Kind.BRIDGE):
        bridges.setdefault((bridge.host, bus_number(bridge.name)), bridge)
    found: dict[tuple[Device, Device], Element] = {}
    for bridge in machine.of(Kind.BRIDGE):
        for link in bridge.element.below("pcilink"):
            other = bridges.get((bridge.host, bus_number(link.get("target") or "")))
            if other is None or other is bridge:
                target = link.get("target") or ""
                message = f"ignored a `pcilink` to `{target[:40]}`: the file has no other PCIe switch of this bus id"
                draft.warn("C0942", message, link.span("target"))
            else:
                found.setdefault((bridge, other), link)
    for (one, other), link in found.items():
        if (other, one) not in found:
            draft.fault(f"`{one.name}` lists a `pcilink` to `{other.name}`, which lists none back", link.span())
    yield from found


def _contract(machine: Machine, joined: set[Device]) -> None:
    """Leave out PCIe switches with nothing below them, and contract those with one device below."""
    above = {device: device.above for device in machine.devices if device.above is not None}
    bandwidth = {device: device.bandwidth for device in above}
    joined |= {above for device in machine.devices for above, _ in device.also}
    bridges = {device for device in machine.of(Kind.BRIDGE) if device not in joined}
    machine.devices = without_wires(machine.devices, above, bandwidth, bridges)
    for device in machine.devices:
        if device in above:
            device.above, device.bandwidth = above[device], bandwidth[device]


def _leave_out_idle(machine: Machine, links: GpuLinks) -> None:
    """Leave out a host's only CPU if no route passes it: with one GPU below it, or no device."""
    cpus = Counter(cpu.host for cpu in machine.of(Kind.CPU))
    below = defaultdict[Device, list[Device]](list)
    for device in machine.devices:
        for above in [*([device.above] if device.above else []), *(one for one, _ in device.also)]:
            below[above].append(device)
    alone = [cpu for cpu in machine.of(Kind.CPU) if cpus[cpu.host] == 1 and len(below[cpu]) < 2]
    idle = {cpu for cpu in alone if all(one.kind is Kind.GPU for one in below[cpu])}
    machine.devices = [device for device in machine.devices if device not in idle]
    single = {gpu for cpu in idle for gpu in below[cpu]}
    for gpu in single:
        gpu.above = None
    links.sockets = {key: rate for key, rate in links.sockets.items() if key[0] not in single}


def _draw_slots(machine: Machine, draft: Draft) -> None:
    for device in machine.of(Kind.BRIDGE, Kind.CARD, Kind.GPU, Kind.NIC):
        if device.above is None:
            continue
        bandwidth, label = device.bandwidth, _PCIE
        if device.kind is Kind.GPU and device.above.kind is Kind.CARD:
            bandwidth, label = PARTS if device.element.get("mlopart") else INSIDE, _PARTS
        draft.link(device.above.name, device.name, bandwidth, label=label)
        for above, other in device.also:
            draft.link(above.name, device.name, other, label=_PCIE)


# ---- CPUs


def _draw_sockets(machine: Machine, draft: Draft) -> None:
    """Join all CPUs of a host; a link has the bandwidth of the CPU that sends."""
    hosts = defaultdict[int, list[Device]](list)
    for cpu in machine.of(Kind.CPU):
        hosts[cpu.host].append(cpu)
    for cpus in hosts.values():
        if len(cpus) < 2:
            continue
        for cpu in cpus:
            cpu.speed = _socket(cpu, draft)
        for one, other in combinations(cpus, 2):
            if one.speed == other.speed:
                draft.link(one.name, other.name, one.speed, label=_SOCKETS)
            else:
                draft.link(one.name, other.name, one.speed, duplex=False, label=_SOCKETS)
                draft.link(other.name, one.name, other.speed, duplex=False, label=_SOCKETS)


def _socket(cpu: Device, draft: Draft) -> Fraction:
    """Return the bandwidth from a CPU to another one, which the file does not have."""
    if cpu.speed:
        vendor, family, model = ((cpu.element.get(key) or "")[:40] for key in ("vendor", "familyid", "modelid"))
        name = f"{vendor} family {family or 0} model {model or 0}" if vendor else cpu.element.get("arch")
        draft.assume(
            f"{bandwidth_text(cpu.speed)} between CPUs", f"NCCL's planning value for {name}", cpu.element.span()
        )
        return cpu.speed
    draft.assume(
        f"{bandwidth_text(SLOWEST_SOCKETS)} between CPUs of an unknown model", "NCCL's smallest value",
        cpu.element.span("vendor"),
    )  # fmt: skip
    return SLOWEST_SOCKETS


# ---- NICs


@attrs.frozen
class _Port:
    """A port of a NIC, and the switch of the fabric that it is linked to."""

    nic: Device
    fabric: str


def _draw_ports(machine: Machine, draft: Draft) -> None:
    """Link NICs to the fabric; NICs with one chip share its bandwidth."""
    nics = list(machine.of(Kind.NIC))
    planes = {_named(nic, "plane") for nic in nics}
    ports = [_Port(nic, _fabric(nic, len(planes) > 1)) for nic in nics]
    chips = defaultdict[tuple[object, ...], list[_Port]](list)
    for port in ports:
        chips[_chip(port)].append(port)
    for fabric in dict.fromkeys(port.fabric for port in ports):
        draft.switch(fabric)
    for shared in chips.values():
        first = shared[0]
        if len(shared) == 1:
            draft.link(first.nic.name, first.fabric, first.nic.speed, first.nic.latency, label="NICs")
            continue
        chip = draft.switch(_chip_name([port.nic.name for port in shared]), first.nic.element.span("guid"))
        fastest = max(port.nic.speed for port in shared)
        latency = max(port.nic.latency for port in shared)
        for port in shared:
            draft.link(port.nic.name, chip, port.nic.speed, label="NICs on one chip share its bandwidth")
        draft.link(chip, first.fabric, fastest, latency, label="NICs on one chip share its bandwidth")


def _chip_name(names: Sequence[str]) -> str:
    name = "+".join(names)
    return name if len(name) <= _LONGEST_CHIP else f"{names[0]}+{len(names) - 1}"


def _chip(port: _Port) -> tuple[object, ...]:
    """Return what NICs on one chip have in common, for NCCL: the guid, unless it is 0, and the number of the port."""
    guid = port.nic.element.get("guid")
    if not guid or not guid.lower().removeprefix("0x").strip("0"):
        return (port.nic,)
    return port.nic.host, port.fabric, guid.lower(), port.nic.element.get("port") or "0"


def _fabric(nic: Device, several_planes: bool) -> str:
    """Return the switch of a NIC's network: of its rail and plane, if the file names them."""
    rail, plane = _named(nic, "rail"), _named(nic, "plane")
    parts = [OPEN_END, *([f"rail{rail}"] if rail is not None else [])]
    if plane is not None and (rail is None or several_planes):
        parts.append(f"plane{plane}")
    return "/".join(parts)


def _named(nic: Device, what: str) -> int | None:
    """Return the number of a rail or plane; None if it is absent, or a guess of NCCL."""
    text = nic.element.get(what) or ""
    number = int(text) if text.isdecimal() and text.isascii() and len(text) < 18 else -1
    return number if 0 <= number < GUESSED else None
