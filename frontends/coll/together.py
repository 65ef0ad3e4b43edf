"""``together { .. }``: collectives that run at the same time, often one for each value of a loop's variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from collc.ir.diagnostic import error

from . import ast
from .expressions import Compiler, Frame
from .scope import POISON, Binding, Constant, Poison, Scope, Variable
from .statements import Body, Overrides, Runner

__all__ = ["MOST_COLLECTIVES", "Together", "declared"]

#: The most collectives of one block.
MOST_COLLECTIVES = 4096


class Together(Body):
    """The body of a block; ``declare`` declares one of its collectives, with the loops' variables in a scope."""

    noun: ClassVar[str] = "`together`"
    hint: ClassVar[str] = "`together` has `collective`, `let`, `for` and `if`"

    def __init__(
        self, compiler: Compiler, scope: Scope, overrides: Overrides,
        declare: Callable[[ast.Collective, Scope], None], budget: int,
    ):  # fmt: skip
        super().__init__(compiler, scope, overrides, "", budget)
        self.declare = declare
        self.left = MOST_COLLECTIVES

    def leaf(self, node: ast.Statement, scope: Scope, top: bool) -> Runner:
        if not isinstance(node, ast.Collective):
            raise self.misplaced("a statement of another body", node.span)

        def run(frame: Frame) -> None:
            self.left -= 1
            if self.left < 0:
                message = f"found more than {MOST_COLLECTIVES} collectives in `together`"
                raise error("C0144", message, span=node.span, hint="check the ranges of the loops")
            self.declare(node, self._at_present(scope, frame))

        return run

    def _at_present(self, scope: Scope, frame: Frame) -> Scope:
        """Return the scope in which the variables have their values of the moment."""
        present = Scope(parent=self.scope.parent, level=2)
        for around in reversed(scope.chain()):
            if around.level == 2:
                present.names |= {name: _value(binding, frame) for name, binding in around.names.items()}
        return present


def _value(binding: Binding, frame: Frame) -> Binding:
    if not isinstance(binding, Variable):
        return binding
    value = frame[binding.index]
    return POISON if isinstance(value, Poison) else Constant(value)


def declared(block: ast.Block) -> Iterator[ast.Collective]:
    """Yield the declarations of collectives in a block and the blocks in it."""
    pending: list[ast.Statement | ast.Block | None] = [block]
    while pending:
        match pending.pop():
            case ast.Collective() as found:
                yield found
            case ast.Block(statements):
                pending.extend(reversed(statements))
            case ast.For(_, body):
                pending.append(body)
            case ast.If(_, then, otherwise):
                pending.extend((otherwise, then))
