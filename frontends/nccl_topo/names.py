"""The names of devices, as an operator would write them: ``gpu0``, ``mlx5_0``, ``cpu1``, ``0000:4f:00.0``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from ..importing.model import Draft
from .machine import Device, Kind, Machine, bus_number

__all__ = ["name_devices"]


def name_devices(machine: Machine, draft: Draft) -> list[Device]:
    """Name all devices, each within its host, and return the GPUs in the order of their ranks.

    GPUs without a number are numbered by their bus ids, as the driver does.
    """
    gpus = list(machine.of(Kind.GPU))
    _number(gpus, machine, draft)
    _name_gpus(gpus)
    _number_nics([one for one in machine.of(Kind.NIC) if not one.name])
    _distinguish_ports(list(machine.of(Kind.NIC)))
    _distinguish_slots(list(machine.of(Kind.BRIDGE, Kind.CARD)), draft)
    if machine.hosts > 1:
        for device in machine.devices:
            device.name = f"host{device.host}/{device.name}"
    return sorted(gpus, key=_place)


def _place(gpu: Device) -> tuple[int, int, int]:
    if gpu.order is not None:
        return gpu.order, gpu.host, gpu.number or 0
    return 0, gpu.host, gpu.number or 0


def _number(gpus: Sequence[Device], machine: Machine, draft: Draft) -> None:
    missing = [gpu for gpu in gpus if gpu.number is None or gpu.number < 0]
    if missing and len(missing) < len(gpus):
        for gpu in missing:
            draft.wrong("C0924", "found `gpu` without `dev`: other GPUs have one", gpu.element.span())
    elif missing:
        draft.note("GPUs are numbered in the order of their bus ids, as the driver does.")
        _count(missing)


def _number_nics(nics: Sequence[Device]) -> None:
    _count(nics)
    for nic in nics:
        nic.name = f"nic{nic.number}"


def _count(devices: Sequence[Device]) -> None:
    """Number the devices of each host from 0, in the order of their bus ids."""
    by_host = defaultdict[int, list[Device]](list)
    for device in devices:
        by_host[device.host].append(device)
    for alike in by_host.values():
        for number, device in enumerate(sorted(alike, key=_bus)):
            device.number = number


def _bus(device: Device) -> int:
    return bus_number((device.card or device.element).get("busid") or "")


def _name_gpus(gpus: Sequence[Device]) -> None:
    """Name GPUs by their numbers; parts of one GPU, which have one number, also by their part."""
    parts = Counter[Device]()
    shared = Counter((gpu.host, gpu.number) for gpu in gpus)
    for gpu in gpus:
        gpu.name = f"gpu{gpu.number}"
        if shared[gpu.host, gpu.number] > 1 and gpu.above is not None and gpu.above.kind is Kind.CARD:
            gpu.name += f".{gpu.element.get('mlopart') or parts[gpu.above]}"
            parts[gpu.above] += 1


def _distinguish_ports(nics: Sequence[Device]) -> None:
    """Add the port to names that several NICs of a host have, as InfiniBand writes it: ``mlx5_0:2``."""
    same = Counter((nic.host, nic.name) for nic in nics)
    for nic in nics:
        if same[nic.host, nic.name] > 1 and nic.element.get("port"):
            nic.name += f":{nic.element.get('port')}"


def _distinguish_slots(devices: Sequence[Device], draft: Draft) -> None:
    """Add a number to the second and later devices with one bus id, which stay separate, as NCCL reads them."""
    seen = Counter[tuple[int, str]]()
    for device in devices:
        key = device.host, device.name
        seen[key] += 1
        if seen[key] == 2:
            message = f"several PCIe switches have the bus id `{device.name}`"
            draft.fault(f"{message}; they are separate in the network", (device.card or device.element).span("busid"))
        if seen[key] > 1:
            device.name += f"#{seen[key]}"
