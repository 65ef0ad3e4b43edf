"""Measured time against the cost model: allreduces on networks of network namespaces.

    python benchmarks/testbed/run.py [--rate 20mbit] [--delay 5ms] [--topologies ring8,cube3,torus3x3,torus3x3x2]
        [--sizes 1MiB,4MiB] [--repeats 5] [--json FILE] [--csv FILE] [--svg FILE]

On each network three allreduces alternate in one run: the compiled breadth-first one (bfb), the ring algorithm on one
cycle of links, which uses one link of a rank at a time (ring), and the MPI's own (builtin). Topologies are the short
names above or any expressions of the language, separated by `;`. Printed are seconds beside what the cost model
predicts (of builtin: the flow model, for the messages that MPICH's algorithm sends over the testbed's routes) and
beside the bound that no schedule on the network beats; then the speed-ups over the other two, measured and predicted.
The CSV is what `collc calibrate` reads. Exit status 1 where a target is missed: bfb within 15 % of its bound, ring
within 5 % of its prediction, speed-ups within 20 % of theirs; 0 and a reason where no testbed can be built.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor, log10
from pathlib import Path
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent))

from contenders import ALGORITHMS, SHORT, breadth_first, builtin_time, plain_ring

import collc
from collc.backends.mpi_c.toolchain import find
from collc.backends.pictures import timelines
from collc.backends.pictures.axes import Axis
from collc.backends.pictures.units import SECONDS
from collc.ir.costs.cost import Cost
from collc.messages.quantities import bandwidth, show_size, size
from collc.messages.quantities import time as duration
from collc.testbed import network, obstacle, plan
from collc.testbed.measuring import BUILTIN, Timing, measure
from collc.testbed.plan import Plan

#: what is claimed: bfb over its bound, ring over its prediction, speed-ups over theirs
WITHIN = {"bfb": 0.15, "ring": 0.05, "speed-up": 0.20}


@attrs.frozen
class Row:
    """One algorithm at one size on one network: times in seconds; ``bound`` is of the network, whatever the algorithm.

    ``steps`` and ``load`` are the schedule's, for calibrations; of builtin nothing.
    """

    topology: str
    name: str
    ranks: int
    bytes: int
    steps: int | None
    load: Fraction | None
    seconds: float
    spread: float
    predicted: float
    bound: float
    late: float
    processors: float
    times: tuple[float, ...] = attrs.field(repr=False)

    @property
    def over(self) -> float:
        """Measured over predicted, less 1."""
        return self.seconds / self.predicted - 1


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    reason = obstacle(bool(options.delay))
    if reason:
        print(f"skipped: {reason}")
        return 0
    mpi, rows = find(), list[Row]()
    print(f"links of {float(options.rate) * 8 / 1e6:g} Mbit/s", end="")
    print(f" and {float(options.delay) * 1e3:g} ms" if options.delay else "", f"{mpi}, {options.repeats} repeats, ms")
    for name, expression in options.topologies.items():
        began = time.time()
        found = list(_study(name, expression, options))
        print(
            f"\n{name}: {expression}, {found[0].ranks} ranks ({time.time() - began:.0f} s)\n{_table(found)}", flush=True
        )
        rows += found
    _write(options, rows)
    missed = [problem for problem in _missed(rows) if not options.delay]
    print("\n" + "\n".join(missed or ["all within what is claimed"] if not options.delay else []))
    return 1 if missed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rate", type=_rate, default=_rate("20mbit"), help="bits per second of a link: 40mbit, 40Mbps")
    parser.add_argument("--delay", type=lambda text: duration(text, "--delay"), default=Fraction(0))
    parser.add_argument("--topologies", type=_topologies, default=SHORT)
    parser.add_argument(
        "--sizes", type=lambda t: [size(p, "--sizes") for p in t.split(",")], default=[1 << 20, 1 << 22]
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--algorithm", choices=tuple(ALGORITHMS), default="reduce_scatter_allgather",
        help="what MPICH's own allreduce does at these sizes; below 2 KiB recursive_doubling")  # fmt: skip
    for kind in ("json", "csv", "svg"):
        parser.add_argument(f"--{kind}", type=Path, help=f"write {kind.upper()}")
    return parser.parse_args(arguments)


def _rate(text: str) -> Fraction:
    for tc, ours in (("kbit", "Kbps"), ("mbit", "Mbps"), ("gbit", "Gbps")):
        text = text.replace(tc, ours)
    return bandwidth(text, "--rate")


def _topologies(text: str) -> dict[str, str]:
    parts = text.split(";") if "(" in text else text.split(",")
    return {part.strip(): SHORT.get(part.strip(), part.strip()) for part in parts}


def _study(name: str, expression: str, options: argparse.Namespace) -> Iterator[Row]:
    topology = collc.topology(expression)
    wires = plan(topology, options.rate, options.delay)
    known = {"bfb": breadth_first(expression)}
    ring = plain_ring(topology)
    if ring:
        known["ring"] = ring
    programs = {key: program for key, (program, _) in known.items()}
    with network(wires) as net:
        timings = measure(net, programs, options.sizes, options.repeats, timeout=1200)
    for timing in timings:
        cost = known[timing.name][1] if timing.name in known else None
        yield _row(name, timing, cost, known["bfb"][1], wires, options)


def _row(name: str, timing: Timing, cost: Cost | None, best: Cost, wires: Plan, options: argparse.Namespace) -> Row:
    def seconds(steps: int, load: Fraction) -> float:
        return float(steps * options.delay + load * timing.bytes / options.rate)

    predicted = (
        float(builtin_time(wires, timing.bytes, options.algorithm))
        if cost is None
        else seconds(cost.T_L, cost.time_per_byte)
    )
    return Row(
        name, timing.name, wires.num_ranks, timing.bytes, cost.T_L if cost else None,
        cost.time_per_byte if cost else None, timing.median, timing.spread, predicted,
        seconds((best.T_L_bound or 0) // best.phases, best.bound.value), max(timing.start_delays),
        sum(timing.processor) / sum(timing.seconds), timing.seconds,
    )  # fmt: skip


# ---- what comes of it


def _table(rows: Sequence[Row]) -> str:
    lines = [("", "M", "measured", "least", "spread", "predicted", "over", "bound", "over bound", "bfb's speed-up", "")]
    for row in rows:
        best = next(r for r in rows if r.name == "bfb" and r.bytes == row.bytes)
        speed_up = row is not best
        lines.append((
            row.name, show_size(row.bytes), f"{row.seconds * 1e3:.1f}", f"{min(row.times) * 1e3:.1f}",
            f"{row.spread * 100:.1f} %", f"{row.predicted * 1e3:.1f}", f"{row.over * 100:+.1f} %",
            f"{row.bound * 1e3:.1f}", f"{(row.seconds / row.bound - 1) * 100:+.1f} %",
            f"{row.seconds / best.seconds:.2f}" if speed_up else "",
            f"predicted {row.predicted / best.predicted:.2f}" if speed_up else "",
        ))  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    right = ("  ".join(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)) for line in lines)
    return "\n".join(f"{line[0]:{widths[0]}}  {rest}".rstrip() for line, rest in zip(lines, right, strict=True))


def _missed(rows: Sequence[Row]) -> Iterator[str]:
    """Say what is not as claimed."""
    for row in rows:
        where = f"{row.topology}, {show_size(row.bytes)}: {row.name}"
        best = next(r for r in rows if (r.name, r.topology, r.bytes) == ("bfb", row.topology, row.bytes))
        if row is best and row.seconds > row.bound * (1 + WITHIN["bfb"]):
            yield f"missed: {where} takes {row.seconds / row.bound:.3f} of its bound"
        if row.name == "ring" and abs(row.over) > WITHIN["ring"]:
            yield f"missed: {where} takes {row.over + 1:.3f} of what is predicted"
        ratio = (row.seconds / best.seconds) / (row.predicted / best.predicted)
        if abs(ratio - 1) > WITHIN["speed-up"]:
            yield f"missed: bfb's speed-up over {where} is {ratio:.3f} of what is predicted"


def _write(options: argparse.Namespace, rows: Sequence[Row]) -> None:
    if options.csv:
        options.csv.write_text(_csv(rows), encoding="utf-8")
    if options.json:
        found = {"rate_Bps": float(options.rate), "delay_s": float(options.delay), "rows": list(map(_object, rows))}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.svg:
        title = f"Allreduce on links of {float(options.rate) * 8 / 1e6:g} Mbit/s: measured, and predicted"
        options.svg.write_text(picture(title, rows), encoding="utf-8")


def picture(title: str, rows: Sequence[Row]) -> str:
    """Return the measured times as bars, on a logarithmic axis, with posts where the predictions are."""
    start = Fraction(10) ** floor(log10(min(min(row.seconds, row.predicted) for row in rows)))
    groups: dict[str, list[timelines.Lane]] = {}
    for row in rows:
        note = f"{row.seconds * 1e3:.0f} ms, {row.over * 100:+.1f} %"
        bar = timelines.Bar(start, row.seconds, row.name, label=row.name, tip=f"{row.name}: {note}")
        lane = timelines.Lane([bar], [row.predicted], note)
        groups.setdefault(f"{row.topology}, {show_size(row.bytes)}", []).append(lane)
    shown = [timelines.Row(name, lanes) for name, lanes in groups.items()]
    timeline = timelines.Timeline(
        title, Axis("time", 10, SECONDS), shown, "predicted",
        "beside each bar: the measured time, and how much more than predicted it is",
    )  # fmt: skip
    return timeline.picture().file()


_COLUMNS = (
    "topology", "name", "ranks", "bytes", "steps", "load", "seconds", "spread", "predicted", "bound", "late",
    "processors",
)  # fmt: skip


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        values = (getattr(row, column) for column in _COLUMNS)
        writer.writerow(["" if v is None else f"{v:.6g}" if isinstance(v, float) else v for v in values])
    return text.getvalue()


def _object(row: Row) -> dict[str, Any]:
    found = {column: getattr(row, column) for column in _COLUMNS}
    found["load"] = None if row.load is None else str(row.load)
    return found | {"times": list(row.times), "builtin": row.name == BUILTIN}


if __name__ == "__main__":
    raise SystemExit(main())
