"""An outline for calls of one size: messages and moves with the elements they are about.

Buffers are the call's input, its output and scratch. What messages need besides lies in a fourth, ``OWN``: what arrives
has its place from when it is posted until it is used, what leaves from when it is put together until the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import attrs

from collc.ir.program import Buffer

from .moves import Kind, Laid, Message, Move, Outline, Place, outline

__all__ = ["OWN", "Act", "Plan", "Planner"]

OWN = 3

#: (buffer, first element, end)
Span: TypeAlias = tuple[int, int, int]
#: (kind, peer, number, message, span): something about a message; (kind, to, one, other): something done here
Act: TypeAlias = tuple[Any, ...]

#: calls whose sizes are remembered
_SIZES = 64


@attrs.frozen
class Plan:
    """What a rank does in one call: ``acts`` in order, and how many elements of ``scratch`` and ``own`` it needs."""

    acts: tuple[Act, ...]
    scratch: int
    own: int


class Planner:
    """The plans of one rank for one program."""

    def __init__(self, laid: Laid, rank: int):
        self.laid, self.rank = laid, rank
        self.outlines: dict[bool, Outline] = {}
        self.plan = lru_cache(_SIZES)(self._plan)

    def _plan(self, elements: int, packed: bool) -> Plan:
        """Return the plan for so many elements (of the whole vector, or of one rank's block)."""
        if packed not in self.outlines:
            self.outlines[packed] = outline(self.laid, self.rank, packed)
        return _Binding(self.laid, self.rank, self.outlines[packed], elements).plan()


class _Binding:
    def __init__(self, laid: Laid, rank: int, outlined: Outline, elements: int):
        self.laid, self.outline, self.elements = laid, outlined, elements
        self.cells, self.scratch = _cells(laid, rank, elements)
        self.sizes = [[self._size(part) for part in m.parts] for m in outlined.messages]
        self.base, self.own = self._own()

    def plan(self) -> Plan:
        acts = [act for move in self.outline.moves for act in self._act(move)]
        return Plan(tuple(_joined(acts)), self.scratch, self.own)

    # ---- where things are

    def _span(self, place: Place) -> Span:
        buffer, first, end = place
        if buffer < 0:
            m = -1 - buffer
            low = self.base[m] + sum(self.sizes[m][:first])
            return OWN, low, low + self.sizes[m][first]
        if buffer == Buffer.SCRATCH:
            return buffer, self.cells[first], self.cells[end]
        return buffer, position(self.laid.span, self.elements, first), position(self.laid.span, self.elements, end)

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
        """Return where each message's own memory begins, and how much there is."""
        base: dict[int, int] = {}
        live: dict[int, tuple[int, int]] = {}
        top = 0
        lives = _lives(self.outline)
        for at, move in enumerate(self.outline.moves):
            for m in _used(move):
                one = self.outline.messages[m]
                if m not in base and not one.direct:
                    live = {k: held for k, held in live.items() if lives[k] >= at}
                    base[m] = _room(sorted(live.values()), sum(self.sizes[m]))
                    live[m] = base[m], base[m] + sum(self.sizes[m])
                    top = max(top, live[m][1])
        return base, top

    # ---- what is done

    def _act(self, move: Move) -> Iterator[Act]:
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


def _cells(laid: Laid, rank: int, elements: int) -> tuple[list[int], int]:
    """Return the element at which each cell of a rank's scratch begins, and the end of the last."""
    segments = laid.segments
    first, end = segments.first[rank : rank + 2].tolist()
    total = int(segments.cells[rank])
    begins = [*segments.cell[first:end].tolist(), total]
    cells: list[int] = []
    at = 0
    for k, chunk in enumerate(segments.chunk[first:end].tolist()):
        zero = position(laid.span, elements, chunk)
        count = begins[k + 1] - begins[k]
        cells += [at + position(laid.span, elements, chunk + i) - zero for i in range(count)]
        at += position(laid.span, elements, chunk + count) - zero
    return [*cells, at], at


def _used(move: Move) -> list[int]:
    """Return the messages whose own memory a move may use."""
    places = (move.to, move.one, move.other)
    return [move.message] * (move.message >= 0) + [-1 - buffer for buffer, _, _ in places if buffer < 0]


def _lives(outlined: Outline) -> dict[int, int]:
    """Return the last move that uses each message's own memory; a send's is used until its end."""
    return {m: at for at, move in enumerate(outlined.moves) for m in _used(move)}


def _room(held: list[tuple[int, int]], size: int) -> int:
    """Return the first place where so many elements fit between what is held (sorted)."""
    at = 0
    for low, high in held:
        if low - at >= size:
            return at
        at = max(at, high)
    return at


def _joined(acts: list[Act]) -> Iterator[Act]:
    """Yield acts, those that follow each other here and in memory as one."""
    last: Act | None = None
    for act in acts:
        if last is not None and act[0] == last[0] and act[0] >= Kind.COPY and _follows(last, act):
            last = (act[0], *((a[0], a[1], b[2]) for a, b in zip(last[1:], act[1:], strict=True)))
            continue
        if last is not None:
            yield last
        last = act
    if last is not None:
        yield last


def _follows(last: Act, act: Act) -> bool:
    """Whether all places of an act continue those of the one before, and nothing it reads was written there."""
    runs = list(zip(last[1:], act[1:], strict=True))
    if not all(a[0] == b[0] and a[2] == b[1] for a, b in runs):
        return False
    to = last[1]
    return not any(b[0] == to[0] and b[1] < to[2] and to[1] < b[2] for _, b in runs[1:])
