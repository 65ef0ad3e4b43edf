"""Builds the tree: one method per rule of the grammar, with the rule's name.

Children are everything the rule matched: tokens (punctuation too), finished nodes, and None for an absent optional
part.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import attrs

from collc.ir.diagnostic import Diagnostic, Source, Span

from . import ast

__all__ = ["MAX_HEIGHT", "MAX_NAMES", "Builder", "Token", "TooDeep", "TooManyNames"]

#: The longest number in characters: no quantity of a network needs more.
_MAX_DIGITS = 30
#: The parser stops at a longer chain of operators; the tree of a shorter one may still be too deep.
MAX_HEIGHT = 1000
#: The parser stops at a topology with more names of ranks and switches; one name can stand for many nodes.
MAX_NAMES = 1 << 15

#: A terminal, its text, its offset, line and column. Plain tuples, since a text has millions; none leaves its line.
Token: TypeAlias = tuple[str, str, int, int, int]
Child: TypeAlias = Any  # Any: a token, a node or a list of those, by the rule that the method is for


class TooDeep(Exception):
    """Too many levels of nesting; the parser skips the declaration."""


class TooManyNames(Exception):
    """Too many names of ranks and switches in one topology; the parser skips it."""


def _nodes(children: list[Child]) -> tuple[Child, ...]:
    return tuple([child for child in children if type(child) is not tuple and child is not None])


def _height(nodes: tuple[Child, ...]) -> int:
    height = 0
    for node in nodes:
        if node.height > height:
            height = node.height
    return height + 1


def _optional(children: list[Child], kind: type) -> Child:
    return next((child for child in children if isinstance(child, kind)), None)


def _named(node: ast.Name | ast.Index) -> tuple[ast.Word, tuple[ast.Expr, ...]]:
    """Return the name of a collective and its indices."""
    return ast.Word(node.name, span=node.span), node.indices if isinstance(node, ast.Index) else ()


@lru_cache(4096)
def _number(text: str) -> Fraction:
    return Fraction(text)


class Builder:
    """The nodes of one text, and the mistakes in it that do not stop the parser."""

    def __init__(self, source: Source):
        self.source = source
        self.problems: list[Diagnostic] = []
        self.names = 0  # of ranks and switches in the topology at hand

    # ---- places

    def _span(self, children: list[Child]) -> Span:
        """Return the span from the first child, a token or node, to the last child that is not None."""
        first, last = children[0], children[-1]
        if last is None:
            last = next(child for child in reversed(children) if child is not None)
        if type(first) is tuple:
            _, _, _, line, column = first
        else:
            line, column = first.span.line, first.span.column
        if type(last) is tuple:
            _, text, _, end_line, end_column = last
            return Span(self.source, line, column, end_line, end_column + len(text))
        return Span(self.source, line, column, last.span.end_line, last.span.end_column)

    def _at(self, token: Token) -> Span:
        _, text, _, line, column = token
        return Span(self.source, line, column, line, column + len(text))

    def _word(self, token: Token) -> ast.Word:
        return ast.Word(token[1], span=self._at(token))

    def _string(self, token: Token) -> ast.String:
        return ast.String(token[1][1:-1], span=self._at(token))

    def _value(self, token: Token) -> Fraction:
        text = token[1]
        if len(text) > _MAX_DIGITS:
            found = f"found a number of {len(text)} characters, needed at most {_MAX_DIGITS}"
            hint = "use a larger unit, or `pow(10, 30)`"
            self.problems.append(Diagnostic("C0115", found, span=self._at(token), hint=hint))
            return Fraction(0)
        return _number(text)

    # ---- expressions

    def number(self, c: list[Child]) -> ast.Number:
        return ast.Number(self._value(c[0]), span=self._at(c[0]))

    def quantity(self, c: list[Child]) -> ast.Quantity:
        return ast.Quantity(self._value(c[0]), c[1][1], span=self._span(c))

    def string(self, c: list[Child]) -> ast.String:
        return self._string(c[0])

    def name(self, c: list[Child]) -> ast.Name:
        return ast.Name(c[0][1], span=self._at(c[0]))

    def call(self, c: list[Child]) -> ast.Call:
        nodes = _nodes(c)
        return ast.Call(c[0][1], nodes, span=self._span(c), height=_height(nodes))

    def index(self, c: list[Child]) -> ast.Index:
        nodes = _nodes(c)
        quoted = c[0][0] == "STRING"
        name = c[0][1][1:-1] if quoted else c[0][1]
        return ast.Index(name, nodes, quoted, span=self._span(c), height=_height(nodes))

    def set(self, c: list[Child]) -> ast.SetOf:
        nodes = _nodes(c)
        return ast.SetOf(nodes, span=self._span(c), height=_height(nodes))

    def comprehension(self, c: list[Child]) -> ast.Comprehension:
        item, *clauses = _nodes(c)
        return ast.Comprehension(item, tuple(clauses), span=self._span(c), height=_height((item, *clauses)))

    def looped(self, c: list[Child]) -> ast.Clause:
        nodes = _nodes(c)
        return ast.Clause(nodes, span=self._span(c), height=_height(nodes))

    def filtered(self, c: list[Child]) -> ast.Clause:
        return ast.Clause((), c[1], span=self._span(c), height=c[1].height + 1)

    def arrow(self, c: list[Child]) -> ast.Arrow:
        return ast.Arrow(c[0], c[2], c[1][1] == "<->", span=self._span(c), height=_height((c[0], c[2])))

    def paren(self, c: list[Child]) -> ast.Expr:
        inside: ast.Expr = c[1]
        return attrs.evolve(inside, span=self._span(c))

    def unary(self, c: list[Child]) -> ast.Unary:
        return ast.Unary(c[0][1], c[1], span=self._span(c), height=c[1].height + 1)

    def binary(self, c: list[Child]) -> ast.Binary:
        left, right = c[0], c[2]
        height = 1 + (left.height if left.height > right.height else right.height)
        if height > MAX_HEIGHT:
            raise TooDeep
        return ast.Binary(c[1][1], left, right, span=self._span(c), height=height)

    def span(self, c: list[Child]) -> ast.Range:
        return ast.Range(c[0], c[2], c[4], span=self._span(c), height=_height(_nodes(c)))

    def import_(self, c: list[Child]) -> ast.Import:
        format = self._word(c[3]) if c[3] is not None else None
        return ast.Import(self._string(c[1]), format, span=self._span(c), height=1)

    # ---- blocks

    def hyphenated(self, c: list[Child]) -> ast.Word:
        return self._word(c[0])

    def option(self, c: list[Child]) -> ast.Option:
        return ast.Option(self._word(c[0]), c[2], span=self._span(c), height=c[2].height + 1)

    def options(self, c: list[Child]) -> ast.Options:
        nodes = _nodes(c)
        return ast.Options(nodes, span=self._span(c), height=_height(nodes))

    def defaults(self, c: list[Child]) -> ast.Options:
        options: ast.Options = c[1]
        return options

    def block(self, c: list[Child]) -> ast.Block:
        nodes = _nodes(c)
        return ast.Block(nodes, span=self._span(c), height=_height(nodes))

    # ---- statements

    def _define(self, c: list[Child]) -> ast.Define:
        return ast.Define(c[0][1], self._word(c[1]), c[3], span=self._span(c), height=c[3].height + 1)

    param = let = _define

    def parameters(self, c: list[Child]) -> list[ast.Word]:
        return [self._word(child) for child in c if child is not None and child[0] == "NAME"]

    def function(self, c: list[Child]) -> ast.Function:
        return ast.Function(self._word(c[1]), tuple(c[2]), c[4], span=self._span(c), height=c[4].height + 1)

    def define(self, c: list[Child]) -> ast.Procedure:
        return ast.Procedure(self._word(c[1]), tuple(c[2]), c[3], span=self._span(c), height=c[3].height + 1)

    def invoke(self, c: list[Child]) -> ast.Invoke:
        nodes = _nodes(c)
        return ast.Invoke(self._word(c[1]), nodes, span=self._span(c), height=_height(nodes))

    def family(self, c: list[Child]) -> ast.NodeFamily:
        self.names += 1
        if self.names > MAX_NAMES:
            raise TooManyNames
        quoted = c[0][0] == "STRING"
        name = ast.Word(c[0][1][1:-1], span=self._at(c[0])) if quoted else self._word(c[0])
        if c[1] is None:
            return ast.NodeFamily(name, (), quoted, span=name.span, height=1)
        nodes = _nodes(c)
        return ast.NodeFamily(name, nodes, quoted, span=self._span(c), height=_height(nodes))

    def nodes(self, c: list[Child]) -> ast.Nodes:
        nodes = tuple([child for child in c if isinstance(child, ast.NodeFamily)])
        powers = tuple(c[-2]) if type(c[-2]) is list else ()
        return ast.Nodes(c[0][1], nodes, powers, span=self._span(c), height=_height(nodes))

    def powers(self, c: list[Child]) -> list[ast.Word]:
        return [self._word(child) for child in c if child[0] == "NAME"]

    def link(self, c: list[Child]) -> ast.Link:
        nodes = _nodes(c)
        return ast.Link(
            c[1], c[3], c[2][1] == "<->", nodes[2:], span=self._span(c), height=_height(nodes)
        )  # fmt: skip

    def iterator(self, c: list[Child]) -> ast.Loop:
        return ast.Loop(self._word(c[0]), c[2], span=self._span(c), height=c[2].height + 1)

    def for_in(self, c: list[Child]) -> ast.For:
        nodes = _nodes(c)
        return ast.For(nodes[:-1], nodes[-1], span=self._span(c), height=_height(nodes))

    def if_else(self, c: list[Child]) -> ast.If:
        return ast.If(c[1], c[2], c[4], span=self._span(c), height=_height(_nodes(c)))

    requests, for_requests, if_requests = block, for_in, if_else

    def at(self, c: list[Child]) -> ast.At:
        return ast.At(c[1], c[-1], span=self._span(c), height=_height((c[1], c[-1])))

    def transfer(self, c: list[Child]) -> ast.Transfer:
        action, noun, shard, cut, part, _, parts, _, source, _, target, _, _, place, options, _ = c
        return ast.Transfer(
            action[1], shard, part, parts, source, target, noun[0] == "SHARDS",
            cut is not None and cut[0] == "PARTS", place, options, span=self._span(c), height=_height(_nodes(c)),
        )  # fmt: skip

    # ---- declarations

    def include(self, c: list[Child]) -> ast.Include:
        return ast.Include(self._string(c[1]), span=self._span(c), height=1)

    def imported(self, c: list[Child]) -> ast.Imported:
        figures = _optional(c, ast.Options)
        return ast.Imported(
            self._string(c[1]), self._word(c[3]), figures, span=self._span(c), height=_height(_nodes(c))
        )  # fmt: skip

    def cluster(self, c: list[Child]) -> ast.Cluster:
        options = _optional(c, ast.Options)
        return ast.Cluster(self._word(c[1]), c[3], c[5], options, span=self._span(c), height=_height(_nodes(c)))

    def topology_is(self, c: list[Child]) -> ast.TopologyIs:
        defaults = _optional(c, ast.Options)
        return ast.TopologyIs(self._word(c[1]), c[3], defaults, span=self._span(c), height=_height(_nodes(c)))

    def topology_of(self, c: list[Child]) -> ast.TopologyOf:
        self.names = 0
        body, defaults = _optional(c, ast.Block), _optional(c, ast.Options)
        first = c[2] is defaults
        return ast.TopologyOf(
            self._word(c[1]), body, defaults, first, span=self._span(c), height=_height(_nodes(c))
        )  # fmt: skip

    def named(self, c: list[Child]) -> ast.Name | ast.Index:
        return self.name(c) if c[1] is None else self.index(c)

    def among(self, c: list[Child]) -> ast.Expr:
        members: ast.Expr = c[1]
        return members

    def collective(self, c: list[Child]) -> ast.Collective:
        (name, indices), kind, options = _named(c[1]), self._word(c[3]), _optional(c, ast.Options)
        return ast.Collective(
            name, kind, c[5], options, c[6], indices, span=self._span(c), height=_height(_nodes(c))
        )  # fmt: skip

    def kind(self, c: list[Child]) -> ast.Kind:
        return ast.Kind(self._word(c[1]), c[2], span=self._span(c), height=c[2].height + 1)

    condition, conditions = option, options

    def together(self, c: list[Child]) -> ast.Together:
        return ast.Together(c[1], span=self._span(c), height=c[1].height + 1)

    def schedule(self, c: list[Child]) -> ast.Schedule:
        (name, indices), scheduler = _named(c[1]), self._word(c[3])
        options, steps = _optional(c, ast.Options), _optional(c, ast.Block)
        return ast.Schedule(
            name, scheduler, options, steps, indices, span=self._span(c), height=_height(_nodes(c))
        )  # fmt: skip

    def emit(self, c: list[Child]) -> ast.Emit:
        (name, indices), options = _named(c[1]), _optional(c, ast.Options)
        return ast.Emit(
            name, self._word(c[3]), options, indices, span=self._span(c), height=_height(_nodes(c))
        )  # fmt: skip

    def file(self, c: list[Child]) -> ast.File:
        span = self._span(c) if c else Span(self.source, 1, 1, 1, 1)
        return ast.File(tuple(c), span=span)

    def expression(self, c: list[Child]) -> tuple[ast.Expr, ast.Options | None]:
        return c[0], _optional(c, ast.Options)
