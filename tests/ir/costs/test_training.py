"""The model of an iteration: the streams by hand, and what holds for every workload and network."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.ir.costs.training import Iteration, Layer, Network, Workload, best_iteration, iteration

times = st.integers(0, 50).map(lambda value: Fraction(value, 7))
layers = st.builds(
    Layer, st.sampled_from("abc"), st.integers(0, 100), times, times, st.sampled_from([0, 0, 0, 1, 30])
)  # fmt: skip
workloads = st.builds(
    Workload, st.just("any"), st.lists(layers, min_size=1, max_size=8).map(tuple),
    st.lists(st.integers(1, 200), min_size=1, max_size=4).map(tuple),
)  # fmt: skip
#: latency of an allreduce, its seconds per byte, and those of an all-to-all
rates = st.tuples(
    times, st.integers(0, 9).map(lambda v: Fraction(v, 3)), st.integers(0, 9).map(lambda v: Fraction(v, 5))
)


def network(latency: Fraction, per_byte: Fraction, alltoall: Fraction | None) -> Network:
    return Network("any", lambda size: latency + per_byte * size if size else Fraction(0), alltoall)


def best(workload: Workload, rate: tuple[Fraction, Fraction, Fraction]) -> Iteration:
    found = best_iteration(workload, network(*rate))
    assert found is not None
    return found


def layer(name: str, gradient: int, forward: int, backward: int, alltoall: int = 0) -> Layer:
    return Layer(name, gradient, Fraction(forward), Fraction(backward), alltoall)


def timeline(found: Iteration) -> list[tuple[str, int, int]]:
    assert all(one.denominator == 1 for task in found.tasks for one in (task.start, task.end))
    return [(task.name, int(task.start), int(task.end)) for task in found.tasks]


# ---- by hand


def test_an_allreduce_overlaps_the_backward_pass_and_the_last_one_is_exposed() -> None:
    work = Workload("two", (layer("a", 10, 1, 4), layer("b", 10, 1, 4)), (10,))
    found = iteration(work, network(Fraction(1), Fraction(1, 5), None), 10)
    assert timeline(found) == [
        ("a", 0, 1), ("b", 1, 2), ("b", 2, 6), ("bucket 1", 6, 9), ("a", 6, 10), ("bucket 2", 10, 13),
    ]  # fmt: skip
    assert (found.time, found.compute, found.exposed, found.allreduce) == (13, 10, 3, 6)


def test_an_expert_layer_has_four_all_to_alls_which_wait_for_the_allreduces_before_them() -> None:
    work = Workload("expert", (layer("e", 0, 1, 2, alltoall=3), layer("d", 10, 1, 1)), (10,))
    found = iteration(work, network(Fraction(0), Fraction(1, 2), Fraction(1)), 10)
    assert timeline(found) == [
        ("e, dispatch", 0, 3), ("e", 3, 4), ("e, combine", 4, 7), ("d", 7, 8), ("d", 8, 9), ("bucket 1", 9, 14),
        ("e, combine, backward", 14, 17), ("e", 17, 19), ("e, dispatch, backward", 19, 22),
    ]  # fmt: skip
    assert (found.time, found.compute, found.exposed, found.alltoall) == (22, 5, 5, 12)


@pytest.mark.parametrize(("bucket", "sizes"), [(1, [9, 5, 7]), (10, [14, 7]), (15, [21]), (100, [21])])
def test_a_bucket_takes_whole_layers_until_it_has_its_capacity(bucket: int, sizes: list[int]) -> None:
    work = Workload("three", (layer("a", 7, 0, 1), layer("b", 5, 0, 1), layer("c", 9, 0, 1)), (bucket,))
    found = iteration(work, network(Fraction(0), Fraction(1), None), bucket)
    assert [task.size for task in found.tasks if task.kind == "allreduce"] == sizes


def test_an_unknown_all_to_all_gives_no_time_unless_the_workload_has_none() -> None:
    rates_without = network(Fraction(0), Fraction(1), None)
    assert best_iteration(Workload("e", (layer("e", 0, 1, 1, 5),), (1,)), rates_without) is None
    assert best_iteration(Workload("d", (layer("d", 1, 1, 1),), (1,)), rates_without) is not None


# ---- for every workload


@given(workloads, rates)
def test_the_parts_add_up_and_are_what_the_streams_do(
    work: Workload, rate: tuple[Fraction, Fraction, Fraction]
) -> None:
    """The time is that of the last task; one stream's tasks never overlap; all gradients are allreduced once."""
    for bucket in work.buckets:
        found = iteration(work, network(*rate), bucket)
        assert found.time == max((task.end for task in found.tasks), default=0)
        assert found.compute == work.compute <= found.time
        assert 0 <= found.exposed <= found.allreduce
        assert found.alltoall == 4 * sum(one.alltoall for one in work.layers) * rate[2]
        assert sum(task.size for task in found.tasks if task.kind == "allreduce") == work.gradient
        for stream in ("compute", "communication"):
            tasks = [task for task in found.tasks if task.stream == stream]
            assert all(one.end <= two.start for one, two in pairwise(tasks))
        blocked = [t for t in found.tasks if t.kind == "alltoall"]
        computing = [t for t in found.tasks if t.stream == "compute"]
        assert not any(max(a.start, c.start) < min(a.end, c.end) for a in blocked for c in computing)


@given(workloads, rates, st.integers(1, 5), st.integers(1, 5))
def test_more_bandwidth_or_less_latency_never_makes_an_iteration_slower(
    work: Workload, rate: tuple[Fraction, Fraction, Fraction], wider: int, quicker: int
) -> None:
    better = rate[0] / quicker, rate[1] / wider, rate[2] / wider
    for bucket in work.buckets:
        one = attrs.evolve(work, buckets=(bucket,))
        assert best(one, better).time <= best(one, rate).time
    assert best(work, better).time <= best(work, rate).time


@given(workloads, rates)
def test_the_best_bucket_is_the_least_of_all_and_the_largest_of_equals(
    work: Workload, rate: tuple[Fraction, Fraction, Fraction]
) -> None:
    every = {bucket: iteration(work, network(*rate), bucket).time for bucket in work.buckets}
    found = best(work, rate)
    assert found.time == min(every.values())
    assert found.bucket == max(bucket for bucket, time in every.items() if time == found.time)
