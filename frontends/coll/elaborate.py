"""Trees -> :class:`collc.ir.spec.Spec`: declarations in order, includes in place, all mistakes together."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Related, Source, Span, error, nearest
from collc.ir.group import Group
from collc.ir.node_names import printed
from collc.ir.roots import Roots
from collc.ir.schedule import Schedule
from collc.ir.spec import CollectiveRequest, EmitRequest, Option, Places, Problem, ScheduleRequest, Spec
from collc.ir.topology import Topology

from ..source import checked, read
from . import ast, functions
from .collectives import CollectiveReader, OwnKind
from .collector import paused
from .expressions import NUMBER, TOPOLOGY, Compiler, integer
from .files import Files
from .functions import Calls
from .kinds import PREDEFINED
from .library import Library
from .limits import DEFAULT_NODE_LIMIT, Limits
from .network import Defaults, Network, with_defaults
from .parser import Parsed, parse_expression, parse_file
from .printer import expression_text
from .requests import defaults, distinct_options, known, options
from .scope import (
    POISON,
    Cell,
    Constant,
    Listing,
    NodeTable,
    Poison,
    Poisoned,
    Problems,
    Scope,
    TooManyProblems,
    earlier,
    too_early,
)
from .statements import Overrides
from .values import Value, kind_of

if TYPE_CHECKING:
    from .counts import Counts
    from .guesses import Vocabulary
    from .imports import Imports

__all__ = ["Elaborator"]

_MAX_INCLUDES = 50  # deep; each file is read once, so there is no limit on how many


@attrs.define
class _Requested:
    """One collective while its schedule and emits are being read; ``problem`` is None if it has a mistake."""

    node: ast.Collective
    problem: Problem | None
    schedule: ScheduleRequest | None = None
    scheduled: Span | None = None
    emits: list[EmitRequest] = attrs.field(factory=list)
    roots: Roots | None = None


def _is_on(one: _Requested, topology: str) -> bool:
    return isinstance(one.node.topology, ast.Name) and one.node.topology.name == topology


class Elaborator:
    """Reads one input: a main file with what it includes, or one expression."""

    def __init__(
        self, *, params: Mapping[str, object] | None = None, include_path: Sequence[str] = (),
        node_limit: int = DEFAULT_NODE_LIMIT, schedulers: Collection[str] | None = None,
        targets: Collection[str] | None = None, topologies: Mapping[str, Topology] | None = None,
        options: Callable[[str], str | None] | None = None,
    ):  # fmt: skip
        self.owners = options
        self.problems = Problems()
        self.limits = Limits(node_limit)
        self.compiler = Compiler(
            Library(self.limits), self.problems, self._vocabulary, self._imported, Calls(self.limits.calls)
        )
        self.files = Files(tuple(include_path))
        self.schedulers, self.targets = schedulers, targets
        given = {name: Constant(attrs.evolve(network, name=name)) for name, network in (topologies or {}).items()}
        builtin = Scope(names={**given, "true": Constant(True), "false": Constant(False)}, level=0)
        self.scope = Scope(parent=builtin, level=1)
        self.given = tuple(params or {})
        self.overrides = Overrides({})
        with contextlib.suppress(TooManyProblems):
            self.overrides.values = self._expressions(params or {})
        self.topologies: dict[str, Topology] = {}
        self.collectives: dict[str, _Requested] = {}
        self.families: dict[str, list[str]] = {}  # the names of collectives, by their name without indices
        self.together: list[tuple[str, ...]] = []
        self.kinds: dict[str, OwnKind] = {}
        self.later_kinds: dict[str, Span | None] = {}
        self.listings: list[Listing] = []
        self.tables: dict[int, tuple[Topology, NodeTable]] = {}  # the nodes of topologies by name, by identity
        self.later: dict[str, Span | None] = {}
        self.sources: list[Source] = []
        self.open: dict[str, str] = {}  # real paths of the files being read, outermost first -> as they were given
        self.done: set[str] = set()

    def _vocabulary(self) -> Vocabulary:
        """Return the names of all kinds, for hints."""
        from .guesses import Vocabulary

        schedulers, targets = (() if names is None else names for names in (self.schedulers, self.targets))
        return Vocabulary(schedulers, targets, self.owners or (lambda name: None))

    # ---- input

    def _expressions(self, params: Mapping[str, object]) -> dict[str, ast.Expr]:
        """Return the expressions of ``-D``."""
        found = {}
        for name, value in params.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            try:
                expression, more = parse_expression(checked(f"<-D {name}>", text))
                if more is not None:
                    raise error("C0101", "found `with`, needed one value", span=more.span)
                found[name] = expression
            except CollcError as failure:
                self.problems.take(failure)
        return found

    @paused()
    def load(self, path: str, text: str | None) -> Spec:
        """Return the specification of a file; raise CollcError with all its mistakes."""
        source = read(path) if text is None else checked(path, text)
        self.files.main = path
        if text is None or os.path.exists(path):
            self.open[os.path.realpath(path)] = path
        with contextlib.suppress(TooManyProblems):
            self._file(source, included=False)
            self._unused_params()
            for listing in self.listings:
                if not listing.used:
                    self.take(listing.failure, listing.node)
        self._raise()
        requests = {name: self._request(name, requested) for name, requested in self.collectives.items()}
        files = tuple(source.path for source in self.sources)
        warnings = tuple(sorted(self.problems.warnings.values(), key=self._order))
        return Spec(
            self.topologies, requests, files, warnings, sources=tuple(self.sources), together=tuple(self.together),
            absent=tuple(self.files.absent),
        )  # fmt: skip

    def topology(self, text: str) -> Topology:
        """Return the topology of an expression; raise CollcError with all mistakes."""
        expression, more = parse_expression(checked("<topology>", text))
        value = None
        with contextlib.suppress(TooManyProblems):
            value = self._topology_value(expression, more, self.scope)
        self._raise()
        assert isinstance(value, Topology)
        return value

    def _raise(self) -> None:
        if self.problems.found:
            raise CollcError(sorted(self.problems.found.values(), key=self._order))

    def _order(self, diagnostic: Diagnostic) -> tuple[int, int, int]:
        span = diagnostic.span
        if span is None:
            return len(self.sources) + 1, 0, 0
        numbers = [i for i, source in enumerate(self.sources) if source is span.source]
        return numbers[0] if numbers else len(self.sources), span.line, span.column

    def _request(self, name: str, requested: _Requested) -> CollectiveRequest:
        assert requested.problem is not None
        schedule = requested.schedule or ScheduleRequest("auto")
        topology = requested.problem.topology.name
        node = requested.node
        return CollectiveRequest(
            name, topology, requested.problem, schedule, tuple(requested.emits), node.span,
            node.kind.span, self._declared(node.topology), _as_written(node.options), requested.roots,
        )  # fmt: skip

    def _declared(self, topology: ast.Expr) -> Span | None:
        """Return the place of a topology's declaration if an expression names one, else that of the expression."""
        declared = self.scope.places.get(topology.name) if isinstance(topology, ast.Name) else None
        return declared or topology.span

    def _unused_params(self) -> None:
        for name in self.given:
            if name not in self.overrides.known and not self._suspected(name) and not self.scope.incomplete:
                known_names = sorted(self.overrides.known)
                notes = () if known_names else ("the specification has no `param`",)
                listed = f"its parameters are {', '.join(known_names)}" if known_names else None
                hint = nearest(name, known_names) or listed or f"declare it: `param {name.rpartition('.')[2]} = 4;`"
                self.problems.add(*error("C0126", f"no parameter `{name}` to set", notes=notes, hint=hint).diagnostics)

    def _suspected(self, name: str) -> bool:
        return name.rpartition(".")[2] in self.scope.suspects

    # ---- files

    def _file(self, source: Source, included: bool) -> None:
        self.sources.append(source)
        parsed = parse_file(source)
        self.problems.add(*parsed.problems)
        self.scope.suspects |= parsed.suspects
        for node in parsed.file.declarations:
            if isinstance(node, _BOUND):
                self.scope.later.setdefault(node.name.text, node.span)
            elif isinstance(node, ast.Kind):
                self.later_kinds.setdefault(node.name.text, node.span)
            elif isinstance(node, ast.Collective | ast.Together):
                for one in _declared(node):
                    self.later.setdefault(one.name.text, one.span)
        for node in parsed.file.declarations:
            try:
                self._declaration(node, parsed, included)
            except CollcError as failure:
                self.take(failure, node)
            except Poisoned:
                pass

    def take(self, failure: CollcError, node: ast.Node) -> None:
        """Report mistakes in a node of the file, with the declarations of the names that they are about."""
        from .origins import with_origins

        self.problems.take(with_origins(failure, node, self.scope, []), node.span)

    def _declaration(self, node: ast.Declaration, parsed: Parsed, included: bool) -> None:
        if included and isinstance(node, ast.Schedule | ast.Emit):
            word = "schedule" if isinstance(node, ast.Schedule) else "emit"
            hint = "put it in the file that is compiled"
            raise error("C0152", f"found `{word}` in an included file, needed declarations", span=node.span, hint=hint)
        match node:
            case ast.Include():
                try:
                    self._include(node)
                except CollcError:
                    self.scope.incomplete = True
                    raise
            case ast.Define():
                value = self.overrides.value(node, None) if node.keyword == "param" else node.value
                if value is not node.value and value.span:
                    self.scope.given[node.name.text] = value.span
                self._define(node.name, value)
            case ast.Function():
                functions.declare(node, self.scope, self.compiler, self.compiler.functions.names())
            case ast.Procedure(name):
                self._procedure(node, name)
            case ast.Imported(path, name, more):
                self._bind_topology(name, self._imported_as(path, name, more))
            case ast.Cluster(name):
                damaged = parsed.damaged(node.span) if node.span else False
                self._bind_topology(name, POISON if damaged else self._cluster(node))
            case ast.TopologyIs(name, ast.Import(path, format), ast.Options() as more):
                self._bind_topology(name, self._with_figures(path, format, more, name))
            case ast.TopologyIs(name, value, more):
                damaged = parsed.damaged(node.span) if node.span else False
                self._bind_topology(name, POISON if damaged else self._topology_value(value, more, self.scope))
            case ast.TopologyOf():
                self._topology_of(node, bool(node.span and parsed.damaged(node.span)))
            case ast.Collective():
                self._collective(node, self.scope, bool(node.span and parsed.damaged(node.span)))
            case ast.Together(body):
                self._together(node, body, bool(node.span and parsed.damaged(node.span)))
            case ast.Kind():
                self._kind(node)
            case ast.Schedule():
                self._schedule(node, bool(node.span and parsed.damaged(node.span)))
            case ast.Emit(_, target, more):
                emitted = self._requested(node, "emit")
                known(target, self.targets, "C0125", "target", self.compiler)
                given = options(more, self.scope, self.compiler)
                for one in emitted:
                    one.emits.append(EmitRequest(target.text, given, node.span, target.span))

    def _include(self, node: ast.Include) -> None:
        path = self.files.found(node.path)
        real = os.path.realpath(path)
        if real in self.open:
            around = list(self.open)
            chain = " -> ".join([*(self.open[p] for p in around[around.index(real) :]), path])
            hint = "put what both files need into a third one"
            raise error("C0153", "found a file that includes itself", span=node.path.span, notes=(chain,), hint=hint)
        if real in self.done:
            return
        if len(self.open) > _MAX_INCLUDES:
            raise error("C0153", f"found more than {_MAX_INCLUDES} includes inside each other", span=node.path.span)
        source = read(path, span=node.path.span, regular=True, hidden=not self.files.is_inside(real))
        self.open[real] = path
        self._file(source, included=True)
        del self.open[real]
        self.done.add(real)

    # ---- values and topologies

    def _define(self, name: ast.Word, node: ast.Expr) -> None:
        """Bind a name to a value, or to a list; a list that stands nowhere for one is a mistake, as a set."""
        try:
            self._bind(name, self.compiler.evaluate(node, self.scope))
        except CollcError as failure:
            if isinstance(node, ast.SetOf | ast.Comprehension) and _is_of_a_set(failure):
                self.listings.append(listing := Listing(node, self.scope, failure))
                self.scope.declare(name.text, listing, name.span)
                return
            self.take(failure, node)
            self._bind(name, POISON)
        except Poisoned:
            self._bind(name, POISON)

    def _procedure(self, node: ast.Procedure, name: ast.Word) -> None:
        from .blocks import procedure

        try:
            self.scope.declare(name.text, procedure(node, self.scope), name.span)
        except (CollcError, Poisoned):
            self.scope.suspects.add(name.text)
            raise

    def _bind(self, name: ast.Word, value: Value | Poison) -> None:
        self.scope.declare(name.text, value if isinstance(value, Poison) else Constant(value), name.span)

    def _bind_topology(self, name: ast.Word, value: Value | Poison) -> None:
        if isinstance(value, Topology):
            value = attrs.evolve(value, name=name.text)
        self._bind(name, value)
        if isinstance(value, Topology):
            self.topologies[name.text] = value

    def _topology_value(self, node: ast.Expr, more: ast.Options | None, scope: Scope) -> Topology | Poison:
        """Return the topology of an expression with its defaults, or POISON."""
        try:
            value: Value = self.compiler.evaluate(node, scope, TOPOLOGY)
            if not isinstance(value, Topology):
                hint = "a topology is a graph family such as `torus(3, 3)`, or `{ rank ..; link ..; }`"
                hint = "write `cayley(GROUP, {generators})`" if isinstance(value, Group) else hint
                hint = f"write `{value}` without quotes" if isinstance(value, str) else hint
                raise error("C0131", f"found {kind_of(value)}, needed a topology", span=node.span, hint=hint)
            given = defaults(more, scope, self.compiler)
            return with_defaults(value, given, more.span) if more else value
        except CollcError as failure:
            self.take(failure, node)
        except Poisoned:
            pass
        return POISON

    # ---- networks of other files

    @cached_property
    def _imports(self) -> Imports:
        from .imports import Imports

        return Imports(self.files, self.limits, self.problems, self.sources)

    def _imported(self, node: ast.Import) -> Topology:
        """Return the topology of an `import` in an expression."""
        from ..importing.figures import Figures

        try:
            return self._imports.topology(node.path, node.format, Figures(), expression_text(node))
        except CollcError as failure:
            note = f'figures stand in a declaration: `import "{node.path.value}" as NAME with {{ .. }};`'
            raise CollcError([
                attrs.evolve(one, notes=(*one.notes, note)) if one.code == "C0923" else one
                for one in failure.diagnostics
            ]) from None  # fmt: skip

    def _imported_as(self, path: ast.String, name: ast.Word, more: ast.Options | None) -> Topology | Poison:
        """Return the topology of ``import "PATH" as NAME``, or POISON."""
        if "-" in name.text:
            text = f'topology {name.text.partition("-")[0]} = import "{path.value}" as {name.text};'
            message = f"found `{name.text}`, needed the name of the topology"
            self.problems.add(*error("C0151", message, span=name.span, hint=f"write `{text}`").diagnostics)
            return POISON
        return self._with_figures(path, None, more, name)

    def _with_figures(
        self, path: ast.String, format: ast.Word | None, more: ast.Options | None, name: ast.Word
    ) -> Topology | Poison:  # fmt: skip
        """Return the topology in a file with figures and defaults, or POISON."""
        from .imports import FIGURES, figures, is_figure

        items = [item for item in more.items if is_figure(item)] if more else []
        names = [item.name.text for item in items]
        given: Defaults | None = None
        with contextlib.suppress(Poisoned):  # mistakes in figures are reported too
            given = defaults(more, self.scope, self.compiler, names, (*FIGURES, "tier-NAME"))
        try:
            found = figures(items, self.scope, self.compiler)
            if given is None:
                return POISON
            network = self._imports.topology(path, format, found, name.text)
            return with_defaults(network, given, more.span) if more else network
        except CollcError as failure:
            self.take(failure, path)
        except Poisoned:
            pass
        return POISON

    def _cluster(self, node: ast.Cluster) -> Topology | Poison:
        """Return the topology of a cluster, or POISON."""
        from .cluster import cluster

        for part, word in ((node.machine, ""), (node.fabric, "on ")):
            self._require_topology(part, word)
        machine, fabric = (self._topology_value(part, None, self.scope) for part in (node.machine, node.fabric))
        if isinstance(machine, Poison) or isinstance(fabric, Poison):
            return POISON
        try:
            return cluster(node, machine, fabric, self.scope, self.compiler, self.limits)
        except CollcError as failure:
            self.take(failure, node)
        except Poisoned:
            pass
        return POISON

    def _topology_of(self, node: ast.TopologyOf, damaged: bool) -> None:
        scope = Scope(parent=self.scope, level=2)
        body = Network(self.compiler, scope, self.overrides, node.name.text, self.limits, incomplete=damaged)
        result: Topology | Poison = POISON
        try:
            body.run(node.body)
            given = defaults(node.defaults, self.scope, self.compiler)
            result = POISON if damaged else body.topology(given, node.name.span)
        except CollcError as failure:
            self.problems.take(failure, node.span)
        except Poisoned:
            pass
        self._bind_topology(node.name, result)

    # ---- requests

    def _require_topology(self, node: ast.Expr, on: str = "on ") -> None:
        """Raise C0131 if a collective stands where a topology is needed, after the word ``on`` or another."""
        if not isinstance(node, ast.Name) or self.scope.find(node.name) is not None:
            return
        other = self.collectives.get(node.name)
        if other is not None:
            hint = f"write `{on}{expression_text(other.node.topology)}`, as `{node.name}` does"
            related = earlier(other.node.name.span, "the collective")
            message = f"found the collective `{node.name}`, needed a topology"
            raise error("C0131", message, span=node.span, hint=hint, related=related)

    def _collective(self, node: ast.Collective, scope: Scope, damaged: bool = False) -> None:
        """Declare a collective, whose indices and options are computed in ``scope``."""
        family = node.name.text
        self.later.pop(family, None)
        name = printed(family, self._indices(node, scope))
        other = name if name in self.collectives else next(iter(self.families.get(family, ())), "")
        as_one = other and bool(node.indices) != bool(self.collectives[other].node.indices)
        if name in self.collectives or self._has_roots(other, name) or as_one:
            first = self.collectives[other].node.name.span
            related = earlier(first) if first != node.name.span else ()
            message, hint = f"collective `{name}` is declared twice", "rename one of them"
            hint = "give it the loop's variable as an index, such as `tp[b]`" if not related else hint
            raise error("C0121", message, span=node.name.span, hint=hint, related=related)
        self.collectives[name] = requested = _Requested(node, None)
        self.families.setdefault(family, []).append(name)
        self._require_topology(node.topology)
        topology = self._topology_value(node.topology, None, scope)
        if isinstance(topology, Poison):
            self._require_kind(node.kind)
            return
        self._require_kind(node.kind)
        reader = CollectiveReader(
            node, topology, scope, self.compiler, self.kinds, lambda: self._table(topology), lambda: self._counts,
            damaged,
        )  # fmt: skip
        requested.problem = Problem(topology, reader.read())
        self.topologies.setdefault(topology.name, topology)
        if reader.roots is not None:
            self._several_roots(name, requested, reader.roots, scope)

    def _has_roots(self, other: str, name: str) -> bool:
        """Return whether a declared collective is one orbit of the roots of ``name``."""
        roots = self.collectives[other].roots if other else None
        return roots is not None and roots.name == name

    def _several_roots(self, name: str, first: _Requested, listed: tuple[int, ...], scope: Scope) -> None:
        """Declare a collective of several roots as one for each orbit. Raises C0203 in a ``together`` block."""
        from .roots import for_orbits, not_together

        assert first.problem is not None
        if scope is not self.scope:
            first.problem = None
            raise not_together(first.node)
        family = self.families[first.node.name.text]
        del self.collectives[name]
        family.remove(name)
        for orbit, problem, roots in for_orbits(name, first.problem, listed):
            self.collectives[orbit] = _Requested(first.node, problem, roots=roots)
            family.append(orbit)

    def _require_kind(self, kind: ast.Word) -> None:
        """Raise C0130 for a kind that is declared later, C0201 for one that is not declared."""
        names = (*PREDEFINED, *self.kinds)
        if kind.text not in names and kind.text in self.later_kinds:
            raise too_early(kind.text, self.later_kinds[kind.text], kind.span)
        if kind.text not in names and kind.text in self.scope.suspects:
            raise Poisoned
        known(kind, names, "C0201", "collective", self.compiler)

    def _indices(self, node: ast.Collective | ast.Schedule | ast.Emit, scope: Scope) -> tuple[int, ...]:
        """Return the indices of a collective's name; raise C0132 or C0134 for what is no number from 0."""
        try:
            return tuple(_index(self.compiler.evaluate(one, scope, NUMBER), one.span) for one in node.indices)
        except (CollcError, Poisoned):
            self.scope.suspects.add(node.name.text)
            raise

    def _together(self, node: ast.Together, block: ast.Block, damaged: bool) -> None:
        """Declare the collectives of a block; raise C0144 if they are not on one topology, or there are none."""
        from .together import Together

        before = len(self.collectives)
        scope = Scope(parent=self.scope, level=2)
        body = Together(self.compiler, scope, self.overrides, self._collective, self.limits.statements)
        body.run(block)
        names = tuple(self.collectives)[before:]
        if body.damaged or damaged:
            self.scope.suspects |= {one.name.text for one in _declared(node)}
        if not (body.damaged or damaged or names):
            message, hint = "found `together` without collectives", "check the ranges of its loops"
            raise error("C0144", message, span=node.span, hint=hint)
        self.together.append(names)
        first: _Requested | None = None
        for one in (self.collectives[name] for name in names):
            first = first or (one if one.problem is not None else None)
            if first and one.problem and first.problem and one.problem.topology is not first.problem.topology:
                self._other_topology(one.node, first.node)

    def _other_topology(self, node: ast.Collective, first: ast.Collective) -> None:
        message = f"found a collective on `{expression_text(node.topology)}`, needed the topology of the others"
        hint = "collectives that run together share links: declare one topology, and name the ranks by `among`"
        related = earlier(first.topology.span, "the first topology")
        self.problems.take(error("C0144", message, span=node.topology.span, hint=hint, related=related))

    def _table(self, topology: Topology) -> NodeTable:
        """Return the nodes of a topology by name; the topologies are kept, so that no other gets their identity."""
        if id(topology) not in self.tables:
            self.tables[id(topology)] = topology, NodeTable.of(topology)
        return self.tables[id(topology)][1]

    @cached_property
    def _counts(self) -> Counts:
        from .counts import Counts

        return Counts(self.files, self.sources)

    def _kind(self, node: ast.Kind) -> None:
        """Declare a kind of collective; its conditions are computed where it is used."""
        name = node.name.text
        if name in PREDEFINED:
            message, hint = f"`{name}` is a kind of collective already", "give this one another name"
            raise error("C0121", message, span=node.name.span, hint=hint)
        if name in self.kinds:
            related = earlier(self.kinds[name].node.name.span)
            message, hint = f"kind `{name}` is declared twice", "rename one of them"
            raise error("C0121", message, span=node.name.span, hint=hint, related=related)
        self.kinds[name] = own = OwnKind(node)
        distinct_options(node.conditions, self.compiler)
        if missing := [part for part in ("pre", "post") if own.condition(part) is None]:
            hint = f"write `collective {name} {{ pre: 0..ranks post: {{(r + 1) mod ranks for r in 0..ranks}} }}`"
            raise error("C0216", f"kind `{name}` needs `{missing[0]}`", span=node.name.span, hint=hint)
        inner = self.scope.child()
        inner.names["ranks"] = Cell()
        for item in node.conditions.items:
            assert not isinstance(item.value, ast.Word)
            self.compiler.compile(item.value, inner)

    def _no_collective(self, name: ast.Word, word: str) -> CollcError:
        """Return the error for a name that is no collective, as in a ``schedule`` or ``emit``."""
        from .guesses import did_you_mean

        if self.scope.incomplete and not did_you_mean(name.text, self.collectives):
            raise Poisoned
        binding, place = self.scope.find(name.text), self.scope.places.get(name.text)
        if isinstance(binding, Constant) and isinstance(binding.value, Topology):
            on = [known for known, one in self.collectives.items() if _is_on(one, name.text)]
            declare = f"declare a collective on it: `collective grads = allreduce on {name.text};`"
            hint = f"write `{word} {on[0]} ..`" if len(on) == 1 else declare
            message, related = f"found the topology `{name.text}`, needed a collective", earlier(place, "the topology")
            return error("C0120", message, span=name.span, hint=hint, related=related)
        if name.text in self.kinds:
            message, related = f"found the kind `{name.text}`, needed a collective", self._place_of(name.text)
            hint = f"declare one of this kind: `collective c = {name.text} on TOPOLOGY;`"
            return error("C0120", message, span=name.span, hint=hint, related=related)
        near = did_you_mean(name.text, self.collectives)
        listed = ", ".join(f"`{known}`" for known in list(self.collectives)[:8])
        declare = f"declare it above: `collective {name.text} = allreduce on TOPOLOGY;`"
        hint = near or (f"the collectives are {listed}" if listed else declare)
        return error("C0120", f"unknown collective `{name.text}`", span=name.span, hint=hint)

    def _place_of(self, kind: str) -> tuple[Related, ...]:
        return earlier(self.kinds[kind].node.name.span, "its declaration")

    def _requested(self, node: ast.Schedule | ast.Emit, word: str) -> list[_Requested]:
        """Return the collective that a ``schedule`` or ``emit`` names, or all of the family."""
        name = node.name
        if node.indices and name.text in self.families:
            one = printed(name.text, self._indices(node, self.scope))
            if one not in self.collectives:
                if name.text in self.scope.suspects:
                    raise Poisoned
                names = self.families[name.text]
                hint = f"there are `{names[0]}` to `{names[-1]}`" if len(names) > 1 else f"there is `{names[0]}`"
                raise error("C0120", f"unknown collective `{one}`", span=name.span, hint=hint)
            return [self.collectives[one]]
        if name.text in self.families:
            return [self.collectives[one] for one in self.families[name.text]]
        if name.text in self.scope.suspects:
            raise Poisoned
        if name.text in self.later:
            raise too_early(name.text, self.later[name.text], name.span)
        raise self._no_collective(name, word)

    def _schedule(self, node: ast.Schedule, damaged: bool) -> None:
        for requested in (named := self._requested(node, "schedule")):
            if requested.scheduled is not None:
                related = earlier(requested.scheduled, "the first schedule")
                message, hint = f"`{node.name.text}` is scheduled twice", "remove one of the schedules"
                raise error("C0121", message, span=node.name.span, hint=hint, related=related)
            requested.scheduled = node.span
        if node.steps is None:
            known(node.scheduler, self.schedulers, "C0124", "scheduler", self.compiler)
        given = options(node.options, self.scope, self.compiler)
        instances = 1
        if node.steps is not None:
            instances, given = self._instances(node, given), ()
        for requested in named:
            schedule, rows = None, None
            if node.steps is not None:
                schedule, rows = self._steps(node, node.steps, requested.problem, damaged)
            requested.schedule = ScheduleRequest(
                node.scheduler.text, given, schedule, node.span, node.scheduler.span, rows, instances
            )  # fmt: skip

    def _instances(self, node: ast.Schedule, given: Sequence[Option]) -> int:
        """Return the number of instances of a schedule written by hand; mistakes go to the problems."""
        for item in node.options.items if node.options else ():
            try:
                known(item.name, ("instances",), "C0127", "option", self.compiler)
            except CollcError as failure:
                self.problems.take(failure)
        found = next((option for option in given if option.name == "instances"), None)
        if found is None:
            return 1
        if type(found.value) is int and 1 <= found.value <= _MOST_INSTANCES:
            return found.value
        message = f"found {found.value} instances, needed 1 to {_MOST_INSTANCES}"
        self.problems.take(error("C0134", message, span=found.place))
        return 1

    def _steps(
        self, node: ast.Schedule, block: ast.Block, problem: Problem | None, damaged: bool
    ) -> tuple[Schedule | None, Places | None]:  # fmt: skip
        """Return the schedule of a body, and the places of its rows."""
        if problem is None:
            return None, None
        from .steps import Steps

        body = Steps(
            self.compiler, Scope(parent=self.scope, level=2), self.overrides, node.name.text, self.limits.statements,
            problem.topology, problem.collective,
        )  # fmt: skip
        body.run(block)
        return (None, None) if damaged else body.schedule(node.scheduler.span)


#: No runtime has as many channels.
_MOST_INSTANCES = 64
_BOUND = (
    ast.Define, ast.Function, ast.Procedure, ast.Imported, ast.TopologyIs, ast.TopologyOf, ast.Cluster,
)  # fmt: skip


def _is_of_a_set(failure: CollcError) -> bool:
    """Return whether what is wrong is right in a list: a repeated number, or an element that is no integer."""
    return all(one.code in ("C0132", "C0137") for one in failure.diagnostics)


def _index(value: Value, span: Span | None) -> int:
    index = integer(value, span, "an index")
    if index < 0:
        message, hint = f"found the index {index}, needed one from 0", "indices count from 0"
        raise error("C0134", message, span=span, hint=hint)
    return index


def _declared(node: ast.Collective | ast.Together) -> Iterable[ast.Collective]:
    """Return the collectives of a declaration."""
    if isinstance(node, ast.Collective):
        return (node,)
    from .together import declared

    return declared(node.body)


def _as_written(node: ast.Options | None) -> tuple[Option, ...]:
    """Return options with their places, and their values as text."""
    items = node.items if node else ()
    return tuple(Option(one.name.text, expression_text(one.value), one.span, one.value.span) for one in items)
