"""The search for isomorphisms and automorphisms: individualization, refinement and backtracking on graphs of twins.

A path gives one node of the first graph after another a colour of its own and refines, until all colours differ. On the
second graph the search tries the nodes of the same colour, one after the other.
"""

from __future__ import annotations

import attrs
import numpy as np

from ..arrays import Array
from ..topology import Topology
from .refinement import Budget, Graph, individualize, mix, start_colours, twins

__all__ = ["Path", "Side", "components", "first_of_orbits", "generators"]

#: an attempt at an automorphism may use 1/_ATTEMPTS of the remaining effort
_ATTEMPTS = 8


# ---- one side of a search


@attrs.frozen(eq=False)
class Side:
    """A graph and its colours; ``members[i]`` are the nodes of the topology that node i represents."""

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
        """Return the graph of one node of each class of twins. Its colour depends on their number and links."""
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
        """Return a map of the topology's nodes that induces a map of classes."""
        result = np.empty(self.size, dtype=np.int64)
        for members, image in zip(self.members, nodes.tolist(), strict=True):
            result[members] = other.members[image]
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
    """A step that individualizes one node: the stable colours before, and after with their trace."""

    node: int
    before: Array
    after: Array
    trace: list[int]


@attrs.frozen(eq=False)
class Path:
    """The first side of a search, down to one colour per node."""

    graph: Graph
    start: Array
    trace: list[int]
    steps: list[_Step]

    @classmethod
    def down(cls, graph: Graph, colours: Array, budget: Budget) -> Path:
        """Return the path that individualizes nodes one by one, in the smallest class first, until all colours differ.

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
            cell = min(many.tolist(), key=lambda i: (count[i], first[i]))  # small cells give few candidates
            node = int(first[cell])
            refined = graph.refine(individualize(colours, node), budget)
            assert refined is not None
            steps.append(_Step(node, colours, *refined))
            colours = refined[0]
        return cls(graph, start, trace, steps)

    def colours(self, level: int) -> Array:
        """Return the stable colours, shape (nodes,), after ``level`` nodes were individualized."""
        return self.steps[level - 1].after if level else self.start


def _candidates(path: Path, level: int, colours: Array) -> list[int]:
    """Return the nodes to which the path's next node may be mapped, the same node first."""
    if level == len(path.steps):
        return []
    step = path.steps[level]
    nodes = np.flatnonzero(colours == step.before[step.node]).tolist()
    return sorted(nodes, key=lambda node: node != step.node)


def _search(path: Path, side: Side, colours: Array, level: int, first: list[int], budget: Budget) -> Array | None:
    """Return a map from the path's graph to the side's with one of ``first`` as the image of ``level``'s node."""
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
        # for automorphisms a map that moves few nodes is often right long before all colours differ
        if (level == len(path.steps) or side.graph is path.graph) and (
            found := _paired(path, side.graph, step.after, colours)
        ) is not None:
            return found
        waiting += [(level, colours, node) for node in reversed(_candidates(path, level, colours))]
    return None


def _paired(path: Path, graph: Graph, one: Array, two: Array) -> Array | None:
    """Return the map that pairs nodes of equal colours in order and fixes nodes if possible; None if it is wrong."""
    nodes = np.arange(graph.size)
    apart = np.flatnonzero(one != two)
    origins, images = (apart[np.argsort(colours[apart], kind="stable")] for colours in (one, two))
    if not np.array_equal(one[origins], two[images]):
        return None
    nodes[origins] = images
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


# ---- results of searches


def first_of_orbits(path: Path, side: Side, colours: Array, budget: Budget, translations: list[Array]) -> Array | None:
    """Search with every image of the path's first node; of nodes that automorphisms exchange, with one."""
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

    ``translations`` are known automorphisms of the topology.
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
            attempt = Budget(budget.left // _ATTEMPTS)  # one failing attempt must not use the effort of all others
            budget.left -= attempt.left
            new = _search(path, side, step.before, level, [node], attempt)
            budget.left += max(attempt.left, 0)
            if new is None:
                failed.add(int(orbit[node]))
                continue
            found.append(new)
            failed_nodes = [int(np.flatnonzero(orbit == label)[0]) for label in failed]
            orbit = components(orbit, [new])
            failed = {int(orbit[node]) for node in failed_nodes}
    return found


def components(labels: Array, maps: list[Array]) -> Array:
    """Return the least label that the maps connect with each place; labels are places."""
    moves = [(moved, places[moved]) for places in maps for moved in [np.flatnonzero(places != np.arange(len(places)))]]
    labels, changed = labels.copy(), True
    while changed:
        before = labels.copy()
        for origins, images in moves:
            here, there = labels[origins], labels[images]
            low = np.minimum(here, there)
            np.minimum.at(labels, here, low)
            np.minimum.at(labels, there, low)
            labels = labels[labels]
        changed = bool((labels != before).any())
    return labels
