"""The target ``nccl-topo``: a topology file for virtual machines, which do not show their PCIe switches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import attrs

from collc.ir.diagnostic import CollcError, error
from collc.ir.frozen import frozen
from collc.ir.shown import counted
from collc.ir.verify import Check, Report

from ..base import Artifact, Target, first_difference
from .elements import Element, element, read_elements, require_limits, text_of
from .figures import GT, MAKES, cpu_class, pcie_link, pcie_rate
from .machine import Bridge, Cpu, Device, Machine
from .virtual import Lists, machine_of, require_ids, wrong_option

if TYPE_CHECKING:
    from collc.ir.spec import Problem

__all__ = ["NcclTopo"]

_BRIDGE, _GPU = "0x060400", "0x030200"
_NIC = {"infiniband": "0x020700", "ethernet": "0x020000"}
#: the route of a device from its CPU, its class, and the GB/s of its link
_Place: TypeAlias = tuple[tuple[str, ...], str, Fraction | None]

_COMMENT = "collc: CPUs and PCIe switches of one machine; NCCL finds GPUs, NVLinks and NICs itself"


def _list(help: str, example: str) -> str:
    found: str = attrs.field(default="", metadata={"help": f"{help}: {example}"})
    return found


@frozen
class NcclTopo(Target):
    """The topology file of one machine, for ``NCCL_TOPO_FILE``: CPUs and PCIe switches, no GPUs, NVLinks and NICs.

    NCCL detects those itself. The network gives the tree if its nodes are called ``cpu0`` and ``0000:17:00.0``, as
    in a network that was read from a dump. For others, GPUs share a PCIe switch with the NICs nearest to them.
    """

    name: ClassVar[str] = "nccl-topo"
    summary: ClassVar[str] = "topology file of NCCL for virtual machines: CPUs and PCIe switches"
    suffix: ClassVar[str] = ".topo.xml"
    level: ClassVar[str] = "problem"

    gpu_ids: str = _list("bus ids of the GPUs of one machine, in the order of ranks", "`0001:00:00.0 0002:00:00.0`")
    nic_ids: str = _list("bus ids of its NICs", "`0101:00:00.0 0102:00:00.0`")
    numa: str = _list("NUMA node of each GPU", "`0 0 1 1`")
    affinity: str = _list("mask of processors of each NUMA node, separated by blanks", "`0000ffff ffff0000`")
    per_switch: int | None = attrs.field(
        default=None, metadata={"help": "GPUs on one PCIe switch (default: those that share a NIC)"}
    )
    pcie: int | None = attrs.field(
        default=None, metadata={"help": "GT/s of a PCIe lane, of 16 (default: what feeds a NIC)"}
    )
    fabric: Literal["infiniband", "ethernet"] = attrs.field(
        default="infiniband", metadata={"help": "what the NICs are: infiniband or ethernet"}
    )
    cpu: Literal["amd", "intel", "arm", "power"] | None = attrs.field(
        default=None, metadata={"help": "make of the CPUs: amd, intel, arm or power (default: what the network says)"}
    )

    def __attrs_post_init__(self) -> None:
        for option in ("gpu_ids", "nic_ids"):
            require_ids(option, _split(getattr(self, option)))
        ids = [one.lower() for one in (*_split(self.gpu_ids), *_split(self.nic_ids))]
        twice = next((one for one in ids if ids.count(one) > 1), None)
        if twice is not None:
            option = "nic_ids" if twice in map(str.lower, _split(self.nic_ids)) else "gpu_ids"
            raise wrong_option(option, f"has `{twice}`, which another device has")
        if any(not re.fullmatch(r"\d{1,4}", one) for one in _split(self.numa)):
            raise wrong_option("numa", f"is `{self.numa}`, needed numbers such as `0 0 1 1`")
        if self.pcie is not None and str(self.pcie) not in GT:
            raise wrong_option("pcie", f"is {self.pcie}, needed {', '.join(list(GT)[2:])}")
        if self.per_switch is not None and self.per_switch < 1:
            raise wrong_option("per_switch", f"is {self.per_switch}, needed at least 1")

    @property
    def lists(self) -> Lists:
        """The options as lists."""
        rate = None if self.pcie is None else pcie_rate(str(self.pcie), 16)
        numa = tuple(int(one) for one in _split(self.numa))
        masks = tuple(self.affinity.split())
        return Lists(_split(self.gpu_ids), _split(self.nic_ids), numa, masks, self.per_switch, rate)

    def emit(self, ir: Problem) -> Sequence[Artifact]:
        """Return the one file; raise C0790, C0791, C0780 or C0781 if the network cannot be one."""
        root = self._root(machine_of(ir.topology, self.lists))
        require_limits(root)
        text = text_of(root, _COMMENT)
        return [Artifact(f"{ir.collective.kind}{self.suffix}", text, self.name, model=root)]

    # ---- writing

    def _root(self, machine: Machine) -> Element:
        return element("system", {"version": 1}, [self._cpu(cpu, machine.joint) for cpu in machine.cpus])

    def _cpu(self, cpu: Cpu, joint: Fraction | None) -> Element:
        about = self._make(joint)
        children = [self._below(one) for one in cpu.children]
        return element("cpu", {"numaid": cpu.numa, "affinity": cpu.affinity or None, **about}, children)

    def _make(self, joint: Fraction | None) -> Mapping[str, str]:
        """Return the attributes without which NCCL refuses a CPU that it does not detect itself."""
        if self.cpu is not None:
            return MAKES[self.cpu]
        if joint is None:
            hint = "write `cpu=amd`, intel, arm or power"
            raise error("C0790", "the network does not say the make of its CPUs", hint=hint)
        found = cpu_class(joint)
        if found is None:
            hint = "write `cpu=amd`, intel, arm or power"
            raise error("C0790", f"no CPU that NCCL knows has links of {joint} GB/s", hint=hint)
        return found

    def _below(self, one: Bridge | Device) -> Element:
        speed = {} if one.rate is None else self._speed(one.rate)
        if isinstance(one, Bridge):
            children = [self._below(child) for child in one.children]
            return element("pci", {"busid": one.bus_id, "class": self._class(one), **speed}, children)
        return element("pci", {"busid": one.bus_id.lower(), "class": self._class(one), **speed})

    def _class(self, one: Bridge | Device) -> str:
        """Return the PCI class; a bridge without anything below it is the card of a NIC with several ports."""
        if isinstance(one, Bridge) and one.children:
            return _BRIDGE
        return _GPU if isinstance(one, Device) and one.kind == "gpu" else _NIC[self.fabric]

    def _speed(self, rate: Fraction) -> Mapping[str, object]:
        found = pcie_link(rate)
        if found is None:
            hint = "write `pcie=16`, in GT/s of a lane"
            raise error("C0780", f"no PCIe link has {rate} GB/s in NCCL's table", hint=hint)
        return {"link_speed": f"{found[0]} GT/s", "link_width": found[1]}

    # ---- reading back

    def check(self, ir: Problem, artifacts: Sequence[Artifact]) -> Report:
        """Read the file as NCCL does, and compare the route of every device with the network's tree."""
        return Report("topology", ir.collective.kind, ir.collective.num_ranks, tuple(self._checks(ir, artifacts)))

    def _checks(self, ir: Problem, artifacts: Sequence[Artifact]) -> Iterator[Check]:
        text, machine = artifacts[0].text, machine_of(ir.topology, self.lists)
        root = read_elements(text)
        yield Check("files", len(artifacts) == 1, counted(len(artifacts), "file"))
        readable = root is not None and root.name == "system"
        yield Check(
            "reading", readable, "as NCCL's reader does" if readable else "NCCL's reader does not take the text"
        )
        if root is None or not readable:
            return
        yield _within_limits(root)
        foreign = sorted({one.name for one in root.walk()} - {"system", "cpu", "pci"})
        yield Check("bridges only", not foreign, f"found {', '.join(foreign)}" if foreign else "CPUs and PCI devices")
        yield self._same_cpus(root, machine)
        found, due = _places(root), self._due(machine)
        wrong = next((one for one in sorted({*found, *due}) if found.get(one) != due.get(one)), None)
        detail = f"{counted(len(due), 'device')} at their places" if wrong is None else f"`{wrong}` is elsewhere"
        yield Check("same tree", wrong is None, detail)
        written = text_of(self._root(machine), _COMMENT)
        differs = "" if text == written else first_difference(text, written)
        yield Check("as written", not differs, differs or "byte for byte")

    def _same_cpus(self, root: Element, machine: Machine) -> Check:
        """Return whether the CPUs of a file have the attributes of the machine's."""
        found = {cpu.get("numaid"): dict(cpu.attributes) for cpu in root.children}
        about = self._make(machine.joint)
        due = {
            str(cpu.numa): {"numaid": str(cpu.numa), **({"affinity": cpu.affinity} if cpu.affinity else {}), **about}
            for cpu in machine.cpus
        }
        same = found == due and len(root.children) == len(due)
        return Check("same CPUs", same, counted(len(due), "CPU") if same else "a CPU differs")

    def _due(self, machine: Machine) -> dict[str, _Place]:
        """Return the place of every device and bridge of a machine."""
        return {
            one.bus_id if isinstance(one, Bridge) else one.bus_id.lower(): (route, self._class(one), one.rate)
            for route, one in machine.walk()
        }


def _within_limits(root: Element) -> Check:
    try:
        require_limits(root)
    except CollcError as over:
        return Check("limits", False, over.diagnostics[0].message)
    return Check("limits", True, "those of NCCL's reader")


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _places(root: Element) -> dict[str, _Place]:
    """Return the place of every PCI device of a file."""
    found: dict[str, _Place] = {}

    def below(one: Element, route: tuple[str, ...]) -> None:
        for child in one.children:
            own = child.get("busid") or ""
            key = f"{own} (twice)" if own in found else own
            found[key] = route, child.get("class") or "", _rate(child)
            below(child, (*route, own))

    for cpu in root.children:
        below(cpu, (f"numa {cpu.get('numaid')}",))
    return found


def _rate(pci: Element) -> Fraction | None:
    """Return the GB/s of the link of a PCI device; None if the file does not say it."""
    speed, width = (pci.get("link_speed") or "").removesuffix(" GT/s"), pci.get("link_width") or ""
    return pcie_rate(speed, int(width)) if speed in GT and width.isdecimal() else None
