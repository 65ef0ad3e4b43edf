"""Faults in some turn of a pipeline: the verifier names the smallest call, in bytes, and brute force agrees."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction

import pytest
from one_sided_judge import judge
from one_sided_programs import IN, MEMORY, NOP, OUT, SCRATCH, copy, item, move, on

from collc.backends.mscclpp_json import MscclppJson
from collc.backends.mscclpp_json.reader import read
from collc.backends.mscclpp_json.verify import load, verify_text
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.one_sided import Channel, OneSided, Op, Operation
from collc.ir.one_sided.verify import sizes_alike, verify_one_sided
from collc.ir.verify import Report

#: calls are multiples of two chunks of 16 bytes
UNIT, SLICE = 32, 64
#: the largest call that is tried in all tests: five turns
MOST = 5 * SLICE

WAIT, SIGNAL = on(Op.WAIT, 1), on(Op.SIGNAL, 0)
RELEASE, ACQUIRE = on(Op.SEM_RELEASE, 0), on(Op.SEM_ACQUIRE, 0)
LEND, BORROW = on(Op.SEM_RELEASE, 1), on(Op.SEM_ACQUIRE, 1)
PUT = [move(Op.PUT, [item(0, IN, 0, 2)], [item(1, SCRATCH, 0, 2)]), NOP]
TAKE = [NOP, copy(item(1, SCRATCH, 0, 2), item(1, OUT, 0, 2))]

#: an operation outside of loops, or the bytes of a slice and the operations of a loop
Rows = Sequence["Operation | tuple[int, Sequence[Operation]]"]


def broadcast(sender: Rows, *blocks: Rows, lent: int = 0, chunks: int = 2, scratch: int = 2) -> OneSided:
    """Return a broadcast from rank 0 to 1: rank 0 sends after a handshake, rank 1 has several blocks."""
    loops: list[tuple[int, int]] = []

    def flat(rows: Rows) -> list[Operation]:
        found: list[Operation] = []
        for row in rows:
            if isinstance(row, Operation):
                found.append(row)
            else:
                found += [one._replace(loop=len(loops)) for one in row[1]]
                loops.append((row[0], chunks))
        return found

    first = [on(Op.RLXWAIT, 0), NOP, *sender, copy(item(0, IN, 0, chunks), item(0, OUT, 0, chunks))]
    listed = [(0, first), *((1, rows) for rows in blocks)]
    return OneSided.build(
        Collective("broadcast", 2, root=0), chunks // 2, [(chunks, chunks, scratch)] * 2,
        [Channel(0, 1, MEMORY), Channel(1, 0, MEMORY)],
        [(rank, flat(rows)) for rank, rows in listed], semaphores=[(1, 0), (1, lent)], loops=loops,
    )  # fmt: skip


def through(sender: Rows, receiver: Rows, copier: Rows, lent: int = 0) -> OneSided:
    """Return a broadcast through scratch: one block of rank 1 hears of slices, another one copies them."""
    return broadcast(sender, [on(Op.RLXSIGNAL, 1), *receiver], copier, lent=lent)


SENDS, HEARS, COPIES = (SLICE, [*PUT, SIGNAL]), (SLICE, [WAIT, NOP, RELEASE]), (SLICE, [ACQUIRE, *TAKE])
TWICE = 2 * SLICE


def overlapping(first: bool, second: bool, kept: int = 1, *, chunks: int = 2, unit: int = SLICE) -> OneSided:
    """Return a broadcast of ``chunks`` that sends all twice in each turn, the second time all but 1 further in scratch.

    ``first`` and ``second`` are whether the sender hears that a slice is copied before it sends the next. In turn
    i + 1, the first put writes where the second one of turn i wrote, if a chunk is shorter than two slices. ``kept`` is
    the one that becomes the output.
    """
    held = [item(1, SCRATCH, first, chunks) for first in (0, chunks - 1)]
    puts = [[move(Op.PUT, [item(0, IN, 0, chunks)], [there]), NOP] for there in held]
    spare, out = item(1, SCRATCH, 2 * chunks - 1, chunks), item(1, OUT, 0, chunks)
    takes = [[NOP, copy(there, out if k == kept else spare)] for k, there in enumerate(held)]
    heard, back = [on(Op.WAIT, 0), NOP], [NOP, on(Op.SIGNAL, 1)]
    sender = [*puts[0], SIGNAL, *heard * first, *puts[1], SIGNAL, *heard * second]
    copier = [WAIT, *takes[0], *back * first, WAIT, *takes[1], *back * second]
    return broadcast([(unit, sender)], [on(Op.RLXSIGNAL, 1), (unit, copier)], chunks=chunks, scratch=3 * chunks - 1)


RIGHT = {
    "overlapping items": overlapping(True, True),
    "slices": through([SENDS], [HEARS], [COPIES]),
    "credits": through(
        [SENDS], [(SLICE, [BORROW, WAIT, NOP, RELEASE])], [(SLICE, [ACQUIRE, *TAKE, NOP, LEND])], lent=2
    ),
    "longer slices": through([(TWICE, [*PUT, SIGNAL])], [(TWICE, [WAIT, NOP, RELEASE])], [(TWICE, COPIES[1])]),
}  # fmt: skip
#: each with the smallest call of its window, the smallest call that fails, and the check
FAULTS = {
    "turn 1, no signal": (through([(SLICE, PUT)], [HEARS], [COPIES]), 0, 32, "deadlock"),
    "turn 1, no signal, window": (through([(SLICE, PUT)], [HEARS], [COPIES]), 90, 96, "deadlock"),
    "turn 1, no wait": (through([SENDS], [(SLICE, [RELEASE])], [COPIES]), 0, 32, "leftover signals"),
    "turn 1, late wait": (through([SENDS], [(SLICE, [RELEASE, WAIT])], [COPIES]), 0, 32, "races"),
    "turn 2, one signal": (through([(SLICE, PUT), SIGNAL], [HEARS], [COPIES]), 0, 96, "deadlock"),
    "turn 2, one wait": (through([SENDS], [WAIT, NOP, (SLICE, [RELEASE])], [COPIES]), 0, 96, "leftover signals"),
    "turn 2, late waits": (
        through([SENDS, SIGNAL], [WAIT, NOP, (SLICE, [RELEASE]), (SLICE, [WAIT])], [COPIES]), 0, 96, "races",
    ),
    "turn 1, overlap": (overlapping(False, False, kept=0), 0, 32, "races"),
    "turn 2, overlap": (overlapping(True, False), 0, 96, "races"),
    "turn 2, overlap, window": (overlapping(True, False), 193, 224, "races"),
    "turn 3, late credits": (
        through([SENDS], [(SLICE, [BORROW, WAIT, NOP, RELEASE])], [COPIES, NOP, (SLICE, [LEND])], lent=2),
        0, 160, "deadlock",
    ),
    "turn 5, late credits": (
        through([SENDS], [(SLICE, [BORROW, WAIT, NOP, RELEASE])], [COPIES, NOP, (SLICE, [LEND])], lent=4),
        0, 288, "deadlock",
    ),
    "turn 3, two waits": (
        through([SENDS], [WAIT, WAIT, NOP, (SLICE, [RELEASE])], [COPIES]), 65, 160, "leftover signals",
    ),
    "turn 3, late waits of longer slices": (
        through([(TWICE, [*PUT, SIGNAL]), SIGNAL], [WAIT, NOP, (SLICE, [RELEASE]), (TWICE, [WAIT])], [COPIES]),
        0, 160, "races",
    ),
    "other slices, one turn too few": (
        through([SENDS], [(SLICE, [WAIT, NOP, RELEASE])], [(TWICE, [ACQUIRE, ACQUIRE, *TAKE])]), 65, 160, "deadlock",
    ),
    "other slices, not all in whole turns": (
        through([SENDS], [(SLICE, [WAIT, NOP, RELEASE])], [(TWICE, [ACQUIRE, ACQUIRE, *TAKE])]), 0, 32, "deadlock",
    ),
}  # fmt: skip


def plan_of(program: OneSided, low: int = 0, high: int = MOST) -> str:
    """Return the plan of a program for a window of calls."""
    (file,) = MscclppJson(inplace=False).emit(program)
    return json.dumps(json.loads(file.text) | {"min_message_size": low, "max_message_size": high})


def named(report: Report) -> tuple[str, int]:
    """Return the check that failed, and the bytes that it names."""
    (check,) = report.failed[:1]
    found = re.search(r"; the smallest call that fails has (\d+) bytes$", check.detail)
    assert found, check.detail
    return check.name, int(found[1])


def fails(program: OneSided, size: int) -> bool:
    return not verify_one_sided(program, Fraction(size, 2)).ok


def goes_wrong(program: OneSided, size: int, runs: int = 12) -> str:
    return judge(program, runs, elements=size // UNIT, width=16, threads=1, launches=2)


@pytest.mark.parametrize("name", RIGHT)
def test_right_pipelines_are_right_in_every_call(name: str) -> None:
    program = RIGHT[name]
    report = verify_text(plan_of(program))
    assert report.ok, report.failed
    assert not any(fails(program, size) for size in range(UNIT, MOST + 1, UNIT))
    assert not any(goes_wrong(program, size, 2) for size in (32, 64, 96, 160))


@pytest.mark.parametrize("name", FAULTS)
def test_the_smallest_call_that_fails_is_named(name: str) -> None:
    program, low, size, check = FAULTS[name]
    assert named(verify_text(plan_of(program, low))) == (check, size)
    first = max(-(-low // UNIT) * UNIT, UNIT)
    assert [n for n in range(first, size + 1, UNIT) if fails(program, n)] == [size]
    assert goes_wrong(program, size, 60)
    assert size == first or not goes_wrong(program, size - UNIT)


#: faults that do not occur in the smallest call of the window
LATER = [name for name, (_, low, size, _) in FAULTS.items() if size >= max(low, 1) + UNIT]


@pytest.mark.parametrize("name", LATER)
def test_a_window_without_so_many_turns_is_right(name: str) -> None:
    program, low, size, _ = FAULTS[name]
    for high in (size - UNIT, size - 1):
        assert verify_text(plan_of(program, low, high)).ok
        assert load(read(plan_of(program, low, high))).num_operations == program.num_operations
    assert not verify_text(plan_of(program, low, size)).ok
    with pytest.raises(CollcError, match="is wrong") as refused:
        load(read(plan_of(program, low, size)))
    assert f"has {size} bytes" in refused.value.diagnostics[0].notes[0]


@pytest.mark.parametrize("low", [256, 300, 1000])
def test_slices_that_overlap_in_small_calls_only(low: int) -> None:
    program = overlapping(True, False)
    assert verify_text(plan_of(program, low, 1 << 20)).ok
    assert not fails(program, 256) and not goes_wrong(program, 256)
    assert fails(program, 224) and not verify_text(plan_of(program, 224, 1 << 20)).ok


def test_slices_that_cease_to_overlap_within_a_turn() -> None:
    """Chunks of 112 and of 128 bytes take 3 turns of 192 bytes; 3 chunks are shorter than two slices, or as long."""
    program = overlapping(True, False, chunks=4, unit=192)
    assert [bool(verify_one_sided(program, Fraction(chunk)).failed) for chunk in (112, 128, 144)] == [
        True,
        False,
        False,
    ]
    assert verify_text(plan_of(program, 4 * 112 + 1, 4 * 192)).ok
    assert named(verify_text(plan_of(program, 4 * 96 + 1, 4 * 192))) == ("races", 4 * 112)
    assert judge(program, 60, elements=7, width=16, threads=1, launches=2)
    assert not judge(program, 12, elements=8, width=16, threads=1, launches=2)


def test_files_of_fewer_chunks_than_the_collective() -> None:
    """The executor takes multiples of the file's chunks: here of one, though two ranks get a part each."""
    plan = json.loads(plan_of(FAULTS["turn 2, one signal"][0]))
    text = json.dumps(plan).replace('"size": 2', '"size": 1').replace('"num_chunks": 2', '"num_chunks": 1')
    text = re.sub(r'"(input|output|scratch)_chunks": 2', r'"\1_chunks": 1', text)
    report = verify_text(text)
    assert named(report) == ("deadlock", 80)
    assert "serves calls of 16 bytes and more, multiples of 16" in str(report.checks)
    assert verify_text(text.replace(f'"max_message_size": {MOST}', '"max_message_size": 64')).ok


@pytest.mark.parametrize("program", [*RIGHT.values(), *(fault[0] for fault in FAULTS.values())], ids=[*RIGHT, *FAULTS])
def test_sizes_of_a_group_do_the_same(program: OneSided) -> None:
    grain = Fraction(16)
    for low in (16, 48, 112):
        groups = sizes_alike(program, Fraction(low), Fraction(MOST), grain)
        assert [one.least for one in groups] == sorted({one.least for one in groups}) and groups[0].least == low
        for one, following in zip(groups, [*groups[1:], None], strict=True):
            end = following.least if following else one.least + grain
            found = verify_one_sided(program, one.simplest).failed
            for size in range(int(one.least), int(end), 16):
                failed = verify_one_sided(program, Fraction(size)).failed
                assert [check.name for check in failed] == [check.name for check in found], size


def test_more_turns_than_are_executed() -> None:
    low = 1 << 20
    for name in ("turn 1, no signal", "turn 2, one signal", "turn 3, late credits"):
        program, _, _, check = FAULTS[name]
        assert not sizes_alike(program, Fraction(low, 2), Fraction(low), Fraction(16))
        assert named(verify_text(plan_of(program, low, 2 * low))) == (check, low)
    assert verify_text(plan_of(RIGHT["credits"], low, 2 * low)).ok
