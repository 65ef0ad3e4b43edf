"""The MSCCL-XML target: limits refused before anything is written, the largest safe size, options."""

from __future__ import annotations

import attrs
import programs
import pytest
from msccl_drafts import codes, copy, drafted, emit, local

from collc.backends.msccl_xml import MscclXml, read, verify_text
from collc.backends.msccl_xml.limits import check_limits
from collc.backends.msccl_xml.profiles import PROFILES
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Opcode, Program

I, O, S = Buffer  # noqa: E741

# ---- limits


GATHER = Program.build(
    Collective("gather", 1, 0), 1, [0], [(0, -1, -1, 0)], [[(Opcode.COPY, I, 0, O, 0, 1, ())]]
)  # fmt: skip


@pytest.mark.parametrize(
    ("code", "program", "options", "message"),
    [
        ("C0607", GATHER, {}, "cannot run the collective `gather`"),
        ("C0621", programs.ring_allgather(33), {}, "rank 0, threadblock 0 has 65 steps; .* takes at most 64"),
        ("C0622", programs.allpairs_allreduce(12), {"threadblocks": 8}, "rank 0 has 12 threadblocks; at most 8"),
        ("C0622", programs.alltoall(66), {"runtime": "rccl"}, "rank 0 has 66 threadblocks; RCCL takes at most 64"),
        (
            "C0623",
            programs.alltoall(33),
            {},
            "rank 0 has 32 threadblocks with a send peer on channel 0; .* takes at most 31",
        ),
        (
            "C0624",
            programs.broadcast_chain(2, 0, 36),
            {},
            "rank 0, threadblock 0, step 0 moves 72 chunks; .* at most 71",
        ),
    ],
)
def test_limits_are_refused_before_anything_is_written(
    code: str, program: Program, options: dict[str, object], message: str
) -> None:
    """Each limit has its own error: place, what was found, what is needed."""
    with pytest.raises(CollcError, match=message) as failure:
        emit(program, **options)
    assert code in codes(failure)


def found_limits(rows: list[list[tuple[object, ...]]], runtime: str = "executor") -> dict[str, str]:
    draft = drafted(local(rows, scratch=50_000))
    return {f.code: f.message for f in check_limits(draft, PROFILES[runtime])}


def test_dependency_beyond_127_is_refused() -> None:
    """The number of the block waited for is one signed byte."""
    rows = [[copy(k, 200 + k)] for k in range(129)]
    assert found_limits([*rows, [copy(327, 340, 127)]]) == {}
    assert found_limits([*rows, [copy(328, 340, 128)]]) == {
        "C0625": "rank 0, threadblock 129, step 0 depends on threadblock 128; a step can depend on 0 to 127 only "
        "(the number is one signed byte)"
    }


def test_offset_beyond_16_bits_is_refused() -> None:
    assert found_limits([[copy(0, 32_767)]]) == {}
    assert found_limits([[copy(0, 32_768)]]) == {
        "C0626": "rank 0, threadblock 0, step 0: offset 32768; offsets are at most 32767"
    }


def test_node_budget_is_refused() -> None:
    """The parsers hold 4095 elements for a rank."""
    assert found_limits([[copy(0, 1)] * 60 for _ in range(67)]) == {}
    assert found_limits([[copy(0, 1)] * 60 for _ in range(68)]) == {
        "C0627": "rank 0: 4150 XML elements (1 + 1 ranks + 68 threadblocks + 4080 steps); the parsers hold 4095"
    }


def test_more_ranks_than_the_parsers_hold() -> None:
    draft = drafted(Program.build(Collective("allreduce", 1025), 1, [0] * 1025, [], []))
    messages = [f.message for f in check_limits(draft, PROFILES["msccl"])]
    assert "the parsers hold 1024 ranks, found 1025" in messages


def test_steps_are_counted_with_the_nops() -> None:
    """62 copies and one with 3 waits are 65 steps."""
    waits_for = [[copy(0, 1)], [copy(0, 2)], [copy(0, 3)]]
    assert found_limits([*waits_for, [copy(0, 9)] * 61 + [copy(1, 4, 0, 1, 2)]]) == {}
    found = found_limits([*waits_for, [copy(0, 9)] * 62 + [copy(1, 4, 0, 1, 2)]])
    assert found == {"C0621": "rank 0, threadblock 3 has 65 steps; msccl-executor-nccl takes at most 64"}
    assert found_limits([*waits_for, [copy(0, 9)] * 62 + [copy(1, 4, 0, 1, 2)]], "msccl").keys() == {"C0630"}


def test_a_wrong_program_is_not_written() -> None:
    good = programs.ring_allreduce(4)
    bad = attrs.evolve(good, src_offset=[*good.src_offset[:1].tolist(), 0, *good.src_offset[2:].tolist()])
    with pytest.raises(CollcError, match="the program is wrong") as failure:
        emit(bad)
    assert set(codes(failure)) == {"C0632"}
    assert "rank" in str(failure.value)


def test_flags_are_set_only_where_the_program_is_right() -> None:
    """An exchange whose receives may overtake its sends is out of place only, and cannot be forced in place."""
    program = programs.alltoall(3, apart=True)
    algorithm = read(emit(program))
    assert (algorithm.inplace, algorithm.outofplace) == (0, 1)
    with pytest.raises(CollcError, match=r"the program is wrong in place: .*races") as failure:
        emit(program, inplace=True)
    assert set(codes(failure)) == {"C0631"}
    swap = read(emit(programs.alltoall(3)))
    assert (swap.inplace, swap.outofplace) == (1, 1)
    assert read(emit(programs.alltoall(3), inplace=False)).inplace == 0


def test_in_place_only_programs() -> None:
    """A program that adds into its input is for calls in place only, whatever else is right about it."""
    program = in_place_pair()
    algorithm = read(emit(program))
    assert (algorithm.inplace, algorithm.outofplace) == (1, 0)
    with pytest.raises(CollcError, match="the program is wrong out of place"):
        emit(program, outofplace=True)


def in_place_pair() -> Program:
    """Two ranks swap their vectors into scratch and add them to their input."""
    rows = [
        [(Opcode.SEND, I, 0, I, 0, 2, ()), (Opcode.RECV, I, 0, S, 0, 2, ()), (Opcode.REDUCE, S, 0, I, 0, 2, ())]
    ] * 2
    return Program.build(Collective("allreduce", 2), 1, [2, 2], [(0, 1, 1, 0), (1, 0, 0, 0)], rows)


# ---- sizes


def test_the_largest_safe_size_is_written() -> None:
    """Recursive doubling on 8 ranks sends 4 chunks before it receives: with 1 chunk a message it deadlocks.

    Messages hold 2 chunks while a chunk is at most 1 MiB, so the output is at most 8 MiB.
    """
    program = programs.recursive_doubling_allgather(8)
    assert read(emit(program)).max_bytes == 8 << 20
    assert read(emit(program, runtime="msccl")).max_bytes == (8 << 20) + 1
    assert read(emit(program, proto="LL")).max_bytes == 8 * (32 << 10) * 65536
    with pytest.raises(CollcError, match="the largest possible call has 8388608 bytes") as failure:
        emit(program, max_bytes=(8 << 20) + 1)
    assert codes(failure) == ["C0630"]
    assert "rank 0, threadblock 2, step" in failure.value.diagnostics[0].notes[0]
    assert read(emit(program, max_bytes=1000)).max_bytes == 1000


def test_sizes_without_a_limit() -> None:
    """0 stands for no limit where it may; msccl gets a number, a modest one where it allocates scratch for it."""
    ring = programs.ring_allreduce(4)
    assert read(emit(ring)).max_bytes == 0
    assert read(emit(ring, runtime="msccl")).max_bytes == (1 << 37) + 1
    assert read(emit(programs.ring_allreduce(4, fused=False), runtime="msccl")).max_bytes == (1 << 27) + 1
    assert read(emit(ring, min_bytes=1024)).min_bytes == 1024


def test_a_program_no_fifo_suffices_for_is_refused() -> None:
    """Three sends before the first receive, both ways: more than a FIFO of 2 holds at any size, but not one of 8."""
    code = [
        [*[(Opcode.SEND, I, 3 * (1 - r) + k, I, 0, 1, ()) for k in range(3)],
         *[(Opcode.RECV, I, 0, O, 3 * (1 - r) + k, 1, ()) for k in range(3)],
         (Opcode.COPY, I, 3 * r, O, 3 * r, 3, ())]
        for r in range(2)
    ]  # fmt: skip
    program = Program.build(Collective("alltoall", 2), 3, [0, 0], [(0, 1, 1, 0), (1, 0, 0, 0)], code)
    with pytest.raises(
        CollcError, match="FIFOs of depth 2 are too short: cycle of 2 waits: rank 0, threadblock 0, step 2"
    ):
        emit(program)
    assert verify_text(emit(program, proto="LL")).ok


# ---- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runtime": "nccl"}, "`runtime` .* needs one of executor, msccl, rccl, found nccl"),
        ({"proto": "simple"}, "`proto` .* needs one of Simple, LL, LL128, found simple"),
        ({"channels": 33}, "`channels` .* needs 1 to 32 for runtime executor, found 33"),
        ({"threadblocks": 0}, "`threadblocks` .* needs 1 to 1024"),
        ({"min_bytes": -1}, "`min-bytes` .* needs 0 to"),
        ({"min_bytes": 10, "max_bytes": 9}, r"`max-bytes` .* needs 10 \(`min-bytes`\) to [0-9]+, found 9"),
        ({"algorithm": "a b"}, "`algorithm` .* letters, digits"),
        ({"nthreads": 256}, "does not read the option `nthreads`"),
        ({"inplace": False, "outofplace": False}, "no call would use the file"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(CollcError, match=message) as failure:
        MscclXml(**options)  # type: ignore[arg-type]
    assert failure.value.exit_status == 2


def test_limits_tell_the_passes_what_the_runtime_takes() -> None:
    rccl = MscclXml(runtime="rccl", channels=3).limits
    assert (rccl.max_threadblocks, rccl.max_steps, rccl.max_channels, rccl.max_count) == (64, 64, 3, 71)
    assert (rccl.fifo_depth, rccl.fused) == (2, False)
    msccl = MscclXml(runtime="msccl", proto="LL128").limits
    assert (msccl.max_threadblocks, msccl.max_steps, msccl.fifo_depth, msccl.fused) == (108, 256, 8, True)


def test_nthreads_and_name_are_written() -> None:
    algorithm = read(emit(programs.ring_allgather(3), runtime="msccl", nthreads=256, algorithm="mine"))
    assert (algorithm.nthreads, algorithm.name) == (256, "mine")
    with pytest.raises(CollcError, match="multiple of 32 up to 640, found 100"):
        emit(programs.ring_allgather(3), runtime="msccl", nthreads=100)


def test_the_header_says_what_a_reader_must_know() -> None:
    rooted = read(emit(programs.broadcast_chain(3, 2), runtime="msccl")).comments
    assert rooted[0].startswith("collc: broadcast of 3 ranks by chain")
    assert any("right for root 2 only" in line for line in rooted)
    assert any("in place only" in line for line in rooted)
