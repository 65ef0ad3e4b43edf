"""``collc train``: the time of a training iteration on several topologies."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import attrs

from collc.ir.costs.training import Iteration, Workload, best_iteration
from collc.ir.diagnostic import Diagnostic, warning
from collc.ir.shown import counted
from collc.ir.topology import Topology
from collc.passes.finder.networks import Pair, Values, networks

from ..files.texts import Output, check_writable, write_all
from ..messages.quantities import show_size, show_size_about, show_time
from ..tables.columns import Cell, Table
from ..tables.forms import objects
from ..tables.listed import TRAIN, WORKLOADS
from ..training.named import workload_named
from ..training.reading import read_workload, shipped, shipped_text
from .arguments import usage_error
from .console import Console
from .networks import networks_named
from .table import table
from .tabular import require_one_form, show

__all__ = ["train"]

_NO_RATE = "no all-to-all rate"


@attrs.frozen(eq=False)
class _Entry:
    """A topology: the best iteration on it, None without an all-to-all rate, and the bound."""

    name: str
    pair: Pair
    found: Iteration | None
    bound: Iteration | None


def train(options: SimpleNamespace, console: Console) -> int:
    """Print the iteration time on each topology, or list the workloads; return the exit status."""
    if options.list:
        return _list(options, console)
    sources = _sources(options)
    inputs = [options.files[0], *sources]
    require_one_form(options, inputs)
    check_writable([options.trace] if options.trace else [], inputs)
    workload = workload_named(options.files[0], console.inputs)
    if options.buckets:
        workload = attrs.evolve(workload, buckets=tuple(options.buckets))
    named = [one for source in sources for one in networks_named(source, options, console)]
    console.warn(_other_sizes(workload, named))
    entries = list[_Entry]()
    for done, (name, topology) in enumerate(named):
        console.count(f"{name}: times of collectives", done, len(named))
        entries.append(_entry(workload, name, topology, options))
    best = _best(entries)
    if options.trace:
        console.signals.check()
        write_all([Output(options.trace, _trace(entries))])
    show(
        options, console, lambda: Table(TRAIN, _rows(entries, best)),
        lambda: _document(workload, entries, best, options), lambda: _text(workload, entries, best),
    )  # fmt: skip
    return 0


def _sources(options: SimpleNamespace) -> list[str]:
    """Return the topologies of ``--on`` and those that stand after it."""
    hint = "write `collc train WORKLOAD --on TOPOLOGY...`, or `collc train --list`"
    if not options.files:
        raise usage_error("`collc train` needs WORKLOAD", hint)
    found = [*options.on, *options.files[1:]]
    if not found:
        raise usage_error("`collc train` needs a topology", hint)
    return found


def _other_sizes(workload: Workload, named: Sequence[tuple[str, Topology]]) -> list[Diagnostic]:
    """Return warnings of topologies that have another number of ranks than the workload."""
    return [
        warning("C0991", f"`{name}` has {counted(topology.num_ranks, 'rank')}, `{workload.name}` is for "
                f"{workload.ranks}", notes=["its sizes and times hold for that number of ranks"])
        for name, topology in named
        if workload.ranks is not None and workload.ranks != topology.num_ranks
    ]  # fmt: skip


def _entry(workload: Workload, name: str, topology: Topology, options: SimpleNamespace) -> _Entry:
    pair = networks(topology, name, Values(options.alpha, options.bandwidth), workload.alltoalls > 0)
    return _Entry(name, pair, best_iteration(workload, pair.network), best_iteration(workload, pair.bound))


def _best(entries: Sequence[_Entry]) -> _Entry | None:
    """Return the entry of the least time; of equals the first."""
    known = [(entry.found.time, place) for place, entry in enumerate(entries) if entry.found is not None]
    return entries[min(known)[1]] if known else None


def _trace(entries: Sequence[_Entry]) -> str:
    from ..training.trace import trace_text

    return trace_text([(entry.name, entry.found) for entry in entries if entry.found is not None])


# ---- forms


def _rows(entries: Sequence[_Entry], best: _Entry | None) -> list[dict[str, Cell]]:
    return [_row(entry, entry is best) for entry in entries]


def _row(entry: _Entry, is_best: bool) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        "best": is_best, "topology": entry.name, "ranks": entry.pair.ranks, "scheduler": entry.pair.scheduler,
        "bound_us": None if entry.bound is None else float(entry.bound.time) * 1e6,
    }  # fmt: skip
    found = entry.found
    if found is None:
        return {**row, "note": _NO_RATE}
    times = {
        "time_us": found.time, "compute_us": found.compute, "exposed_us": found.exposed, "alltoall_us": found.alltoall,
        "allreduce_us": found.allreduce,
    }  # fmt: skip
    row |= {key: float(value) * 1e6 for key, value in times.items()}
    row |= {"time_s": found.time, "bucket_bytes": found.bucket, "allreduces": found.allreduces}
    if entry.bound is not None and entry.bound.time:
        row["over_bound"] = float(found.time / entry.bound.time)
    return row


def _document(
    workload: Workload, entries: Sequence[_Entry], best: _Entry | None, options: SimpleNamespace
) -> dict[str, object]:
    return {
        **_about(workload),
        "alpha_us": None if options.alpha is None else float(options.alpha * 10**6),
        "bandwidth_GBps": None if options.bandwidth is None else float(options.bandwidth / 10**9),
        "buckets_bytes": list(workload.buckets), "rows": objects(Table(TRAIN, _rows(entries, best))),
        "best": None if best is None else best.name,
    }  # fmt: skip


def _about(workload: Workload) -> dict[str, Cell]:
    return {
        "name": workload.name, "summary": workload.summary, "ranks": workload.ranks, "layers": len(workload.layers),
        "gradient_bytes": workload.gradient, "alltoalls": workload.alltoalls,
        "compute_us": float(workload.compute) * 1e6, "source": workload.source, "assumed": workload.assumed,
    }  # fmt: skip


def _text(workload: Workload, entries: Sequence[_Entry], best: _Entry | None) -> str:
    head = ("", "time", "compute", "exposed", "all-to-all", "bucket", "bound", "", "topology")
    lines = [_line(entry, entry is best) for entry in entries]
    alltoalls = f", {counted(workload.alltoalls, 'all-to-all')}" if workload.alltoalls else ""
    text = f"{workload.name}: {counted(len(workload.layers), 'layer')}, "
    text += f"{show_size_about(workload.gradient)} of gradients{alltoalls}\n"
    text += table(lines, head=head, right=tuple(range(1, 8)), indent="  ")
    text += "  exposed: compute waits for allreduces; bound: see docs/train.md; * fastest\n"
    return text + (f"  assumed: {workload.assumed}\n" if workload.assumed else "")


def _line(entry: _Entry, is_best: bool) -> tuple[str, ...]:
    found, bound = entry.found, entry.bound
    limit = "" if bound is None else show_time(float(bound.time))
    if found is None:
        return ("", _NO_RATE, "", "", "", "", limit, "", entry.name)
    ratio = f"{float(found.time / bound.time):.3f}x" if bound is not None and bound.time else ""
    times = (show_time(float(one)) for one in (found.time, found.compute, found.exposed, found.alltoall))
    return ("*" if is_best else "", *times, show_size(found.bucket), limit, ratio, entry.name)


# ---- list


def _list(options: SimpleNamespace, console: Console) -> int:
    """Print the workloads that come with collc."""
    if options.files or options.on:
        raise usage_error("--list takes no arguments", "leave out --list, or write `collc train --list`")
    rows = [_about(read_workload(shipped_text(name), name)) for name in shipped()]
    lines = [(str(row["name"]), str(row["summary"]), str(row["source"])) for row in rows]
    show(
        options, console, lambda: Table(WORKLOADS, rows), lambda: {"workloads": objects(Table(WORKLOADS, rows))},
        lambda: table(lines, head=("name", "workload", "source")),
    )  # fmt: skip
    return 0
