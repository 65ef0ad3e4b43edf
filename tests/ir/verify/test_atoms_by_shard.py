"""Shards that are cut at different places are executed each with its own atoms, and failures are the same."""

from __future__ import annotations

import numpy as np
import pytest

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.verify import agreement, verify
from collc.ir.verify import schedule as module
from collc.ir.verify._atoms import Atoms
from collc.passes.synthesis.forest.scheduler import ForestScheduler


@pytest.fixture(scope="module")
def steps() -> Schedule:
    """An allreduce whose shards are divided among different numbers of trees."""
    net = topology("degraded(dgx_h100(2), {gpu[0, 1]}, 1/2)")
    return ForestScheduler(pieces=1).run(Problem(net, Collective("allreduce", 16))).to_steps()


def test_shards_are_cut_at_their_own_ends(steps: Schedule) -> None:
    runs = Atoms.by_shard(steps, 16, 0)
    assert [a for a, _, _ in runs] == [0, *(b for _, b, _ in runs[:-1])]
    assert runs[-1][1] == 16
    assert len({atoms.count for _, _, atoms in runs}) > 1
    for first, end, atoms in runs:
        for shard in range(first, end):
            rows = steps.shard == shard
            assert set(atoms.ends.tolist()) == {0, steps.parts, *steps.lo[rows].tolist(), *steps.hi[rows].tolist()}
            assert np.array_equal(atoms.ends[atoms.first[rows]], steps.lo[rows])
            assert np.array_equal(atoms.ends[atoms.last[rows]], steps.hi[rows])


def test_the_result_is_the_same(steps: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    together = [verify(each) for each in (steps, *_broken(steps))]
    same = agreement.same_everywhere(steps)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 1)
    monkeypatch.setattr(agreement, "_BLOCK_BYTES", 1)
    apart = [verify(each) for each in (steps, *_broken(steps))]
    assert [report.ok for report in apart] == [True, False, False, False]
    assert [[check.name for check in report.checks if not check.ok] for report in apart] == [
        [check.name for check in report.checks if not check.ok] for report in together
    ]
    assert agreement.same_everywhere(steps) == same


def _broken(steps: Schedule) -> list[Schedule]:
    """Return schedules without a transfer, at the start, in the middle and at the end."""
    every = np.arange(len(steps))
    return [steps.rows(np.delete(every, place)) for place in (0, len(steps) // 2, len(steps) - 1)]
