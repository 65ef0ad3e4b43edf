"""The syntax tree of a ``.coll`` file. Comparison ignores spans, so ``parse(print(x)) == x``."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import attrs

from collc.ir.diagnostic import Span
from collc.ir.frozen import frozen

__all__ = [  # noqa: RUF022 (reading order)
    "Node", "Word",
    "Expr", "Number", "Quantity", "String", "Name", "Index", "Call", "Unary", "Binary", "Range", "SetOf", "Arrow",
    "Comprehension", "Clause",
    "Import", "Option", "Options", "Block",
    "Statement", "Define", "Function", "Procedure", "NodeFamily", "Nodes", "Link", "Loop", "For", "If", "At", "Invoke",
    "Transfer",
    "Declaration", "Include", "Imported", "TopologyIs", "TopologyOf", "Cluster", "Collective", "Kind", "Together",
    "Schedule", "Emit",
    "File",
]  # fmt: skip


@frozen(kw_only=True)
class Node:
    """Base of all nodes; ``span`` is the text from the node's first token to its last.

    ``height`` is a lower bound on the levels of nodes below; 0 if not counted.
    """

    span: Span | None = attrs.field(default=None, eq=False, repr=False)
    height: int = attrs.field(default=0, eq=False, repr=False)


@frozen
class Word(Node):
    """A name where the grammar expects one; kinds, schedulers, targets and options may contain ``-``."""

    text: str


# ---- expressions


@frozen
class Number(Node):
    """A number without a unit, exact."""

    value: Fraction


@frozen
class Quantity(Node):
    """A number with a unit, as in ``25 GB/s``."""

    value: Fraction
    unit: str  # as written


@frozen
class String(Node):
    """A text in double quotes, without them."""

    value: str


@frozen
class Name(Node):
    """A name of a parameter, a variable, a topology or a node."""

    name: str


@frozen
class Index(Node):
    """``NAME[I, J, ..]`` or ``"NAME"[I, J, ..]``: one node of a family."""

    name: str  # one node of a family: gpu[b, g]
    indices: tuple[Expr, ...]
    quoted: bool = False


@frozen
class Call(Node):
    """``NAME(ARGUMENT, ..)``: a graph family, an operator on topologies or a function of numbers."""

    name: str  # a graph family, an operator on topologies or a function of numbers
    arguments: tuple[Expr, ...]


@frozen
class Unary(Node):
    """``-X`` or ``not X``."""

    operator: str  # "-" or "not"
    operand: Expr


@frozen
class Binary(Node):
    """``X OPERATOR Y``: arithmetic, a comparison, ``and`` or ``or``."""

    operator: str
    left: Expr
    right: Expr


@frozen
class Range(Node):
    """``low..high``, without ``high``; ``low..high by stride`` has every stride-th of them."""

    low: Expr
    high: Expr
    stride: Expr | None = None


@frozen
class SetOf(Node):
    """``{X, Y, ..}``: items are integers, ranges, nodes or links of a topology; where a list stands, also sets."""

    items: tuple[Expr | Arrow, ...]


@frozen
class Arrow(Node):
    """``A -> B`` or ``A <-> B`` in a set: a link of a topology, or one of each direction."""

    tail: Expr
    head: Expr
    duplex: bool


@frozen
class Comprehension(Node):
    """``{ITEM for NAME in DOMAIN, .. if CONDITION ..}``: the item for each value; the last variable changes fastest."""

    item: Expr | Arrow
    clauses: tuple[Clause, ...]


@frozen
class Import(Node):
    """``import "PATH" as FORMAT``; without a format it is recognized by the file's content."""

    path: String
    format: Word | None = None


Expr: TypeAlias = (
    Number | Quantity | String | Name | Index | Call | Unary | Binary | Range | SetOf | Comprehension | Import
)


# ---- blocks


@frozen
class Option(Node):
    """``NAME: VALUE`` in the braces of options."""

    name: Word
    value: Expr | Word  # a Word where it contains "-"


@frozen
class Options(Node):
    """``{ NAME: VALUE, .. }``."""

    items: tuple[Option, ...]


@frozen
class Block(Node):
    """``{ STATEMENT .. }``."""

    statements: tuple[Statement, ...]


# ---- statements


@frozen
class Define(Node):
    """``param NAME = VALUE;``, which ``-D`` may override, or ``let NAME = VALUE;``, which it may not."""

    keyword: str
    name: Word
    value: Expr


@frozen
class Function(Node):
    """``function NAME(PARAMETER, ..) = VALUE;``."""

    name: Word
    parameters: tuple[Word, ...]
    value: Expr


@frozen
class Procedure(Node):
    """``define NAME(PARAMETER, ..) { .. }``: statements that ``call`` runs."""

    name: Word
    parameters: tuple[Word, ...]
    body: Block


@frozen
class NodeFamily(Node):
    """``NAME`` or ``NAME[SIZE, ..]`` in a declaration of ranks or switches; the name may stand in quotes."""

    name: Word
    shape: tuple[Expr, ...]  # empty for one node
    quoted: bool = False


@frozen
class Nodes(Node):
    """``rank FAMILY, ..;`` or ``switch FAMILY, .. [: POWER, ..];``."""

    kind: str  # "rank" or "switch"
    families: tuple[NodeFamily, ...]
    powers: tuple[Word, ...] = ()  # `multicast` and `reduces`


@frozen
class Link(Node):
    """``link A -> B: ATTRIBUTE, ..;``, or with ``<->`` if ``duplex``; attributes are a bandwidth and a latency."""

    left: Expr
    right: Expr
    duplex: bool
    attributes: tuple[Expr, ...]


@frozen
class Loop(Node):
    """``NAME in DOMAIN``: one variable of a ``for``."""

    name: Word
    domain: Expr


@frozen
class Clause(Node):
    """``for LOOP, ..`` or ``if CONDITION`` in a comprehension."""

    loops: tuple[Loop, ...]
    condition: Expr | None = None


@frozen
class For(Node):
    """``for LOOP, .. { .. }``; the last variable changes fastest."""

    loops: tuple[Loop, ...]
    body: Block


@frozen
class If(Node):
    """``if CONDITION { .. } else ..``; ``otherwise`` is a block, another ``if``, or absent."""

    condition: Expr
    then: Block
    otherwise: Block | If | None


@frozen
class At(Node):
    """``at STEP: TRANSFER``, ``at STEP: call ..`` or ``at STEP { .. }``: transfers of one step."""

    step: Expr
    body: Block | Transfer | Invoke


@frozen
class Invoke(Node):
    """``call NAME(ARGUMENT, ..);``."""

    name: Word
    arguments: tuple[Expr, ...]


@frozen
class Transfer(Node):
    """``ACTION shard SHARD [part PART of PARTS] from SOURCE to TARGET [into scratch PLACE] [{ OPTIONS }];``.

    ``shards`` and ``parts`` take several: a range or a set. The options place the transfer (``channel: 1``).
    """

    action: str  # "send" or "reduce"
    shard: Expr
    part: Expr | None
    parts: Expr | None
    source: Expr
    target: Expr
    several_shards: bool = False  # whether `shards` stands before them
    several_parts: bool = False  # whether `parts` does
    scratch: Expr | None = None
    options: Options | None = None


Statement: TypeAlias = "Define | Function | Procedure | Nodes | Link | For | If | At | Invoke | Transfer | Collective"


# ---- declarations


@frozen
class Include(Node):
    """``include "PATH";``."""

    path: String


@frozen
class Imported(Node):
    """``import "PATH" as NAME with FIGURES;``, which declares a topology."""

    path: String
    name: Word
    figures: Options | None


@frozen
class TopologyIs(Node):
    """``topology NAME = VALUE with DEFAULTS;``."""

    name: Word
    value: Expr
    defaults: Options | None


@frozen
class TopologyOf(Node):
    """``topology NAME BODY with DEFAULTS``; the defaults may also stand first."""

    name: Word
    body: Block
    defaults: Options | None
    defaults_first: bool = False


@frozen
class Cluster(Node):
    """``cluster NAME = MACHINE on FABRIC { OPTIONS };``, which declares a topology."""

    name: Word
    machine: Expr
    fabric: Expr
    options: Options | None


@frozen
class Collective(Node):
    """``collective NAME[INDEX, ..] = KIND on TOPOLOGY among MEMBERS { OPTIONS };``."""

    name: Word
    kind: Word
    topology: Expr
    options: Options | None
    members: Expr | None = None
    indices: tuple[Expr, ...] = ()


@frozen
class Kind(Node):
    """``collective NAME { pre: X post: Y }``: a kind of collective by the ranks that have and need each shard."""

    name: Word
    conditions: Options


@frozen
class Together(Node):
    """``together { .. }``: collectives that run at the same time, among ``let``, ``for`` and ``if``."""

    body: Block


@frozen
class Schedule(Node):
    """``schedule NAME using SCHEDULER { OPTIONS };``, or ``using steps with { OPTIONS } { .. }`` with its block in
    ``steps``.

    ``NAME[INDEX, ..]`` is one collective of a family, ``NAME`` are all of them.
    """

    name: Word
    scheduler: Word
    options: Options | None
    steps: Block | None  # the body of `using steps { ... }`
    indices: tuple[Expr, ...] = ()


@frozen
class Emit(Node):
    """``emit NAME as TARGET { OPTIONS };``, with indices as in a schedule."""

    name: Word
    target: Word
    options: Options | None
    indices: tuple[Expr, ...] = ()


Declaration: TypeAlias = (
    Define
    | Function
    | Procedure
    | Include
    | Imported
    | TopologyIs
    | TopologyOf
    | Cluster
    | Collective
    | Kind
    | Together
    | Schedule
    | Emit
)


@frozen
class File(Node):
    """All declarations of one text, in order."""

    declarations: tuple[Declaration, ...]
