"""What the MSCCL-XML backend writes: read by the runtimes' tokeniser, within every limit, meaning what the program
means."""

from __future__ import annotations

import attrs
import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_drafts import copy, drafted, emit, local
from msccl_files import nodes
from sampling import examples

from collc.backends.msccl_xml import MscclXml, read, to_program, verify_text, write
from collc.backends.msccl_xml.model import Algorithm
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.verify import verify_program

I, O, S = Buffer  # noqa: E741
ALGO = [
    "name",
    "proto",
    "nchannels",
    "nchunksperloop",
    "ngpus",
    "coll",
    "inplace",
    "outofplace",
    "minBytes",
    "maxBytes",
]
STEP = ["s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"]

PROGRAMS = [
    programs.ring_allgather(4, 2),
    programs.ring_allreduce(4),
    programs.ring_allreduce(5, 2, fused=False),
    programs.ring_reduce_scatter(4),
    programs.recursive_doubling_allgather(8),
    programs.allpairs_allreduce(5),
    programs.alltoall(4),
    programs.alltoall(3, apart=True),
    programs.broadcast_chain(4, 1),
    programs.reduce_chain(4, 2),
    programs.scratch_sum(4),
]


def steps_of(algorithm: Algorithm, rank: int, block: int) -> list[str]:
    return [s.type for s in algorithm.gpus[rank].threadblocks[block].steps]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
@pytest.mark.parametrize("runtime", ["executor", "msccl", "rccl"])
def test_what_is_written_verifies(program: Program, runtime: str) -> None:
    """Every runtime that can carry a program gets a file that reads back and executes right."""
    target = MscclXml(runtime=runtime)  # type: ignore[arg-type]
    fused = any(Opcode(op).receives and (Opcode(op).sends or Opcode(op).reads_src) for op in program.opcode)
    if runtime == "rccl" and fused:
        with pytest.raises(CollcError, match=r"rank ., threadblock 0, step .*does not run"):
            target.emit(program)
        return
    artifacts = target.emit(program)
    report = target.check(program, artifacts)
    assert report.ok, report.failed
    assert report.kind == "msccl-xml"
    assert report.collective == program.collective.kind
    assert report.ranks == program.num_ranks
    assert verify_text(artifacts[0].text).ok


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_the_text_obeys_the_tokeniser(program: Program) -> None:
    """The runtimes' own tokeniser reads all ten attributes of every algorithm and step, one element a line."""
    text = emit(program)
    assert not text.startswith("<?")
    assert "\t" not in text and "\r" not in text and text.endswith("</algo>\n")
    found = list(nodes(text))
    assert [list(a) for kind, name, a in found if name == "algo" and kind == "open"] == [ALGO]
    assert {tuple(a) for _, name, a in found if name == "step"} == {tuple(STEP)}
    assert sum(name == "step" for _, name, _ in found) == read(text).num_steps
    assert all(line.count("<") == 1 for line in text.splitlines())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_what_is_written_means_the_program(program: Program) -> None:
    """Read back, the file is the same instructions in the same order, with waits at least as strong."""
    again = to_program(read(emit(program)), program.collective).program
    real = again.opcode != Opcode.NOP
    assert again.chunks == program.chunks
    for column in ("opcode", "src_buffer", "src_offset", "dst_buffer", "dst_offset", "count"):
        assert (getattr(again, column)[real] == getattr(program, column)).all(), column
    for column in ("block_rank", "send_peer", "recv_peer", "channel", "scratch"):
        assert (getattr(again, column) == getattr(program, column)).all(), column
    mine = verify_program(program, inplace=False, fifo_depth=2)
    assert [c.name for c in verify_program(again, inplace=False, fifo_depth=2).checks] == [c.name for c in mine.checks]


def test_writing_what_was_read_gives_the_same_bytes() -> None:
    for program in PROGRAMS:
        text = emit(program)
        assert write(read(text)) == text
        assert emit(program) == text


def test_chunk_counts_are_those_of_the_collective() -> None:
    """i, o and s chunks follow the buffers; their product with the ranks is nchunksperloop."""
    for program, chunks, loop in (
        (programs.ring_allgather(4, 2), (2, 8, 0), 8),
        (programs.ring_reduce_scatter(4, 3), (12, 3, 0), 12),
        (programs.ring_allreduce(4, fused=False), (4, 4, 1), 4),
        (programs.alltoall(3, 2), (6, 6, 0), 6),
    ):
        algorithm = read(emit(program))
        gpu = algorithm.gpus[1]
        assert (gpu.i_chunks, gpu.o_chunks, gpu.s_chunks) == chunks
        assert algorithm.nchunksperloop == loop


def test_reduce_scatter_is_spelled_as_the_runtime_wants() -> None:
    program = programs.ring_reduce_scatter(4)
    assert read(emit(program, runtime="msccl")).coll == "reduce_scatter"
    assert read(emit(program, runtime="executor")).coll == "reducescatter"


# ---- waits


def add(src: int, dst: int, *deps: int, count: int = 1) -> tuple[object, ...]:
    return (Opcode.REDUCE, S, src, S, dst, count, deps)


def waits(algorithm: Algorithm, block: int) -> list[tuple[str, int, int, int]]:
    return [(s.type, s.depid, s.deps, s.hasdep) for s in algorithm.gpus[0].threadblocks[block].steps]


def test_several_waits_become_nops_and_steps_are_renumbered() -> None:
    """The instruction carries the last wait itself; who waits for it uses its number after the nops."""
    program = local([[copy(0, 1)], [copy(2, 3)], [copy(4, 5)], [copy(6, 7), copy(1, 8, 0, 1, 2)], [copy(8, 9, 4)]])
    draft = drafted(program)
    assert waits(draft, 3) == [
        ("cpy", -1, -1, 0), ("nop", 0, 0, 0), ("nop", 1, 0, 0), ("cpy", 2, 0, 1),
    ]  # fmt: skip
    assert waits(draft, 4) == [("cpy", 3, 3, 0)]
    assert [waits(draft, b)[0][3] for b in (0, 1, 2)] == [1, 1, 1]
    assert [s.s for s in draft.gpus[0].threadblocks[3].steps] == [0, 1, 2, 3]


def test_flags_stand_exactly_where_someone_waits() -> None:
    program = local([[copy(0, 1), copy(1, 2), copy(2, 3)], [copy(2, 4, 1)]])
    assert [w[3] for w in waits(drafted(program), 0)] == [0, 1, 0]


def test_of_several_steps_of_a_block_only_the_latest_is_waited_for() -> None:
    program = local([[copy(0, 1), copy(0, 2)], [copy(1, 3, 0, 1), copy(2, 4, 0)]])
    draft = drafted(program)
    assert waits(draft, 1) == [("cpy", 0, 1, 0), ("cpy", -1, -1, 0)]
    assert [w[3] for w in waits(draft, 0)] == [0, 1]


def test_waits_of_nop_instructions_pass_on() -> None:
    """A NOP's waits go to the next instruction; waiting for a NOP is waiting for all it stands behind."""
    nop = (Opcode.NOP, I, 0, I, 0, 0)
    program = local([[copy(0, 1)], [copy(2, 3), (*nop, [0]), copy(1, 4)], [copy(5, 6), (*nop, [0])], [copy(1, 7, 5)]])
    draft = drafted(program)
    assert waits(draft, 1) == [("cpy", -1, -1, 0), ("cpy", 0, 0, 0)]
    assert waits(draft, 2) == [("cpy", -1, -1, 1)]
    assert waits(draft, 3) == [("nop", 0, 0, 0), ("cpy", 2, 0, 0)]


def test_runs_of_reductions_are_fenced_where_merging_would_change_them() -> None:
    """Unequal counts, an overlap and the 17th source end a run by a flag nobody waits for."""
    same = drafted(local([[add(k, 0) for k in range(1, 5)]]))
    assert [w[3] for w in waits(same, 0)] == [0, 0, 0, 0]
    unequal = drafted(local([[add(5, 0), add(10, 0, count=2), add(20, 0, count=2)]]))
    assert [w[3] for w in waits(unequal, 0)] == [1, 0, 0]
    overlapping = drafted(local([[add(5, 0), add(0, 0)]]))
    assert [w[3] for w in waits(overlapping, 0)] == [1, 0]
    long = drafted(local([[add(k, 0) for k in range(1, 36)]]))
    assert [k for k, w in enumerate(waits(long, 0)) if w[3]] == [15, 31]


def test_foreign_ends_are_documented() -> None:
    """A send carries the receiver's destination, a receive the sender's source."""
    algorithm = read(emit(programs.allpairs_allreduce(3)))
    first = algorithm.gpus[0].threadblocks[0].steps  # with rank 1, of which rank 0 is the first peer
    send, receive = first[0], first[1]
    assert (send.type, send.srcbuf, send.srcoff, send.dstbuf, send.dstoff) == ("s", "i", 1, "s", 0)
    assert (receive.type, receive.srcbuf, receive.srcoff, receive.dstbuf, receive.dstoff) == ("r", "i", 0, "s", 0)


def test_fused_reductions_name_the_local_source() -> None:
    """rrc reads its own rank's src: in this reduce, local and remote places differ everywhere."""
    program = programs.scratch_sum(3)
    algorithm = read(emit(program))
    step = algorithm.gpus[0].threadblocks[0].steps[1]
    assert (step.type, step.srcbuf, step.srcoff) == ("rrc", "s", 1)
    foreign = attrs.evolve(step, srcbuf="o", srcoff=0)
    assert step != foreign


def test_a_rank_without_threadblocks_gets_an_idle_one() -> None:
    program = Program.build(Collective("allreduce", 1), 1, [0], [], [])
    text = emit(program)
    assert [(b.send, b.recv, b.chan, b.steps) for b in read(text).gpus[0].threadblocks] == [(-1, -1, 0, ())]
    assert (read(text).inplace, read(text).outofplace) == (1, 0)
    assert verify_text(text).ok


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(2, 9),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(["executor", "msccl"]),
    st.sampled_from(["Simple", "LL"]),
)
def test_any_ring_compiles_and_verifies(ranks: int, chunks: int, fused: bool, runtime: str, proto: str) -> None:
    program = programs.ring_allreduce(ranks, chunks, fused=fused)
    target = MscclXml(runtime=runtime, proto=proto)  # type: ignore[arg-type]
    report = target.check(program, target.emit(program))
    assert report.ok, report.failed
