"""``collc cost``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.ir.costs.cost import Cost, Point, assumptions, predict
from collc.ir.diagnostic import error
from collc.ir.program import Program
from collc.ir.schedule import Schedule

from ..driver.compilation import Job, make_jobs, run_jobs
from ..driver.result import CollectiveResult
from ..messages.quantities import show_bandwidth, show_size, show_time
from .auto_report import choice_object, choice_text
from .console import Console
from .cost_bounds import bandwidth_rows, bound_object, steps_bound_text
from .cost_forest import forest_object, forest_report, forest_rows
from .cost_forest import rational as _rational
from .inputs import load, settings
from .table import table
from .watcher import Watcher, time_table

if TYPE_CHECKING:
    from collc.passes.synthesis.breadth_first.unchunked import Unchunked
    from collc.passes.synthesis.forest.report import ForestReport

    from ..driver.result import Settings

__all__ = ["cost", "cost_object"]

#: Sizes (bytes) of the predictions if neither the command line nor the file names one.
DEFAULT_SIZES = (1 << 10, 1 << 20, 1 << 30)


def cost(options: SimpleNamespace, console: Console) -> int:
    """Print the cost of every collective's schedule; return the exit status."""
    spec, start = load(options, console)
    if isinstance(start, Program):
        raise error(
            "C0018",
            f"`{options.files[0]}` holds a program; only schedules have a cost",
            hint="print the schedule",
        )
    jobs, _ = make_jobs(spec, (), options.collective, start)
    console.warn(spec.warnings)
    # The cost of a schedule does not depend on the target.
    jobs = [Job(job.request, (), job.start) for job in jobs]
    watcher = Watcher(options, console)
    results = run_jobs(jobs, _exact(options), observer=watcher)
    watcher.ends()
    if options.time_passes:
        console.err(time_table(results))
    console.warn(warning for r in results for warning in r.warnings)
    results = [r for r in results if r.schedule is not None]
    console.progress("cost and bounds")
    if options.json:
        objects = [_whole_object(r, options) for r in results]
        console.json(objects[0] if len(objects) == 1 else {**objects[0], "collectives": objects})
    else:
        console.out("\n".join(_whole_text(r, options, console) for r in results))
    return 0


def _whole_object(result: CollectiveResult, options: SimpleNamespace) -> dict[str, object]:
    """Return the object of a collective: its only schedule, or the first with all in ``algorithms``."""
    objects = [_one_object(one, options) for one in result.each]
    found = {**objects[0], **choice_object(result.choice)}
    return {**found, "algorithms": objects} if result.algorithms else found


def _one_object(result: CollectiveResult, options: SimpleNamespace) -> dict[str, object]:
    c = result.cost
    return {
        "name": result.name,
        **_object(c, _points(result, options), options.bandwidth, forest_report(result)),
        **_fluid_object(_fluid(result)),
        "assumed": _assumed(c, options),
        **({"remarks": list(result.remarks)} if result.remarks else {}),
        **({"algorithm": result.window.algorithm, "label": result.window.label} if result.window else {}),
    }


def _whole_text(result: CollectiveResult, options: SimpleNamespace, console: Console) -> str:
    texts = []
    for one in result.each:
        name = one.name if one.window is None else f"{one.name}, {one.window.label}"
        c, points = one.cost, _points(one, options)
        texts.append(_text(name, c, points, _assumed(c, options), _fluid(one), options.bandwidth, forest_report(one)))
    text = "\n".join(texts) + "".join(f"  {remark}\n" for one in result.each for remark in one.remarks)
    if result.choice is not None:
        text += choice_text(result.choice, result.request.schedule.span is not None or console.verbose)
    return text


def _exact(options: SimpleNamespace) -> Settings:
    """Return settings that stop at the schedule; only ``-p`` can cut it into chunks, so costs are exact."""
    import attrs

    from ..registry.elements import Element

    chosen = settings(options, Schedule)
    if chosen.recipe.elements is None:
        none: tuple[Element, ...] = ()
        chosen = attrs.evolve(chosen, recipe=attrs.evolve(chosen.recipe, elements=none))
    return chosen


def _points(result: CollectiveResult, options: SimpleNamespace) -> tuple[Point, ...]:
    own_size = result.request.problem.collective.size if result.request else None
    sizes = options.size or ([own_size] if own_size is not None else DEFAULT_SIZES)
    return predict(result.cost, sizes, options.alpha, options.bandwidth)


def _fluid(result: CollectiveResult) -> Unchunked | None:
    """Return the cost without a limit on chunks if the scheduler has one, else None."""
    from collc.passes.synthesis.breadth_first.unchunked import unchunked

    passes = result.plans[0].passes if result.plans and result.request else ()
    return unchunked(passes[0], result.request.problem) if passes else None


def _fluid_object(fluid: Unchunked | None) -> dict[str, object]:
    if fluid is None:
        return {}
    return {
        **_rational("T_B_fluid", fluid.T_B), **_rational("time_per_byte_fluid", fluid.time_per_byte),
        **_rational("T_B_theorem_20", fluid.theorem_20),
    }  # fmt: skip


def _assumed(c: Cost, options: SimpleNamespace) -> list[str]:
    return list(assumptions(c, options.alpha, options.bandwidth))


def cost_object(result: CollectiveResult) -> dict[str, object] | None:
    """Return the JSON object of the cost of a result's schedule, or None without a schedule."""
    return None if result.schedule is None else _object(result.cost, (), None, forest_report(result))


def _object(
    c: Cost, points: Sequence[Point], bandwidth: Fraction | None = None, report: ForestReport | None = None
) -> dict[str, object]:
    """Rationals are strings beside floats."""
    found: dict[str, object] = {
        "ranks": c.ranks, "degree": c.degree, "collective": c.collective, "scheduler": c.scheduler,
        "chunks_per_shard": c.parts, "transfers": c.transfers, "steps": c.T_L, "T_L": c.T_L,
        **_rational("T_B", c.T_B), **_rational("T_B_bound", c.T_B_bound), "T_L_bound": c.T_L_bound,
        "bw_optimal": c.bw_optimal, "moore_optimal": c.moore_optimal, "diameter": c.diameter,
        **_rational("time_per_byte", c.time_per_byte), **_rational("time_per_byte_bound", c.time_per_byte_bound),
        "bottleneck_cut": c.bottleneck_cut, **bound_object(c), "unit": c.unit, "same_everywhere": c.same_everywhere,
    }  # fmt: skip
    found |= forest_object(c, report, bandwidth)
    found["points"] = [{"size_bytes": p.size, "time_us": p.time * 1e6, "algbw_GBps": p.bandwidth / 1e9} for p in points]
    return found


def _text(
    name: str, c: Cost, points: Sequence[Point], assumed: Sequence[str], fluid: Unchunked | None = None,
    bandwidth: Fraction | None = None, report: ForestReport | None = None,
) -> str:  # fmt: skip
    degree = f"degree {c.degree}" if c.degree is not None else "no common degree"
    rows = [
        ("T_L", f"{c.T_L} steps", steps_bound_text(c)),
        *bandwidth_rows(c),
        *_fluid_rows(c, fluid),
        *forest_rows(c, report, bandwidth),
        ("chunks", f"{c.parts} a shard", ""),
        ("transfers", str(c.transfers), ""),
        *([("results", "may differ in their last bits", _DIFFER)] if c.same_everywhere is False else []),
    ]
    text = f"{name}: {c.collective} on {c.ranks} ranks ({degree}) by {c.scheduler}\n" + table(rows, indent="  ")
    lines = [(show_size(p.size), show_time(p.time), show_bandwidth(p.bandwidth)) for p in points]
    text += table(lines, head=("size", "time", "algbw"), right=(0, 1, 2), indent="  ")
    return text + (f"  times assume {' and '.join(assumed)}: --alpha, --bandwidth\n" if assumed else "")


_DIFFER = "ranks bracket floating-point sums differently"


#: a larger bound is not printed
_VACUOUS = 1000


def _fluid_rows(c: Cost, fluid: Unchunked | None) -> list[tuple[str, str, str]]:
    if fluid is None:
        return []
    if fluid.T_B is None:
        per = "s/B" if c.unit == "B/s" else "per link unit"
        return [("fluid", f"{float(fluid.time_per_byte):.4g} {per}", "in any parts")]
    most = (
        ""
        if fluid.theorem_20 is None or fluid.theorem_20 > _VACUOUS
        else f", Theorem 20 allows {float(fluid.theorem_20):.4f}"
    )
    return [("fluid", f"{fluid.T_B} M/B ({float(fluid.T_B):.4f})", f"in any parts{most}")]
