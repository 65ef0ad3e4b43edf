"""An outline for calls of one size: messages and moves with their ranges of elements.

Buffers are the call's input, its output and scratch. The fourth, ``OWN``, is the own memory of messages. A received
message has its place there from its post to its last use, a sent one from its packing to the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TypeAlias

import attrs

from collc.ir.program import Buffer

from .columns import Action, Columns, columns
from .moves import Kind, Message, Move, Outline, Place, ProgramLayout, outline

__all__ = ["OWN", "Action", "Plan", "Planner"]

OWN = 3

#: (buffer, first element, end)
Span: TypeAlias = tuple[int, int, int]

#: number of sizes whose plans are kept
_SIZES = 64


@attrs.frozen(eq=False)
class Plan:
    """The ``actions`` of a rank in one call, in order; ``scratch`` and ``own`` are memory in elements."""

    actions: tuple[Action, ...]
    scratch: int
    own: int

    @cached_property
    def columns(self) -> Columns:
        """The actions as the engine reads them."""
        return columns(self.actions)


class Planner:
    """The plans of one rank for one program."""

    def __init__(self, layout: ProgramLayout, rank: int):
        self.layout, self.rank = layout, rank
        self.outlines: dict[bool, Outline] = {}
        self.plan = lru_cache(_SIZES)(self._plan)

    def _plan(self, elements: int, packed: bool) -> Plan:
        """Return the plan for a number of elements (of the whole vector, or of one rank's block)."""
        if packed not in self.outlines:
            self.outlines[packed] = outline(self.layout, self.rank, packed)
        return _Binding(self.layout, self.rank, self.outlines[packed], elements).plan()


class _Binding:
    def __init__(self, layout: ProgramLayout, rank: int, outline_of_rank: Outline, elements: int):
        self.layout, self.outline, self.elements = layout, outline_of_rank, elements
        self.cells, self.scratch = _cells(layout, rank, elements)
        self.sizes = [[self._size(part) for part in m.parts] for m in outline_of_rank.messages]
        self.base, self.own = self._own()

    def plan(self) -> Plan:
        actions = [action for move in self.outline.moves for action in self._actions(move)]
        return Plan(tuple(_joined(actions)), self.scratch, self.own)

    # ---- places

    def _span(self, place: Place) -> Span:
        buffer, first, end = place
        if buffer < 0:
            m = -1 - buffer
            low = self.base[m] + sum(self.sizes[m][:first])
            return OWN, low, low + self.sizes[m][first]
        if buffer == Buffer.SCRATCH:
            return buffer, self.cells[first], self.cells[end]
        return buffer, position(self.layout.span, self.elements, first), position(self.layout.span, self.elements, end)

    def _size(self, place: Place) -> int:
        _, low, high = self._span(place)
        return high - low

    def _message(self, m: int) -> Span:
        one = self.outline.messages[m]
        size = sum(self.sizes[m])
        if not one.direct:
            return OWN, self.base[m], self.base[m] + size
        buffer, low, _ = self._span(one.parts[0])
        return buffer, low, low + size

    def _own(self) -> tuple[dict[int, int], int]:
        """Return the begin of each message's own memory, and the size of all, in elements."""
        base: dict[int, int] = {}
        live: dict[int, tuple[int, int]] = {}
        top = 0
        lives = _last_uses(self.outline)
        for at, move in enumerate(self.outline.moves):
            for m in _used(move):
                one = self.outline.messages[m]
                if m not in base and not one.direct:
                    live = {k: held for k, held in live.items() if lives[k] >= at}
                    base[m] = _first_gap(sorted(live.values()), sum(self.sizes[m]))
                    live[m] = base[m], base[m] + sum(self.sizes[m])
                    top = max(top, live[m][1])
        return base, top

    # ---- actions

    def _actions(self, move: Move) -> Iterator[Action]:
        if move.message >= 0:
            if sum(self.sizes[move.message]):
                one: Message = self.outline.messages[move.message]
                yield move.kind, one.peer, one.number, move.message, self._message(move.message)
        else:
            to, first = self._span(move.to), self._span(move.one)
            if to[1] < to[2] and not (move.kind is Kind.COPY and to == first):
                other = self._span(move.other) if move.kind is Kind.COMBINE else first
                yield move.kind, to, first, other


def position(span: int, elements: int, chunk: int) -> int:
    """Return the element at which a chunk of a buffer begins."""
    block, nth = divmod(chunk, span)
    return block * elements + nth * elements // span


def _cells(layout: ProgramLayout, rank: int, elements: int) -> tuple[list[int], int]:
    """Return the element at which each cell of a rank's scratch begins, and the end of the last."""
    segments = layout.segments
    first, end = segments.first[rank : rank + 2].tolist()
    total = int(segments.cells[rank])
    begins = [*segments.cell[first:end].tolist(), total]
    cells: list[int] = []
    at = 0
    for k, chunk in enumerate(segments.chunk[first:end].tolist()):
        zero = position(layout.span, elements, chunk)
        count = begins[k + 1] - begins[k]
        cells += [at + position(layout.span, elements, chunk + i) - zero for i in range(count)]
        at += position(layout.span, elements, chunk + count) - zero
    return [*cells, at], at


def _used(move: Move) -> list[int]:
    """Return the messages whose own memory a move may use."""
    places = (move.to, move.one, move.other)
    return [move.message] * (move.message >= 0) + [-1 - buffer for buffer, _, _ in places if buffer < 0]


def _last_uses(outline_of_rank: Outline) -> dict[int, int]:
    """Return the last move that uses each message's own memory; a send uses it until its end."""
    return {m: at for at, move in enumerate(outline_of_rank.moves) for m in _used(move)}


def _first_gap(held: list[tuple[int, int]], size: int) -> int:
    """Return the first gap of ``size`` elements between the ranges of ``held`` (sorted)."""
    at = 0
    for low, high in held:
        if low - at >= size:
            return at
        at = max(at, high)
    return at


def _joined(actions: list[Action]) -> Iterator[Action]:
    """Yield actions; join successive ones that are adjacent in memory."""
    last: Action | None = None
    for action in actions:
        if last is not None and action[0] == last[0] and action[0] >= Kind.COPY and _follows(last, action):
            last = (action[0], *((a[0], a[1], b[2]) for a, b in zip(last[1:], action[1:], strict=True)))
            continue
        if last is not None:
            yield last
        last = action
    if last is not None:
        yield last


def _follows(last: Action, action: Action) -> bool:
    """Whether an action continues the one before in all places, and reads nothing that it wrote."""
    runs = list(zip(last[1:], action[1:], strict=True))
    if not all(a[0] == b[0] and a[2] == b[1] for a, b in runs):
        return False
    to = last[1]
    return not any(b[0] == to[0] and b[1] < to[2] and to[1] < b[2] for _, b in runs[1:])
