"""Verify a one-sided program: its form, channels, deadlocks, races, and results, in launches that follow each other."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from ...program import Buffer
from ...shown import counted
from ...verify.report import Check, Report
from ..opcodes import Op
from ..program import OneSided
from ._events import Events, as_executed, events, lengths, parts_needed, shortest
from ._form import bounds, channels, doing, input_writes, operations, summary, threads
from ._memory import MAX_ADDRESSES, MAX_PARTS, Memory, addresses, sizes
from ._messages import Messages, Uses
from ._order import Order
from ._packets import packets
from ._races import races
from ._run import Outcome, execute
from ._values import evaluate, postcondition

__all__ = ["verify_one_sided"]

#: turns of the shortest loop with which a program is executed
TURNS = (1, 2, 3)

#: reports on programs that were found right: one that was written and read back is the same
_right: OrderedDict[tuple[object, ...], Report] = OrderedDict()
_REMEMBERED = 64

_KEPT = "out-of-place input is not written"


def verify_one_sided(program: OneSided, chunk: Fraction | None = None) -> Report:
    """Execute a one-sided program symbolically, launch after launch, and report the result of each check.

    Loops take the turns of chunks of ``chunk`` bytes. Without a size, the shortest loop takes 1, 2, and 3 turns.

    The checks are, in this order: ``structure``, ``bounds``, ``out-of-place input is not written``, ``channels``,
    ``packets``, ``deadlock``, ``leftover signals``, ``races``, ``single reduction``, ``postcondition``. They stop if
    the remaining ones would have no meaning. Source: mscclpp notes, sections 4 and 5.
    """
    key = (*_fingerprint(program), chunk)
    if key not in _right:
        report = Report("one-sided", program.collective.kind, program.num_ranks, tuple(_checks(program, chunk)))
        if not report.ok:
            return report
        _right[key] = report
        while len(_right) > _REMEMBERED:
            _right.popitem(last=False)
    return _right[key]


def _fingerprint(program: OneSided) -> tuple[object, ...]:
    """Return what a report depends on; names are left out."""
    digest = hashlib.blake2b(digest_size=32)
    for name in program.COLUMNS:
        column = getattr(program, name)
        digest.update(f"{name} {column.dtype} {len(column)};".encode())
        digest.update(np.ascontiguousarray(column).data)
    scalars = tuple(getattr(program, name) for name in program.SCALARS if name not in ("name", "scheduler"))
    return digest.digest(), *scalars


def _checks(program: OneSided, chunk: Fraction | None) -> Iterator[Check]:
    from ...validate import structure

    problems = structure(program) or operations(program)
    yield _check(
        "structure", problems, f"{counted(program.num_blocks, 'block')}, {counted(program.num_operations, 'operation')}"
    )
    if problems:
        return
    plans = _plans(program, chunk)
    largest = max(addresses(program, parts) for _, parts in plans)
    if max(parts for _, parts in plans) > MAX_PARTS or largest > MAX_ADDRESSES:
        yield Check(
            "bounds", False, f"the buffers have {largest} parts, more than the {MAX_ADDRESSES} that are executed"
        )
        return
    problems = _buffers(program) or bounds(program, sizes(program), as_executed(program))
    yield _check("bounds", problems, f"{counted(int(sizes(program).sum()), 'chunk')} in all buffers")
    if problems:
        return
    if not program.inplace:
        yield _check(_KEPT, input_writes(program), "no operation writes it")
    yield from _executed(program, plans)


def _check(name: str, problems: Sequence[str], detail: str = "") -> Check:
    return Check(name, not problems, summary(problems) if problems else detail)


def _plans(program: OneSided, chunk: Fraction | None) -> list[tuple[list[Fraction], int]]:
    """Return the turns of the loops, and the parts of a chunk, of each size of call that is executed."""
    if not len(program.loop_unit):
        return [([], parts_needed(program, []))]
    chunks = [times / shortest(program) for times in TURNS] if chunk is None else [chunk]
    found = [lengths(program, one) for one in chunks]
    return [(turns, parts_needed(program, turns)) for turns in found]


def _buffers(program: OneSided) -> list[str]:
    """Return the ranks whose input or output is smaller than the collective's."""
    collective, size = program.collective, sizes(program)
    return [
        f"rank {rank} has {size[rank, kind]} chunks of {kind.name.lower()}, but the collective has {due}"
        for kind in (Buffer.INPUT, Buffer.OUTPUT)
        for rank in range(program.num_ranks)
        if (due := collective.buffer_shards(rank, kind is Buffer.OUTPUT) * program.chunks) > size[rank, kind]
    ]


def _executed(program: OneSided, plans: list[tuple[list[Fraction], int]]) -> Iterator[Check]:
    """Yield the checks of an execution, up to the first size of call that fails."""
    checks: list[Check] = []
    for turns, parts in plans:
        checks = list(_launches(program, turns, parts))
        if not all(check.ok for check in checks):
            break
    yield from checks


def _launches(program: OneSided, turns: list[Fraction], parts: int) -> Iterator[Check]:
    memory = Memory.of(program, parts)
    seen = events(program, memory, turns)
    when = f" (loops of {' and '.join(str(-(-t // 1)) for t in turns)} turns)" if turns else ""
    problems = channels(program) or threads(program, seen.row, seen.block, seen.phases(program)[0])
    yield _check("channels", problems, counted(len(program.channel_rank), "channel"))
    if problems:
        return
    problems, slots = packets(program, seen, memory)
    yield _check("packets", problems, f"{counted(int(seen.slot.sum()), 'slot')} written or read")
    if problems:
        return
    messages = Messages(program, seen, Uses.of(program, seen))
    outcome = execute(program, seen, slots, messages)
    yield Check("deadlock", not outcome.stuck, summary(outcome.stuck) + when if outcome.stuck else "completes")
    if outcome.stuck:
        return
    problems = _leftovers(program, outcome)
    detail = f"{counted(sum(outcome.signals), 'signal')}, all waited for"
    yield Check("leftover signals", not problems, summary(problems) + when if problems else detail)
    if problems:
        return
    yield from _data(program, seen, memory, outcome, Order(program, seen, outcome.level, slots, messages), when)


def _data(
    program: OneSided, seen: Events, memory: Memory, outcome: Outcome, order: Order, when: str
) -> Iterator[Check]:
    where = "in place" if program.inplace else "out of place"
    launches = "launches one after the other" if program.together else "launches in a row"
    problems = races(program, seen, memory, order, outcome.level)
    yield _check("races", [p + when for p in problems], f"{where}, {launches}")
    held, wrong = evaluate(program, seen, memory, outcome.level)
    yield _check("single reduction", [wrong + when] if wrong else [], where)
    if not wrong:
        yield _check("postcondition", [p + when for p in postcondition(program, memory, held)], where)


def _leftovers(program: OneSided, outcome: Outcome) -> list[str]:
    """Return the signals that no wait takes, and semaphores that change: the next launch begins with them."""
    problems = []
    for channel, (came, taken) in enumerate(zip(outcome.signals, outcome.waits, strict=True)):
        if came != taken:
            rank, peer = program.channel_rank[channel], program.channel_peer[channel]
            problems.append(
                f"rank {peer} signals rank {rank} {came} times on a channel, which waits {taken} times: "
                f"{_next_launch(program, channel)}"
            )
    for semaphore, change in enumerate(outcome.values):
        if change:
            rank, value = program.semaphore_rank[semaphore], program.semaphore_value[semaphore]
            problems.append(f"a semaphore of rank {rank} begins at {value} and ends at {value + change}")
    return problems


def _next_launch(program: OneSided, channel: int) -> str:
    """Return which wait of the next launch takes a signal that was left over."""
    waits = np.isin(program.opcode[program.link_operation], (Op.WAIT, Op.RLXWAIT))
    rows = program.link_operation[np.flatnonzero(waits & (program.links == channel))]
    if not len(rows):
        return "no operation waits for them, and the count never returns"
    return f"in launch 2 {doing(program, int(rows[0]))} does not wait for its data"
