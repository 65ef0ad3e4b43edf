"""``collc cost``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeAlias

from collc.ir.collective import Collective
from collc.ir.costs.cost import Cost, assumptions
from collc.ir.diagnostic import error
from collc.ir.schedule import Schedule
from collc.ir.spec import Option
from collc.ir.symmetric_program import AnyProgram

from ..costing.orbits import Orbits
from ..costing.points import Pricing, Row, overheads, priced, sizes_of
from ..costing.tables import cost_tables, orbits_in, title_of
from ..costing.trees import forest_report
from ..driver.compilation import make_jobs
from ..driver.result import CollectiveResult
from ..driver.sizes import is_planned_by_size, own_size
from ..driver.spans import span
from ..driver.whole import Whole, wholes
from ..tables.forms import rational
from .auto_report import choice_object, choice_text
from .baselines import baselines_object, baselines_rows, baselines_text, compare
from .console import Console
from .cost_bounds import bandwidth_rows, bound_object, steps_bound_text
from .cost_counts import counts_object, counts_rows
from .cost_forest import forest_object, forest_rows
from .cost_plan import plan_object, plan_rows, plan_time_of
from .failures import Failures
from .inputs import load, settings
from .points import legend, overheads_object, point_objects, point_table
from .roots import orbit_object, orbits_object, orbits_text
from .table import table
from .tabular import Tables, require_one_form, show, together
from .together import whole_object, whole_text
from .watcher import Watcher, show_times

if TYPE_CHECKING:
    from collc.passes.synthesis.breadth_first.unchunked import Unchunked
    from collc.passes.synthesis.forest.report import ForestReport
    from collc.tables.columns import Cell, Table

    from ..driver.result import Settings

__all__ = ["cost", "cost_object"]

#: collective -> the options of its scheduler in the file
Requested: TypeAlias = dict[str, tuple[Option, ...]]


def cost(options: SimpleNamespace, console: Console) -> int:
    """Print the cost of every collective's schedule; return the exit status."""
    require_one_form(options, options.files)
    spec, start = load(options, console, "cost")
    if isinstance(start, AnyProgram):
        raise error(
            "C0018",
            f"`{options.files[0]}` holds a program; only schedules have a cost",
            hint="print the schedule",
        )
    jobs, _ = make_jobs(spec, (), options.collective, start)
    console.warn(spec.warnings)
    jobs = [job.schedule_only for job in jobs]
    watcher = Watcher(options, console)
    failures = Failures()
    results = failures.compiled(jobs, _exact(options), watcher)
    show_times(results, options, console)
    console.warn(warning for r in results for warning in r.warnings)
    results = [r for r in results if r.schedule is not None]
    requested = {job.request.name: job.request.schedule.options for job in jobs if job.request is not None}
    console.progress("cost and bounds")
    with span("cost and bounds", "cost"):
        _show(list(wholes([job.block for job in jobs], results)), results, requested, failures, options, console)
    return failures.report(console)


def _show(
    blocks: Sequence[Whole], results: Sequence[CollectiveResult], requested: Requested, failures: Failures,
    options: SimpleNamespace, console: Console,
) -> None:  # fmt: skip
    show(
        options, console,
        _tables(blocks, results, requested, failures, options),
        lambda: _document(results, failures, options, requested, blocks),
        lambda: "\n".join([
            *failures.each(results, _name, lambda r: _whole_text(r, options, console, requested)),
            *(whole_text(block, options.bandwidth) for block in blocks),
            *map(orbits_text, _orbits(results, options)),
        ]),
    )  # fmt: skip


def _name(result: CollectiveResult) -> str:
    return result.name


def _document(
    results: Sequence[CollectiveResult], failures: Failures, options: SimpleNamespace, requested: Requested,
    blocks: Sequence[Whole],
) -> Mapping[str, object]:  # fmt: skip
    objects = failures.each(results, _name, lambda r: _whole_object(r, options, requested))
    more = {"together": [whole_object(block, options.bandwidth) for block in blocks]} if blocks else {}
    if orbits := _orbits(results, options):
        more["roots"] = list(map(orbits_object, orbits))
    return together(objects, failures.objects(), **more)


def _orbits(results: Sequence[CollectiveResult], options: SimpleNamespace) -> list[Orbits]:
    return orbits_in(results, _pricing(options))


def _pricing(options: SimpleNamespace) -> Pricing:
    return Pricing(tuple(options.size or ()), options.alpha, options.bandwidth, options.gamma, options.epsilon)


def _tables(
    blocks: Sequence[Whole], results: Sequence[CollectiveResult], requested: Requested, failures: Failures,
    options: SimpleNamespace,
) -> Tables:  # fmt: skip
    """Return the tables by name; with ``--baselines`` theirs is the first."""
    baselines: Tables = {"baselines": lambda: _baselines(results, failures, options, requested)}
    others = cost_tables(results, lambda: blocks, _pricing(options))
    return {**baselines, **others} if options.baselines else {**others, **baselines}


def _baselines(
    results: Sequence[CollectiveResult], failures: Failures, options: SimpleNamespace, requested: Requested
) -> Table:
    """Return a row for collc's schedule and for every baseline, at every size of every collective."""
    from collc.tables.columns import Table
    from collc.tables.listed import BASELINES

    def rows(result: CollectiveResult) -> list[Mapping[str, Cell]]:
        c = result.cost
        about: dict[str, Cell] = {"name": result.name, "collective": c.collective, "ranks": c.ranks}
        found = compare(result, requested[result.name], _sizes(result, options), options)
        return [{**about, **cells} for cells in baselines_rows(found)]

    return Table(BASELINES, [row for one in failures.each(results, _name, rows) for row in one])


def _whole_object(result: CollectiveResult, options: SimpleNamespace, requested: Requested) -> dict[str, object]:
    """Return the object of a collective: its only schedule, or the first with all in ``algorithms``."""
    objects = [_one_object(one, options) for one in result.each]
    found = {**objects[0], **choice_object(result.choice)}
    if options.baselines:
        found["baselines"] = baselines_object(compare(result, requested[result.name], _sizes(result, options), options))
    return {**found, "algorithms": objects} if result.algorithms else found


def _one_object(result: CollectiveResult, options: SimpleNamespace) -> dict[str, object]:
    c = result.cost
    return {
        "name": result.name,
        **_object(c, _rows(result, options), options.bandwidth, forest_report(result)),
        **_fluid_object(_fluid(result)),
        **plan_object(plan_time_of(result)),
        "assumed": _assumed(c, options),
        **overheads_object(c.reduced, *overheads(c, _pricing(options))),
        **counts_object(_collective(result)),
        **orbit_object(result.request),
        **({"remarks": list(result.remarks)} if result.remarks else {}),
        **({"algorithm": result.window.algorithm, "label": result.window.label} if result.window else {}),
    }


def _whole_text(result: CollectiveResult, options: SimpleNamespace, console: Console, requested: Requested) -> str:
    texts = []
    for one in result.each:
        name = title_of(one)
        c, rows = one.cost, _rows(one, options)
        gamma, epsilon = overheads(c, _pricing(options))
        report, plan = forest_report(one), plan_time_of(one)
        text = _text(name, c, rows, _fluid(one), options.bandwidth, report, gamma, _collective(one), plan)
        replanned = is_planned_by_size(one) and {row.size for row in rows} != {own_size(one)}
        texts.append(text + legend(_assumed(c, options), replanned, gamma, epsilon))
    text = "\n".join(texts) + "".join(f"  {remark}\n" for one in result.each for remark in one.remarks)
    if result.choice is not None:
        text += choice_text(result.choice, result.request.schedule.span is not None or console.verbose)
    if options.baselines:
        text += baselines_text(compare(result, requested[result.name], _sizes(result, options), options))
    return text


def _exact(options: SimpleNamespace) -> Settings:
    """Return settings that stop at the schedule; only ``-p`` can cut it into chunks, so costs are exact."""
    import attrs

    from ..registry.elements import Element

    chosen = attrs.evolve(settings(options, Schedule), remembers=True)
    if chosen.recipe.elements is None:
        none: tuple[Element, ...] = ()
        chosen = attrs.evolve(chosen, recipe=attrs.evolve(chosen.recipe, elements=none))
    return chosen


def _rows(result: CollectiveResult, options: SimpleNamespace) -> tuple[Row, ...]:
    """Return the predicted time at every size, of the schedule that is planned for this size."""
    return priced(result, _pricing(options))


def _sizes(result: CollectiveResult, options: SimpleNamespace) -> Sequence[int]:
    return sizes_of(result, _pricing(options))


def _collective(result: CollectiveResult) -> Collective:
    assert result.schedule is not None, "only schedules have a cost"
    return result.schedule.collective


def _fluid(result: CollectiveResult) -> Unchunked | None:
    """Return the cost without a limit on chunks if the scheduler has one, else None."""
    from collc.passes.synthesis.breadth_first.unchunked import unchunked

    passes = result.plans[0].passes if result.plans and result.request and result.request.problem.is_whole else ()
    return unchunked(passes[0], result.request.problem) if passes else None


def _fluid_object(fluid: Unchunked | None) -> dict[str, object]:
    if fluid is None:
        return {}
    return {
        **rational("T_B_fluid", fluid.T_B), **rational("time_per_byte_fluid", fluid.time_per_byte),
        **rational("T_B_theorem_20", fluid.theorem_20),
    }  # fmt: skip


def _assumed(c: Cost, options: SimpleNamespace) -> list[str]:
    return list(assumptions(c, options.alpha, options.bandwidth))


def cost_object(result: CollectiveResult) -> dict[str, object] | None:
    """Return the JSON object of the cost of a result's schedule, or None without a schedule."""
    return None if result.schedule is None else _object(result.cost, (), None, forest_report(result))


def _object(
    c: Cost, rows: Sequence[Row], bandwidth: Fraction | None = None, report: ForestReport | None = None
) -> dict[str, object]:
    """Rationals are strings beside floats."""
    found: dict[str, object] = {
        "ranks": c.ranks, **({} if c.members is None else {"members": c.members}), "degree": c.degree,
        "collective": c.collective, "scheduler": c.scheduler,
        "chunks_per_shard": c.parts, "transfers": c.transfers, "steps": c.T_L, "T_L": c.T_L,
        **rational("T_B", c.T_B), **rational("T_B_bound", c.T_B_bound), "T_L_bound": c.T_L_bound,
        "bw_optimal": c.bw_optimal, "moore_optimal": c.moore_optimal, "diameter": c.diameter,
        **rational("time_per_byte", c.time_per_byte), **rational("time_per_byte_bound", c.time_per_byte_bound),
        "bottleneck_cut": c.bottleneck_cut, **bound_object(c), "unit": c.unit, "same_everywhere": c.same_everywhere,
    }  # fmt: skip
    found |= forest_object(c, report, bandwidth)
    found["points"] = point_objects(rows)
    return found


def _text(
    name: str, c: Cost, rows: Sequence[Row], fluid: Unchunked | None = None,
    bandwidth: Fraction | None = None, report: ForestReport | None = None, gamma: Fraction | None = None,
    collective: Collective | None = None, plan: Fraction | None = None,
) -> str:  # fmt: skip
    degree = f"degree {c.degree}" if c.degree is not None else "no common degree"
    lines = [
        ("T_L", _steps(c), steps_bound_text(c)),
        *bandwidth_rows(c),
        *([("T_C", f"{c.reduced} M gamma ({float(c.reduced):.4f})", _ADDED)] if gamma else []),
        *_fluid_rows(c, fluid),
        *forest_rows(c, report, bandwidth),
        *plan_rows(c, plan),
        ("chunks", f"{c.parts} {_of_what(c)}", ""),
        ("transfers", str(c.transfers), ""),
        *(counts_rows(c, collective) if collective is not None else []),
        *([("results", "may differ in their last bits", _DIFFER)] if c.same_everywhere is False else []),
    ]
    among = "" if c.members is None else f"{c.members} of "
    text = f"{name}: {c.collective} on {among}{c.ranks} ranks ({degree}) by {c.scheduler}\n" + table(lines, indent="  ")
    return text + point_table(rows)


def _steps(c: Cost) -> str:
    """Return T_L, and the steps that trees in several pieces take."""
    pieces = f", {c.steps} in {c.forest.pieces} pieces" if c.forest is not None and c.steps != c.T_L else ""
    return f"{c.T_L} steps{pieces}"


def _of_what(c: Cost) -> str:
    """Return of what the chunks are a part: trees may carry shares of the whole vector."""
    whole = c.forest is not None and c.forest.whole and c.forest.rounds is not None and c.collective == "allreduce"
    return "of the vector" if whole else "a shard"


_ADDED = "the most that a rank adds in each step"
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
