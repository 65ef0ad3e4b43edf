"""Topologies written out: ``rank``, ``switch`` and ``link`` statements to a :class:`collc.ir.topology.Topology`."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import CollcError, Diagnostic, Span, error, nearest, warning
from collc.ir.frozen import frozen
from collc.ir.node_names import name_flaw, printed, split_name
from collc.ir.topology import LinkClass, Topology

from ..units import BANDWIDTH, TIME
from . import ast
from .expressions import NODE, NUMBER, Compiler, Frame, Needs, integer, past_hint
from .limits import Limits, too_large
from .scope import NodeTable, Poisoned, Scope, earlier
from .statements import Aborted, Body, Overrides, Runner
from .unit_hints import other_measure
from .values import Quantity, Switch, Value, kind_of

__all__ = ["Defaults", "Network", "with_defaults"]


#: what a switch may do besides forwarding
_POWERS = ("multicast", "reduces")
#: what fits as an attribute of a link
_ATTRIBUTE: Needs = (BANDWIDTH, TIME)


@frozen
class Defaults:
    """Defaults of ``with { .. }`` for links without their own: bandwidth in bytes per second or link units, latency.

    ``reduction`` is what a rank adds (bytes per second; None: in no time), ``launch`` the seconds of a call besides its
    steps.
    """

    bandwidth: Fraction | None = None
    unit: str = "link"
    latency: Fraction | None = None
    reduction: Fraction | None = None
    launch: Fraction | None = None

    def on(self, topology: Topology) -> Topology:
        """Return a topology with the reduction and launch that are given."""
        gamma = topology.gamma if self.reduction is None else 1 / self.reduction
        epsilon = topology.epsilon if self.launch is None else self.launch
        return attrs.evolve(topology, gamma=gamma, epsilon=epsilon)


@frozen
class _Attributes:
    """Attributes of one ``link`` statement; ``unit`` is that of the bandwidth."""

    bandwidth: Fraction | None = None
    unit: str | None = None
    latency: Fraction | None = None


def attributes_of(values: Sequence[Value], spans: Sequence[Span | None]) -> _Attributes:
    """Return the bandwidth and latency among values in any order; raise C0131 or C0315 for anything else."""
    found, wrong = _Attributes(), list[Diagnostic]()
    for value, span in zip(values, spans, strict=True):
        try:
            found = _with_attribute(found, value, span)
        except CollcError as failure:
            wrong += failure.diagnostics
    if wrong:
        raise CollcError(wrong)
    return found


def _with_attribute(found: _Attributes, value: Value, span: Span | None) -> _Attributes:
    if isinstance(value, Quantity) and value.measure == TIME:
        return _latency(found, value.value, span)
    if isinstance(value, Quantity) and value.measure == BANDWIDTH:
        return _bandwidth(found, value.value, "B/s", span)
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return _bandwidth(found, Fraction(value), "link", span)
    message = f"found {kind_of(value)}, needed a bandwidth or a latency"
    raise error("C0131", message, span=span, hint=_attribute_hint(value))


def _attribute_hint(value: Value) -> str:
    return other_measure(value, (BANDWIDTH, TIME)) if isinstance(value, Quantity) else "write `25 GB/s, 1 us`"


def _bandwidth(found: _Attributes, value: Fraction, unit: str, span: Span | None) -> _Attributes:
    if found.bandwidth is not None:
        hint = "a link has one bandwidth and one latency; for two parallel links write two `link` statements"
        raise error("C0315", "found a second bandwidth", span=span, hint=hint)
    if value <= 0:
        hint = "leave out links that carry nothing" if value == 0 else "write it without `-`"
        found_text = "a negative bandwidth" if value < 0 else "a bandwidth of 0"
        raise error("C0315", f"found {found_text}, needed one above 0", span=span, hint=hint)
    return attrs.evolve(found, bandwidth=value, unit=unit)


def _latency(found: _Attributes, value: Fraction, span: Span | None) -> _Attributes:
    if found.latency is not None:
        raise error("C0315", "found a second latency", span=span, hint="a link has one bandwidth and one latency")
    if value < 0:
        hint = "write it without `-`, or leave it out for 0"
        raise error("C0315", "found a negative latency, needed at least 0", span=span, hint=hint)
    return attrs.evolve(found, latency=value)


class Network(Body):
    """The body of a topology. A switch is a negative number (-1 is the first) until all ranks are known.

    An ``incomplete`` body has lost statements to mistakes, so that ranks may be missing.
    """

    noun: ClassVar[str] = "a topology"
    hint: ClassVar[str] = "a topology has `rank`, `switch`, `link`, `param`, `let`, `for` and `if`"

    def __init__(
        self, compiler: Compiler, scope: Scope, overrides: Overrides, owner: str, limits: Limits,
        incomplete: bool = False,
    ):  # fmt: skip
        super().__init__(compiler, scope, overrides, owner, limits.statements)
        self.limits = limits
        self.rank_names: list[str] = []
        self.switch_names: list[str] = []
        self.able: dict[str, list[int]] = {power: [] for power in _POWERS}
        self.table = scope.nodes = NodeTable(declaring=True)
        self.incomplete = incomplete
        self.ends = array("q")  # src, dst, kind, src, dst, kind, ..
        self.kinds: dict[_Attributes, int] = {}
        self.places: list[Span | None] = []

    def leaf(self, node: ast.Statement, scope: Scope, top: bool) -> Runner:
        match node:
            case ast.Nodes():
                self.scope.suspects.update(family.name.text for family in node.families)  # until they are declared
                if not top:
                    message = f"found `{node.kind}` in a loop, needed it in the topology itself"
                    raise error("C0141", message, span=node.span, hint=f"write `{node.kind} name[count];`")
                return self._nodes(node, scope)
            case ast.Link():
                return self._link(node, scope)
        word = {ast.At: "at", ast.Procedure: "define", ast.Invoke: "call"}.get(type(node), "")
        word = node.action if isinstance(node, ast.Transfer) else word
        raise self.misplaced(f"`{word}`" if word else "this", node.span)

    # ---- nodes

    def _nodes(self, node: ast.Nodes, scope: Scope) -> Runner:
        powers = self._powers(node)
        shapes = [[self.compiler.compile(size, scope, NUMBER) for size in family.shape] for family in node.families]

        def run(frame: Frame) -> None:
            for family, thunks in zip(node.families, shapes, strict=True):
                sizes = [_size(t(frame), s.span) for t, s in zip(thunks, family.shape, strict=True)]
                first = len(self.switch_names)
                self._declare(node.kind, family, sizes, scope)
                for power in powers:
                    self.able[power].extend(range(first, len(self.switch_names)))

        return run

    def _powers(self, node: ast.Nodes) -> tuple[str, ...]:
        """Return what the switches of a declaration do besides forwarding; raise C0131 for anything else."""
        for word in node.powers:
            if word.text not in _POWERS:
                hint = nearest(word.text, _POWERS) or "write `switch nv : multicast, reduces;`"
                message = f"found `{word.text}` of a switch, needed `multicast` or `reduces`"
                raise error("C0131", message, span=word.span, hint=hint)
        return tuple(dict.fromkeys(word.text for word in node.powers))

    def _declare(self, kind: str, family: ast.NodeFamily, sizes: list[int], scope: Scope) -> None:
        name, count = family.name.text, prod(sizes)
        if family.quoted and (flaw := name_flaw(name)):
            raise error("C0105", flaw, span=family.name.span)
        stem, own = (name, ()) if sizes else split_name(name)
        around = self.scope.declaring(name)
        if around or self._is_declared(stem, own, family):
            first = self.table.places.get(stem) or (around.places[name] if around else None)
            message, hint = f"`{name}` is declared twice", "rename one of them"
            raise error("C0121", message, span=family.name.span, hint=hint, related=earlier(first))
        nodes = len(self.rank_names) + len(self.switch_names) + count
        if nodes > self.limits.nodes:
            raise self._too_many(f"{nodes} nodes, the limit is {self.limits.nodes}", family.span, nodes)
        names = self.rank_names if kind == "rank" else self.switch_names
        members = self.table.families.setdefault(stem, {})
        for indices in product(*map(range, sizes)):
            members[own or indices] = len(names) if kind == "rank" else Switch(len(names))
            names.append(printed(name, indices))
        self.table.places.setdefault(stem, family.span)
        self.scope.later.pop(name, None)
        self.scope.suspects.discard(name)

    def _is_declared(self, stem: str, indices: tuple[int, ...], family: ast.NodeFamily) -> bool:
        """Return whether a name is taken; single nodes such as ``"n[3]"`` may share a family."""
        taken = self.table.families.get(stem)
        return taken is not None and (indices in taken or bool(family.shape) or not family.quoted)

    # ---- links

    def _link(self, node: ast.Link, scope: Scope) -> Runner:
        compile_ = self.compiler.compile
        left, right = compile_(node.left, scope, NODE), compile_(node.right, scope, NODE)
        thunks = [compile_(attribute, scope, _ATTRIBUTE) for attribute in node.attributes]
        spans = [attribute.span for attribute in node.attributes]
        constant = all(isinstance(a, ast.Number | ast.Quantity) for a in node.attributes)
        kind: int | None = None
        ends, duplex, most = self.ends, node.duplex, 3 * self.limits.links

        def run(frame: Frame) -> None:
            nonlocal kind
            a, b = self._end(left(frame), node.left), self._end(right(frame), node.right)
            if a == b:
                self._warn_of_itself(a, node)
            if kind is None or not constant:
                kind = self._kind(attributes_of([thunk(frame) for thunk in thunks], spans), node.span)
            ends.extend((a, b, kind, b, a, kind) if duplex else (a, b, kind))
            if len(ends) > most:
                raise self._too_many(f"more than {self.limits.links} links, the limit", node.span, None)

        return run

    def _warn_of_itself(self, node: int, link: ast.Link) -> None:
        name = self.switch_names[-1 - node] if node < 0 else self.rank_names[node]
        message = f"this link leads from `{name}` to itself: no schedule uses it"
        self.compiler.problems.warn(
            warning("C0322", message, span=link.span, notes=("remove it, or link another node",))
        )

    def _too_many(self, found: str, span: Span | None, needed: int | None) -> Aborted:
        """Report too many nodes or links, and the limit needed; return the exception that ends the body."""
        self.compiler.problems.take(too_large(f"`{self.owner}` has {found}", span, needed))
        return Aborted()

    def _end(self, value: Value, node: ast.Expr) -> int:
        if isinstance(value, str):
            value = self._named(value, node)
        if type(value) is int:
            if 0 <= value < len(self.rank_names):
                return value
            if self.incomplete:
                raise Poisoned
            known = f"ranks are 0 to {len(self.rank_names) - 1}" if self.rank_names else "no rank is declared yet"
            hint = past_hint(node, value, len(self.rank_names)) if self.rank_names else "declare them: `rank gpu[8];`"
            raise error("C0135", f"found rank {value}: {known}", span=node.span, hint=hint)
        if isinstance(value, Switch):
            return -1 - value.number
        return integer(value, node.span, "a rank or switch")

    def _named(self, name: str, node: ast.Expr) -> int | Switch:
        try:
            return self.scope.node_named(name, node.span)
        except CollcError:
            if self.incomplete:
                raise Poisoned from None
            raise

    def _kind(self, attributes: _Attributes, span: Span | None) -> int:
        if attributes not in self.kinds:
            self.kinds[attributes] = len(self.kinds)
            self.places.append(span)
        return self.kinds[attributes]

    # ---- the whole

    def topology(self, defaults: Defaults, span: Span | None) -> Topology:
        """Return the declared topology; raise C0312 or C0317 if it is not one, Poisoned if the body has mistakes."""
        if self.damaged:
            raise Poisoned
        if not self.rank_names:
            raise error(
                "C0317", f"topology `{self.owner}` has no ranks", span=span, hint="declare some: `rank gpu[8];`"
            )
        rows = np.frombuffer(self.ends, dtype=np.int64).reshape(-1, 3) if self.ends else np.zeros((0, 3), np.int64)
        nodes = np.where(rows[:, :2] < 0, len(self.rank_names) - 1 - rows[:, :2], rows[:, :2])
        classes, number, unit = self._classes(defaults)
        self.limits.claim(f"`{self.owner}`", len(self.rank_names) + len(self.switch_names), len(rows), span)
        names = (*self.rank_names, *self.switch_names)
        multicast, reduces = (tuple(len(self.rank_names) + s for s in self.able[power]) for power in _POWERS)
        return defaults.on(Topology(
            self.owner, len(self.rank_names), nodes[:, 0], nodes[:, 1], len(self.switch_names),
            link_class=number[rows[:, 2]], classes=classes, unit=unit, node_names=names,
            multicast=multicast, reduces=reduces,
        ))  # fmt: skip

    def _classes(self, defaults: Defaults) -> tuple[tuple[LinkClass, ...], Array, str]:
        """Return the link classes, the class of each kind of link, and the unit of all."""
        resolved = [_resolved(kind, defaults) for kind in self.kinds]
        units = [unit for _, unit in resolved]
        if len(set(units)) > 1:
            raise _mixed(list(self.kinds), units, self.places)
        classes = tuple(dict.fromkeys(kind for kind, _ in resolved)) or (LinkClass(),)
        number = np.array([classes.index(kind) for kind, _ in resolved], dtype=np.int64)
        return classes, number, units[0] if units else "link"


def _size(value: Value, span: Span | None) -> int:
    size = integer(value, span, "a number of nodes")
    if size < 1:
        hint = "a declaration that may be empty stands in an `if`"
        raise error("C0316", f"found {size} nodes, needed at least 1", span=span, hint=hint)
    return size


def _resolved(kind: _Attributes, defaults: Defaults) -> tuple[LinkClass, str]:
    """Return the class and unit of links with these attributes: link units are multiples of a default bandwidth."""
    latency = kind.latency if kind.latency is not None else defaults.latency or Fraction(0)
    if kind.bandwidth is None:
        return LinkClass(defaults.bandwidth or Fraction(1), latency), defaults.unit
    if kind.unit == "B/s":
        return LinkClass(kind.bandwidth, latency), "B/s"
    scale = defaults.bandwidth if defaults.unit == "B/s" and defaults.bandwidth else Fraction(1)
    return LinkClass(kind.bandwidth * scale, latency), defaults.unit


def _mixed(kinds: list[_Attributes], units: list[str], places: list[Span | None]) -> CollcError:
    """Return the error for links with and without an absolute bandwidth, at the first without."""
    odd, named = units.index("link"), units.index("B/s")
    found = "none" if kinds[odd].bandwidth is None else "one in link units"
    message = f"found links with a bandwidth in B/s and links with {found}, needed all or none in B/s"
    hint = "`with { bandwidth: 25 GB/s }` after the topology is for links without a bandwidth"
    return error("C0312", message, span=places[odd], hint=hint, related=earlier(places[named], "a bandwidth in B/s"))


def with_defaults(topology: Topology, defaults: Defaults, span: Span | None) -> Topology:
    """Return the topology of an expression with ``with { .. }`` applied.

    Bandwidths in link units become multiples of the default; latencies of 0 become the default. Raises C0318 if the
    links already have an absolute bandwidth.
    """
    bandwidth, unit = defaults.bandwidth, topology.unit
    if bandwidth is not None and unit == "B/s":
        message = f"links of `{topology.name}` have a bandwidth in B/s already"
        raise error("C0318", message, span=span, hint="`with` is for links without a bandwidth")
    if bandwidth is not None:
        unit = defaults.unit
    classes = tuple(
        LinkClass(kind.bandwidth * (bandwidth or 1), kind.latency or defaults.latency or Fraction(0))
        for kind in topology.classes
    )
    return defaults.on(attrs.evolve(topology, classes=classes, unit=unit))
