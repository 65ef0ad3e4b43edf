"""Sets of nodes and links of a topology, as the operators `without` and `degraded` take them."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from collc.ir.arrays import Array
from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.node_names import node_text
from collc.ir.topology import Topology

from .families import Elements
from .scope import NodeTable, earlier
from .values import Arrow, Integers, Parts, Switch, Value, kind_of, no_number

__all__ = ["elements", "part_text", "rank_numbers"]

_MOST_NEIGHBOURS = 4


def elements(function: str, topology: Topology, value: Value, span: Span | None) -> Elements:
    """Return the nodes and links that a set names, by their numbers in the topology.

    ``A <-> B`` names a link of each direction. Of parallel links every mention names one more. Raises C0131 for
    anything but a set, C0137 for a node twice, C0311 for what the topology does not have.
    """
    match value:
        case Parts(items, spans):
            if not topology.node_names and any(isinstance(item, str) for item in items):
                raise no_number(value, span)
            found = _Found(function, topology)
            for item, place in zip(items, spans, strict=True):
                found.add(item, place)
            return Elements(tuple(found.nodes), tuple(found.links))
        case Integers(items):
            places = dict(zip(value.given, value.spans, strict=False))
            return elements(function, topology, Parts(items, tuple(places.get(item, span) for item in items)), span)
        case range():
            return elements(function, topology, Integers(tuple(value[: topology.num_ranks + 1])), span)
    hint = "write `{0, 1}` for ranks, `{0 -> 1}` for links"
    raise error("C0131", f"found {kind_of(value)}, needed a set as `parts` of `{function}`", span=span, hint=hint)


def rank_numbers(topology: Topology, value: Parts, hint: str) -> Integers:
    """Return the ranks that a set names; raise C0131 for a switch or a link (with the hint), C0137 for a rank twice."""
    numbers: dict[int, Span | None] = {}
    table = NodeTable.of(topology)
    for item, place in zip(value.items, value.spans, strict=True):
        if isinstance(item, str):
            item = table.named(item, place)
        if not isinstance(item, int):
            what = "a link" if isinstance(item, Arrow) else "a switch"
            raise error("C0131", f"found {what}, needed a rank or an integer", span=place, hint=hint)
        if item in numbers:
            message, related = f"found {topology.names[item]} twice in a set", earlier(numbers[item], "the first")
            raise error("C0137", message, span=place, hint="name each rank once", related=related)
        numbers[item] = place
    return Integers(tuple(sorted(numbers)), (), tuple(numbers), tuple(numbers.values()))


class _Found:
    """The nodes and links that the elements of a set name, in the order of the set."""

    def __init__(self, function: str, topology: Topology):
        self.function, self.topology = function, topology
        self.nodes: dict[int, None] = {}
        self.links: dict[int, None] = {}
        self.mentions: Counter[tuple[int, int]] = Counter()

    @cached_property
    def names(self) -> NodeTable:
        """The nodes by name."""
        return NodeTable.of(self.topology)

    def add(self, item: int | Switch | Arrow | str, span: Span | None) -> None:
        if isinstance(item, Arrow):
            tail, head = self._node(item.tail, span), self._node(item.head, span)
            self._link(tail, head, span)
            if item.duplex:
                self._link(head, tail, span)
            return
        node = self._node(item, span)
        if node in self.nodes:
            raise error("C0137", f"found {self.topology.names[node]} twice in a set", span=span)
        self.nodes[node] = None

    def _node(self, item: int | Switch | str, span: Span | None) -> int:
        ranks = self.topology.num_ranks
        if isinstance(item, str):
            item = self.names.named(item, span)
        if isinstance(item, Switch):
            return ranks + item.number
        if not 0 <= item < ranks:
            hint = "a set of links is `{0 <-> 1}`" if item < 0 else None
            raise error("C0311", f"found rank {item}, needed ranks from 0 to {ranks - 1}", span=span, hint=hint)
        return item

    def _link(self, tail: int, head: int, span: Span | None) -> None:
        number = self.mentions[tail, head]
        self.mentions[tail, head] += 1
        found = links_between(self.topology, tail, head)
        if number >= len(found):
            raise self._missing(tail, head, len(found), span)
        self.links[int(found[number])] = None

    def _missing(self, tail: int, head: int, count: int, span: Span | None) -> CollcError:
        a, b = map(self.topology.node_text, (tail, head))
        if count:
            message = f"found the link `{a} -> {b}` {count + 1} times, `{self.topology.name}` has it {_times(count)}"
            return error("C0311", message, span=span, hint="name a link once for each of the parallel links")
        message = f"`{self.topology.name}` has no link from `{a}` to `{b}`"
        return error("C0311", message, span=span, hint=_where_to(self.topology, tail, head))


def links_between(topology: Topology, tail: int, head: int) -> Array:
    """Return the numbers of the links from one node to another, ascending."""
    start, links = topology.out_links
    links_out = links[start[tail] : start[tail + 1]]
    found: Array = links_out[topology.dst[links_out] == head]
    return found


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _where_to(topology: Topology, tail: int, head: int) -> str:
    """Return the nearest way to a link that exists: the other direction, or where the node's links lead."""
    a, b = map(topology.node_text, (tail, head))
    if len(links_between(topology, head, tail)):
        return f"there is `{b} -> {a}`"
    start, links = topology.out_links
    heads = sorted(set(topology.dst[links[start[tail] : start[tail + 1]]].tolist()))
    if not heads:
        return f"`{a}` has no links out"
    shown = ", ".join(f"`{topology.node_text(node)}`" for node in heads[:_MOST_NEIGHBOURS])
    return f"`{a}` is linked to {shown}{', ..' if len(heads) > _MOST_NEIGHBOURS else ''}"


def part_text(part: int | Switch | Arrow | str, topology: Topology | None) -> str:
    """Return a node or a link of a topology as the language writes it; without a topology, numbers and names alone.

    >>> net = Topology.from_links("net", 2, [], 1, node_names=("gpu[0]", "1", "nv"))
    >>> part_text(Arrow(0, Switch(0), True), net), part_text(1, net), part_text(1, None)
    ('gpu[0] <-> nv', '"1"', '1')
    """
    match part:
        case Arrow(tail, head, duplex):
            ends = (part_text(end, topology) for end in (tail, head))
            return (" <-> " if duplex else " -> ").join(ends)
        case Switch(number):
            return topology.node_text(topology.num_ranks + number) if topology else f"switch {number}"
        case str():
            return node_text(part)
    return topology.node_text(part) if topology and 0 <= part < topology.num_ranks else str(part)
