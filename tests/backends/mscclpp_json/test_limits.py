"""The executor's limits and traps, one program for each; the sizes of calls; several plans of one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import pytest
from commands import Ran
from hypothesis import given
from hypothesis import strategies as st
from one_sided_programs import ring, ring_of_packets
from plan_texts import ring_plan

from collc.backends.mscclpp_json import MscclppJson
from collc.backends.mscclpp_json.bundle import FIXED_NAMES, Member, check_together, fixed_name
from collc.backends.mscclpp_json.limits import broken_limits, check_residency
from collc.backends.mscclpp_json.reader import read
from collc.backends.mscclpp_json.runtimes import MAX_BYTES, RUNTIMES
from collc.backends.mscclpp_json.verify import load, verify_text
from collc.backends.mscclpp_json.windows import counted_chunks, sizes_of
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import Channel, Item, OneSided, Operation, Transport
from collc.ir.program import Buffer

IN, OUT, SCRATCH = Buffer
MEMORY, PORT = Transport.MEMORY, Transport.PORT
NOP = Operation(Op.NOP)


def program(
    *operations: Operation, ranks: int = 2, each: int = 1, loops: Sequence[tuple[int, int]] = (), **more: Any
) -> OneSided:
    """Return a program of rank 0 with these operations, and ``each`` channels of both transports to every peer."""
    peers = [(rank, peer) for rank in range(ranks) for peer in range(ranks) if rank != peer and 0 in (rank, peer)]
    channels = [Channel(rank, peer, kind) for rank, peer in peers for _ in range(each) for kind in (MEMORY, PORT)]
    return OneSided.build(
        Collective("allreduce", ranks), 1, [(ranks, ranks, 4)] * ranks, channels, [(0, operations)],
        semaphores=[(0, 0)] * 20, loops=loops, **more,
    )  # fmt: skip


def local(buffer: Buffer, offset: int = 0, count: int = 1) -> Item:
    """Return an item of rank 0."""
    return Item(0, buffer, offset, count)


def remote(buffer: Buffer, offset: int = 0, rank: int = 1) -> Item:
    """Return an item of a peer of rank 0."""
    return Item(rank, buffer, offset, 1)


def put(*src: Item, to: Buffer = IN, kind: Transport = MEMORY) -> Operation:
    """Return a put of items to rank 1."""
    links = tuple(range(1, 2 * len(src), 2)) if kind is PORT else ()
    return Operation(Op.PUT, kind, links, src, tuple(remote(to, item.offset) for item in src))


BROKEN = {
    "65 operations": (program(*[NOP] * 65), "C0669", "65 operations, the executor takes 64"),
    "a pipeline of 64": (program(*[Operation(Op.NOP, loop=0)] * 64, loops=[(16, 1)]), "C0669", "65 operations"),
    "17 channels": (
        program(*[Operation(Op.SIGNAL, MEMORY, (2 * k,)) for k in range(17)], ranks=18), "C0670",
        "17 channels by memory",
    ),
    "17 buffers": (
        program(*[Operation(Op.PUT, MEMORY, (), (local(IN),), (remote(IN, 0, k),)) for k in range(1, 18)], ranks=18),
        "C0670", "17 remote buffers by memory",
    ),
    "9 ids": (program(Operation(Op.WAIT, MEMORY, tuple(range(0, 18, 2))), ranks=10), "C0671", "9 channels"),
    "17 semaphores": (program(Operation(Op.SEM_RELEASE, links=tuple(range(17)))), "C0671", "17 semaphores"),
    "11 sources": (
        program(Operation(Op.RE, src=(local(IN),) * 11, dst=(local(OUT),))), "C0672", "11 sources",
    ),
    "11 destinations": (program(put(*[local(IN)] * 11)), "C0672", "11 destinations"),
    "barrier 16": (program(Operation(Op.BARRIER, number=16, blocks=1)), "C0675", "barrier 16"),
    "a bare flush": (program(Operation(Op.FLUSH, PORT, (1,))), "C0678", "does nothing"),
    "a crossed get": (
        program(Operation(Op.GET, MEMORY, (), (remote(IN, 1),), (local(IN, 0),))), "C0679", "at the offset of its dest",
    ),
    "two source buffers": (program(put(local(IN), local(SCRATCH))), "C0681", "from the first one's"),
    "alignment": (program(NOP, alignment=8), "C0682", "8"),
    "packets in input": (
        program(Operation(Op.UPKT, src=(local(IN),), dst=(local(OUT),)), packets=True), "C0683", "scratch only",
    ),
    "packets and Simple": (
        program(Operation(Op.UPKT, src=(local(SCRATCH, 2),), dst=(local(OUT),))), "C0683", "twice their chunks",
    ),
    "plain and double scratch": (program(put(local(IN), to=SCRATCH), double_scratch=True), "C0684", "only packets"),
    "pipeline of other chunks": (
        program(Operation(Op.COPY, src=(local(IN),), dst=(local(OUT),), loop=0), loops=[(16, 2)]), "C0685",
        "other chunks",
    ),
    "slices of 24 bytes": (program(Operation(Op.NOP, loop=0), loops=[(24, 1)]), "C0685", "24 bytes"),
    "folded sums": (
        program(
            Operation(Op.RE, src=(local(SCRATCH), local(IN)), dst=(local(IN),), loop=0), loops=[(16, 1)], reuse=True,
        ), "C0685", "adds scratch and other buffers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_every_limit_and_trap_has_its_code(name: str) -> None:
    broken, code, found = BROKEN[name]
    findings = [one for one in broken_limits(broken) if one.code != "C0676"]
    assert {code} == {one.code for one in findings} and any(found in one.message for one in findings), findings


RIGHT = {
    "64 operations": program(*[NOP] * 64),
    "16 channels of each": program(
        *[Operation(Op.SIGNAL, kind, (2 * k + (kind is PORT),)) for k in range(16) for kind in (MEMORY, PORT)],
        ranks=17,
    ),
    "8 ids": program(Operation(Op.WAIT, MEMORY, tuple(range(0, 16, 2))), ranks=9),
    "10 pairs": program(put(*[local(IN)] * 10)),
    "barrier 15": program(Operation(Op.BARRIER, number=15, blocks=1)),
    "a flush": program(Operation(Op.FLUSH, PORT, (1,), (), (local(IN),))),
    "a get": program(Operation(Op.GET, MEMORY, (), (remote(OUT, 1),), (local(IN, 1),))),
    "several buffers by a port": program(put(local(IN), local(SCRATCH), kind=PORT), each=2),
    "packets and Simple with room": program(Operation(Op.UPKT, src=(local(SCRATCH, 1),), dst=(local(OUT),))),
    "own scratch": program(Operation(Op.COPY, src=(local(IN),), dst=(local(SCRATCH),)), double_scratch=True),
    "folded alike": program(
        Operation(Op.RE, src=(local(IN), local(OUT)), dst=(local(IN),), loop=0), loops=[(16, 1)], reuse=True,
    ),
}  # fmt: skip


def test_puts_over_ports_from_the_caller_s_buffers_are_a_warning() -> None:
    (one,) = broken_limits(program(put(local(IN), kind=PORT)))
    assert one.code == "C0693" and one.mild
    assert not broken_limits(program(put(local(SCRATCH), kind=PORT)))


@pytest.mark.parametrize("name", RIGHT)
def test_the_largest_numbers_are_allowed(name: str) -> None:
    assert [one for one in broken_limits(RIGHT[name]) if not one.mild] == []


def test_version_0_8_has_fewer_items_and_operations() -> None:
    wide = program(put(*[local(IN)] * 10))
    assert [one.code for one in broken_limits(wide, RUNTIMES["0.8"])] == ["C0672", "C0672"]
    slot = local(SCRATCH)
    newer = program(Operation(Op.RECPKT, src=(local(IN), slot), dst=(local(IN), local(SCRATCH, 1))), packets=True)
    assert [one.code for one in broken_limits(newer, RUNTIMES["0.8"])] == ["C0668"]
    assert broken_limits(newer, RUNTIMES["0.9"]) == []


def test_more_than_8_ranks_of_a_node_beside_ports_are_a_warning() -> None:
    (one,) = broken_limits(program(NOP, ranks=10))
    assert one.code == "C0676" and one.mild
    assert not broken_limits(ring_of_packets(10))


def test_blocks_that_cannot_all_run_are_refused_with_the_number() -> None:
    found, _ = check_residency(ring(3), None)
    assert not found
    wide = attrs.evolve(program(NOP), block_rank=[0] * 5, block_start=[0, 1, 1, 1, 1, 1])
    (one,) = check_residency(wide, 4)[0]
    assert one.code == "C0673" and one.excess is not None and (one.excess.found, one.excess.allowed) == (5, 4)
    with pytest.raises(CollcError, match="C0673") as refused:
        MscclppJson(gpu=4, inplace=True).emit(wide)
    assert "fewer chunks" in str(refused.value.diagnostics[0].hint)
    assert MscclppJson(gpu=4).instead(one.excess)[0] == "gpu"


# ---- sizes


def test_the_window_of_a_plan_is_what_the_executor_takes() -> None:
    sizes = sizes_of(ring(3), RUNTIMES["0.9"])
    assert sizes is not None and (sizes.unit, sizes.low) == (48, 48)
    assert sizes.high < MAX_BYTES <= sizes.high + 48
    packets = sizes_of(ring_of_packets(3), RUNTIMES["0.9"])
    assert packets is not None and packets.high // 3 * 4 * 4 < MAX_BYTES, "4 slots, twice for flags, twice for halves"
    shared = sizes_of(attrs.evolve(ring(3), reuse=True), RUNTIMES["0.9"])
    assert shared is not None and shared.high == 3 * (32 << 20), "2 slots in 64 MiB"


def test_slices_need_units_in_older_versions() -> None:
    cut = program(Operation(Op.COPY, src=(local(IN),), dst=(local(OUT),), share=0, shares=4))
    assert [sizes_of(cut, RUNTIMES[name]).low for name in ("0.9", "main")] == [128, 32]  # type: ignore[union-attr]


def test_sizes_count_the_output_of_an_allgather() -> None:
    sizes = [(1, 3, 0)] * 3
    gathering = OneSided.build(Collective("allgather", 3), 1, sizes, [], [])
    scattering = OneSided.build(Collective("reduce-scatter", 3), 1, [(3, 1, 0)] * 3, [], [])
    assert counted_chunks(gathering) == counted_chunks(scattering) == 3


@given(st.integers(0, 4000), st.integers(1, 4000), st.sampled_from([3, 5]))
def test_the_window_has_exactly_the_calls_of_the_options(low: int, more: int, ranks: int) -> None:
    found = sizes_of(ring(ranks), RUNTIMES["main"], low, low + more)
    unit = 16 * ranks
    due = [size for size in range(unit, low + more + 1, unit) if size >= low]
    assert (found is None) == (not due)
    assert found is None or (found.low, found.high) == (due[0], due[-1])


def test_a_window_without_calls_is_refused_with_the_sizes_that_fit() -> None:
    with pytest.raises(CollcError, match="C0674") as refused:
        MscclppJson(max_bytes=40, inplace=True).emit(ring(3))
    assert "48 to 42949672" in str(refused.value.diagnostics[0].notes)
    assert Fraction(40) < 48


# ---- plans of any tool


def test_plans_are_judged_with_a_verdict_for_each_check() -> None:
    report = verify_text(json.dumps(ring_plan(4)))
    assert report.ok and (report.kind, report.collective, report.ranks) == ("mscclpp-json", "allreduce", 4)
    wrong = json.loads(json.dumps(ring_plan(4)))
    wrong["gpus"][1]["threadblocks"][0]["ops"][6] = {"name": "nop"}
    assert [check.name for check in verify_text(json.dumps(wrong)).failed]


def test_a_name_that_says_nothing_needs_the_collective() -> None:
    text = json.dumps(ring_plan(3) | {"collective": "mine"})
    (failed,) = verify_text(text).failed
    assert failed.name == "collective" and "--collective" in failed.hint
    assert verify_text(text, collective="allreduce").ok
    assert not verify_text(json.dumps(ring_plan(3) | {"collective": "broadcast"})).ok


def test_only_right_plans_become_programs() -> None:
    plan = json.loads(json.dumps(ring_plan(3)))
    assert load(read(json.dumps(plan))).num_operations == ring(3).num_operations
    plan["gpus"][1]["threadblocks"][0]["ops"][4] = {"name": "nop"}
    plan["gpus"][1]["threadblocks"][0]["ops"][5] = {"name": "nop"}
    for change, code in (({}, "C0696"), ({"collective": "mine"}, "C0687"), ({"buffer_alignment": 8}, "C0682")):
        with pytest.raises(CollcError, match=code):
            load(read(json.dumps(plan | change)))


def test_options_of_verify_are_judged() -> None:
    text = json.dumps(ring_plan(3))
    for more in ({"runtime": "2"}, {"multiprocessors": 0}):
        with pytest.raises(CollcError, match="C0686"):
            verify_text(text, **more)  # type: ignore[arg-type]


def members(*changes: dict[str, object]) -> list[Member]:
    """Return rings with other settings, each in a file of its own."""
    return [Member(f"{n}.json", read(json.dumps(ring_plan(3) | {"name": f"p{n}", **c}))) for n, c in enumerate(changes)]


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        (({"max_message_size": 96}, {"min_message_size": 97}), ""),
        (({"max_message_size": 96}, {"min_message_size": 96}), "windows"),
        (({"max_message_size": 100}, {"min_message_size": 97}), ""),
        (({}, {"inplace": False}), "modes"),
        (({"max_message_size": 96, "name": "a"}, {"min_message_size": 97, "name": "a"}), "names"),
        (({}, {"collective": "broadcast"}), ""),
    ],
)
def test_plans_of_one_folder_are_held_against_each_other(changes: tuple[dict[str, object], ...], wrong: str) -> None:
    assert [check.name for check in check_together(members(*changes)) if not check.ok] == [wrong][: bool(wrong)]


def test_fixed_names_of_c_programs_are_named() -> None:
    (one,) = members({})
    for name, ranks in FIXED_NAMES.items():
        assert f"of {ranks} ranks, but the plan is allreduce of 3 ranks" in fixed_name(f"out/{name}", one.plan)
    assert fixed_name("allreduce.json", one.plan) == ""


def test_the_command_verifies_files_and_folders(collc: Callable[..., Ran], tmp_path: Path) -> None:
    for name, more in (("a.json", {"max_message_size": 96}), ("b.json", {"inplace": False, "name": "b"})):
        (tmp_path / name).write_text(json.dumps(ring_plan(3) | more))
    ran = collc("verify", str(tmp_path / "a.json"), "--runtime", "0.9", "--multiprocessors", "4")
    assert ran.status == 0 and "verified: allreduce on 3 ranks (mscclpp-json)" in ran.out
    ran = collc("verify", str(tmp_path))
    assert ran.status == 1 and "FAILED  modes" in ran.out and "together: WRONG" in ran.out
    (tmp_path / "none").mkdir()
    assert "no `.json` or `.xml` file in the folder" in collc("verify", str(tmp_path / "none")).err
    fixed = tmp_path / next(iter(FIXED_NAMES))
    fixed.write_text((tmp_path / "a.json").read_text())
    assert "[C0695]" in collc("verify", str(fixed)).err
