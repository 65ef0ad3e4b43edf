"""Table 2 and Figures 6 to 14 of the Swing paper, beside what the simulator says of collc's own schedules.

    python benchmarks/swing.py [--only FIGURE ..] [--output DIR] [--brief]

FIGURE is table2, congestion, 6, 7, 8, 10, 11, 12, 13, 14, or 64x64: every algorithm on a torus of 64x64 from 32 B to
512 MiB. Of a figure it prints the time or goodput of every algorithm at every size, how much more goodput Swing has
than the best of the others, and every statement of the paper with what was found. ``--output`` draws the curves.

``differs`` marks statements that flows on links do not share with packets: nothing is fitted to them. The exit status
is 1 if anything differs that a model of flows must give.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from swing_paper import tables
from swing_paper.checks import Check, fastest, gain
from swing_paper.figures import FIGURES, Figure
from swing_paper.networks import Curve

from collc.backends.pictures.axes import Axis
from collc.backends.pictures.charts import Chart, Series
from collc.backends.pictures.style import look
from collc.backends.pictures.units import BYTES
from collc.pictures.goodput import Curve as Drawn
from collc.pictures.goodput import goodput_svg

NAMES = ("table2", "congestion", *FIGURES)
#: below this size times are printed, from it on goodput
SMALL = 64 << 10

Lines = Mapping[str, Curve]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="FIGURE", help=", ".join(NAMES))
    parser.add_argument("--output", type=Path, help="draw goodput and gain of every figure into this folder")
    parser.add_argument("--brief", action="store_true", help="print what differs and the summaries only")
    options = parser.parse_args(arguments)
    return int(sum(show(name, options.output, options.brief) for name in dict.fromkeys(options.only)) > 0)


def show(name: str, output: Path | None, brief: bool) -> int:
    """Print a figure or table; return how many statements differ that must not."""
    start = time.perf_counter()
    if name in FIGURES:
        figure = FIGURES[name]
        found = figure.curves()
        title = f"Figure {name}: {figure.title}" if name.isdigit() else figure.title
        print(title)
        for net, lines in found.items():
            if not brief:
                print_curves(net.name, figure, lines)
        checks = list(figure.statements(found))
        if output is not None:
            draw(output, name, title, figure, list(found.values()))
    else:
        print("Table 2: deficiencies" if name == "table2" else "congestion of tori, exactly")
        checks = list(tables.table_2() if name == "table2" else tables.congestion())
    print_checks(checks, brief)
    failed = [check for check in checks if check.needed and not check.agrees]
    agreed = sum(check.agrees for check in checks)
    differ = f", {len(checks) - agreed - len(failed)} differ, {len(failed)} WRONG" if agreed < len(checks) else ""
    summary = f"{agreed} of {len(checks)} agree{differ}; " if checks else ""
    print(f"{name}: {summary}{time.perf_counter() - start:.1f} s\n")
    return len(failed)


def print_checks(checks: Iterable[Check], brief: bool) -> None:
    for check in checks:
        if not (brief and check.agrees):
            mark = "agrees" if check.agrees else "WRONG" if check.needed else "differs"
            print(f"  {mark:8}{check.what:46}{check.published:>18}   {check.found}")


def print_curves(name: str, figure: Figure, lines: Lines) -> None:
    """Print a table of one network: a line a size, a column an algorithm."""
    print(f"  {name}: microseconds below 64 KiB, Gb/s from there; gain of Swing over the best other")
    print(f"  {'size':>9}" + "".join(f"{one.algorithm.name:>20}" for one in lines.values()) + f"{'gain':>9}")
    for size in figure.sizes[::2]:
        values = (one.microseconds(size) if size < SMALL else one.goodput(size) for one in lines.values())
        cells = "".join(f"{value:>20.4g}" for value in values)
        print(f"  {bytes_text(size):>9}{cells}{float(gain(lines, size)):>+9.0%} {fastest(lines, size)}")


def bytes_text(size: int) -> str:
    """Return a power of two of bytes in its unit."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size >> power} {unit}"
    return f"{size} B"


def draw(folder: Path, name: str, title: str, figure: Figure, found: list[Lines]) -> None:
    """Write the goodput on every network, and the gain on all, as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    gains: list[Series] = []
    for lines in found:
        net = lines["S"].network
        place = net.name.replace(" ", "_").replace("/", "")
        drawn = [Drawn(one.algorithm.name, one.algorithm.letter, one) for one in lines.values()]  # type: ignore[arg-type]
        (folder / f"swing_{name}_{place}.svg").write_text(goodput_svg(drawn, figure.sizes), encoding="utf-8")
        points = [(size, 100 * gain(lines, size)) for size in figure.sizes]
        gains.append(Series(net.name, points, look(len(gains)), dots=True))
    up = Axis("gain of Swing over the best other (%)", margin=Fraction(1, 20))
    picture = Chart(title, Axis("size of the vector", 2, BYTES), up, gains).picture()
    (folder / f"swing_{name}_gain.svg").write_text(picture.file(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
