"""What the MSCCL-XML backend writes: read by the runtimes' tokeniser, within every limit, meaning what the program
means."""

from __future__ import annotations

import attrs
import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_files import TokenError, nodes, xml

from collc.backends.msccl_xml import MscclXml, read, to_program, verify_text, write
from collc.backends.msccl_xml.document import document
from collc.backends.msccl_xml.limits import check_limits
from collc.backends.msccl_xml.model import Algorithm
from collc.backends.msccl_xml.profiles import PROFILES
from collc.backends.msccl_xml.tokens import check_tokens
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


def emit(program: Program, **options: object) -> str:
    (artifact,) = MscclXml(**options).emit(program)  # type: ignore[arg-type]
    return artifact.text


def codes(failure: pytest.ExceptionInfo[CollcError]) -> list[str]:
    return [d.code for d in failure.value.diagnostics]


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
    report = target.check(artifacts)
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


def local(rows: list[list[tuple[object, ...]]], chunks: int = 1, scratch: int = 40) -> Program:
    """A program of one rank: blocks without peers."""
    blocks = [(0, -1, -1, 0)] * len(rows)
    return Program.build(Collective("allreduce", 1), chunks, [scratch], blocks, rows)  # type: ignore[arg-type]


def copy(src: int, dst: int, *deps: int) -> tuple[object, ...]:
    return (Opcode.COPY, S, src, S, dst, 1, deps)


def add(src: int, dst: int, *deps: int, count: int = 1) -> tuple[object, ...]:
    return (Opcode.REDUCE, S, src, S, dst, count, deps)


def drafted(program: Program) -> Algorithm:
    return document(program, coll="allreduce", proto="Simple", name="t")


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


# ---- limits


GATHER = Program.build(
    Collective("gather", 1, 0), 1, [0], [(0, -1, -1, 0)], [[(Opcode.COPY, I, 0, O, 0, 1, ())]]
)  # fmt: skip


@pytest.mark.parametrize(
    ("code", "program", "options", "message"),
    [
        ("C0607", GATHER, {}, "cannot carry the collective `gather`"),
        ("C0621", programs.ring_allgather(33), {}, "rank 0, threadblock 0 has 65 steps; .* takes 64"),
        ("C0622", programs.allpairs_allreduce(12), {"threadblocks": 8}, "rank 0 has 12 threadblocks; at most 8"),
        ("C0622", programs.alltoall(66), {"runtime": "rccl"}, "rank 0 has 66 threadblocks; RCCL takes 64"),
        ("C0623", programs.alltoall(33), {}, "rank 0 has 32 threadblocks with a send peer on channel 0; at most 31"),
        ("C0624", programs.broadcast_chain(2, 0, 36), {}, "rank 0, threadblock 0, step 0 moves 72 chunks; at most 71"),
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
        "C0625": "rank 0, threadblock 129, step 0 waits for threadblock 128; only 0 to 127 can be waited for "
        "(the number is kept in one signed byte)"
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
    assert "1025 ranks; the parsers hold 1024" in messages


def test_steps_are_counted_with_the_nops() -> None:
    """62 copies and one with 3 waits are 65 steps."""
    waits_for = [[copy(0, 1)], [copy(0, 2)], [copy(0, 3)]]
    assert found_limits([*waits_for, [copy(0, 9)] * 61 + [copy(1, 4, 0, 1, 2)]]) == {}
    found = found_limits([*waits_for, [copy(0, 9)] * 62 + [copy(1, 4, 0, 1, 2)]])
    assert found == {"C0621": "rank 0, threadblock 3 has 65 steps; msccl-executor-nccl takes 64"}
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
    with pytest.raises(CollcError, match=r"cannot be used in place: .*races") as failure:
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
    with pytest.raises(CollcError, match="cannot be used out of place"):
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
    with pytest.raises(CollcError, match="at most 8388608 bytes will do") as failure:
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
        ({"min_bytes": 10, "max_bytes": 9}, "`max-bytes` .* needs 10 to [0-9]+, found 9"),
        ({"algorithm": "a b"}, "`algorithm` .* letters, digits"),
        ({"nthreads": 256}, "`nthreads` .* does not read it"),
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


# ---- the tokeniser's model


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_token_check_agrees_with_the_model(data: st.DataObject) -> None:
    """One character changed anywhere: what still is XML passes the check exactly if the model gets through."""
    text = xml("allreduce", 2, [[(1, 1, 0, ["s i0 o0 1", "r i0 o0 1 !"])], [(0, 0, 0, ["s i0 o0 1"])]], (2, 2, 0))
    text = f"<!-- about it -->\n{text}"
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(
        st.sampled_from(["", " ", "\t", "\n", "\r", "'", '"', "=", "/", ">", "<!-- x -->", "<!--a=b -->", "x", " q"])
    )
    cut = data.draw(st.integers(0, 2))
    changed = text[:at] + put + text[at + cut :]
    try:
        read(changed)
    except CollcError:
        return
    try:
        list(nodes(changed))
        passes = True
    except TokenError:
        passes = False
    assert (check_tokens(changed) == []) == passes, changed


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("<algo", '<?xml version="1.0"?>\n<algo', "line 1: an XML declaration"),
        ("  <gpu", "\t<gpu", "line 2: a tab between elements"),
        (" proto=", "\n proto=", "line 1: a line break inside a tag"),
        (" proto=", "\tproto=", "line 1: a tab inside a tag"),
        ('"Simple"', "'Simple'", "values need double quotes"),
        ("<algo", "<!--size=1 --><algo", "no `=` before its first space"),
        ('name="test"', f'name="{"x" * 300}"', "overruns a buffer"),
        ('name="test"', " ".join(f'a{k}="1"' for k in range(17)), "`proto` is the 18th of its element where 16 are"),
        ("<algo", "<?go now?><algo", "a processing instruction"),
        ("<gpu", "<gpu\t", "a tab inside a tag"),
        ("</tb>", "</tb >", "a closing tag holds its name alone"),
        ('type="cpy"', 'type="&#99;py"', "do not expand"),
    ],
)
def test_what_stops_the_tokeniser_is_named(before: str, after: str, message: str) -> None:
    text = xml("allreduce", 1, [[(-1, -1, 0, ["cpy i0 o0 1"])]], (1, 1, 0), nchunksperloop=1)
    assert verify_text(text).ok
    report = verify_text(text.replace(before, after, 1))
    failed = {check.name: check.detail for check in report.failed}
    assert message in failed["tokens"]


@settings(max_examples=60, deadline=None)
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
    report = target.check(target.emit(program))
    assert report.ok, report.failed
