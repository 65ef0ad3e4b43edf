"""Exchanges of nodes between racks by simulated annealing: fewer links between racks than exchanges that only improve.

In every round many nodes choose at once. Each looks at the rack of one of its neighbours, and takes the place of one of
the nodes there, or keeps its own: the more links that saves, the likelier (a heat bath). Of choices that touch each
other only the first happens, so the saved links add up. The temperature falls from round to round.

Numbers are integers, random bits are the raw output of PCG64, and rounds are counted: all machines get the same racks.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.progress import counting
from collc.ir.ragged import group_starts
from collc.ir.topology import Topology

__all__ = ["annealed", "rounds_for"]

_ROUNDS = 8000
_SMALL, _RUNS, _ROUNDS_OF_A_NODE = 256, 3, 20  # small networks: several short runs find more than a long one
_EFFORT = 8_000_000  # rounds times nodes
_MOST_TIES = 1 << 23  # nodes times racks
_SHARE = 4  # a quarter of the nodes chooses in a round
_MOST_PARTNERS = 32  # nodes of a rack of which one chooses
_NEVER = -(1 << 30)
_COLDEST, _DOUBLINGS = 2048, 3  # bits of noise, in 1/256, that a link outweighs in the last round; how often it doubles


def rounds_for(nodes: int, racks: int) -> int:
    """Return the number of rounds of a run; 0 for networks that are too large.

    >>> rounds_for(64, 4), rounds_for(1000, 32), rounds_for(10_000, 313), rounds_for(1 << 20, 1 << 15)
    (1280, 8000, 800, 0)
    """
    if nodes * racks > _MOST_TIES:
        return 0
    return _ROUNDS_OF_A_NODE * nodes if nodes <= _SMALL else min(_ROUNDS, _EFFORT // nodes)


def annealed(topology: Topology, rack: Array) -> Array:
    """Return an assignment of few links between racks, with as many nodes in each rack as in ``rack``, shape (N,)."""
    nodes, racks = topology.num_ranks, int(rack.max()) + 1
    rounds = rounds_for(nodes, racks)
    if not rounds:
        return rack
    near = _neighbours(topology)
    best, fewest = rack, int((rack[topology.src] != rack[topology.dst]).sum())
    for run in range(_RUNS if nodes <= _SMALL else 1):
        stream = np.random.PCG64(run)
        scattered = rack[np.argsort(stream.random_raw(nodes), kind="stable")]
        state = _State(*near, scattered if run else rack, racks)
        for done in counting(range(rounds), "rounds of changed racks"):
            state.change(stream, _weight(done, rounds))
            if state.links < fewest:
                best, fewest = state.rack[:-1].copy(), state.links
    return best


def _weight(done: int, rounds: int) -> int:
    """Return the weight of a link in a round: it doubles at equal distances, and grows evenly between."""
    doublings, part = divmod((done * _DOUBLINGS << 12) // rounds, 1 << 12)
    return ((_COLDEST >> _DOUBLINGS) << doublings) * ((1 << 12) + part) >> 12


def _neighbours(topology: Topology) -> tuple[Array, Array, Array]:
    """Return the neighbours of every node, shape (N, width), the links to each in both directions, and their number.

    Rows end with the node N, without links.
    """
    nodes = topology.num_ranks
    ends = np.stack([topology.src, topology.dst]).astype(np.int64)[:, topology.src != topology.dst]
    keys = np.concatenate([ends[0] * nodes + ends[1], ends[1] * nodes + ends[0]])
    pairs, count = np.unique(keys, return_counts=True)
    node, near = np.divmod(pairs, nodes)
    number = np.bincount(node, minlength=nodes)
    slot = np.arange(len(node)) - group_starts(node, nodes)[node]
    neighbours = np.full((nodes, max(int(number.max()), 1)), nodes, dtype=np.int64)
    links = np.zeros(neighbours.shape, dtype=np.int32)
    neighbours[node, slot], links[node, slot] = near, count
    return neighbours, links, number


@attrs.define(eq=False)
class _Choices:
    """What some nodes choose: to take the place of a partner in another rack, which then takes theirs."""

    node: Array
    partner: Array
    here: Array  # rack of the node
    there: Array  # rack of the partner
    more: Array  # links between racks that are added; fewer than 0 are saved

    def of(self, chosen: Array) -> _Choices:
        """Return some of them."""
        return _Choices(*(column[chosen] for column in attrs.astuple(self, recurse=False)))


class _State:
    """An assignment to racks, and the links of every node to every rack."""

    def __init__(self, near: Array, weight: Array, degree: Array, rack: Array, racks: int) -> None:
        self.near, self.weight, self.degree = near, weight, degree
        self.nodes, self.racks = len(near), racks
        self.rack = np.append(rack, -1)  # that of the node N is none
        self.room = np.bincount(rack, minlength=racks)
        self.fewest = int(self.room.min())
        order = np.argsort(rack, kind="stable")
        self.place = np.empty(self.nodes, dtype=np.int64)  # of a node among those of its rack
        self.place[order] = np.arange(self.nodes) - group_starts(rack[order], racks)[rack[order]]
        self.member = np.zeros((racks, int(self.room.max())), dtype=np.int64)
        self.member[rack, self.place] = np.arange(self.nodes)
        self.ties = np.zeros((self.nodes + 1) * racks, dtype=np.int32)  # the row of the node N takes what pads others
        self._tie(np.arange(self.nodes), rack, 1)
        self.links = int(weight[self.rack[near] != rack[:, None]].sum()) // 2
        self.claim = np.empty(self.nodes + 1, dtype=np.int64)

    def change(self, stream: np.random.PCG64, weight: int) -> None:
        """Let some nodes choose; a link weighs as much as ``weight / 256`` bits of noise."""
        number, width = max(self.nodes // _SHARE, 1), min(_MOST_PARTNERS, self.member.shape[1])
        raw = stream.random_raw(number * 2 + (number * (width + 1) + 1) // 2)
        low, high = (raw[:number] & np.uint64(0xFFFFFFFF)).astype(np.int64), (raw[:number] >> np.uint64(32))
        node = low * self.nodes >> 32
        node = node[self.degree[node] > 0]
        first = high.astype(np.int64)[: len(node)] * self.degree[node] >> 32
        there = self.rack[self.near[node, first]]
        apart = self.rack[node] != there
        node, there = node[apart], there[apart]
        if not len(node):
            return
        turn = (raw[number : number + len(node)] >> np.uint64(33)).astype(np.int64)
        noise = _noise(raw[2 * number :])[: len(node) * (width + 1)].reshape(len(node), width + 1)
        found = self._chosen(node, there, turn, noise, weight)
        self._exchange(found.of(self._first(found)))

    def _chosen(self, node: Array, there: Array, turn: Array, noise: Array, weight: int) -> _Choices:
        """Return the choices that are not to keep one's place; ``noise`` has a column for each partner and one more."""
        here, width = self.rack[node], noise.shape[1] - 1
        places = (turn[:, None] + np.arange(width)) % self.room[there][:, None]
        partner = self.member[there[:, None], places]
        row, base = partner * self.racks, node * self.racks
        more = self.ties[row + there[:, None]] - self.ties[row + here[:, None]]
        more += (self.ties[base + here] - self.ties[base + there])[:, None]
        self._add_between(more, node, there, turn)
        score = noise[:, :width] - more * weight
        if self.fewest < width:  # small racks have the same nodes again
            score[np.arange(width) >= self.room[there][:, None]] = _NEVER
        best = score.argmax(axis=1)
        lines = np.arange(len(node))
        moved = np.flatnonzero(score[lines, best] > noise[:, width])
        best = best[moved]
        return _Choices(node[moved], partner[moved, best], here[moved], there[moved], more[moved, best])

    def _add_between(self, more: Array, node: Array, there: Array, turn: Array) -> None:
        """Add the links between a node and a partner, which remain between racks."""
        near = self.near[node]
        line, slot = np.nonzero(self.rack[near] == there[:, None])
        column = (self.place[near[line, slot]] - turn[line]) % self.room[there[line]]
        seen = column < more.shape[1]
        line, slot, column = line[seen], slot[seen], column[seen]
        more[line, column] += 2 * self.weight[node[line], slot]

    def _first(self, found: _Choices) -> Array:
        """Return which choices touch no earlier one, and no neighbour of one."""
        number = np.arange(len(found.node))
        self.claim[:] = self.nodes
        for ends in (found.node, found.partner):
            np.minimum.at(self.claim, ends, number)
        owned = [self.claim[ends] == number for ends in (found.node, found.partner)]
        alone = [(self.claim[self.near[ends]] >= number[:, None]).all(axis=1) for ends in (found.node, found.partner)]
        first: Array = owned[0] & owned[1] & alone[0] & alone[1]
        return first

    def _exchange(self, found: _Choices) -> None:
        node, partner, here, there = found.node, found.partner, found.here, found.there
        place, other = self.place[node], self.place[partner]
        self.rack[node], self.rack[partner] = there, here
        self.place[node], self.place[partner] = other, place
        self.member[there, other], self.member[here, place] = node, partner
        for ends, left, joined in ((node, here, there), (partner, there, here)):
            self._tie(ends, left, -1)
            self._tie(ends, joined, 1)
        self.links += int(found.more.sum())

    def _tie(self, node: Array, rack: Array, sign: int) -> None:
        """Add the links of nodes to the ties of their neighbours with the racks, or subtract them."""
        np.add.at(self.ties, (self.near[node] * self.racks + rack[:, None]).ravel(), sign * self.weight[node].ravel())


def _noise(raw: Array) -> Array:
    """Return about -256 log2 of evenly spread fractions, two of each 64 random bits: the exponent, linear between."""
    fraction = (raw.astype("<u8", copy=False).view("<u4") | np.uint32(1)).astype(np.float32).view(np.int32)
    return ((127 + 32) << 8) - (fraction >> 15)
