"""A plan as arrays of 64-bit integers, as the engine reads it: operations, and which depend on which.

A plan's order is one of many that are right. An operation must follow only those earlier ones that access the same
elements, where one of them writes. These dependencies keep the order of reductions, so the bits of their results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np

from collc.ir.arrays import Array

from .moves import Kind

__all__ = ["RECEIVE", "SEND", "Action", "Columns", "columns"]

#: (kind, peer, number, message, span): an action on a message; (kind, to, one, other): a local action
Action: TypeAlias = tuple[Any, ...]  # Any: the kind distinguishes the two forms
#: (buffer, first element, end)
_Span: TypeAlias = tuple[int, int, int]

#: the kinds of operations
RECEIVE, SEND, COPY, COMBINE = range(4)
_OPERATIONS = {Kind.POST: RECEIVE, Kind.SEND: SEND, Kind.COPY: COPY, Kind.COMBINE: COMBINE}


@attrs.frozen(eq=False)
class Columns:
    """The arrays of one plan, in elements; ``actions`` are those of the operations, in their order.

    ``operations`` are (kind, peer, number, to, low, count, one, low, other, low, waits, first, end): ``waits`` is the
    number of operations that one depends on, ``dependents[first:end]`` are those that depend on it. ``messages`` are
    the operations that send or receive, sorted by peer and number: the order on a connection.
    """

    actions: tuple[Action, ...]
    operations: Array
    dependents: Array
    messages: Array


def columns(plan: Sequence[Action]) -> Columns:
    """Return the arrays of a plan's actions."""
    actions = tuple(act for act in plan if act[0] in _OPERATIONS)
    rows = np.zeros((len(actions), 13), np.int64)
    messages: list[tuple[int, int, int]] = []
    for k, act in enumerate(actions):
        rows[k, 0] = _OPERATIONS[act[0]]
        if act[0] < Kind.COPY:
            _, peer, number, _, (buffer, low, high) = act
            rows[k, 1:6] = peer, number, buffer, low, high - low
            messages.append((peer, number, k))
        else:
            _, (buffer, low, high), one, other = act
            rows[k, 3:10] = buffer, low, high - low, *one[:2], *other[:2]
    dependents = _dependents(actions)
    ends = np.cumsum([len(found) for found in dependents], dtype=np.int64)
    flat = np.array([k for found in dependents for k in found], np.int64)
    rows[:, 10] = np.bincount(flat, minlength=len(actions))
    rows[:, 11], rows[:, 12] = ends - [len(found) for found in dependents], ends
    return Columns(actions, rows, flat, np.array([k for _, _, k in sorted(messages)], np.int64))


def _dependents(actions: Sequence[Action]) -> list[list[int]]:
    """Return the operations that depend on each one."""
    cells = _Cells([span for act in actions for span, _ in _accesses(act)])
    writer: dict[tuple[int, int], int] = {}
    readers: dict[tuple[int, int], list[int]] = {}
    found: list[set[int]] = [set() for _ in actions]
    for k, act in enumerate(actions):
        for span, writes in _accesses(act):
            for cell in cells.of(span):
                before = readers.get(cell, []) if writes else []
                for earlier in {writer.get(cell, k), *before} - {k}:
                    found[earlier].add(k)
        for span, writes in _accesses(act):
            for cell in cells.of(span):
                if writes:
                    writer[cell], readers[cell] = k, []
                else:
                    readers.setdefault(cell, []).append(k)
    return [sorted(one) for one in found]


def _accesses(act: Action) -> Iterator[tuple[_Span, bool]]:
    """Yield the places of an operation and whether it writes there, reads first."""
    if act[0] < Kind.COPY:
        yield act[4], act[0] == Kind.POST
        return
    _, to, one, other = act
    yield one, False
    yield other, False
    yield to, True


class _Cells:
    """Runs of elements of a buffer at whose ends a span begins or ends."""

    def __init__(self, spans: Sequence[_Span]):
        ends: dict[int, set[int]] = {}
        for buffer, low, high in spans:
            ends.setdefault(buffer, set()).update((low, high))
        self.number = {b: {end: k for k, end in enumerate(sorted(found))} for b, found in ends.items()}

    def of(self, span: _Span) -> list[tuple[int, int]]:
        buffer, low, high = span
        return [(buffer, k) for k in range(self.number[buffer][low], self.number[buffer][high])]
