"""Topology files of NCCL and RCCL for tests, with the features of real ones, and texts as people paste them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable

__all__ = [
    "MANGLINGS",
    "bus",
    "cpu",
    "element",
    "full",
    "gpu",
    "hints",
    "net",
    "nvlink",
    "pci",
    "port",
    "ring_box",
    "system",
    "xgmi",
]

SLOT = {"link_speed": "16.0 GT/s PCIe", "link_width": "16"}


def element(tag: str, attributes: dict[str, object], children: Iterable[str] = ()) -> str:
    """Return an element, its children on lines of their own."""
    start = " ".join([f"<{tag}", *(f'{name}="{value}"' for name, value in attributes.items())])
    inside = "".join(textwrap.indent(child, "  ") for child in children)
    return f"{start}>\n{inside}</{tag}>\n" if inside else f"{start}/>\n"


def system(*cpus: str, version: int = 1) -> str:
    return element("system", {"version": version}, cpus)


def cpu(*children: str, numa: int = 0, model: int = 143, **more: object) -> str:
    """Return an Intel CPU: model 143 is Sapphire Rapids, 85 Skylake."""
    about = {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": 6, "modelid": model}
    return element("cpu", {"numaid": numa, "affinity": "ffff", **about, **more}, children)


def bus(number: int) -> str:
    return f"0000:{number:02x}:00.0"


def pci(number: int, *children: str, kind: str = "0x060400", **more: object) -> str:
    """Return a PCI device, by default a bridge on a PCIe 4.0 link with 16 lanes."""
    return element("pci", {"busid": bus(number), "class": kind, **SLOT, **more}, children)


def gpu(number: int, place: int, *rows: str, slot: dict[str, object] | None = None, **more: object) -> str:
    """Return a GPU in its PCI device; ``more`` replaces the attributes of `gpu`, None leaves one out."""
    about = {"dev": number, "sm": 80, "rank": number, "gdr": 1, **more}
    inside = element("gpu", {name: value for name, value in about.items() if value is not None}, rows)
    return pci(place, inside, kind="0x030200", **(slot or {}))


def nvlink(target: str, count: int, kind: str = "0x068000") -> str:
    return element("nvlink", {"target": target, "count": count, "tclass": kind})


def xgmi(target: str, count: int = 1) -> str:
    return element("xgmi", {"target": target, "count": count, "tclass": "0x120000"})


def net(number: int, place: int, **more: object) -> str:
    """Return a NIC of 400 Gb/s in its PCI device."""
    return pci(place, element("nic", {}, [port(number, **more)]), kind="0x020000", link_speed="32.0 GT/s PCIe")


def port(number: int, **more: object) -> str:
    about = {"name": f"mlx5_{number}", "dev": number, "speed": 400000, "port": 1, "latency": "0.000000"}
    about |= {"guid": f"0x{number + 16:x}", "maxconn": 131072, "gdr": 1}
    return element("net", {name: value for name, value in {**about, **more}.items() if value is not None})


def full(gpus: int = 8, links: int = 12, nics: bool = True, sm: int = 80, switch: str = "fffffff:ff:ff.0") -> str:
    """Return a box with NVSwitch: two CPUs, a bridge for every two GPUs and their NIC."""
    boxes = list[str]()
    for half in range(2):
        bridges = list[str]()
        end = (half + 1) * gpus // 2
        for first in range(half * gpus // 2, end, 2):
            pair = [gpu(n, 0x10 + n, nvlink(switch, links), sm=sm) for n in range(first, min(first + 2, end))]
            nic = [net(first, 0x80 + first)] if nics else []
            bridges.append(pci(0x40 + first, *pair, *nic))
        boxes.append(cpu(*bridges, numa=half))
    return system(*boxes)


def ring_box(gpus: int = 4, gcn: str = "gfx908", mesh: bool = False, speed: str = "16.0 GT/s PCIe") -> str:
    """Return a box of AMD GPUs below one CPU: a ring by xGMI, or all pairs."""
    devices = list[str]()
    for n in range(gpus):
        others = [m for m in range(gpus) if m != n and (mesh or (n - m) % gpus in (1, gpus - 1))]
        rows = [xgmi(bus(0x10 + m)) for m in others]
        devices.append(gpu(n, 0x10 + n, *rows, slot={"class": "0x120000", "link_speed": speed}, sm=304, gcn=gcn))
    return system(cpu(*(device.replace('class="0x030200"', "") for device in devices)), version=2)


def hints(gpus: int = 8, nics: int = 2) -> str:
    """Return a file as cloud images have it: GPUs and NICs only as PCI devices."""
    boxes = list[str]()
    for half in range(2):
        inside = [pci(0x10 + n, kind="0x030200") for n in range(half * gpus // 2, (half + 1) * gpus // 2)]
        inside += [pci(0x80 + n, kind="0x020700") for n in range(half * nics // 2, (half + 1) * nics // 2)]
        boxes.append(cpu(pci(0x40 + half, *inside), numa=half))
    return f"<!-- for a virtual machine --one line- -->\n{system(*boxes)}"


def _quoted(text: str) -> str:
    return "".join(f"> {line}\n" for line in text.splitlines())


def _coloured(text: str) -> str:
    return text.replace("<", "\x1b[36m<\x1b[0m").replace("=", "\x1b[1m=\x1b[22m")


def _wrapped(text: str) -> str:
    """Return a text with each attribute on a line of its own, as mail programs wrap long lines."""
    return text.replace('" ', '"\n')


def _broken(text: str, width: int = 80) -> str:
    """Return a text as a terminal of 80 columns breaks it."""
    return "\n".join(
        "\n".join(line[i : i + width] for i in range(0, max(len(line), 1), width)) for line in text.split("\n")
    )


def _declared(text: str) -> str:
    return f'\ufeff<?xml version="1.0" encoding="UTF-8"?>\n<!-- dump -->\n{text}\n<!-- end -->\n'


#: what pasting and editing do to a file; each gives the same network
MANGLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "terminal codes": _coloured,
    "quoted": _quoted,
    "tabs": lambda text: text.replace("  ", "\t").replace("<gpu ", "<gpu\t"),
    "wrapped": _wrapped,
    "broken": _broken,
    "CR LF": lambda text: text.replace("\n", "\r\n"),
    "single quotes": lambda text: text.replace('"', "'"),
    "declared": _declared,
    "more attributes": lambda text: text.replace("<pci ", '<pci note="a < b & c" ').replace("<net ", '<net keep="1" '),
    "unknown elements": lambda text: text.replace("</cpu>", "<dram size='1'><bank/></dram></cpu>"),
    "one line": lambda text: text.replace("\n", " "),
    "fenced": lambda text: f"```xml\n{text}```\n",
}
