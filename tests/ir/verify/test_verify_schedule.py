"""The schedule verifier: right schedules pass, every planted mistake is caught and named."""

from __future__ import annotations

from itertools import product

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nets import hypercube, one_way_ring, torus
from strategies import connected

from collc.ir.collective import Collective
from collc.ir.schedule import Action, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.breadth_first.bfb import BFB


def bfb(topology, kind):
    return BFB().run(Problem(topology, Collective(kind, topology.num_ranks)))


def failure(schedule):
    failed = verify_schedule(schedule).failed
    assert failed, "the mistake was not found"
    return failed[0].name, failed[0].detail


def ring_allreduce(n):
    """The classic ring, row by row: n-1 steps of reducing, n-1 of copying."""
    rows = []
    for s, r in product(range(2 * n - 2), range(n)):
        shard = (r - s) % n if s < n - 1 else (r + 1 - (s - n + 1)) % n
        rows.append((s, Action.REDUCE if s < n - 1 else Action.COPY, shard, 0, 1, r))
    columns = dict(zip(Schedule.COLUMNS, zip(*rows, strict=True), strict=True))
    return Schedule(one_way_ring(n), Collective("allreduce", n), 1, **columns)


# ---- an executor written the slow, obvious way, to compare with


def obvious(s):
    """Execute part by part with Python sets; return whether everything is right."""
    c = s.collective
    value = {
        (r, k, p): {r} for r, k, p in product(range(c.num_ranks), range(c.num_shards), range(s.parts)) if c.holds(r, k)
    }
    src, dst = s.src.tolist(), s.dst.tolist()
    for step in range(s.num_steps):
        now, written = {}, set()
        for i in np.flatnonzero(s.step == step).tolist():
            for p in range(int(s.lo[i]), int(s.hi[i])):
                place, sent = (dst[i], int(s.shard[i]), p), value.get((src[i], int(s.shard[i]), p))
                if sent is None:
                    return False
                if s.action[i] == Action.REDUCE:
                    base = now.get(place, value.get(place, set()))
                    if base & sent or (place in written and place not in now) or not c.reduces:
                        return False
                    now[place] = base | sent
                elif place in now and c.reduces:
                    return False
                else:
                    now[place] = sent
                    written |= {place} if c.reduces else set()
                    if c.reduces:
                        value.setdefault(place, set())
        value.update(now)
    for r, k, p in product(range(c.num_ranks), range(c.num_shards), range(s.parts)):
        want = set(range(c.num_ranks)) if c.reduces else {c.source(k)}
        if c.wants(r, k) and value.get((r, k, p)) != want:
            return False
    return True


@given(connected(max_ranks=5, extra=8), st.sampled_from(["allgather", "reduce-scatter", "allreduce"]), st.data())
def test_mutations_are_judged_as_by_the_obvious_executor(topology, kind, data):
    """Change one cell of a right schedule, or drop or repeat a row: the verdicts agree, right or wrong."""
    s = bfb(topology, kind)
    if not len(s):
        return
    row = data.draw(st.integers(0, len(s) - 1))
    how = data.draw(st.sampled_from(["drop", "repeat", "shard", "route", "action"]))
    if how in ("drop", "repeat"):
        rows = np.delete(np.arange(len(s)), row) if how == "drop" else np.sort(np.append(np.arange(len(s)), row))
        changed = s.rows(rows)
    else:
        limit = {"shard": s.collective.num_shards, "route": topology.num_links, "action": 2}[how]
        column = getattr(s, how).astype(np.int64).copy()
        column[row] = data.draw(st.integers(0, limit - 1))
        changed = attrs.evolve(s, **{how: column})
    if (changed.src == changed.dst).any():
        assert "links" == failure(changed)[0]
        return
    expected = obvious(changed)
    if how == "repeat" and not s.collective.reduces:
        assert verify_schedule(changed).ok and expected
    else:
        assert expected == verify_schedule(changed).ok, verify_schedule(changed)


@given(st.integers(2, 9))
def test_the_classic_ring_is_right(n):
    assert verify_schedule(ring_allreduce(n)).ok


# ---- planted mistakes, each with its words


def _change(s, row, **cells):
    columns = {}
    for name, value in cells.items():
        columns[name] = getattr(s, name).astype(np.int64).copy()
        columns[name][row] = value
    return attrs.evolve(s, **columns)


def test_messages_name_step_ranks_and_shard():
    ring = ring_allreduce(4)
    swapped = ring.rows(np.r_[4:8, 0:4, 8:24])
    swapped = attrs.evolve(swapped, step=ring.step)
    assert "postcondition" == failure(swapped)[0]
    name, detail = failure(ring.rows(np.delete(np.arange(24), 5)))
    assert "postcondition" == name and "without the contributions of 2 of 4 ranks: 0 and 1" in detail
    name, detail = failure(ring.rows(np.sort(np.append(np.arange(24), 2))))
    assert "single reduction" == name
    assert "step 0: rank 2 reduces shard 2 to rank 3, which has the contribution of rank 2 already" == detail
    name, detail = failure(attrs.evolve(ring, action=np.zeros(24, dtype=int)))
    assert "postcondition" == name


def test_sending_before_it_is_there():
    gather = bfb(torus(5), "allgather")
    late = np.flatnonzero(gather.step == 1)[0]
    early = gather.rows(np.r_[late, np.delete(np.arange(len(gather)), late)])
    early = attrs.evolve(early, step=np.sort(np.r_[0, np.delete(gather.step, late)]))
    name, detail = failure(early)
    assert "causality" == name and detail.startswith("step 0: rank ") and detail.endswith(", but does not have it")


def test_copy_and_reduction_of_one_step_collide():
    """Which comes last would decide the result."""
    net = hypercube(2)
    rows = [(0, Action.COPY, 0, 0, 1, 0), (0, Action.REDUCE, 0, 0, 1, 7)]
    columns = dict(zip(Schedule.COLUMNS, zip(*rows, strict=True), strict=True))
    name, detail = failure(Schedule(net, Collective("allreduce", 4), 1, **columns))
    assert "single reduction" == name and "which comes last?" in detail


def test_reducing_in_an_allgather_is_wrong():
    gather = bfb(torus(3), "allgather")
    name, detail = failure(_change(gather, 0, action=1))
    assert "single reduction" == name and "allgather does not reduce" in detail


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"shard": 3}, "shard 3 does not exist: 0 to 2 do"),
        ({"hi": 2}, "0 to 2 are no parts of a shard"),
        ({"lo": 1}, "1 to 1 are no parts of a shard"),
        ({"route": 6}, "route 6 does not exist: 0 to 5 do"),
        ({"step": 7}, "comes after step 7"),
        ({"action": 2}, "action 2 does not exist"),
    ],
)
def test_malformed_rows(cells, words):
    name, detail = failure(_change(bfb(torus(3), "allgather"), 0, **cells))
    assert "structure" == name and words in detail


def test_routes_must_be_paths():
    """A route that comes back to a node, or whose links do not join, is not one."""
    star = Topology.from_links("star", 3, [(0, 3), (3, 1), (1, 3), (3, 2)], num_switches=1)
    rows = [(0, 0, 0, 0, 1, 0)]
    columns = dict(zip(Schedule.COLUMNS, zip(*rows, strict=True), strict=True))

    def with_route(*links):
        return Schedule(star, Collective("broadcast", 3, root=0), 1, **columns, routes=Routes.of([links]))

    assert "postcondition" == failure(with_route(0, 1))[0]
    for bad, words in (
        ((0,), "does not run from rank to rank"), ((1,), "does not run from rank to rank"),
        ((0, 1, 2, 3), "it visits a node twice"), ((0, 2), "a link does not begin where the one before it ends"),
    ):  # fmt: skip
        name, detail = failure(with_route(*bad))
        assert "links" == name and words in detail


def test_a_thousand_ranks():
    """1,024 ranks, a million transfers: seconds, not minutes (timed in benchmarks/bfb.py)."""
    schedule = bfb(hypercube(10), "allgather")
    assert len(schedule) > 10**6
    assert verify_schedule(schedule).ok
    assert "postcondition" == failure(schedule.rows(np.delete(np.arange(len(schedule)), 777_777)))[0]
