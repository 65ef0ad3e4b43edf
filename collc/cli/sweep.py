"""``collc sweep``: networks, collectives, sizes and schedulers as one table."""

from __future__ import annotations

import os
from types import SimpleNamespace

from collc.frontends.coll.kinds import PREDEFINED
from collc.ir.shown import counted

from ..files.store import Store, default_folder, opened
from ..files.texts import Output, check_writable, write_all
from ..sweeping.cases import Case, Prediction, collective_of
from ..sweeping.files import content_of, document, require_form
from ..sweeping.rows import HEAD, shown_row
from ..sweeping.sweep import DEFAULT_SIZES, Network, Sweep, cases, run_cases
from .arguments import usage_error
from .console import Console
from .networks import is_file, networks_named
from .searching import workers
from .table import table
from .tabular import require_one_form, show

__all__ = ["sweep"]


def sweep(options: SimpleNamespace, console: Console) -> int:
    """Print the predicted time of every case, or write the table into the file of -o; return the exit status."""
    sources = [*options.on, *options.files]
    inputs = [source for source in sources if is_file(source)]
    require_one_form(options, inputs)
    if options.o:
        require_form(options.o)
        check_writable([options.o], inputs)
    planned = _planned(sources, options, console)
    with workers(options, console, in_parallel=len(planned) > 1) as work:
        found = run_cases(planned, work, _store(options))
    if options.o:
        console.signals.check()
        write_all([Output(options.o, content_of(found, options.o))])
        console.say(f"wrote {options.o}: {counted(len(found.rows), 'row')}, {len(found.failed)} failed")
    if not options.o or options.json or options.csv or options.markdown:
        show(options, console, lambda: found.table, lambda: document(found), lambda: _text(found))
    return _status(found)


def _planned(sources: list[str], options: SimpleNamespace, console: Console) -> list[Case]:
    example = "collc sweep --on 'torus(4, 4)' --collective allreduce --using bfb swing"
    for what, given in (("a network: --on", sources), ("--collective", options.collective)):
        if not given:
            raise usage_error(f"`collc sweep` needs {what}", f"write `{example}`")
    for text in options.collective:
        collective_of(text, PREDEFINED)  # before files are read
    return cases(
        _networks(sources, options, console), options.collective, options.using or ["auto"],
        options.size or DEFAULT_SIZES,
        Prediction(options.alpha, options.bandwidth, options.gamma, options.epsilon),
        node_limit=options.node_limit, verify=options.verify,
    )  # fmt: skip


def _networks(sources: list[str], options: SimpleNamespace, console: Console) -> dict[str, Network]:
    """Return expressions by themselves, which may be wrong, and the topologies of files, which must be right."""
    found: dict[str, Network] = {}
    for source in sources:
        found |= dict(networks_named(source, options, console)) if is_file(source) else {source: source}
    return found


def _store(options: SimpleNamespace) -> Store | None:
    """Return the store of ``--cache``; raise C0085 if it cannot be used, since a sweep could not go on later."""
    if options.cache is None:
        return None
    return opened(os.path.abspath(options.cache[-1]) if options.cache[-1] else default_folder(os.environ))


def _text(found: Sweep) -> str:
    best = {id(row) for row in found.best}
    rows = [("*" if id(row) in best else "", *shown_row(row)) for row in found.rows]
    text = table(rows, head=("", *HEAD), right=(4, 5, 6, 7, 8))
    failed = f", {counted(len(found.failed), 'row')} without a schedule" if found.failed else ""
    return f"{text}* fastest of its network, collective and size{failed}\n"


def _status(found: Sweep) -> int:
    """Return 0 if there is a time, else the highest status of the rows; an internal error has its own always."""
    internal = [row.status for row in found.rows if row.status == 70]
    if internal or len(found.failed) < len(found.rows):
        return max(internal, default=0)
    return max(row.status for row in found.rows)
