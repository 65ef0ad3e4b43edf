"""Plans of one fault for its images: the files of an isomorphic network, and what refuses a map that is none."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import collc
from collc.driver import relabelling
from collc.driver.compilation import compiled, make_jobs
from collc.driver.relabelling import relabelled_files
from collc.driver.result import CollectiveResult, Settings
from collc.ir.arrays import Array
from collc.ir.levels import Executable
from collc.ir.program import Program
from collc.ir.spec import Problem
from collc.messages.internal import InternalError
from collc.reading.coll import load_spec
from collc.reading.loading import Loading
from collc.registry.elements import parse_elements
from collc.tools.replanning import Replanner, faults_of

SETTINGS = Settings(keeps_last=True)


def planned(fault: str, target: str = "msccl-xml") -> tuple[CollectiveResult, Replanner]:
    """Return the result of an allgather on a cube after a fault."""
    spec = load_spec("collective c = allgather on hypercube(3); schedule c using forest;", "x.coll", Loading())
    (job,) = make_jobs(spec, parse_elements(target, "-t"))[0]
    planner = Replanner(spec, ["c"], faults_of(fault))
    return planner.run(compiled(job.schedule_only, Settings()), job.targets, SETTINGS), planner


def files(found: CollectiveResult, fault: str, nodes: Array) -> object:
    """Return the files for a fault, of a result for another."""
    planner = planned(fault)[1]
    return relabelled_files(found, planner.spec.collectives["c"], planner.networks["c"], nodes, SETTINGS)


SWAP = np.arange(8) ^ 1


def test_a_map_that_takes_one_fault_to_the_other_gives_files() -> None:
    found, _ = planned("without 0 <-> 2")
    assert files(found, "without 1 <-> 3", SWAP)


@pytest.mark.parametrize("nodes", [np.arange(8), np.roll(np.arange(8), 1)])
def test_other_maps_give_none(nodes: Array) -> None:
    assert files(planned("without 0 <-> 2")[0], "without 1 <-> 3", nodes) is None
    assert files(planned("without 0")[0], "without 1", nodes) is None


def test_a_result_without_its_last_program_gives_none() -> None:
    assert files(attrs.evolve(planned("without 0 <-> 2")[0], last=()), "without 1 <-> 3", SWAP) is None


def test_a_wrong_program_is_a_mistake_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = relabelling._moved

    def wrong(ir: Executable, problem: Problem, nodes: Array, links: Array) -> Executable | None:
        found = moved(ir, problem, nodes, links)
        assert isinstance(found, Program) and isinstance(ir, Program)
        return attrs.evolve(found, dst_offset=ir.dst_offset)

    monkeypatch.setattr(relabelling, "_moved", wrong)
    with pytest.raises(InternalError, match="wrong with other numbers of ranks"):
        files(planned("without 0 <-> 2")[0], "without 1 <-> 3", SWAP)


def test_results_keep_the_last_program_only_if_they_are_to() -> None:
    assert collc.compile_source("collective c = allgather on biring(3);", target="ir")["c"].last == ()
    assert [target.name for target, _ in planned("without 0")[0].last] == ["msccl-xml"]
