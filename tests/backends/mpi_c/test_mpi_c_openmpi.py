"""The same generated C under a second MPI, which has another ABI, other handles and other protocols."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi_c_builds import SYNTHESIZED, by_hand, right, synthesized
from mpi_fixtures import Built
from nets import generalized_kautz, hypercube, torus
from sampling import every

from collc.backends.mpi_c.run import emit_all
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.topology import Topology

pytestmark = pytest.mark.needs("mpi")


def test_it_is_another_mpi(mpich: Mpi, openmpi: Mpi) -> None:
    assert openmpi.vendor == "Open MPI" and openmpi.version == "5.0.11"
    assert mpich.folder != openmpi.folder


@pytest.mark.parametrize("topology", every(2, [torus(2, 2), generalized_kautz(2, 7), hypercube(3), torus(3, 3)], 1))
def test_compiled_collectives(topology: Topology, openmpi: Mpi, tmp_path: Path) -> None:
    built = Built(openmpi, [synthesized(topology, kind) for kind in SYNTHESIZED], tmp_path, library=True)
    assert right(built.run(counts=(0, 1, 7, 1000), dtypes=("int32", "strided"), ops=("sum", "user"))) == 64
    assert right(built.run("all_allreduce_2", counts=(300_000,))) == 2


@pytest.mark.parametrize(("ranks", "chunks"), [(2, 3), (4, 3)])
def test_every_collective(ranks: int, chunks: int, openmpi: Mpi, tmp_path: Path) -> None:
    built = Built(openmpi, by_hand(ranks, chunks), tmp_path, ["-O0"], library=True)
    assert right(built.run(counts=(0, 1, 7, 1000), dtypes=("float32", "strided"), ops=("sum", "user"))) > 100
    if ranks == 4:  # messages too large for the MPI to buffer
        assert right(built.run(counts=(100_003,), dtypes=("float64",), ops=("max",))) > 30


def test_the_text_is_the_same_for_both(mpich: Mpi, openmpi: Mpi) -> None:
    texts = [{name: source.text for name, (_, source) in emit_all(by_hand(3, 2)).items()} for _ in (mpich, openmpi)]
    assert texts[0] == texts[1]
