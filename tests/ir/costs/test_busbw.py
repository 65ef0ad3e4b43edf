"""The factors between algbw and busbw are those of nccl-tests, by value."""

from __future__ import annotations

from fractions import Fraction

import pytest

from collc.backends.measured import Row
from collc.ir.collective import KINDS
from collc.ir.costs.busbw import bus_factor

#: collective -> the factor that PERFORMANCE.md of nccl-tests derives, at 2, 8 and 18 ranks
PUBLISHED = {
    "allreduce": ("1", "7/4", "17/9"), "allgather": ("1/2", "7/8", "17/18"), "reduce-scatter": ("1/2", "7/8", "17/18"),
    "alltoall": ("1/2", "7/8", "17/18"), "gather": ("1/2", "7/8", "17/18"), "scatter": ("1/2", "7/8", "17/18"),
    "broadcast": ("1", "1", "1"), "reduce": ("1", "1", "1"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PUBLISHED)
def test_factors_are_those_of_nccl_tests(kind: str) -> None:
    assert tuple(map(Fraction, PUBLISHED[kind])) == tuple(bus_factor(kind, ranks) for ranks in (2, 8, 18))


def test_the_collectives_of_nccl_tests_have_a_factor() -> None:
    assert set(PUBLISHED) == {kind for kind in KINDS if bus_factor(kind, 8) is not None}
    assert bus_factor("allreduce", 1) == 0 and bus_factor("nothing of nccl-tests", 8) is None


def test_measured_runs_use_the_same_table() -> None:
    """4 MB in 1 ms on 4 ranks: 4 GB/s, and 6 GB/s on the bus."""
    row = Row("a", "allreduce", 4, 10**6, 4 * 10**6, "float32", "sum", False, times=(1e-3,))
    assert (row.algbw, row.busbw) == (pytest.approx(4e9), pytest.approx(6e9))
