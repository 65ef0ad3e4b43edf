"""Machines as `lstopo --of xml` writes them, in versions 1, 2 and 3, for tests."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

__all__ = ["Writer", "box", "matrix", "switched_box"]

#: the numbers of kinds of OS devices: of versions 1 and 2, and of version 3
_KINDS = {"gpu": (1, 4), "net": (2, 16), "fabric": (3, 32), "compute": (5, 12), "block": (0, 1)}
_GEN3 = "15.753846"


class Writer:
    """Writes objects of one version, each with the next number."""

    def __init__(self, version: int = 2):
        self.version = version
        self.number = 0

    def object(self, kind: str, children: Iterable[str] = (), **attributes: object) -> str:
        self.number += 1
        numbered = {"gp_index": self.number} if self.version > 1 else {}
        known = {name: value for name, value in {**numbered, **attributes}.items() if value is not None}
        start = " ".join([f'<object type="{kind}"', *(f'{name}="{value}"' for name, value in known.items())])
        inside = "".join(textwrap.indent(child, "  ") for child in children)
        return f"{start}>\n{inside}</object>\n" if inside else f"{start}/>\n"

    def info(self, **values: object) -> list[str]:
        return [f'<info name="{name}" value="{value}"/>\n' for name, value in values.items()]

    def system(self, name: str, kind: str, **about: object) -> str:
        """Return an OS device; its number is then ``self.number``."""
        return self.object("OSDev", self.info(**about), name=name, osdev_type=_KINDS[kind][self.version > 2])

    def device(
        self, bus: str, code: str, *systems: str, speed: str = _GEN3, model: str = "[10de:1db8]", **more: object
    ) -> str:
        return self.object(
            "PCIDev", systems, pci_busid=bus, pci_type=f"{code} {model} [10de:131d] a1", pci_link_speed=speed, **more
        )  # fmt: skip

    def bridge(self, bus: str | None, *children: str, speed: str = _GEN3) -> str:
        """Return a bridge; without a bus id it is the host's."""
        if bus is None:
            return self.object("Bridge", children, bridge_type="0-1", depth=0, bridge_pci="0000:[00-ff]")
        return self.object(
            "Bridge", children, bridge_type="1-1", pci_busid=bus, pci_type="0604 [8086:2030] 04", pci_link_speed=speed
        )  # fmt: skip

    def package(self, number: int, *children: str, model: int = 85) -> str:
        about = {"CPUVendor": "GenuineIntel", "CPUFamilyNumber": 6, "CPUModelNumber": model}
        inside = [*self.info(**about), *children]
        if self.version == 1:
            return self.object(
                "NUMANode", [self.object("Socket", self.info(**about), os_index=number), *children], os_index=number
            )
        return self.object("Package", [*inside, self.object("NUMANode", os_index=number)], os_index=number)

    def topology(self, *packages: str, after: str = "") -> str:
        """Return the whole file."""
        version = {1: "", 2: ' version="2.0"', 3: ' version="3.0"'}[self.version]
        doctype = "hwloc.dtd" if self.version == 1 else "hwloc2.dtd"
        head = f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "{doctype}">\n'
        machine = textwrap.indent(self.object("Machine", packages, os_index=0), "  ")
        architecture = "".join(self.info(Architecture="x86_64"))
        return f"{head}<topology{version}>\n{machine}{after}  {architecture}</topology>\n"


def matrix(name: str, indexes: Sequence[object], values: Sequence[Sequence[int]], kind: str | None = None) -> str:
    """Return distances as hwloc writes them: ten numbers in each element."""
    flat = [str(value) for row in values for value in row]
    words = [str(index) for index in indexes]
    tag, of = ("distances2", f'type="{kind}" ') if kind else ("distances2hetero", "")
    indexing = ' indexing="gp"' if kind else ""
    lines = [f'  <{tag} {of}nbobjs="{len(words)}" kind="25" name="{name}"{indexing}>']
    for label, all_words in (("indexes", words), ("u64values", flat)):
        for start in range(0, len(all_words), 10):
            text = "".join(f"{word} " for word in all_words[start : start + 10])
            lines.append(f'    <{label} length="{len(text)}">{text}</{label}>')
    return "\n".join([*lines, f"  </{tag}>", ""])


def box(version: int = 2, gpus: int = 4, system: str = "cuda", nics: bool = True, links: int = 25000) -> str:
    """Return two packages, a PCIe switch in each with half of the GPUs and a NIC, and NVLink in a ring."""
    write, numbers, packages = Writer(version), list[int](), list[str]()
    for half in range(2):
        devices = list[str]()
        for n in range(half * gpus // 2, (half + 1) * gpus // 2):
            names = [write.system(f"{system}{n}", "compute", GPUModel="Tesla V100-SXM2-16GB")]
            numbers.append(write.number)
            names += [write.system(f"opencl0d{n}", "compute", OpenCLDeviceType="GPU"), write.system(f"card{n}", "gpu")]
            device = write.device(f"0000:{0x10 + n:02x}:00.0", "0302", *names)
            devices.append(write.bridge(f"0000:{0x30 + n:02x}:00.0", device))
        if nics:
            ports = [write.system(f"ib{half}", "net"), write.system(f"mlx5_{half}", "fabric")]
            devices.append(write.device(f"0000:{0x20 + half}:00.0", "0207", *ports, model="[15b3:101b]"))
        inside = write.bridge(f"0000:{0x40 + half:02x}:00.0", *devices)
        eth = write.device(f"0000:0{half}:00.0", "0200", write.system(f"eth{half}", "net"), speed="1.000000")
        packages.append(write.package(half, write.bridge(None, inside, eth)))
    ring = [
        [1000000 if a == b else links * ((a - b) % gpus in (1, gpus - 1)) for b in range(gpus)] for a in range(gpus)
    ]
    listed = matrix("NVLinkBandwidth", numbers, ring, "OSDev") if links and version > 1 else ""
    return write.topology(*packages, after=listed)


def switched_box(gpus: int = 16, boards: int = 2) -> str:
    """Return a box of V100s in which each board's GPUs have six NVSwitches of their own."""
    write, ends, packages = Writer(3), list[tuple[str, int]](), list[str]()
    for board in range(boards):
        devices = list[str]()
        for n in range(board * gpus // boards, (board + 1) * gpus // boards):
            name = write.system(f"nvml{n}", "compute")
            ends.append((f"OSDev:{write.number}", board))
            devices.append(write.device(f"0000:{0x10 + n:02x}:00.0", "0302", name))
        for n in range(6):
            devices.append(write.device(f"0000:{0x60 + 6 * board + n:02x}:00.0", "0680", subtype="NVSwitch"))
            ends.append((f"PCIDev:{write.number}", board))
        packages.append(write.package(board, write.bridge(None, *devices)))
    values = [[25000 * (a != b and i == j and {a[:2], b[:2]} == {"OS", "PC"}) for b, j in ends] for a, i in ends]
    listed = matrix("NVLinkBandwidth", [end for end, _ in ends], values)
    return write.topology(*packages, after=listed)
