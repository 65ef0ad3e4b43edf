"""Bodies in braces: the statements that topologies and steps share (``let``, ``param``, ``for``, ``if``).

Statements run in order. Those of a loop are compiled once, to functions of the frame that holds the variables; a
statement that fails is reported once, with the values the loops had, and not run again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeAlias

import attrs

from collc.ir.diagnostic import CollcError, Span, error

from . import ast, functions
from .expressions import NUMBER, Compiler, Frame, Thunk, members
from .limits import LARGEST_NODE_LIMIT, STATEMENTS_PER_NODE
from .scope import POISON, Poisoned, Scope, Variable, earlier
from .values import extent, kind_of

__all__ = ["Aborted", "Body", "Overrides", "Runner"]

Runner: TypeAlias = Callable[[Frame], None]

#: The frame's first place is the step that transfers belong to.
STEP = 0


class Aborted(Exception):
    """A body reached a limit; the mistake has been reported."""


@attrs.define
class Overrides:
    """Values that the command line gives to parameters, as expressions.

    ``known`` are the parameters that exist, ``used`` those whose value was overridden.
    """

    values: Mapping[str, ast.Expr]
    used: set[str] = attrs.field(factory=set)
    known: set[str] = attrs.field(factory=set)

    def value(self, node: ast.Define, owner: str | None) -> ast.Expr:
        """Return the expression of a parameter: its own, or the one given for ``name`` or ``owner.name``."""
        names = [node.name.text, *([f"{owner}.{node.name.text}"] if owner else [])]
        self.known.update(names)
        given = [name for name in names if name in self.values]
        self.used.update(given)
        return self.values[given[-1]] if given else node.value


class Body(ABC):
    """One body being run. If it is ``damaged``, a statement failed and the result is meaningless."""

    #: what the body is, and what its statements may be
    noun: ClassVar[str]
    hint: ClassVar[str]

    def __init__(self, compiler: Compiler, scope: Scope, overrides: Overrides, owner: str, budget: int):
        self.compiler = compiler
        self.scope = scope
        self.overrides = overrides
        self.owner = owner
        self.limit = self.budget = budget
        self.frame: Frame = [None]
        self.damaged = False
        self.calls: list[Span | None] = []  # of blocks, outermost first

    def run(self, block: ast.Block) -> None:
        """Run the statements; mistakes go to the compiler's problems."""
        self.scope.later.update(_declared(block.statements))
        try:
            self._run_all(block.statements, self.scope)
        except Aborted:
            self.damaged = True

    def _run_all(self, statements: Sequence[ast.Statement], scope: Scope) -> None:
        for statement in statements:
            if isinstance(statement, ast.If):
                self._choose(statement, scope)
            else:
                self._compile(statement, scope, top=True)(self.frame)

    def _choose(self, node: ast.If, scope: Scope) -> None:
        """Run the branch of an ``if`` outside loops; the nodes it declares stay visible."""
        chosen: list[ast.Block | ast.If | None] = []
        thunk = self._condition(node, scope)
        self._guarded(node.condition, lambda f: chosen.append(node.then if thunk(f) else node.otherwise), scope)(
            self.frame
        )
        match chosen:
            case [ast.Block(statements)]:
                self._run_all(statements, scope.child())
            case [ast.If() as otherwise]:
                self._choose(otherwise, scope)

    # ---- compiling

    def _compile(self, node: ast.Statement, scope: Scope, top: bool = False) -> Runner:
        try:
            match node:
                case ast.Define():
                    return self._define(node, scope, top)
                case ast.Function():
                    return self._function(node, scope)
                case ast.For():
                    return self._for(node, scope)
                case ast.If():
                    return self._if(node, scope)
                case _:
                    return self._guarded(node, self.leaf(node, scope, top), scope)
        except CollcError as failure:
            self.compiler.problems.take(failure, node.span)
        except Poisoned:
            pass
        self.damaged = True
        return _do_nothing

    @abstractmethod
    def leaf(self, node: ast.Statement, scope: Scope, top: bool) -> Runner:
        """Return the runner of a statement of this kind of body; raise CollcError if it is not allowed here."""

    def misplaced(self, what: str, span: Span | None) -> CollcError:
        """Return the error C0140 for a statement that this kind of body cannot have."""
        return error("C0140", f"found {what} in {self.noun}", span=span, hint=self.hint)

    def block(self, block: ast.Block, scope: Scope) -> Runner:
        """Return the runner of an inner block, in its own scope."""
        scope.later.update(_declared(block.statements))
        runners = [self._compile(statement, scope) for statement in block.statements]
        if len(runners) == 1:
            return runners[0]

        def run(frame: Frame) -> None:
            for runner in runners:
                runner(frame)

        return run

    def slot(self) -> int:
        """Return a new place in the frame."""
        self.frame.append(None)
        return len(self.frame) - 1

    def _define(self, node: ast.Define, scope: Scope, top: bool) -> Runner:
        value = node.value
        if node.keyword == "param":
            if not top:
                scope.suspects.add(node.name.text)
                message = "found `param` in a loop, needed it in the body itself"
                raise error("C0141", message, span=node.span, hint="write `let` for a value that changes")
            value = self.overrides.value(node, self.owner)
            if value is not node.value and value.span:
                scope.given[node.name.text] = value.span
        thunk = self.compiler.compile(value, scope)
        slot = self.slot()
        scope.declare(node.name.text, Variable(slot), node.name.span)

        def run(frame: Frame) -> None:
            frame[slot] = POISON
            frame[slot] = thunk(frame)

        return self._guarded(node, run, scope)

    def _function(self, node: ast.Function, scope: Scope) -> Runner:
        functions.declare(node, scope, self.compiler, self.compiler.functions.names())
        return _do_nothing

    def _for(self, node: ast.For, scope: Scope) -> Runner:
        heads: list[tuple[Thunk, int, ast.Loop]] = []
        for loop in node.loops:
            thunk = self.compiler.compile(loop.domain, scope, NUMBER)
            scope, slot = scope.child(), self.slot()
            scope.declare(loop.name.text, Variable(slot), loop.name.span)
            heads.append((thunk, slot, loop))
        run = self.block(node.body, scope.child())
        for thunk, slot, loop in reversed(heads):
            run = self._guarded(loop.domain, self._iterate(thunk, slot, loop, run), scope)
        return run

    def _iterate(self, thunk: Thunk, slot: int, loop: ast.Loop, body: Runner) -> Runner:
        def run(frame: Frame) -> None:
            values = members(thunk(frame), loop.domain.span)
            self.spend(len(values) if isinstance(values, tuple) else extent(values), loop.span)
            for value in values:
                frame[slot] = value
                body(frame)

        return run

    def spend(self, count: int, span: Span | None) -> None:
        """Count statements before they run; report C0142 and abort the body if they are too many."""
        self.budget -= count
        if self.budget < 0:
            message = f"found more than {self.limit} statements to run in {self.noun}"
            endless = count // STATEMENTS_PER_NODE > LARGEST_NODE_LIMIT
            hint = "check the range" if endless else "check the ranges; `--node-limit` raises the limit"
            self.compiler.problems.take(error("C0142", message, span=span, hint=hint))
            raise Aborted

    def _if(self, node: ast.If, scope: Scope) -> Runner:
        condition = self._condition(node, scope)
        then = self.block(node.then, scope.child())
        otherwise: Runner = _do_nothing
        if isinstance(node.otherwise, ast.If):
            otherwise = self._if(node.otherwise, scope)
        elif node.otherwise is not None:
            otherwise = self.block(node.otherwise, scope.child())

        def run(frame: Frame) -> None:
            (then if condition(frame) else otherwise)(frame)

        return self._guarded(node.condition, run, scope)

    def _condition(self, node: ast.If, scope: Scope) -> Thunk:
        thunk = self.compiler.compile(node.condition, scope)

        def run(frame: Frame) -> bool:
            value = thunk(frame)
            if value is POISON:
                raise Poisoned
            if not isinstance(value, bool):
                found = f"found {kind_of(value)}, needed a condition"
                raise error("C0131", found, span=node.condition.span, hint="compare it: `a == b`, `a < b`")
            return value

        return run

    # ---- running

    def _guarded(self, node: ast.Node, run: Runner, scope: Scope) -> Runner:
        """Return ``run`` with its mistakes reported; after the first mistake it is skipped."""
        broken = False

        def guarded(frame: Frame) -> None:
            nonlocal broken
            if broken:
                return
            try:
                run(frame)
            except CollcError as failure:
                from .origins import with_origins

                broken = self.damaged = True
                explained = with_origins(failure, node, scope, frame)
                if self.calls:
                    explained = _with_call(explained, self.calls[-1])
                self.compiler.problems.take(explained, node.span, _variables(scope, frame))
            except Poisoned:
                broken = self.damaged = True

        return guarded


def _with_call(failure: CollcError, call: Span | None) -> CollcError:
    related = earlier(call, functions.THE_CALL)
    return CollcError([attrs.evolve(one, related=(*one.related, *related)) for one in failure.diagnostics])


def _do_nothing(frame: Frame) -> None:
    pass


def _declared(statements: Sequence[ast.Statement]) -> dict[str, Span | None]:
    """Return the names that statements declare, with the declarations."""
    found: dict[str, Span | None] = {}
    for statement in statements:
        if isinstance(statement, ast.Define | ast.Function | ast.Procedure):
            found.setdefault(statement.name.text, statement.span)
        elif isinstance(statement, ast.Nodes):
            for family in statement.families:
                found.setdefault(family.name.text, statement.span)
    return found


def _variables(scope: Scope, frame: Frame) -> list[str]:
    """Return a note with the values of the loops' variables, if there are any."""
    shown: list[str] = []
    for around in reversed(scope.chain()):
        for name, binding in around.names.items():
            if isinstance(binding, Variable) and around.parent is not None and around.parent.level == 2:
                value = frame[binding.index]
                if type(value) is int:
                    shown.append(f"{name} = {value}")
                elif isinstance(value, str):
                    shown.append(f'{name} = "{value}"')
    return [f"with {', '.join(shown)}"] if shown else []
