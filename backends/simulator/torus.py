"""Messages on tori over shortest ways, without writing the ways out: on every ring they are ranges of links.

Adding to a range of a ring is two numbers and one cumulative sum for all ranges, so a message costs the same however
far it goes: 16,384 ranks need no more than a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from collc.ir.group import Translations
from collc.ir.topology import Topology

from .numbers import latency_numbers

__all__ = ["TorusWays", "torus_shape"]

Array = np.ndarray[Any, np.dtype[Any]]


def torus_shape(topology: Topology) -> tuple[int, ...] | None:
    """Return the sizes of a torus whose links are, rank by rank, one on and one back in every dimension; else nothing.

    That is how the language's ``torus`` builds them; all must be of one class.
    """
    symmetry = topology.symmetry
    if not isinstance(symmetry, Translations) or not topology.is_direct or not topology.is_uniform:
        return None
    axes = [(axis, size) for axis, size in enumerate(symmetry.shape) if size > 1]
    if topology.num_ranks == 0 or topology.num_links != 2 * len(axes) * topology.num_ranks:
        return None
    unit = [int(np.prod(symmetry.shape[axis + 1 :], dtype=np.int64)) for axis, _ in axes]
    wanted = [way for (_, size), step in zip(axes, unit, strict=True) for way in (step, (size - 1) * step)]
    return symmetry.shape if topology.dst[: 2 * len(axes)].tolist() == wanted else None


class TorusWays:
    """Messages from ``src`` to ``dst`` over dimension after dimension, by the nearer way round each ring.

    Where both are as near half goes either way, so loads are in halves of what the amounts are in (``unit``). Link 2i
    of a rank leads on in its i-th dimension of more than one rank, link 2i + 1 back.
    """

    unit = 2

    def __init__(self, topology: Topology, shape: tuple[int, ...], src: Array, dst: Array) -> None:
        self.topology, self.num_links = topology, topology.num_links
        self.src, self.dst = src, dst
        strides = [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
        self.rings = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size > 1]

    def _forward(self, ring: int, rows: Array | slice) -> Array:
        """Return how many hops on, round a ring of dimension ``ring``, the messages have to go."""
        size, stride = self.rings[ring]
        return (self.dst[rows] // stride - self.src[rows] // stride) % size

    def _entered(self, ring: int, rows: Array) -> Array:
        """Return the rank at which messages enter dimension ``ring``: those before it have been crossed."""
        size, stride = self.rings[ring]
        above = size * stride
        return self.dst[rows] // above * above + self.src[rows] % above

    def way(self, rows: slice) -> Array:
        """Return what makes messages late, a line each: links on the way, those at a switch (none), own latency."""
        hops = np.zeros(len(self.src[rows]), dtype=np.int64)
        for ring, (size, _) in enumerate(self.rings):
            forward = self._forward(ring, rows)
            hops += np.minimum(forward, size - forward)
        wait = latency_numbers(self.topology)[0][self.topology.link_class[:1]]
        return np.stack([hops, np.zeros_like(hops), hops * wait], axis=1)

    def loads(self, rows: Array, amount: Array) -> Array:
        """Return what each link carries of the messages ``rows``, in halves."""
        found = np.zeros((len(self.rings), 2, self.topology.num_ranks), dtype=amount.dtype)
        for ring, (size, stride) in enumerate(self.rings):
            forward = self._forward(ring, rows)
            line, place = self._line(ring, self._entered(ring, rows))
            for way, hops in ((0, forward), (1, size - forward)):
                weight = amount * _halves(size, hops, forward)
                begin = place if way == 0 else (place - hops + 1) % size  # the links of the ranks on its way back
                on_ring = _ranges_added(line, begin, hops, weight, self.topology.num_ranks // size, size)
                found[ring, way] = _by_rank(on_ring, stride)
        return found.transpose(2, 0, 1).ravel()

    def _line(self, ring: int, rank: Array) -> tuple[Array, Array]:
        """Return on which ring of a dimension ranks are, and where on it."""
        size, stride = self.rings[ring]
        return rank // (size * stride) * stride + rank % stride, rank // stride % size

    def incidence(self, rows: Array) -> tuple[Array, Array, Array]:
        """Return (which of the rows, link, share in halves) for every link on the ways of messages ``rows``."""
        which, links, parts = [], [], []
        degree = 2 * len(self.rings)
        for ring, (size, stride) in enumerate(self.rings):
            forward, entered = self._forward(ring, rows), self._entered(ring, rows)
            place = entered // stride % size
            for way, sign, hops in ((0, 1, forward), (1, -1, size - forward)):
                part = _halves(size, hops, forward)
                used = np.flatnonzero(part)
                of = np.repeat(used, hops[used])
                far = np.arange(len(of)) - np.repeat(np.cumsum(hops[used]) - hops[used], hops[used])
                at = entered[of] + ((place[of] + sign * far) % size - place[of]) * stride
                which.append(of)
                links.append(at * degree + 2 * ring + way)
                parts.append(part[of])
        none = np.zeros(0, dtype=np.int64)
        found = (np.concatenate([none, *columns]) for columns in (which, links, parts))
        of, link, part = found
        order = np.argsort(of, kind="stable")
        return of[order], link[order], part[order]


def _halves(size: int, hops: Array, forward: Array) -> Array:
    """Return how many halves go a way of so many hops: both the nearer way, one each way where both are as near."""
    return (np.sign(size - 2 * hops) + 1) * (forward > 0)


def _ranges_added(line: Array, begin: Array, count: Array, weight: Array, lines: int, size: int) -> Array:
    """Return the sums of ``weight`` over ranges of rings, (lines, size): each from ``begin`` on, ``count`` places."""
    change = np.zeros((lines, 2 * size + 1), dtype=weight.dtype)  # twice round, so that no range wraps
    flat = change.reshape(-1)
    np.add.at(flat, line * (2 * size + 1) + begin, weight)
    np.subtract.at(flat, line * (2 * size + 1) + begin + count, weight)
    along = np.cumsum(change, axis=1)
    return along[:, :size] + along[:, size : 2 * size]


def _by_rank(on_ring: Array, stride: int) -> Array:
    """Return values at (ring, place) as a column by rank; rings are numbered by what is above and below them."""
    lines, size = on_ring.shape
    return on_ring.reshape(lines // stride, stride, size).transpose(0, 2, 1).reshape(-1)
