"""Editing programs: rows left out, put in, cut, moved. What had to be finished before still has to, nothing else."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from built_programs import direct, dropped, random_program, ring
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from places import ROOT
from programs import by_hand
from sampling import examples
from strategies import any_programs

from collc.ir.arrays import as_column
from collc.ir.collective import Collective
from collc.ir.editing import (
    add_blocks,
    cut,
    insert,
    join_blocks,
    select,
    shifted,
    take,
    with_dependencies,
    without_empty_blocks,
)
from collc.ir.machine import connections, message_links, partners, receivers
from collc.ir.program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.validate import structure
from collc.ir.verify import verify_program
from collc.passes.base import Pass


def programs() -> st.SearchStrategy[Program]:
    """Programs of every form; those of ``any_programs`` may wait for ever, and their messages may not meet."""
    seeds = st.integers(0, 10**6)
    return any_programs() | st.builds(random_program, seeds, st.integers(2, 4), st.integers(0, 12))


def rows(program: Program) -> list[tuple[int, ...]]:
    """Return all columns of all instructions."""
    return list(zip(*(getattr(program, c).tolist() for c in INSTRUCTION_COLUMNS), strict=True))


def blocks(program: Program) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(program, c).tolist() for c in BLOCK_COLUMNS), strict=True))


def waits(program: Program) -> list[list[int]]:
    return [program.dependencies(i) for i in range(program.num_instructions)]


def awaited(program: Program) -> list[set[int]]:
    """Return for each instruction all that must be finished before it begins: by block order and waits, one by one."""
    known: list[set[int]] = [set() for _ in range(program.num_instructions)]
    steps, listed, changed = program.step.tolist(), waits(program), True
    while changed:
        changed = False
        for i, mine in enumerate(known):
            before = [*listed[i], *([i - 1] if steps[i] else [])]
            more = set(before).union(*(known[b] for b in before))
            if not more <= mine:
                mine |= more
                changed = True
    return known


def whole_messages(program: Program, kept: list[bool]) -> np.ndarray:
    """Return a mask that keeps no end of a message whose other end goes."""
    mask, sender = np.array(kept, dtype=bool), partners(program)
    received = np.flatnonzero(sender >= 0)
    for _ in range(program.num_instructions):
        mask[received] &= mask[sender[received]]
        mask[sender[received]] &= mask[received]
    return mask


# ---- leaving out


@settings(max_examples=examples(60), deadline=None)
@given(programs(), st.data())
def test_select_keeps_what_had_to_be_finished_before(program: Program, data: st.DataObject) -> None:
    size = program.num_instructions
    kept = whole_messages(program, data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    after = select(program, kept)
    old = np.flatnonzero(kept).tolist()
    place = {row: new for new, row in enumerate(old)}
    assert rows(after) == [rows(program)[row] for row in old]
    cycle = any(i in mine for i, mine in enumerate(awaited(program)))
    assert structure(program) or cycle or not structure(after)
    assert [{place[x] for x in awaited(program)[row] if kept[x]} for row in old] == awaited(after)
    assert [after.block_rank[after.block[i]] for i in range(len(old))] == [program.rank[row] for row in old]
    # blocks stay who they are, and go when they are empty
    full = sorted({int(program.block[row]) for row in old})
    assert blocks(after) == [blocks(program)[b] for b in full]
    assert after.block.tolist() == [full.index(int(program.block[row])) for row in old]
    # messages meet whom they met
    sender = partners(program)
    assert partners(after).tolist() == [place[int(sender[r])] if sender[r] >= 0 else -1 for r in old]
    for i, listed in enumerate(waits(after)):
        assert listed == sorted(set(listed))
        assert not any(after.block[d] == after.block[i] and d < i for d in listed)


def test_a_wait_for_what_goes_passes_to_what_it_stood_for() -> None:
    nop = (Opcode.NOP, Buffer.INPUT, 0, Buffer.INPUT, 0, 0)
    program = Program.build(
        Collective("allreduce", 1), 1, [0], [(0, -1, -1, 0)] * 4,
        [[(*nop, [])], [(*nop, []), (*nop, [0]), (*nop, [5])], [(*nop, [2]), (*nop, [])], [(*nop, [3])]],
    )  # fmt: skip
    after = select(program, np.arange(7) != 2)
    assert waits(after) == [[], [], [0, 4], [0, 1], [], [2]]
    # who only strikes the row out lets two others begin too early, and the judge of these tests sees it
    early = [len(a) - len(b) for a, b in zip(awaited(after), awaited(dropped(program, 2)), strict=True)]
    assert early == [0, 0, 1, 2, 2, 1]


def test_half_a_message_cannot_go() -> None:
    program = ring("allgather", 3)
    send = int(np.flatnonzero(program.sends)[0])
    with pytest.raises(ValueError, match="its message's other end, is not"):
        select(program, np.arange(program.num_instructions) != send)


# ---- the other primitives


@settings(max_examples=examples(30), deadline=None)
@given(programs(), st.data())
def test_take(program: Program, data: st.DataObject) -> None:
    size = program.num_instructions
    chosen = sorted(data.draw(st.lists(st.integers(0, size - 1), max_size=20))) if size else []
    taken = take(program, np.array(chosen, dtype=np.int64), scratch=[9] * program.num_ranks)
    assert rows(taken) == [rows(program)[row] for row in chosen]
    assert taken.block.tolist() == [int(program.block[row]) for row in chosen]
    assert blocks(taken) == blocks(program)
    assert not len(taken.deps) and taken.scratch.tolist() == [9] * program.num_ranks
    # into one block of each rank
    one = {c: [0] * program.num_ranks for c in BLOCK_COLUMNS} | {"block_rank": range(program.num_ranks)}
    moved = take(program, np.array(chosen, dtype=np.int64), program.rank[chosen], one, opcode=[0] * len(chosen))
    assert moved.rank.tolist() == [int(program.rank[row]) for row in chosen]
    assert not moved.opcode.any() and moved.num_blocks == program.num_ranks


@given(st.data())
def test_with_waits(data: st.DataObject) -> None:
    program = direct("allreduce", 3)
    row = st.integers(0, program.num_instructions - 1)
    pairs = data.draw(st.lists(st.tuples(row, row), max_size=30))
    columns = [as_column([pair[k] for pair in pairs]) for k in (0, 1)]
    made = with_dependencies(program, *columns)
    assert waits(made) == [[b for a, b in pairs if a == i] for i in range(program.num_instructions)]


@settings(max_examples=examples(40), deadline=None)
@given(programs(), st.data())
def test_cut(program: Program, data: st.DataObject) -> None:
    size = program.num_instructions
    pieces = data.draw(st.lists(st.integers(1, 3) | st.integers(80, 90), min_size=size, max_size=size))
    made = cut(program, as_column(pieces))
    first = [sum(pieces[:i]) for i in range(size + 1)]
    assert rows(made) == [row for row, n in zip(rows(program), pieces, strict=True) for _ in range(n)]
    assert made.block.tolist() == [int(b) for b, n in zip(program.block, pieces, strict=True) for _ in range(n)]
    for i in range(size):
        assert made.dependencies(first[i]) == [first[d + 1] - 1 for d in program.dependencies(i)]
        assert not any(made.dependencies(k) for k in range(first[i] + 1, first[i + 1]))


@settings(max_examples=examples(40), deadline=None)
@given(programs(), st.data())
def test_insert(program: Program, data: st.DataObject) -> None:
    assume(program.num_blocks)
    length = np.diff(program.block_start.astype(int)).tolist()
    block = data.draw(st.lists(st.integers(0, program.num_blocks - 1), max_size=8))
    step = [data.draw(st.integers(0, length[b])) for b in block]
    count = list(range(1000, 1000 + len(block)))
    columns = {
        "opcode": Opcode.COPY,
        "src_buffer": 1,
        "src_offset": 300,
        "dst_buffer": 2,
        "dst_offset": 0,
        "count": count,
    }
    made, old, new = insert(program, as_column(block), as_column(step), columns)
    given_rows = rows(program)
    expected: list[tuple[int, tuple[int, ...]]] = []
    for b, n in enumerate(length):
        for k in range(n + 1):
            expected += [
                (b, (int(Opcode.COPY), 1, 300, 2, 0, c))
                for c, at in zip(count, zip(block, step, strict=True), strict=True)
                if at == (b, k)
            ]
            expected += [(b, given_rows[int(program.block_start[b]) + k])] if k < n else []
    assert list(zip(made.block.tolist(), rows(made), strict=True)) == expected
    assert [rows(made)[i] for i in old] == given_rows and [rows(made)[i][-1] for i in new] == count
    assert [waits(made)[i] for i in old] == [[int(old[d]) for d in listed] for listed in waits(program)]
    assert not any(waits(made)[i] for i in new)


@settings(max_examples=examples(30), deadline=None)
@given(programs(), st.data())
def test_blocks_come_and_go(program: Program, data: st.DataObject) -> None:
    ranks = sorted(data.draw(st.sets(st.integers(0, program.num_ranks - 1))))
    made, new = add_blocks(program, np.array(ranks, dtype=np.int64))
    assert [blocks(made)[b] for b in new] == [(rank, -1, -1, 0) for rank in ranks]
    assert [made.block_id[b] for b in new] == [np.diff(program.rank_blocks)[rank] for rank in ranks]
    assert rows(made) == rows(program) and waits(made) == waits(program) and not structure(made)
    bare = without_empty_blocks(made)
    full = sorted(set(program.block.tolist()))
    assert blocks(bare) == [blocks(program)[b] for b in full] and rows(bare) == rows(program)
    assert waits(bare) == waits(program) and bare.rank.tolist() == program.rank.tolist()


@settings(max_examples=examples(30), deadline=None)
@given(programs(), st.data())
def test_blocks_join(program: Program, data: st.DataObject) -> None:
    host = list(range(program.num_blocks))
    for b in range(program.num_blocks):
        ends = [h for h in range(b) if host[h] == h and program.block_rank[h] == program.block_rank[b]]
        host[b] = data.draw(st.sampled_from([b, *ends]))
    made, owner = join_blocks(program, np.array(host, dtype=np.int64))
    kept = sorted(set(host))
    assert owner.tolist() == [kept.index(h) for h in host]
    for name in ("block_rank", "channel"):
        assert made[name].tolist() == [int(getattr(program, name)[b]) for b in kept]
    for name in ("send_peer", "recv_peer"):
        peers = getattr(program, name).tolist()
        assert made[name].tolist() == [max(p for p, h in zip(peers, host, strict=True) if h == b) for b in kept]


@settings(max_examples=examples(30), deadline=None)
@given(programs())
def test_the_other_ends_of_messages(program: Program) -> None:
    sender, links = partners(program), connections(program)
    expected = [-1] * program.num_instructions
    for receive, send in enumerate(sender.tolist()):
        if send >= 0:
            expected[send] = receive
    assert receivers(sender).tolist() == expected
    columns = (links.inward, links.outward)
    for found, does, end in zip(message_links(program, links), (program.receives, program.sends), columns, strict=True):
        assert found.tolist() == [
            int(end[b]) if uses else -1 for b, uses in zip(program.block.tolist(), does.tolist(), strict=True)
        ]


@settings(max_examples=examples(20), deadline=None)
@given(programs(), st.integers(0, 300))
def test_shifted(program: Program, by: int) -> None:
    every = np.arange(program.num_instructions)
    moved = shifted(program, every, every * 0 + by)
    ops = [Opcode(op) for op in program.opcode.tolist()]
    for end, used in (("src", [op.reads_src for op in ops]), ("dst", [op.writes_dst for op in ops])):
        offsets = getattr(program, f"{end}_offset").tolist()
        assert moved[f"{end}_offset"].tolist() == [o + by * u for o, u in zip(offsets, used, strict=True)]


# ---- a pass is short


@attrs.frozen
class DropIdle(Pass):
    """Leave out what does nothing: nops, and copies of a place onto itself."""

    name: ClassVar[str] = "drop-idle"
    summary: ClassVar[str] = "leave out nops and copies of a place onto itself"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    def run(self, ir: Program) -> Program:
        still = (ir.src_buffer == ir.dst_buffer) & (ir.src_offset == ir.dst_offset)
        return select(ir, (ir.opcode != Opcode.NOP) & ~((ir.opcode == Opcode.COPY) & still))


def with_idle(program: Program, draw: Any) -> Program:
    """Put idle instructions, which wait and are waited for, between the others, some in blocks of their own."""
    made, new = add_blocks(program, np.arange(program.num_ranks))
    length = np.diff(made.block_start.astype(int)).tolist()
    block = [*new.tolist(), *draw(st.lists(st.integers(0, made.num_blocks - 1), max_size=6))]
    step = [draw(st.integers(0, length[b])) for b in block]
    nops = draw(st.lists(st.booleans(), min_size=len(block), max_size=len(block)))
    ranks = made.block_rank[block]
    copies = [bool(made.output_chunks(int(rank))) and not nop for rank, nop in zip(ranks, nops, strict=True)]
    used = np.array(copies, dtype=np.int64)
    columns = {"opcode": used * Opcode.COPY, "src_offset": 0, "dst_offset": 0, "count": used}
    columns |= {"src_buffer": used * Buffer.OUTPUT, "dst_buffer": used * Buffer.OUTPUT}
    made, _, new = insert(made, np.array(block), np.array(step), columns)
    dependent, deps = made.dependent, made.deps.astype(np.int64)
    # A wait that the program has may go by way of an idle instruction of another block of the rank.
    for k in range(len(deps)):
        idle = [i for i in new.tolist() if made.block[i] not in (made.block[dependent[k]], made.block[deps[k]])]
        idle = [i for i in idle if made.rank[i] == made.rank[dependent[k]] and made.step[i] == 0]
        idle = [i for i in idle if not (dependent == i).any() and not (deps == i).any()]
        if idle and draw(st.booleans()):
            dependent, deps = np.append(dependent, idle[0]), np.append(deps, deps[k])
            deps[k] = idle[0]
    return with_dependencies(made, dependent, deps)


@settings(max_examples=examples(25), deadline=None)
@given(st.sampled_from([*by_hand(), ring("allreduce", 3), direct("alltoall", 3), direct("reduce", 3)]), st.data())
def test_a_short_pass_leaves_programs_right(program: Program, data: st.DataObject) -> None:
    ways = [way for way in (False, True) if verify_program(program, inplace=way).ok]
    assert ways
    idle = with_idle(program, data.draw)
    after = DropIdle().run(idle)
    assert rows(after) == [row for row in rows(program) if row[0] != Opcode.NOP]
    assert after.num_blocks <= program.num_blocks
    for way in ways:
        assert verify_program(after, inplace=way).ok
    assert awaited(after) == awaited(program)


# ---- one home

#: what makes programs of something else than programs
MAKERS = ["lower.py", "program.py", "template.py", "template_tables.py", "turned.py", "turns.py"]


def test_no_pass_and_no_target_edits_programs_by_hand() -> None:
    root = ROOT
    files = [path for room in ("passes", "backends") for path in (root / room).rglob("*.py")]
    assert sorted(path.name for path in files if "dep_start=" in path.read_text("utf-8")) == MAKERS
