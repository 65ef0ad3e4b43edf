"""Schedules and programs as data: routes, columns, equality, and what makes them well formed."""

from __future__ import annotations

import pickle

import attrs
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from text_examples import PROGRAM, SCHEDULE

from collc.ir.collective import Collective
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.schedule import Routes, Schedule
from collc.ir.validate import flaws, structure
from collc.ir.verify import verify_schedule

# ---- routes


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=6))
def test_routes_keep_their_paths(paths):
    routes = Routes.of(paths)
    assert len(routes) == len(paths)
    assert [routes.links_of(r) for r in range(len(routes))] == paths
    assert routes.is_direct == (paths == [[r] for r in range(len(paths))])
    assert pickle.loads(pickle.dumps(routes)) == routes


@given(strategies.topologies())
def test_direct_routes_are_the_links(topology):
    routes = Routes.direct(topology.num_links)
    assert routes.is_direct and len(routes) == topology.num_links
    assert routes == Routes.of([[k] for k in range(topology.num_links)])
    assert np.array_equal(topology.src, routes.tails(topology))
    assert np.array_equal(topology.dst, routes.heads(topology))


def test_routes_through_a_switch_run_from_rank_to_rank():
    star = strategies.star(300)  # links beyond what eight bits hold
    routes = strategies.rank_routes(strategies.star(3))
    assert len(routes) == 6
    wide = Routes.of([[r, 300 + (r + 1) % 300] for r in range(300)])
    assert wide.tails(star).tolist() == list(range(300))
    assert wide.heads(star).tolist() == [(r + 1) % 300 for r in range(300)]


# ---- schedules


@given(strategies.any_schedules())
def test_rows_have_ends_and_steps(schedule):
    ends = [
        (schedule.topology.src[path[0]], schedule.topology.dst[path[-1]])
        for path in (schedule.routes.links_of(r) for r in schedule.route)
    ]
    assert list(zip(schedule.src, schedule.dst, strict=True)) == ends
    if schedule.num_steps < 1000:
        start = schedule.step_start
        assert len(start) == schedule.num_steps + 1
        for step in range(schedule.num_steps):
            assert np.flatnonzero(schedule.step == step).tolist() == list(range(start[step], start[step + 1]))


def test_a_schedule_without_rows():
    empty = SCHEDULE.rows(np.zeros(3, dtype=bool))
    assert (len(empty), empty.num_steps, empty.step_start.tolist(), structure(empty)) == (0, 0, [0], [])
    assert len(empty.src) == len(empty.dst) == 0


@given(strategies.schedules(), st.data())
def test_selecting_rows(schedule, data):
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(schedule), max_size=len(schedule))), dtype=bool)
    some = schedule.rows(keep)
    for name in Schedule.COLUMNS:
        assert getattr(some, name).tolist() == getattr(schedule, name)[keep].tolist()
    assert (some == schedule) == keep.all()
    assert schedule.rows(np.flatnonzero(keep)) == some


@given(strategies.any_schedules())
def test_values_not_types_make_schedules_equal(schedule):
    wide = {name: getattr(schedule, name).astype(np.int64) for name in Schedule.COLUMNS}
    assert attrs.evolve(schedule, **wide) == schedule
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert attrs.evolve(schedule, discrete=not schedule.discrete) != schedule
    assert attrs.evolve(schedule, parts=schedule.parts + 1) != schedule
    with pytest.raises(ValueError, match="read-only"):
        schedule.step[:] = 0


@settings(max_examples=examples(60), deadline=None)
@given(strategies.schedules())
def test_schedules_that_are_correct_by_construction_are(schedule):
    """What other tests build on: the strategy's schedules are sound and do what they promise."""
    assert structure(schedule) == []
    report = verify_schedule(schedule)
    assert report.ok, report.failed


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"step": [0, 1, 0]}, "transfer 2: step 0 comes after step 1"),
        ({"step": [-1, 0, 0]}, "transfer 0: step -1 is negative"),
        ({"step": [0, 0]}, "columns of transfers differ in length: step 2, action 3, shard 3, lo 3, hi 3, route 3"),
        ({"action": [0, 2, 0]}, "transfer 1: action 2 does not exist: 0 to 1 do"),
        ({"shard": [0, 3, 4]}, "transfer 1: shard 3 does not exist: 0 to 2 do (and 1 more like it)"),
        ({"lo": [0, 2, 0]}, "transfer 1: 2 to 2 are no parts of a shard: it has parts 0 to 2"),
        ({"hi": [3, 2, 2]}, "transfer 0: 0 to 3 are no parts of a shard: it has parts 0 to 2"),
        ({"lo": [-1, 0, 0]}, "transfer 0: -1 to 2 are no parts of a shard: it has parts 0 to 2"),
        ({"route": [0, 0, 3]}, "transfer 2: route 3 does not exist: 0 to 2 do"),
        ({"parts": 0}, "0 parts: 1 to 9223372036854775807 are possible"),
        ({"routes": Routes.of([[0], [1], [2], [0, 2]])},
         "route 3: a link does not begin where the one before it ends: links [0, 2]"),
        ({"routes": Routes.of([[0], [1, 2, 0], [2]])}, "route 1: it visits a node twice: links [1, 2, 0]"),
        ({"routes": Routes.of([[0], [7], [2]])}, "route 1: link 7 does not exist"),
        ({"routes": Routes.of([[0], [], [2]])}, "route 1: it has no link"),
        ({"routes": Routes([0, 2, 1, 3], [0, 1, 2])},
         "the start of routes does not run from 0 to 3 without decreasing"),
        ({"routes": Routes([], [])}, "the start of routes needs 1 entries, found 0"),
        ({"collective": Collective("allgather", 4)}, "collective `allgather` of 4 ranks on a topology of 3"),
        ({"collective": Collective("allgather", 3, size=-1)},
         "size -1 is not a number of bytes: 0 to 9223372036854775807 are"),
        ({"topology": attrs.evolve(SCHEDULE.topology, unit="x")}, "unit `x` is not known: `link` and `B/s` are"),
    ],
)  # fmt: skip
def test_structure_of_schedules(change, problem):
    assert structure(attrs.evolve(SCHEDULE, **change))[0] == problem


def test_a_flaw_knows_its_row():
    (flaw,) = flaws(attrs.evolve(SCHEDULE, shard=[0, 1, 9]))
    assert (flaw.table, flaw.row) == ("transfers", 2)


# ---- programs


@given(strategies.any_programs())
def test_rows_of_programs_know_their_place(program):
    """Blocks, steps and ids by columns are those by counting."""
    assert structure(program) == []
    row = 0
    for block in range(program.num_blocks):
        rank = int(program.block_rank[block])
        assert program.block_id[block] == block - int(np.argmax(program.block_rank == rank))
        for step in range(int(program.block_start[block + 1]) - int(program.block_start[block])):
            assert (program.block[row], program.step[row]) == (block, step)
            assert program.place(row) == f"rank {rank}, threadblock {program.block_id[block]}, step {step}"
            row += 1
    assert row == program.num_instructions
    assert pickle.loads(pickle.dumps(program)) == program


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"chunks": 0}, "0 chunks: 1 to 9223372036854775807 are possible"),
        ({"scratch": [1]}, "scratch for 1 ranks, needed for 2"),
        ({"scratch": [0, -2]}, "rank 1: scratch -2 is negative"),
        ({"block_rank": [0, 2, 0]}, "threadblock 1: rank 2 does not exist: 0 to 1 do"),
        ({"block_rank": [0, 1, 0]}, "threadblocks are not sorted by rank"),
        ({"channel": [0, 0]},
         "columns of threadblocks differ in length: block_rank 3, send_peer 3, recv_peer 3, channel 2"),
        ({"channel": [0, -1, 0]}, "threadblock 1: channel -1 is negative"),
        ({"send_peer": [2, -1, 0]}, "threadblock 0: send peer 2 does not exist: -1 to 1 do"),
        ({"recv_peer": [-2, 1, 0]}, "threadblock 0: recv peer -2 does not exist: -1 to 1 do"),
        ({"send_peer": [-1, -1, 0]}, "rank 0, threadblock 0, step 0 (send): its threadblock has no send peer"),
        ({"recv_peer": [-1, -1, 0]}, "rank 0, threadblock 1, step 0 (recv): its threadblock has no recv peer"),
        ({"block_start": [0, 1, 2, 5]}, "block_start does not run from 0 to 4 without decreasing"),
        ({"block_start": [0, 4]}, "block_start needs 4 entries, found 2"),
        ({"opcode": [1, 2, 6, 9]}, "opcode 9 does not exist: 0 to 8 do"),
        ({"src_buffer": [3, 0, 0, 2]}, "src buffer 3 does not exist: 0 to 2 do"),
        ({"count": [2, 2, -2, 2]}, "count -2 is negative"),
        ({"count": [2, 0, 2, 2]}, "rank 0, threadblock 1, step 0 (recv): it moves 0 chunks"),
        ({"dst_offset": [1, 0, 0, 0]},
         "rank 0, threadblock 0, step 0 (send): its dst location is not used, but is not 0, 0"),
        ({"src_offset": [1, 0, 0, 0]},
         "rank 0, threadblock 0, step 0 (send): 2 chunks from 1 leave its src buffer, which has 2"),
        ({"deps": [4]}, "dependency 4 does not exist: 0 to 3 do"),
        ({"deps": [2]}, "rank 0, threadblock 1, step 0 (recv): it depends on another rank"),
        ({"deps": [1]}, "rank 0, threadblock 1, step 0 (recv): it depends on itself or a later instruction"),
        ({"dep_start": [0, 0, 1, 1]}, "dep_start needs 5 entries, found 4"),
    ],
)  # fmt: skip
def test_structure_of_programs(change, problem):
    assert structure(attrs.evolve(PROGRAM, **change))[0] == problem


def test_buffers_are_those_of_the_collective():
    """A broadcast's input is the root's only; an alltoall's is everybody's; a gather's output is the root's."""
    for collective, rank, offset, sound in (
        (Collective("broadcast", 2, 0), 0, 1, True),
        (Collective("broadcast", 2, 0), 1, 0, False),
        (Collective("alltoall", 2), 1, 1, True),
        (Collective("alltoall", 2), 1, 2, False),
        (Collective("gather", 2, 1), 1, 0, True),
        (Collective("gather", 2, 1), 1, 1, False),
        (Collective("scatter", 3, 2), 2, 2, True),
    ):
        copy = (Opcode.COPY, Buffer.INPUT, offset, Buffer.SCRATCH, 0, 1, [])
        program = Program.build(collective, 1, [1] * collective.num_ranks, [(rank, -1, -1, 0)], [[copy]])
        assert (structure(program) == []) == sound, collective
        assert (program.input_chunks(rank) > offset) == sound
