"""``using steps { .. }``: transfers written by hand to a :class:`collc.ir.schedule.Schedule`, not yet verified."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import lcm
from typing import ClassVar

import numpy as np

from collc.ir.arrays import Array, as_column, distinct
from collc.ir.collective import Collective
from collc.ir.diagnostic import Span, error
from collc.ir.placement import UNPLACED, Placement
from collc.ir.schedule import Action, Schedule
from collc.ir.spec import Places
from collc.ir.topology import Topology

from . import ast, placing
from .blocks import Blocks
from .expressions import NODE, NUMBER, Compiler, Frame, Needs, integer, members, past_hint
from .printer import expression_text
from .routing import Router
from .scope import NodeTable, Poison, Poisoned, Scope
from .statements import STEP, Body, Overrides, Runner
from .values import Integers, Switch, Value, kind_of

__all__ = ["MAX_PARTS", "Steps"]

#: The most parts of a shard; a common denominator of many cuts grows fast.
MAX_PARTS = 2**20

_RANK: Needs = (*NODE, *NUMBER)
_COLUMNS = 7  # step, action, shard, part, parts, route, statement


class Steps(Body):
    """The body of a schedule for one collective."""

    noun: ClassVar[str] = "steps"
    hint: ClassVar[str] = "steps have `at`, `send`, `reduce`, `let`, `for`, `if`, `function`, `define` and `call`"

    def __init__(
        self, compiler: Compiler, scope: Scope, overrides: Overrides, owner: str, budget: int,
        topology: Topology, collective: Collective,
    ):  # fmt: skip
        super().__init__(compiler, scope, overrides, owner, budget)
        self.topology, self.collective = topology, collective
        self.router = Router(topology)
        self.rows = array("q")
        self.placed = array("q")  # row, channel, threadblock of the sender, of the receiver, place in scratch
        self.statements: list[Span | None] = []  # the places of the transfers, by number
        scope.nodes = NodeTable.of(topology)
        self.blocks = Blocks(self)
        self.inside_at = False  # whether an `at` is being compiled

    def leaf(self, node: ast.Statement, scope: Scope, top: bool) -> Runner:
        match node:
            case ast.At():
                return self._at(node, scope)
            case ast.Transfer():
                if not self.inside_at:
                    hint = f"write `at STEP: {node.action} ..`"
                    raise error("C0143", f"found `{node.action}` without a step", span=node.span, hint=hint)
                return self._transfer(node, scope)
            case ast.Procedure():
                self.blocks.declare(node, scope, top)
                return _nothing
            case ast.Invoke():
                return self.blocks.invoke(node, scope)
            case ast.Nodes():
                raise self.misplaced(f"`{node.kind}`", node.span)
        raise self.misplaced("`link`", node.span)

    def _define(self, node: ast.Define, scope: Scope, top: bool) -> Runner:
        if node.keyword == "param":
            raise self.misplaced("`param`", node.span)
        return super()._define(node, scope, top)

    def _at(self, node: ast.At, scope: Scope) -> Runner:
        if self.inside_at:
            raise error("C0143", "found `at` inside `at`", span=node.span, hint="close the block before it")
        thunk, span = self.compiler.compile(node.step, scope, NUMBER), node.step.span
        self.inside_at = True
        try:
            if isinstance(node.body, ast.Block):
                body = self.block(node.body, scope.child())
            else:
                body = self._compile(node.body, scope)
        finally:
            self.inside_at = False

        def run(frame: Frame) -> None:
            value = thunk(frame)
            if isinstance(value, range):
                hint = f"write a loop: `for s in {value.start}..{value.stop} {{ at s: .. }}`"
                raise error("C0132", "found a range, needed a step", span=span, hint=hint)
            step = integer(value, span, "a step")
            if not 0 <= step < 2**62:
                hint = "steps count from 0: add to the number, or begin the range later"
                raise error("C0134", f"found step {step}, needed one from 0", span=span, hint=hint)
            frame[STEP] = step
            body(frame)

        return run

    def _transfer(self, node: ast.Transfer, scope: Scope) -> Runner:
        compile_ = self.compiler.compile
        shard = self._shards(node, scope)
        source, target = (compile_(end, scope, _RANK) for end in (node.source, node.target))
        cuts, place = self._cuts(node, scope), placing.compiled(node, scope, self)
        if node.scratch is not None and self.collective.weights is not None:
            message = "found a place in scratch for shards that differ in size"
            raise error("C0163", message, span=node.scratch.span, hint="leave it out: collc places them")
        action = int(Action.REDUCE if node.action == "reduce" else Action.COPY)
        ranks = self.collective.num_ranks
        rows, route, number = self.rows, self.router.route, len(self.statements)
        self.statements.append(node.span)

        def run(frame: Frame) -> None:
            several, a, b = shard(frame), source(frame), target(frame)
            if type(a) is not int or not 0 <= a < ranks:
                a = self._rank(a, node.source)
            if type(b) is not int or not 0 <= b < ranks:
                b = self._rank(b, node.target)
            if a == b:
                name = self.topology.names[a]
                hint = "leave it out: a rank has its own data (in a loop: `if a != b { .. }`)"
                raise error("C0161", f"found a transfer from rank {name} to itself", span=node.span, hint=hint)
            step, pieces = frame[STEP], cuts(frame)
            if len(several) * len(pieces) > 1:
                self.spend(len(several) * len(pieces), node.span)
            if place is not None:
                self._place(place(frame), len(several), len(pieces))
            for k in several:
                for part, parts in pieces:
                    rows.extend((step, action, k, part, parts, route(step, a, b, parts), number))

        return run

    def _place(self, chosen: placing.Chosen, shards: int, pieces: int) -> None:
        """Note where the rows to come are placed: several shards take successive places in scratch."""
        channel, sender, receiver, scratch = chosen
        row = len(self.rows) // _COLUMNS
        for k in range(shards * pieces):
            at = scratch if scratch == UNPLACED else scratch + k // pieces
            self.placed.extend((row + k, channel, sender, receiver, at))

    # ---- checking

    def _shards(self, node: ast.Transfer, scope: Scope) -> Callable[[Frame], Sequence[int]]:
        """Return the function that gives the shards of a transfer."""
        thunk, shards = self.compiler.compile(node.shard, scope, NUMBER), self.collective.num_shards
        if node.several_shards:
            return lambda frame: [self._shard(k, node) for k in self._several(thunk(frame), node.shard, "shard")]

        def one(frame: Frame) -> tuple[int]:
            k = thunk(frame)
            return (k if type(k) is int and 0 <= k < shards else self._shard(k, node),)

        return one

    def _several(self, value: Value | Poison, node: ast.Expr, noun: str) -> Sequence[Value]:
        """Return the numbers of several shards or parts; a single number is one of them."""
        if isinstance(value, int | Fraction):
            return (value,)
        if isinstance(value, Poison | range | Integers):
            return members(value, node.span)
        hint = f"write `{noun}s LOW..HIGH` or `{noun}s {{A, B}}`"
        raise error("C0131", f"found {kind_of(value)}, needed {noun}s", span=node.span, hint=hint)

    def _cuts(self, node: ast.Transfer, scope: Scope) -> Callable[[Frame], Sequence[tuple[int, int]]]:
        """Return the function that gives the parts of a transfer: (part, of how many)."""
        if node.part is None or node.parts is None:
            return lambda frame: ((0, 1),)
        part, parts = (self.compiler.compile(one, scope, NUMBER) for one in (node.part, node.parts))
        noun, several, total = node.part, node.several_parts, node.parts

        def run(frame: Frame) -> Sequence[tuple[int, int]]:
            count = self._count(parts(frame), total)
            value = part(frame)
            chosen = self._several(value, noun, "part") if several else (value,)
            return [(self._part(one, noun, count, several), count) for one in chosen]

        return run

    def _count(self, value: Value | Poison, node: ast.Expr) -> int:
        parts = integer(value, node.span, "a number of parts")
        if not 1 <= parts <= MAX_PARTS:
            hint = "write `part I of PARTS`, with at least one part" if parts < 1 else "cut into fewer parts"
            raise error("C0162", f"found {parts} parts, needed 1 to {MAX_PARTS}", span=node.span, hint=hint)
        return parts

    def _part(self, value: Value | Poison, node: ast.Expr, parts: int, several: bool) -> int:
        if not several:
            _require_one(value, node, "part")
        part = integer(value, node.span, "the number of a part")
        if not 0 <= part < parts:
            hint = _past_hint(node, part, parts, several)
            message = f"found part {part} of {parts}: parts are 0 to {parts - 1}"
            raise error("C0135", message, span=node.span, hint=hint)
        return part

    def _shard(self, value: Value | Poison, node: ast.Transfer) -> int:
        span = node.shard.span
        if not node.several_shards:
            _require_one(value, node.shard, "shard")
        shard, last = integer(value, span, "the number of a shard"), self.collective.num_shards - 1
        note = ["an alltoall has shard s * N + t from rank s to rank t"] if self.collective.kind == "alltoall" else []
        if not 0 <= shard <= last:
            hint = _past_hint(node.shard, shard, last + 1, node.several_shards)
            raise error("C0135", f"found shard {shard}: shards are 0 to {last}", span=span, notes=note, hint=hint)
        return shard

    def _rank(self, value: Value | Poison, node: ast.Expr) -> int:
        span = node.span
        if isinstance(value, str) and self.topology.node_names:
            value = self.scope.node_named(value, span)
        if isinstance(value, Switch):
            name = self.topology.names[self.topology.num_ranks + value.number]
            hint = "name the ranks at both ends; collc finds the route through switches"
            raise error("C0131", f"found the switch `{name}`, needed a rank", span=span, hint=hint)
        rank, last = integer(value, span, "a rank"), self.collective.num_ranks - 1
        if not 0 <= rank <= last:
            hint = past_hint(node, rank, last + 1)
            raise error("C0135", f"found rank {rank}: ranks are 0 to {last}", span=span, hint=hint)
        return rank

    # ---- the whole

    def schedule(self, span: Span | None) -> tuple[Schedule, Places]:
        """Return the schedule: transfers by step, steps numbered from 0 without gaps, parts of one size. Return
        the places of its rows too.

        Raises C0162 if the parts have no common size within the limit, Poisoned if the body has mistakes.
        """
        if self.damaged:
            raise Poisoned
        table = (
            np.frombuffer(self.rows, dtype=np.int64).reshape(-1, _COLUMNS)
            if self.rows
            else np.zeros((0, _COLUMNS), int)
        )
        parts = _common(distinct(table[:, 4]).tolist(), span)
        order = np.argsort(table[:, 0], kind="stable")
        table, placement = table[order], self._placement(len(table), order)
        _, step = np.unique(table[:, 0], return_inverse=True)
        scale = parts // np.maximum(table[:, 4], 1)
        schedule = Schedule(
            self.topology, self.collective, parts, step=step, action=table[:, 1], shard=table[:, 2],
            lo=table[:, 3] * scale, hi=(table[:, 3] + 1) * scale, route=table[:, 5], routes=self.router.routes,
            placement=placement,
        )  # fmt: skip
        return schedule, Places(tuple(self.statements), as_column(table[:, 6]), as_column(table[:, 0]))

    def _placement(self, count: int, order: Array) -> Placement | None:
        """Return where the rows are placed, in their final order; None if all is left to collc."""
        if not self.placed:
            return None
        columns = np.full((count, 4), UNPLACED, dtype=np.int64)
        given = np.frombuffer(self.placed, dtype=np.int64).reshape(-1, 5)
        columns[given[:, 0]] = given[:, 1:]
        return Placement.of(columns[order])


def _nothing(frame: Frame) -> None:
    pass


def _require_one(value: Value | Poison, node: ast.Expr, noun: str) -> None:
    """Raise C0132 for several shards or parts after the word for one."""
    if isinstance(value, range | Integers):
        message = f"found {kind_of(value)}, needed the number of a {noun}"
        raise error("C0132", message, span=node.span, hint=f"write `{noun}s {expression_text(node)}`")


def _past_hint(node: ast.Expr, number: int, count: int, several: bool) -> str | None:
    if several and isinstance(node, ast.Range):
        return f"the last is {count - 1}: a range `a..b` goes up to b, without b"
    return past_hint(node, number, count)


def _common(cuts: list[int], span: Span | None) -> int:
    """Return the least common multiple of the numbers of parts."""
    parts = 1
    for cut in cuts:
        parts = lcm(parts, cut)
        if parts > MAX_PARTS:
            message = f"shards are cut in {cut} and other numbers of parts: more than {MAX_PARTS} equal parts together"
            raise error("C0162", message, span=span, hint="cut into numbers of parts that divide each other")
    return parts
