"""The networks of the figures, and what an algorithm takes on one: exact times at any size."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import prod

import attrs

import collc
from collc.backends.simulator import LATENCIES, Simulation, Traffic, simulate
from collc.ir.costs.cost import Point
from collc.ir.topology import Topology

from .algorithms import Algorithm

__all__ = ["Curve", "Network", "curves", "hammingmesh", "hyperx", "torus"]

#: Gb/s of a link, unless a figure varies it
LINK = 400


@attrs.frozen
class Network:
    """``topology`` in collc's language, numbered as the torus of ``shape``, on which messages are scheduled.

    ``run_ahead``: links differ in latency, and ranks of a ring need not wait for the slowest (as the paper's do not).
    Pairs that exchange do wait.
    """

    name: str
    topology: str
    shape: tuple[int, ...]
    latency: str = "swing"
    gbps: int = LINK
    run_ahead: bool = False

    @property
    def num_ranks(self) -> int:
        return prod(self.shape)

    @property
    def peak(self) -> int:
        """The greatest goodput in Gb/s: an allreduce takes every byte out of a rank, and in, nearly twice."""
        return len(self.shape) * self.gbps


def torus(*shape: int, gbps: int = LINK) -> Network:
    name = "x".join(map(str, shape)) + (f" at {gbps} Gb/s" if gbps != LINK else "")
    return Network(name, f"torus({', '.join(map(str, shape))})", shape, gbps=gbps)


def hammingmesh(side: int, boards: int) -> Network:
    """Return a square of square boards."""
    shape = (side * boards, side * boards)
    topology = f"hammingmesh({side}, {side}, {boards}, {boards})"
    return Network(f"Hx{side}Mesh", topology, shape, latency="hammingmesh", run_ahead=True)


def hyperx(*shape: int) -> Network:
    return Network("HyperX", f"hyperx({', '.join(map(str, shape))})", shape)


@attrs.frozen(eq=False)
class Curve:
    """An algorithm on a network: the fastest of its variants at every size (bytes)."""

    algorithm: Algorithm
    network: Network
    variants: tuple[Simulation, ...]

    def time(self, size: int) -> Fraction:
        """Return the exact seconds."""
        return min(one.time(size) for one in self.variants)

    def points(self, sizes: Sequence[int]) -> list[Point]:
        """Return what :class:`Simulation` does, of the fastest variant at each size: pictures ask for it."""
        return [min((one.points([size])[0] for one in self.variants), key=lambda p: p.time) for size in sizes]

    @property
    def traffic(self) -> Traffic:
        return self.variants[0].traffic

    @property
    def topology(self) -> Topology:
        return self.variants[0].topology

    def microseconds(self, size: int) -> float:
        return float(self.time(size) * 10**6)

    def goodput(self, size: int) -> float:
        """Return Gb/s: the vector over the time."""
        return float(8 * size / self.time(size) / 10**9)


@cache
def _simulated(algorithm: Algorithm, network: Network) -> Curve:
    speed = f" with {{ bandwidth: {network.gbps} Gbps }}"
    flat = collc.topology(f"torus({', '.join(map(str, network.shape))}){speed}")
    real = collc.topology(network.topology + speed)
    found, ahead = [], network.run_ahead and algorithm.rings
    for level in (make(flat) for make in algorithm.variants):
        other = None if level.topology.origin == real.origin else real  # on its own network a schedule has its ways
        latency = LATENCIES[network.latency]
        found.append(simulate(level, network=other, latency=latency, run_ahead=ahead))
    return Curve(algorithm, network, tuple(found))


def curves(network: Network, algorithms: Sequence[Algorithm]) -> dict[str, Curve]:
    """Return the curves by letter; a pair is simulated once, whatever figures show it."""
    return {one.letter: _simulated(one, network) for one in algorithms}
