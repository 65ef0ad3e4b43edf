"""Clusters imported from machines and a fabric: GPUs and NICs below PCIe switches, an NVSwitch, leaves and spines."""

from __future__ import annotations

from pathlib import Path

from infiniband import Fabric
from nccl_files import cpu, gpu, net, nvlink, pci, system

__all__ = ["machine", "pcie_cluster", "rails"]


def machine(gpus: int = 8, together: int = 2) -> str:
    """Return NCCL's file of two CPUs and their PCIe switches, each with some GPUs and as many NICs."""
    numbers, slot = list(range(gpus)), {"link_speed": "32.0 GT/s PCIe"}
    bridges = [
        pci(0x40 + first, *(device for n in numbers[first : first + together] for device in (
            gpu(n, 0x10 + n, nvlink("fffffff:ff:ff.0", 18), slot=dict(slot), sm=90), net(n, 0x80 + n)
        )))
        for first in range(0, gpus, together)
    ]  # fmt: skip
    half = len(bridges) // 2
    return system(cpu(*bridges[:half], numa=0), cpu(*bridges[half:], numa=1))


def rails(hosts: int, adapters: int = 8, spines: int = 4, per_leaf: int = 0) -> str:
    """Return a fabric with a leaf for each adapter of all hosts, or with ``per_leaf`` hosts on each leaf."""
    fabric = Fabric()
    tops = [fabric.node("S", f"MF0;spine{n}:MQM9700/U1") for n in range(spines)]
    count = -(-hosts // per_leaf) if per_leaf else adapters
    leaves = [fabric.node("S", f"MF0;leaf{n}:MQM9700/U1") for n in range(count)]
    for n, leaf in enumerate(leaves):
        for m, top in enumerate(tops):
            for k in range(2):
                fabric.cable(leaf, 1000 + 2 * m + k, top, 1 + 2 * n + k, "4xNDR")
    for host in range(hosts):
        for number in range(adapters):
            adapter = fabric.node("H", f"n{host:03} mlx5_{number}")
            fabric.cable(
                adapter, 1, leaves[host // per_leaf if per_leaf else number], 1 + adapters * host + number, "4xNDR"
            )
    return fabric.text()


def pcie_cluster(folder: Path, hosts: int, per_leaf: int = 0) -> str:
    """Write both files to a folder, and return the text of the topology ``pod`` that joins them."""
    (folder / "node.xml").write_text(machine())
    (folder / "fabric.txt").write_text(rails(hosts, per_leaf=per_leaf))
    return (
        'import "node.xml" as node with { gpu: h100 };\nimport "fabric.txt" as fabric;\ncluster pod = node on fabric;\n'
    )
