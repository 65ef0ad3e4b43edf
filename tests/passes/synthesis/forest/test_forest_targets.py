"""Forests of machines with switches, from the specification to files that are read back and to a real MPI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from mpi_fixtures import Built
from sampling import every

import collc as api
from collc.backends.mpi_c.toolchain import Mpi

pytestmark = pytest.mark.needs("mpi")

KINDS = ("allgather", "reduce-scatter", "allreduce")
MACHINES = (("dgx_a100(2)", "optimal"), ("dgx_a100(2)", "1"), ("mi250(2)", "2"), ("mi250(2)", "optimal"))


def spec(topology: str, k: str, more: str = "") -> str:
    lines = [f"topology t = {topology};"]
    for number, kind in enumerate(KINDS):
        lines += [f"collective c{number} = {kind} on t;", f"schedule c{number} using forest {{ k: {k}{more} }};"]
    return "\n".join(lines)


@pytest.mark.parametrize(("topology", "k"), every(2, MACHINES))
def test_files_for_the_executor(topology: str, k: str, collc: Callable[..., Ran]) -> None:
    """Within the runtime's limits, or refused by name of the limit; right in place and out of place."""
    Path("a.coll").write_text(spec(topology, k))
    done = collc("compile", "a.coll", "-t", "msccl-xml{runtime=executor}", "-o", "out/")
    assert done.status == 0, done.err
    for number in range(len(KINDS)):
        verified = collc("verify", f"out/c{number}.xml", "--runtime", "executor")
        assert verified.status == 0, verified.out + verified.err
        for place in ("in place", "out of place"):
            assert f"  ok  {place}: postcondition " in verified.out


def test_too_many_pieces_name_the_limit_and_what_fits(collc: Callable[..., Ran]) -> None:
    """Pieces that a user insists on are not made fewer: the limit is named, and what stays within it."""
    Path("a.coll").write_text(spec("dgx_a100(2)", "optimal", ", pieces: 64"))
    done = collc("compile", "a.coll", "-t", "msccl-xml{runtime=executor}", "-o", "out/", "--collective", "c2")
    assert done.status == 3 and "the limit is 32 [C0509]" in done.err and "hint: 32 pieces fit" in done.err, done.err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("topology", "k"), every(2, [("dgx_a100(2)", "optimal"), ("dgx_a100(2)", "1"), ("mi250(2)", "2")])
)
def test_programs_on_mpi(topology: str, k: str, mpich: Mpi, tmp_path: Path) -> None:
    """Every element of 16 ranks, and of 32, in place and out of place; shares that counts do not divide too."""
    made = [result.program for result in api.compile_source(spec(topology, k)).collectives.values()]
    built = Built(mpich, [program for program in made if program is not None], tmp_path, library=True)
    assert len(built.sources) == len(KINDS)
    ranks = 32 if "mi250" in topology else 16
    counts = (0, 1, 1000) if ranks == 16 else (999,)
    result = built.run(counts=counts, dtypes=("int32",), ops=("sum",))
    assert [(row.name, row.count, row.in_place, row.detail) for row in result.rows if not row.correct] == []
    assert len(result.rows) == len(KINDS) * len(counts) * 2
