"""Topologies as networkx graphs, and networkx graphs as topologies, exactly for all types of numbers.

networkx is loaded only when a topology becomes a graph.
"""

from __future__ import annotations

import decimal
import numbers
import re
from collections.abc import Hashable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from .diagnostic import error
from .links import LinkClass

if TYPE_CHECKING:
    import networkx

    from .topology import Topology

__all__ = ["Network", "graph_of", "network_of", "truth"]

_KINDS = ("rank", "switch")
#: what a switch may do besides forwarding
_POWERS = ("multicast", "reduces")
_UNITS = ("link", "B/s")
#: characters of the longest number; a larger power of ten could take all memory
_MOST_DIGITS = 1000
_POWER = re.compile(r"[eE][+-]?0*[1-9]\d{3}")


class Network(NamedTuple):
    """The topology in a graph: the arguments of :meth:`.topology.Topology.from_links`, gamma and epsilon."""

    name: str
    num_ranks: int
    links: list[tuple[int, int, LinkClass]]
    num_switches: int
    unit: str
    names: tuple[str, ...]
    gamma: Fraction
    epsilon: Fraction
    multicast: tuple[int, ...] = ()
    reduces: tuple[int, ...] = ()


def graph_of(topology: Topology) -> networkx.MultiDiGraph:
    """Return the graph for :meth:`.topology.Topology.to_networkx`."""
    import networkx

    times = {"gamma": topology.gamma, "epsilon": topology.epsilon}
    graph = networkx.MultiDiGraph(
        name=topology.name, unit=topology.unit, **{name: time for name, time in times.items() if time}
    )
    for node, name in enumerate(topology.names):
        does = {power: True for power in _POWERS if node in getattr(topology, power)}
        graph.add_node(node, name=name, kind=_KINDS[node >= topology.num_ranks], **does)
    for link, (a, b) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        kind = topology.classes[topology.link_class[link]]
        graph.add_edge(a, b, link, bandwidth=kind.bandwidth, latency=kind.latency)
    return graph


def network_of(graph: networkx.Graph, name: str | None = None) -> Network:
    """Return the network in a graph, for :meth:`.topology.Topology.from_networkx`; raise C0302 or C0303."""
    _check(graph)
    kinds = {node: _kind(node, data) for node, data in graph.nodes(data=True)}
    nodes = [node for kind in _KINDS for node in kinds if kinds[node] == kind]
    ranks = sum(kind == "rank" for kind in kinds.values())
    title = name or str(graph.graph.get("name") or "graph")
    if not ranks:
        hint = 'leave out `kind`, or set it to "rank", for nodes that hold data'
        raise error("C0303", f"graph `{title}` has no ranks", hint=hint)
    names = tuple(str(graph.nodes[node].get("name", node)) for node in nodes)
    links = list(_links(graph, {node: number for number, node in enumerate(nodes)}))
    gamma, epsilon = (_rational(graph.graph.get(name, 0), name, zero=True) for name in ("gamma", "epsilon"))
    multicast, reduces = (_able(graph, nodes, ranks, power) for power in _POWERS)
    return Network(title, ranks, links, len(nodes) - ranks, _unit(graph), names, gamma, epsilon, multicast, reduces)


def truth(value: object) -> bool | None:
    """Return whether a value of an attribute says yes; None if it says neither yes nor no.

    >>> truth("true"), truth(1), truth("False"), truth(None), truth("maybe")
    (True, True, False, False, None)
    """
    word = str(value or "").strip().lower()
    return True if word in ("1", "1.0", "true", "yes") else False if word in ("", "0", "0.0", "false", "no") else None


def _able(graph: networkx.Graph, nodes: list[Hashable], ranks: int, power: str) -> tuple[int, ...]:
    """Return the numbers of the switches that multicast, or that reduce."""
    answers = [truth(graph.nodes[node].get(power)) for node in nodes]
    if None in answers:
        node = nodes[answers.index(None)]
        raise error("C0303", f"`{power}` of node {node!r} is {graph.nodes[node][power]!r}, needed true or false")
    found = tuple(number for number, able in enumerate(answers) if able)
    if found and found[0] < ranks:
        hint = 'set `kind` to "switch", or leave it out: ranks copy and add in any case'
        raise error("C0303", f"`{power}` of rank {nodes[found[0]]!r} is set: only a switch has it", hint=hint)
    return found


def _check(graph: object) -> None:
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "graph", "is_directed", "is_multigraph")):
        raise error("C0303", f"found {type(graph).__name__}, needed a networkx graph")


def _kind(node: Hashable, data: Mapping[str, object]) -> str:
    kind = data.get("kind", "rank")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise error("C0303", f"`kind` of node {node!r} is {kind!r}", hint='kinds are "rank" and "switch"')
    return kind


def _unit(graph: networkx.Graph) -> str:
    unit = graph.graph.get("unit", "link")
    if not isinstance(unit, str) or unit not in _UNITS:
        hint = 'units are "link" (1 is one link) and "B/s" (bytes per second)'
        raise error("C0303", f"`unit` of the graph is {unit!r}", hint=hint)
    return unit


def _links(graph: networkx.Graph, number: Mapping[Hashable, int]) -> Iterator[tuple[int, int, LinkClass]]:
    """Yield the links in the order of the edges; an undirected edge is two links, one in each direction."""
    for a, b, data in _edges(graph):
        between = f"edge {a!r} to {b!r}"
        bandwidth = _rational(data.get("bandwidth", 1), f"bandwidth of {between}")
        kind = LinkClass(bandwidth, _rational(data.get("latency", 0), f"latency of {between}", zero=True))
        yield number[a], number[b], kind
        if not graph.is_directed():
            yield number[b], number[a], kind


def _edges(graph: networkx.Graph) -> list[tuple[Hashable, Hashable, Mapping[str, object]]]:
    """Return the edges, in the order of their keys if these number all edges of the graph."""
    if not graph.is_multigraph():
        return list(graph.edges(data=True))
    keyed = list(graph.edges(keys=True, data=True))
    keys = [key for _, _, key, _ in keyed]
    if all(isinstance(key, int) for key in keys) and sorted(keys) == list(range(len(keys))):
        keyed.sort(key=lambda edge: edge[2])
    return [(a, b, data) for a, b, _, data in keyed]


def _rational(value: object, what: str, zero: bool = False) -> Fraction:
    """Return the exact value of a graph attribute: a positive number, or 0 if ``zero`` allows it; raise C0302."""
    try:
        number = _exact(value)
    except (TypeError, ValueError, ArithmeticError):
        number = Fraction(-1)
    if number < 0 or (number == 0 and not zero):
        need = "a number of at least 0" if zero else "a positive number"
        raise error("C0302", f"{what} is {_shown(value)}, needed {need}")
    return number


def _exact(value: object) -> Fraction:
    """Return the exact value of a number or a text; numbers may be numpy's."""
    if isinstance(value, str):
        if len(value) > _MOST_DIGITS or _POWER.search(value):
            raise ValueError
        return Fraction(value)
    if isinstance(value, bool):
        raise TypeError
    plain = value.item() if hasattr(value, "item") else value
    if not isinstance(plain, numbers.Rational | float | decimal.Decimal):
        raise TypeError
    return Fraction(plain)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
