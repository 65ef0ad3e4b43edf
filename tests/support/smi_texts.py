"""Texts as `nvidia-smi`, `rocm-smi` and `amd-smi` print them for machines of our own, and what pasting does to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import attrs

__all__ = [
    "MANGLED", "Device", "Links", "Machine", "amd_csv", "amd_json", "amd_tables", "hgx", "matrix", "mesh",
    "nvlink_status", "rocm_json", "rocm_tables",
]  # fmt: skip

LEGEND = """
Legend:

  X    = Self
  SYS  = another NUMA node
  NODE = another host bridge
  PHB  = the same host bridge
  PXB  = several bridges
  PIX  = one bridge
  NV#  = NVLinks
"""


@attrs.frozen
class Device:
    """A GPU or NIC: its name, and the CPU, tree of PCIe switches and single switch that it is below."""

    name: str
    cpu: int
    tree: int
    switch: int

    def distance(self, other: Device) -> str:
        if self.cpu != other.cpu:
            return "SYS"
        if self.tree != other.tree:
            return "NODE"
        return "PXB" if self.switch != other.switch else "PIX"


@attrs.frozen
class Machine:
    """Devices, the number of NVLinks between two GPUs, and the legend of the NICs."""

    devices: Sequence[Device]
    nvlinks: Callable[[int, int], int]
    aliases: Mapping[str, str] = attrs.Factory(dict)

    @property
    def gpus(self) -> int:
        return sum(one.name.startswith("GPU") for one in self.devices)


def hgx(gpus: int = 8, nvlinks: int = 18, nics: int = 8, near: str = "PIX") -> Machine:
    """Return a machine with a switch between GPUs, two CPUs, and NICs each at a distance from its GPU."""
    half = max(gpus // 2, 1)
    devices = [Device(f"GPU{i}", i // half, i, i) for i in range(gpus)]
    for i in range(nics):
        gpu = devices[i % gpus]
        devices.append(Device(f"NIC{i}", gpu.cpu, gpu.tree if near in ("PIX", "PXB") else 100 + i,
                              gpu.switch if near == "PIX" else 100 + i))  # fmt: skip
    return Machine(devices, lambda a, b: nvlinks, {f"NIC{i}": f"mlx5_{i}" for i in range(nics)})


def matrix(machine: Machine, style: str = "tabs", affinity: bool = True, legend: bool = True) -> str:
    """Return the output of `nvidia-smi topo -m`: ``tabs`` with terminal codes, or ``blanks`` as trackers show it."""
    devices, tabs = machine.devices, style == "tabs"
    headings = ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"] if affinity else []
    rows = [["", *(one.name for one in devices), *headings]]
    for i, a in enumerate(devices):
        cells = [_cell(machine, i, j) for j in range(len(devices))]
        beside = [f"{32 * a.cpu}-{32 * a.cpu + 31}", str(a.cpu), "N/A"] if affinity and i < machine.gpus else []
        rows.append([a.name, *cells, *beside])
    if tabs:
        text = "\n".join("\t".join(row) for row in rows)
        head, _, rest = text.partition("\n")
        text = f"\t\x1b[4m{head.lstrip()}\x1b[0m\n{rest}\n"
    else:
        widths = [8] * (len(devices) + 1) + [16] * len(headings)
        lines = ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in rows]
        text = "".join(f"{line.rstrip()}\n" for line in lines)
    names = "".join(f"  {nic}: {name}\n" for nic, name in machine.aliases.items())
    return text + (LEGEND if legend else "") + (f"\nNIC Legend:\n\n{names}" if names else "")


def _cell(machine: Machine, i: int, j: int) -> str:
    if i == j:
        return " X "
    count = machine.nvlinks(i, j) if max(i, j) < machine.gpus else 0
    return f"NV{count}" if count else machine.devices[i].distance(machine.devices[j])


def nvlink_status(gpus: int, links: int, speed: str, name: str, inactive: Mapping[int, Sequence[int]] = {}) -> str:
    """Return the output of `nvidia-smi nvlink -s`."""
    lines = list[str]()
    for gpu in range(gpus):
        lines.append(f"GPU {gpu}: {name} (UUID: GPU-00000000-{gpu:04})")
        for link in range(links):
            state = "<inactive>" if link in inactive.get(gpu, ()) else f"{speed} GB/s"
            lines.append(f"\t Link {link}: {state}")
    return "\n".join([*lines, ""])


def _wrapped(text: str, width: int = 72) -> str:
    """Break lines at the last column, as terminals do, in the middle of words too."""
    pieces = list[str]()
    for line in text.expandtabs(8).split("\n"):
        pieces += [line[i : i + width] for i in range(0, len(line), width)] or [""]
    return "\n".join(pieces)


def _wrapped_at_blanks(text: str) -> str:
    lines = list[str]()
    for line in text.split("\n"):
        words = line.split()
        lines += [" ".join(words[i : i + 7]) for i in range(0, len(words), 7)] or [""]
    return "\n".join(lines)


#: what happens to text on its way
MANGLED: Mapping[str, Callable[[str], str]] = {
    "terminal codes": lambda text: text.replace("GPU0", "\x1b[1m\x1b[4mGPU0\x1b[24m").replace("\n", "\x1b[K\n"),
    "tabs to blanks": lambda text: text.expandtabs(8),
    "blanks to tabs": lambda text: "\n".join("\t".join(line.split()) for line in text.split("\n")),
    "wrapped by a terminal": _wrapped,
    "wrapped at blanks": _wrapped_at_blanks,
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.split("\n")),
    "CR LF": lambda text: text.replace("\n", "\r\n"),
    "indented fence": lambda text: "```\n" + "".join(f"    {line}\n" for line in text.split("\n")) + "```\n",
    "comment": lambda text: "".join(f"# {line}\n" for line in text.split("\n")),
    "bars": lambda text: "".join(f"| {' | '.join(line.split())} |\n" if line.strip() else "\n"
                                 for line in text.split("\n")),
    "prompt": lambda text: f"root@n1:~# nvidia-smi topo -m\n{text}\nroot@n1:~# \n",
    "no legend": lambda text: text.replace(LEGEND, ""),
    "another column": lambda text: text.replace("GPU NUMA ID", "GPU NUMA ID\tC2C").replace("N/A", "N/A\tno"),
}  # fmt: skip


# ---- AMD

Links = Callable[[int, int], tuple[str, int, int, str]]


def mesh(bandwidth: str = "N/A") -> Links:
    """Return the links of GPUs that are all linked to each other."""
    return lambda a, b: ("XGMI", 15, 1, bandwidth)


def _table(names: Sequence[str], cell: Callable[[int, int], object], width: int) -> str:
    head = " " * width + "".join(name.ljust(13) for name in names)
    rows = [
        name.ljust(width) + "".join(str(cell(i, j)).ljust(13) for j in range(len(names)))
        for i, name in enumerate(names)
    ]
    return "\n".join([head, *rows, ""])


def rocm_tables(gpus: int, links: Links, nodes: Sequence[int] | None = None, bandwidths: bool = False) -> str:
    """Return the output of `rocm-smi --showtopo`, and of `--shownodesbw` if asked for."""
    names = [f"GPU{i}" for i in range(gpus)]
    titles = ["Weight between two GPUs", "Hops between two GPUs", "Link Type between two GPUs"]
    values = [lambda i, j: links(i, j)[1], lambda i, j: links(i, j)[2], lambda i, j: links(i, j)[0]]
    text = " ROCm System Management Interface ".center(80, "=") + "\n"
    for title, value in zip(titles, values, strict=True):
        text += f" {title} ".center(80, "=") + "\n"
        text += _table(names, lambda i, j, value=value: 0 if i == j else value(i, j), 7) + "\n"
    if nodes is not None:
        text += " Numa Nodes ".center(80, "=") + "\n"
        for i, node in enumerate(nodes):
            text += f"GPU[{i}]\t\t: (Topology) Numa Node: {node}\nGPU[{i}]\t\t: (Topology) Numa Affinity: {node}\n"
    if bandwidths:
        text += " Bandwidth ".center(80, "=") + "\n"
        text += _table(names, lambda i, j: "N/A" if i == j else links(i, j)[3], 7)
        text += "Format: min-max; Units: mps\n"
    return text + " End of ROCm SMI Log ".center(80, "=") + "\n"


def rocm_json(gpus: int, links: Links, nodes: Sequence[int] | None = None, series: str | None = None) -> str:
    """Return the output of `rocm-smi --showtopo --json`, which has each pair once."""
    system = dict[str, str]()
    for at, title in ((1, "Weight"), (2, "Hops"), (0, "Link type")):
        for a in range(gpus):
            for b in range(a + 1, gpus):
                system[f"(Topology) {title} between DRM devices {a} and {b}"] = str(links(a, b)[at])
    cards = {f"card{i}": {"(Topology) Numa Node": str((nodes or [0] * gpus)[i])} for i in range(gpus)}
    if series:
        cards["card0"]["Card Series"] = series
    return json.dumps({"system": system, **cards})


def amd_tables(gpus: int, links: Links) -> str:
    """Return the output of `amd-smi topology`."""
    names = [f"0000:{16 * i + 5:02x}:00.0" for i in range(gpus)]
    tables: list[tuple[str, Callable[[int, int], object]]] = [
        ("ACCESS TABLE", lambda i, j: "ENABLED"),
        ("WEIGHT TABLE", lambda i, j: 0 if i == j else links(i, j)[1]),
        ("HOPS TABLE", lambda i, j: 0 if i == j else links(i, j)[2]),
        ("LINK TYPE TABLE", lambda i, j: "SELF" if i == j else links(i, j)[0]),
        ("NUMA BW TABLE", lambda i, j: "N/A" if i == j else links(i, j)[3]),
        ("CACHE COHERANCY TABLE", lambda i, j: "SELF" if i == j else "NC"),
        ("DMA TABLE", lambda i, j: "SELF" if i == j else "T"),
    ]
    legend = "\nLegend:\n  SELF = Current GPU\n  N/A = Not supported\n  64,32 = atomic support\n  <BW from>-<BW to>\n"
    return "\n".join(f"{title}:\n{_table(names, cell, 13)}" for title, cell in tables) + legend


def amd_json(gpus: int, links: Links, old: bool = False) -> str:
    """Return the output of `amd-smi topology --json` of ROCm 6.3, or of a release before."""
    found = list[dict[str, object]]()
    for a in range(gpus):
        cells = [("SELF", 0, 0, "N/A") if a == b else links(a, b) for b in range(gpus)]
        one: dict[str, object] = {"gpu": a, "bdf": f"0000:{16 * a + 5:02x}:00.0"}
        if old:
            for key, at in (("weight", 1), ("hops", 2), ("link_type", 0), ("numa_bandwidth", 3)):
                one[key] = {f"gpu_{b}": cell[at] for b, cell in enumerate(cells)}
        else:
            one["links"] = [
                {"gpu": b, "bdf": "x", "weight": weight, "link_status": "ENABLED", "link_type": kind, "num_hops": hops,
                 "bandwidth": bandwidth}
                for b, (kind, weight, hops, bandwidth) in enumerate(cells)
            ]  # fmt: skip
        found.append(one)
    return json.dumps(found, indent=4)


def amd_csv(gpus: int, links: Links) -> str:
    """Return the output of `amd-smi topology --csv`."""
    kinds = (("weight", 1), ("hops", 2), ("link_type", 0), ("numa_bandwidth", 3))
    lines = ["gpu," + ",".join(f"{kind}_gpu_{b}" for kind, _ in kinds for b in range(gpus))]
    for a in range(gpus):
        cells = [("SELF", 0, 0, "N/A") if a == b else links(a, b) for b in range(gpus)]
        lines.append(f"{a}," + ",".join(str(cell[at]) for _, at in kinds for cell in cells))
    return "\n".join([*lines, ""])
