"""ASTRA-sim's analytical network and its executor of Chakra traces, as its sources describe them; no code of collc.

Read from astra-sim (`system/astraccl/custom_collectives/ChakraImpl.cc`), the feeder of MLCommons Chakra and
astra-network-analytical (`congestion_aware`, `congestion_unaware`, `common/NetworkFunction`):

* Every node whose dependencies are finished is issued at once. A send is finished when its message has arrived, a
  receive when it is issued and its message has arrived.
* Congestion-aware: a link sends one message at a time, in the order in which messages come to it. It is busy for
  size / bandwidth, and the message is at the next device after latency + size / bandwidth. There it starts over.
* Congestion-unaware: a message takes its hops times the latency, plus size / bandwidth.
* A ring goes the shorter direction, upwards if both are equal; dimensions are crossed in order; the first dimension is
  the fastest in the numbers of NPUs. Times are whole nanoseconds, cut off. A GB/s is 2^30 bytes a second.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

__all__ = ["Dimension", "Network", "Step", "duration", "network_of", "read_trace"]


@dataclass(frozen=True)
class Step:
    """A node of a trace."""

    id: int
    kind: int
    deps: tuple[int, ...]
    attributes: dict[str, int]


@dataclass(frozen=True)
class Dimension:
    """A block of the network: its kind, its NPUs, bytes a nanosecond, nanoseconds."""

    kind: str
    npus: int
    rate: float
    latency: float


# ---- files, by the wire format of Protocol Buffers alone


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        else:
            assert key & 7 == 2
            size, at = _varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size


def _numbers(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def read_trace(data: bytes) -> list[Step]:
    """Return the nodes of a file: metadata first, each message with its length before it."""
    bodies, at = [], 0
    while at < len(data):
        size, at = _varint(data, at)
        bodies.append(data[at : at + size])
        at += size
    return [_step(body) for body in bodies[1:]]


def _step(body: bytes) -> Step:
    number = kind = 0
    deps: list[int] = []
    attributes = {}
    for tag, value in _fields(body):
        if tag == 1:
            number = int(value)
        elif tag == 3:
            kind = int(value)
        elif tag == 5:
            deps += _numbers(value) if isinstance(value, bytes) else [value]
        elif tag == 10:
            assert isinstance(value, bytes)
            parts = dict(_fields(value))
            name = parts.pop(1)
            assert isinstance(name, bytes)
            attributes[name.decode()] = int(next(iter(parts.values()), 0))
    return Step(number, kind, tuple(deps), attributes)


# ---- the network


def network_of(text: str) -> list[Dimension]:
    """Return the dimensions of a network file."""
    rows = {key: found.split(",") for key, found in re.findall(r"^(\w+): \[ (.*?) \]", text, re.MULTILINE)}
    return [
        Dimension(kind.strip(), int(npus), float(rate) * (1 << 30) / 10**9, float(latency))
        for kind, npus, rate, latency in zip(
            rows["topology"], rows["npus_count"], rows["bandwidth"], rows["latency"], strict=True
        )
    ]


@dataclass
class Network:
    """Devices and links; ``busy`` are the links that send, ``waiting`` the messages before each."""

    dimensions: Sequence[Dimension]
    busy: set[tuple[object, object]] = field(default_factory=set)
    waiting: dict[tuple[object, object], list[object]] = field(default_factory=dict)

    def address(self, npu: int) -> list[int]:
        found = []
        for one in self.dimensions:
            npu, at = divmod(npu, one.npus)
            found.append(at)
        return found

    def number(self, address: Sequence[int]) -> int:
        npu, stride = 0, 1
        for one, at in zip(self.dimensions, address, strict=True):
            npu, stride = npu + at * stride, stride * one.npus
        return npu

    def route(self, src: int, dst: int) -> list[tuple[object, object, Dimension]]:
        """Return the links of a message: (from, to, dimension)."""
        here, there, found = self.address(src), self.address(dst), []
        for place, one in enumerate(self.dimensions):
            while here[place] != there[place]:
                start = self.number(here)
                if one.kind == "Ring":
                    up = (there[place] - here[place]) % one.npus
                    here[place] = (here[place] + (1 if up <= one.npus - up else -1)) % one.npus
                    found.append((start, self.number(here), one))
                    continue
                here[place] = there[place]
                if one.kind == "Switch":
                    switch = (place, tuple(at for n, at in enumerate(here) if n != place))
                    found += [(start, switch, one), (switch, self.number(here), one)]
                else:
                    found.append((start, self.number(here), one))
        return found


# ---- execution


class _Run:
    """Events in the order of time; events of one time in the order in which they were added."""

    def __init__(self, traces: Sequence[Sequence[Step]], network: Network, aware: bool):
        self.network, self.aware, self.now = network, aware, 0
        self.events: list[tuple[int, int, object]] = []
        self.order = count()
        self.nodes = [{one.id: one for one in trace} for trace in traces]
        self.missing = [{one.id: len(one.deps) for one in trace} for trace in traces]
        self.children: list[dict[int, list[int]]] = [{} for _ in traces]
        for rank, trace in enumerate(traces):
            for one in trace:
                for dep in one.deps:
                    self.children[rank].setdefault(dep, []).append(one.id)
        self.arrived: set[tuple[int, int, int]] = set()
        self.posted: dict[tuple[int, int, int], int] = {}
        self.left = sum(map(len, traces))

    def at(self, time: int, action: object) -> None:
        heapq.heappush(self.events, (time, next(self.order), action))

    def run(self) -> int:
        for rank, missing in enumerate(self.missing):
            for node in [node for node, number in missing.items() if not number]:
                self.issue(rank, node)
        while self.events:
            self.now, _, action = heapq.heappop(self.events)
            action()  # type: ignore[operator]
        assert not self.left, f"{self.left} nodes never ran"
        return self.now

    def issue(self, rank: int, node: int) -> None:
        one = self.nodes[rank][node]
        src, dst, tag = (one.attributes[f"comm_{name}"] for name in ("src", "dst", "tag"))
        if one.kind == 5:
            self.send(one, rank, (src, dst, tag), one.attributes["comm_size"])
        elif (src, dst, tag) in self.arrived:
            self.finish(rank, node)
        else:
            self.posted[src, dst, tag] = node

    def send(self, one: Step, rank: int, key: tuple[int, int, int], size: int) -> None:
        route = self.network.route(key[0], key[1])

        def arrive() -> None:
            self.arrived.add(key)
            self.finish(rank, one.id)
            if key in self.posted:
                self.finish(key[1], self.posted[key])

        if not self.aware:
            latency = sum(link.latency for *_, link in route)
            self.at(self.now + int(latency + size / route[0][2].rate), arrive)
            return
        self.hop(route, 0, size, arrive)

    def hop(self, route: list[tuple[object, object, Dimension]], place: int, size: int, arrive: object) -> None:
        if place == len(route):
            arrive()  # type: ignore[operator]
            return
        key = route[place][:2]
        if key in self.network.busy:
            self.network.waiting.setdefault(key, []).append((route, place, size, arrive))
            return
        self.network.busy.add(key)
        link = route[place][2]

        def free() -> None:
            self.network.busy.discard(key)
            if self.network.waiting.get(key):
                self.hop(*self.network.waiting[key].pop(0))  # type: ignore[misc]

        self.at(self.now + int(link.latency + size / link.rate), lambda: self.hop(route, place + 1, size, arrive))
        self.at(self.now + int(size / link.rate), free)

    def finish(self, rank: int, node: int) -> None:
        self.left -= 1
        for child in self.children[rank].get(node, []):
            self.missing[rank][child] -= 1
            if not self.missing[rank][child]:
                self.issue(rank, child)


def duration(traces: Sequence[bytes], network: str, aware: bool = True) -> int:
    """Return the nanoseconds that traces take on a network file, by the congestion-aware or -unaware backend."""
    return _Run([read_trace(one) for one in traces], Network(network_of(network)), aware).run()
