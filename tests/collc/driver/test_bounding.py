"""Bounds on allreduces by trees that need no linear program, because a schedule of trees is known to reach them."""

from __future__ import annotations

import pytest

import collc
from collc.driver import bounding
from collc.driver.bounding import ScheduleCosts
from collc.passes.synthesis.forest.allreduce_program import AllreduceBound, ReachedBound

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("network", [
    "degraded(dgx_a100(9), {gpu[3, 5] <-> ib}, 1/2)", "without(dgx_a100(9), {gpu[0, 0] <-> ib})", "dgx_a100(4)",
])  # fmt: skip
def test_a_forest_that_no_schedule_beats_reaches_the_bound_of_trees(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = f"topology t = {network}; collective c = allreduce on t; schedule c using forest {{ k: optimal }};"
    result = collc.compile_source(spec)["c"]
    assert result.cost.bound_met and result.forest is not None and result.schedule is not None
    program = ScheduleCosts(result.schedule, result.forest).allreduce_bound
    assert isinstance(program, AllreduceBound)
    monkeypatch.setattr(bounding, "_MOST_RANKS", 0)
    costs = ScheduleCosts(result.schedule, result.forest)
    assert costs.cost == result.cost
    found = costs.allreduce_bound
    assert result.cost.forest is not None
    assert isinstance(found, ReachedBound) == result.cost.forest.whole
    assert found is not None
    assert (found.value, found.reached, found.composed) == (program.value, program.reached, program.composed)


def test_a_forest_that_reaches_no_bound_has_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounding, "_MOST_RANKS", 0)
    spec = "topology t = hypercube(3); collective c = allreduce on t; schedule c using forest { k: 1 };"
    result = collc.compile_source(spec)["c"]
    assert not result.cost.bound_met and result.schedule is not None
    assert isinstance(ScheduleCosts(result.schedule, result.forest).allreduce_bound, AllreduceBound)
