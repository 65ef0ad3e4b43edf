"""Switches out: the same trees on a network of ranks alone, and the ways through switches that it stands for.

ForestColl, section 4.3 and appendix C.2. A switch cannot copy, so trees must not branch in it: its capacity is divided
among pairs of neighbours for good. On a network whose switches let out as much as in that can be done without loss.
First the division is guessed for all switches (``layout``, ``stars``) and verified by one sweep; where that fails,
as few switches as possible are divided exactly (``splitting``), staying near the guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from collc.ir.cuts import FlowNetwork
from collc.ir.diagnostic import CollcError, error

from .layout import Layout
from .splitting import CutPool, Mesh, PairsLeft, exactly, ways
from .stars import Pair, Spreader

__all__ = ["Logical", "remove_switches"]


@attrs.frozen
class Logical:
    """A network of ranks alone: ``capacity`` from rank to rank, and ``via`` which switches.

    ``via[u, t]`` lists (switches passed in order, capacity that goes so); a link from rank to rank passes none. The
    capacities of all ways that use an arc of the physical network are no more than the arc has.
    """

    num_ranks: int
    capacity: dict[tuple[int, int], int]
    via: dict[tuple[int, int], list[tuple[tuple[int, ...], int]]]


def remove_switches(
    network: FlowNetwork, num_ranks: int, supply: Sequence[int], names: Sequence[str] | None = None
) -> Logical:
    """Return the capacities between ranks (nodes below ``num_ranks``) with which the same trees exist.

    ``supply[v]`` is the number of trees rooted at node v, 0 at switches; the network must hold them all: a smallest cut
    of at least their sum. It is left as it is. Raises C0584 where capacities in and out of a switch differ and
    cannot be made equal without loss; ``names`` of nodes are for the message.
    """
    supply = [*supply, *[0] * (network.num_nodes - len(supply))]
    names = names or [str(node) for node in range(network.num_nodes)]
    network = _balanced(network, num_ranks, supply, names)
    layout, start = Layout(network, num_ranks), Mesh(network)
    try:
        mesh = _guessed(start, layout, network, supply)
        mesh = mesh if mesh is not None else _split(start, layout, _tight_cuts(network, num_ranks, supply), supply)
    except PairsLeft as left:
        into, out = start.into[left.switch], start.out[left.switch]
        raise _unequal(names[left.switch], sum(into.values()), sum(out.values())) from None
    found = ways(network, mesh.splits)
    via = {pair: way for pair, way in found.items() if max(pair) < num_ranks}
    return Logical(num_ranks, {pair: sum(amount for _, amount in way) for pair, way in via.items()}, via)


def _guessed(start: Mesh, layout: Layout, network: FlowNetwork, supply: Sequence[int]) -> Mesh | None:
    """Return the mesh of the first guess that loses nothing, or nothing."""
    ranks = range(layout.num_ranks)
    if not layout.order():
        return start
    for division in _divisions(layout, network, supply):
        mesh, spreader = start.copy(), Spreader()
        for switch in layout.order():
            mesh.remove(switch, _guess(mesh, switch, spreader, layout, division))
        if not mesh.network(layout.num_ranks).violated(supply, ranks):
            return mesh
    return None


def _divisions(layout: Layout, network: FlowNetwork, supply: Sequence[int]) -> Iterator[list[int] | None]:
    """Yield ways to divide neighbours: by the layout, with tight cuts too, and not at all (None)."""
    yield []
    yield _tight_cuts(network, layout.num_ranks, supply).inside
    yield None


def _guess(mesh: Mesh, switch: int, spreader: Spreader, layout: Layout, tight: Sequence[int] | None) -> list[Pair]:
    into, out = mesh.into[switch], mesh.out[switch]
    nodes = into.keys() | out.keys()
    groups = [[node] for node in sorted(nodes)] if tight is None else layout.groups(switch, nodes, tight)
    rails = nodes <= layout.below[switch]
    return spreader.pairs(into, out, groups, layout.grain(switch), rails)


def _split(mesh: Mesh, layout: Layout, pool: CutPool, supply: Sequence[int]) -> Mesh:
    """Return the mesh without switches: guesses where they lose nothing, found by halving, exact splits elsewhere.

    ``pool`` has the tight cuts, by which guesses divide neighbours.
    """
    order, sinks, spreader = layout.order(), list(range(layout.num_ranks)), Spreader()
    tight = list(pool.inside)
    place, size = 0, max(1, len(order) // 2)
    while place < len(order):
        trial = mesh.copy()
        for switch in order[place : place + size]:
            trial.remove(switch, _guess(trial, switch, spreader, layout, tight))
        if not trial.network().violated(supply, sinks):
            for switch, u, t, amount in trial.splits[len(mesh.splits) :]:
                pool.take(pool.lowered(switch, u, t), amount)
            mesh, place, size = trial, place + size, 2 * size
        elif size > 1:
            size //= 2
        else:
            switch = order[place]
            wished = _guess(mesh, switch, spreader, layout, tight)
            mesh.remove(switch, exactly(mesh, switch, wished, supply, sinks, pool))
            place += 1
    return mesh


def _tight_cuts(network: FlowNetwork, num_ranks: int, supply: Sequence[int]) -> CutPool:
    """Return cuts that have nothing to spare: for every rank that some leave out one, if no other leaves it out.

    One more tree from nowhere makes them too small.
    """
    nowhere = network.num_nodes
    larger = FlowNetwork(nowhere + 1, network.arcs())
    found = larger.violated([*supply, 1], range(num_ranks), num_ranks)
    if any(cut.value < sum(supply) for cut in found):
        raise ValueError("the network does not hold these trees")
    pool = CutPool(nowhere + 1)
    for cut in found:
        pool.add(cut, 0)
    return pool


def _balanced(network: FlowNetwork, num_ranks: int, supply: Sequence[int], names: Sequence[str]) -> FlowNetwork:
    """Return the network with capacity taken away so that every switch lets out as much as in; itself, if it is so."""
    surplus = [0] * network.num_nodes
    for tail, head, capacity in network.arcs():
        surplus[tail] -= capacity
        surplus[head] += capacity
    wrong = [v for v in range(num_ranks, network.num_nodes) if surplus[v]]
    if not wrong:
        return network
    trimmed, first = FlowNetwork(network.num_nodes, network.arcs()), wrong[0]
    total = sum(supply)
    while wrong:
        switch = wrong.pop()
        ends = sorted({trimmed.head[arc] for arc in trimmed.out[switch]}, key=lambda v: (v >= num_ranks, v))
        for other in ends:
            inward = surplus[switch] > 0
            tail, head = (other, switch) if inward else (switch, other)
            amount = min(abs(surplus[switch]), trimmed.between(tail, head))
            if not amount:
                continue
            trimmed.add(tail, head, -amount)
            cut = trimmed.smallest_cut(supply, range(num_ranks), total)
            back = min(amount, total - cut.value) if cut is not None else 0
            trimmed.add(tail, head, back)
            surplus[tail] += amount - back
            surplus[head] -= amount - back
            if other >= num_ranks and amount > back:
                wrong.append(other)
        if surplus[switch] and switch not in wrong:
            into = sum(network.capacity[arc ^ 1] for arc in network.out[first])
            raise _unequal(names[first], into, sum(network.capacity[arc] for arc in network.out[first]))
    return trimmed


def _unequal(name: str, into: int, out: int) -> CollcError:
    return error(
        "C0584",
        f"switch {name} takes in {into} trees and lets out {out}: needed are as many out as in",
        notes=["a switch passes data on and cannot copy, so trees through it need capacities that pair up"],
        hint="take the optimal k, which rounds no bandwidth, or give every link one of the same bandwidth back",
        exit_status=3,
    )
