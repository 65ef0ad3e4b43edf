"""``collc find``: the topology finder."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs

from collc.ir.costs.cost import DEFAULT_ALPHA, DEFAULT_BANDWIDTH
from collc.ir.diagnostic import warning
from collc.ir.shown import listed
from collc.passes.finder.database import Row
from collc.passes.finder.exclude import NOTHING
from collc.passes.finder.tasks import EVALUATIONS

from ..files.texts import Output, check_writable, read_text, write_all
from ..messages.quantities import show_bandwidth, show_size, show_time
from ..tools.building import Questions
from ..tools.finding import DEFAULT_SIZE, Frontier, Wanted
from ..tools.finding import find as find_topologies
from .arguments import usage_error
from .console import Console
from .find_building import extra_cells, extra_columns, extra_head, extra_object
from .searching import workers
from .table import table
from .tabular import require_one_form, show

if TYPE_CHECKING:
    from collc.tables.columns import Cell, Table

    from ..training.objectives import Objective

__all__ = ["find"]


def find(options: SimpleNamespace, console: Console) -> int:
    """Print the frontier of a size and degree, or work on databases (``--check``, ``--refresh --database``)."""
    if options.check or (options.refresh and options.database):
        from .find_database import build, check

        _require_no_questions(options)
        return (check if options.check else build)(options, console)
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
    show(options, console, lambda: _table(found), lambda: _document(found, options), lambda: _text(found, options))
    return 0


def _show_expansions(found: Frontier, options: SimpleNamespace, console: Console) -> int:
    from ..tools.growing import expansions
    from .find_growth import growth_objects, growth_table, growth_text

    database = _database(options.database, found.wanted.degree) if options.database else None
    with workers(options, console) as work:
        larger = expansions(
            found, options.expand_to, database=database, evaluations=options.effort or EVALUATIONS, seed=options.seed,
            work=work,
        )  # fmt: skip
    show(
        options, console, lambda: growth_table(larger),
        lambda: {**_document(found, options), "expansions": growth_objects(larger)},
        lambda: _text(found, options) + growth_text(found, larger),
    )  # fmt: skip
    return 0


def _require_no_questions(options: SimpleNamespace) -> None:
    """Raise C0001 for options of one size beside databases."""
    for name in ("exclude", "rack", "robust", "expand-to"):
        if getattr(options, name.replace("-", "_")):
            raise usage_error(f"--{name} is for one size, and a database holds all topologies", f"leave out --{name}")


def _document(found: Frontier, options: SimpleNamespace) -> dict[str, object]:
    points = {"points": _points(found, options.size)} if options.size and len(options.size) > 1 else {}
    return {**frontier_object(found), **points}


def _table(found: Frontier) -> Table:
    """Return the rows of the frontier, and the best topologies with links in both directions."""
    from collc.tables.columns import Table
    from collc.tables.listed import FRONTIER

    rows = [*found.frontier, *(row for row in found.both_ways if row not in found.frontier)]
    columns = (*FRONTIER, *extra_columns(found))
    return Table(columns, [{"best": row is found.best, **_object(row, found)} for row in rows])


def _workload(options: SimpleNamespace, console: Console) -> Objective | None:
    """Return what ``--workload`` names; raise C0001 beside options that it replaces."""
    if options.workload is None:
        return None
    for name in ("objective", "size"):
        if getattr(options, name):
            raise usage_error(
                f"--workload has its own collectives and sizes, found also --{name}", f"leave out --{name}"
            )
    from ..training.named import is_workload, workload_named
    from ..training.objectives import Iterations, parse_mix

    if not is_workload(options.workload):
        return parse_mix(options.workload)
    workload = workload_named(options.workload, console.inputs)
    if workload.ranks not in (None, *(options.n or ())):
        message = f"the topologies have {options.n[0]} nodes, `{workload.name}` is for {workload.ranks} ranks"
        console.warn([warning("C0991", message, notes=["its sizes and times hold for that number of ranks"])])
    return Iterations(workload)


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


def _database(path: str, degree: int) -> tuple[str, str]:
    from ..tools.finding_database import file_of

    path = file_of(path, degree)
    return read_text(path), path


def _found(wanted: Wanted, options: SimpleNamespace, console: Console) -> Frontier:
    database = _database(options.database, wanted.degree) if options.database else None
    with workers(options, console) as work:
        return find_topologies(
            wanted, database=database, refresh=options.refresh, evaluations=options.effort or EVALUATIONS,
            seed=options.seed, work=work,
        )  # fmt: skip


# ---- text


def _text(found: Frontier, options: SimpleNamespace) -> str:
    wanted, (steps, bandwidth) = found.wanted, found.bound
    unknown = "" if wanted.workload is None else "no all-to-all rate"
    rows = [_row(row, found, row is found.best, unknown) for row in found.frontier]
    costs = (str(steps), str(bandwidth), f"{float(bandwidth):.4f}", "")
    questions = extra_head(found)
    rows.append(("", *costs, "", *("" for _ in questions), "", "bound: no topology has less"))
    rows += [_row(row, found, unknown=unknown) for row in found.both_ways if row not in found.frontier]
    head: tuple[str, ...] = ("", "T_L", "T_B", "", "reduce-scatter", "links", *questions, "time", "topology")
    lines: list[tuple[str, ...]] = list(rows)
    if not any(row[4] for row in rows):  # usually a reduce-scatter takes as long as an allgather
        head, lines = (*head[:4], *head[5:]), [(*row[:4], *row[5:]) for row in rows]
    kind = "bidirectional topologies" if wanted.bidirectional else "topologies"
    without = f" without {listed(sorted(wanted.exclude.names), 'or')}" if wanted.exclude.names else ""
    text = f"{kind} of {wanted.nodes} nodes and degree {wanted.degree}{without}: T_L in steps, T_B in M/B\n"
    text += table(lines, head=head, right=(1, 3, *range(len(head) - 2 - len(questions), len(head) - 1)), indent="  ")
    return text + _footer(found, options)


def _row(row: Row, found: Frontier, best: bool = False, unknown: str = "") -> tuple[str, ...]:
    time = found.wanted.time(row)
    shown = unknown if time is None else show_time(time)
    back = "" if row.reduce_scatter_T_B in (None, row.T_B) else str(row.reduce_scatter_T_B)
    costs = (str(row.T_L), str(row.T_B), f"{float(row.T_B):.4f}", back)
    links = "<->" if row.bidirectional else "->"
    return ("*" if best else "", *costs, links, *extra_cells(row, found), shown, _expression(row))


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
        for size, row, time in _by_size(found, sizes)
    ]
    head = ("size", "time", "fastest")
    return f"  * fastest at {rows[0][0]}\n\n" + table(rows, head=head, right=(0, 1), indent="  ")


def _by_size(found: Frontier, sizes: list[int]) -> Iterator[tuple[int, Row | None, float | None]]:
    """Yield every size with the topology of the least time, and that time."""
    for size in sizes:
        best = attrs.evolve(found, wanted=attrs.evolve(found.wanted, size=size))
        yield size, best.best, None if best.best is None else best.wanted.time(best.best)


# ---- JSON


def _points(found: Frontier, sizes: list[int]) -> list[dict[str, object]]:
    return [
        {"size_bytes": size, "time_us": None if time is None else time * 1e6,
         "best": None if row is None else row.expression}
        for size, row, time in _by_size(found, sizes)
    ]  # fmt: skip


def frontier_object(found: Frontier) -> dict[str, object]:
    """Return the object of ``--json``; rationals are strings beside floats, times in microseconds."""
    wanted, (steps, bandwidth) = found.wanted, found.bound
    return {
        "n": wanted.nodes, "degree": wanted.degree, "bidirectional": wanted.bidirectional,
        "objective": "workload" if wanted.workload else wanted.objective, "alpha_us": float(wanted.alpha * 10**6),
        "size_bytes": 0 if wanted.workload else wanted.size,
        "bandwidth_GBps": float(wanted.bandwidth / 10**9), "frontier": [_object(row, found) for row in found.frontier],
        "bidirectional_frontier": [_object(row, found) for row in found.both_ways],
        "bound": {"T_L": steps, "T_B": str(bandwidth), "T_B_float": float(bandwidth)},
        "best": None if found.best is None else found.best.expression,
        **({} if wanted.workload is None else {"workload": wanted.workload.text}),
        **({"excluded": sorted(wanted.exclude.names)} if wanted.exclude.names else {}),
        **({"rack": wanted.questions.rack} if wanted.questions.rack else {}),
    }  # fmt: skip


def _object(row: Row, found: Frontier) -> dict[str, Cell]:
    time, rate = found.wanted.time(row), row.alltoall_rate
    return {
        "expression": row.expression, "T_L": row.T_L, "T_B": str(row.T_B), "T_B_float": float(row.T_B),
        "T_B_reduce_scatter": None if row.reduce_scatter_T_B is None else str(row.reduce_scatter_T_B),
        "diameter": row.diameter,
        "bidirectional": row.bidirectional, "alltoall_rate": None if rate is None else str(rate),
        "alltoall_rate_float": None if rate is None else float(rate),
        "time_us": None if time is None else time * 1e6, "scheduler": row.scheduler,
        **extra_object(row, found),
    }  # fmt: skip
