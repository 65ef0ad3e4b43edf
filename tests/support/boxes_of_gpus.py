"""Machines of GPUs as imported networks name them: CPUs, PCIe switches, NICs and a fabric."""

from __future__ import annotations

from fractions import Fraction

from collc.ir.topology import LinkClass, Topology

__all__ = ["box", "card"]


def _class(gigabytes: Fraction | int, microseconds: int = 0) -> LinkClass:
    return LinkClass(Fraction(gigabytes) * 10**9, Fraction(microseconds, 10**6))


def box(
    gpus: int = 4, nvlink: Fraction | int = 240, pcie: int = 24, joint: int = 16, nics: bool = True,
    latency: int = 1, prefix: str = "",
) -> Topology:  # fmt: skip
    """Return a machine with two CPUs, a PCIe switch on each, GPUs on an NVSwitch, and a NIC on each PCIe switch."""
    switches = ["nvswitch", "cpu0", "cpu1", "0000:17:00.0", "0000:97:00.0"] + ["mlx5_0", "mlx5_1"] * nics
    names = [*(f"gpu{k}" for k in range(gpus)), *switches, *(["fabric"] * nics)]
    rows: list[tuple[str, str, LinkClass]] = []
    for k in range(gpus):
        rows.append((f"gpu{k}", "nvswitch", _class(nvlink)))
        rows.append((f"gpu{k}", switches[3] if 2 * k < gpus else switches[4], _class(pcie)))
    rows += [
        ("cpu0", "cpu1", _class(joint)),
        ("cpu0", switches[3], _class(pcie)),
        ("cpu1", switches[4], _class(pcie)),
    ]
    for k in range(2 * nics):
        rows += [(f"mlx5_{k}", switches[3 + k], _class(pcie)), (f"mlx5_{k}", "fabric", _class(25, latency))]
    place = {name: node for node, name in enumerate(names)}
    links = [row for a, b, kind in rows for row in ((place[a], place[b], kind), (place[b], place[a], kind))]
    shown = [name if name == "fabric" else f"{prefix}{name}" for name in names]
    return Topology.from_links("box", gpus, links, len(names) - gpus, unit="B/s", node_names=shown)


def card() -> Topology:
    """Return two GPUs, their numbers not their ranks, a NIC of two ports, and one that hangs from the CPU."""
    names = ["gpu1", "gpu0", "cpu0", "0000:a1:00.0", "mlx5_0", "mlx5_1", "eth0", "fabric"]
    half, slow = Fraction("12.5"), Fraction("1.25")
    ports = {(port, other): half for port in ("mlx5_0", "mlx5_1") for other in ("0000:a1:00.0", "fabric")}
    rates = {
        ("gpu1", "cpu0"): 24, ("gpu0", "cpu0"): 24, ("gpu1", "gpu0"): 40, ("cpu0", "0000:a1:00.0"): 24, **ports,
        ("eth0", "cpu0"): slow, ("eth0", "fabric"): slow,
    }  # fmt: skip
    pairs = [(a, b, rate) for (one, other), rate in rates.items() for a, b in ((one, other), (other, one))]
    links = [(names.index(a), names.index(b), _class(rate)) for a, b, rate in pairs]
    return Topology.from_links("card", 2, links, 6, unit="B/s", node_names=names)
