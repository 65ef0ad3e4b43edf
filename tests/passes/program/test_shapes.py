"""Programs keep the shape of their schedule: one message a peer and step, few threadblocks, fused relays."""

from __future__ import annotations

import re
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import complete, hypercube, one_way_ring
from places import benchmark
from sampling import examples
from strategies import schedules

import collc
from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.layout import granule
from collc.ir.machine import completes_with
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.schedule import Action, Routes, Schedule
from collc.ir.topology import Topology
from collc.ir.validate import structure
from collc.ir.verify import verify_program
from collc.passes.analysis.timing import Times
from collc.passes.base import remarks
from collc.passes.lowering import joining
from collc.passes.lowering.gathering import Ends, gathered, grouped
from collc.passes.lowering.lower import Lower
from collc.passes.program import fuse
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.fuse import Fuse
from collc.passes.program.limits import steps
from collc.passes.program.pairing import _shared_work
from collc.passes.program.threadblocks import BalanceThreadblocks

shapes = benchmark("shapes")


# ---- the algorithms of the field


@pytest.mark.parametrize("target", shapes.TARGETS)
@pytest.mark.parametrize("name", shapes.ALGORITHMS)
def test_programs_are_no_larger_than_those_of_msccl_tools(name: str, target: str) -> None:
    found = shapes.row(name, target)
    if name == "alltonext" and target in ("msccl-xml{runtime=executor}", "msccl-xml{runtime=rccl}"):
        assert "cannot run `custom`" in found["refused"]
    else:
        assert found["exceeds"] == []


@pytest.mark.parametrize("size", ["4 KiB", "1 GiB"])
@pytest.mark.parametrize("name", shapes.ALGORITHMS)
def test_shapes_do_not_depend_on_the_size(name: str, size: str) -> None:
    text = re.sub("size: [^}]*", f"size: {size} ", (shapes.CASES / f"{name}.coll").read_text())
    found = shapes.shape(collc.compile_source(text, target="msccl-xml{runtime=msccl}").program)
    assert shapes.excess(found, shapes.ALGORITHMS[name], True) == []


def test_what_exceeds_is_named() -> None:
    most = shapes.Shape(3, 4, 12, 6, 0)
    more = shapes.Shape(4, 4, 13, 7, 0)
    assert shapes.excess(most, most, True) == []
    assert shapes.excess(more, most, True) == ["sends", "threadblocks", "threadblocks x steps", "instructions"]
    assert shapes.excess(attrs.evolve(more, sends=6), most, False) == []


# ---- joining transfers of one step


def sent_to(peers: dict[int, list[int]], ranks: int = 4) -> Schedule:
    """Return the first step of an allgather-like broadcast from rank 0: the shards that each peer gets."""
    network = complete(ranks)
    collective = Collective("broadcast", ranks, root=0)
    links = {(a, b): k for k, (a, b) in enumerate(zip(network.src.tolist(), network.dst.tolist(), strict=True))}
    rows = [(0, Action.COPY, shard, 0, 1, links[0, peer]) for peer, shards in peers.items() for shard in shards]
    columns = dict(zip(Schedule.COLUMNS, np.array(rows, dtype=np.int64).T, strict=True))
    return Schedule(network, collective, 1, **columns, routes=Routes.direct(network.num_links))


def all_to_all_peers(ranks: int = 4) -> dict[int, list[int]]:
    return {peer: list(range(ranks)) for peer in range(1, ranks)}


def sends(program: Program) -> list[int]:
    return program.count[program.sends].tolist()


def test_adjacent_shards_of_one_step_are_one_message() -> None:
    program = Lower(join=True).run(sent_to(all_to_all_peers()))
    assert sends(program) == [4, 4, 4] and verify_program(program).ok


def test_shards_apart_are_messages_of_their_own() -> None:
    program = Lower(join=True).run(sent_to({1: [0, 2, 3]}))
    assert sends(program) == [1, 2]


def test_joining_shards_that_are_not_adjacent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: shards 0, 2, 3, then 1 are joined as if they were neighbours."""
    schedule = sent_to(all_to_all_peers())
    columns = {"step": np.where(schedule.shard == 1, 1, 0)}
    order = np.argsort(columns["step"], kind="stable")
    late = attrs.evolve(schedule, **columns).rows(order)
    assert verify_program(Lower(join=True).run(late)).ok

    def reckless(t: dict[str, Array]) -> Array:
        same = np.ones(len(t["rank"]) - 1, dtype=bool)
        for column in ("rank", "kind", "peer", "channel", "time", "opcode"):
            same &= t[column][1:] == t[column][:-1]
        return same

    monkeypatch.setattr(joining, "_continues", reckless)
    assert not verify_program(Lower(join=True).run(late)).ok


@settings(max_examples=examples(60), deadline=None)
@given(schedules())
def test_joined_programs_are_right_and_have_no_more_messages(schedule: Schedule) -> None:
    plain, joined = Lower().run(schedule), Lower(join=True).run(schedule)
    assert structure(joined) == [] and verify_program(joined).failed == ()
    assert joined.sends.sum() <= plain.sends.sum()


@settings(max_examples=examples(40), deadline=None)
@given(schedules(), st.sampled_from(["auto", "few"]), st.booleans())
def test_programs_that_keep_their_shape_are_right(schedule: Schedule, strategy: Any, fused: bool) -> None:
    before = BalanceThreadblocks().run(Coalesce().run(Lower(join=True).run(schedule)))
    after = Fuse(strategy=strategy, turns=True, fused=fused).run(before)
    assert structure(after) == [] and verify_program(after).failed == ()
    assert completes_with(after, 2, granule(after)) or not completes_with(before, 2, 1)


# ---- own shards beside received ones


def ends(*rows: tuple[Buffer, int, int]) -> Ends:
    """Return the ends of messages of (buffer and offset sent from, offset received at)."""
    buffer, sent, received = (np.array(column) for column in zip(*rows, strict=True))
    return Ends((buffer, sent), (buffer * 0 + Buffer.OUTPUT, received))


def test_a_copy_to_the_output_joins_own_and_received_shards() -> None:
    now = ends((Buffer.INPUT, 0, 4), (Buffer.OUTPUT, 5, 5))
    then = ends((Buffer.OUTPUT, 4, 4), (Buffer.OUTPUT, 5, 5))
    one, own = np.ones(2, dtype=np.int64), np.array([True, False])
    assert gathered(np.zeros(2), one, own, now, then).tolist() == [True, False]
    assert gathered(np.arange(2), one, own, now, then).tolist() == [False, False]  # of different steps


def test_copies_into_scratch_must_save_more_than_they_cost() -> None:
    """Two own shards and a received one: one copy saves a send and a receive, two copies save nothing more."""
    one = np.ones(3, dtype=np.int64)
    then = ends((Buffer.SCRATCH, 0, 0), (Buffer.SCRATCH, 1, 1), (Buffer.SCRATCH, 2, 2))
    own = np.array([True, True, False])
    together = ends((Buffer.INPUT, 0, 0), (Buffer.INPUT, 1, 1), (Buffer.SCRATCH, 2, 2))
    assert not gathered(np.zeros(3), one, own, together, then).any()
    apart = ends((Buffer.INPUT, 0, 0), (Buffer.INPUT, 5, 1), (Buffer.SCRATCH, 2, 2))
    assert gathered(np.zeros(3), one, own, apart, then).tolist() == [True, True, False]


def test_runs_are_numbered() -> None:
    assert grouped(np.array([0, 0, 1, 1]), np.array([7, 8, 8, 8])).tolist() == [0, 1, 2, 2]
    assert grouped(np.zeros(0), np.zeros(0)).tolist() == []


def test_scratch_has_the_order_of_sending_where_that_joins_messages() -> None:
    """With three boxes, a rank sends what it collects to two of them: in the order of shards, neither is adjacent."""
    program = collc.compile(shapes.CASES / "two-step.coll", params={"boxes": 3, "gpus": 3}, target="ir").program
    assert program.sends.sum() == 9 * (2 * 3 + 2)


# ---- which threadblocks share their time


def test_shared_work_is_that_of_the_intervals() -> None:
    begin, end = [0, 4, 10, 1, 6, 0], [3, 9, 12, 5, 10, 0]
    rows = Program.build(
        Collective("broadcast", 1, root=0), 1, [0], [(0, -1, -1, 0)] * 3,
        [[(Opcode.COPY, Buffer.INPUT, 0, Buffer.OUTPUT, 0, 1, ())] * n for n in (3, 2, 1)],
    )  # fmt: skip
    times = Times(np.array(begin), np.array(end), np.arange(6))
    # blocks work 10, 8 and 0; the first two share 1..3, 4..5, 6..9
    assert _shared_work(rows, times, np.array([(0, 1), (1, 0), (0, 2), (2, 1), (0, 0)])) == [6, 6, 0, 0, 8]


# ---- chunks that can be taken as one


def test_the_granule_divides_everything() -> None:
    program = collc.compile(shapes.CASES / "one-step.coll", target="msccl-xml").program
    first = np.arange(program.num_instructions) == 0
    assert granule(program) == 4
    assert granule(attrs.evolve(program, count=np.where(first, 2, program.count))) == 2
    assert granule(attrs.evolve(program, src_offset=np.where(first, 1, program.src_offset))) == 1


def test_the_chunks_of_a_reader_are_those_of_the_program() -> None:
    """Cut in one chunk, the vector of 2 ranks has one chunk in a shard for a reader."""
    allreduce = Collective("allreduce", 2)
    assert granule(Program.build(allreduce, 1, [0, 0], [], [])) == 2
    assert granule(Program.build(allreduce, 2, [0, 0], [], [])) == 1
    assert granule(Program.build(allreduce, 3, [0, 0], [], [])) == 2


def test_a_file_takes_chunks_together_if_fifos_would_be_too_short() -> None:
    found = collc.compile(shapes.CASES / "one-step.coll", target="msccl-xml")
    (artifact,) = found.artifacts.values()
    assert 'nchunksperloop="1"' in artifact.text and 'maxBytes="0"' in artifact.text


@pytest.mark.parametrize("name", ["recursive-doubling", "one-step", "two-step"])
def test_a_file_for_calls_in_place_copies_nothing_onto_itself(name: str) -> None:
    """In place, the input of an allgather lies in its output, and that of the others is the output."""
    copies = []
    for uses in ("inplace=true", "inplace=true,outofplace=false"):
        found = collc.compile(shapes.CASES / f"{name}.coll", target=f"msccl-xml{{{uses}}}")
        (artifact,) = found.artifacts.values()
        copies.append(artifact.text.count('type="cpy"'))
    kept = 8 if name == "two-step" else 0  # own shards that ranks copy into scratch
    assert copies == [copies[0], kept] and copies[0] > kept


# ---- relays


def chain(kind: str, topology: Topology, scheduler: str) -> Program:
    root = ", root: 0" if kind == "broadcast" else ""
    text = f"collective c = {kind} on net {{ size: 1 MiB{root} }}; schedule c using {scheduler};"
    passes = f"{scheduler},discretize,lower,coalesce,balance-threadblocks"
    return collc.compile_source(text, topologies={"net": topology}, target="ir", passes=passes).program


RELAYS = [
    ("broadcast", hypercube(3), "bine"), ("broadcast", complete(5), "bine"), ("allgather", complete(8), "bine"),
    ("allreduce", complete(8), "pat"), ("allgather", hypercube(3), "bfb"), ("allreduce", one_way_ring(4), "ring"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "topology", "scheduler"), RELAYS)
def test_more_relays_are_fused_only_if_nothing_gets_worse(
    kind: str, topology: Topology, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = chain(kind, topology, scheduler)
    more = Fuse(size=1 << 20).run(before)
    monkeypatch.setattr(fuse, "_GAIN", 0)
    fewer = Fuse(size=1 << 20).run(before)
    assert _measures(more) <= _measures(fewer) and verify_program(more, fifo_depth=2, split=1).failed == ()
    assert all(a <= b for a, b in zip(_measures(more), _measures(fewer), strict=True))


def _measures(program: Program) -> tuple[int, ...]:
    length = steps(program)
    return int(length.sum()), int(length.max()), int(np.diff(program.rank_blocks).max()), program.num_channels


def test_data_that_leave_while_they_arrive_delay_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a binomial tree a rank passes data on to several others: the first send is fused, the others follow."""
    before = chain("broadcast", hypercube(3), "bine")
    fused = [int((Fuse(size=1 << 20).run(before).opcode == Opcode.RECV_COPY_SEND).sum())]
    monkeypatch.setattr(fuse, "_GAIN", 0)
    fused.append(int((Fuse(size=1 << 20).run(before).opcode == Opcode.RECV_COPY_SEND).sum()))
    assert fused[0] > fused[1]


@pytest.mark.parametrize(("kind", "topology", "scheduler"), RELAYS)
def test_every_relay_that_is_not_fused_has_a_reason(kind: str, topology: Topology, scheduler: str) -> None:
    before = chain(kind, topology, scheduler)
    with remarks() as stated:
        after = Fuse(size=1 << 20).run(before)
    (text,) = [one for one in stated if "forward" in one]
    head, *reasons = text.removeprefix("fuse: ").split("; ")
    done, _, total = head.split()[:3]
    assert int(done) == int((after.sends & after.receives).sum())
    assert int(done) + sum(int(reason.split()[0]) for reason in reasons) == int(total)
