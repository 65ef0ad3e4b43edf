"""Bounds on allreduces by trees that need no linear program, because a schedule of trees is known to reach them."""

from __future__ import annotations

import pytest

import collc
from collc.driver import bounding
from collc.driver.bounding import ScheduleCosts
from collc.frontends.coll import load
from collc.ir.collective import Collective
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.passes.synthesis.forest.allreduce_program import AllreduceBound, ReachedBound
from collc.passes.synthesis.forest.allreduce_trees import optimal_number
from collc.passes.synthesis.forest.scheduler import ForestScheduler

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("network", [
    "degraded(dgx_a100(9), {gpu[3, 5] <-> ib}, 1/2)", "degraded(mi250(9), {gpu[3, 5] <-> ib}, 1/2)",
])  # fmt: skip
def test_a_forest_that_no_schedule_beats_reaches_the_bound_of_trees(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = load("net.coll", text=f"topology net = {network};").topologies["net"]
    forest = ForestScheduler().run(Problem(level, Collective("allreduce", level.num_ranks)))
    assert isinstance(forest, Forest)
    costs = ScheduleCosts(forest, forest)
    program = costs.allreduce_bound
    assert costs.plain_cost.bound_met and isinstance(program, AllreduceBound)
    monkeypatch.setattr(bounding, "_MOST_RANKS", 0)
    costs = ScheduleCosts(forest, forest)
    found = costs.allreduce_bound
    assert found is not None and isinstance(found, ReachedBound) == forest.whole
    assert (found.value, found.reached, found.composed) == (program.value, program.reached, program.composed)
    if isinstance(found, ReachedBound):
        assert (found.k, True) == optimal_number(level, program.optimum)


def test_a_forest_that_reaches_no_bound_has_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounding, "_MOST_RANKS", 0)
    spec = "topology t = hypercube(3); collective c = allreduce on t; schedule c using forest { k: 1 };"
    result = collc.compile_source(spec)["c"]
    assert result.forest is not None
    costs = ScheduleCosts(result.forest, result.forest)
    assert not costs.cost.bound_met and isinstance(costs.allreduce_bound, AllreduceBound)
