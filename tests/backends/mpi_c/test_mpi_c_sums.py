"""Custom collectives that reduce, as C: read back, and run with every kind of type and operation."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpi_c_builds import right
from mpi_fixtures import Built
from partial_sums import RANKS, reductions, scheduled

from collc.backends.mpi_c.emit import MpiC
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.collective import Collective, preconditions
from collc.passes.lowering.lower import Lower


@given(reductions(), st.randoms(use_true_random=False))
def test_files_read_back(collective: Collective, luck: Random) -> None:
    program = Lower().run(scheduled(collective, luck))
    target = MpiC()
    report = target.check(program, target.emit(program))
    assert report.ok, report


@pytest.mark.needs("mpi")
def test_sums_are_right_on_an_mpi(mpich: Mpi, tmp_path: Path) -> None:
    sources, targets = [(0, 1, 3), (2,), (1, 2), (0, 1, 2, 3)], ((2,), (0, 3), (), (0, 1))
    pre, contributors = preconditions(sources)
    collective = Collective("custom", RANKS, pre=pre, post=targets, contributors=contributors)
    built = Built(mpich, [Lower().run(scheduled(collective, Random(1)))], tmp_path)
    cases = built.run(counts=(0, 7, 1000), dtypes=("int32", "float64", "strided"), ops=("sum", "max", "user"))
    assert right(cases) == 3 * (3 + 3 + 1)
