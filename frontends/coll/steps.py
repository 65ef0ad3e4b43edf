"""``using steps { .. }``: transfers written by hand to a :class:`collc.ir.schedule.Schedule`, not yet verified."""

from __future__ import annotations

from array import array
from math import lcm
from typing import ClassVar

import numpy as np

from collc.ir.arrays import as_column, distinct
from collc.ir.collective import Collective
from collc.ir.diagnostic import Span, error
from collc.ir.schedule import Action, Schedule
from collc.ir.spec import Places
from collc.ir.topology import Topology

from . import ast
from .expressions import NODE, NUMBER, Compiler, Frame, Needs, Thunk, integer, past_hint
from .routing import Router
from .scope import NodeTable, Poison, Poisoned, Scope
from .statements import STEP, Body, Overrides, Runner
from .values import Switch, Value

__all__ = ["MAX_PARTS", "Steps"]

#: The most parts of a shard; a common denominator of many cuts grows fast.
MAX_PARTS = 2**20

_RANK: Needs = (*NODE, *NUMBER)
_COLUMNS = 7  # step, action, shard, part, parts, route, statement


class Steps(Body):
    """The body of a schedule for one collective."""

    noun: ClassVar[str] = "steps"
    hint: ClassVar[str] = "steps have `at`, `send`, `reduce`, `let`, `for` and `if`"

    def __init__(
        self, compiler: Compiler, scope: Scope, overrides: Overrides, owner: str, budget: int,
        topology: Topology, collective: Collective,
    ):  # fmt: skip
        super().__init__(compiler, scope, overrides, owner, budget)
        self.topology, self.collective = topology, collective
        self.router = Router(topology)
        self.rows = array("q")
        self.statements: list[Span | None] = []  # the places of the transfers, by number
        scope.nodes = NodeTable.of(topology)
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
        shard = compile_(node.shard, scope, NUMBER)
        source, target = (compile_(end, scope, _RANK) for end in (node.source, node.target))
        part_of = self._compiled_part(node, scope)
        action = int(Action.REDUCE if node.action == "reduce" else Action.COPY)
        ranks, shards = self.collective.num_ranks, self.collective.num_shards
        rows, route, number = self.rows, self.router.route, len(self.statements)
        self.statements.append(node.span)

        def run(frame: Frame) -> None:
            k, a, b = shard(frame), source(frame), target(frame)
            if type(k) is not int or not 0 <= k < shards:
                k = self._shard(k, node.shard)
            if type(a) is not int or not 0 <= a < ranks:
                a = self._rank(a, node.source)
            if type(b) is not int or not 0 <= b < ranks:
                b = self._rank(b, node.target)
            if a == b:
                name = self.topology.names[a]
                hint = "leave it out: a rank has its own data (in a loop: `if a != b { .. }`)"
                raise error("C0161", f"found a transfer from rank {name} to itself", span=node.span, hint=hint)
            part, parts = (0, 1) if part_of is None else self._cut(part_of, frame, node)
            rows.extend((frame[STEP], action, k, part, parts, route(frame[STEP], a, b, parts), number))

        return run

    # ---- checking

    def _compiled_part(self, node: ast.Transfer, scope: Scope) -> tuple[Thunk, Thunk] | None:
        if node.part is None or node.parts is None:
            return None
        compile_ = self.compiler.compile
        return compile_(node.part, scope, NUMBER), compile_(node.parts, scope, NUMBER)

    def _cut(self, part_of: tuple[Thunk, Thunk], frame: Frame, node: ast.Transfer) -> tuple[int, int]:
        assert node.part is not None and node.parts is not None
        parts = integer(part_of[1](frame), node.parts.span, "a number of parts")
        if not 1 <= parts <= MAX_PARTS:
            hint = "write `part I of PARTS`, with at least one part" if parts < 1 else "cut into fewer parts"
            raise error("C0162", f"found {parts} parts, needed 1 to {MAX_PARTS}", span=node.parts.span, hint=hint)
        part = integer(part_of[0](frame), node.part.span, "the number of a part")
        if not 0 <= part < parts:
            hint = past_hint(node.part, part, parts)
            message = f"found part {part} of {parts}: parts are 0 to {parts - 1}"
            raise error("C0135", message, span=node.part.span, hint=hint)
        return part, parts

    def _shard(self, value: Value | Poison, node: ast.Expr) -> int:
        span = node.span
        shard, last = integer(value, span, "the number of a shard"), self.collective.num_shards - 1
        note = ["an alltoall has shard s * N + t from rank s to rank t"] if self.collective.kind == "alltoall" else []
        if not 0 <= shard <= last:
            hint = past_hint(node, shard, last + 1)
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
        table = table[np.argsort(table[:, 0], kind="stable")]
        _, step = np.unique(table[:, 0], return_inverse=True)
        scale = parts // np.maximum(table[:, 4], 1)
        schedule = Schedule(
            self.topology, self.collective, parts, step=step, action=table[:, 1], shard=table[:, 2],
            lo=table[:, 3] * scale, hi=(table[:, 3] + 1) * scale, route=table[:, 5], routes=self.router.routes,
        )  # fmt: skip
        return schedule, Places(tuple(self.statements), as_column(table[:, 6]), as_column(table[:, 0]))


def _common(cuts: list[int], span: Span | None) -> int:
    """Return the least common multiple of the numbers of parts."""
    parts = 1
    for cut in cuts:
        parts = lcm(parts, cut)
        if parts > MAX_PARTS:
            message = f"shards are cut in {cut} and other numbers of parts: more than {MAX_PARTS} equal parts together"
            raise error("C0162", message, span=span, hint="cut into numbers of parts that divide each other")
    return parts
