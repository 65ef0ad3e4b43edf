"""Verify a program: its form, messages, deadlocks, races, and results."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from ..arrays import Array
from ..editing import without_idle_nops
from ..layout import layout, sizes, total
from ..machine import Execution, execute, partners, primitives, smallest_depth
from ..program import Program
from ..progress import counting
from ..waves import Waves, all_waves, completes_in_waves, fingerprint, least_depth, some_waves
from ._accesses import accesses, bounds, input_writes, overlaps, reads_input_first
from ._columns import computes
from ._counted import adds_up
from ._order import Order
from ._races import races
from ._structure import matched, structure, summary
from ._values import evaluate, postcondition
from .report import Check, Report

__all__ = ["verify_form", "verify_program"]

#: chunks in all buffers up to which collc says what is wrong, and where; larger programs are only right or wrong
MAX_CHUNKS = 1 << 25
#: more chunks than this in all buffers are not executed
MAX_IN_WAVES = 1 << 26
#: primitives up to which the depth is also found for instructions run chunk by chunk
CHEAP = 1 << 18

#: checks of the data
_DATA = ("races", "single reduction", "postcondition")

#: wide programs that were found correct, by fingerprint and whether in place
_right: OrderedDict[tuple[bytes, bool], None] = OrderedDict()
_REMEMBERED = 64

_KEPT = "out-of-place input is not written"


def verify_program(
    program: Program, *, inplace: bool | None = None, fifo_depth: int | None = None, split: int | None = None
) -> Report:
    """Execute a program symbolically and report the result of each check.

    ``inplace``: whether input and output overlap as in in-place calls (None: the program must be correct in place and
    out of place). ``fifo_depth`` is the depth of every connection in primitives (None: unbounded), ``split`` the most
    chunks of a primitive (None: an instruction is one primitive). The checks are, in this order: ``structure``,
    ``bounds``, ``out-of-place input is not written``, ``matched``, ``deadlock``, ``races``, ``single reduction``,
    ``postcondition``. They stop if the remaining ones would have no meaning. Raises ValueError for a depth below 0 or a
    split below 1.
    """
    if fifo_depth is not None and fifo_depth < 0:
        raise ValueError(f"fifo_depth must not be negative, found {fifo_depth}")
    if split is not None and split < 1:
        raise ValueError(f"split must be at least 1 chunk, found {split}")
    modes = (False, True) if inplace is None else (inplace,)
    checks = tuple(_checks(program, modes, fifo_depth, split))
    return Report("program", program.collective.kind, program.num_ranks, checks)


def verify_form(program: Program) -> Report:
    """Run the checks without execution: ``structure``, ``bounds`` and ``matched``, up to the first that fails."""
    return Report("program", program.collective.kind, program.num_ranks, tuple(_form(program, ())))


def _checks(program: Program, modes: Sequence[bool], fifo_depth: int | None, split: int | None) -> Iterator[Check]:
    """Yield the checks in order, until a failure makes the remaining ones meaningless."""
    good = True
    for check in _form(program, modes):
        good &= check.ok or check.name == _KEPT
        yield check
    if good:
        known = [Check(name, True, _places(modes)) for name in _DATA]
        if (depth := _completes(program, fifo_depth, split)) is not None and _is_known_correct(program, modes):
            yield from (_completed(program, depth, fifo_depth, split), *known)
            return
        execution = execute(program, fifo_depth, split)
        yield _deadlock(program, execution, fifo_depth)
        if execution.deadlock:
            return
        if (chunks := total(program)) <= MAX_CHUNKS:
            yield from _data(program, modes, execution.finished, partners(program))
        elif _is_known_correct(program, modes, narrow=True):
            yield from known
        else:
            where = f"collc says where for up to {MAX_CHUNKS} chunks in all buffers, found {chunks}"
            yield Check("postcondition", False, f"an instruction is wrong; {where}")


def _form(program: Program, modes: Sequence[bool]) -> Iterator[Check]:
    """Yield the checks without execution, up to the first that fails; those of a good form are kept."""
    if ("form", *modes) in program.found:
        yield from program.found["form", *modes]
        return
    checks = []
    for check in _formed(program, modes):
        checks.append(check)
        yield check
    if all(check.ok for check in checks):
        program.found["form", *modes] = tuple(checks)


def _formed(program: Program, modes: Sequence[bool]) -> Iterator[Check]:
    problems = structure(program)
    yield _check("structure", problems, f"{program.num_blocks} threadblocks, {program.num_instructions} instructions")
    if problems:
        return
    chunks = total(program)
    if chunks > MAX_IN_WAVES:
        most = f"more than the {MAX_IN_WAVES} that are executed"
        yield Check("bounds", False, f"the buffers have {chunks} chunks, {most}")
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
    """Return the check that a program completes; ``depth`` is the least that completes if none is given."""
    if fifo_depth is not None:
        return Check("deadlock", True, f"completes with FIFOs of depth {fifo_depth}")
    detail = f"completes with FIFOs of depth {depth}"
    if split is None and primitives(program, 1).sum() <= CHEAP:
        detail += f" (of depth {smallest_depth(program, 1)} where every chunk is sent on its own)"
    return Check("deadlock", True, detail)


def _data(program: Program, modes: Sequence[bool], finished: Array, partner: Array) -> Iterator[Check]:
    """Yield the checks of the data, each for in place and out of place together."""
    order = Order(program, finished, partner)
    found: dict[str, list[str]] = {name: [] for name in _DATA}
    for inplace in counting(modes, "checking data"):
        where = layout(program, inplace)
        outcome = evaluate(program, where, finished, partner)
        wrong = [outcome.problem] if outcome.problem else []
        if program.collective.ordered and program.num_instructions and program.num_ranks > 1:
            wrong = [f"`op: {program.collective.op}` needs the order of ranks, which collc cannot verify of a program"]
        missed = [] if wrong else postcondition(program, where, outcome.memory, finished, partner)
        clashes = overlaps(program, where) + races(program, where, accesses(program, where), order)
        for name, problems in zip(found, (clashes, wrong, missed), strict=True):
            found[name] += [f"{'in' if inplace else 'out of'} place: {text}" for text in problems]
    for name, problems in found.items():
        if name != "postcondition" or problems or not found["single reduction"]:
            yield _check(name, problems, _places(modes))


def _places(modes: Sequence[bool]) -> str:
    return " and ".join("in place" if inplace else "out of place" for inplace in modes)


# ---- wide programs, which are mostly correct


def _completes(program: Program, fifo_depth: int | None, split: int | None) -> int | None:
    """Return the depth with which a wide program completes, the least if none is given; None if unknown."""
    program = without_idle_nops(program)
    if fifo_depth is None:
        return least_depth(program, split)
    return fifo_depth if completes_in_waves(program, fifo_depth, split) else None


def _is_known_correct(program: Program, modes: Sequence[bool], narrow: bool = False) -> bool:
    """Return whether a wide program is known to be correct in every mode; otherwise a slower execution finds out why.

    With ``narrow``, the program may also be narrow; it is to complete. Correct programs are cached, because a program
    that was written and read back is the same.
    """
    if program.collective.ordered:
        return False
    program = without_idle_nops(program)
    name = fingerprint(program)
    left = [inplace for inplace in modes if (name, inplace) not in _right]
    found = some_waves(program) if left else None
    if left and found is None and narrow:
        found = all_waves(program)
    if left and found is None:
        return False
    if found is not None and not _are_right(program, left, found):
        return False
    _right.update(dict.fromkeys((name, inplace) for inplace in left))
    while len(_right) > _REMEMBERED:
        _right.popitem(last=False)
    return True


def _are_right(program: Program, modes: Sequence[bool], found: Waves) -> bool:
    """Return whether a wide program is correct in some modes; in both, one execution may show it."""
    partner = partners(program)
    order = Order(program, found.instruction, partner, found.start)
    if len(modes) > 1 and _is_right_in_both(program, found, order):
        return True
    for inplace in modes:
        where = layout(program, inplace)
        if overlaps(program, where) or races(program, where, accesses(program, where), order):
            return False
        if not (adds_up(program, where, found, partner) or computes(program, where, found, partner)):
            return False
    return True


def _is_right_in_both(program: Program, found: Waves, order: Order) -> bool:
    """Return whether a program is correct in place and out of place; False also if one execution does not show it.

    All accesses that meet out of place meet in place too, so a program without races in place has none out of place.
    Its input is not written. If in place every read of an input comes before the first write of the output there, it
    reads the input, as out of place. A correct program out of place reads no output that is not written. So all reads
    of the two executions give the same.
    """
    where = layout(program, inplace=True)
    touched = accesses(program, where)
    if (touched.write.sum() != program.writes_dst.sum()) or input_writes(program):  # copies onto themselves
        return False
    if overlaps(program, where) or not reads_input_first(program, where, order.time):
        return False
    if races(program, where, touched, order):
        return False
    del touched  # longer than the program itself
    apart = layout(program, inplace=False)
    return adds_up(program, apart, found, order.partner) or computes(program, apart, found, order.partner)
