"""Custom collectives through the whole pipeline: rounding, lowering, all passes, files, results, simulation."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from customs import custom, customs, halo, permutation
from hypothesis import given, settings
from hypothesis import strategies as st
from program_judge import judge_program
from sampling import every, examples

import collc
from collc.backends.interpreter import reference, run
from collc.backends.ir_text import IrText
from collc.driver.compile import compile_collective
from collc.driver.plan import Recipe
from collc.driver.result import CollectiveResult, Settings
from collc.ir.collective import Collective
from collc.ir.costs.cost import predicted_time
from collc.ir.program import Program
from collc.ir.spec import CollectiveRequest, Option, Problem, ScheduleRequest
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.registry.elements import parse_elements

NETWORKS = ("biring(4)", "torus(2, 3)", "dgx_a100(1)", "leaf_spine(2, 2, 1)", "complete(4)", "uniring(4)")
PIPELINES = (
    "general,discretize,lower,coalesce,balance-threadblocks,fuse,prune-dependencies,reuse-scratch",
    "general,discretize{max-chunks=3},renumber,lower,coalesce,eliminate-copies,assign-channels,reorder-fifo,fuse,unfuse",
    "general,discretize,lower,replicate{instances=2},fuse,unfuse,reuse-scratch",
)


def compiled(
    topology: Topology, collective: Collective, scheduler: str = "general", recipe: Recipe | None = None, **options: str
) -> CollectiveResult:
    """Compile a collective to text, everything verified."""
    given = tuple(Option(name, value) for name, value in options.items())
    problem = Problem(topology, collective)
    request = CollectiveRequest("c", topology.name, problem, ScheduleRequest(scheduler, given), ())
    found = compile_collective(request, (IrText(),), Settings(recipe or Recipe(), verify="full"))
    assert all(report.ok for report in found.reports)
    return found


def program_of(found: CollectiveResult) -> Program:
    program = found.made
    assert isinstance(program, Program) and parse_ir(print_ir(program)) == program
    assert judge_program(program, 3) == ""
    return program


def results_are_right(program: Program, seed: int = 1) -> None:
    """Execute with any number of elements in each shard."""
    collective, luck = program.collective, np.random.default_rng(seed)
    sizes = luck.integers(0, 9, collective.num_shards)
    assert collective.pre is not None
    inputs = [
        luck.integers(0, 1000, sizes[np.array(collective.pre) == rank].sum()) for rank in range(collective.num_ranks)
    ]
    outputs, right = (f(of, inputs, counts=sizes.tolist()) for f, of in ((run, program), (reference, collective)))
    assert all(np.array_equal(one, two) for one, two in zip(outputs, right, strict=True))


@settings(max_examples=examples(24), deadline=None)
@given(st.data(), st.sampled_from(NETWORKS), st.sampled_from(PIPELINES))
def test_every_pass_takes_any_conditions(data: st.DataObject, network: str, pipeline: str) -> None:
    topology = collc.topology(network)
    collective = data.draw(customs(topology.num_ranks, targets=3))
    recipe = Recipe(elements=parse_elements(pipeline, "-p"))
    results_are_right(program_of(compiled(topology, collective, recipe=recipe)))


@settings(max_examples=examples(16), deadline=None)
@given(st.data(), st.sampled_from(NETWORKS), st.sampled_from("0123"))
def test_every_level_takes_any_conditions(data: st.DataObject, network: str, level: str) -> None:
    topology = collc.topology(network)
    collective = attrs.evolve(data.draw(customs(topology.num_ranks)), size=data.draw(st.sampled_from([None, 1 << 26])))
    found = compiled(topology, collective, "auto", Recipe(level))
    results_are_right(program_of(found))
    cost = found.cost
    assert cost is not None and cost.time_per_byte >= cost.bound.value


@pytest.mark.parametrize("network", every(2, NETWORKS))
def test_auto_takes_general_and_the_simulator_agrees_with_the_cost(network: str) -> None:
    topology = collc.topology(network)
    found = compiled(topology, permutation(topology.num_ranks, 2), "auto")
    assert found.schedule is not None and found.schedule.scheduler == "general"
    cost = found.cost
    assert cost is not None
    assert found.simulate([1 << 20]).time(1 << 20) == predicted_time(cost, 1 << 20)


def test_a_halo_of_a_torus() -> None:
    found = compiled(collc.topology("torus(3, 4)"), halo(3, 4))
    program = program_of(found)
    assert program.sends.sum() == 48 and program.chunks == 1
    results_are_right(program)


def test_results_of_the_reference_by_hand() -> None:
    """Shards lie in a rank's buffers in ascending order, each of its own size."""
    collective = custom(3, [(1, (0, 2)), (0, (2,)), (1, (1,)), (2, ())], (2, 1, 3, 1))
    inputs = [np.array([7]), np.array([1, 2, 10, 11, 12]), np.array([9])]  # shards 1; 0 and 2; 3
    outputs = reference(collective, inputs)
    assert [one.tolist() for one in outputs] == [[1, 2], [10, 11, 12], [1, 2, 7]]


def test_local_blocks_that_host_others_join_with_them() -> None:
    """Two instances of a copy are two blocks without peers: the first joins the second, which joins a third."""
    collective = custom(4, [(1, (0,)), (2, (0, 3)), (1, (0,)), (1, (3,)), (3, (1, 2, 3))])
    elements = parse_elements("general,discretize,lower,replicate{instances=2},fuse", "-p")
    network = collc.topology("leaf_spine(2, 2, 2)")
    found = compiled(network, collective, recipe=Recipe(elements=elements), objective="latency")
    results_are_right(program_of(found))
