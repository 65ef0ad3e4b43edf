"""Every scheduler's output on two MPIs: a sample of benchmarks/conformance.py, and that it would say what is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import pytest
from places import benchmark

from collc.backends.mpi_c.results import Row
from collc.backends.mpi_c.run import Cases
from collc.backends.mpi_c.toolchain import Mpi
from collc.passes import SCHEDULERS

pytestmark = pytest.mark.needs("mpi")


conformance = benchmark("conformance")


def test_every_scheduler_and_all_its_collectives_are_among_them() -> None:
    assert {name.split(" ")[0] for name in conformance.SCHEDULERS} == set(SCHEDULERS)
    for name, cls in SCHEDULERS.items():
        tried = {kind for s, kinds in conformance.SCHEDULERS.items() if s.split(" ")[0] == name for kind in kinds}
        assert tried <= set(conformance.KINDS), (name, cls)
    for ranks in conformance.RANKS:
        sampled = {(one.scheduler, one.kind) for one in conformance.sample(ranks)}
        assert sampled <= {(one.scheduler, one.kind) for one in conformance.all_cases(ranks)}
        assert {scheduler for scheduler, _ in sampled} == set(conformance.schedulers(ranks))
    kinds = {one.kind for ranks in (4, 7) for one in conformance.sample(ranks)}
    assert kinds == set(conformance.KINDS)


@pytest.mark.parametrize(("ranks", "which"), [(4, "mpich"), (7, "openmpi")])
def test_a_sample_is_right(ranks: int, which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Each scheduler with one of its collectives: no, one, odd and uneven counts, both types, sum and user-defined."""
    mpi: Mpi = request.getfixturevalue(which)
    tried = conformance.Tried.of(conformance.sample(ranks))
    counts = (0, 1, 7, 1003)
    cases = Cases(counts, conformance.DTYPES, conformance.OPS, repeats=1, warmup=0)
    rows = conformance.run(tried, mpi, tmp_path, cases, ("-O0",))
    assert conformance.wrong(tried, rows, len(counts) * 2 * 2) == []
    assert len(rows) == len(conformance.schedulers(ranks))
    assert "WRONG" not in conformance.table(tried, rows, ranks)


def test_what_is_wrong_refused_or_not_called_is_said() -> None:
    good, lost = conformance.Case("bfb", "allgather", 4), conformance.Case("ring", "allgather", 4)
    refused = conformance.Case("bfb", "alltoall", 4)
    tried = conformance.Tried.of([good, lost, refused])
    assert set(tried.refused) == {refused} and set(tried.programs) == {good, lost}
    row = Row("c0", "allgather", 4, 7, 112, "int32", "none", True, (1e-6,))
    rows = {good: [row, attrs.evolve(row, detail="rank 1, receive element 0: found 1, expected 2")]}
    found = conformance.wrong(tried, rows)
    assert [part in line for part, line in zip(("refused", "called 0 times", "wrong in 1 of 2"), found, strict=True)]
    assert "element 0" in found[2] and "1 of 2 WRONG" in conformance.table(tried, rows, 4)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind here")
def test_a_sample_is_clean_under_valgrind(mpich: Mpi, tmp_path: Path) -> None:
    tried = conformance.Tried.of([one for one in conformance.sample(4) if one.scheduler in ("bfb", "ring", "steps")])
    calls, errors = conformance.valgrind_errors(tried, mpich, tmp_path, Cases((7,), ("int32",), ("user",), repeats=1))
    assert calls == 2 * len(tried.programs) == 6 and errors == []
