"""``collc targets``, ``passes``, ``topologies``, ``schedulers``: names from the registries, which load nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from collc.backends import TARGETS
from collc.passes import PASSES, SCHEDULERS

from .arguments import usage_error
from .console import Console
from .table import table

__all__ = ["passes", "schedulers", "targets", "topologies"]


def targets(options: SimpleNamespace, console: Console) -> int:
    """List the targets, or the options of one."""
    names = {name: entry[2] for name, entry in TARGETS.items()}
    if options.files:
        name = _known(options.files[0], names, "target")
        return _one("target", name, names[name], _described(name, "target"), options, console)
    return _all("targets", names, options, console)


def passes(options: SimpleNamespace, console: Console) -> int:
    """List the passes, or the options of one."""
    names = {name: entry[2] for name, entry in PASSES.items()}
    if options.files:
        name = _known(options.files[0], names, "pass")
        return _one("pass", name, names[name], _described(name, "pass"), options, console)
    return _all("passes", names, options, console)


def schedulers(options: SimpleNamespace, console: Console) -> int:
    """List the schedulers, or the options of one: those of the pass that synthesizes."""
    names = {name: entry[1] for name, entry in SCHEDULERS.items()}
    if options.files:
        name = _known(options.files[0], names, "scheduler")
        described = _auto() if name == "auto" else _described(SCHEDULERS[name][0], "pass")
        return _one("scheduler", name, names[name], described, options, console)
    return _all("schedulers", names, options, console)


def topologies(options: SimpleNamespace, console: Console) -> int:
    """List the graph families and the operators on topologies with their parameters, or one of them."""
    from collc.frontends.coll import FAMILIES, OPERATORS

    if options.files:
        both = {**FAMILIES, **OPERATORS}
        name = _known(options.files[0], both, "graph family")
        groups, more = {"topologies": {name: both[name]}}, _more(name) if name in FAMILIES else {}
    else:
        groups, more = {"topologies": FAMILIES, "operators": OPERATORS}, {}
    if options.json:
        listed = {
            title: [{"name": n, "signature": s, "summary": text} for n, (s, text) in known.items()]
            for title, known in groups.items()
        }
        console.json({**listed, **more})
        return 0
    texts = [table([(signature, summary) for signature, summary in known.values()]) for known in groups.values()]
    console.out("\noperators on topologies:\n".join(texts))
    for title, lines in more.items():
        console.out(f"\n{title}:\n" + "".join(f"  {line}\n" for line in lines))
    return 0


def _more(name: str) -> dict[str, list[str]]:
    """Return what the arguments of a family may be, where they are names rather than numbers."""
    from collc.frontends.coll import details

    return details(name)


def _known(name: str, names: Mapping[str, Any], what: str) -> str:
    """Return ``name`` if it is one of ``names``, else raise the error of its kind."""
    if name in names:
        return name
    from collc.ir.diagnostic import nearest

    code = {"target": "C0007", "pass": "C0008", "scheduler": "C0015"}.get(what, "C0001")
    raise usage_error(f"there is no {what} `{name}`", nearest(name, names) or f"known: {', '.join(names)}", code)


def _described(name: str, what: str) -> Sequence[Any]:
    from ..options import describe
    from ..registry import pass_class, target_class

    return describe(target_class(name) if what == "target" else pass_class(name))


def _auto() -> Sequence[Any]:
    """Return the options of the one scheduler that is no pass."""
    from ..options import describe
    from ..selection import Auto

    return describe(Auto)


def _all(key: str, names: Mapping[str, str], options: SimpleNamespace, console: Console) -> int:
    if options.json:
        console.json({key: [{"name": name, "summary": summary} for name, summary in names.items()]})
    else:
        console.out(table(list(names.items())))
    return 0


def _one(
    what: str, name: str, summary: str, described: Sequence[Any], options: SimpleNamespace, console: Console
) -> int:
    if options.json:
        listed = [{"name": o.name, "type": o.kind, "default": o.default, "help": o.help} for o in described]
        console.json({"name": name, "summary": summary, "options": listed})
        return 0
    rows = [
        (o.name, o.kind, f"default {o.default}" if o.default != "required" else "required", o.help) for o in described
    ]
    text = f"{name}: {summary}\n"
    text += f"\noptions:\n{table(rows, indent='  ')}" if rows else f"\nThis {what} has no options.\n"
    console.out(text)
    return 0
