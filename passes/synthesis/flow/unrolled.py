"""A network unrolled over steps, and the flows of all sources on it: amounts, loads and costs, step by step.

A place is a node after some steps. The flow of a source enters a place by one of the links into its node, or stays
there. So all routes go forward in time, and a few array operations for each step compute amounts and costs of all
sources at once.

Every operation is elementwise, or a sum in a fixed order, so results are the same, bit by bit, on every machine.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import nth

from .paths import Network

__all__ = ["Unrolled", "row_sums"]


@attrs.frozen(eq=False)
class Unrolled:
    """``steps`` copies of a network, with slots: the links into every node, and at last the stay.

    ``tails`` and ``kind``, shape (slots, nodes), are the tail and the class of each link; a missing one has the node
    itself and -1. ``out``, shape (out-links, nodes), numbers the links out of a node: slot * nodes + head, padded with
    slots * nodes. ``wanted``, shape (nodes, sources): what each node wants of each source. ``count``: how many sources
    each represents. ``capacity``: the total of every class. ``open``, shape (steps, slots + 1, nodes, sources), is True
    where a flow may enter a place: not before it can be there, and not back to its source. ``nearer``, shape
    (slots + 1, nodes, sources), is True for stays and links on shortest routes.
    """

    steps: int
    tails: Array
    kind: Array
    out: Array
    wanted: Array
    count: Array
    capacity: Array
    open: Array
    nearer: Array

    @classmethod
    def of(
        cls, network: Network, sources: Array, count: Array, wanted: Array, link_class: Array, capacity: Array,
        hops: Array, steps: int,
    ) -> Unrolled:  # fmt: skip
        """Return the network unrolled; ``hops``, shape (nodes, sources), are those from each source to each node."""
        nodes, columns = len(network.tails), len(sources)
        tails, links = network.tails.T, network.links.T
        here = np.arange(nodes)[:, None] == sources
        usable = np.empty((steps, len(tails) + 1, nodes, columns), dtype=bool)
        for step in range(steps):
            for slot, (tail, link) in enumerate(zip(tails, links, strict=True)):
                usable[step, slot] = (link >= 0)[:, None] & (hops[tail] <= step) & ~here
            usable[step, -1] = hops <= step
        amounts = np.where(here, 0.0, np.broadcast_to(wanted, (nodes, columns)))
        kind = np.where(links >= 0, link_class[np.maximum(links, 0)], -1)
        nearer = np.stack([*(hops[tail] < hops for tail in tails), np.ones(hops.shape, dtype=bool)])
        return cls(steps, tails, kind, _out(tails, links), amounts, count, capacity.astype(np.float64), usable, nearer)

    @property
    def slots(self) -> int:
        """Most links into a node."""
        return len(self.tails)

    @property
    def classes(self) -> int:
        """Classes of links."""
        return len(self.capacity)

    @staticmethod
    def size_of(network: Network, sources: int, steps: int) -> int:
        """Return the number of entries of one array."""
        return steps * int(network.tails.size + network.num_nodes) * sources

    def on_shortest_routes(self) -> Unrolled:
        """Return the network with flows on shortest routes only; they may still wait."""
        return attrs.evolve(self, open=self.open & self.nearer)

    def even(self) -> Array:
        """Return the splits that use all open slots of a place evenly."""
        among: Array = self.open / np.maximum(self.open.sum(axis=1, keepdims=True), 1)
        return among

    def flow(self, split: Array) -> Array:
        """Return the flow into every place by every slot, if places divide what they need by ``split``."""
        flow, amount = np.empty_like(split), self.wanted
        for step in reversed(range(self.steps)):
            np.multiply(split[step], amount, out=flow[step])
            amount = self.before(flow[step])
        return flow

    def before(self, flow: Array) -> Array:
        """Return what every node must have before a step with this ``flow``, shape (slots + 1, nodes, sources)."""
        columns = self.wanted.shape[1]
        sent = np.concatenate([flow[:-1].reshape(-1, columns), np.zeros((1, columns), dtype=flow.dtype)])
        amount: Array = flow[-1].copy()
        for links in self.out:
            amount += sent[links]
        return amount

    def loads(self, flow: Array) -> Array:
        """Return the load of every class in every step, shape (steps, classes)."""
        total = row_sums(flow[:, :-1] * self.count)
        used = np.broadcast_to(self.kind >= 0, total.shape)
        cell = np.arange(self.steps)[:, None, None] * self.classes + self.kind
        return np.bincount(cell[used], total[used], self.steps * self.classes).reshape(self.steps, -1)

    def prices(self, price: Array) -> Array:
        """Return the prices of all slots from those of classes, shape (steps, classes); missing links cost nothing."""
        return np.where(self.kind >= 0, price[:, np.maximum(self.kind, 0)], 0.0)

    def gains(self, price: Array, split: Array) -> Array:
        """Return how much less than the mean of its place each slot costs, at the prices of :meth:`prices`."""
        gain, cost = np.empty_like(split), np.zeros(self.wanted.shape)
        for step in range(self.steps):
            through, mean = gain[step], np.zeros(cost.shape)
            for slot, tail in enumerate(self.tails):
                np.add(cost[tail], price[step, slot][:, None], out=through[slot])
                mean += through[slot] * split[step, slot]
            mean += cost * split[step, -1]
            through[-1] = cost
            np.subtract(mean, through, out=through)
            cost = mean
        gain *= self.open
        return gain

    def least(self, price: Array) -> float:
        """Return the cost of all data on cheapest routes, at the prices of :meth:`prices`."""
        cost = np.where(self.open[0, -1], 0.0, np.inf)
        for step in range(self.steps):
            least = np.where(self.open[step, -1], cost, np.inf)
            for slot, tail in enumerate(self.tails):
                longer = np.where(self.open[step, slot], cost[tail] + price[step, slot][:, None], np.inf)
                np.minimum(least, longer, out=least)
            cost = least
        each = np.where(self.wanted > 0, cost, 0.0) * self.wanted * self.count
        return float(row_sums(row_sums(each)))


def row_sums(rows: Array) -> Array:
    """Return the sums over the last axis, added in an order that depends on its length only."""
    rows, left = rows.copy(), rows.shape[-1]
    while left > 1:
        half = left // 2
        rows[..., :half] += rows[..., left - half : left]
        left -= half
    found: Array = rows[..., 0]
    return found


def _out(tails: Array, links: Array) -> Array:
    slots, nodes = tails.shape
    slot, head = np.nonzero(links >= 0)
    tail = tails[slot, head]
    order = np.argsort(tail, kind="stable")
    count = np.bincount(tail, minlength=nodes)
    out = np.full((int(count.max(initial=0)), nodes), slots * nodes, dtype=np.int64)
    out[nth(count), tail[order]] = (slot * nodes + head)[order]
    return out
