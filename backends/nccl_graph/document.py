"""From a schedule to the graph files of all nodes: channels, NICs, speeds, and kinds of paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import lcm

import attrs
import numpy as np

from collc.ir.costs.cost import DEFAULT_BANDWIDTH
from collc.ir.diagnostic import Excess, Subject, error
from collc.ir.graph.nics import Cabling, Nic, cabling
from collc.ir.schedule import Forest, Schedule
from collc.ir.shown import counted
from collc.ir.topology import Topology

from .model import CHAIN, CHAIN_PATTERN, RING, RING_PATTERN, TYPES, Channel, Graph, GraphFile, Version
from .placed import Placed, place
from .rings import rings_of

__all__ = ["Files", "graph_files"]

#: the most that one channel is to carry, in bytes per second: NCCL's own searches give a channel 12 to 25 GB/s
CHANNEL_SPEED = 25 * 10**9
#: what names of CPUs and PCIe switches have in them, in small letters
_CPU = r"cpu|numa|package|^group\d+$"
_BRIDGE = r"pci|plx|bridge|^([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]"


@attrs.frozen(eq=False)
class Files:
    """The files of all nodes, and what NCCL is to make of them.

    ``files[n]`` is the file of node n, ``devices[n]`` its ranks by GPU. ``rings[c]`` are the ranks of channel c from
    rank 0 on, ``nics[c]`` the NICs of its entry and exit by node.
    """

    files: tuple[GraphFile, ...]
    devices: tuple[dict[int, int], ...]
    rings: tuple[tuple[int, ...], ...]
    nics: tuple[tuple[tuple[int | None, int | None], ...], ...]


def graph_files(
    schedule: Schedule | Forest, version: Version, node: int | None, channels: int | None, ranks: bool
) -> Files:
    """Return the graph files of a schedule; ``node``, ``channels`` and ``ranks`` are the target's options.

    Raises C0911 to C0914 if NCCL has no such rings.
    """
    cables = cabling(schedule.topology, node)
    placed = [place(ring, cables, schedule) for ring in rings_of(schedule)]
    counts = _counts(placed, version)
    rate = _rate(schedule.topology, placed, counts)
    copies = _copies(sum(counts), rate, schedule.topology, version, channels)
    rings = [one for one, count in zip(placed, counts, strict=True) for _ in range(count)] * copies
    devices = [_devices(cables, box) for box in range(len(cables))]
    numbers = [_nic_numbers(cables, box, devices[box]) for box in range(len(cables))]
    text = _speed(_absolute(schedule.topology, rate) / copies)
    crossing = any(one.entries[box] != one.exits[box] for one in placed for box in range(len(cables)))
    files = [
        _file(_Node(cables, box, rings, devices[box], numbers[box], ranks), text, crossing)
        for box in range(len(cables))
    ]
    return Files(
        tuple(files), tuple({device: rank for rank, device in one.items()} for one in devices),
        tuple(_from_zero([rank for path in one.paths for rank in path]) for one in rings),
        tuple(tuple(zip(_numbers(numbers, one.entries), _numbers(numbers, one.exits), strict=True)) for one in rings),
    )  # fmt: skip


def _from_zero(order: Sequence[int]) -> tuple[int, ...]:
    start = order.index(0)
    return (*order[start:], *order[:start])


# ---- channels and speeds


def _counts(placed: Sequence[Placed], version: Version) -> list[int]:
    """Return on how many channels each ring is, since all channels carry as much; raise C0914 if there are too many."""
    whole = lcm(*(one.share.denominator for one in placed))
    if whole > version.most_channels:
        raise error(
            "C0914",
            f"the rings of this schedule need {whole} channels; a file for NCCL {version.major}.{version.minor} has at "
            f"most {version.most_channels}",
            notes=["channels carry equal shares, so a ring with more data is on several channels"],
            hint="use fewer rings (`rings`), or rings of equal shares",
            excess=Excess("channels", whole, version.most_channels), about=(Subject.SCHEDULER,),
        )  # fmt: skip
    return [int(one.share * whole) for one in placed]


def _rate(topology: Topology, placed: Sequence[Placed], counts: Sequence[int]) -> Fraction:
    """Return the bandwidth of a channel if every ring is on its number of channels, in the topology's unit."""
    load = np.zeros(topology.num_links, dtype=np.int64)
    for one, count in zip(placed, counts, strict=True):
        np.add.at(load, list(one.links), count)
    used = np.flatnonzero(load).tolist()
    return min((topology.bandwidth(link) / int(load[link]) for link in used), default=Fraction(1))


def _copies(rings: int, rate: Fraction, topology: Topology, version: Version, channels: int | None) -> int:
    """Return how often all rings are repeated: until no channel is to carry more than ``CHANNEL_SPEED``."""
    most = version.most_channels // rings
    if channels is None:
        needed = -(-_absolute(topology, rate) // CHANNEL_SPEED)
        return max(min(int(needed), most), 1)
    if channels % rings or channels // rings > most:
        fitting = ", ".join(str(rings * times) for times in range(1, most + 1))
        raise error(
            "C0914", f"option `channels` of target `nccl-graph` needs one of {fitting}, found {channels}",
            notes=[f"the schedule has {counted(rings, 'ring')} of equal shares, each on as many channels"],
            option="channels", exit_status=2,
        )  # fmt: skip
    return channels // rings


def _absolute(topology: Topology, rate: Fraction) -> Fraction:
    """Return a bandwidth in bytes per second; relative ones as the cost model counts them."""
    return rate if topology.unit == "B/s" else rate * DEFAULT_BANDWIDTH / (topology.node_bandwidth or 1)


def _speed(rate: Fraction) -> str:
    """Return a speed in GB/s, rounded down to thousandths.

    >>> _speed(Fraction(25 * 10**9)), _speed(Fraction(64 * 10**9, 3)), _speed(Fraction(1))
    ('25', '21.333', '0.001')
    """
    thousandths = max(int(rate // 10**6), 1)
    return f"{thousandths // 1000}.{thousandths % 1000:03}".rstrip("0").rstrip(".")


# ---- devices


def _devices(cables: Cabling, box: int) -> dict[int, int]:
    """Return the devices of a node's ranks: the numbers at the ends of their names, else by order."""
    ranks = cables.boxes[box]
    return dict(zip(ranks, _numbered([cables.topology.names[rank] for rank in ranks], "gpu"), strict=True))


def _nic_numbers(cables: Cabling, box: int, devices: dict[int, int]) -> dict[Nic, int]:
    """Return the devices of a node's NICs: as its rank, if every NIC is a rank's own; else as :func:`_devices`."""
    nics, names = cables.nics[box], cables.topology.names
    own = [devices.get(nic.node) for nic in nics]
    numbers = [one for one in own if one is not None]
    if len(set(numbers)) < len(nics):
        own_names = [names[nic.node] for nic in nics]
        numbers = _numbered(own_names, "nic|net", _by_number(own_names))
    return dict(zip(nics, numbers, strict=True))


def _numbered(names: Sequence[str], kinds: str, otherwise: Sequence[int] | None = None) -> list[int]:
    """Return the numbers at the ends of names of a kind.

    If a name has none, or two have the same, return ``otherwise``, or 0, 1, ...

    >>> _numbered(["a/gpu4", "a/gpu6"], "gpu"), _numbered(["gpu[0, 3]", "gpu[0, 5]"], "gpu"), _numbered(["7"], "gpu")
    ([4, 6], [3, 5], [0])
    """
    found = [re.fullmatch(rf"(?:[^/]*/)?(?:{kinds})(?:\[(?:\d+, )?(\d+)\]|(\d+))", name) for name in names]
    numbers = [int(one[1] or one[2]) for one in found if one is not None]
    return numbers if len(set(numbers)) == len(names) else list(otherwise or range(len(names)))


def _by_number(names: Sequence[str]) -> list[int]:
    """Return the places of names in the order of their numbers, if they differ in the last number only; else 0, 1, ...

    NCCL counts the devices of the system in this order. Names with gaps are those of NICs that it does not use.

    >>> _by_number(["a/mlx5_10", "a/mlx5_3", "a/mlx5_9"]), _by_number(["eth1", "ib0"])
    ([2, 0, 1], [0, 1])
    """
    found = [re.fullmatch(r"(.*?)(\d+)(\D*)", name) for name in names]
    numbers = [int(one[2]) for one in found if one is not None]
    alike = len({one and (one[1], one[3]) for one in found}) == 1
    if not alike or len(set(numbers)) < len(names):
        return list(range(len(names)))
    return [sorted(numbers).index(number) for number in numbers]


def _numbers(numbers: Sequence[dict[Nic, int]], nics: Sequence[Nic | None]) -> list[int | None]:
    """Return the devices of a NIC of each node."""
    return [_number(known, nic) for known, nic in zip(numbers, nics, strict=True)]


def _number(numbers: dict[Nic, int], nic: Nic | None) -> int | None:
    return None if nic is None else numbers[nic]


# ---- one file


@attrs.frozen(eq=False)
class _Node:
    """A node of the cluster with the rings that pass it."""

    cables: Cabling
    box: int
    rings: list[Placed]
    devices: dict[int, int]
    nics: dict[Nic, int]
    ranks: bool

    def channel(self, path: Sequence[int], entry: Nic | None, leaving: Nic | None) -> Channel:
        ranks = tuple(path) if self.ranks else ()
        gpus = tuple(self.devices[rank] for rank in path)
        return Channel(_number(self.nics, entry), gpus, _number(self.nics, leaving), ranks)


def _file(node: _Node, speed: str, crossing: bool) -> GraphFile:
    box = node.box
    rings = tuple(node.channel(one.paths[box], one.entries[box], one.exits[box]) for one in node.rings)
    chains = tuple(
        node.channel(_chain(one.paths[box], channel, one.entries[box]), one.entries[box], one.entries[box])
        for channel, one in enumerate(node.rings)
    )
    near, far = _types(node)
    graphs = (
        _graph(RING, RING_PATTERN, int(crossing), speed, near, far, rings),
        _graph(CHAIN, CHAIN_PATTERN, 0, speed, near, far, chains),
    )
    return GraphFile(1, graphs)


def _chain(path: tuple[int, ...], channel: int, entry: Nic | None) -> tuple[int, ...]:
    """Return the chain of a channel: its ring from the entry on; without NICs, from another rank on each channel."""
    start = channel % len(path) if entry is None else 0
    return (*path[start:], *path[:start])


def _graph(
    number: int, pattern: int, crossnic: int, speed: str, near: str, far: str, channels: tuple[Channel, ...]
) -> Graph:
    return Graph(
        number, pattern, crossnic, len(channels), speed, speed, "0", near, far, int(len(set(channels)) == 1), channels
    )


def _types(node: _Node) -> tuple[str, str]:
    """Return the kinds of the longest paths between GPUs, and between a GPU and a NIC."""
    cables, box = node.cables, node.box
    near, far = ["LOC"], ["PIX"]
    for one in node.rings:
        path = one.paths[box]
        closed = path if one.entries[box] else (*path, path[0])
        near += [_kind(cables, cables.inside(a, b), "NVL") for a, b in pairwise(closed) if a != b]
        for rank, nic in ((path[0], one.entries[box]), (path[-1], one.exits[box])):
            if nic is not None:
                far.append(_kind(cables, cables.inside(rank, nic.node), "PIX"))
    return _farthest(near), _farthest(far)


def _farthest(kinds: Iterable[str]) -> str:
    return max(kinds, key=TYPES.index)


def _kind(cables: Cabling, path: Sequence[tuple[int, int]] | None, least: str) -> str:
    """Return the kind of a path, as the names of its switches tell.

    Names with ``cpu``, ``numa`` or ``package``, or hwloc's ``group0``, are CPUs. Bus ids, and names with ``pci``,
    ``plx`` or ``bridge``, are PCIe switches: NCCL would use its protocol LL128, which PCIe breaks, if they were NVLink.
    """
    names = [cables.topology.names[node].rsplit("/", 1)[-1].lower() for _, node in (path or ())[:-1]]
    cpus = sum(bool(re.search(_CPU, name)) for name in names)
    bridges = sum(bool(re.search(_BRIDGE, name)) for name in names)
    if cpus:
        return "SYS" if cpus > 1 else "PHB"
    return ("PIX" if bridges == 1 else "PXB") if bridges else least
