"""``collc targets``, ``passes``, ``topologies``, ``schedulers``, ``formats``: names of tables, which load nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.backends import TARGETS
from collc.frontends.importing.formats import IMPORTS
from collc.passes import PASSES, SCHEDULERS

from ..reading import FORMATS
from ..tables.columns import Table
from ..tables.listed import NAMES, OPTIONS, TOPOLOGIES
from ..tools.listing import described, known_name, listing
from .arguments import usage_error
from .console import Console
from .table import table
from .tabular import show

if TYPE_CHECKING:
    from ..registry.options import OptionHelp

__all__ = ["formats", "passes", "schedulers", "targets", "topologies"]


def targets(options: SimpleNamespace, console: Console) -> int:
    """List the targets, or the options of one."""
    names = {name: entry[2] for name, entry in TARGETS.items()}
    if options.files:
        name = known_name(options.files[0], names, "target")
        return _one("target", name, names[name], described(name, "target"), options, console)
    return _all("targets", names, options, console)


def passes(options: SimpleNamespace, console: Console) -> int:
    """List the passes, or the options of one."""
    names = {name: entry[2] for name, entry in PASSES.items()}
    if options.files:
        name = known_name(options.files[0], names, "pass")
        return _one("pass", name, names[name], described(name, "pass"), options, console)
    return _all("passes", names, options, console)


def schedulers(options: SimpleNamespace, console: Console) -> int:
    """List the schedulers, or the options of one: those of the pass that synthesizes."""
    names = {name: one.summary for name, one in SCHEDULERS.items()}
    if options.files:
        name = known_name(options.files[0], names, "scheduler")
        one = SCHEDULERS[name]
        own = described(name, "scheduler")
        more = {"collectives": list(one.collectives), "networks": one.networks}
        return _one("scheduler", name, names[name], own, options, console, more)
    rows = [
        {"name": name, "summary": one.summary, "collectives": list(one.collectives), "networks": one.networks}
        for name, one in SCHEDULERS.items()
    ]
    lines = [
        line for name, one in SCHEDULERS.items()
        for line in ((name, one.summary), ("", f"takes {', '.join(one.collectives)}"))
    ]  # fmt: skip
    show(options, console, lambda: listing("schedulers"), lambda: {"schedulers": rows}, lambda: table(lines))
    return 0


def formats(options: SimpleNamespace, console: Console) -> int:
    """List the formats of files that verbs read and those that `collc import` reads, or describe one."""
    names = {name: one.summary for name, one in FORMATS.items()}
    imported = {name: one.summary for name, one in IMPORTS.items()}
    if options.files:
        return _format(known_name(options.files[0], {**names, **imported}, "format"), options, console)
    listed = {key: [{"name": n, "summary": text} for n, text in known.items()]
              for key, known in (("formats", names), ("imports", imported))}  # fmt: skip
    title = "\nformats that `collc import` reads:\n"
    show(
        options, console, lambda: listing("formats"), lambda: listed,
        lambda: table(list(names.items())) + title + table(list(imported.items())),
    )  # fmt: skip
    return 0


def _format(name: str, options: SimpleNamespace, console: Console) -> int:
    """Describe one format."""
    if name in FORMATS:
        summary, verbs, more = FORMATS[name].summary, list(FORMATS[name].verbs), dict[str, str]()
    else:
        one = IMPORTS[name]
        summary, verbs = one.summary, ["import"]
        more = {"printed_by": one.printed_by, "describes": "a fabric of hosts" if one.hosts else "a network"}
    lines = [f"{key.replace('_', ' ')}: {value}\n" for key, value in more.items()]
    show(
        options, console, lambda: Table(NAMES, [{"name": name, "summary": summary}]),
        lambda: {"name": name, "summary": summary, "verbs": verbs, **more},
        lambda: f"{name}: {summary}\n\n{''.join(lines)}read by: {', '.join(f'collc {verb}' for verb in verbs)}\n",
    )  # fmt: skip
    return 0


def topologies(options: SimpleNamespace, console: Console) -> int:
    """List the graph families and the operators on topologies with their parameters, or one of them."""
    from collc.frontends.coll import FAMILIES, OPERATORS, brought

    families = {**FAMILIES, **brought()}
    if options.files:
        both = {**families, **OPERATORS}
        if any(mark in options.files[0] for mark in "(./"):
            from shlex import quote

            hint = f"add --as, which writes its network: collc topologies {quote(options.files[0])} --as dot"
            raise usage_error(f"`{options.files[0]}` is an expression or a file, not the name of a family", hint)
        name = known_name(options.files[0], both, "graph family")
        groups, more = {"topologies": {name: both[name]}}, _more(name) if name in FAMILIES else {}
    else:
        groups, more = {"topologies": families, "operators": OPERATORS}, {}
    listed = {
        title: [{"name": n, "signature": s, "summary": text} for n, (s, text) in known.items()]
        for title, known in groups.items()
    }
    rows = [
        {"kind": "operator" if row["name"] in OPERATORS else "family", **row}
        for known in listed.values()
        for row in known
    ]
    texts = [table([(signature, summary) for signature, summary in known.values()]) for known in groups.values()]
    text = "\noperators on topologies:\n".join(texts)
    text += "".join(f"\n{title}:\n" + "".join(f"  {line}\n" for line in lines) for title, lines in more.items())
    show(options, console, lambda: Table(TOPOLOGIES, rows), lambda: {**listed, **more}, lambda: text)
    return 0


def _more(name: str) -> dict[str, list[str]]:
    """Return what the arguments of a family may be, where they are names rather than numbers."""
    from collc.frontends.coll import details

    return details(name)


def _all(key: str, names: Mapping[str, str], options: SimpleNamespace, console: Console) -> int:
    rows = [{"name": name, "summary": summary} for name, summary in names.items()]
    show(options, console, lambda: listing(key), lambda: {key: rows}, lambda: table(list(names.items())))
    return 0


def _one(
    what: str, name: str, summary: str, own: Sequence[OptionHelp], options: SimpleNamespace, console: Console,
    more: Mapping[str, str | Sequence[str]] | None = None,
) -> int:  # fmt: skip
    """Print one of a kind with its options, and what else is known of it (``more``)."""
    listed = [{"name": o.name, "type": o.kind, "default": o.default, "help": o.help} for o in own]
    rows = [(o.name, o.kind, f"default {o.default}" if o.default != "required" else "required", o.help) for o in own]
    text = f"{name}: {summary}\n"
    for key, value in (more or {}).items():
        text += f"{key}: {value if isinstance(value, str) else ', '.join(value)}\n"
    text += f"\noptions:\n{table(rows, indent='  ')}" if rows else f"\nThis {what} has no options.\n"
    show(
        options, console, lambda: Table(OPTIONS, listed),
        lambda: {"name": name, "summary": summary, "options": listed, **(more or {})}, lambda: text,
    )  # fmt: skip
    return 0
