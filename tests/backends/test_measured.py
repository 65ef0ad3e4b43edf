"""Rows of measurements: quartiles, ratios, bus bandwidth, CSV."""

from __future__ import annotations

from statistics import median

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.backends.measured import Row, RunResult
from collc.ir.collective import KINDS

ROW = Row("f", "allreduce", 4, 8, 32, "int32", "sum", False, (4e-6, 1e-6, 2e-6), (8e-6, 6e-6))


def test_times_are_summed_up() -> None:
    assert (ROW.median, ROW.least, ROW.quartiles) == (2e-6, 1e-6, (1.5e-6, 3e-6))
    assert ROW.builtin_median == pytest.approx(7e-6) and ROW.ratio == pytest.approx(3.5)
    alone = attrs.evolve(ROW, times=(5e-6,), builtin_times=())
    assert (alone.median, alone.quartiles, alone.ratio) == (5e-6, (5e-6, 5e-6), None)
    none = attrs.evolve(ROW, times=())
    assert (none.median, none.least, none.quartiles, none.algbw, none.busbw, none.ratio) == (None,) * 6


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=30))
def test_half_of_the_times_lie_between_the_quartiles(times: list[float]) -> None:
    row = attrs.evolve(ROW, times=tuple(times))
    assert row.quartiles is not None
    low, high = row.quartiles
    eps = 1e-9 * max(times)
    assert min(times) - eps <= low <= median(times) + eps and median(times) - eps <= high <= max(times) + eps
    assert 2 * sum(low - eps <= t <= high + eps for t in times) >= len(times) - 2


def test_bus_bandwidth_is_what_a_rank_carries_at_least() -> None:
    """Of 32 bytes in 2 us: an allreduce takes each byte but a rank's own shard in and out, its halves once."""
    carried = {
        "allreduce": 48, "allgather": 24, "reduce-scatter": 24, "alltoall": 24, "gather": 24, "scatter": 24,
        "broadcast": 32, "reduce": 32,
    }  # fmt: skip
    assert set(carried) == set(KINDS)
    for kind, size in carried.items():
        assert attrs.evolve(ROW, kind=kind).busbw == pytest.approx(size / 2e-6), kind


def test_the_table_leaves_out_what_no_row_has() -> None:
    head = RunResult("x", 4, (ROW,), "C0708").table().splitlines()[1].split()
    assert {"q1", "q3", "builtin", "ratio"} <= set(head) and not {"model", "bound"} & set(head)
    told = attrs.evolve(ROW, model=1e-6, bound=5e-7, builtin_times=())
    head = RunResult("x", 4, (told,), "C0708").table().splitlines()[1].split()
    assert {"model", "bound"} <= set(head) and not {"builtin", "ratio"} & set(head)
