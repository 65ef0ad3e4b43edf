"""Trees -> :class:`collc.ir.spec.Spec`: declarations in order, includes in place, all mistakes together."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence

import attrs

from collc.ir.collective import KINDS
from collc.ir.diagnostic import CollcError, Diagnostic, Source, Span, error, nearest
from collc.ir.group import Group
from collc.ir.schedule import Schedule
from collc.ir.spec import CollectiveRequest, EmitRequest, Problem, ScheduleRequest, Spec
from collc.ir.topology import Topology

from . import ast
from .collector import paused
from .expressions import Compiler
from .library import DEFAULT_NODE_LIMIT, Library, Limits
from .network import Network, with_defaults
from .parser import Parsed, parse_expression, parse_file
from .requests import collective, defaults, known, options
from .scope import POISON, Constant, Poison, Poisoned, Problems, Scope, TooManyProblems
from .source import checked, read
from .statements import Overrides
from .values import Value, kind_of

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


class Elaborator:
    """Reads one input: a main file with what it includes, or one expression."""

    def __init__(
        self, *, params: Mapping[str, object] | None = None, include_path: Sequence[str] = (),
        node_limit: int = DEFAULT_NODE_LIMIT, schedulers: Collection[str] | None = None,
        targets: Collection[str] | None = None, topologies: Mapping[str, Topology] | None = None,
    ):  # fmt: skip
        self.problems = Problems()
        self.limits = Limits(node_limit)
        self.compiler = Compiler(Library(self.limits), self.problems)
        self.include_path = tuple(include_path)
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
        self.later: dict[str, Span | None] = {}
        self.sources: list[Source] = []
        self.main = ""
        self.open: dict[str, str] = {}  # real paths of the files being read, outermost first -> as they were given
        self.done: set[str] = set()

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
        self.main = path
        if text is None or os.path.exists(path):
            self.open[os.path.realpath(path)] = path
        with contextlib.suppress(TooManyProblems):
            self._file(source, included=False)
            self._unused_params()
        self._raise()
        requests = {name: self._request(name, requested) for name, requested in self.collectives.items()}
        files = tuple(source.path for source in self.sources)
        return Spec(self.topologies, requests, files)

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
        return CollectiveRequest(
            name, topology, requested.problem, schedule, tuple(requested.emits), requested.node.span
        )

    def _unused_params(self) -> None:
        for name in self.given:
            if name not in self.overrides.known and not self._suspected(name):
                known_names = sorted(self.overrides.known)
                notes = () if known_names else ("the specification has no `param`",)
                hint = nearest(name, known_names)
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
            if isinstance(node, ast.Define | ast.TopologyIs | ast.TopologyOf):
                self.scope.later.setdefault(node.name.text, node.span)
            elif isinstance(node, ast.Collective):
                self.later.setdefault(node.name.text, node.span)
        for node in parsed.file.declarations:
            try:
                self._declaration(node, parsed, included)
            except CollcError as failure:
                self.problems.take(failure, node.span)
            except Poisoned:
                pass

    def _declaration(self, node: ast.Declaration, parsed: Parsed, included: bool) -> None:
        if included and isinstance(node, ast.Schedule | ast.Emit):
            word = "schedule" if isinstance(node, ast.Schedule) else "emit"
            hint = "put it in the file that is compiled"
            raise error("C0152", f"found `{word}` in an included file, needed declarations", span=node.span, hint=hint)
        match node:
            case ast.Include():
                self._include(node)
            case ast.Define():
                value = self.overrides.value(node, None) if node.keyword == "param" else node.value
                self._bind(node.name, self._value(value))
            case ast.TopologyIs(name, value, more):
                damaged = parsed.damaged(node.span) if node.span else False
                self._bind_topology(name, POISON if damaged else self._topology_value(value, more, self.scope))
            case ast.TopologyOf():
                self._topology_of(node, bool(node.span and parsed.damaged(node.span)))
            case ast.Collective():
                self._collective(node)
            case ast.Schedule():
                self._schedule(node, bool(node.span and parsed.damaged(node.span)))
            case ast.Emit(_, target, more):
                requested = self._requested(node.name)
                known(target, self.targets, "C0125", "target")
                requested.emits.append(EmitRequest(target.text, options(more, self.scope, self.compiler), node.span))

    def _include(self, node: ast.Include) -> None:
        path = self._found(node)
        real = os.path.realpath(path)
        if real in self.open:
            around = list(self.open)
            chain = " -> ".join([*(self.open[p] for p in around[around.index(real) :]), path])
            raise error("C0153", "found a file that includes itself", span=node.path.span, notes=(chain,))
        if real in self.done:
            return
        if len(self.open) > _MAX_INCLUDES:
            raise error("C0153", f"found more than {_MAX_INCLUDES} includes inside each other", span=node.path.span)
        source = read(path, span=node.path.span, regular=True, hidden=not self._inside(real))
        self.open[real] = path
        self._file(source, included=True)
        del self.open[real]
        self.done.add(real)

    def _inside(self, real: str) -> bool:
        """Return whether a file lies below the folder of the main file or a folder of the include path."""
        folders = [os.path.realpath(folder or ".") for folder in (os.path.dirname(self.main), *self.include_path)]
        return any(os.path.commonpath([real, folder]) == folder for folder in folders)

    def _found(self, node: ast.Include) -> str:
        """Return the path of an included file: beside the including one, else in the include path."""
        name = node.path.value
        origin = os.path.dirname(node.span.source.path) if node.span else ""
        candidates = [os.path.join(folder, name) for folder in (origin, *self.include_path)]
        for candidate in candidates:
            if os.path.exists(candidate):
                return candidate
        looked = ", ".join(f"`{folder or '.'}`" for folder in (origin, *self.include_path))
        message = f"cannot read `{name}`: no such file"
        raise error("C0150", message, span=node.path.span, notes=(f"looked in {looked}",), hint="`-I` adds a folder")

    # ---- values and topologies

    def _value(self, node: ast.Expr) -> Value | Poison:
        """Return a value; report a mistake and return POISON."""
        try:
            return self.compiler.evaluate(node, self.scope)
        except CollcError as failure:
            self.problems.take(failure, node.span)
        except Poisoned:
            pass
        return POISON

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
            value: Value = self.compiler.evaluate(node, scope)
            if not isinstance(value, Topology):
                hint = "a topology is a graph family such as `torus(3, 3)`, or `{ rank ..; link ..; }`"
                hint = "write `cayley(GROUP, {generators})`" if isinstance(value, Group) else hint
                raise error("C0131", f"found {kind_of(value)}, needed a topology", span=node.span, hint=hint)
            given = defaults(more, scope, self.compiler)
            return with_defaults(value, given, more.span) if more else value
        except CollcError as failure:
            self.problems.take(failure, node.span)
        except Poisoned:
            pass
        return POISON

    def _topology_of(self, node: ast.TopologyOf, damaged: bool) -> None:
        scope = Scope(parent=self.scope, level=2)
        body = Network(self.compiler, scope, self.overrides, node.name.text, self.limits)
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

    def _collective(self, node: ast.Collective) -> None:
        name = node.name.text
        self.later.pop(name, None)
        if name in self.collectives:
            note = f"the first declaration is at {self.collectives[name].node.name.span}"
            raise error("C0121", f"collective `{name}` is declared twice", span=node.name.span, notes=(note,))
        self.collectives[name] = requested = _Requested(node, None)
        topology = self._topology_value(node.topology, None, self.scope)
        if isinstance(topology, Poison):
            known(node.kind, KINDS, "C0201", "collective")
            return
        requested.problem = Problem(topology, collective(node, topology, self.scope, self.compiler))
        self.topologies.setdefault(topology.name, topology)

    def _requested(self, name: ast.Word) -> _Requested:
        if name.text in self.collectives:
            return self.collectives[name.text]
        if name.text in self.scope.suspects:
            raise Poisoned
        if name.text in self.later:
            where = f"at {self.later[name.text]}"
            message = f"collective `{name.text}` is used before its declaration {where}"
            raise error("C0130", message, span=name.span, hint="move the declaration up")
        hint = nearest(name.text, self.collectives)
        raise error("C0120", f"unknown collective `{name.text}`", span=name.span, hint=hint)

    def _schedule(self, node: ast.Schedule, damaged: bool) -> None:
        requested = self._requested(node.name)
        if requested.scheduled is not None:
            note = f"the first schedule is at {requested.scheduled}"
            raise error("C0121", f"`{node.name.text}` is scheduled twice", span=node.span, notes=(note,))
        requested.scheduled = node.span
        schedule: Schedule | None = None
        if node.steps is not None:
            schedule = self._steps(node, node.steps, requested.problem, damaged)
        else:
            known(node.scheduler, self.schedulers, "C0124", "scheduler")
        given = options(node.options, self.scope, self.compiler)
        requested.schedule = ScheduleRequest(node.scheduler.text, given, schedule, node.span)

    def _steps(
        self, node: ast.Schedule, block: ast.Block, problem: Problem | None, damaged: bool
    ) -> Schedule | None:  # fmt: skip
        if problem is None:
            return None
        from .steps import Steps

        body = Steps(
            self.compiler, Scope(parent=self.scope, level=2), self.overrides, node.name.text, self.limits.statements,
            problem.topology, problem.collective,
        )  # fmt: skip
        body.run(block)
        return None if damaged else body.schedule(node.scheduler.span)
