"""Programs of the trees of one box's ranks and a rotation, against the programs of all trees."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from orbit_programs import KINDS, boxes, forest, orbit_program, orbit_schedule
from sampling import EXHAUSTIVE
from template_programs import instructions_of

import collc
from collc.backends.simulator import simulate
from collc.ir.costs.cost import cost
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.symmetric import SYMMETRIC_KINDS, SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.symmetries import Rotations
from collc.ir.text.parser import parse_ir
from collc.ir.text.printer import print_ir
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.ir.verify.agreement import same_everywhere
from collc.ir.verify.symmetric_program import template_strayed
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.pipelining import Pipelining

NETS: tuple[str | Topology, ...] = (
    "dgx_a100(3)", "dgx_a100(4)", "torus(3, 3)", "hypercube(3)", boxes(3, 2), boxes(4, 3), boxes(2, 4),
    boxes(5, 2, "ib[0]"),
)  # fmt: skip
LARGE = ("mi250(6)", "dgx_h100(6, 8)") if EXHAUSTIVE else ()


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network", [*NETS, *LARGE], ids=str)
def test_unfolded_it_is_the_program_of_all_trees(network: str | Topology, kind: str, pieces: int) -> None:
    schedule = orbit_schedule(network, kind, pieces)
    program = orbit_program(network, kind, pieces)
    assert program.width == schedule.width == program.num_ranks // program.group.order
    report = verify(program)
    assert report.ok, report.failed
    unfolded, lowered = program.unfold(), Lower().run(schedule.unfold())
    assert isinstance(lowered, Program)
    assert instructions_of(unfolded) == instructions_of(lowered)
    assert verify(unfolded).ok
    assert not template_strayed(program, schedule)


@pytest.mark.quick
@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("kind", SYMMETRIC_KINDS)
@pytest.mark.parametrize("network", ["dgx_a100(3)", boxes(3, 2), boxes(5, 2, "ib[0]")], ids=str)
def test_steps_of_a_template_are_those_of_its_trees(network: str | Topology, kind: str, pieces: int) -> None:
    trees = forest(network, kind)
    steps, whole = Pipelining(pieces=pieces, templates=True).run(trees), trees.unfold().to_steps(pieces)
    assert isinstance(steps, SymmetricSchedule) and steps.width > 1
    assert steps.unfold() == whole and len(steps) == len(whole)
    assert cost(steps) == cost(whole) and verify(steps).ok
    assert same_everywhere(steps) == same_everywhere(whole)
    assert simulate(steps).time(1 << 20) == simulate(whole).time(1 << 20)
    assert Pipelining(pieces=pieces).run(trees) == whole


@pytest.mark.quick
def test_what_executed_ranks_stand_for_is_said() -> None:
    report = verify(orbit_program("dgx_a100(3)", "allreduce"))
    text = {check.name: check.detail for check in report.checks}["postcondition"]
    assert "executed 8 of 24 ranks, all others by the group abelian(3) of order 3, checked" in text


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_text_is_read_back(kind: str) -> None:
    program = orbit_program(boxes(3, 2), kind, 2)
    assert parse_ir(print_ir(program)) == program
    schedule = orbit_schedule(boxes(3, 2), kind, 2)
    assert parse_ir(print_ir(schedule)) == schedule.unfold()


@pytest.mark.quick
def test_rows_of_a_template_do_not_grow_with_the_boxes_squared() -> None:
    few, many = (orbit_program(f"dgx_a100({n})", "allgather") for n in (4, 16))
    assert many.seed.num_instructions < 5 * few.seed.num_instructions
    assert many.unfold().num_instructions > 12 * few.unfold().num_instructions


@pytest.mark.quick
def test_a_schedule_that_its_group_does_not_move_is_found() -> None:
    schedule = orbit_schedule(boxes(3, 2), "allgather")
    seed = schedule.seed
    assert isinstance(seed, Schedule)
    shard = np.array(seed.shard)
    shard[0] = 5
    assert not verify(attrs.evolve(schedule, seed=attrs.evolve(seed, shard=shard))).ok
    other = forest(boxes(4, 3), "allgather").group
    assert not verify(attrs.evolve(schedule, orbits=other)).ok
    assert verify(schedule).ok


@pytest.mark.quick
def test_trees_of_other_groups_are_written_out() -> None:
    trees = forest(boxes(5, 2, "ib[0]"), "allgather")
    assert isinstance(trees.group, Rotations)
    twice = attrs.evolve(trees.group, generator=trees.group.generator[trees.group.generator])
    other = attrs.evolve(trees, group=twice)  # box after next box: of the same order, with other numbers
    assert twice.numbered is None and verify(other).ok
    assert Pipelining(templates=True).run(other) == other.unfold().to_steps()


@pytest.mark.quick
@pytest.mark.parametrize("kind", SYMMETRIC_KINDS)
def test_trees_of_a_group_that_is_none_of_vectors(kind: str) -> None:
    trees = forest("cayley(dihedral(4), {1, 2, 6})", kind)
    steps = Pipelining(templates=True).run(trees)
    assert isinstance(steps, SymmetricSchedule) and steps.unfold() == trees.unfold().to_steps()
    program = orbit_program("cayley(dihedral(4), {1, 2, 6})", kind)
    assert program.width == 1 and verify(program).ok and verify(program.unfold()).ok


@pytest.mark.quick
def test_a_template_with_a_row_less_strays_from_its_schedule() -> None:
    schedule, program = orbit_schedule(boxes(3, 2), "allgather"), orbit_program(boxes(3, 2), "allgather")
    fewer = attrs.evolve(schedule, seed=schedule.seed.rows(np.arange(1, len(schedule.seed))))
    assert "from rank" in template_strayed(program, fewer)


def test_a_thousand_ranks_are_compiled_as_eight() -> None:
    source = "collective c = allgather on dgx_a100(128); schedule c using forest; emit c as mpi-c;"
    result = collc.compile_source(source)["c"]
    assert isinstance(result.program, SymmetricProgram) and result.program.width == 8
    details = [check.detail for report in result.reports for check in report.checks]
    assert any("executed 8 of 1024 ranks, all others by the group abelian(128)" in detail for detail in details)
    assert all(len(artifact.text) <= 2_000_000 for artifact in result.artifacts)


@pytest.mark.quick
def test_targets_of_all_ranks_get_the_same_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "collective c = allreduce on dgx_a100(3); schedule c using forest; emit c as mpi-c; emit c as msccl-xml;"
    whole = collc.compile_source(source)["c"]
    monkeypatch.setattr("collc.passes.synthesis.forest.template.LEAST_EDGES", 0)
    found = collc.compile_source(source)["c"]
    texts = [{a.filename: a.text for a in result.artifacts} for result in (whole, found)]
    assert "algorithm_width" in texts[1]["c.c"] and "algorithm_width" not in texts[0]["c.c"]
    assert all(report.ok for report in found.reports)
