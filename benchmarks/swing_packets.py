"""Small allreduces on tori in two models: flows, as `collc simulate` has them, and packets in queues.

    python benchmarks/swing_packets.py [--size BYTES] [--packet BYTES] [TORUS ..]

In the model of flows a message takes its latency and, after that, the time of the busiest link of its route. Packets of
different messages cross that link one after the other while others are still under way, so both times overlap. Here
every link has a queue, first come, first served, and routers forward a packet as soon as its head is there. The
latencies are those of ``--latency swing``. All ranks begin a step together in both models, and all messages of these
algorithms stay on a ring of the torus, so one ring of each dimension is enough.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent))

from swing_paper.algorithms import DOUBLING, SWING, Algorithm
from swing_paper.networks import LINK, curves, torus

import collc
from collc.backends.simulator import LATENCIES, Traffic
from collc.backends.simulator.convert import traffic_of

TORI = ("8x8", "64x64", "64x16", "128x8", "256x4")
HEAD = ("torus", "algorithm", "flows (us)", "packets (us)", "goodput of flows")


@attrs.frozen
class Message:
    """``size`` bytes from a place of a ring over ``hops`` links, forward or back."""

    place: int
    forward: bool
    hops: int
    size: Fraction


@attrs.frozen
class Queues:
    """Links of a ring: seconds per byte, of a hop, and of a message besides hops; the largest packet, in bytes."""

    per_byte: Fraction
    hop: Fraction
    base: Fraction
    packet: int

    def time(self, ring: int, messages: Sequence[Message]) -> Fraction:
        """Return when the last packet has arrived, if all messages start together."""
        free: dict[tuple[bool, int], Fraction] = {}
        waiting = [(Fraction(0), i, one.place, one.hops) for i, one in enumerate(self._packets(messages))]
        packets, last = list(self._packets(messages)), Fraction(0)
        heapify(waiting)
        while waiting:
            now, number, place, left = heappop(waiting)
            one = packets[number]
            if not left:
                last = max(last, now + one.size * self.per_byte)
                continue
            start = max(now, free.get((one.forward, place), now))
            free[one.forward, place] = start + one.size * self.per_byte
            following = (place + (1 if one.forward else -1)) % ring
            heappush(waiting, (start + self.hop, number, following, left - 1))
        return self.base + last if messages else Fraction(0)

    def _packets(self, messages: Sequence[Message]) -> Iterator[Message]:
        for one in messages:
            left = one.size
            while left > 0:
                yield attrs.evolve(one, size=min(left, Fraction(self.packet)))
                left -= self.packet


def on_first_rings(traffic: Traffic, shape: Sequence[int], step: int, size: int) -> Iterator[tuple[int, Message]]:
    """Yield (axis, message) for the rings through rank 0 at a step; halves where both ways are as near."""
    a, b = traffic.step_start[step : step + 2].tolist()
    stride = 1
    for axis in reversed(range(len(shape))):
        ring = shape[axis]
        for row in range(a, b):
            src, dst = int(traffic.src[row]), int(traffic.dst[row])
            rest = src - src // stride % ring * stride
            if rest or dst - dst // stride % ring * stride:
                continue
            place, ahead = src // stride, (dst - src) // stride % ring
            amount = Fraction(int(traffic.amount[row]) * size, traffic.whole)
            both = 2 * ahead == ring
            for forward in (True, False):
                hops = ahead if forward else ring - ahead
                if both or 2 * hops < ring:
                    yield axis, Message(place, forward, hops, amount / 2 if both else amount)
        stride *= ring


def packet_time(algorithm: Algorithm, shape: Sequence[int], size: int, packet: int) -> Fraction:
    """Return the seconds of an allreduce of ``size`` bytes in packets: of the fastest variant."""
    net = collc.topology(f"torus({', '.join(map(str, shape))})")
    latency = LATENCIES["swing"]
    assert latency.base is not None, "this latency has a base"
    hop = latency.per_hop + latency.overhead
    queues = Queues(Fraction(8, LINK * 10**9), hop, latency.base + 2 * latency.overhead, packet)
    return min(_time(traffic_of(make(net)), shape, size, queues) for make in algorithm.variants)  # type: ignore[arg-type]


def _time(traffic: Traffic, shape: Sequence[int], size: int, queues: Queues) -> Fraction:
    total = Fraction(0)
    for step, times in enumerate(traffic.times.tolist()):
        rings: dict[int, list[Message]] = {}
        for axis, message in on_first_rings(traffic, shape, step, size):
            rings.setdefault(axis, []).append(message)
        total += times * max(queues.time(shape[axis], messages) for axis, messages in rings.items())
    return total


def rows(names: Sequence[str], size: int, packet: int) -> Iterator[tuple[str, ...]]:
    """Yield the lines of the table."""
    for name in names:
        shape = tuple(map(int, name.split("x")))
        found = curves(torus(*shape), [SWING, DOUBLING])
        for algorithm in (SWING, DOUBLING):
            flows, packets = found[algorithm.letter].time(size), packet_time(algorithm, shape, size, packet)
            over = f"{float(packets / flows) - 1:+.0%}"
            yield name, algorithm.name, f"{float(flows) * 1e6:.1f}", f"{float(packets) * 1e6:.1f}", over


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("tori", nargs="*", default=TORI, metavar="TORUS", help="such as 64x16 (default: the paper's)")
    parser.add_argument("--size", type=int, default=32 << 10, help="bytes of the vector (default: 32 KiB)")
    parser.add_argument("--packet", type=int, default=8 << 10, help="bytes of a packet (default: 8 KiB)")
    options = parser.parse_args(arguments)
    for row in (HEAD, *rows(options.tori, options.size, options.packet)):
        print(f"{row[0]:8}{row[1]:20}{row[2]:>12}{row[3]:>14}{row[4]:>20}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
