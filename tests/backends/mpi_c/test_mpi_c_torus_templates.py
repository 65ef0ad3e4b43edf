"""C files of torus algorithms that list rank 0 and a group: read back, faults, calls on a real MPI."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import numpy as np
import pytest
from mpi_c_builds import right
from mpi_fixtures import Built
from sampling import EXHAUSTIVE

import collc
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.collective import Collective
from collc.ir.spec import Problem
from collc.ir.symmetric import SYMMETRIC_KINDS, SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.verify import Report
from collc.passes.lowering.template import lower_template
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.torus.bine import Bine
from collc.passes.synthesis.torus.bucket import Bucket
from collc.passes.synthesis.torus.doubling import Rabenseifner
from collc.passes.synthesis.torus.pat import PAT
from collc.passes.synthesis.torus.ring import Ring
from collc.passes.synthesis.torus.swing import Swing
from collc.passes.synthesis.torus.trivance import Trivance

LATENCY = (("swing", "torus(4, 4)"), ("swing", "torus(2, 8)"), ("trivance", "torus(3, 9)"))
OTHERS = (("pat", "torus(11)"), ("rabenseifner", "hypercube(4)"), ("swing", "hypercube(3)"))
CASES = (
    ("swing", "torus(4, 4)"), ("ring", "biring(9)"), ("bucket", "torus(3, 4)"), ("bine", "torus(8)"),
    ("swing", "torus(12)"), ("swing", "torus(2, 6)"), ("trivance", "torus(3, 5)"), *OTHERS,
)  # fmt: skip
ALGORITHMS = {
    "swing": Swing, "trivance": Trivance, "ring": Ring, "bucket": Bucket, "bine": Bine, "rabenseifner": Rabenseifner,
    "pat": PAT,
}  # fmt: skip
TABLES = (
    "algorithm_moves", "piece_place", "piece_count", "step_count", "block_send_peer", "block_recv_peer", "wait_step",
    "word_generator", "word_rest", "generator_times",
)  # fmt: skip


def program_of(scheduler: str, net: str, kind: str, **options: str) -> SymmetricProgram:
    topology = collc.topology(net)
    this = ALGORITHMS[scheduler](template=True, **options)  # type: ignore[arg-type]
    found = Discretize(templates=True).run(this.run(Problem(topology, Collective(kind, topology.num_ranks))))
    assert isinstance(found, SymmetricSchedule)
    program = lower_template(found)
    assert program is not None
    return program.renamed(kind.replace("-", "_"))


def read(program: SymmetricProgram, text: str) -> Report:
    files = MpiC().emit(program)
    return MpiC().check(program, [attrs.evolve(files[0], text=text), files[1]])


@pytest.mark.quick
@pytest.mark.parametrize("kind", SYMMETRIC_KINDS)
@pytest.mark.parametrize(("scheduler", "net"), CASES)
def test_files_are_read_back(scheduler: str, net: str, kind: str) -> None:
    program = program_of(scheduler, net, kind)
    report = MpiC().check(program, MpiC().emit(program))
    assert report.ok, report.failed
    assert any(f"executed 1 of {program.num_ranks} ranks" in check.detail for check in report.checks)


@pytest.mark.parametrize("table", TABLES)
def test_a_changed_number_is_found(table: str) -> None:
    program = program_of("swing", "torus(4, 4)", "allreduce")
    text = MpiC().emit(program)[0].text
    start = text.index(f" {table}[] = {{")
    body = text[start : text.index("};", start)]
    for place in list(re.finditer(r"\d+,", body))[:: 1 if EXHAUSTIVE else 7][:10]:
        at = start + place.start()
        digit = str((int(text[at]) + 1) % 10)
        assert not read(program, text[:at] + digit + text[at + 1 :]).ok, (table, place[0])


@pytest.mark.quick
@pytest.mark.parametrize(("scheduler", "net"), LATENCY)
def test_files_of_latency_variants_are_read_back(scheduler: str, net: str) -> None:
    program = program_of(scheduler, net, "allreduce", variant="latency")
    assert program.fixed and all(length == 1 for length in np.diff(program.message_start))
    report = MpiC().check(program, MpiC().emit(program))
    assert report.ok, report.failed
    assert any(f"executed 1 of {program.num_ranks} ranks" in check.detail for check in report.checks)


@pytest.mark.parametrize("table", [*TABLES[:1], "step_src", "step_dst", "step_count", *TABLES[4:]])
def test_a_changed_number_of_a_latency_variant_is_found(table: str) -> None:
    program = program_of("swing", "torus(4, 4)", "allreduce", variant="latency")
    text = MpiC().emit(program)[0].text
    start = text.index(f" {table}[] = {{")
    body = text[start : text.index("};", start)]
    for place in list(re.finditer(r"\d+,", body))[:: 1 if EXHAUSTIVE else 7][:10]:
        at = start + place.start()
        digit = str((int(text[at]) + 1) % 10)
        assert not read(program, text[:at] + digit + text[at + 1 :]).ok, (table, place[0])


@pytest.mark.needs("mpi")
@pytest.mark.parametrize(("scheduler", "net"), LATENCY if EXHAUSTIVE else LATENCY[:1])
def test_calls_of_latency_variants_on_a_real_mpi(scheduler: str, net: str, mpich: Mpi, tmp_path: Path) -> None:
    built = Built(mpich, [program_of(scheduler, net, "allreduce", variant="latency")], tmp_path)
    assert right(built.run(counts=(0, 1, 5, 1000), dtypes=("float64",), ops=("sum", "user"))) > 0


@pytest.mark.needs("mpi")
@pytest.mark.parametrize(("scheduler", "net"), CASES if EXHAUSTIVE else CASES[:3])
def test_calls_on_a_real_mpi(scheduler: str, net: str, mpich: Mpi, tmp_path: Path) -> None:
    built = Built(mpich, [program_of(scheduler, net, kind) for kind in SYMMETRIC_KINDS], tmp_path, library=True)
    assert right(built.run(counts=(0, 5, 1000), dtypes=("float64",), ops=("sum", "user"))) > 0
