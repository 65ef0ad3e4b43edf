"""``collc find``: the topology finder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.ir.costs.cost import DEFAULT_ALPHA, DEFAULT_BANDWIDTH
from collc.ir.shown import counted, listed
from collc.passes.finder.database import Row, rate_text
from collc.passes.finder.exclude import NOTHING

from ..files.texts import Output, check_writable, write_all
from ..messages.quantities import show_bandwidth, show_size, show_time
from ..tools.building import Questions
from ..tools.finding import DEFAULT_SIZE, Frontier, Wanted, database_text
from ..tools.finding import find as find_topologies
from ..tools.frontier_table import by_size, fastest_rows, fastest_table, frontier_table, row_cells
from .arguments import usage_error
from .console import Console
from .find_building import extra_cells, extra_head
from .searching import workers
from .signals import Terminated
from .table import table
from .tabular import Tables, require_one_form, show

if TYPE_CHECKING:
    from ..tables.columns import Cell
    from ..training.objectives import Objective

__all__ = ["find"]

#: options that ask about one size, and those of a search, which --check has not
_QUESTIONS = (
    "rack", "robust", "expand-to", "svg", "json", "csv", "markdown", "table", "objective", "workload", "size", "alpha",
    "bandwidth",
)  # fmt: skip
_SEARCH = ("exclude", "refresh", "effort", "seed", "bidirectional", "rates-only")


def find(options: SimpleNamespace, console: Console) -> int:
    """Print the frontier of a size and degree, or work on databases (``--check``, ``--refresh --database``)."""
    if options.check or options.rates_only or (options.refresh and options.database):
        from .find_database import build, check, rate

        _require_no_questions(options)
        return (check if options.check else rate if options.rates_only else build)(options, console)
    require_one_form(options)
    wanted = _wanted(options, _workload(options, console))
    if options.svg:
        check_writable([options.svg], [options.database] if options.database else [])
    found = _found(wanted, options, console)
    if options.svg:
        from ..pictures.frontier import pareto_svg

        console.signals.check()
        write_all([Output(options.svg, pareto_svg(found))])
    if options.expand_to:
        return _show_expansions(found, options, console)
    _show(found, options, console)
    return 0


def _show_expansions(found: Frontier, options: SimpleNamespace, console: Console) -> int:
    from ..tools.growing import expansions
    from ..tools.larger import growth_objects, growth_tables, recabling_object
    from .find_growth import growth_text

    database = database_text(options.database, found.wanted.degree) if options.database else None
    with workers(options, console, options.refresh) as work:
        larger = expansions(
            found, options.expand_to, database=database, evaluations=options.effort or None, seed=options.seed,
            work=work,
        )  # fmt: skip
    show(
        options, console, {**growth_tables(larger), **_tables(found, options)},
        lambda: {
            **_document(found, options), "expansions": growth_objects(larger), "recabling": recabling_object(larger),
        },
        lambda: _text(found, options) + growth_text(found, larger),
    )  # fmt: skip
    return 0


def _require_no_questions(options: SimpleNamespace) -> None:
    """Raise C0001 for options of one size beside databases, and for those of a search beside --check."""

    def given(name: str) -> bool:
        return bool(getattr(options, name.replace("-", "_")))

    for name in filter(given, _QUESTIONS):
        raise usage_error(f"--{name} is for one size, and a database holds all topologies", f"leave out --{name}")
    for name in filter(given, _SEARCH if options.check else ()):
        raise usage_error(f"--check searches nothing, found also --{name}", f"leave out --{name}")


def _document(found: Frontier, options: SimpleNamespace) -> dict[str, object]:
    points = {"points": _points(found, options.size)} if options.size and len(options.size) > 1 else {}
    return {**frontier_object(found), **points}


def _workload(options: SimpleNamespace, console: Console) -> Objective | None:
    """Return what ``--workload`` names; raise C0001 beside options that it replaces."""
    if options.workload is None:
        return None
    for name in ("objective", "size"):
        if getattr(options, name):
            raise usage_error(
                f"--workload has its own collectives and sizes, found also --{name}", f"leave out --{name}"
            )
    from ..training.named import objective_named

    found, doubts = objective_named(options.workload, options.n or (), console.inputs)
    console.warn(doubts)
    return found


def _wanted(options: SimpleNamespace, workload: Objective | None) -> Wanted:
    for name, value in (("-n", options.n), ("-d", options.d)):
        if not value:
            raise usage_error(f"`collc find` needs {name}", "write `collc find -n NODES -d DEGREE`")
        if len(value) != 1:
            raise usage_error(
                f"`collc find` takes one {name}, found {len(value)}",
                "databases (--database, --check) take several",
            )
    from ..tools.excluding import excluded

    return Wanted(
        options.n[0], options.d[0], options.bidirectional, options.objective or "allreduce",
        DEFAULT_ALPHA if options.alpha is None else options.alpha,
        DEFAULT_SIZE if options.size is None else options.size[0],
        DEFAULT_BANDWIDTH if options.bandwidth is None else options.bandwidth, workload,
        excluded(options.exclude) if options.exclude else NOTHING, Questions(options.rack, options.robust),
    )  # fmt: skip


def _found(wanted: Wanted, options: SimpleNamespace, console: Console) -> Frontier:
    """Return the frontier. If a signal ends a search, print what it has found so far before the process ends."""
    database = database_text(options.database, wanted.degree) if options.database else None
    kept, start = list[Frontier](), time.monotonic()
    with workers(options, console, options.refresh) as work:
        try:
            found = find_topologies(
                wanted, database=database, refresh=options.refresh, evaluations=options.effort or None,
                seed=options.seed, work=work, keep=kept.append,
            )  # fmt: skip
        except Terminated:
            note = "the frontier of the parts that ended" if kept else "no part had ended"
            _say(console, f"interrupted after {_seconds(start)} s of search: {note}")
            if kept:
                _show(kept[-1], options, console)
            raise
    if kept and not found.listed:
        _say(console, f"not in the database; searched for {_seconds(start)} s (--effort searches longer)")
    if not kept and (options.effort or options.seed):
        _say(console, "the topologies are from the database: --effort and --seed are for a search (--refresh)")
    return found


def _seconds(start: float) -> str:
    return f"{time.monotonic() - start:.1f}"


def _say(console: Console, text: str) -> None:
    if not console.errors_only and console.format == "text":
        console.err(f"collc: {text}\n")


def _show(found: Frontier, options: SimpleNamespace, console: Console) -> None:
    show(options, console, _tables(found, options), lambda: _document(found, options), lambda: _text(found, options))


def _tables(found: Frontier, options: SimpleNamespace) -> Tables:
    sizes = options.size or [found.wanted.size]
    has_sizes = found.wanted.workload is None
    return {
        "frontier": lambda: frontier_table(found),
        **({"sizes": lambda: fastest_table(found, sizes)} if has_sizes else {}),
    }


# ---- text


def _text(found: Frontier, options: SimpleNamespace) -> str:
    from collc.passes.synthesis.flow.rate import rate_bound

    wanted, (steps, bandwidth) = found.wanted, found.bound
    rows = [_row(row, found, row is found.best) for row in found.frontier]
    costs = (str(steps), str(bandwidth), f"{float(bandwidth):.4f}", "")
    questions = extra_head(found)
    most = str(rate_bound(wanted.nodes, wanted.degree))
    rows.append(("", *costs, "", most, *("" for _ in questions), "", "bound: no topology has less, or a higher rate"))
    rows += [_row(row, found) for row in found.both_ways if row not in found.frontier]
    head: tuple[str, ...] = (
        "", "T_L", "T_B", "", "reduce-scatter", "links", "all-to-all rate", *questions, "time", "topology",
    )  # fmt: skip
    lines: list[tuple[str, ...]] = list(rows)
    if not any(row[4] for row in rows):  # usually a reduce-scatter takes as long as an allgather
        head, lines = (*head[:4], *head[5:]), [(*row[:4], *row[5:]) for row in rows]
    last = len(head) - 1
    kind = "bidirectional topologies" if wanted.bidirectional else "topologies"
    without = f" without {listed(sorted(wanted.exclude.names), 'or')}" if wanted.exclude.names else ""
    text = f"{kind} of {wanted.nodes} nodes and degree {wanted.degree}{without}: T_L in steps, T_B in M/B\n"
    text += table(lines, head=head, right=(1, 3, *range(last - 1 - len(questions), last)), indent="  ")
    return text + _notes(found) + _footer(found, options)


def _notes(found: Frontier) -> str:
    """Return what the marks and the brackets mean, if there are some."""
    rows = dict.fromkeys((*found.frontier, *found.both_ways))
    lines = []
    if any(found.is_for_rate(row) for row in rows):
        lines.append("  + costs more than another row, but its all-to-all rate is, or may be, better")
    if any(row.alltoall_upper is not None for row in rows):
        lines.append("  a..b: the rate is at least a, which a routing reaches, and at most b")
    if found.may_be_faster:
        lines.append(f"  {counted(len(found.may_be_faster), 'row')} may be faster than the star's, at a rate near b")
    return "".join(line + "\n" for line in lines)


def _row(row: Row, found: Frontier, best: bool = False) -> tuple[str, ...]:
    time = found.wanted.time(row)
    shown = "" if time is None else show_time(time)
    least = found.wanted.least_seconds(row)
    if least is not None and time is not None and least < time:
        shown = f"{show_time(least)}..{shown}"
    back = "" if row.reduce_scatter_T_B in (None, row.T_B) else str(row.reduce_scatter_T_B)
    costs = (str(row.T_L), str(row.T_B), f"{float(row.T_B):.4f}", back)
    links = "<->" if row.bidirectional else "->"
    mark = "*" if best else "+" if found.is_for_rate(row) else ""
    rate = rate_text(row)
    return (mark, *costs, links, rate, *extra_cells(row, found), shown, _expression(row))


def _expression(row: Row) -> str:
    return row.expression if row.scheduler == "bfb" else f"{row.expression}  (using {row.scheduler})"


def _footer(found: Frontier, options: SimpleNamespace) -> str:
    best = found.best
    if best is None:
        return "no time is known: all-to-all rates are missing\n"
    if options.size and len(options.size) > 1:
        return _fastest(found, options.size)
    return _best(found, best, options)


def _best(found: Frontier, best: Row, options: SimpleNamespace) -> str:
    """Return what the best topology is best for, and a file that uses it."""
    wanted = found.wanted
    latency = f"{show_time(float(wanted.alpha))} a step and " if wanted.objective != "alltoall" else ""
    what = f"an {wanted.objective} of {show_size(wanted.size)}" if wanted.workload is None else wanted.workload.text
    text = f"  * fastest for {what} at {latency}{show_bandwidth(float(wanted.bandwidth))} out of a node"
    if not (options.alpha or options.size or options.bandwidth or wanted.workload):
        text += " (--size, --alpha, --bandwidth)"
    lines = [text, "", f"  topology t = {best.expression};"]
    if wanted.workload is None and wanted.objective != "alltoall":
        lines.append(f"  collective c = {wanted.objective} on t;")
        lines += [f"  schedule c using {best.scheduler};"] if best.scheduler != "bfb" else []
    return "\n".join(lines) + "\n"


def _fastest(found: Frontier, sizes: list[int]) -> str:
    """Return the fastest topology for each of several sizes; the star is for the first."""
    rows = [
        (show_size(size), show_time(time or 0.0), "" if row is None else _expression(row))
        for size, row, time in by_size(found, sizes)
    ]
    head = ("size", "time", "fastest")
    return f"  * fastest at {rows[0][0]}\n\n" + table(rows, head=head, right=(0, 1), indent="  ")


# ---- JSON


def _points(found: Frontier, sizes: Sequence[int]) -> list[dict[str, Cell]]:
    return [{key: value for key, value in row.items() if key != "scheduler"} for row in fastest_rows(found, sizes)]


def frontier_object(found: Frontier) -> dict[str, object]:
    """Return the object of ``--json``; rationals are strings beside floats, times in microseconds."""
    wanted, (steps, bandwidth) = found.wanted, found.bound
    return {
        "n": wanted.nodes, "degree": wanted.degree, "bidirectional": wanted.bidirectional,
        "objective": "workload" if wanted.workload else wanted.objective, "alpha_us": float(wanted.alpha * 10**6),
        "size_bytes": 0 if wanted.workload else wanted.size,
        "bandwidth_GBps": float(wanted.bandwidth / 10**9), "frontier": _rows(found, found.frontier),
        "bidirectional_frontier": _rows(found, found.both_ways),
        "bound": {"T_L": steps, "T_B": str(bandwidth), "T_B_float": float(bandwidth)},
        "best": None if found.best is None else found.best.expression,
        **({} if wanted.workload is None else {"workload": wanted.workload.text}),
        **({"excluded": sorted(wanted.exclude.names)} if wanted.exclude.names else {}),
        **({"rack": wanted.questions.rack} if wanted.questions.rack else {}),
    }  # fmt: skip


def _rows(found: Frontier, rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return rows for JSON: rationals are strings."""
    return [
        {key: str(value) if isinstance(value, Fraction) else value for key, value in row_cells(row, found).items()}
        for row in rows
    ]
