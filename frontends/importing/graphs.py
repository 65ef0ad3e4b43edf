"""Graphs of other programs as networks: the meaning of nodes' and edges' attributes, the same in all formats of graphs.

A node's ``kind`` says whether it is a rank or a switch, its ``name`` or ``label`` what it is called. An edge has
``bw`` (GB/s) and ``lat`` (us), or ``bandwidth`` in the graph's ``unit`` and ``latency`` in seconds, as
:mod:`collc.ir.exchange` writes them, or texts with units such as ``"25 GB/s"``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import NamedTuple

import attrs

from collc.ir.diagnostic import CollcError, Span, nearest
from collc.ir.exchange import truth
from collc.ir.shown import clipped, counted, listed

from ..units import BANDWIDTH, TIME, UNITS
from .figures import Figures
from .model import Cable, Draft, Imported, wrong_name

__all__ = ["Edge", "Graph", "Vertex", "exact", "network_of"]

#: kind of a node -> whether it is a rank
KINDS = {
    "rank": True, "gpu": True, "host": True, "switch": False, "nic": False, "nvswitch": False, "cpu": False,
    "pci": False, "router": False,
}  # fmt: skip

#: attribute -> its multiple of bytes per second, or None if the graph's unit says it
_BANDWIDTHS = {"bandwidth": None, "bw": Fraction(10**9), "LinkSpeedRaw": Fraction(1, 8)}
_LATENCIES = {"latency": Fraction(1), "lat": Fraction(1, 10**6)}
_PLAIN = {"bandwidth": "the graph's unit", "bw": "GB/s", "LinkSpeedRaw": "bit/s", "latency": "seconds", "lat": "us"}
_OF_NODES = frozenset({"id", "name", "label", "kind", "shape", "multicast", "reduces"})
_OF_EDGES = frozenset({"id", "key", "source", "target", "label", "dir", *_BANDWIDTHS, *_LATENCIES})
_OF_GRAPHS = frozenset({"name", "label", "unit", "gamma", "epsilon"})

_UNIT_NAMES = ("link", "B/s")
_LARGEST = Fraction(10**30)  # larger than any bandwidth and latency
_LONG = Fraction(1)  # seconds: a longer latency is rather one in another unit
_MOST_DIGITS = 300
_MOST_MISTAKES = 20
_MOST_COMPARED = 1000  # names that a wrong one is compared with
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
_EXACT = re.compile(rf"\s*(?:{_NUMBER}|\d+/\d+)\s*", re.ASCII)
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z]+(?:/s)?)\s*", re.ASCII)

#: the tier whose bandwidth edges get that have none
_TIER = "link"

Place = Callable[[object, str | None], Span | None]


class Vertex(NamedTuple):
    """A node: the ``key`` by which edges name it, its id as text, its attributes, and a mark for its place."""

    key: Hashable
    text: str
    attributes: Mapping[str, object]
    at: object = None


class Edge(NamedTuple):
    """An edge between two keys; one that is not directed is a link in each direction."""

    a: Hashable
    b: Hashable
    attributes: Mapping[str, object]
    directed: bool
    at: object = None


@attrs.define
class Graph:
    """A graph as its file has it. ``place`` returns the place of a marked node or edge, or of one of its attributes.

    Attributes among ``drawn`` are for pictures only. ``title`` is the name outside the attributes. A graph with
    ``mistakes`` may lack the nodes and edges that are wrong.
    """

    format: str
    place: Place
    attributes: Mapping[str, object] = attrs.Factory(dict)
    vertices: list[Vertex] = attrs.Factory(list)
    edges: list[Edge] = attrs.Factory(list)
    title: str = ""
    drawn: frozenset[str] = frozenset()
    mistakes: list[CollcError] = attrs.Factory(list)


def network_of(graph: Graph, figures: Figures) -> Imported:
    """Return the network that a graph describes; raise CollcError with all mistakes, at most 20.

    Without any bandwidth all links have bandwidth 1, in relative units. If only some edges have one, the figure of the
    tier ``link`` fills the others, or C0923 asks for it.
    """
    links = sum(1 if edge.directed else 2 for edge in graph.edges)
    figures.require_within(len(graph.vertices), links)
    draft = Draft(graph.format)
    with suppress(_Enough):
        _Network(graph, figures, draft).build()
    return draft.finish()


def exact(value: object) -> Fraction | None:
    """Return the exact value of a number or of its text; None for anything else.

    >>> exact("1/3"), exact("2.5e3"), exact(True), exact("nan")
    (Fraction(1, 3), Fraction(2500, 1), None, None)
    """
    if isinstance(value, str):
        if len(value) > 2 * _MOST_DIGITS or not _EXACT.fullmatch(value):
            return None
        power = re.search(r"[eE][+-]?(\d+)", value)
        if power and int(power[1]) > _MOST_DIGITS:
            return None
        try:
            return Fraction(value.strip())
        except ZeroDivisionError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    return Fraction(value)


class _Enough(Exception):
    """As many mistakes were found as are shown."""


class _Rate(NamedTuple):
    """A bandwidth and its unit."""

    value: Fraction
    unit: str


class _Network:
    """One graph on its way into a draft."""

    def __init__(self, graph: Graph, figures: Figures, draft: Draft):
        self.graph, self.figures, self.draft = graph, figures, draft
        self.names: dict[Hashable, str] = {}
        self.rates: dict[tuple[str, object], _Rate | None] = {}
        self.latencies: dict[tuple[str, object], Fraction | None] = {}
        self.plain_unit = "link"

    def wrong(self, code: str, message: str, at: object, attribute: str | None = None, hint: str | None = None) -> None:
        """Add a mistake at a node, an edge or None for the graph, and stop after many."""
        self.draft.wrong(code, message, self.graph.place(at, attribute), hint=hint)
        if len(self.draft.mistakes) >= _MOST_MISTAKES:
            raise _Enough

    def build(self) -> None:
        """Fill the draft."""
        for mistake in self.graph.mistakes:
            self.draft.take(mistake)
        self._describe()
        self._add_nodes()
        if not self.draft.mistakes and not self.draft.ranks:
            self._no_ranks()
        edges = [edge for edge in self.graph.edges if self._is_between_nodes(edge)]
        rates = [self._rate(edge) for edge in edges]
        latencies = [self._latency(edge) for edge in edges]
        if self.draft.mistakes:
            return
        rates = self._complete(edges, rates)
        if self.draft.mistakes:
            return
        self.draft.cables += _merged(self._cables(edges, rates, latencies))
        self._report_ignored()
        self._report_faults()

    # ---- the graph itself

    def _describe(self) -> None:
        about = self.graph.attributes
        titles = (about.get("name"), about.get("label"), self.graph.title)
        self.draft.title = next((str(title) for title in titles if title not in (None, "")), "")
        unit = about.get("unit", "link")
        if unit not in _UNIT_NAMES:
            hint = "units are `link` (1 is one link) and `B/s` (bytes per second)"
            self.wrong("C0981", f"found the unit {_shown(unit)}", None, "unit", hint)
        else:
            self.plain_unit = str(unit)
        self.draft.gamma, self.draft.epsilon = self._seconds("gamma"), self._seconds("epsilon")

    def _seconds(self, name: str) -> Fraction:
        value = self.graph.attributes.get(name, 0)
        number = exact(value)
        if number is None or not 0 <= number <= _LARGEST:
            self.wrong("C0981", f"found {_shown(value)} as `{name}`, needed a number of seconds", None, name)
            return Fraction(0)
        return number

    # ---- nodes

    def _add_nodes(self) -> None:
        kinds = [self._kind(vertex) for vertex in self.graph.vertices]
        self.draft.hosts = "host" in kinds
        for vertex, kind, name in zip(self.graph.vertices, kinds, self._node_names(), strict=True):
            if vertex.key in self.names:
                self.wrong("C0930", f"found the node `{clipped(vertex.text)}` twice", vertex.at, hint="rename one")
                continue
            span = self.graph.place(vertex.at, "name") if wrong_name(name) or name in self.draft else None
            (self.draft.rank if KINDS[kind] else self.draft.switch)(name, span)
            self.names[vertex.key] = name
            self._add_powers(vertex, KINDS[kind], name)
            if len(self.draft.mistakes) >= _MOST_MISTAKES:
                raise _Enough

    def _add_powers(self, vertex: Vertex, is_rank: bool, name: str) -> None:
        """Record whether a switch multicasts and reduces."""
        for power, switches in (("multicast", self.draft.multicast), ("reduces", self.draft.reduces)):
            value = vertex.attributes.get(power)
            able = truth(value)
            if able is None:
                message = f"found {_shown(value)} for `{power}` of a node, needed true or false"
                self.wrong("C0980", message, vertex.at, power)
            if not able:
                continue
            switches.append(name)
            if is_rank:
                hint = "set `kind` to `switch`, or leave it out: ranks copy and add in any case"
                self.wrong("C0980", f"found `{power}` of a rank, needed it of a switch", vertex.at, power, hint)

    def _kind(self, vertex: Vertex) -> str:
        kind = vertex.attributes.get("kind") or "rank"
        known = kind.strip().lower() if isinstance(kind, str) else ""
        if known not in KINDS:
            hint = nearest(known, KINDS) or f"kinds are {listed(list(KINDS))}"
            self.wrong("C0980", f"found the kind {_shown(kind)} of a node", vertex.at, "kind", hint)
            return "rank"
        return known

    def _node_names(self) -> list[str]:
        """Return the names: of each node its name or label if no other node has it, else its id."""
        vertices = self.graph.vertices
        labels = [_label(vertex) for vertex in vertices]
        counts = Counter(labels)
        names = [
            label if label and counts[label] == 1 else vertex.text
            for vertex, label in zip(vertices, labels, strict=True)
        ]
        if len(set(names)) < len({vertex.key for vertex in vertices}):  # an id is a label elsewhere
            names = [vertex.text for vertex in vertices]
        same = [label for label, count in counts.items() if label and count > 1]
        if same:
            self.draft.warn("C0942", f"several nodes have the label `{clipped(same[0])}`: they are called by their ids")
        return names

    def _no_ranks(self) -> None:
        hint = "leave `kind` out, or set it to `gpu`, `host` or `rank`, for nodes that hold data"
        self.wrong("C0932", "found no rank in the graph", None, hint=hint)

    # ---- edges

    def _is_between_nodes(self, edge: Edge) -> bool:
        known = True
        for attribute, key in (("source", edge.a), ("target", edge.b)):
            if key in self.names:
                continue
            known = False
            if not self.graph.mistakes:  # which may be those of this node
                shown = key if isinstance(key, str) else _key_text(key)
                vertices = self.graph.vertices
                hint = nearest(shown, [vertex.text for vertex in vertices]) if len(vertices) <= _MOST_COMPARED else None
                self.wrong("C0983", f"found an edge to the unknown node `{clipped(shown)}`", edge.at, attribute, hint)
        return known

    def _between(self, edge: Edge) -> str:
        return f"`{clipped(self.names[edge.a])}` to `{clipped(self.names[edge.b])}`"

    def _rate(self, edge: Edge) -> _Rate | None:
        given = [key for key in _BANDWIDTHS if edge.attributes.get(key) not in (None, "")]
        if len(given) > 1:
            self.wrong("C0982", f"found `{given[0]}` and `{given[1]}` of one edge, needed one of them",
                       edge.at, given[1])  # fmt: skip
        if not given:
            return None
        key, value = given[0], edge.attributes[given[0]]
        if not isinstance(value, Hashable) or (key, value) not in self.rates:
            found = _rate_of(key, value, self.plain_unit)
            if found is None:
                hint = f"a plain number is in {_PLAIN[key]}; with a unit: `25 GB/s`, `400 Gbps`"
                self.wrong("C0981", f"found {_shown(value)} as `{key}` of an edge, needed a bandwidth above 0",
                           edge.at, key, hint)  # fmt: skip
                return None
            self.rates[key, value] = found
        return self.rates[key, value]

    def _latency(self, edge: Edge) -> Fraction:
        given = [key for key in _LATENCIES if edge.attributes.get(key) not in (None, "")]
        if len(given) > 1:
            self.wrong("C0982", "found `latency` and `lat` of one edge, needed one of them", edge.at, "lat")
        if not given:
            return Fraction(0)
        key, value = given[0], edge.attributes[given[0]]
        if not isinstance(value, Hashable) or (key, value) not in self.latencies:
            found = _latency_of(key, value)
            if found is None:
                hint = f"a plain number is in {_PLAIN[key]}; with a unit: `1.5 us`"
                self.wrong("C0981", f"found {_shown(value)} as `{key}` of an edge, needed a time of at least 0",
                           edge.at, key, hint)  # fmt: skip
                return Fraction(0)
            if found > _LONG:
                self._warn_of_seconds(edge, key, found)
            self.latencies[key, value] = found
        return self.latencies[key, value] or Fraction(0)

    def _warn_of_seconds(self, edge: Edge, key: str, found: Fraction) -> None:
        message = f"the link from {self._between(edge)} has a latency of {float(found):g} s"
        hint = f"a plain number of `{key}` is in {_PLAIN[key]}; write the unit: `25 ms`"
        self.draft.warn("C0984", message, self.graph.place(edge.at, key), hint)

    def _complete(self, edges: Sequence[Edge], rates: Sequence[_Rate | None]) -> list[_Rate | None]:
        """Return the bandwidths with those that the figure of the tier gives; all in one unit."""
        if any(rate is None for rate in rates):
            rates = self._filled(edges, rates)
        first = next((rate for rate in rates if rate), None)
        self.draft.unit = first.unit if first else self.plain_unit
        for edge, rate in zip(edges, rates, strict=True):
            if rate and rate.unit != self.draft.unit:
                hint = "plain numbers of `bandwidth` are relative unless the graph's `unit` is `B/s`"
                self.wrong("C0982", "found bandwidths in bytes per second and relative ones in one graph", edge.at,
                           next(key for key in _BANDWIDTHS if edge.attributes.get(key) is not None), hint)  # fmt: skip
                break
        return list(rates)

    def _filled(self, edges: Sequence[Edge], rates: Sequence[_Rate | None]) -> Sequence[_Rate | None]:
        absent = sum(rate is None for rate in rates)
        if absent == len(rates) and self.plain_unit == "link" and _TIER not in self.figures.tiers:
            self.draft.assume("a bandwidth of 1 for every link, in relative units", "the file has no bandwidths",
                              hint=f"give one: `--tier-bandwidth {_TIER}=400Gbps`")  # fmt: skip
            return [_Rate(Fraction(1), "link")] * len(rates)
        edge = next(edge for edge, rate in zip(edges, rates, strict=True) if rate is None)
        others = f" ({absent} edges in all)" if absent > 1 else ""
        what = f"the edge from {self._between(edge)} has no bandwidth{others}"
        try:
            given = self.figures.require_tier(_TIER, [_TIER], what, self.graph.place(edge.at, None))
        except CollcError as failure:
            self.draft.take(failure)
            return rates
        self.draft.note(f"{absent} links without a bandwidth have the one given for the tier `{_TIER}`")
        return [rate or _Rate(given, "B/s") for rate in rates]

    def _cables(
        self, edges: Sequence[Edge], rates: Sequence[_Rate | None], latencies: Sequence[Fraction]
    ) -> Iterator[Cable]:
        names = self.names
        for edge, rate, latency in zip(edges, rates, latencies, strict=True):
            assert rate is not None
            yield Cable(names[edge.a], names[edge.b], rate.value, latency, not edge.directed)

    # ---- what is said about it

    def _report_ignored(self) -> None:
        graph = self.graph
        found = dict.fromkeys(
            name
            for known, items in (
                (_OF_GRAPHS, [graph.attributes]), (_OF_NODES, (v.attributes for v in graph.vertices)),
                (_OF_EDGES, (e.attributes for e in graph.edges)),
            )
            for attributes in items
            for name in attributes
            if name not in known and name not in graph.drawn
        )  # fmt: skip
        if found:
            names = [f"`{clipped(name)}`" for name in found]
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            noun = "attribute" if len(names) == 1 else "attributes"
            self.draft.warn("C0942", f"ignored the {noun} {', '.join(names[:8])}{more}")

    def _report_faults(self) -> None:
        """Report ranks without links, and single links without an equal reverse in a graph of duplex links."""
        draft = self.draft
        out = {cable.a for cable in draft.cables} | {cable.b for cable in draft.cables if cable.duplex}
        into = {cable.b for cable in draft.cables} | {cable.a for cable in draft.cables if cable.duplex}
        if draft.cables:
            for name in draft.ranks:
                for side, word in ((out, "from"), (into, "to")):
                    if name not in side:
                        draft.fault(f"there is no link {word} `{name}`")
        for kind, number, usual, name in self._poorer():
            draft.fault(f"the {kind} `{name}` has {counted(number, 'link')}, and the others have {usual}")
        for cable in _single(draft.cables):
            draft.fault(f"the link from `{cable.a}` to `{cable.b}` has no reverse with the same bandwidth and latency")

    def _poorer(self) -> Iterator[tuple[str, int, int, str]]:
        """Yield GPUs and hosts that have fewer links than three of four of their kind have, but some."""
        ends = Counter(end for cable in self.draft.cables for end in {cable.a, cable.b} for _ in range(cable.count))
        for kind in ("gpu", "host"):
            names = [
                self.names[vertex.key]
                for vertex in self.graph.vertices
                if str(vertex.attributes.get("kind")).strip().lower() == kind
            ]
            usual = max(Counter(ends[name] for name in names).items(), key=lambda item: item[1], default=(0, 0))
            if 4 * usual[1] >= 3 * len(names):
                yield from ((kind, ends[n], usual[0], n) for n in names if 0 < ends[n] < usual[0])


def _label(vertex: Vertex) -> str:
    """Return the name or label of a node; "" if it has none, or a label that is no name."""
    name = vertex.attributes.get("name")
    if name not in (None, ""):
        return str(name)
    label = vertex.attributes.get("label")
    text = label.strip() if isinstance(label, str) else ""
    return "" if wrong_name(text) else text


def _rate_of(key: str, value: object, unit: str) -> _Rate | None:
    number, multiple = exact(value), _BANDWIDTHS[key]
    if number is not None:
        found = _Rate(number, unit) if multiple is None else _Rate(number * multiple, "B/s")
    else:
        given = _quantity(value, BANDWIDTH)
        if given is None:
            return None
        found = _Rate(given, "B/s")
    return found if 1 / _LARGEST <= found.value <= _LARGEST else None


def _latency_of(key: str, value: object) -> Fraction | None:
    number = exact(value)
    found = _quantity(value, TIME) if number is None else number * _LATENCIES[key]
    return found if found is not None and 0 <= found <= _LARGEST else None


def _quantity(value: object, measure: str) -> Fraction | None:
    """Return a number with a unit of a measure in the base unit; None for anything else."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) and len(value) <= _MOST_DIGITS else None
    if match is None:
        return None
    name = re.sub(r"(?<=[KMGT])b(?:it)?/s$", "bps", match[2])
    found, multiple = UNITS.get(name, ("", Fraction(0)))
    number = exact(match[1])
    return number * multiple if found == measure and number is not None else None


def _merged(cables: Iterable[Cable]) -> Iterator[Cable]:
    """Yield cables of the same links in the same order: a link and its reverse as one, equal ones counted."""
    pending: Cable | None = None
    for cable in _paired(cables):
        if pending is not None and attrs.evolve(pending, count=1) == cable:
            pending = attrs.evolve(pending, count=pending.count + 1)
            continue
        if pending is not None:
            yield pending
        pending = cable
    if pending is not None:
        yield pending


def _paired(cables: Iterable[Cable]) -> Iterator[Cable]:
    first: Cable | None = None
    for cable in cables:
        if first is None:
            first = cable
        elif _are_reverse(first, cable):
            yield attrs.evolve(first, duplex=True)
            first = None
        else:
            yield first
            first = cable
    if first is not None:
        yield first


def _are_reverse(first: Cable, second: Cable) -> bool:
    same = first.bandwidth == second.bandwidth and first.latency == second.latency
    return same and not first.duplex and not second.duplex and (first.a, first.b) == (second.b, second.a) != (
        first.b, first.a
    )  # fmt: skip


def _single(cables: Sequence[Cable]) -> list[Cable]:
    """Return the one-way cables without a reverse, if at least three of four links have one."""
    numbers = Counter[tuple[str, str, Fraction, Fraction]]()
    for cable in cables:
        if not cable.duplex:
            numbers[cable.a, cable.b, cable.bandwidth, cable.latency] += cable.count
    links = sum(cable.count * (1 + cable.duplex) for cable in cables)
    found, spare = list[Cable](), 0
    for (a, b, bandwidth, latency), count in numbers.items():
        left = count - numbers.get((b, a, bandwidth, latency), 0)
        if left > 0 and a != b:
            spare += left
            found.append(Cable(a, b, bandwidth, latency, duplex=False))
    return found if 4 * spare <= links else []


def _key_text(key: object) -> str:
    return str(key[-1] if isinstance(key, tuple) else key)


def _shown(value: object) -> str:
    if isinstance(value, Fraction):
        value = float(value) if abs(value) < 10**15 else f"{value}"
    return f"`{clipped(str(value))}`"
