"""Every scatter of Swing and the algorithms like it on many shapes of tori: is every block moved exactly once?

    python benchmarks/torus_shapes.py [--most RANKS] [--executor processes:2]

The tests do all small shapes for Swing and some for the others; this does every shape of the notes for all algorithms
and options, larger rectangles and four dimensions, and executes a schedule of each shape of up to 64 ranks besides. Of
every tenth plan a block is dropped and another sent twice, which must be noticed. Prints what is wrong, then one line;
the exit status is 1 if anything was.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from torus_checks import all_parts, problem, scatter_rows, shapes, wrong

from collc.frontends.coll.families.cayley import torus
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.torus.base import TorusPass
from collc.passes.synthesis.torus.bine import Bine
from collc.passes.synthesis.torus.bucket import Bucket
from collc.passes.synthesis.torus.doubling import Rabenseifner, RecursiveDoubling
from collc.passes.synthesis.torus.pat import PAT
from collc.passes.synthesis.torus.ring import Ring
from collc.passes.synthesis.torus.swing import Swing
from collc.passes.synthesis.torus.trivance import Trivance
from collc.processes.engines import executing
from collc.processes.workers import Work

SCATTERING: tuple[TorusPass, ...] = (
    Swing(variant="bandwidth", reparent=False), Swing(variant="bandwidth", reparent=True), Bucket(), Ring(), Bine(),
    Bine(order="halving"), PAT(), PAT(buffer=4), Trivance(variant="bandwidth"), Ring(schedule="bfb"),
)  # fmt: skip
EXECUTED: tuple[TorusPass, ...] = (
    *SCATTERING, Swing(variant="latency"), Swing(variant="latency", identical=False), Swing(ports=1),
    RecursiveDoubling(), RecursiveDoubling(mirrored="neg"), RecursiveDoubling(mirrored="reflect"), Rabenseifner(),
    Rabenseifner(mirrored="neg"), Rabenseifner(mirrored="reflect"),
)  # fmt: skip

#: right for maxima in even sizes, where contributions come twice
UNFOLDED = Swing(variant="latency", fold=False)


def chosen(most: int) -> list[tuple[int, ...]]:
    """Return the shapes of the tests, rectangles of sides to 20, and four dimensions of sides to 4."""
    more = [*product(range(2, 21), repeat=2), *product(range(1, 5), repeat=4)]
    return sorted({shape for shape in [*shapes(), *more] if 1 < np.prod(shape) <= most})


def scattered(algorithm: TorusPass, shape: tuple[int, ...]) -> Iterator[str | None]:
    """Yield what is wrong with every chunk's sends, each rank's p - 1 blocks, or nothing."""
    ranks = int(np.prod(shape))
    for number, chunk in enumerate(all_parts(algorithm, shape)):
        rows = scatter_rows(chunk)
        yield wrong(ranks, rows)
        if number % 10 == 0:
            row = len(rows[0]) // 2
            fewer = tuple(np.delete(column, row) for column in rows)
            more = tuple(np.append(column, column[row]) for column in rows)
            for changed, mistake in ((fewer, "dropped"), (more, "repeated")):
                yield None if wrong(ranks, changed) else f"a block {mistake} is not noticed"  # type: ignore[arg-type]


def executed(algorithm: TorusPass, shape: tuple[int, ...], op: str = "sum") -> str | None:
    """Return what is wrong with the schedule of an allreduce, or nothing."""
    report = verify_schedule(algorithm.run(problem(torus(*shape), op=op)))
    return None if report.ok else str(report.failed)


def tried(shape: tuple[int, ...]) -> tuple[int, list[str]]:
    """Return how many plans and schedules of a torus were tried, and what is wrong."""
    found = [(a, mistake) for a in SCATTERING for mistake in scattered(a, shape)]
    if np.prod(shape) <= 64:
        found += [(a, executed(a, shape)) for a in EXECUTED]
        if not any(size % 2 for size in shape if size > 1):
            found.append((UNFOLDED, executed(UNFOLDED, shape, "max")))
    return len(found), [f"{shape}: {algorithm}: {mistake}" for algorithm, mistake in found if mistake]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=400, help="the most ranks of a torus")
    parser.add_argument("--executor", metavar="ENGINE", help="workers, as for `collc sweep`: processes:2")
    options, begin, failures, checked = parser.parse_args(), time.perf_counter(), 0, 0
    tori = chosen(options.most)
    with executing(options.executor) as workers:
        results = Work(workers).run(tried, [(shape,) for shape in tori], [str(shape) for shape in tori])
    for count, mistakes in results:
        checked, failures = checked + count, failures + len(mistakes)
        for mistake in mistakes:
            print(mistake)
    verdict, seconds = "FAILED" if failures else "ok", time.perf_counter() - begin
    print(f"{verdict}: {checked} plans and schedules on {len(tori)} tori, {failures} wrong, {seconds:.0f} s")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
