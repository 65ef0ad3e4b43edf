"""Blocks of statements with parameters: ``define ring(first, offset) { .. }``, which ``call ring(4, 0);`` runs.

A block is compiled once, with a place in the frame for each parameter. None calls itself, so every call ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.frozen import frozen

from . import ast
from .expressions import NUMBER, Frame
from .functions import MOST_LEVELS, parts, require_count
from .scope import Function, Poison, Poisoned, Procedure, Scope, Variable, too_early
from .statements import Runner

if TYPE_CHECKING:
    from .steps import Steps

__all__ = ["Blocks", "found", "procedure"]


def procedure(node: ast.Procedure, scope: Scope) -> Procedure:
    """Return the binding of a block.

    Raises C0120, C0130 or C0131 if it calls itself or no block that is declared before it, C0116 for too many levels.
    """
    inner = [found(one, scope, node) for one in parts(node, ast.Invoke)]
    height = node.height + max((one.height for one in inner), default=0)
    if height > MOST_LEVELS:
        message = f"found more than {MOST_LEVELS} levels of blocks that call each other"
        raise error("C0116", message, span=node.name.span, hint="join some of the blocks")
    has_steps = next(parts(node, ast.At), None) is not None or any(one.has_steps for one in inner)
    return Procedure(node, scope, has_steps, height)


def found(node: ast.Invoke, scope: Scope, around: ast.Procedure | None = None) -> Procedure:
    """Return the block that a statement calls; ``around`` is the block that it belongs to."""
    name, span = node.name.text, node.name.span
    if around is not None and name == around.name.text:
        hint = "blocks do not recurse: write a loop"
        raise error("C0130", f"`{name}` calls itself", span=span, hint=hint)
    match scope.find(name):
        case Procedure() as bound:
            return bound
        case Poison():
            raise Poisoned
        case Function():
            hint = f"a function stands in an expression: `let x = {name}(..);`"
            raise error("C0131", f"`{name}` is a function, needed a block", span=span, hint=hint)
        case None:
            raise _unknown(name, span, scope)
    hint = f"declare a block: `define {name}(r) {{ .. }}`"
    raise error("C0131", f"`{name}` is no block", span=span, hint=hint)


def _unknown(name: str, span: Span | None, scope: Scope) -> CollcError:
    from .guesses import did_you_mean

    for around in scope.chain():
        if name in around.later:
            return too_early(name, around.later[name], span)
    scope.require_complete(name)
    own = {known for one in scope.chain() for known, bound in one.names.items() if isinstance(bound, Procedure)}
    hint = did_you_mean(name, own) or f"declare it above: `define {name}(r) {{ .. }}`"
    return error("C0120", f"unknown block `{name}`", span=span, hint=hint)


@frozen(eq=False)
class _Compiled:
    """A block: the places of its parameters in the frame, and the runner of its statements.

    ``damaged``: a statement has a mistake.
    """

    slots: tuple[int, ...]
    run: Runner
    damaged: bool


class Blocks:
    """The blocks that one body of steps calls."""

    def __init__(self, body: Steps):
        self.body = body
        self.compiled: dict[int, tuple[Procedure, _Compiled]] = {}

    def declare(self, node: ast.Procedure, scope: Scope, top: bool) -> None:
        """Bind the name of a block, and compile its statements; raise C0141 if it stands in a block."""
        if not top:
            hint = "move it to the beginning of the steps, or to the file"
            raise error("C0141", "found `define` in a block, needed it outside", span=node.name.span, hint=hint)
        try:
            bound = procedure(node, scope)
        except (CollcError, Poisoned):
            scope.suspects.add(node.name.text)
            raise
        self._compiled(bound)
        scope.declare(node.name.text, bound, node.name.span)

    def invoke(self, node: ast.Invoke, scope: Scope) -> Runner:
        """Return the runner of a call; raise CollcError if there is no such block, or it does not fit here."""
        body, name, bound = self.body, node.name.text, found(node, scope)
        parameters = tuple(one.text for one in bound.node.parameters)
        require_count(name, parameters, len(node.arguments), node.span, bound.node.name.span)
        self._require_place(node, bound)
        block = self._compiled(bound)
        thunks = [body.compiler.compile(argument, scope, NUMBER) for argument in node.arguments]

        def run(frame: Frame) -> None:
            values = [thunk(frame) for thunk in thunks]
            if block.damaged or any(isinstance(value, Poison) for value in values):
                raise Poisoned
            body.spend(1, node.span)
            for slot, value in zip(block.slots, values, strict=True):
                frame[slot] = value
            body.calls.append(node.span)
            try:
                block.run(frame)
            finally:
                body.calls.pop()

        return run

    def _require_place(self, node: ast.Invoke, bound: Procedure) -> None:
        """Raise C0143 if a block with steps is called inside `at`, or one without outside."""
        if bound.has_steps and self.body.inside_at:
            message, hint = f"found `call {node.name.text}` inside `at`", "the block has `at` itself: call it outside"
            raise error("C0143", message, span=node.span, hint=hint)
        if not (bound.has_steps or self.body.inside_at):
            message = f"found `call {node.name.text}` without a step"
            raise error("C0143", message, span=node.span, hint=f"write `at STEP: call {node.name.text}(..);`")

    def _compiled(self, bound: Procedure) -> _Compiled:
        if id(bound) not in self.compiled:
            before, self.body.damaged = self.body.damaged, False
            try:
                slots, run = self._statements(bound)
            finally:
                damaged = self.body.damaged
                self.body.damaged |= before
            self.compiled[id(bound)] = bound, _Compiled(slots, run, damaged)
        return self.compiled[id(bound)][1]

    def _statements(self, bound: Procedure) -> tuple[tuple[int, ...], Runner]:
        body, node, outer = self.body, bound.node, bound.scope
        if outer.level < 2:  # a block of the file names the nodes of this topology
            outer = Scope(parent=outer, level=2, nodes=body.scope.nodes)
        inner, slots = outer.child(), []
        for parameter in node.parameters:
            slots.append(body.slot())
            inner.declare(parameter.text, Variable(slots[-1]), parameter.span)
        before, body.inside_at = body.inside_at, not bound.has_steps
        try:
            return tuple(slots), body.block(node.body, inner.child())
        finally:
            body.inside_at = before
