"""What the host of GPUs has, if a text only names its parts: the bandwidth of PCIe and between CPUs, by GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from collc.ir.frozen import frozen

from . import planned
from .figures import Gpu, bandwidth_text, gigabytes
from .model import Draft

__all__ = ["HOSTS", "Host", "host_of", "joined", "link_cpus", "pcie_bandwidth"]

#: generation -> GB/s of 16 lanes in each direction
_LANES: Mapping[int, tuple[str, str]] = {
    3: ("15.75", "8 GT/s"), 4: ("31.5", "16 GT/s"), 5: ("63", "32 GT/s"),
}  # fmt: skip

_INTEL, _AMD = "GenuineIntel", "AuthenticAMD"
#: CPUs -> vendor, family and model, as NCCL tells them apart
_CPUS: Mapping[str, tuple[str, int, int]] = {
    "Intel Broadwell": (_INTEL, 6, 79), "Intel Skylake": (_INTEL, 6, 85), "Intel Sapphire Rapids": (_INTEL, 6, 143),
    "Intel Emerald Rapids": (_INTEL, 6, 207), "AMD": (_AMD, 25, 1),
}  # fmt: skip


@frozen
class Host:
    """The host that a GPU is usually in: the generation of PCIe, and its CPUs."""

    generation: int
    cpus: str


_PASCAL, _VOLTA, _AMPERE = Host(3, "Intel Broadwell"), Host(3, "Intel Skylake"), Host(4, "AMD")
_HOPPER, _BLACKWELL, _INSTINCT = Host(5, "Intel Sapphire Rapids"), Host(5, "Intel Emerald Rapids"), Host(5, "AMD")

#: model of a GPU -> the host it is usually in
HOSTS: Mapping[str, Host] = {
    "p100": _PASCAL, "v100": _VOLTA,
    "a100": _AMPERE, "a800": _AMPERE, "a30": _AMPERE, "a40": _AMPERE, "a6000": _AMPERE,
    "mi100": _AMPERE, "mi210": _AMPERE, "mi250": _AMPERE,
    "h100": _HOPPER, "h800": _HOPPER, "h20": _HOPPER, "h200": _HOPPER,
    "b200": _BLACKWELL, "b300": _BLACKWELL, "gb200": _BLACKWELL,
    "mi300x": _INSTINCT, "mi325x": _INSTINCT, "mi350x": _INSTINCT,
}  # fmt: skip


def host_of(gpu: Gpu | None) -> Host:
    """Return the usual host of a GPU; that of an A100 for an unknown one."""
    return HOSTS.get(gpu.name, _AMPERE) if gpu else _AMPERE


def pcie_bandwidth(draft: Draft, gpu: Gpu | None) -> Fraction:
    """Return the assumed bandwidth of 16 lanes of PCIe, in bytes per second in each direction."""
    generation = host_of(gpu).generation
    number, rate = _LANES[generation]
    why = f"of a host with {gpu.name} GPUs" if gpu and gpu.name in HOSTS else "since no GPU is named"
    source = f"PCI-SIG: 16 lanes of {rate}, 128b/130b encoding"
    draft.assume(f"{number} GB/s for each PCIe link: PCIe {generation}.0 x16, {why}", source, hint=_HINT)
    return gigabytes(number)


_HINT = "the file has no bandwidths of PCIe; `--gpu` determines the generation"


def link_cpus(draft: Draft, cpus: Sequence[str], gpu: Gpu | None) -> None:
    """Link every two CPUs; assume the bandwidth that NCCL plans with for the CPUs of the usual host."""
    if len(cpus) < 2:
        return
    kind = host_of(gpu).cpus
    bandwidth = planned.between_sockets("x86_64", *_CPUS[kind]) or planned.SLOWEST_SOCKETS
    draft.assume(f"{bandwidth_text(bandwidth)} between CPUs", f"NCCL's planning value for {kind} CPUs")
    for a, b in combinations(cpus, 2):
        draft.link(a, b, bandwidth, label="between CPUs")


def joined(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return for each of some devices the first device of its class, if pairs are in one class.

    >>> joined(4, [(1, 3)])
    [0, 1, 2, 1]
    """
    first = list(range(count))

    def root(i: int) -> int:
        while first[i] != i:
            first[i] = i = first[first[i]]
        return i

    for a, b in pairs:
        a, b = sorted((root(a), root(b)))
        first[b] = a
    return [root(i) for i in range(count)]
