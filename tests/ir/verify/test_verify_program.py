"""The verifier of programs: right ones pass, and every planted mistake is named with its rank, threadblock and step."""

from __future__ import annotations

import time

import attrs
import numpy as np
import pytest
from built_programs import collective_of, direct, dropped, edited, find, ring, swapped, with_blocks, with_deps
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.ir.collective import KINDS, Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.verify import verify, verify_program

IN, OUT, SCRATCH = Buffer
SEND, RECV, COPY, REDUCE, NOP = Opcode.SEND, Opcode.RECV, Opcode.COPY, Opcode.REDUCE, Opcode.NOP
RINGS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
NAMES = [
    "structure", "bounds", "out-of-place input is not written", "matched", "deadlock", "races", "single reduction",
    "postcondition",
]  # fmt: skip


def failures(program: Program, **options) -> dict[str, str]:
    report = verify_program(program, **options)
    assert report.ok == (not report.failed)
    return {check.name: check.detail for check in report.failed}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_right_programs_pass(kind):
    for ranks in range(1, 7):
        for chunks in (1, 3):
            made = [direct(kind, ranks, chunks, ranks // 2)]
            made += [ring(kind, ranks, chunks, ranks // 2)] if kind in RINGS else []
            for program in made:
                for inplace in (None, False, True):
                    report = verify_program(program, inplace=inplace)
                    assert report.ok, (ranks, chunks, report.failed)
                    assert [c.name for c in report.checks] == [
                        n for n in NAMES if inplace is not True or "input" not in n
                    ]


def test_the_report_says_what_was_verified():
    report = verify(ring("allreduce", 5, 2))
    assert (report.kind, report.collective, report.ranks) == ("program", "allreduce", 5)
    details = {c.name: c.detail for c in report.checks}
    assert details["structure"] == "5 threadblocks, 45 instructions"
    assert details["matched"] == "40 messages"
    assert details["deadlock"] == "completes with FIFOs of depth 2 (of depth 3 where every chunk is sent on its own)"
    assert details["postcondition"] == "out of place and in place"


def test_programs_without_instructions():
    nothing = Program.build(Collective("allreduce", 3), 2, [0, 0, 0], [], [])
    assert list(failures(nothing)) == ["postcondition"]
    assert failures(nothing)["postcondition"].startswith(
        "out of place: output chunk 0 of rank 0 must hold shard 0, chunk 0 of all 3 ranks, but holds no data: "
        "no instruction writes it; out of place: output chunk 2 of rank 0"
    )
    # one rank in place has what it wants already, and so has a block without instructions
    alone = Program.build(Collective("allreduce", 1), 2, [0], [(0, -1, -1, 0)], [[]])
    assert verify_program(alone, inplace=True).ok and not verify_program(alone).ok
    assert verify_program(Program.build(Collective("allgather", 1), 1, [0], [], []), inplace=True).ok


# ---- form


def test_columns_that_do_not_fit_together():
    program = ring("allreduce", 3)
    for broken, message in (
        (attrs.evolve(program, count=[1]), "columns of different lengths: opcode 15"),
        (attrs.evolve(program, channel=[0]), "columns of different lengths: block_rank 3"),
        (attrs.evolve(program, block_start=[0, 5, 10]), "block_start has 3 entries; 4 are needed"),
        (attrs.evolve(program, block_start=[0, 10, 5, 15]), "block_start must ascend from 0 to 15"),
        (attrs.evolve(program, dep_start=[0] * 15 + [3]), "dep_start must ascend from 0 to 0"),
        (attrs.evolve(program, scratch=[0, 0]), "scratch sizes for 2 ranks, but there are 3 ranks"),
        (attrs.evolve(program, scratch=[0, -1, 0]), "rank 1 has a scratch buffer of -1 chunks"),
        (attrs.evolve(program, chunks=0), "a shard has 0 chunks"),
        (attrs.evolve(program, block_rank=[1, 0, 2]), "block_rank must ascend within ranks 0 to 2"),
        (attrs.evolve(program, block_rank=[0, 1, 3]), "block_rank must ascend within ranks 0 to 2"),
    ):
        found = failures(broken)
        assert list(found) == ["structure"] and message in found["structure"]


def test_blocks_and_instructions_that_make_no_sense():
    program = direct("allreduce", 3)
    row = find(program, rank=1, block=2, step=0)
    block = int(program.block[row])
    place = "rank 1, threadblock 2"
    for broken, message in (
        (with_blocks(program, block, send_peer=7), f"{place} has send peer 7, which is not a rank"),
        (with_blocks(program, block, recv_peer=-2), f"{place} has recv peer -2, which is not a rank"),
        (with_blocks(program, block, recv_peer=1), f"{place} has its own rank as recv peer"),
        (with_blocks(program, block, channel=-1), f"{place} has channel -1"),
        (
            with_blocks(program, block, send_peer=-1),
            f"{place}, step 0 (send) sends, but its threadblock has no",
        ),
        (
            with_blocks(program, block, recv_peer=-1),
            f"{place}, step 1 (recv) receives, but its threadblock has",
        ),
        (edited(program, row, opcode=9), f"{place}, step 0 has opcode 9, which does not exist"),
        (edited(program, row, opcode=-1), f"{place}, step 0 has opcode -1, which does not exist"),
        (edited(program, row, count=0), f"{place}, step 0 (send) has count 0; at least 1 is needed"),
        (edited(program, row, count=-3), f"{place}, step 0 (send) has count -3; at least 1 is needed"),
        (edited(program, row, opcode=NOP), f"{place}, step 0 (nop) has count 1; 0 is needed"),
        (edited(program, row, src_buffer=3), f"{place}, step 0 (send) names src buffer 3, which does not exist"),
        (edited(program, row + 1, dst_buffer=-1), f"{place}, step 1 (recv) names dst buffer -1, which does not exist"),
        (with_deps(program, row, [999]), f"{place}, step 0 depends on instruction 999, which does not exist"),
        (with_deps(program, row, [row]), f"{place}, step 0 depends on itself"),
        (with_deps(program, row, [row + 1]), f"{place}, step 0 depends on step 1 of its own threadblock"),
        (
            with_deps(program, row, [0]),
            f"{place}, step 0 depends on rank 0, threadblock 0, step 0, which is",
        ),
    ):
        found = failures(broken)
        assert list(found) == ["structure"] and message in found["structure"], found


def test_a_connection_has_one_owner():
    program = direct("allreduce", 3)
    stolen = with_blocks(program, int(program.rank_blocks[1]) + 2, send_peer=0)
    assert failures(stolen)["structure"] == (
        "rank 1, threadblock 1 and threadblock 2 both send to rank 0 on channel 0; one connection needs one owner"
    )
    stolen = with_blocks(program, int(program.rank_blocks[1]) + 1, recv_peer=2)
    assert (
        "rank 1, threadblock 1 and threadblock 2 both receive from rank 2 on channel 0" in failures(stolen)["structure"]
    )
    # on another channel it is another connection, but then the other end has to agree
    moved = with_blocks(program, int(program.rank_blocks[1]) + 2, channel=1)
    assert list(failures(moved)) == ["matched"]


def test_a_dependency_on_an_earlier_step_of_the_same_block_does_no_harm():
    program = ring("allreduce", 3)
    assert verify_program(with_deps(program, 1, [0])).ok


def test_accesses_out_of_bounds():
    program = direct("allreduce", 3, 2)
    row = find(program, rank=2, block=1, step=0)
    for broken, message in (
        (edited(program, row, src_offset=5), "(send) reads input chunks 5 to 6, but rank 2's input has"),
        (
            edited(program, row, src_offset=-1),
            "(send) reads input chunks -1 to 0, but rank 2's",
        ),
        (edited(program, row, count=7), "(send) reads input chunks 0 to 6, but rank 2's input has chunks 0 to 5"),
        (edited(program, row, src_offset=(1 << 63) - 1), "(send) reads input chunks 9223372036854775807 to"),
        (
            edited(program, row, src_buffer=SCRATCH, src_offset=6),
            "reads scratch chunks 6 to 7, but rank 2's",
        ),
    ):
        found = failures(broken)
        assert list(found) == ["bounds"]
        assert f"rank 2, threadblock 1, step 0 {message}" in found["bounds"] or message in found["bounds"]
    rooted = direct("reduce", 3, 2)
    wrong = edited(rooted, find(rooted, 1, 0, 0), src_buffer=OUT)
    assert failures(wrong)["bounds"].endswith("(send) reads output chunks 0 to 1, but rank 1's output has none")


def test_buffers_beyond_reason_are_refused_before_memory_is_taken():
    program = attrs.evolve(ring("allreduce", 3), chunks=1 << 60)
    assert "more than the 67108864 that are executed" in failures(program)["bounds"]
    program = attrs.evolve(ring("allreduce", 3), scratch=[(1 << 63) - 1] * 3)
    assert "more than the 67108864 that are executed" in failures(program)["bounds"]


def test_channels_may_have_any_number():
    program = ring("allreduce", 3)
    assert verify_program(attrs.evolve(program, channel=[(1 << 62) + 1] * 3)).ok


def test_the_input_is_kept_out_of_place():
    program = ring("allreduce", 3)
    inside = attrs.evolve(program, src_buffer=program.src_buffer * 0, dst_buffer=program.dst_buffer * 0)
    assert verify_program(inside, inplace=True).ok
    found = failures(inside, inplace=False)
    assert found["out-of-place input is not written"].startswith(
        "rank 0, threadblock 0, step 2 (recv-reduce-copy-send) writes input chunk 0; rank 0, threadblock 0, step 3"
    )
    assert list(failures(inside)) == list(found)


# ---- messages


def test_a_dropped_receive():
    program = ring("allreduce", 4)
    last = find(program, rank=2, block=0, step=6)
    found = failures(dropped(program, last))
    assert list(found) == ["matched"]
    assert found["matched"] == (
        "rank 1, threadblock 0, step 5 (recv-copy-send) sends to rank 2, which never receives it "
        "(channel 0 has 6 sends by rank 1, threadblock 0 and 5 receives by rank 2, threadblock 0)"
    )


def test_a_dropped_send():
    program = direct("allgather", 3)
    found = failures(dropped(program, find(program, rank=2, block=1, step=0)))
    assert found == {
        "matched": "rank 0, threadblock 2, step 1 (recv) receives from rank 2, which never sends it "
        "(channel 0 has 0 sends by rank 2, threadblock 1 and 1 receives by rank 0, threadblock 2)"
    }


def test_a_wrong_count():
    program = ring("allreduce", 3, 2)
    row = find(program, rank=1, block=0, step=4)
    found = failures(edited(program, row, count=1))
    assert found == {
        "matched": "rank 0, threadblock 0, step 3 (recv-copy-send) sends 2 chunks, but rank 1, threadblock 0, step 4 "
        "(recv) receives 1"
    }


def test_a_wrong_peer():
    program = ring("allgather", 4)
    found = failures(with_blocks(program, 1, send_peer=3))
    assert list(found) == ["matched"]
    assert "rank 1, threadblock 0, step 1 (send) sends to rank 3, which never receives it" in found["matched"]


# ---- waits


def test_a_cycle_of_dependencies():
    program = direct("allreduce", 4)
    first, second = find(program, 3, 1, 0), find(program, 3, 2, 0)
    found = failures(with_deps(with_deps(program, first, [second + 1]), second, [first + 1]))
    assert list(found) == ["deadlock"]
    assert found["deadlock"] == (
        "cycle of 2 waits: rank 3, threadblock 1, step 0 waits for rank 3, threadblock 2, step 1 to finish; "
        "rank 3, threadblock 2, step 0 waits for rank 3, threadblock 1, step 1 to finish"
    )


def exchange(chunks: int) -> Program:
    """Two ranks swap shards; in one block each that sends before it receives."""
    rows = [
        [(COPY, IN, 0, OUT, r * chunks, chunks, ()), (SEND, IN, 0, IN, 0, chunks, ()),
         (RECV, IN, 0, OUT, (1 - r) * chunks, chunks, ())]
        for r in range(2)
    ]  # fmt: skip
    return Program.build(Collective("allgather", 2), chunks, [0, 0], [(0, 1, 1, 0), (1, 0, 0, 0)], rows)


def test_a_deadlock_that_depends_on_the_split():
    program = exchange(4)
    assert verify_program(program, fifo_depth=2, split=4).ok
    assert verify_program(program, fifo_depth=2, split=2).ok
    assert verify_program(program, fifo_depth=8, split=1).ok
    found = failures(program, fifo_depth=2, split=1)
    assert list(found) == ["deadlock"]
    assert found["deadlock"].startswith(
        "with FIFOs of depth 2 (4 would do): cycle of 2 waits: rank 0, threadblock 0, step 1 waits for a free slot to "
        "rank 1, freed by the receive at rank 1, threadblock 0, step 2; rank 1, threadblock 0, step 1 waits"
    )
    details = [c.detail for c in verify_program(program).checks if c.name == "deadlock"]
    assert details == ["completes with FIFOs of depth 1 (of depth 4 where every chunk is sent on its own)"]
    assert [c.detail for c in verify_program(program, fifo_depth=5, split=1).checks][4] == (
        "completes with FIFOs of depth 5"
    )


def test_a_fifo_too_short():
    program = ring("allreduce", 5)
    assert verify_program(program, fifo_depth=2).ok
    found = failures(program, fifo_depth=1)
    assert list(found) == ["deadlock"] and "(2 would do): cycle of 5 waits" in found["deadlock"]
    whole = direct("allreduce", 4)
    first, second = find(whole, 3, 1, 0), find(whole, 3, 2, 0)
    tied = with_deps(with_deps(whole, first, [second + 1]), second, [first + 1])
    assert list(failures(tied, fifo_depth=3)) == ["deadlock"]
    assert "with FIFOs of depth 3 (no depth would do): " in failures(tied, fifo_depth=3)["deadlock"]


@pytest.mark.parametrize("options", [{"fifo_depth": -1}, {"split": 0}])
def test_senseless_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        verify_program(exchange(1), **options)


# ---- values


def test_a_wrong_offset_moves_another_chunk():
    program = ring("allgather", 4, 2)
    row = find(program, rank=2, block=0, step=2)
    found = failures(edited(program, row, dst_offset=4))
    assert list(found) == ["postcondition"]
    assert found["postcondition"].startswith(
        "out of place: output chunk 2 of rank 2 must hold shard 1, chunk 0, but holds no data: no instruction writes "
        "it; out of place: output chunk 4 of rank 2 must hold shard 2, chunk 0, but holds shard 1, chunk 0: "
        "last written by rank 2, threadblock 0, step 2 (recv-copy-send), sent by rank 1, threadblock 0, step 1 (send)"
    )


def test_a_wrong_offset_adds_another_chunk():
    program = ring("allreduce", 4, 2)
    found = failures(edited(program, find(program, rank=3, block=0, step=1), src_offset=3))
    assert list(found) == ["single reduction"]
    assert found["single reduction"].startswith(
        "out of place: rank 3, threadblock 0, step 1 (recv-reduce-send), chunk 0 of its 2, reduces shard 1, chunk 1 of "
        "rank 3 with shard 1, chunk 0 of rank 2, which is another chunk"
    )


def test_swapped_steps():
    program = ring("allreduce", 5)
    first = find(program, rank=3, block=0, step=1)
    found = failures(swapped(program, first, first + 1))
    assert list(found) == ["single reduction"]
    assert "rank 3, threadblock 0, step 1 (recv-reduce-send)" in found["single reduction"]
    assert "reduces shard 0 of rank 3 with shard 1 of rank 2, which is another chunk" in found["single reduction"]


def test_swapped_steps_that_only_store():
    program = ring("allgather", 5)
    first = find(program, rank=3, block=0, step=2)
    found = failures(swapped(program, first, first + 1))
    assert list(found) == ["postcondition"]
    assert (
        "output chunk 1 of rank 3 must hold shard 1, but holds shard 2: last written by rank 3, threadblock 0, step 2"
        in (found["postcondition"])
    )


def test_a_duplicated_reduction():
    program = direct("allreduce", 4)
    adds = find(program, rank=1, block=0, step=2)
    assert program.opcode[adds] == REDUCE
    twice = edited(program, adds, src_offset=int(program.src_offset[adds - 1]))
    found = failures(twice)
    assert list(found) == ["single reduction"]
    assert found["single reduction"].startswith(
        "out of place: rank 1, threadblock 0, step 2 (reduce), chunk 0 of its 1, reduces shard 1 of rank 0 with that "
        "of ranks 0, 1: rank 0 contributes twice"
    )


def test_a_reduction_left_out():
    program = direct("allreduce", 4)
    adds = find(program, rank=1, block=0, step=3)
    assert program.opcode[adds] == REDUCE
    found = failures(edited(program, adds, opcode=COPY))
    assert "postcondition" in found
    lost = "must hold shard 1 of all 4 ranks, but holds shard 1 of rank 3"
    assert lost in found["postcondition"]


def test_adding_a_location_to_itself():
    rows = [[(COPY, IN, 0, OUT, 0, 1, ()), (REDUCE, OUT, 0, OUT, 0, 1, ())]]
    found = failures(Program.build(Collective("allreduce", 1), 1, [0], [(0, -1, -1, 0)], rows))
    assert "rank 0, threadblock 0, step 1 (reduce)" in found["single reduction"]
    assert found["single reduction"].endswith("rank 0 contributes twice")


def test_reading_what_nobody_wrote():
    program = direct("allreduce", 3, 2)
    row = find(program, rank=2, block=0, step=1)
    found = failures(edited(program, row, src_offset=3, count=1))
    assert "out of place: rank 2, threadblock 0, step 2 (reduce)" in str(found) or "single reduction" in found
    scratch = attrs.evolve(program, scratch=program.scratch + 9)
    found = failures(edited(scratch, row, src_offset=9))
    assert found["single reduction"].startswith(
        "out of place: rank 2, threadblock 0, step 1 (reduce) reads scratch chunk 9 of rank 2, "
        "which no instruction has written"
    )


def test_a_mistake_that_shows_only_in_place():
    """Rank 0 puts its result where, in place, its own contribution to another shard still waits to be sent."""
    rows = [
        [(RECV, IN, 0, OUT, 1, 1, ()), (SEND, IN, 1, IN, 0, 1, ()), (COPY, IN, 0, OUT, 0, 1, ())],
        [(SEND, IN, 0, IN, 0, 1, ()), (RECV, IN, 0, OUT, 0, 1, ()), (COPY, IN, 1, OUT, 1, 1, ())],
    ]
    program = Program.build(Collective("alltoall", 2), 1, [0, 0], [(0, 1, 1, 0), (1, 0, 0, 0)], rows)
    assert verify_program(program, inplace=False).ok
    found = failures(program)
    assert list(found) == ["postcondition"]
    assert found["postcondition"].startswith(
        "in place: input chunk 0 = output chunk 0 of rank 1 must hold shard 1 (from rank 0 to rank 1), but holds "
        "shard 2 (from rank 1 to rank 0): last written by rank 1, threadblock 0, step 1 (recv), sent by rank 0, "
        "threadblock 0, step 1 (send)"
    )
    assert list(failures(program, inplace=True)) == ["postcondition"]


def test_the_root_counts():
    program = ring("broadcast", 4, root=1)
    moved = attrs.evolve(program, collective=Collective("broadcast", 4, 2))
    found = failures(moved)
    assert list(found) == ["bounds"] and "rank 1's input has none" in found["bounds"]
    gathered = direct("gather", 4, root=1)
    assert verify_program(gathered).ok
    assert not verify_program(attrs.evolve(gathered, collective=Collective("gather", 4, 2))).ok


def test_a_failed_report_raises_one_diagnostic_for_each_check():
    with pytest.raises(CollcError) as caught:
        verify_program(dropped(ring("allreduce", 3), 0)).require()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "C0401" and "matched: rank 1, threadblock 0, step 4" in diagnostic.message


def test_no_more_than_the_first_mistakes_are_listed():
    program = ring("allgather", 40)
    broken = attrs.evolve(program, dst_offset=program.dst_offset * 0)
    detail = failures(broken, inplace=False)["postcondition"]
    assert detail.count("must hold") == 3 and "; and 97 more" in detail


# ---- anything at all

COLUMN = st.lists(st.one_of(st.integers(-2, 9), st.sampled_from([-(1 << 63), (1 << 63) - 1, 1 << 31])), max_size=6)


@pytest.mark.slow
@given(
    st.sampled_from(KINDS), st.integers(1, 4), st.integers(-1, 3), st.booleans(), st.booleans(),
    st.lists(COLUMN, min_size=14, max_size=14), st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, 1, 2]),
)  # fmt: skip
@settings(deadline=None, max_examples=examples(60))
def test_whatever_the_columns_there_is_a_report(kind, ranks, chunks, shaped, real, columns, depth, split):
    """Random columns, of lengths that fit together (``shaped``) or not, or a real program with one column replaced."""
    collective = collective_of(kind, ranks, 0)
    if real:
        program = direct(kind, ranks, max(chunks, 1))
        name = Program.COLUMNS[len(columns[0]) % len(Program.COLUMNS)]
        column = np.resize(columns[1] or [0], len(getattr(program, name)))
        report = verify_program(attrs.evolve(program, **{name: column}), fifo_depth=depth, split=split)
    else:
        if shaped:
            lengths = [ranks, 2, 2, 2, 2, 3, 4, 4, 4, 4, 4, 4, 5, 2]
            columns = [np.resize(c or [0], n) for c, n in zip(columns, lengths, strict=True)]
            columns[5], columns[12] = np.array([0, 2, 4]), np.array([0, 1, 1, 2, 2])
        named = dict(zip(Program.COLUMNS, columns, strict=True))
        report = verify_program(Program(collective, chunks, **named), fifo_depth=depth, split=split)
    assert report.checks and all(c.detail for c in report.checks)


def test_an_edit_of_one_column_is_noticed_or_harmless():
    """Every change of one offset by one in a ring is a mistake, and is noticed."""
    program = ring("allreduce", 4, 2)
    for name in ("src_offset", "dst_offset"):
        for row in range(program.num_instructions):
            op = Opcode(int(program.opcode[row]))
            if op.reads_src if name == "src_offset" else op.writes_dst:
                value = int(getattr(program, name)[row])
                assert not verify_program(edited(program, row, **{name: value + 1})).ok
                assert not verify_program(edited(program, row, **{name: value - 1})).ok


# ---- speed


@pytest.mark.slow
def test_a_large_program_takes_seconds():
    program = ring("allreduce", 128, 2)
    start = time.process_time()
    assert verify_program(program).ok
    assert program.num_instructions > 32_000 and time.process_time() - start < 5
    assert np.array_equal(program.count, np.full(program.num_instructions, 2))
