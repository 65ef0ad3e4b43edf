"""``collc calibrate --nccl-tests``: lines of NCCL's algorithms from logs, and their crossovers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from types import SimpleNamespace

from collc.backends.nccl_tuner.names import ALGORITHMS, PROTOCOLS, require_pair
from collc.ir.collective import KINDS
from collc.ir.diagnostic import nearest, warning
from collc.ir.shown import counted

from ..files.texts import STDIN, Output, check_writable, write_all
from ..messages.quantities import show_size, show_time
from ..selection.fitted import FittedTime
from ..tables.columns import Cell, Table
from ..tables.forms import csv_text
from ..tables.further import CHOICES
from ..tables.listed import NATIVE
from ..tools.nccl_logs import Given, Timed, read_log
from ..tools.nccl_times import Choices, choices, fit_algorithms
from .arguments import usage_error
from .console import Console
from .inputs import read
from .table import table
from .tabular import require_one_form, show

__all__ = ["calibrate_nccl"]

#: a line that deviates by more is warned of
_FAR = 0.5


def calibrate_nccl(options: SimpleNamespace, console: Console) -> int:
    """Fit a line to each algorithm in the logs, print them with their crossovers, and write them for `nccl-tuner`."""
    logs = list(_logs(options))
    paths = [path for path, _ in logs]
    require_one_form(options, [path for path in paths if path != STDIN])
    if options.o:
        check_writable([options.o], paths)
    measured, notes = list[Timed](), list[str]()
    for path, given in logs:
        text, shown = read(path, console)
        found, left_out = read_log(text, shown, given)
        measured += found
        notes += left_out
    for one in measured:
        require_pair(one.collective, one.algorithm, one.protocol or "simple")
    lines, assumed = fit_algorithms(measured)
    notes += [*assumed, *_deviations(lines)]
    for note in notes:
        console.warn([warning("C0078", note)])
    rows = [_row(one) for one in lines]
    if options.o:
        write_all([Output(options.o, csv_text(Table(NATIVE, rows)))])
    show(
        options, console, {"lines": lambda: Table(NATIVE, rows), "choices": lambda: _choices(lines)},
        lambda: _object(lines, notes), lambda: "" if options.o == STDIN else _text(lines),
    )  # fmt: skip
    return 0


def _logs(options: SimpleNamespace) -> Iterator[tuple[str, Given]]:
    """Yield every log with what the options say of it."""
    known = {"collective": options.collective, "ranks": options.ranks, "nodes": options.nodes}
    if options.collective is not None and options.collective not in KINDS:
        hint = nearest(options.collective, KINDS) or f"collectives are {', '.join(KINDS)}"
        raise usage_error(f"there is no collective `{options.collective}`", hint)
    for name, path in options.algorithm:
        algorithm, slash, protocol = name.partition("/")
        _require_name("algorithm", algorithm, ALGORITHMS)
        _require_name("protocol", protocol if slash else "simple", PROTOCOLS)
        yield path, Given(algorithm, protocol if slash else None, **known)
    for path in options.files:
        yield path, Given(**known)


def _require_name(what: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise usage_error(f"NCCL has no {what} `{name}`", nearest(name, known) or f"it has {', '.join(known)}")


def _deviations(lines: Sequence[FittedTime]) -> Iterator[str]:
    for one in lines:
        if one.deviation > _FAR:
            yield (
                f"a time of {one.algorithm} {one.protocol} deviates from its line by {100 * one.deviation:.0f} %: "
                "measure each protocol by itself"
            )


def _row(one: FittedTime) -> dict[str, Cell]:
    return {
        "collective": one.collective, "nodes": one.nodes, "ranks": one.ranks, "algorithm": one.algorithm,
        "protocol": one.protocol, "alpha_s": one.alpha, "beta_s_per_byte": one.beta,
        "bandwidth_GBps": float(1 / one.beta / 10**9), "min_bytes": one.low, "max_bytes": one.high,
        "points": one.points, "largest_deviation": one.deviation,
    }  # fmt: skip


def _object(lines: Sequence[FittedTime], notes: Sequence[str]) -> dict[str, object]:
    return {
        "lines": [{key: str(v) if key in ("alpha_s", "beta_s_per_byte") else v for key, v in _row(one).items()}
                  for one in lines],
        "choices": [
            {"collective": one.lines[0].collective, "nodes": one.lines[0].nodes, "ranks": one.lines[0].ranks,
             "ranges": list(_ranges(one))}
            for one in choices(lines)
        ],
        "notes": list(notes),
    }  # fmt: skip


def _choices(lines: Sequence[FittedTime]) -> Table:
    """Return the fastest algorithm in every range of sizes."""
    return Table(CHOICES, [
        {"collective": one.lines[0].collective, "nodes": one.lines[0].nodes, "ranks": one.lines[0].ranks, **row}
        for one in choices(lines) for row in _ranges(one)
    ])  # fmt: skip


def _ranges(found: Choices) -> Iterator[dict[str, Cell]]:
    ends = [change.size - 1 for change in found.changes[1:]]
    for change, high in zip(found.changes, [*ends, None], strict=True):
        best = found.lines[change.winner]
        yield {
            "min_bytes": change.size, "max_bytes": high, "algorithm": best.algorithm, "protocol": best.protocol,
        }  # fmt: skip


def _text(lines: Sequence[FittedTime]) -> str:
    return "\n".join(_block(one) for one in choices(lines))


def _block(found: Choices) -> str:
    first = found.lines[0]
    head = f"{first.collective} on {counted(first.ranks, 'rank')} and {counted(first.nodes, 'machine')}\n"
    rows = [
        (
            one.algorithm, one.protocol, show_time(float(one.alpha)), f"{float(1 / one.beta / 10**9):.4g} GB/s",
            f"{show_size(one.low)} to {show_size(one.high)}", str(one.points), f"{100 * one.deviation:.3g} %",
        )
        for one in found.lines
    ]  # fmt: skip
    heading = ("algorithm", "protocol", "alpha", "bandwidth", "measured", "points", "deviation")
    text = head + table(rows, head=heading, right=(2, 3, 5, 6), indent="  ")
    for change in found.changes:
        best = found.lines[change.winner]
        text += f"  from {counted(change.size, 'byte')}: {best.algorithm} {best.protocol}\n"
    return text
