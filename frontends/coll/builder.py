"""From the parser's rules to the tree: one method a rule, named as the grammar names it.

Children are everything the rule matched: tokens (punctuation too), finished nodes, and nothing where an optional part
is absent. The parser is shared by all threads, so what belongs to one text is a context variable.
"""

from __future__ import annotations

from contextvars import ContextVar
from fractions import Fraction
from typing import Any

import attrs
from lark import Token

from collc.ir.diagnostic import Diagnostic, Source, Span

from . import ast

__all__ = ["CURRENT", "Builder", "Text", "span_of"]

#: The longest literal worth reading: 10^30 bytes are more than anybody has.
_MAX_DIGITS = 30

Child = Any


@attrs.define
class Text:
    """One text while it is read: its source and the mistakes that do not stop the parser."""

    source: Source
    problems: list[Diagnostic] = attrs.field(factory=list)


CURRENT: ContextVar[Text] = ContextVar("collc_text")


def span_of(first: Child, last: Child) -> Span:
    """Return the span from the start of one token or node to the end of another."""
    start: Any = first if isinstance(first, Token) else first.span
    stop: Any = last if isinstance(last, Token) else last.span
    return Span(CURRENT.get().source, start.line, start.column, stop.end_line, stop.end_column)


def _whole(children: list[Child]) -> Span:
    last = next(child for child in reversed(children) if child is not None)
    return span_of(children[0], last)


def _nodes(children: list[Child]) -> tuple[Any, ...]:
    return tuple(child for child in children if isinstance(child, ast.Node))


def _word(token: Token) -> ast.Word:
    return ast.Word(str(token), span=span_of(token, token))


def _string(token: Token) -> ast.String:
    return ast.String(token[1:-1], span=span_of(token, token))


def _value(token: Token) -> Fraction:
    if len(token) > _MAX_DIGITS:
        found = f"found a number of {len(token)} characters, needed at most {_MAX_DIGITS}"
        CURRENT.get().problems.append(Diagnostic("C0115", found, span=span_of(token, token)))
        return Fraction(0)
    return Fraction(token)


def _optional(children: list[Child], kind: type) -> Any:
    return next((child for child in children if isinstance(child, kind)), None)


class Builder:
    """The parser's callbacks."""

    # ---- expressions

    def number(self, c: list[Child]) -> ast.Number:
        return ast.Number(_value(c[0]), span=_whole(c))

    def quantity(self, c: list[Child]) -> ast.Quantity:
        return ast.Quantity(_value(c[0]), str(c[1]), span=_whole(c))

    def string(self, c: list[Child]) -> ast.String:
        return _string(c[0])

    def name(self, c: list[Child]) -> ast.Name:
        return ast.Name(str(c[0]), span=_whole(c))

    def call(self, c: list[Child]) -> ast.Call:
        return ast.Call(str(c[0]), _nodes(c), span=_whole(c))

    def index(self, c: list[Child]) -> ast.Index:
        return ast.Index(str(c[0]), _nodes(c), span=_whole(c))

    def set(self, c: list[Child]) -> ast.SetOf:
        return ast.SetOf(_nodes(c), span=_whole(c))

    def paren(self, c: list[Child]) -> ast.Expr:
        return attrs.evolve(c[1], span=_whole(c))

    def unary(self, c: list[Child]) -> ast.Unary:
        return ast.Unary(str(c[0]), c[1], span=_whole(c))

    def binary(self, c: list[Child]) -> ast.Binary:
        return ast.Binary(str(c[1]), c[0], c[2], span=_whole(c))

    def span(self, c: list[Child]) -> ast.Range:
        return ast.Range(c[0], c[2], span=_whole(c))

    def import_(self, c: list[Child]) -> ast.Import:
        return ast.Import(_string(c[1]), _word(c[3]), span=_whole(c))

    # ---- blocks

    def hyphenated(self, c: list[Child]) -> ast.Word:
        return _word(c[0])

    def option(self, c: list[Child]) -> ast.Option:
        return ast.Option(_word(c[0]), c[2], span=_whole(c))

    def options(self, c: list[Child]) -> ast.Options:
        return ast.Options(_nodes(c), span=_whole(c))

    def defaults(self, c: list[Child]) -> ast.Options:
        return c[1]

    def block(self, c: list[Child]) -> ast.Block:
        return ast.Block(_nodes(c), span=_whole(c))

    # ---- statements

    def _define(self, c: list[Child]) -> ast.Define:
        return ast.Define(str(c[0]), _word(c[1]), c[3], span=_whole(c))

    param = let = _define

    def family(self, c: list[Child]) -> ast.NodeFamily:
        return ast.NodeFamily(_word(c[0]), _nodes(c), span=_whole(c))

    def nodes(self, c: list[Child]) -> ast.Nodes:
        return ast.Nodes(str(c[0]), _nodes(c), span=_whole(c))

    def link(self, c: list[Child]) -> ast.Link:
        return ast.Link(c[1], c[3], c[2] == "<->", _nodes(c[4:]), span=_whole(c))

    def iterator(self, c: list[Child]) -> ast.Loop:
        return ast.Loop(_word(c[0]), c[2], span=_whole(c))

    def for_in(self, c: list[Child]) -> ast.For:
        return ast.For(tuple(x for x in c if isinstance(x, ast.Loop)), c[-1], span=_whole(c))

    def if_else(self, c: list[Child]) -> ast.If:
        return ast.If(c[1], c[2], c[4], span=_whole(c))

    def at(self, c: list[Child]) -> ast.At:
        return ast.At(c[1], c[-1], span=_whole(c))

    def transfer(self, c: list[Child]) -> ast.Transfer:
        action, _, shard, _, part, _, parts, _, source, _, target, _ = c
        return ast.Transfer(str(action), shard, part, parts, source, target, span=_whole(c))

    # ---- declarations

    def include(self, c: list[Child]) -> ast.Include:
        return ast.Include(_string(c[1]), span=_whole(c))

    def topology_is(self, c: list[Child]) -> ast.TopologyIs:
        return ast.TopologyIs(_word(c[1]), c[3], _optional(c, ast.Options), span=_whole(c))

    def topology_of(self, c: list[Child]) -> ast.TopologyOf:
        body, defaults = _optional(c, ast.Block), _optional(c, ast.Options)
        return ast.TopologyOf(_word(c[1]), body, defaults, c[2] is defaults, span=_whole(c))

    def collective(self, c: list[Child]) -> ast.Collective:
        return ast.Collective(_word(c[1]), _word(c[3]), c[5], _optional(c, ast.Options), span=_whole(c))

    def schedule(self, c: list[Child]) -> ast.Schedule:
        options, steps = _optional(c, ast.Options), _optional(c, ast.Block)
        return ast.Schedule(_word(c[1]), _word(c[3]), options, steps, span=_whole(c))

    def emit(self, c: list[Child]) -> ast.Emit:
        return ast.Emit(_word(c[1]), _word(c[3]), _optional(c, ast.Options), span=_whole(c))

    def file(self, c: list[Child]) -> ast.File:
        span = _whole(c) if c else Span(CURRENT.get().source, 1, 1, 1, 1)
        return ast.File(_nodes(c), span=span)

    def expression(self, c: list[Child]) -> tuple[ast.Expr, ast.Options | None]:
        return c[0], _optional(c, ast.Options)
