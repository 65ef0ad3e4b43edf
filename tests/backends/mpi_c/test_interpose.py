"""Libraries for LD_PRELOAD: every call of a program that knows nothing of them ends as without them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import attrs
import pytest
from built_programs import direct, ring
from interposed import PROGRAM, Preloaded, Ran, everything, functions

from collc.backends.base import Window
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.interpose import Served, interposed, require_distinct
from collc.backends.mpi_c.interpose.build import build
from collc.backends.mpi_c.interpose.report import read_report
from collc.backends.mpi_c.source import Function
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.ir.diagnostic import CollcError

pytestmark = pytest.mark.needs("mpi")


#: what the C of the library may not need: it is preloaded into programs that have no MPI yet
UNDEFINED = re.compile(r" U (P?MPI_|ompi_|OMPI_)\w+")


@pytest.fixture(scope="module")
def on_mpich(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(mpich, tmp_path_factory.mktemp("mpich"), [*everything(4), *functions_of(2)])


@pytest.fixture(scope="module")
def on_openmpi(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(openmpi, tmp_path_factory.mktemp("openmpi"), [*everything(4), *functions_of(2)])


def functions_of(ranks: int) -> list[Served]:
    """Algorithms for another number of ranks, in the same library."""
    made = [ring("allreduce", ranks), ring("allgather", ranks)]
    return [Served(Function(f"g{n}", ((None, program),))) for n, program in enumerate(made)]


# ---- the library


def test_it_needs_no_mpi(on_mpich: Preloaded, on_openmpi: Preloaded) -> None:
    readelf, nm = shutil.which("readelf"), shutil.which("nm")
    if not (readelf and nm):
        pytest.skip("no binutils here")
    for made in (on_mpich, on_openmpi):
        dynamic = subprocess.run([readelf, "-d", made.library], capture_output=True, text=True, check=True).stdout
        assert "libc.so" in dynamic and "libmpi" not in dynamic
        assert "RPATH" not in dynamic and "RUNPATH" not in dynamic
        wants = subprocess.run([nm, "-D", made.library], capture_output=True, text=True, check=True).stdout
        assert not UNDEFINED.findall(wants)
        given = set(re.findall(r" [TWV] (\w+)", wants))
        assert {"MPI_Allreduce", "MPI_Finalize"} <= given and all(name.startswith(("MPI_", "mpi_")) for name in given)
        # Fortran functions of Open MPI bypass those in C.
        assert ({"mpi_allreduce_", "mpi_allreduce", "MPI_ALLREDUCE", "mpi_reduce_f08_"} <= given) == (
            made is on_openmpi
        )
        # A program that finds a function for large counts takes it for its MPI's.
        assert ("MPI_Allreduce_c" in given) == (made is on_mpich)


def test_it_loads_into_programs_without_mpi(on_openmpi: Preloaded) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", "echo hello"], capture_output=True, text=True, check=True,
        env={**os.environ, "LD_PRELOAD": str(on_openmpi.library), "LD_BIND_NOW": "1", "COLLC_STATS": "1"},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("hello\n", "")


# ---- calls


def right(ran: Ran, ranks: int, calls: int) -> None:
    assert ran.status == 0, ran.err
    assert f"calls {calls}\nwrong 0\n" in ran.out
    assert ran.report.ranks == ranks and ran.report.refused == 0


@pytest.mark.parametrize("seed", [1])
def test_every_call_ends_as_without_it(seed: int, on_mpich: Preloaded) -> None:
    ran = on_mpich.run(4, 90, seed)
    right(ran, 4, 90)
    ends = {end for _, end in ran.report.calls}
    assert {"served", "another root", "communicator of another size", "no data"} <= ends
    assert {"intercommunicator", "within another call"} <= ends
    assert ran.report.served > 150


def test_every_function_is_served(on_mpich: Preloaded, on_openmpi: Preloaded) -> None:
    heard = [made.run(4, 110, 7).report for made in (on_mpich, on_openmpi)]
    for report, large in zip(heard, (True, False), strict=True):
        served = {name for (name, end), _ in report.calls.items() if end == "served"}
        plain = {name for name in served if not name.endswith("_c")}
        assert len(plain) == 9
        assert (len(served) > 14) == large


@pytest.mark.parametrize("seed", [3])
def test_every_call_ends_as_without_it_on_another_mpi(seed: int, on_openmpi: Preloaded) -> None:
    ran = on_openmpi.run(4, 80, seed)
    right(ran, 4, 80)
    assert ran.report.served > 100


def test_several_numbers_of_ranks(on_mpich: Preloaded) -> None:
    right(two := on_mpich.run(2, 60, 5), 2, 60)
    served = {name.removesuffix("_c") for (name, end), _ in two.report.calls.items() if end == "served"}
    assert served == {"MPI_Allreduce", "MPI_Allgather"}
    assert "no algorithm for the collective" not in {end for _, end in two.report.calls}
    right(three := on_mpich.run(3, 30, 5), 3, 30)
    # Of three ranks two have a communicator to themselves; the library is for that size.
    assert {name.removesuffix("_c") for name, end in three.report.calls if end == "served"} <= {
        "MPI_Allreduce", "MPI_Allgather",
    }  # fmt: skip
    assert 3 in three.report.sizes or 1 in three.report.sizes


def test_a_wrong_schedule_is_seen(mpich: Mpi, tmp_path: Path) -> None:
    """The program compares: a library whose allgather is another collective's does not pass."""
    made = Preloaded.__new__(Preloaded)
    text = interposed("lib", everything(4))
    planted = text.replace("CIP_ALLTOALL, 4, -1", "CIP_ALLGATHER, 4, -1", 1)
    planted = planted.replace("{CIP_ALLGATHER, 4, -1, 0", "{CIP_ALLTOALL, 4, -1, 0", 1)
    assert planted != text
    made.mpi, made.folder, made.library, made.program = mpich, tmp_path, tmp_path / "lib.so", tmp_path / "program"
    build(mpich, planted, made.library)
    compile_c(mpich, [PROGRAM], made.program)
    ran = made.run(4, 30, 1)
    assert ran.status != 0 or "wrong 0" not in ran.out


# ---- statistics


def test_statistics(on_mpich: Preloaded, tmp_path: Path) -> None:
    ran = on_mpich.run(4, 8, 1, COLLC_STATS="1")
    first = re.search(r"collc: (\d+) calls served, (\d+) left to the MPI \(sums over 4 ranks\)", ran.err)
    assert first and (int(first[1]), int(first[2])) == (ran.report.served, ran.report.left)
    assert re.search(r"^collc:   MPI_\w+: \d+ served", ran.err, re.MULTILINE)
    on_mpich.run(4, 8, 1, COLLC_STATS=str(tmp_path / "numbers"))
    assert first[0] in (tmp_path / "numbers").read_text()
    silent = on_mpich.run(4, 1, 1, COLLC_STATS="0")
    assert "collc" not in silent.err


def test_it_can_be_switched_off(on_mpich: Preloaded) -> None:
    ran = on_mpich.run(4, 20, 1, COLLC_DISABLE="1", COLLC_STATS="1")
    assert "wrong 0" in ran.out and ran.report.served == 0 and "collc" not in ran.err


def test_under_another_mpi_it_refuses(on_mpich: Preloaded, on_openmpi: Preloaded) -> None:
    for program, other in ((on_mpich, on_openmpi), (on_openmpi, on_mpich)):
        ran = program.run(4, 20, 1, library=other.library)
        assert "calls 20\nwrong 0" in ran.out
        assert ran.err.count("collc: nothing is served: this library is for") == 1
        assert ran.report.refused == ran.report.ranks == 4 and ran.report.served == 0


def test_a_report_that_was_cut_off() -> None:
    report = read_report("rank 0 of 2, on, last size 3\nMPI_Bcast\tserved\t4\nMPI_Bcast\tanother root\t1\nMPI_Bc")
    assert (report.ranks, report.served, report.left, report.sizes) == (1, 4, 1, (3,))
    assert report.table().splitlines()[1] == "collc:   MPI_Bcast: 4 served; left: 1 another root"


# ---- which calls


def test_ranges_of_sizes(mpich: Mpi, tmp_path: Path) -> None:
    small, large = (Function(f"f{n}", ((None, ring("allreduce", 4, 1)),)) for n in range(2))
    served = [Served(small, 0, 255), Served(large, 4096)]
    made = Preloaded(mpich, tmp_path, served, strict=False)
    ran = made.run(4, 50, 4)
    right(ran, 4, 50)
    ends = {end for name, end in ran.report.calls if name.startswith("MPI_Allreduce")}
    assert {"served"} <= ends and "no algorithm for the collective" in {end for _, end in ran.report.calls}


def test_windows_of_several_algorithms_narrow() -> None:
    parts = tuple((Window("ring", low, high, "x"), ring("allreduce", 4)) for low, high in ((64, 100), (101, 4096)))
    served = Served(Function("f", parts), 80)
    assert served.sizes == (80, 4096) and str(served) == "allreduce of 4 ranks, 80 to 4096 bytes"
    assert Served(Function("f", parts), 0, 1000).sizes == (64, 1000)


def test_two_for_the_same_calls_are_refused() -> None:
    with pytest.raises(CollcError, match="C0730"):
        interposed("lib", functions(ring("allreduce", 4), direct("allreduce", 4)))
    one, other = functions(ring("allreduce", 4), direct("allreduce", 4))
    require_distinct([attrs.evolve(one, high=99), attrs.evolve(other, low=100)])
    with pytest.raises(CollcError, match="C0730"):
        require_distinct([attrs.evolve(one, high=100), attrs.evolve(other, low=100)])
    require_distinct(functions(ring("allreduce", 4), ring("allreduce", 8)))
    require_distinct(functions(ring("broadcast", 4, root=0), ring("broadcast", 4, root=1)))


# ---- the target


def test_the_target_makes_one_file_of_all() -> None:
    target = MpiC(interpose=True)
    parts = [target.emit(direct(kind, 4))[0] for kind in ("allgather", "reduce")]
    (joined,) = target.join(parts)
    assert joined.filename == "collc_interpose.c" and "CIP_ALLGATHER, 4, -1" in joined.text
    assert "CIP_REDUCE, 4, 0" in joined.text and joined == target.join(parts)[0]
    assert MpiC(interpose=True, library="fast").join(parts)[0].filename == "fast.c"


@pytest.mark.parametrize(
    "options",
    [
        {"interpose": True, "function": "f"}, {"min_bytes": 1}, {"max_bytes": 0},
        {"interpose": True, "min_bytes": 2, "max_bytes": 1}, {"interpose": True, "min_bytes": -1},
    ],
)  # fmt: skip
def test_options_that_do_not_fit(options: dict[str, object]) -> None:
    with pytest.raises(CollcError, match="C0731"):
        MpiC(**options).emit(direct("allgather", 4))  # type: ignore[arg-type]


def test_a_compiler_that_cannot_link(mpich: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.backends.mpi_c.interpose.build._compiler", lambda mpi: "/nowhere/cc")
    with pytest.raises(CollcError, match="C0732"):
        build(mpich, "int some;\n", tmp_path / "lib.so")
    monkeypatch.setattr("collc.backends.mpi_c.interpose.build._compiler", lambda mpi: "false")
    with pytest.raises(CollcError, match="C0732"):
        build(mpich, "int some;\n", tmp_path / "lib.so")
    assert not list(tmp_path.iterdir())


def test_a_header_of_another_mpi(mpich: Mpi, tmp_path: Path) -> None:
    with pytest.raises(CollcError, match="C0703"):
        build(
            attrs.evolve(mpich, vendor="Open MPI"), interposed("lib", functions(ring("allreduce", 4))), tmp_path / "x"
        )
