"""``collc calibrate``."""

from __future__ import annotations

import os
from fractions import Fraction
from types import SimpleNamespace

from collc.ir.diagnostic import warning

from ..driver.compilation import make_jobs, run_jobs
from ..driver.plan import Recipe
from ..driver.result import Settings
from ..files.texts import STDIN, Output, check_writable, read_text, write_all
from ..messages.quantities import show_size, show_time
from ..reading.coll import load_spec
from ..tables.columns import Cell, Table
from ..tables.further import ALPHAS
from ..tables.listed import FIT
from ..tools.attributes import attribute_file, require_name
from ..tools.calibration import Calibration, Fitted
from ..tools.calibration import calibrate as fit
from ..tools.measurements import Measured, Work, read_measurements
from .arguments import usage_error
from .console import Console
from .inputs import loading, read
from .table import table
from .tabular import Tables, require_one_form, show

__all__ = ["calibrate"]

#: points that the table shows; JSON has all
_MAX_SHOWN = 40


def calibrate(options: SimpleNamespace, console: Console) -> int:
    """Fit alpha and bandwidth to measured times, print them, and write them as attributes of links."""
    if options.nccl_tests or options.algorithm:
        from .calibrate_nccl import calibrate_nccl

        return calibrate_nccl(_logs(options), console)
    _require_files(options)
    require_name(options.name)
    require_one_form(options, [path for path in options.files if path != STDIN])
    if options.o:
        check_writable([options.o], [*options.files, *([options.schedules] if options.schedules else [])])
    work = _work(options, console) if options.schedules else None
    measured, notes = list[Measured](), list[str]()
    for path in options.files:
        text, shown = read(path, console)
        found, left_out = read_measurements(text, shown, work)
        measured += [one for one in found if not options.only or one.name in options.only]
        notes += left_out
    result = fit(measured, options.classes or (), options.gamma)
    for note in (*notes, *result.notes):
        console.warn([warning("C0078", note)])
    if options.o:
        source = ", ".join("<stdin>" if path == STDIN else os.path.basename(path) for path in options.files)
        write_all([Output(options.o, attribute_file(result, options.name, source.replace("\n", " ")))])
    show(
        options, console, _tables(result), lambda: _object(result),
        lambda: "" if options.o == STDIN else _text(result),
    )  # fmt: skip
    return 0


def _require_files(options: SimpleNamespace) -> None:
    if not options.files:
        raise usage_error("`collc calibrate` needs FILE...", "write `collc calibrate FILE...`")
    given = [f"--{name}" for name in ("collective", "ranks", "nodes") if getattr(options, name) is not None]
    if given:
        raise usage_error(f"{given[0]} is for logs of nccl-tests", "add --nccl-tests")


def _logs(options: SimpleNamespace) -> SimpleNamespace:
    """Return the options; raise C0001 for those of other measurements, and if there is no log."""
    given = [name for name in ("schedules", "only", "classes", "gamma") if getattr(options, name)]
    if given:
        raise usage_error(f"--{given[0]} is for times of collc's schedules", "leave out --nccl-tests")
    if not options.files and not options.algorithm:
        raise usage_error("--nccl-tests needs a log", "write `collc calibrate --nccl-tests LOG...`")
    return options


def _work(options: SimpleNamespace, console: Console) -> Work:
    """Return a function from names to steps, load and what ranks add; an only collective matches any name."""
    text, name = read_text(options.schedules), options.schedules
    console.inputs[name] = text
    spec = load_spec(text, name, loading(options))
    jobs, _ = make_jobs(spec, (), (), None)
    jobs = [job.schedule_only for job in jobs]
    results = run_jobs(jobs, Settings(Recipe("0", None, ()), "off"))
    costs = {result.name: result.cost for result in results if result.schedule is not None}
    if not costs:
        raise usage_error(f"`{name}` has no schedule with steps and load")

    def work(row: str, ranks: int | None) -> tuple[int, Fraction, Fraction] | None:
        found = costs.get(row) or next((c for n, c in costs.items() if row.replace("_", "-") == n), None)
        found = found or (next(iter(costs.values())) if len(costs) == 1 else None)
        return None if found is None else (found.T_L, found.time_per_byte, found.reduced)

    return work


# ---- text


def _text(found: Calibration) -> str:
    lines = [("bandwidth", f"{found.bandwidth / 1e9:.6g} GB/s", "of a link")]
    for place, (limit, alpha) in enumerate(found.alphas):
        lower = found.alphas[place - 1][0] if place else None
        lines.append(("alpha", show_time(alpha), _range(lower, limit)))
    if found.overhead is not None:
        lines.append(("overhead", show_time(found.overhead), "of a call"))
    if found.gamma is not None:
        lines.append(("gamma", f"{found.gamma * 1e9:.4g} ns/B", _reduction(found.gamma)))
    count = len(found.points)
    lines.append(("deviation", f"{100 * found.mean_deviation:.3g} %", f"on average of {count} measurements"))
    lines.append(("", f"{100 * found.largest_deviation:.3g} %", "at most"))
    lines.append(("R^2", f"{found.r_squared:.5f}", ""))
    return table(lines) + "\n" + _points(found)


def _reduction(gamma: float) -> str:
    return f"of a rank to add: {1e-9 / gamma:.6g} GB/s" if gamma else "of a rank to add"


def _range(lower: float | None, limit: float | None) -> str:
    if lower is None and limit is None:
        return "of a step"
    ends = [f"more than {round(lower)} bytes"] if lower is not None else []
    ends += [f"at most {round(limit)} bytes"] if limit is not None else []
    return f"of a step with messages of {' and '.join(ends)}"


def _points(found: Calibration) -> str:
    """Return the table of measurements; of many, those with the largest deviations."""
    points = found.points
    if len(points) > _MAX_SHOWN:
        points = tuple(sorted(points, key=lambda p: -abs(p.deviation))[:_MAX_SHOWN])
    rows = [
        (
            p.measured.name, show_size(p.measured.bytes), str(p.measured.steps), f"{p.measured.load:.4g}",
            show_time(p.measured.seconds), show_time(p.model), f"{100 * p.deviation:+.2f} %",
            "outlier" if p.outlier else "",
        )
        for p in points
    ]  # fmt: skip
    head = ("", "M", "steps", "load", "measured", "model", "deviation")
    text = table(rows, head=head, right=(1, 2, 3, 4, 5, 6))
    hidden = len(found.points) - len(points)
    return text + (f"and {hidden} measurements that deviate less\n" if hidden else "")


# ---- tables and JSON


def _tables(found: Calibration) -> Tables:
    return {
        "points": lambda: Table(FIT, [_point(point) for point in found.points]),
        "alphas": lambda: Table(ALPHAS, _alphas(found)),
    }


def _alphas(found: Calibration) -> list[dict[str, Cell]]:
    return [{"most_message_bytes": limit, "alpha_us": alpha * 1e6} for limit, alpha in found.alphas]


def _object(found: Calibration) -> dict[str, object]:
    return {
        "bandwidth_Bps": found.bandwidth,
        "alphas": _alphas(found),
        "overhead_us": None if found.overhead is None else found.overhead * 1e6,
        "epsilon_us": None if found.overhead is None else found.overhead * 1e6,
        "gamma_ns_per_B": None if found.gamma is None else found.gamma * 1e9,
        "reduction_Bps": 1 / found.gamma if found.gamma else None,
        "mean_deviation": found.mean_deviation, "largest_deviation": found.largest_deviation,
        "r_squared": found.r_squared, "notes": list(found.notes),
        "points": [_point(point) for point in found.points],
    }  # fmt: skip


def _point(point: Fitted) -> dict[str, Cell]:
    one = point.measured
    return {
        "name": one.name, "bytes": one.bytes, "steps": one.steps, "load": one.load, "seconds": one.seconds,
        "reduced": one.reduced, "model_seconds": point.model, "deviation": point.deviation, "repeats": point.repeats,
        "outlier": point.outlier,
    }  # fmt: skip
