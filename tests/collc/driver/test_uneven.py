"""Collectives whose shards differ in size, from the request to numbers: who schedules them, what programs compute."""

from __future__ import annotations

import random

import attrs
import pytest
from sampling import every
from uneven_runs import collective, runs_right

import collc
from collc.backends.simulator import simulate
from collc.driver.compile import compile_collective
from collc.driver.plan import Recipe
from collc.driver.result import CollectiveResult, Settings
from collc.ir.collective import UNEVEN, Collective
from collc.ir.costs.bounds import bound
from collc.ir.diagnostic import CollcError
from collc.ir.spec import CollectiveRequest, Option, Problem, ScheduleRequest
from collc.ir.verify import verify
from collc.passes.applying import applicable
from collc.passes.schedulers import SCHEDULERS, usual
from collc.registry.elements import parse_elements

NETWORKS = ("torus(3, 3)", "hypercube(3)", "dgx_a100(2)", "mesh(2, 3)", "mi250(1)")
NAMES = [name for name in SCHEDULERS.own if name not in ("auto", "steps")]


def sizes_of(kind: str, ranks: int, seed: int = 1) -> list[int]:
    """Return weights of which many are 0, some are 1 and some are large."""
    rng = random.Random(seed)
    shards = ranks * ranks if kind == "alltoall" else ranks
    found = [rng.choice([0, 0, 1, 5, 17, rng.randint(0, 1000)]) for _ in range(shards)]
    return found if any(found) else [1] * shards


def compiled(what: Collective, network: str, scheduler: str = "auto", *options: Option) -> CollectiveResult:
    problem = Problem(collc.topology(network), what)
    request = CollectiveRequest("parts", "net", problem, ScheduleRequest(scheduler, options))
    return compile_collective(request, (), Settings())


CASES = [(network, kind, seed) for seed in range(2) for network in NETWORKS for kind in UNEVEN]


@pytest.mark.slow
@pytest.mark.parametrize(("network", "kind", "seed"), every(6, CASES))
def test_the_default_pipeline_is_right_for_all_counts(network: str, kind: str, seed: int) -> None:
    net = collc.topology(network)
    sizes = sizes_of(kind, net.num_ranks, seed)
    found = compiled(collective(kind, net.num_ranks, sizes, 1), network)
    assert found.program is not None and found.schedule is not None and found.choice is not None
    for counts in (sizes, sizes_of(kind, net.num_ranks, seed + 50)):
        assert runs_right(found.program, counts)
    assert found.cost.time_per_byte >= bound(net, found.schedule.collective).value
    assert {one.algorithm.scheduler for one in found.choice.intervals} <= set(takers(UNEVEN[kind]))


def takers(name: str) -> list[str]:
    return [scheduler for scheduler in NAMES if name in SCHEDULERS.own[scheduler].collectives]


@pytest.mark.parametrize("scheduler", NAMES)
@pytest.mark.parametrize("kind", UNEVEN)
def test_a_scheduler_takes_what_the_table_lists_and_refuses_all_others(scheduler: str, kind: str) -> None:
    refused = []
    for network in ("torus(3, 3)", "dgx_a100(2)"):
        net = collc.topology(network)
        what = collective(kind, net.num_ranks, sizes_of(kind, net.num_ranks), 1)
        try:
            found = compiled(what, network, scheduler)
        except CollcError as mistake:
            refused.append(mistake)
        else:
            assert found.schedule is not None and verify(found.schedule).ok
            assert found.schedule.collective == what and found.cost.collective == UNEVEN[kind]
    codes = [mistake.diagnostics[0].code for mistake in refused]
    if scheduler in takers(UNEVEN[kind]):
        assert len(refused) < 2 and "C0503" not in codes
        return
    assert codes == ["C0503"] * 2
    for mistake in refused:
        first = mistake.diagnostics[0]
        assert mistake.exit_status == 3 and f"`{UNEVEN[kind]}`" in first.message
        assert first.hint is not None and any(f"`{taker}`" in first.hint for taker in takers(UNEVEN[kind]))


@pytest.mark.parametrize("scheduler", ["exact", "expansion", "nccl-rings"])
def test_a_pipeline_that_names_another_scheduler_is_refused(scheduler: str) -> None:
    problem = Problem(collc.topology("torus(3, 3)"), collective("allgather", 9, range(9)))
    request = CollectiveRequest("parts", "net", problem, ScheduleRequest("auto"))
    settings = Settings(recipe=Recipe("2", parse_elements(f"{scheduler},discretize", "-p")))
    with pytest.raises(CollcError) as caught:
        compile_collective(request, (), settings)
    assert caught.value.diagnostics[0].code == "C0503" and caught.value.exit_status == 3


@pytest.mark.parametrize("kind", UNEVEN)
def test_the_usual_schedulers_apply(kind: str) -> None:
    for network in NETWORKS:
        net = collc.topology(network)
        problem = Problem(net, collective(kind, net.num_ranks, sizes_of(kind, net.num_ranks), 1))
        assert usual(UNEVEN[kind], not net.is_direct) in applicable(problem)


@pytest.mark.parametrize("scheduler", ["forest", "bfb", "ring", "flow"])
def test_the_simulator_has_the_bandwidth_time_of_the_cost_model(scheduler: str) -> None:
    kind = "alltoall" if scheduler == "flow" else "allgather"
    found = compiled(collective(kind, 9, sizes_of(kind, 9)), "torus(3, 3)", scheduler)
    assert found.schedule is not None
    low, high = (simulate(found.schedule).time(size) for size in (1 << 20, 1 << 30))
    model = [found.plain_cost.time(size) for size in (1 << 20, 1 << 30)]
    assert [low, high] == model or scheduler == "flow"  # a message of a flow has the latency of each of its links
    assert high - low == model[1] - model[0]


def test_auto_tries_as_many_pieces_as_the_scheduler_of_trees() -> None:
    what = attrs.evolve(collective("allgather", 9, [5, 0, 1, 2, 3, 4, 5, 6, 7]), size=1 << 26)
    alone, chosen = (compiled(what, "torus(3, 3)", scheduler) for scheduler in ("forest", "auto"))
    assert alone.forest is not None and alone.forest.pieces > 10
    assert chosen.cost.time(1 << 26) <= alone.cost.time(1 << 26)
