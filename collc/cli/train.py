"""``collc train``: the time of a training iteration on several topologies."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import attrs

from collc.ir.shown import counted
from collc.passes.finder.networks import Values

from ..files.texts import Output, check_writable, write_all
from ..messages.quantities import show_size, show_size_about, show_time
from ..tables.forms import objects
from ..tools.listing import listing
from ..training.named import workload_named
from ..training.predicting import NO_RATE, Predicted, Training, predict
from ..training.reading import about
from .arguments import usage_error
from .console import Console
from .networks import networks_named
from .table import table
from .tabular import require_one_form, show

__all__ = ["train"]


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
    found = predict(workload, named, Values(options.alpha, options.bandwidth), console.count)
    console.warn(found.diagnostics)
    if options.trace:
        console.signals.check()
        write_all([Output(options.trace, _trace(found.entries))])
    show(options, console, lambda: found.table, lambda: _document(found, options), lambda: _text(found))
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


def _trace(entries: Sequence[Predicted]) -> str:
    from ..training.trace import trace_text

    return trace_text([(entry.name, entry.found) for entry in entries if entry.found is not None])


# ---- forms


def _document(found: Training, options: SimpleNamespace) -> dict[str, object]:
    return {
        **about(found.workload),
        "alpha_us": None if options.alpha is None else float(options.alpha * 10**6),
        "bandwidth_GBps": None if options.bandwidth is None else float(options.bandwidth / 10**9),
        "buckets_bytes": list(found.workload.buckets), "rows": objects(found.table),
        "best": None if found.best is None else found.best.name,
    }  # fmt: skip


def _text(found: Training) -> str:
    workload = found.workload
    head = ("", "time", "compute", "exposed", "all-to-all", "bucket", "bound", "", "topology")
    lines = [_line(entry, entry is found.best) for entry in found.entries]
    alltoalls = f", {counted(workload.alltoalls, 'all-to-all')}" if workload.alltoalls else ""
    text = f"{workload.name}: {counted(len(workload.layers), 'layer')}, "
    text += f"{show_size_about(workload.gradient)} of gradients{alltoalls}\n"
    text += table(lines, head=head, right=tuple(range(1, 8)), indent="  ")
    text += "  exposed: compute waits for allreduces; bound: see docs/train.md; * fastest\n"
    return text + (f"  assumed: {workload.assumed}\n" if workload.assumed else "")


def _line(entry: Predicted, is_best: bool) -> tuple[str, ...]:
    found, bound = entry.found, entry.bound
    limit = "" if bound is None else show_time(float(bound.time))
    if found is None:
        return ("", NO_RATE, "", "", "", "", limit, "", entry.name)
    ratio = f"{float(found.time / bound.time):.3f}x" if bound is not None and bound.time else ""
    times = (show_time(float(one)) for one in (found.time, found.compute, found.exposed, found.alltoall))
    return ("*" if is_best else "", *times, show_size(found.bucket), limit, ratio, entry.name)


# ---- list


def _list(options: SimpleNamespace, console: Console) -> int:
    """Print the workloads that come with collc."""
    if options.files or options.on:
        raise usage_error("--list takes no arguments", "leave out --list, or write `collc train --list`")
    rows = listing("workloads")
    lines = [(str(row["name"]), str(row["summary"]), str(row["source"])) for row in rows.rows]
    show(
        options, console, lambda: rows, lambda: {"workloads": objects(rows)},
        lambda: table(lines, head=("name", "workload", "source")),
    )  # fmt: skip
    return 0
