"""The search behind isomorphisms and automorphisms: individualization, refinement and backtracking on graphs of twins.

A path tells one node of the first graph after another apart from its like and refines, until every node has a colour of
its own; on the second graph the search tries the nodes of the same colour in turn.
"""

from __future__ import annotations

import attrs
import numpy as np

from ..arrays import Array
from ..topology import Topology
from .refinement import Budget, Graph, individualize, mix, start_colours, twins

__all__ = ["Path", "Side", "components", "first_of_orbits", "generators"]

#: an attempt at an automorphism may use this fraction of the effort that is left
_ATTEMPTS = 8


# ---- one side of a search


@attrs.frozen(eq=False)
class Side:
    """A graph and its colours; ``members[i]`` are the nodes of the topology for which node i stands."""

    graph: Graph
    colours: Array
    members: tuple[Array, ...] = ()
    size: int = 0

    @classmethod
    def of(cls, topology: Topology, kind: Array, kinds: int) -> Side:
        """Return the side of a topology; ``kind`` is the kind of each of its classes of links, 0 to ``kinds`` - 1."""
        src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
        graph = Graph.of(topology.num_nodes, kinds, src, dst, kind[topology.link_class])
        return cls(graph, start_colours(topology))

    def quotient(self) -> Side:
        """Return the graph of one node of each class of twins, coloured by how many it stands for and their links."""
        size, colours = self.graph.size, self.colours.copy()
        groups = twins(self.graph, colours)
        first = np.ones(size, dtype=bool)
        for group in groups:
            first[group[1:]] = False
            between = (self.graph.src == group[0]) & (self.graph.dst == group[1])
            inner = mix(self.graph.kind[between].astype(np.uint64)).sum(dtype=np.uint64)
            own = colours[group[:1]] + np.array([len(group)], dtype=np.uint64)
            colours[group[0]] = mix(mix(own) + inner)[0]
        nodes = np.flatnonzero(first)
        of_class = {int(group[0]): group for group in groups}
        members = tuple(of_class.get(node, np.array([node])) for node in nodes.tolist())
        return Side(self.graph.induced(nodes), colours[nodes], members, size)

    def lift(self, nodes: Array, other: Side) -> Array:
        """Return the map of the topology's nodes that a map of classes stands for."""
        result = np.empty(self.size, dtype=np.int64)
        for mine, theirs in zip(self.members, nodes.tolist(), strict=True):
            result[mine] = other.members[theirs]
        return result

    def project(self, nodes: Array) -> Array:
        """Return the map of classes that a map of the topology's nodes induces."""
        owner = np.empty(self.size, dtype=np.int64)
        for i, group in enumerate(self.members):
            owner[group] = i
        return owner[nodes[[int(group[0]) for group in self.members]]]


# ---- the search


@attrs.frozen(eq=False)
class _Step:
    """One node told apart from those of its colour: the stable colours before, and after with their trace."""

    node: int
    before: Array
    after: Array
    trace: list[int]


@attrs.frozen(eq=False)
class Path:
    """The first side of a search, down to one colour a node."""

    graph: Graph
    start: Array
    trace: list[int]
    steps: list[_Step]

    @classmethod
    def down(cls, graph: Graph, colours: Array, budget: Budget) -> Path:
        """Return the path that tells nodes apart one by one, in the smallest class first, until none are alike.

        It ends early when the budget is spent.
        """
        refined = graph.refine(colours, budget)
        assert refined is not None
        colours, trace = start, _ = refined
        steps = list[_Step]()
        while not budget.spent:
            _, first, count = np.unique(colours, return_index=True, return_counts=True)
            many = np.flatnonzero(count > 1)
            if not len(many):
                break
            cell = min(many.tolist(), key=lambda i: (count[i], first[i]))  # small cells leave little to try
            node = int(first[cell])
            refined = graph.refine(individualize(colours, node), budget)
            assert refined is not None
            steps.append(_Step(node, colours, *refined))
            colours = refined[0]
        return cls(graph, start, trace, steps)

    def colours(self, level: int) -> Array:
        """Return the stable colours, shape (nodes,), after ``level`` nodes were told apart."""
        return self.steps[level - 1].after if level else self.start


def _candidates(path: Path, level: int, colours: Array) -> list[int]:
    """Return the nodes that the path's next node may go to, the same node first."""
    if level == len(path.steps):
        return []
    step = path.steps[level]
    nodes = np.flatnonzero(colours == step.before[step.node]).tolist()
    return sorted(nodes, key=lambda node: node != step.node)


def _search(path: Path, side: Side, colours: Array, level: int, first: list[int], budget: Budget) -> Array | None:
    """Return a map from the path's graph to the side's, where the node of ``level`` goes to one of ``first``."""
    if level == len(path.steps):
        return _paired(path, side.graph, path.colours(level), colours)
    waiting = [(level, colours, node) for node in reversed(first)]
    while waiting and not budget.spent:
        level, colours, node = waiting.pop()
        step = path.steps[level]
        refined = side.graph.refine(individualize(colours, node), budget, step.trace)
        if refined is None:
            continue
        colours, level = refined[0], level + 1
        # on one graph a guess that moves little is often right long before all nodes are told apart
        if (level == len(path.steps) or side.graph is path.graph) and (
            found := _paired(path, side.graph, step.after, colours)
        ) is not None:
            return found
        waiting += [(level, colours, node) for node in reversed(_candidates(path, level, colours))]
    return None


def _paired(path: Path, graph: Graph, one: Array, two: Array) -> Array | None:
    """Return the map that pairs nodes of one colour in order, staying where that is possible, if it maps links so."""
    nodes = np.arange(graph.size)
    apart = np.flatnonzero(one != two)
    mine, theirs = (apart[np.argsort(colours[apart], kind="stable")] for colours in (one, two))
    if not np.array_equal(one[mine], two[theirs]):
        return None
    nodes[mine] = theirs
    first = path.graph
    if not len(first.src):
        return nodes
    keys = [
        ((kind * graph.size + src) * graph.size + dst).astype(np.uint64)
        for kind, src, dst in (
            (first.kind, nodes[first.src], nodes[first.dst]), (graph.kind, graph.src, graph.dst),
        )
    ]  # fmt: skip
    if int(mix(keys[0]).sum(dtype=np.uint64)) != int(mix(keys[1]).sum(dtype=np.uint64)):
        return None
    return nodes if np.array_equal(np.sort(keys[0]), np.sort(keys[1])) else None


# ---- what is searched for


def first_of_orbits(path: Path, side: Side, colours: Array, budget: Budget, translations: list[Array]) -> Array | None:
    """Search from all nodes that the path's first node may go to; of nodes that automorphisms exchange, from one."""
    nodes = _candidates(path, 0, colours)
    found = _search(path, side, colours, 0, nodes[:1], budget)
    if found is not None or len(nodes) < 2 or budget.spent:
        return found
    orbit = components(np.arange(side.graph.size), generators(side, translations, budget))
    tried = {int(orbit[nodes[0]])}
    for node in nodes[1:]:
        if int(orbit[node]) not in tried and found is None and not budget.spent:
            tried.add(int(orbit[node]))
            found = _search(path, side, colours, 0, [node], budget)
    return found


def generators(side: Side, translations: list[Array], budget: Budget) -> list[Array]:
    """Return generators of the automorphisms, those of the pointwise stabilizers of the path's nodes first.

    ``translations`` are automorphisms of the topology that are known already.
    """
    path = Path.down(side.graph, side.colours, budget)
    known = [side.project(g) for g in translations]
    known = [g for g in known if (side.colours[g] == side.colours).all()]
    found = list[Array]()
    for level in reversed(range(len(path.steps))):
        step = path.steps[level]
        if level == 0:
            found += known
        orbit = components(np.arange(side.graph.size), found)
        failed = set[int]()
        for node in np.flatnonzero(step.before == step.before[step.node]).tolist():
            if orbit[node] == orbit[step.node] or int(orbit[node]) in failed:
                continue
            purse = Budget(budget.left // _ATTEMPTS)  # one hopeless attempt must not cost all others
            budget.left -= purse.left
            new = _search(path, side, step.before, level, [node], purse)
            budget.left += max(purse.left, 0)
            if new is None:
                failed.add(int(orbit[node]))
                continue
            found.append(new)
            hopeless = [int(np.flatnonzero(orbit == label)[0]) for label in failed]
            orbit = components(orbit, [new])
            failed = {int(orbit[node]) for node in hopeless}
    return found


def components(labels: Array, maps: list[Array]) -> Array:
    """Return the least label that can be reached from each place along the maps; labels are places."""
    labels, changed = labels.copy(), True
    while changed:
        before = labels.copy()
        for places in maps:
            here, there = labels, labels[places]
            low = np.minimum(here, there)
            np.minimum.at(labels, here, low)
            np.minimum.at(labels, there, low)
            labels = np.minimum(labels, low)
            labels[places] = np.minimum(labels[places], low)
            labels = labels[labels]
        changed = bool((labels != before).any())
    return labels
