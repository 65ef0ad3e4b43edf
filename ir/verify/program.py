"""Is a program right? Its form, its messages, its waits, its races, and what it computes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from ..layout import layout, sizes, total
from ..machine import Execution, execute, partners, primitives, smallest_depth
from ..program import INSTRUCTION_COLUMNS, Opcode, Program
from ..waves import fingerprint, least_depth, passes_through, waves
from ._accesses import accesses, bounds, input_writes, overlaps
from ._columns import computes
from ._order import Order
from ._races import races
from ._structure import matched, structure, summary
from ._values import evaluate, postcondition
from .report import Check, Report

__all__ = ["adds_once", "verify_form", "verify_program"]

Array = np.ndarray[Any, np.dtype[Any]]

#: more chunks than this in all buffers are not executed
MAX_CHUNKS = 1 << 25
#: primitives up to which the depth is also found for instructions run chunk by chunk
CHEAP = 1 << 18

#: what is checked of the data
_DATA = ("races", "single reduction", "postcondition")

#: wide programs found right, by fingerprint and whether in place
_right: OrderedDict[tuple[bytes, bool], None] = OrderedDict()
_REMEMBERED = 64

_KEPT = "out-of-place input is not written"


def verify_program(
    program: Program, *, inplace: bool | None = None, fifo_depth: int | None = None, split: int | None = None
) -> Report:
    """Execute a program symbolically and say what each check found.

    ``inplace`` says whether input and output overlap as in-place calls make them (None: the program must be
    right both ways). ``fifo_depth`` is the depth of every connection in primitives (None: unbounded),
    ``split`` the most chunks of a primitive (None: an instruction is one). Checks come in this order, and
    stop where the rest would mean nothing: ``structure``, ``bounds``, ``out-of-place input is not written``,
    ``matched``, ``deadlock``, ``races``, ``single reduction``, ``postcondition``. Raises ValueError for a
    depth below 0 or a split below 1.
    """
    if fifo_depth is not None and fifo_depth < 0:
        raise ValueError(f"fifo_depth must not be negative, found {fifo_depth}")
    if split is not None and split < 1:
        raise ValueError(f"split must be at least 1 chunk, found {split}")
    modes = (False, True) if inplace is None else (inplace,)
    checks = tuple(_checks(program, modes, fifo_depth, split))
    return Report("program", program.collective.kind, program.num_ranks, checks)


def verify_form(program: Program) -> Report:
    """Check what needs no execution: ``structure``, ``bounds`` and ``matched``, up to the first that fails."""
    return Report("program", program.collective.kind, program.num_ranks, tuple(_form(program, ())))


def adds_once(program: Program) -> bool:
    """Return whether a verified program adds every contribution once, so that it is right for any operation.

    One that is not is right for the operation that its collective names, which is idempotent.
    """
    if not program.collective.idempotent:
        return True
    strict = attrs.evolve(program, collective=attrs.evolve(program.collective, op="sum"))
    finished = execute(strict).finished
    return not evaluate(strict, layout(strict, False), finished, partners(strict)).problem


def _checks(program: Program, modes: Sequence[bool], fifo_depth: int | None, split: int | None) -> Iterator[Check]:
    """Yield the checks in order, up to the one that makes the rest meaningless."""
    good = True
    for check in _form(program, modes):
        good &= check.ok or check.name == _KEPT
        yield check
    if good:
        if (depth := _completes(program, fifo_depth, split)) is not None and _sound(program, modes):
            yield _completed(program, depth, fifo_depth, split)
            ways = _ways(modes)
            yield from (Check(name, True, ways) for name in _DATA)
            return
        execution = execute(program, fifo_depth, split)
        yield _deadlock(program, execution, fifo_depth)
        if not execution.deadlock:
            yield from _data(program, modes, execution.finished, partners(program))


def _form(program: Program, modes: Sequence[bool]) -> Iterator[Check]:
    problems = structure(program)
    yield _check("structure", problems, f"{program.num_blocks} threadblocks, {program.num_instructions} instructions")
    if problems:
        return
    chunks = total(program)
    if chunks > MAX_CHUNKS:
        yield Check("bounds", False, f"the buffers have {chunks} chunks, more than the {MAX_CHUNKS} that are executed")
        return
    problems = bounds(program, sizes(program))
    yield _check("bounds", problems, f"{chunks} chunks in all buffers")
    if problems:
        return
    if False in modes:
        yield _check(_KEPT, input_writes(program), "no instruction writes it")
    partner = partners(program)
    yield _check("matched", matched(program, partner), f"{(partner >= 0).sum()} messages")


def _check(name: str, problems: Sequence[str], detail: str = "") -> Check:
    return Check(name, not problems, summary(problems) if problems else detail)


def _deadlock(program: Program, execution: Execution, fifo_depth: int | None) -> Check:
    if execution.deadlock:
        stuck = execution.deadlock.describe(program)
        if fifo_depth is not None:
            least = smallest_depth(program, execution.split)
            stuck = f"with FIFOs of depth {fifo_depth} ({least or 'no depth'} would do): {stuck}"
        return Check("deadlock", False, stuck)
    return _completed(program, execution.depth, fifo_depth, execution.split)


def _completed(program: Program, depth: int, fifo_depth: int | None, split: int | None) -> Check:
    """Return the check that a program completes, ``depth`` being the least that will do where none is given."""
    if fifo_depth is not None:
        return Check("deadlock", True, f"completes with FIFOs of depth {fifo_depth}")
    detail = f"completes with FIFOs of depth {depth}"
    if split is None and primitives(program, 1).sum() <= CHEAP:
        detail += f" (of depth {smallest_depth(program, 1)} where every chunk is sent on its own)"
    return Check("deadlock", True, detail)


def _data(program: Program, modes: Sequence[bool], finished: Array, partner: Array) -> Iterator[Check]:
    """Yield what depends on the data, one check for all ways in which the buffers may overlap."""
    order = Order(program, finished, partner)
    found: dict[str, list[str]] = {name: [] for name in _DATA}
    for inplace in modes:
        where = layout(program, inplace)
        outcome = evaluate(program, where, finished, partner)
        wrong = [outcome.problem] if outcome.problem else []
        if program.collective.ordered and program.num_instructions and program.num_ranks > 1:
            wrong = [f"`op: {program.collective.op}` needs the order of ranks, which no program is known to keep"]
        missed = [] if wrong else postcondition(program, where, outcome.memory, finished, partner)
        clashes = overlaps(program, where) + races(program, where, accesses(program, where), order)
        for name, problems in zip(found, (clashes, wrong, missed), strict=True):
            found[name] += [f"{'in' if inplace else 'out of'} place: {text}" for text in problems]
    for name, problems in found.items():
        if name != "postcondition" or problems or not found["single reduction"]:
            yield _check(name, problems, _ways(modes))


def _ways(modes: Sequence[bool]) -> str:
    return " and ".join("in place" if inplace else "out of place" for inplace in modes)


# ---- wide programs, which are mostly right


def _completes(program: Program, fifo_depth: int | None, split: int | None) -> int | None:
    """Return the depth with which a wide program completes, the least where none is given; nothing where unknown."""
    if fifo_depth is None:
        return least_depth(program, split)
    return fifo_depth if passes_through(program, fifo_depth, split) else None


def _bare(program: Program) -> Program:
    """Return the program without instructions that do nothing, wait for nothing and are waited for by nobody."""
    awaited = np.zeros(program.num_instructions, dtype=bool)
    awaited[program.deps] = True
    start = program.dep_start.astype(np.int64)
    kept = (program.opcode != Opcode.NOP) | awaited | (start[:-1] < start[1:])
    if kept.all():
        return program
    place = np.concatenate([[0], np.cumsum(kept)])
    rows = np.flatnonzero(kept)
    columns: dict[str, Any] = {name: getattr(program, name)[rows] for name in INSTRUCTION_COLUMNS}
    return attrs.evolve(
        program, block_start=place[program.block_start], dep_start=start[np.append(rows, program.num_instructions)],
        deps=place[program.deps], **columns,
    )  # fmt: skip


def _sound(program: Program, modes: Sequence[bool]) -> bool:
    """Return whether a wide program is known to be right in every mode; where not, execute it one by one to say why.

    What was found of a program is remembered: what was written and read back is the same program.
    """
    if program.collective.ordered:
        return False
    program = _bare(program)
    name = fingerprint(program)
    left = [inplace for inplace in modes if (name, inplace) not in _right]
    swift = waves(program) if left else None
    if left and swift is None:
        return False
    if swift is not None:
        partner = partners(program)
        order = Order(program, swift.instruction, partner)
        for inplace in left:
            where = layout(program, inplace)
            if overlaps(program, where) or races(program, where, accesses(program, where), order):
                return False
            if not computes(program, where, swift, partner):
                return False
            _right[name, inplace] = None
    while len(_right) > _REMEMBERED:
        _right.popitem(last=False)
    return True
