"""Smaller networks that hold the same trees: fewer switches and links, so that guesses for the rest succeed.

Machines as they are imported have chains of switches that are a link each (PCIe bridge, NIC, port), and switches that
trees do not need: the CPUs of a machine with an NVSwitch, the spines of a fabric whose rails are enough. The capacity
of such a CPU takes part in the division of the PCIe switches beside it, which then lack capacity to the fabric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from collc.ir.graph.cuts import FlowNetwork
from collc.ir.graph.refinement import Budget, Graph, mix

from .splitting import Mesh

__all__ = ["contracted", "simplified", "without_spare"]

#: tail, head, capacity
Arc = tuple[int, int, int]
#: capacity, and colours of the nodes: arcs of one kind are left out together
Kind = tuple[int, ...]


def simplified(mesh: Mesh, num_ranks: int, supply: Sequence[int]) -> Mesh:
    """Return a mesh that holds the same trees, ``supply[v]`` rooted at node v, with fewer switches and links.

    Every switch must have as much capacity in as out, and the mesh must hold the trees.
    """
    small = without_spare(contracted(mesh, num_ranks), num_ranks, supply)
    return contracted(small, num_ranks)


# ---- without loss in any network


def contracted(mesh: Mesh, num_ranks: int) -> Mesh:
    """Return the mesh with a link in place of every switch with two neighbours, and without capacity for loops.

    A loop is what a switch can only return to the neighbour that sent it. No smallest cut changes: a cut that loops or
    such a switch enlarge becomes smaller if the switch changes sides.
    """
    result = mesh.copy()
    waiting = dict.fromkeys(v for v in range(num_ranks, mesh.num_nodes) if mesh.out[v])
    while waiting:
        switch = next(iter(waiting))
        del waiting[switch]
        around = sorted(result.into[switch].keys() | result.out[switch].keys())
        changed = _without_loops(result, switch, around)
        if len(around) <= 2:
            into, out = result.into[switch], result.out[switch]
            result.remove(switch, [(u, t, amount) for u, amount in into.items() for t in out if t != u])
            changed = around
        waiting.update(dict.fromkeys(v for v in changed if v >= num_ranks and result.out[v]))
    return result


def _without_loops(mesh: Mesh, switch: int, around: Iterable[int]) -> list[int]:
    """Leave out the loops through a switch; return the neighbours that lose capacity."""
    into, out, changed = mesh.into[switch], mesh.out[switch], []
    for node in around:
        loops = into.get(node, 0) + out.get(node, 0) - sum(out.values())
        if loops > 0:
            mesh.reduce(node, switch, loops)
            mesh.reduce(switch, node, loops)
            changed.append(node)
    return changed


# ---- without loss for these trees


def without_spare(mesh: Mesh, num_ranks: int, supply: Sequence[int]) -> Mesh:
    """Return the mesh without the switches, then without the links between switches, that no tree needs.

    Narrow ones go first. Those of one kind go or stay together, so that what was alike remains alike. A switch stays if
    some rank has its widest link there, which data of this rank should take.
    """
    network = mesh.network()
    for spare in (_switches, _links):
        kinds: dict[Kind, list[Arc]] = {}
        for kind, arcs in spare(network, num_ranks, _colours(network, num_ranks, supply)):
            kinds.setdefault(kind, []).extend(arcs)
        for _, arcs in sorted(kinds.items(), key=lambda item: (item[0][0], item[1])):
            _leave_out(network, arcs, supply, num_ranks)
    result = mesh.copy()
    for tail, row in enumerate(mesh.out):
        for head, capacity in row.items():
            result.reduce(tail, head, capacity - network.between(tail, head))
    return result


def _colours(network: FlowNetwork, num_ranks: int, supply: Sequence[int]) -> list[int]:
    """Return a colour for every node, equal if supplies are and no difference of the neighbourhoods is known."""
    arcs = sorted(network.arcs())
    capacities, trees = _numbered(capacity for _, _, capacity in arcs), _numbered(supply)
    columns = np.array([(tail, head, capacities[capacity]) for tail, head, capacity in arcs], dtype=np.int64)
    graph = Graph.of(network.num_nodes, len(capacities), *columns.reshape(-1, 3).T)
    first = [2 * trees[amount] + (node < num_ranks) for node, amount in enumerate(supply)]
    found = graph.refine(mix(np.array(first, dtype=np.uint64)), Budget(0))
    assert found is not None, "there is no other graph to differ from"
    return list(found[0].tolist())


def _numbered(values: Iterable[int]) -> dict[int, int]:
    """Return the place of every different value in ascending order."""
    return {value: place for place, value in enumerate(sorted(set(values)))}


def _switches(network: FlowNetwork, num_ranks: int, colours: Sequence[int]) -> Iterator[tuple[Kind, list[Arc]]]:
    """Yield the kind and the arcs of every switch that may be left out."""
    around: list[list[Arc]] = [[] for _ in range(network.num_nodes)]
    for arc in network.arcs():
        around[arc[0]].append(arc)
        around[arc[1]].append(arc)
    widest = [max((capacity for _, _, capacity in arcs), default=0) for arcs in around]
    for switch, arcs in enumerate(around[num_ranks:], num_ranks):
        ends = [(tail if head == switch else head, arc) for arc in arcs for tail, head, _ in [arc]]
        if arcs and all(_is_even(network, arc) if v >= num_ranks else arc[2] < widest[v] for v, arc in ends):
            yield (sum(capacity for _, _, capacity in arcs), colours[switch]), arcs


def _links(network: FlowNetwork, num_ranks: int, colours: Sequence[int]) -> Iterator[tuple[Kind, list[Arc]]]:
    """Yield the kind and both arcs of every link between switches that may be left out."""
    for tail, head, capacity in network.arcs():
        if num_ranks <= tail < head and _is_even(network, (tail, head, capacity)):
            ends = sorted((colours[tail], colours[head]))
            yield (capacity, *ends), [(tail, head, capacity), (head, tail, capacity)]


def _is_even(network: FlowNetwork, arc: Arc) -> bool:
    """Return whether the reverse arc has the same capacity: without both, switches keep as much capacity in as out."""
    tail, head, capacity = arc
    return network.between(head, tail) == capacity


def _leave_out(network: FlowNetwork, arcs: Iterable[Arc], supply: Sequence[int], num_ranks: int) -> None:
    """Remove arcs from a network if the trees still exist without them."""
    removed = {(tail, head): network.between(tail, head) for tail, head, _ in arcs}
    for (tail, head), capacity in removed.items():
        network.add(tail, head, -capacity)
    if network.violated(supply, range(num_ranks)):
        for (tail, head), capacity in removed.items():
            network.add(tail, head, capacity)
