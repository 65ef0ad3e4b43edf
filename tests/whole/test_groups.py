"""Which tests are quick, which run one after another, and which take the most."""

from __future__ import annotations

import pytest
from places import benchmark


@pytest.mark.needs("mpi")
def test_those_with_a_need_are_a_group(request: pytest.FixtureRequest) -> None:
    """Without groups the same MPI jobs would be built on every worker and run against each other."""
    assert request.node.get_closest_marker("xdist_group").args == ("mpi",)
    if getattr(request.config.option, "loadgroup", False):
        assert request.node.nodeid.endswith("@mpi")
    assert not request.node.get_closest_marker("quick")


@pytest.mark.slow
def test_slow_ones_are_not_quick(request: pytest.FixtureRequest) -> None:
    assert not request.node.get_closest_marker("quick")


def test_all_others_are(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("quick")


def test_the_slowest_come_first() -> None:
    """Tests by themselves, modules with all of theirs."""
    seconds = {"a.py::x": 1.0, "a.py::y": 2.0, "b.py::z": 2.5}
    lines = benchmark("slowest_tests").ranked(seconds, 2)
    assert [line.split()[1] for line in lines if "::" in line] == ["b.py::z", "a.py::y"]
    assert [line.split() for line in lines if line.endswith(".py")] == [["3.00", "a.py"], ["2.50", "b.py"]]
