"""Every scatter of Swing and the algorithms like it on many shapes of tori: is every block moved exactly once?

    python benchmarks/torus_shapes.py [--most RANKS]

The tests do all small shapes for Swing and some for the others; this does every shape of the notes for all algorithms
and options, larger rectangles and four dimensions, and executes a schedule of each shape of up to 64 ranks besides.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from torus_checks import all_chunks, problem, scatter_rows, shapes, wrong

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

SCATTERING: tuple[TorusPass, ...] = (
    Swing(variant="bandwidth", reparent=False), Swing(variant="bandwidth", reparent=True), Bucket(), Ring(), Bine(),
    Bine(order="halving"), PAT(), PAT(buffer=4), Trivance(variant="bandwidth"),
)  # fmt: skip
EXECUTED: tuple[TorusPass, ...] = (
    *SCATTERING, Swing(variant="latency"), Swing(variant="latency", identical=False), RecursiveDoubling(),
    RecursiveDoubling(mirrored="neg"), RecursiveDoubling(mirrored="reflect"), Rabenseifner(),
    Rabenseifner(mirrored="neg"), Rabenseifner(mirrored="reflect"),
)  # fmt: skip


def chosen(most: int) -> list[tuple[int, ...]]:
    """Return the shapes of the tests, rectangles of sides to 20, and four dimensions of sides to 4."""
    more = [*product(range(2, 21), repeat=2), *product(range(1, 5), repeat=4)]
    return sorted({shape for shape in [*shapes(), *more] if 1 < np.prod(shape) <= most})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=400, help="the most ranks of a torus")
    most, begin, failures, checked = parser.parse_args().most, time.perf_counter(), 0, 0
    for shape in chosen(most):
        ranks = int(np.prod(shape))
        found = [(a, wrong(ranks, scatter_rows(c))) for a in SCATTERING for c in all_chunks(a, shape)]
        if ranks <= 64:
            made = ((a, verify_schedule(a.run(problem(torus(*shape))))) for a in EXECUTED)
            found += [(a, None if report.ok else str(report.failed)) for a, report in made]
        checked += len(found)
        for algorithm, mistake in found:
            if mistake:
                failures += 1
                print(f"{shape}: {algorithm}: {mistake}")
    print(f"{checked} plans and schedules, {failures} wrong, {time.perf_counter() - begin:.0f} s")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
