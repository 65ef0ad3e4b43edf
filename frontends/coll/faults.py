"""Faults of a network: nodes and links that are gone or slow, written as in `without` and `degraded`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Literal

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import CollcError, Diagnostic, Source, Span, error
from collc.ir.frozen import frozen
from collc.ir.topology import LinkClass, Topology, renumbered

from ..source import checked
from ..units import BANDWIDTH
from . import ast
from .families import Elements
from .families.operators import remaining
from .parser import parse_expression
from .parts import elements
from .scope import NodeTable, Poisoned, Scope
from .values import Quantity, Value, kind_of

__all__ = ["Broken", "Fault", "broken"]

_KINDS = ("without", "slow")
#: the part of a fault before the bandwidth, with names in quotes, which may contain colons
_RATED = re.compile(r'((?:"[^"\n]*"|[^":\n])*):([^:\n]*)')
_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")
_LINK = re.compile(r"\s*link\b(?=\s*[^\s\[<-])")
#: more nodes than any fault has
_MOST = 1 << 20


@frozen
class Fault:
    """A fault: nodes or links that are gone (``without``), or that have less bandwidth (``slow``).

    ``where`` are nodes and links as in a set of the language, where an index may also be a range. ``rate`` is the
    bandwidth of slow links (``12.5 GB/s``), or a part of the bandwidth that they had (``1/2``, ``50 %``).

    >>> Fault("without", "gpu[0, 2] -> ib"), str(Fault.read("slow gpu[3, 1] <-> ib: 12.5 GB/s"))
    (Fault(kind='without', where='gpu[0, 2] -> ib', rate=''), 'slow gpu[3, 1] <-> ib: 12.5 GB/s')
    """

    kind: Literal["without", "slow"]
    where: str
    rate: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.where}" + (f": {self.rate}" if self.rate else "")

    @classmethod
    def read(cls, text: str) -> Fault:
        """Return the fault of ``without WHERE`` or ``slow WHERE: RATE``; raise C0340 for another text."""
        kind, _, rest = text.strip().removeprefix("--").partition(" ")
        if kind == "without":
            return cls("without", _place(rest))
        if kind == "slow":
            return cls.slow(rest)
        hint = "write `without gpu[0, 2] -> ib` or `slow gpu[3, 1] <-> ib: 12.5 GB/s`"
        raise error("C0340", f"found `{kind}`, needed `without` or `slow`", hint=hint)

    @classmethod
    def slow(cls, text: str) -> Fault:
        """Return the fault of ``WHERE: RATE``; raise C0340 without a rate."""
        found = _RATED.fullmatch(text.strip())
        if found is None or not found[2].strip():
            hint = "write `gpu[3, 1] <-> ib: 12.5 GB/s`, or the part that is left: `gpu[3, 1] <-> ib: 1/2`"
            raise error("C0340", f"found no bandwidth in `{text}`", hint=hint)
        return cls("slow", _place(found[1]), found[2].strip())

    @classmethod
    def dead(cls, text: str) -> Fault:
        """Return the fault of ``WHERE``: these nodes and links are gone."""
        return cls("without", _place(text))


def _place(text: str) -> str:
    return _LINK.sub("", text, count=1).strip()


@frozen(eq=False)
class Broken:
    """A network after faults.

    ``node``, ``rank`` and ``link`` are the new numbers of the nodes, ranks and links before, -1 for what is gone.
    ``touched`` are the links before that are gone or slower.
    """

    topology: Topology
    faults: tuple[Fault, ...]
    node: Array = attrs.field(repr=False)
    rank: Array = attrs.field(repr=False)
    link: Array = attrs.field(repr=False)
    touched: Array = attrs.field(repr=False)


def broken(topology: Topology, faults: Sequence[Fault]) -> Broken:
    """Return the network after all faults together, numbered as `without` numbers it; names are those of before.

    Raises C0340 for a fault that cannot be read, C0120, C0135 and C0311 for one that names nothing, C0341 for two of
    one link, C0342 for one that makes no link slower, C0301 if ranks lose their connection.

    >>> from collc.frontends.coll import topology
    >>> faults = [Fault("without", "gpu[0, 3]"), Fault("slow", "gpu[1, 0] <-> ib", "1/2")]
    >>> found = broken(topology("dgx_a100(2)"), faults)
    >>> found.topology.num_ranks, found.rank[2:6].tolist(), int(found.touched.sum())
    (15, [2, -1, 3, 4], 6)
    """
    kept, alive = np.ones(topology.num_nodes, dtype=bool), np.ones(topology.num_links, dtype=bool)
    kinds = [topology.classes[number] for number in topology.link_class.tolist()]
    owners = _Owners(topology)
    for fault in faults:
        parts, factor = _read(topology, fault)
        links = _links(topology, parts)
        owners.add(fault, parts)
        if fault.kind == "without":
            kept[list(parts.nodes)] = False
            alive[links] = False
        for link in links if factor is not None else ():
            kinds[link] = LinkClass(_slower(topology, fault, link, factor), kinds[link].latency)
    if not kept[: topology.num_ranks].any():
        raise error("C0343", f"found all {topology.num_ranks} ranks gone, needed at least one that stays")
    return _applied(
        topology, tuple(faults), kept, alive, kinds, np.isin(np.arange(topology.num_links), list(owners.links))
    )


def _applied(
    topology: Topology, faults: tuple[Fault, ...], kept: Array, alive: Array, kinds: list[LinkClass], touched: Array
) -> Broken:
    kept, alive = remaining(topology, kept, alive)
    number, link = np.cumsum(kept) - 1, np.where(alive, np.cumsum(alive) - 1, -1)
    place = np.where(kept, number, -1)
    left = [kind for kind, stays in zip(kinds, alive.tolist(), strict=True) if stays]
    classes = tuple(dict.fromkeys(left)) or topology.classes
    index = {kind: i for i, kind in enumerate(classes)}
    ranks = int(kept[: topology.num_ranks].sum())
    names = tuple(name for name, stays in zip(topology.names, kept.tolist(), strict=True) if stays)
    found = attrs.evolve(
        topology, name=f"{topology.name}, broken", num_ranks=ranks, num_switches=int(kept.sum()) - ranks,
        src=number[topology.src[alive]], dst=number[topology.dst[alive]],
        link_class=np.array([index[kind] for kind in left], dtype=np.int64), classes=classes,
        node_names=names if topology.node_names else None, symmetry=None, origin=None,
        multicast=renumbered(topology.multicast, place), reduces=renumbered(topology.reduces, place),
    )  # fmt: skip
    if topology.is_connected and not found.is_connected:
        raise _cut_off(found)
    return Broken(found, faults, place, place[: topology.num_ranks], link, touched | ~alive)


def _cut_off(topology: Topology) -> CollcError:
    """Return the error for ranks that lose their connection."""
    try:
        topology.require_connected("a collective")
    except CollcError as failure:
        hint = "take the ranks that are cut off out too: `--without` names ranks as well"
        return CollcError([attrs.evolve(one, hint=hint) for one in failure.diagnostics], failure.exit_status)
    raise AssertionError("the network is not connected")


def _links(topology: Topology, parts: Elements) -> list[int]:
    """Return the links that a fault touches: its own, and those of its nodes."""
    touched = np.isin(topology.src, parts.nodes) | np.isin(topology.dst, parts.nodes)
    touched[list(parts.links)] = True
    found: list[int] = np.flatnonzero(touched).tolist()
    return found


class _Owners:
    """The fault of every link and of every node that is gone: each has one."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.nodes = dict[int, Fault]()
        self.links = dict[int, tuple[Fault, bool]]()

    def add(self, fault: Fault, parts: Elements) -> None:
        """Note a fault; raise C0341 for a second one. Two nodes that are gone may share a link."""
        for node in parts.nodes if fault.kind == "without" else ():
            if node in self.nodes:
                raise self._twice(f"`{self.topology.node_text(node)}`", self.nodes[node], fault)
            self.nodes[node] = fault
        for link in _links(self.topology, parts):
            of_node = fault.kind == "without" and link not in parts.links
            other, with_node = self.links.setdefault(link, (fault, of_node))
            if other is not fault and not (of_node and with_node):
                raise self._twice(f"the link `{_ends(self.topology, link)}`", other, fault)

    def _twice(self, what: str, first: Fault, second: Fault) -> CollcError:
        return error("C0341", f"found two faults of {what}: `{first}` and `{second}`", hint="leave one of them out")


def _ends(topology: Topology, link: int) -> str:
    return f"{topology.node_text(int(topology.src[link]))} -> {topology.node_text(int(topology.dst[link]))}"


def _slower(topology: Topology, fault: Fault, link: int, rate: Fraction | Quantity | None) -> Fraction:
    """Return the bandwidth of a slow link; raise C0342 if it is not slower."""
    healthy = topology.bandwidth(link)
    if isinstance(rate, Quantity):
        if topology.unit != "B/s":
            hint = f"write the part that is left: `slow {fault.where}: 1/2`"
            raise error("C0342", f"`{topology.name}` has no bandwidths in bytes per second", hint=hint)
        value = rate.value
    else:
        value = healthy * (rate or 0)
    if 0 < value < healthy:
        return value
    if value <= 0:
        what = "a bandwidth of 0" if value == 0 else "a negative bandwidth"
        raise error("C0342", f"found {what} in `{fault}`", hint=f"a dead link: `--without '{fault.where}'`")
    message = f"`{fault}` makes the link `{_ends(topology, link)}` no slower: it has {_shown(healthy, topology)}"
    raise error("C0342", message, hint="write less bandwidth than the link has, or a part below 1")


def _shown(bandwidth: Fraction, topology: Topology) -> str:
    return f"{float(bandwidth / 10**9):g} GB/s" if topology.unit == "B/s" else f"bandwidth {bandwidth}"


# ---- reading


def _read(topology: Topology, fault: Fault) -> tuple[Elements, Fraction | Quantity | None]:
    """Return the nodes and links of a fault, and what is left of their bandwidth: None if they are gone."""
    if fault.kind not in _KINDS:
        raise error("C0340", f"found a fault `{fault.kind}`, needed one of `without`, `slow`")
    if (fault.kind == "slow") != bool(fault.rate):
        raise error("C0340", f"`{fault}` {'needs a bandwidth' if fault.kind == 'slow' else 'takes no bandwidth'}")
    parts = _parts(topology, fault)
    return parts, _rate(fault) if fault.kind == "slow" else None


def _rate(fault: Fault) -> Fraction | Quantity:
    share = _PERCENT.fullmatch(fault.rate)
    if share is not None:
        return Fraction(share[1]) / 100
    hint = "write `12.5 GB/s`, `1/2` or `50 %`"
    try:
        value, span = _value(fault, fault.rate, "", Scope())
    except CollcError as failure:
        raise CollcError([attrs.evolve(one, hint=hint) for one in failure.diagnostics], failure.exit_status) from None
    if isinstance(value, Quantity) and value.measure == BANDWIDTH:
        return value
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return Fraction(value)
    raise error("C0340", f"found {kind_of(value)}, needed a bandwidth or a part of it", span=span, hint=hint)


def _parts(topology: Topology, fault: Fault) -> Elements:
    scope = Scope(nodes=NodeTable.of(topology))
    value, span = _value(fault, fault.where, "{}", scope)
    try:
        found = elements(fault.kind, topology, value, span)
    except CollcError as failure:
        raise _unbraced(failure, fault, fault.where) from None
    if not (found.nodes or found.links):
        raise error("C0340", f"`{fault}` names no node and no link")
    return found


def _value(fault: Fault, text: str, braces: str, scope: Scope) -> tuple[Value, Span | None]:
    """Return the value of a fault's text between ``braces``; mistakes have their places in the text."""
    from .elaborate import Elaborator

    compiler = Elaborator().compiler
    try:
        source = checked(f"<--{fault.kind}>", f"{braces[:1]}{text}{braces[1:]}")
        expression, more = parse_expression(source)
        if more is not None:
            raise error("C0101", "found `with`, needed nodes and links", span=more.span)
        expression = _expanded(expression) if isinstance(expression, ast.SetOf) else expression
        value: Value | None = None
        with contextlib.suppress(Poisoned):  # then its mistakes are there
            value = compiler.evaluate(expression, scope)
        if compiler.problems.found or value is None:
            raise CollcError(list(compiler.problems.found.values()))
        return value, expression.span
    except CollcError as failure:
        raise _unbraced(failure, fault, text) if braces else failure from None


def _expanded(items: ast.SetOf) -> ast.SetOf:
    """Return a set with an item for every node that the ranges among the indices name."""
    return attrs.evolve(items, items=tuple(one for item in items.items for one in _each(item)))


def _each(item: ast.Expr | ast.Arrow) -> Iterator[ast.Expr | ast.Arrow]:
    if isinstance(item, ast.Arrow):
        for tail, head in product(_each(item.tail), _each(item.head)):
            assert not isinstance(tail, ast.Arrow) and not isinstance(head, ast.Arrow)
            yield attrs.evolve(item, tail=tail, head=head)
    elif isinstance(item, ast.Index):
        for indices in product(*(_numbers(index) for index in item.indices)):
            yield attrs.evolve(item, indices=indices)
    else:
        yield item


def _numbers(index: ast.Expr) -> Sequence[ast.Expr]:
    match index:
        case ast.Range(ast.Number(low), ast.Number(high), None) if low.denominator == high.denominator == 1:
            if high - low > _MOST:
                raise error("C0340", f"found a range of more than {_MOST} nodes", span=index.span)
            return [ast.Number(Fraction(number), span=index.span) for number in range(int(low), int(high))]
    return [index]


def _unbraced(failure: CollcError, fault: Fault, text: str) -> CollcError:
    """Return mistakes with their places in the text without braces."""
    source = Source(f"<--{fault.kind}>", text)

    def moved(one: Diagnostic) -> Diagnostic:
        if one.span is None or one.span.source.path != source.path:
            return one
        columns = (max(1, one.span.column - 1), max(2, min(one.span.end_column - 1, len(text) + 1)))
        return attrs.evolve(one, span=Span(source, 1, columns[0], 1, max(columns[0] + 1, columns[1])), related=())

    return CollcError([moved(one) for one in failure.diagnostics], failure.exit_status)
