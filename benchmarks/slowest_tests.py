"""Which tests take the most CPU time, and how much all of them take, their child processes included.

    python benchmarks/slowest_tests.py [--most 30] [ARGUMENTS OF PYTEST: -m quick, -n 2, tests/ir/costs/test_cost.py ..]

CPU time says the same on a busy machine as on a quiet one. A test whose fixtures others share pays for them if it is
the first. Where a quick test stands high in the list of `-m quick`, make it cheaper or mark it `slow`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest


def used() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Meter:
    """Writes into each report what was used since the one before, in the process that runs the test."""

    def __init__(self) -> None:
        self.last = used()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self.last = used()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = used()
        report.cpu_seconds, self.last = now - self.last, now  # type: ignore[attr-defined]
        return report


class Table:
    """Adds up what the reports say, in the process that hears of all."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += getattr(report, "cpu_seconds", 0.0)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Meter())


def ranked(seconds: Mapping[str, float], most: int) -> list[str]:
    """Return a line for each of the tests, and of the modules, that take the most."""
    modules: dict[str, float] = defaultdict(float)
    for name, each in seconds.items():
        modules[name.split("::")[0]] += each
    lines = []
    for title, kind in (("tests", seconds), ("modules", modules)):
        lines.append(f"\nCPU seconds of {title}")
        first = sorted(kind.items(), key=lambda item: (-item[1], item[0]))[:most]
        lines += [f"{each:8.2f}  {name}" for name, each in first]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=30, help="how many tests and modules are listed")
    options, rest = parser.parse_known_args()
    table, before = Table(), used()
    status = pytest.main(["-p", Path(__file__).stem, *rest], plugins=[table])
    print("\n".join(ranked(table.seconds, options.most)))
    print(f"\n{len(table.seconds)} tests, {sum(table.seconds.values()):.1f} CPU seconds; {used() - before:.1f} in all")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
