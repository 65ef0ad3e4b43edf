"""oneCCL-XML of programs: valid, right when executed, the same after reading and writing."""

from __future__ import annotations

from collections import Counter
from functools import cache

import attrs
import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.backends.base import Window
from collc.backends.oneccl_xml import OneCclXml, load, read, verify_text
from collc.backends.oneccl_xml.model import Document
from collc.backends.oneccl_xml.writer import write
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Opcode, Program

I, O, S = Buffer  # noqa: E741

SCHEDULES = {
    "torus": "topology t = torus(2, 3);",
    "hypercube": "topology t = hypercube(3);",
    "forest": "topology t = hypercube(2);",
    "swing": "topology t = torus(8);",
}


@cache
def _program(name: str, kind: str) -> Program:
    by = {"forest": "forest", "swing": "swing"}.get(name, "bfb")
    text = f"{SCHEDULES[name]} collective g = {kind} on t; schedule g using {by};"
    program = collc.compile_source(text, target="ir").program
    assert program is not None
    return program


def _emitted(program: Program, **options: object) -> str:
    return OneCclXml(**options).emit(program)[0].text  # type: ignore[arg-type]


def _connections(document: Document) -> list[tuple[int, int, int, int]]:
    return [(r, t, m.peer, m.channel) for r, rank in enumerate(document.ranks) for t, thread in enumerate(rank.threads)
            for step in thread.steps for m in step.messages]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["allreduce", "allgather", "reduce-scatter"])
def test_schedules_become_files_that_are_right(name: str, kind: str) -> None:
    program = _program(name, kind)
    for threads in (1, 5):
        target = OneCclXml(threads=threads)
        files = target.emit(program)
        report = target.check(program, files)
        assert report.ok, [(c.name, c.detail) for c in report.failed]
        document = read(files[0].text)
        assert document.inplace and document.outofplace
        assert max(len(rank.threads) for rank in document.ranks) <= threads
        assert files == target.emit(program)


@pytest.mark.parametrize(
    "kind", ["alltoall", "broadcast { root: 2 }", "reduce { root: 1 }", "gather { root: 3 }", "scatter"]
)
def test_every_collective(kind: str) -> None:
    kind, _, root = kind.partition(" ")
    wanted = f"collective g = {kind} on t {root or ('{ root: 0 }' if kind == 'scatter' else '')};"
    program = collc.compile_source(f"topology t = torus(2, 2); {wanted}", target="ir").program
    assert program is not None
    for threads in (1, 3):
        assert verify_text(_emitted(program, threads=threads)).ok


_CLASSICS = {
    "ring allgather": programs.ring_allgather(4, 2),
    "ring allreduce": programs.ring_allreduce(5, 2),
    "plain ring allreduce": programs.ring_allreduce(4, 1, fused=False),
    "ring reduce-scatter": programs.ring_reduce_scatter(4, 3),
    "recursive doubling": programs.recursive_doubling_allgather(8),
    "all pairs": programs.allpairs_allreduce(4, 2),
    "broadcast": programs.broadcast_chain(5, 3),
    "reduce": programs.reduce_chain(4, 2),
    "alltoall": programs.alltoall(4, 2),
}


@pytest.mark.parametrize("name", _CLASSICS)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_programs_that_count_on_buffers_do_not_need_them_here(name: str, threads: int) -> None:
    report = verify_text(_emitted(_CLASSICS[name], threads=threads))
    assert report.ok, [(c.name, c.detail) for c in report.failed]
    assert "rendezvous" in [c.name for c in report.checks]


@settings(max_examples=examples(20))
@given(st.sampled_from(sorted(_CLASSICS)), st.integers(1, 6))
def test_reading_and_writing_change_nothing(name: str, threads: int) -> None:
    text = _emitted(_CLASSICS[name], threads=threads, min_bytes=8, max_bytes=1 << 40, algorithm="a-b.c")
    document = read(text)
    again = write(document)
    assert read(again) == document
    assert again.splitlines() == [line for line in text.splitlines() if not line.startswith("<!--")]
    assert load(text)[0] == document


def test_connections_have_one_owner_and_steps_wait_only_where_data_say_so() -> None:
    program = _program("hypercube", "allreduce")
    one, many = read(_emitted(program)), read(_emitted(program, threads=64))
    assert not any(step.syncs for rank in one.ranks for thread in rank.threads for step in thread.steps)
    assert any(step.syncs for rank in many.ranks for thread in rank.threads for step in thread.steps)
    assert sorted((r, p, c) for r, _, p, c in _connections(one)) == sorted(
        (r, p, c) for r, _, p, c in _connections(many)
    )


def _steps(document: Document) -> int:
    return max(len(thread.steps) for rank in document.ranks for thread in rank.threads)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "alone"),
    [("hypercube", "allgather", 3), ("hypercube", "reduce-scatter", 5), ("hypercube", "allreduce", 8),
     ("swing", "allgather", 7), ("swing", "allreduce", 7)],
)  # fmt: skip
def test_several_messages_of_a_connection_share_a_step_on_channels_of_their_own(
    name: str, kind: str, alone: int
) -> None:
    """As many steps as the schedule has, and one message in flight a connection; on one channel each waits its turn."""
    program = _program(name, kind)
    one, many = read(_emitted(program, lanes=1)), read(_emitted(program))
    assert one.channels == program.num_channels == 1
    assert _steps(many) == (6 if kind == "allreduce" else 3) and _steps(one) == alone
    assert sum(map(bool, _connections(one))) == sum(map(bool, _connections(many)))
    for rank in many.ranks:
        for step in (step for thread in rank.threads for step in thread.steps):
            ends = [(m.sends, m.peer, m.channel) for m in step.messages]
            assert len(ends) == len(set(ends))


@given(st.sampled_from(sorted(_CLASSICS)), st.integers(1, 4), st.integers(1, 5))
def test_files_are_right_with_any_lanes_and_threads(name: str, threads: int, lanes: int) -> None:
    report = verify_text(_emitted(_CLASSICS[name], threads=threads, lanes=lanes))
    assert report.ok, [(c.name, c.detail) for c in report.failed]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"), [("hypercube", "allgather"), ("hypercube", "allreduce"), ("torus", "allreduce")]
)
def test_one_thread_needs_hardly_more_steps_than_a_connection_has_messages(name: str, kind: str) -> None:
    document = read(_emitted(_program(name, kind), lanes=1))
    steps = {sum(bool(step.messages) for step in thread.steps) for rank in document.ranks for thread in rank.threads}
    messages = Counter(
        (r, m.peer, m.channel)
        for r, rank in enumerate(document.ranks) for thread in rank.threads for step in thread.steps
        for m in step.messages if m.sends
    )  # fmt: skip
    assert max(messages.values()) <= max(steps) <= max(messages.values()) + 1


@pytest.mark.parametrize("size", ["64 B", "1 KiB"])
def test_a_message_does_not_overwrite_what_leaves_in_the_same_step_in_place(size: str) -> None:
    """Where a block sends from the input and receives into the output, its order is what keeps them apart in place."""
    text = f"topology t = generalized_kautz(2, 5); collective c = alltoall on t {{ size: {size} }};"
    assert all(r.ok for r in collc.compile_source(text, target="oneccl-xml").collectives["c"].reports)


def test_a_lost_wait_is_noticed() -> None:
    text = _emitted(_program("hypercube", "allreduce"), threads=8)
    at = text.index("<sync")
    assert not verify_text(text[:at] + text[text.index("/>", at) + 2 :]).ok


def test_what_is_right_for_one_use_says_so() -> None:
    swaps = [[(Opcode.COPY, I, 0, O, 1, 1, ()), (Opcode.COPY, I, 1, O, 0, 1, ())]]
    wrong = Program.build(Collective("allreduce", 1), 2, [0], [(0, -1, -1, 0)], swaps)
    with pytest.raises(CollcError, match="both in place and out of place") as caught:
        _emitted(wrong)
    assert caught.value.diagnostics[0].code == "C0758"
    # overwrites its input's place with what comes before it sends what was there
    rows = [
        [(Opcode.COPY, I, r, O, r, 1, ()), (Opcode.RECV, I, 0, O, 1 - r, 1, ())] for r in (0, 1)
    ] + [[(Opcode.SEND, I, 1 - r, I, 0, 1, ())] for r in (0, 1)]  # fmt: skip
    blocks = [(0, -1, 1, 0), (0, 1, -1, 0), (1, -1, 0, 0), (1, 0, -1, 0)]
    late = Program.build(Collective("alltoall", 2), 1, [0, 0], blocks, [rows[0], rows[2], rows[1], rows[3]])
    document = read(_emitted(late))
    assert (document.inplace, document.outofplace) == (False, True)
    assert verify_text(_emitted(late)).ok
    with pytest.raises(CollcError, match="inplace") as caught:
        _emitted(late, inplace=True)
    assert caught.value.diagnostics[0].code == "C0758"


def test_idempotent_programs_are_for_least_and_largest_only() -> None:
    program = collc.compile_source(
        "topology t = torus(3); collective g = allreduce on t { op: max }; schedule g using swing;", target="ir"
    ).program
    assert program is not None
    ops = read(_emitted(program)).ops
    assert ops in (("min", "max"), ("sum", "prod", "min", "max"))
    assert verify_text(_emitted(program)).ok


def test_a_program_that_waits_for_ever() -> None:
    waits = [[(Opcode.RECV, I, 0, O, 0, 1, ()), (Opcode.SEND, O, 0, I, 0, 1, ())]] * 2
    blocks = [(r, 1 - r, 1 - r, 0) for r in (0, 1)]
    stuck = Program.build(Collective("allreduce", 2), 1, [0, 0], blocks, waits)
    with pytest.raises(CollcError) as caught:
        from collc.backends.oneccl_xml.document import document

        document(stuck, 1, name="stuck", inplace=True, outofplace=True)
    assert caught.value.diagnostics[0].code == "C0751"


def test_too_many_channels() -> None:
    program = attrs.evolve(_CLASSICS["ring allgather"], channel=[1024] * 4)
    with pytest.raises(CollcError, match="1025 channels") as caught:
        _emitted(program)
    assert caught.value.diagnostics[0].code == "C0750"


@pytest.mark.parametrize(
    "options",
    [{"threads": 0}, {"threads": 65}, {"lanes": 0}, {"lanes": 65}, {"min_bytes": -1},
     {"min_bytes": 9, "max_bytes": 8}, {"algorithm": "a b"},
     {"inplace": False, "outofplace": False}],
)  # fmt: skip
def test_options_that_make_no_sense(options: dict[str, object]) -> None:
    with pytest.raises(CollcError) as caught:
        OneCclXml(**options)  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].code == "C0759" and caught.value.exit_status == 2


def test_windows_become_sizes() -> None:
    target = OneCclXml(min_bytes=100).within(Window("bfb", 1, 4096, "upto-4096"))
    assert target is not None and (target.min_bytes, target.max_bytes) == (100, 4096)
    document = read(target.emit(_program("hypercube", "allreduce"))[0].text)
    assert (document.min_bytes, document.max_bytes, document.name) == (100, 4096, "g-upto-4096")
    assert OneCclXml(min_bytes=5000).within(Window("bfb", 1, 4096, "x")) is None


def test_the_language_and_the_command_know_it(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    from collc.cli import main

    source, out = tmp_path / "t.coll", tmp_path / "g.xml"
    source.write_text("topology t = torus(2, 2); collective g = allreduce on t; emit g as oneccl-xml { threads: 2 };")
    assert main([str(source), "-o", str(out)]) == 0
    assert main(["verify", str(out)]) == 0
    assert "oneccl-xml" in capsys.readouterr().out
    assert main(["verify", str(out), "--runtime", "rccl"]) == 2
    out.write_text(out.read_text().replace("<reduce ", "<copy ", 1))
    assert main(["verify", str(out)]) == 1
