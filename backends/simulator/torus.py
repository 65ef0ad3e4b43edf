"""Messages on tori over shortest routes, without a list of the links: on every ring a route is a range of links.

A range of a ring takes two numbers, and one cumulative sum serves all ranges. So the work for a message does not depend
on its distance: 16,384 ranks need at most a second.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.group import Translations
from collc.ir.ragged import nth
from collc.ir.topology import Topology

from .numbers import latency_numbers

__all__ = ["TorusRoutes", "torus_shape"]


def torus_shape(topology: Topology) -> tuple[int, ...] | None:
    """Return the sizes of a torus with one link forward and one back in every dimension, rank by rank; else None.

    The language's ``torus`` builds its links so. All links must have one class.
    """
    symmetry = topology.symmetry
    if not isinstance(symmetry, Translations) or not topology.is_direct or not topology.is_uniform:
        return None
    axes = [(axis, size) for axis, size in enumerate(symmetry.shape) if size > 1]
    if topology.num_ranks == 0 or topology.num_links != 2 * len(axes) * topology.num_ranks:
        return None
    unit = [int(np.prod(symmetry.shape[axis + 1 :], dtype=np.int64)) for axis, _ in axes]
    ends = [end for (_, size), step in zip(axes, unit, strict=True) for end in (step, (size - 1) * step)]
    return symmetry.shape if topology.dst[: 2 * len(axes)].tolist() == ends else None


class TorusRoutes:
    """Messages from ``src`` to ``dst``, dimension after dimension, in the shorter direction of each ring.

    If both directions are equally short, half of a message goes each way. So loads are in halves (``unit``) of the unit
    of the amounts. Link 2i of a rank leads forward in its i-th dimension of more than one rank, link 2i + 1 back.
    """

    unit = 2

    def __init__(self, topology: Topology, shape: tuple[int, ...], src: Array, dst: Array) -> None:
        self.topology, self.num_links = topology, topology.num_links
        self.src, self.dst = src, dst
        strides = [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
        self.rings = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size > 1]

    def _forward(self, ring: int, rows: Array | slice) -> Array:
        """Return the hops of the messages in the forward direction of a ring of dimension ``ring``."""
        size, stride = self.rings[ring]
        hops: Array = (self.dst[rows] // stride - self.src[rows] // stride) % size
        return hops

    def _entered(self, ring: int, rows: Array) -> Array:
        """Return the rank at which messages enter dimension ``ring``, after the dimensions before it."""
        size, stride = self.rings[ring]
        above = size * stride
        entered: Array = self.dst[rows] // above * above + self.src[rows] % above
        return entered

    def latency_terms(self, rows: slice) -> Array:
        """Return one line for each message: links of its route, those at a switch (0), and their latency (a number)."""
        hops = np.zeros(len(self.src[rows]), dtype=np.int64)
        for ring, (size, _) in enumerate(self.rings):
            forward = self._forward(ring, rows)
            hops += np.minimum(forward, size - forward)
        latency = latency_numbers(self.topology)[0][self.topology.link_class[:1]]
        return np.stack([hops, np.zeros_like(hops), hops * latency], axis=1)

    def loads(self, rows: Array, amount: Array) -> Array:
        """Return the load of each link by the messages ``rows``, in halves."""
        found = np.zeros((len(self.rings), 2, self.topology.num_ranks), dtype=amount.dtype)
        for ring, (size, stride) in enumerate(self.rings):
            forward = self._forward(ring, rows)
            line, place = self._line(ring, self._entered(ring, rows))
            for back, hops in ((0, forward), (1, size - forward)):
                weight = amount * _halves(size, hops, forward)
                begin = (place - hops + 1) % size if back else place  # a link back belongs to the rank it leaves
                on_ring = _ranges_added(line, begin, hops, weight, self.topology.num_ranks // size, size)
                found[ring, back] = _by_rank(on_ring, stride)
        return found.transpose(2, 0, 1).ravel()

    def used(self, rows: Array) -> Array:
        """Return which links the messages ``rows`` use."""
        found: Array = self.loads(rows, np.ones_like(rows)) > 0
        return found

    def _line(self, ring: int, rank: Array) -> tuple[Array, Array]:
        """Return the ring of a dimension that each rank is on, and its place there."""
        size, stride = self.rings[ring]
        return rank // (size * stride) * stride + rank % stride, rank // stride % size

    def incidence(self, rows: Array) -> tuple[Array, Array, Array]:
        """Return (which of the rows, link, share in halves) for every link on the routes of messages ``rows``."""
        which, links, parts = [], [], []
        degree = 2 * len(self.rings)
        for ring, (size, stride) in enumerate(self.rings):
            forward, entered = self._forward(ring, rows), self._entered(ring, rows)
            place = entered // stride % size
            for back, sign, hops in ((0, 1, forward), (1, -1, size - forward)):
                part = _halves(size, hops, forward)
                used = np.flatnonzero(part)
                of, far = np.repeat(used, hops[used]), nth(hops[used])
                at = entered[of] + ((place[of] + sign * far) % size - place[of]) * stride
                which.append(of)
                links.append(at * degree + 2 * ring + back)
                parts.append(part[of])
        none = np.zeros(0, dtype=np.int64)
        found = (np.concatenate([none, *columns]) for columns in (which, links, parts))
        of, link, part = found
        order = np.argsort(of, kind="stable")
        return of[order], link[order], part[order]


def _halves(size: int, hops: Array, forward: Array) -> Array:
    """Return the halves of a message in a direction of ``hops``: 2 in the shorter one, 1 if both are equally short."""
    halves: Array = (np.sign(size - 2 * hops) + 1) * (forward > 0)
    return halves


def _ranges_added(line: Array, begin: Array, count: Array, weight: Array, lines: int, size: int) -> Array:
    """Return the sums of ``weight`` over ranges of rings, (lines, size). A range is ``count`` places from ``begin``."""
    change = np.zeros((lines, 2 * size + 1), dtype=weight.dtype)  # two rounds, so that no range wraps
    flat = change.reshape(-1)
    np.add.at(flat, line * (2 * size + 1) + begin, weight)
    np.subtract.at(flat, line * (2 * size + 1) + begin + count, weight)
    along = np.cumsum(change, axis=1)
    both: Array = along[:, :size] + along[:, size : 2 * size]
    return both


def _by_rank(on_ring: Array, stride: int) -> Array:
    """Return values at (ring, place) as a column by rank; rings are numbered by the dimensions above and below."""
    lines, size = on_ring.shape
    return on_ring.reshape(lines // stride, stride, size).transpose(0, 2, 1).reshape(-1)
