"""Figures 3, 15 and 18 of the direct-connect paper: the data as CSV and the curves as SVG.

    python benchmarks/figures.py [--figure N ..] [--output DIR] [--most N] [--step N] [--executor processes:2]

3: T_B over its optimum for line graphs of four bases of degree 4 that are optimal in both terms. Figure 15: the least
time of an allreduce over N at d = 4, from the database of `collc find` (the sizes it has). Figure 18: T_B over its
optimum for generalized Kautz digraphs of degree 2, 4, 8 and 16. All values are of optimal breadth-first allgathers,
exact; ``--step 1`` draws Figure 18 for every N (twenty minutes), the usual step takes half a minute.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import collc
from collc.backends.pictures.axes import Axis
from collc.backends.pictures.charts import Chart, Series
from collc.backends.pictures.style import BOUND, look
from collc.ir.costs.bounds import moore_steps
from collc.passes.finder.database import Row, parse_rows, shipped
from collc.passes.finder.evaluate import bfb_cost
from collc.passes.finder.lines import line_cost
from collc.passes.finder.wide import wide_cost
from collc.processes.engines import executing
from collc.processes.workers import Work

Table = tuple[list[str], list[list[str]]]

#: no workers but this process
HERE = Work()

ALPHA, BANDWIDTH = Fraction(10, 10**6), Fraction(100 * 10**9, 8)
MB = 2**20

BASES_3 = {
    "K_{4,4}": "complete_bipartite(4)", "K_5": "complete(5)", "directed circulant(6)": "directed_circulant(6)",
    "H(2,3)": "hamming(2, 3)",
}  # fmt: skip
DEGREES_18 = (2, 4, 8, 16)


def over_optimum(bandwidth: Fraction, nodes: int) -> Fraction:
    """Return T_B / T_B*, where T_B* = (N-1)/N."""
    return bandwidth * Fraction(nodes, nodes - 1)


# ---- Figure 3


def line_points(expression: str, most: int) -> list[tuple[int, int, Fraction]]:
    """Return (nodes, T_L, T_B) of a base and its line graphs of up to ``most`` nodes."""
    base = collc.topology(expression)
    points = [(base.num_ranks, *bfb_cost(base))]
    degree = base.degree or 0
    while points[-1][0] * degree <= most:
        points.append((points[-1][0] * degree, *line_cost(base, len(points))))
    return points


def figure_3(most: int) -> tuple[Table, str]:
    """Line graphs stay Moore optimal; T_B grows by 1/N each time, so towards a constant."""
    rows: list[list[str]] = []
    curves: list[Series] = []
    for name, expression in BASES_3.items():
        points = line_points(expression, most)
        for k, (nodes, steps, bandwidth) in enumerate(points):
            moore = moore_steps(nodes, 4)
            rows.append([name, str(k), str(nodes), str(steps), str(moore), str(bandwidth),
                         f"{float(over_optimum(bandwidth, nodes)):.6f}"])  # fmt: skip
        curves.append(_curve(name, len(curves), points, dots=True))
    head = ["base", "k", "N", "T_L", "T_L_bound", "T_B", "T_B_over_optimum"]
    return (head, rows), _draw("Line graphs of optimal bases, d = 4", "T_B / T_B*", curves, base=2)


def _curve(name: str, index: int, points: Iterable[tuple[int, int, Fraction]], dots: bool = False) -> Series:
    """Return T_B over its optimum against N."""
    return Series(name, [(n, over_optimum(bandwidth, n)) for n, _, bandwidth in points], look(index), dots=dots)


def _draw(title: str, up: str, curves: Sequence[Series], base: int = 0) -> str:
    return Chart(title, Axis("N", base), Axis(up, margin=Fraction(1, 20)), curves).picture().file()


# ---- Figure 15


def allreduce_seconds(steps: int, bandwidth: Fraction, size: int) -> Fraction:
    """Return 2 (T_L alpha + T_B M / B)."""
    return 2 * (steps * ALPHA + bandwidth * size / BANDWIDTH)


def best_rows(rows: Iterable[Row], size: int) -> dict[int, Row]:
    """Return the row of each number of nodes with the fastest allreduce; of equals the first."""
    best: dict[int, Row] = {}
    for row in rows:
        old = best.get(row.nodes)
        if old is None or _seconds(row, size) < _seconds(old, size):
            best[row.nodes] = row
    return dict(sorted(best.items()))


def _seconds(row: Row, size: int) -> Fraction:
    return allreduce_seconds(row.T_L, row.T_B, size)


def figure_15(most: int, size: int) -> tuple[Table, str]:
    """The best of the database for one size; ValueError if there is no database for degree 4."""
    text = shipped(4)
    known = [row for row in parse_rows(text, 4, "database") if row.nodes <= most] if text else []
    rows: list[list[str]] = []
    curves: list[Series] = []
    for name, chosen in (("any", known), ("both ways", [row for row in known if row.bidirectional])):
        best = best_rows(chosen, size)
        for nodes, row in best.items():
            rows.append([name, str(nodes), str(row.T_L), str(row.T_B), f"{float(_seconds(row, size)) * 1e6:.1f}",
                         row.expression])  # fmt: skip
        points = [(nodes, _seconds(row, size) * 10**6) for nodes, row in best.items()]
        curves.append(Series(f"best, links {name}", points, look(len(curves))))
    if not known:
        raise ValueError("there is nothing to draw")
    sizes = sorted({row.nodes for row in known})
    bound = [(n, allreduce_seconds(moore_steps(n, 4), Fraction(n - 1, n), size) * 10**6) for n in sizes]
    curves.append(Series("bound", bound, BOUND))
    title = f"Best allreduce, d = 4, {size // MB} MB, 10 us, 100 Gbps"
    return (["links", "N", "T_L", "T_B", "us", "expression"], rows), _draw(title, "us", curves)


# ---- Figure 18


def kautz_point(degree: int, nodes: int) -> tuple[int, int, Fraction]:
    """Return (N, T_L, T_B) of a generalized Kautz digraph."""
    price = bfb_cost if degree <= 8 else wide_cost
    return (nodes, *price(collc.topology(f"generalized_kautz({degree}, {nodes})")))


def kautz_points(degree: int, sizes: Sequence[int], work: Work = HERE) -> list[tuple[int, int, Fraction]]:
    """Return (N, T_L, T_B) of generalized Kautz digraphs."""
    return work.run(kautz_point, [(degree, n) for n in sizes], [f"{n} nodes" for n in sizes])


def figure_18(
    most: int, step: int, show: Callable[[str], None] = lambda text: None, work: Work = HERE
) -> tuple[Table, str]:
    """T_B of generalized Kautz digraphs is at most twice the optimum, and nearer for higher degrees."""
    rows: list[list[str]] = []
    curves: list[Series] = []
    for degree in DEGREES_18:
        start = time.perf_counter()
        points = kautz_points(degree, [n for n in range(step, most + 1, step) if n > degree], work)
        rows += [[str(degree), str(n), str(steps), str(moore_steps(n, degree)), str(bandwidth),
                  f"{float(over_optimum(bandwidth, n)):.6f}"] for n, steps, bandwidth in points]  # fmt: skip
        curves.append(_curve(f"d = {degree}", len(curves), points))
        show(f"Figure 18, d = {degree}: {time.perf_counter() - start:.1f} s")
    head = ["d", "N", "T_L", "T_L_bound", "T_B", "T_B_over_optimum"]
    return (head, rows), _draw("Generalized Kautz digraphs", "T_B / T_B*", curves)


# ---- files


def write(directory: Path, name: str, table: Table, picture: str) -> None:
    head, rows = table
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    (directory / f"{name}.svg").write_text(picture)
    print(f"{directory / name}.svg, .csv: {len(rows)} points", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=int, choices=(3, 15, 18), action="append", help="only this figure")
    parser.add_argument("--output", type=Path, default=Path("figures"), metavar="DIR", help="where files go (figures)")
    parser.add_argument("--most", type=int, default=2000, metavar="N", help="nodes of Figures 15 and 18 (2000)")
    parser.add_argument("--step", type=int, default=50, metavar="N", help="distance of the sizes in Figure 18 (50)")
    parser.add_argument("--executor", metavar="ENGINE", help="workers for Figure 18, as for `collc sweep`: processes:2")
    options = parser.parse_args()
    chosen = options.figure or [3, 15, 18]
    if 3 in chosen:
        write(options.output, "figure3", *figure_3(10**5))
    for size in (1, 100) if 15 in chosen else ():
        try:
            write(options.output, f"figure15_{size}MB", *figure_15(options.most, size * MB))
        except ValueError:
            print("Figure 15: there is no database for degree 4")
    if 18 in chosen:
        with executing(options.executor) as workers:
            write(options.output, "figure18", *figure_18(options.most, options.step, print, Work(workers)))


if __name__ == "__main__":
    main()
