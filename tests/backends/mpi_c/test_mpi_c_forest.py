"""Forests on a real MPI: trees of any multiplicity, pieces that follow each other, every element checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from grown import grown
from mpi_fixtures import Built

from collc.backends.mpi_c.toolchain import Mpi
from collc.driver.compile import compile_collective
from collc.driver.result import Settings
from collc.frontends import coll
from collc.ir.program import Program
from collc.ir.schedule import Forest
from collc.ir.spec import CollectiveRequest, Problem, ScheduleRequest
from collc.passes.schedule.compose import Compose
from collc.passes.schedule.reverse import Reverse

pytestmark = pytest.mark.needs("mpi")


def compiled(forest: Forest, name: str) -> Program:
    """Compile a forest as the command would, without a target's limits."""
    problem = Problem(forest.topology, forest.collective)
    request = CollectiveRequest(name, forest.topology.name, problem, ScheduleRequest("steps"), ())
    program = compile_collective(request, (), Settings(), start=forest).program
    assert program is not None
    return program


def programs(topology: str, weights: tuple[int, ...], pieces: int) -> Iterator[Program]:
    """An allgather, its reverse, both together; through one rank a broadcast, a reduce and both together."""
    net = coll.topology(topology)
    for root in (None, net.num_ranks - 1):
        forest = grown(net, weights, root, pieces)
        for made in (forest, Reverse().run(forest), Compose().run(forest)):
            assert isinstance(made, Forest)
            through = "_through_one" if root is not None and made.collective.kind == "allreduce" else ""
            yield compiled(made, f"{made.collective.kind}{through}")


@pytest.mark.parametrize(
    ("topology", "weights", "pieces"),
    [("dgx_a100(2)", (1,), 3), ("dgx_a100(2)", (5, 4, 3, 1), 1), ("torus(2, 2, 2)", (1, 2), 4)],
)
def test_forests(topology: str, weights: tuple[int, ...], pieces: int, mpich: Mpi, tmp_path: Path) -> None:
    """16 ranks of two boxes with one tree and with thirteen, 8 of a torus; all in place and out of place.

    That the driver finds a wrong element stands in test_mpi_c_run.py.
    """
    built = Built(mpich, programs(topology, weights, pieces), tmp_path, library=True)
    assert len(built.sources) == 6
    result = built.run(counts=(0, 7, 1000), dtypes=("int32",), ops=("sum",))
    wrong = [(row.name, row.count, row.dtype, row.in_place, row.detail) for row in result.rows if not row.correct]
    assert not wrong, wrong[:5]
    assert len(result.rows) == 6 * 3 * 2
