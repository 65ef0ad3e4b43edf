"""``collc.plot``: pictures of results with matplotlib, for notebooks and papers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from collc.ir.costs.cost import Cost, predicted_time, seconds_per_unit
from collc.ir.diagnostic import error
from collc.ir.quantities import sizes_in_bytes

from .compiling import shielded
from .driver.replan import FaultCost
from .driver.result import CollectiveResult
from .driver.simulated import Simulated
from .messages.quantities import show_bandwidth
from .pictures.plots import Line, axes_of, bars, edge, goodput, legend, marks, rule
from .results import Result
from .sweeping.cases import SweepRow
from .sweeping.sweep import Sweep
from .tools.finding import Frontier

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from collc.passes.finder.database import Row

__all__ = ["Kind", "plot"]

Kind: TypeAlias = Literal["goodput", "loads", "frontier", "faults"]
Sizes: TypeAlias = "int | str | Iterable[int | str] | None"

#: sizes (bytes) of curves if none are given: 1 KiB to 1 GiB
_SIZES = tuple(1 << power for power in range(10, 31, 2))


def plot(
    result: Result | CollectiveResult | Cost | Simulated | Frontier | Sweep | FaultCost,
    kind: Kind | None = None,
    *,
    sizes: Sizes = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a result with matplotlib and return the figure; notebooks show it.

    ``goodput`` shows size over time against size, with the bound of the cost model: of results, costs, simulations and
    sweeps. ``loads`` shows what each link carries, of results and simulations. ``frontier`` shows steps against
    bandwidth time, of ``collc.find``, and ``faults`` times a byte, of ``cost_of_fault``. The first that a result has is
    the default.
    ``sizes`` (bytes, or texts such as ``"1MiB"``) are those of curves. With ``ax``, the picture is drawn on these axes.

    No figure is registered with pyplot, and no window opens. Raises C0028 without matplotlib, C0019 if a result does
    not have the picture.

    >>> import collc
    >>> figure = plot(collc.compile_source("collective sums = allreduce on torus(3, 3);"))
    >>> figure.axes[0].get_title()
    'sums: allreduce on torus(3, 3), 9 ranks, bfb, T_L 4, T_B 16/9'
    """
    drawings = _drawings(result, sizes)
    chosen = next(iter(drawings), None) if kind is None else kind
    if chosen is None or chosen not in drawings:
        has = ", ".join(drawings) or "none"
        what = f"no picture `{kind}`" if kind is not None else "no picture"
        raise error("C0019", f"there is {what} of a {type(result).__name__}", hint=f"it has: {has}", exit_status=2)

    def draw() -> Figure:
        axes = axes_of(ax, _title(result, chosen))
        drawings[chosen](axes)
        figure = axes.get_figure()
        assert figure is not None
        return figure

    return shielded("plot", draw)


def _drawings(result: object, sizes: Sizes) -> dict[Kind, Callable[[Axes], None]]:
    """Return the pictures that a result has, the default first."""
    match result:
        case Frontier():
            return {"frontier": lambda axes: _frontier(axes, result)}
        case FaultCost():
            return {"faults": lambda axes: _faults(axes, result)}
        case Sweep():
            return {"goodput": lambda axes: goodput(axes, _lines_of_sweep(result))}
        case Cost():
            return {"goodput": lambda axes: goodput(axes, _lines_of_costs([(result.scheduler, result)], sizes))}
        case Simulated():
            return {
                "goodput": lambda axes: goodput(axes, [_simulated_line(result, sizes)]),
                "loads": lambda axes: _loads(axes, result),
            }
        case Result() | CollectiveResult():
            each = list(result) if isinstance(result, Result) else [result]
            return {
                "goodput": lambda axes: goodput(axes, _lines_of_costs(_costs(each), sizes)),
                **({"loads": lambda axes: _loads(axes, each[0].simulate(1))} if len(each) == 1 else {}),
            }
    return {}


def _title(result: object, kind: Kind) -> str:
    match result:
        case Frontier():
            links = "bidirectional topologies" if result.wanted.bidirectional else "topologies"
            return f"{links} of {result.wanted.nodes} nodes and degree {result.wanted.degree}"
        case FaultCost():
            return "time a byte before and after the faults"
        case Sweep():
            return "predicted goodput"
        case Cost():
            return f"{result.collective} on {result.ranks} ranks"
        case Simulated():
            return f"{result.title}: {'loads of links' if kind == 'loads' else 'simulated goodput'}"
        case CollectiveResult():
            return f"{result.name}: {result.summary}"
        case Result():
            return _title(next(iter(result)), kind) if len(result) == 1 else "predicted goodput"
    return ""


# ---- goodput


def _costs(results: Sequence[CollectiveResult]) -> list[tuple[str, Cost]]:
    found = []
    for result in results:
        for one in result.each:
            label = result.name if one.window is None else f"{result.name}, {one.window.label}"
            found.append((f"{label} ({one.cost.scheduler})", one.cost))
    return found


def _lines_of_costs(costs: Sequence[tuple[str, Cost]], sizes: Sizes) -> list[Line]:
    """Return a curve for every schedule, and one for every different bound."""
    shown, bounds = _sizes(sizes), dict[Fraction, Line]()
    lines = [Line(label, [(size, _rate(size, predicted_time(cost, size))) for size in shown]) for label, cost in costs]
    for _, cost in costs:
        least = cost.time_per_byte_bound * seconds_per_unit(cost.unit, cost.node_bandwidth, None)
        if least:
            bounds[least] = Line(f"bound of {cost.collective}", [(size, float(1 / least)) for size in shown], True)
    return [*lines, *bounds.values()]


def _simulated_line(found: Simulated, sizes: Sizes) -> Line:
    given = [point.size for point in found.points]
    shown = _sizes(sizes) if sizes is not None or len(given) < 2 else given
    return Line("simulated", [(size, _rate(size, found.simulation.time(size))) for size in shown])


def _lines_of_sweep(found: Sweep) -> list[Line]:
    """Return a curve for every network, collective and scheduler, and a bound for every network and collective."""
    rows = [row for row in found.rows if row.time is not None and row.size > 0]
    several = [
        len({getattr(row, name) for row in rows}) > 1 for name in ("network", "collective", "using")
    ]  # fmt: skip
    curves: dict[tuple[str, str, str], list[SweepRow]] = {}
    bounds: dict[tuple[str, str], list[SweepRow]] = {}
    for row in rows:
        curves.setdefault((row.network, row.collective, row.using), []).append(row)
        known = bounds.setdefault((row.network, row.collective), [])
        if row.bound and all(one.size != row.size for one in known):
            known.append(row)
    lines = [Line(_words(key, several), _curve(curve)) for key, curve in curves.items()]
    for names, found_rows in bounds.items():
        if found_rows:
            points = [(row.size, _rate(row.size, row.bound)) for row in sorted(found_rows, key=_size)]
            lines.append(Line(f"bound {_words(names, several[:2])}".rstrip(), points, True))
    return lines


def _words(names: Sequence[str], several: Sequence[bool]) -> str:
    """Return the names that tell curves apart, the last one if all are the same."""
    return ", ".join(name for name, many in zip(names, several, strict=True) if many) or names[-1]


def _curve(rows: Sequence[SweepRow]) -> list[tuple[int, float]]:
    return [(row.size, _rate(row.size, row.time)) for row in sorted(rows, key=_size)]


def _size(row: SweepRow) -> int:
    return row.size


def _rate(size: int, time: Fraction | None) -> float:
    return float(size / time) if time else float("nan")


def _sizes(given: Sizes) -> list[int]:
    found = sorted({size for size in (_SIZES if given is None else sizes_in_bytes(given)) if size > 0})
    if not found:
        raise error("C0020", "found no size above 0 for a picture, needed at least one", exit_status=2)
    return found


# ---- loads, frontiers, faults


def _loads(axes: Axes, found: Simulated) -> None:
    """Draw what every link carries over all steps, as a share of M, links of a bandwidth together."""
    import numpy as np

    simulation, topology = found.simulation, found.simulation.topology
    total = np.zeros(topology.num_links)
    for place, step in enumerate(simulation.steps):
        load, whole = simulation.loads(place)
        total += step.times * (load.astype(np.float64) / whole)
    groups: dict[str, Sequence[float]] = {}
    for number, kind in enumerate(topology.classes):
        values = np.sort(total[topology.link_class == number])[::-1].tolist()
        rate = show_bandwidth(float(kind.bandwidth)) if topology.unit == "B/s" else f"{kind.bandwidth} of a link"
        label = f"links of {rate}"
        if values:
            groups[label] = [*groups.get(label, ()), *values]
    bars(axes, groups)
    axes.set_xlabel("links, the busiest first")
    axes.set_ylabel("share of the vector")


def _frontier(axes: Axes, found: Frontier) -> None:
    rows, (steps, bandwidth) = found.frontier, found.bound
    edge(axes, [(row.T_L, float(min(other.T_B for other in rows[: i + 1]))) for i, row in enumerate(rows)])
    for index, (label, both_ways) in enumerate((("links one way", False), ("every link has its reverse", True))):
        shown = [row for row in rows if row.bidirectional == both_ways]
        if shown:
            marks(axes, label, list(map(_place, shown)), index, [row.expression for row in shown])
    if found.best is not None:
        marks(axes, "takes the least time", [_place(found.best)], 0, ring=True)
    rule(axes, steps, f"bound: {steps} steps", upright=True)
    rule(axes, float(bandwidth), f"bound: {bandwidth} M/B", upright=False)
    axes.margins(0.2)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("T_L (steps)")
    axes.set_ylabel("T_B (M/B)")
    legend(axes)


def _place(row: Row) -> tuple[float, float]:
    return row.T_L, float(row.T_B)


def _faults(axes: Axes, found: FaultCost) -> None:
    names = ("before the faults", "least after them", "reached after them")
    values = [float(value) for value in (found.healthy, found.optimum, found.reached)]
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        bars_of_one = axes.bar([name], [value], width=0.6, color="#1f5fa8", hatch=("", "////", "....")[place])
        axes.bar_label(bars_of_one, [f"{value / values[0]:.3g}x" if values[0] else ""])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("time a byte")
