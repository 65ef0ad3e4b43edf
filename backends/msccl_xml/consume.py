"""What the runtimes execute of a file's steps, which is not quite what the file says.

Their parser folds a `nop` into the instruction after it, merges runs of `re` into one reduction of many
sources, and numbers the rest anew; threadblocks wait for those numbers, not for the file's. This module
does the same, keeping one row for each step so that messages can name it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import attrs

from .model import Step, Threadblock

__all__ = ["Operation", "Wait", "operations", "target"]


@attrs.frozen
class Wait:
    """Until threadblock ``block`` has flagged device step ``number``; ``row`` is the step that says so."""

    block: int
    number: int
    row: int


@attrs.frozen
class Operation:
    """One operation of the device: the ``rows`` (steps, in document order) it was made of; several only for `re`.

    ``number`` is the device's step number when it is done, ``flagged`` whether it then sets the
    threadblock's flag. ``late`` are waits that a merged run passed over: they are waited for only here.
    ``refused`` marks waits gathered from `nop` steps in front of an instruction without a wait of its own,
    which the parsers reject.
    """

    rows: tuple[int, ...]
    number: int
    flagged: bool
    waits: tuple[Wait, ...] = ()
    late: tuple[Wait, ...] = ()
    refused: bool = False


def operations(block: Threadblock, max_fused: int = 16) -> list[Operation]:
    """Return what the device runs of one threadblock, in order.

    Steps with ``type`` nop become waits of the next operation; trailing ones vanish. A `re` joins the
    operation before it when that is a `re` of the same destination and source buffer, unflagged, and it
    waits for nothing itself: counts are not compared and `nop` steps between do not count. A run ends where
    a threadblock's reductions number exactly ``max_fused``, and only there.
    """
    made: list[Operation] = []
    pending: list[Wait] = []
    run: tuple[str, int, str] | None = None
    reductions, number = 0, -1
    for row, step in enumerate(block.steps):
        if step.depid >= 0:
            pending.append(Wait(step.depid, step.deps, row))
        if step.type == "nop":
            continue
        number += 1
        if step.type != "re":
            if pending:
                number += len(pending) - 1
                made.append(_operation(row, number, step, pending, made))
                pending = []
            else:
                made.append(Operation((row,), number, bool(step.hasdep)))
            run = None
            continue
        key = (step.dstbuf, step.dstoff, step.srcbuf)
        if run == key and step.depid == -1:
            last = made[-1]
            made[-1] = attrs.evolve(last, rows=(*last.rows, row), number=number, flagged=bool(step.hasdep))
        else:
            number += max(len(pending) - 1, 0)
            made.append(_operation(row, number, step, pending, made))
            pending = []
        reductions += 1
        run = key if not step.hasdep and reductions != max_fused else None
    return made


def _operation(row: int, number: int, step: Step, pending: list[Wait], made: Sequence[Operation]) -> Operation:
    passed_over = made[-1].rows[-1] if made else -1
    return Operation(
        (row,), number, bool(step.hasdep), tuple(pending),
        late=tuple(wait for wait in pending if wait.row < passed_over), refused=bool(pending) and step.depid < 0,
    )  # fmt: skip


def _number(operation: Operation) -> int:
    return operation.number


def target(flagged: Sequence[Operation], number: int) -> Operation | None:
    """Return the operation that a wait for ``number`` ends with: the first flagged one so far along, or nothing.

    ``flagged`` are the flagged operations of the threadblock waited for, in order.
    """
    position = bisect_left(flagged, number, key=_number)
    return flagged[position] if position < len(flagged) else None
