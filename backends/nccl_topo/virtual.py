"""The machine of a virtual machine: the tree of a network, with bus ids and NUMA nodes that the user gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

import attrs

from collc.ir.diagnostic import CollcError, error
from collc.ir.frozen import frozen
from collc.ir.graph.boxes import Boxes, boxes_of
from collc.ir.shown import clipped, counted
from collc.ir.topology import Topology

from .figures import GT, pcie_link, pcie_rate
from .machine import BUS_ID, Bridge, Cpu, Device, Machine, named_machine

__all__ = ["Lists", "machine_of", "require_ids", "wrong_option"]

#: ids of bridges that the machine does not show; no device has them
_BRIDGE = "ffff:ff:{:02x}.0"
_MOST_BRIDGES = 31


@frozen
class Lists:
    """What the user says of one machine: bus ids of GPUs and NICs, the NUMA node of each GPU, masks by NUMA node.

    ``per_switch`` is the number of GPUs on one PCIe switch, ``rate`` the GB/s of its links; None if neither is given.
    """

    gpus: tuple[str, ...] = ()
    nics: tuple[str, ...] = ()
    numa: tuple[int, ...] = ()
    affinity: tuple[str, ...] = ()
    per_switch: int | None = None
    rate: Fraction | None = None


def wrong_option(option: str, found: str, hint: str | None = None) -> CollcError:
    """Return the error for a value of an option, by the name of its field."""
    return error("C0791", f"option `{option.replace('_', '-')}` {found}", hint=hint, option=option.replace("_", "-"))


def _missing(option: str, what: str, example: str) -> CollcError:
    hint = f'write `{option}="{example}"`, one for each, in the order of the ranks'
    return error("C0790", f"the network does not say {what}", hint=hint)


def machine_of(topology: Topology, lists: Lists) -> Machine:
    """Return the machine of the first box of a network; raise C0790 and C0791 for what is missing or does not fit."""
    boxes = boxes_of(topology)
    if boxes is not None and boxes.size is None:
        hint = "write one topology and one file for each kind"
        raise error("C0790", "its machines differ, and one topology file is for machines of one kind", hint=hint)
    named = named_machine(_first_host(topology))
    if named is not None:
        return _with_masks(_require_distinct(_with_ids(named, lists)), lists.affinity)
    return _with_masks(_require_distinct(_listed(topology, boxes, lists)), lists.affinity)


def _first_host(topology: Topology) -> Topology:
    """Return the network of the host of rank 0, by the prefix of names such as ``n001/gpu0``."""
    host, slash, _ = topology.names[0].partition("/") if topology.num_ranks else ("", "", "")
    if not slash:
        return topology
    kept = [node for node, name in enumerate(topology.names) if name.startswith(f"{host}/")]
    number = {node: place for place, node in enumerate(kept)}
    ends = zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True)
    links = [(number[a], number[b], topology.classes[k]) for a, b, k in ends if a in number and b in number]
    ranks = sum(node < topology.num_ranks for node in kept)
    names = [topology.names[node] for node in kept]
    return Topology.from_links(host, ranks, links, len(kept) - ranks, unit=topology.unit, node_names=names)


# ---- a machine whose tree is known


def _with_ids(machine: Machine, lists: Lists) -> Machine:
    """Return the machine with the bus ids of the lists; raise C0790 if a device has none."""
    if lists.numa or lists.per_switch is not None:
        option = "numa" if lists.numa else "per_switch"
        raise wrong_option(option, "is for networks without CPUs, and this one has them", "leave it out")
    machine = attrs.evolve(machine, cpus=tuple(_with_pci_alone(cpu) for cpu in machine.cpus))
    gpus = [one.node for one in machine.devices if one.kind == "gpu"]
    nics = [one.node for one in machine.devices if one.kind == "nic"]
    ids: dict[int, str] = {}
    for option, nodes, given in (("gpu_ids", gpus, lists.gpus), ("nic_ids", nics, lists.nics)):
        if given:
            _require_count(option, len(given), len(nodes), "GPU" if option == "gpu_ids" else "NIC")
            ids.update(zip(sorted(nodes), given, strict=True))
    found = attrs.evolve(machine, cpus=tuple(_cpu_with(cpu, ids) for cpu in machine.cpus))
    for one in found.devices:
        if not one.bus_id:
            option, what = ("gpu-ids", "GPUs") if one.kind == "gpu" else ("nic-ids", "NICs")
            raise _missing(option, f"the bus ids of its {what}", "0000:17:00.0 0000:65:00.0")
    return found


def _with_pci_alone(cpu: Cpu) -> Cpu:
    """Return a CPU without the NICs that have no PCIe link of their own: ports of a card, and bridges in software."""
    return attrs.evolve(cpu, children=_pci_alone(cpu.children))


def _pci_alone(children: Sequence[Bridge | Device]) -> tuple[Bridge | Device, ...]:
    kept = [
        one for one in children
        if isinstance(one, Bridge) or one.kind == "gpu" or one.rate is None or pcie_link(one.rate) is not None
    ]  # fmt: skip
    return tuple(
        attrs.evolve(one, children=_pci_alone(one.children)) if isinstance(one, Bridge) else one for one in kept
    )


def _require_distinct(machine: Machine) -> Machine:
    """Return the machine; raise C0791 for a device with a bus id that another device or PCIe switch has."""
    ids = [one.bus_id.lower() for _, one in machine.walk()]
    for one in machine.devices:
        if ids.count(one.bus_id.lower()) > 1:
            option = "gpu_ids" if one.kind == "gpu" else "nic_ids"
            raise wrong_option(option, f"has `{one.bus_id}`, which a PCIe switch or another device has")
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise error("C0780", f"two PCIe switches of the network have the bus id `{twice}`")
    return machine


def _cpu_with(cpu: Cpu, ids: Mapping[int, str]) -> Cpu:
    return attrs.evolve(cpu, children=tuple(_child_with(one, ids) for one in cpu.children))


def _child_with(one: Bridge | Device, ids: Mapping[int, str]) -> Bridge | Device:
    if isinstance(one, Device):
        return attrs.evolve(one, bus_id=ids.get(one.node, one.bus_id))
    return attrs.evolve(one, children=tuple(_child_with(child, ids) for child in one.children))


def _with_masks(machine: Machine, masks: Sequence[str]) -> Machine:
    if not masks:
        return machine
    if len(masks) != len(machine.cpus):
        found = f"has {counted(len(masks), 'mask')}, the machine has {counted(len(machine.cpus), 'NUMA node')}"
        raise wrong_option("affinity", found, "separate masks by blanks: commas are parts of a mask")
    for mask in masks:
        if not re.fullmatch(r"[0-9a-fA-F]{1,8}(,[0-9a-fA-F]{8})*", mask):
            raise wrong_option("affinity", f"has `{clipped(mask)}`, needed a mask such as `ff` or `0000ffff,ff000000`")
    pairs = zip(sorted(machine.cpus, key=lambda cpu: cpu.numa), masks, strict=True)
    return attrs.evolve(machine, cpus=tuple(attrs.evolve(cpu, affinity=mask) for cpu, mask in pairs))


# ---- a machine by lists alone


def _listed(topology: Topology, boxes: Boxes | None, lists: Lists) -> Machine:
    """Return the tree in which GPUs share a bridge with the NICs nearest to them."""
    gpus = len(boxes.ranks[0]) if boxes is not None else topology.num_ranks
    if not lists.gpus:
        raise _missing("gpu-ids", "the bus ids of its GPUs", "0001:00:00.0 0002:00:00.0")
    _require_count("gpu_ids", len(lists.gpus), gpus, "GPU")
    if boxes is not None and lists.nics:
        _require_count("nic_ids", len(lists.nics), boxes.nics, "NIC")
    if not lists.numa:
        example = " ".join(["0"] * (gpus // 2) + ["1"] * -(-gpus // 2))
        raise _missing("numa", "which NUMA node each GPU hangs from", example)
    _require_count("numa", len(lists.numa), gpus, "GPU")
    per_bridge = lists.per_switch or (max(gpus // len(lists.nics), 1) if lists.nics else None)
    if per_bridge is None:
        return _flat(lists)
    groups = [range(first, min(first + per_bridge, gpus)) for first in range(0, gpus, per_bridge)]
    _require_groups(groups, lists)
    rate = lists.rate or _rate_of_nics(topology, boxes)
    bridges = [_bridge(place, group, groups, lists, rate) for place, group in enumerate(groups)]
    numas = sorted(set(lists.numa))
    where = [lists.numa[group[0]] for group in groups]
    return Machine(tuple(
        Cpu(numa, "", tuple(one for one, at in zip(bridges, where, strict=True) if at == numa)) for numa in numas
    ))  # fmt: skip


def _flat(lists: Lists) -> Machine:
    """Return the tree in which every GPU hangs from its CPU."""
    gpus = [Device("gpu", place, bus_id, lists.rate) for place, bus_id in enumerate(lists.gpus)]
    return Machine(tuple(
        Cpu(numa, "", tuple(gpu for gpu, at in zip(gpus, lists.numa, strict=True) if at == numa))
        for numa in sorted(set(lists.numa))
    ))  # fmt: skip


def _require_groups(groups: Sequence[range], lists: Lists) -> None:
    if len(groups) > _MOST_BRIDGES:
        raise wrong_option("per_switch", f"makes {len(groups)} PCIe switches, needed at most {_MOST_BRIDGES}")
    if lists.nics and len(lists.nics) % len(groups):
        nics = counted(len(lists.nics), "NIC")
        raise wrong_option("nic_ids", f"has {nics}, needed a multiple of {len(groups)}, the number of PCIe switches")
    for group in groups:
        if len({lists.numa[gpu] for gpu in group}) > 1:
            found = f"puts GPUs {group[0]} to {group[-1]} of one PCIe switch on several NUMA nodes"
            raise wrong_option("numa", found, "`per-switch=1` gives every GPU a PCIe switch of its own")


def _bridge(place: int, group: range, groups: Sequence[range], lists: Lists, rate: Fraction | None) -> Bridge:
    each = len(lists.nics) // len(groups)
    gpus = [Device("gpu", gpu, lists.gpus[gpu], rate) for gpu in group]
    nics = [
        Device("nic", len(lists.gpus) + nic, lists.nics[nic], rate) for nic in range(place * each, (place + 1) * each)
    ]
    return Bridge(_BRIDGE.format(place + 1), rate, (*gpus, *nics))


def _rate_of_nics(topology: Topology, boxes: Boxes | None) -> Fraction:
    """Return the GB/s of the PCIe generation of 16 lanes that feeds a NIC; raise C0790 if the network has none."""
    outward = [] if boxes is None else [
        topology.bandwidth(link) / 10**9 for link, src in enumerate(topology.src.tolist())
        if src in boxes.gates[0] and not boxes.inside[link]
    ]  # fmt: skip
    nominal = {speed: Fraction(code, 60) * Fraction(63, 4) for speed, code in GT.items()}  # 128b/130b, 16 lanes
    for speed, rate in nominal.items():
        if outward and topology.unit == "B/s" and rate >= max(outward):
            return max(pcie_rate(speed, 16), pcie_rate("8", 16))
    hint = "write `pcie=16`, in GT/s of a lane"
    raise error("C0790", "the network does not say the speed of its PCIe links", hint=hint)


def _require_count(option: str, found: int, due: int, what: str) -> None:
    if found != due:
        entries = f"has {found} {'entry' if found == 1 else 'entries'}"
        raise wrong_option(option, f"{entries}, one machine has {counted(due, what)}")


def require_ids(option: str, ids: Sequence[str]) -> None:
    """Raise C0791 for texts that are no bus ids."""
    for one in ids:
        if not re.fullmatch(BUS_ID, one):
            raise wrong_option(option, f"has `{clipped(one)}`, needed a bus id such as `0000:17:00.0`")
