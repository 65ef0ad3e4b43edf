"""Compiled collectives run over MPI, on this machine or on a testbed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import error
from collc.ir.levels import Executable
from collc.ir.symmetric_program import AnyProgram

from ..driver.result import CollectiveResult, Settings
from ..driver.spans import span
from .calls import Calls
from .predicted import Model, with_model

if TYPE_CHECKING:
    from collc.backends.measured import RunResult
    from collc.backends.mpi_c.selected import Selected
    from collc.backends.mpi_c.toolchain import Mpi

__all__ = ["arranged", "run_collective", "seated"]


def run_collective(
    result: CollectiveResult, mpi: Mpi, calls: Calls, report: Callable[[str], object]
) -> list[RunResult]:
    """Build and run the programs of one collective; return their measured rows, correct or wrong.

    ``report`` takes a text before each program. Raises C0701 to C0709 if a program does not run, C0074 without a
    testbed, C0001 if the collective has no topology for one.
    """
    with span(f"run {result.name}", "run"), _place(result, mpi, calls) as (inside, model):
        return [_run(program, seated(inside, program), model, calls, report) for program in _programs(result)]


def arranged(chosen: Settings, start: Executable | None) -> Settings:
    """Return the settings of a compilation; by default a program that was read keeps its arrangement."""
    if isinstance(start, AnyProgram) and chosen.recipe.elements is None:
        return attrs.evolve(chosen, recipe=attrs.evolve(chosen.recipe, elements=()))
    return chosen


def seated(mpi: Mpi, program: AnyProgram | Selected) -> Mpi:
    """Return the MPI with the ranks of a program's communicator on their nodes of a testbed."""
    from collc.backends.mpi_c.members import ranks_of
    from collc.testbed.mpi import Inside

    programs = [program] if isinstance(program, AnyProgram) else [part for _, part in program.parts]
    ranks = ranks_of(programs)
    if ranks is None or not isinstance(mpi, Inside):
        return mpi
    return attrs.evolve(mpi, hosts=tuple(mpi.hosts[rank] for rank in ranks))


@contextlib.contextmanager
def _place(result: CollectiveResult, mpi: Mpi, calls: Calls) -> Iterator[tuple[Mpi, Model | None]]:
    """Yield the MPI, of this machine or of a testbed of the topology, and the model of its links or None."""
    if calls.testbed is None:
        yield mpi, Model.of(result, calls.alpha, calls.bandwidth)
        return
    from collc.testbed import network

    topology = result.request.problem.topology
    if topology.num_links == 0:
        message = f"`{result.name}` has no topology for a testbed"
        raise error("C0001", message, hint="run a .coll file", exit_status=2)
    with network(topology, calls.testbed, calls.delay) as built:
        yield built.mpi(mpi), Model.of(result, Fraction(calls.delay), None, widest=Fraction(calls.testbed))


def _programs(result: CollectiveResult) -> list[AnyProgram | Selected]:
    """Return the programs of a collective: its only one, or the function of several and those it never calls."""
    from collc.backends.mpi_c.selected import Selected

    if not result.algorithms:
        return [] if result.program is None else [result.program]
    parts = [(one.window, one.program) for one in result.algorithms]
    selected = Selected(tuple((window, program) for window, program in parts if window and program))
    return [selected, *selected.untried()]


def _run(
    program: AnyProgram | Selected, mpi: Mpi, model: Model | None, calls: Calls, report: Callable[[str], object]
) -> RunResult:
    """Run one program with its calls, else with the default ones of its collective."""
    from collc.backends.mpi_c.run import run as run_program

    report(f"{program.name}: building and running on {program.num_ranks} ranks")
    result = run_program(program, mpi=mpi, **calls.arguments(program.collective))
    rows = [attrs.evolve(row, name=program.name) for row in result.rows]  # the name of the function may differ
    return attrs.evolve(result, rows=with_model(rows, model))
