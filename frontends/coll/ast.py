"""The tree of a ``.coll`` file on one screen. Spans are not compared, so ``parse(print(x)) == x``."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import attrs

from collc.ir.diagnostic import Span

__all__ = [  # noqa: RUF022 (reading order)
    "Node", "Word",
    "Expr", "Number", "Quantity", "String", "Name", "Index", "Call", "Unary", "Binary", "Range", "SetOf",
    "Import", "Option", "Options", "Block",
    "Statement", "Define", "NodeFamily", "Nodes", "Link", "Loop", "For", "If", "At", "Transfer",
    "Declaration", "Include", "TopologyIs", "TopologyOf", "Collective", "Schedule", "Emit", "File",
]  # fmt: skip


@attrs.frozen(kw_only=True)
class Node:
    """Base of all nodes; ``span`` is the text from the node's first token to its last.

    ``height`` says how many levels of nodes are below, at least; 0 where nobody counted.
    """

    span: Span | None = attrs.field(default=None, eq=False, repr=False)
    height: int = attrs.field(default=0, eq=False, repr=False)


@attrs.frozen
class Word(Node):
    """A name where the grammar expects one; kinds, schedulers, targets and options may contain ``-``."""

    text: str


# ---- expressions


@attrs.frozen
class Number(Node):
    value: Fraction


@attrs.frozen
class Quantity(Node):
    value: Fraction
    unit: str  # as written


@attrs.frozen
class String(Node):
    value: str


@attrs.frozen
class Name(Node):
    name: str


@attrs.frozen
class Index(Node):
    name: str  # one node of a family: gpu[b, g]
    indices: tuple[Expr, ...]


@attrs.frozen
class Call(Node):
    name: str  # a graph family, an operator on topologies or a function of numbers
    arguments: tuple[Expr, ...]


@attrs.frozen
class Unary(Node):
    operator: str  # "-" or "not"
    operand: Expr


@attrs.frozen
class Binary(Node):
    operator: str
    left: Expr
    right: Expr


@attrs.frozen
class Range(Node):
    """``low..high``, without ``high``."""

    low: Expr
    high: Expr


@attrs.frozen
class SetOf(Node):
    items: tuple[Expr, ...]


@attrs.frozen
class Import(Node):
    path: String
    format: Word


Expr: TypeAlias = Number | Quantity | String | Name | Index | Call | Unary | Binary | Range | SetOf | Import


# ---- blocks


@attrs.frozen
class Option(Node):
    name: Word
    value: Expr | Word  # a Word where it contains "-"


@attrs.frozen
class Options(Node):
    items: tuple[Option, ...]


@attrs.frozen
class Block(Node):
    statements: tuple[Statement, ...]


# ---- statements


@attrs.frozen
class Define(Node):
    """``param NAME = VALUE;``, which ``-D`` may override, or ``let NAME = VALUE;``, which it may not."""

    keyword: str
    name: Word
    value: Expr


@attrs.frozen
class NodeFamily(Node):
    name: Word
    shape: tuple[Expr, ...]  # empty for one node


@attrs.frozen
class Nodes(Node):
    kind: str  # "rank" or "switch"
    families: tuple[NodeFamily, ...]


@attrs.frozen
class Link(Node):
    left: Expr
    right: Expr
    duplex: bool
    attributes: tuple[Expr, ...]


@attrs.frozen
class Loop(Node):
    name: Word
    domain: Expr


@attrs.frozen
class For(Node):
    loops: tuple[Loop, ...]
    body: Block


@attrs.frozen
class If(Node):
    condition: Expr
    then: Block
    otherwise: Block | If | None


@attrs.frozen
class At(Node):
    step: Expr
    body: Block | Transfer


@attrs.frozen
class Transfer(Node):
    """``ACTION shard SHARD [part PART of PARTS] from SOURCE to TARGET;``."""

    action: str  # "send" or "reduce"
    shard: Expr
    part: Expr | None
    parts: Expr | None
    source: Expr
    target: Expr


Statement: TypeAlias = Define | Nodes | Link | For | If | At | Transfer


# ---- declarations


@attrs.frozen
class Include(Node):
    path: String


@attrs.frozen
class TopologyIs(Node):
    name: Word
    value: Expr
    defaults: Options | None


@attrs.frozen
class TopologyOf(Node):
    """``topology NAME BODY with DEFAULTS``; the defaults may also stand first."""

    name: Word
    body: Block
    defaults: Options | None
    defaults_first: bool = False


@attrs.frozen
class Collective(Node):
    name: Word
    kind: Word
    topology: Expr
    options: Options | None


@attrs.frozen
class Schedule(Node):
    name: Word
    scheduler: Word
    options: Options | None
    steps: Block | None  # the body of `using steps { ... }`


@attrs.frozen
class Emit(Node):
    name: Word
    target: Word
    options: Options | None


Declaration: TypeAlias = Define | Include | TopologyIs | TopologyOf | Collective | Schedule | Emit


@attrs.frozen
class File(Node):
    declarations: tuple[Declaration, ...]
