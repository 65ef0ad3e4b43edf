"""Removes switches: the same trees on a network of ranks alone, with their routes through switches.

ForestColl, section 4.3 and appendix C.2. A switch cannot copy, so trees must not branch in it: its capacity is divided
among pairs of neighbours. If all switches have equal capacity in and out, that is possible without loss. The division
is first guessed for all switches (``layout``, ``stars``) and verified by one sweep. If that fails, a smaller network
that holds the same trees is guessed (``simplifying``), and as few switches as possible are divided exactly
(``splitting``), near the guess; the better trees win. Exact division of a large network takes too much work: there it
only replaces a guess that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from collc.ir.diagnostic import CollcError, error
from collc.ir.effort import within
from collc.ir.graph.cuts import FlowNetwork
from collc.ir.progress import counting, progress

from .layout import Layout
from .simplifying import simplified
from .splitting import CutPool, Mesh, PairsLeft, split_off, switch_routes
from .stars import Pair, Spreader

__all__ = ["Logical", "removals", "remove_switches"]

#: ranks times links of networks that are split exactly though a smaller network may need no splits, and steps of that
_SMALL = 1 << 17
_EXACT = 1 << 24


@attrs.frozen
class Logical:
    """A network of ranks alone: ``capacity`` from rank to rank, and the switches of its routes in ``via``.

    ``via[u, t]`` lists (switches passed in order, capacity); a link from rank to rank passes none. All routes over an
    arc of the physical network together have at most the arc's capacity.
    """

    num_ranks: int
    capacity: dict[tuple[int, int], int]
    via: dict[tuple[int, int], list[tuple[tuple[int, ...], int]]]


def remove_switches(
    network: FlowNetwork, num_ranks: int, supply: Sequence[int], names: Sequence[str] | None = None
) -> Logical:
    """Return the first result of :func:`removals`."""
    return next(removals(network, num_ranks, supply, names))


def removals(
    network: FlowNetwork, num_ranks: int, supply: Sequence[int], names: Sequence[str] | None = None
) -> Iterator[Logical]:
    """Yield capacities between ranks (nodes below ``num_ranks``) with which the same trees exist: one choice or two.

    ``supply[v]`` is the number of trees rooted at node v, 0 at switches; the network must hold them all: a smallest cut
    of at least their sum. The network is not changed. Raises C0584 if capacities in and out of a switch differ and
    cannot be made equal without loss; ``names`` of nodes are for the message.
    """
    supply = [*supply, *[0] * (network.num_nodes - len(supply))]
    names = names or [str(node) for node in range(network.num_nodes)]
    network = _balanced(network, num_ranks, supply, names)
    start = Mesh(network)
    try:
        for mesh in _without_switches(start, num_ranks, supply):
            found = switch_routes(network, mesh.splits)
            via = {pair: routes for pair, routes in found.items() if max(pair) < num_ranks}
            yield Logical(num_ranks, {pair: sum(amount for _, amount in routes) for pair, routes in via.items()}, via)
    except PairsLeft as left:
        into, out = start.into[left.switch], start.out[left.switch]
        raise _unequal(names[left.switch], sum(into.values()), sum(out.values())) from None


def _without_switches(start: Mesh, num_ranks: int, supply: Sequence[int]) -> Iterator[Mesh]:
    """Yield the mesh without switches: by the first guess if it loses nothing.

    Else yield the mesh split exactly, unless that takes too much work, and a guess for a smaller mesh.
    """
    layout = Layout(start.network(), num_ranks)
    mesh = _guessed(start, layout, supply, []) if layout.order() else start
    if mesh is not None:
        yield mesh
        return
    smaller = simplified(start, num_ranks, supply)
    mesh = _guessed(smaller, Layout(smaller.network(), num_ranks), supply, [])
    small = num_ranks * sum(map(len, start.out)) <= _SMALL
    exact = within(_EXACT, lambda: _divided(start.copy(), num_ranks, supply)) if small else None
    if mesh is None and exact is None:
        exact = _divided(smaller, num_ranks, supply)
    yield from (found for found in (exact, mesh) if found is not None)


def _divided(start: Mesh, num_ranks: int, supply: Sequence[int]) -> Mesh:
    """Return the mesh without switches: by a guess along tight cuts, else with as few exact splits as possible."""
    network = start.network()
    layout, pool = Layout(network, num_ranks), _tight_cuts(network, num_ranks, supply)
    for tight in (pool.inside, None):
        mesh = _guessed(start, layout, supply, tight)
        if mesh is not None:
            return mesh
    return _split(start, layout, pool, supply)


def _guessed(start: Mesh, layout: Layout, supply: Sequence[int], tight: Sequence[int] | None) -> Mesh | None:
    """Return the mesh with a guess for every switch, or None if that loses trees.

    ``tight`` are the cuts by which neighbours are divided besides the layout, as bits of every node; None divides none.
    """
    mesh, spreader = start.copy(), Spreader()
    for switch in counting(layout.order(), "dividing switches"):
        mesh.remove(switch, _guess(mesh, switch, spreader, layout, tight))
    return None if mesh.network(layout.num_ranks).violated(supply, range(layout.num_ranks)) else mesh


def _guess(mesh: Mesh, switch: int, spreader: Spreader, layout: Layout, tight: Sequence[int] | None) -> list[Pair]:
    into, out = mesh.into[switch], mesh.out[switch]
    nodes = into.keys() | out.keys()
    groups = [[node] for node in sorted(nodes)] if tight is None else layout.groups(switch, nodes, tight)
    rails = nodes <= layout.below[switch]
    return spreader.pairs(into, out, groups, layout.grain(switch), rails)


def _split(mesh: Mesh, layout: Layout, pool: CutPool, supply: Sequence[int]) -> Mesh:
    """Return the mesh without switches: guesses without loss, found by bisection, and exact splits elsewhere.

    ``pool`` has the tight cuts, by which guesses divide neighbours.
    """
    order, sinks, spreader = layout.order(), list(range(layout.num_ranks)), Spreader()
    tight = list(pool.inside)
    place, size = 0, max(1, len(order) // 2)
    while place < len(order):
        progress("dividing switches", place, len(order))
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
            preferred = _guess(mesh, switch, spreader, layout, tight)
            mesh.remove(switch, split_off(mesh, switch, preferred, supply, sinks, pool))
            place += 1
    return mesh


def _tight_cuts(network: FlowNetwork, num_ranks: int, supply: Sequence[int]) -> CutPool:
    """Return tight cuts: for every rank that some tight cut lacks, at least one of these.

    One more tree, from an extra node, makes them too small.
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
    """Return the network with the surplus capacity of switches removed; the network itself if there is none."""
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
        f"found capacity for {into} trees into switch {name} and {out} out of it, needed as many out as in",
        notes=["a switch forwards data and cannot copy, so every capacity in needs one out"],
        hint="use the optimal k, which rounds no bandwidth, or give every link a reverse link of the same bandwidth",
        exit_status=3,
    )
