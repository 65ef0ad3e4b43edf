"""The names that collc knows, as tables: targets, passes, schedulers, formats, topologies, codes, workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from collc.backends import TARGETS
from collc.frontends.importing.formats import IMPORTS
from collc.ir.diagnostic import error, nearest
from collc.passes import PASSES, SCHEDULERS

from ..reading import FORMATS
from ..tables.columns import Cell, Table
from ..tables.listed import CODES, NAMES, OPTIONS, SCHEDULED, TOPOLOGIES, WORKLOADS

if TYPE_CHECKING:
    from ..registry.options import OptionHelp

__all__ = ["LISTINGS", "described", "known_name", "listing"]


def listing(kind: str, name: str | None = None) -> Table:
    """Return all names of a kind, or the options of one target, pass or scheduler, as a table.

    Raises C0001 for another kind, C0007, C0008 and C0015 for unknown names.

    >>> [row["name"] for row in listing("schedulers").rows][:3]
    ['auto', 'bfb', 'double-binary-tree']
    """
    known_name(kind, LISTINGS, "listing")
    if name is None:
        return LISTINGS[kind]()
    what = {"targets": "target", "passes": "pass", "schedulers": "scheduler"}.get(kind)
    if what is None:
        raise error("C0001", f"{kind} have no options", hint="targets, passes and schedulers have", exit_status=2)
    kinds: Mapping[str, Iterable[str]] = {"target": TARGETS, "pass": PASSES, "scheduler": SCHEDULERS}
    rows: list[dict[str, Cell]] = [
        {"name": one.name, "type": one.kind, "default": one.default, "help": one.help}
        for one in described(known_name(name, kinds[what], what), what)
    ]
    return Table(OPTIONS, rows, f"options of {what} {name}")


def known_name(name: str, names: Iterable[str], what: str) -> str:
    """Return ``name`` if it is one of ``names``, else raise the error of its kind."""
    if name in names:
        return name
    code = {"target": "C0007", "pass": "C0008", "scheduler": "C0015"}.get(what, "C0001")
    renamed = PASSES.hint(name) if what == "pass" and name in PASSES.renamed else None
    hint = renamed or nearest(name, names) or f"known: {', '.join(names)}"
    raise error(code, f"there is no {what} `{name}`", hint=hint, exit_status=2)


def described(name: str, what: str) -> Sequence[OptionHelp]:
    """Return the options of a target, pass or scheduler; those of `auto` are of no pass."""
    from ..registry.classes import pass_class, target_class
    from ..registry.options import describe

    if what == "scheduler" and name not in PASSES:
        from ..selection import Auto

        return describe(Auto)
    return describe(target_class(name) if what == "target" else pass_class(name))


def _names(title: str, summaries: Mapping[str, str]) -> Table:
    return Table(NAMES, [{"name": name, "summary": summary} for name, summary in summaries.items()], title)


def _schedulers() -> Table:
    return Table(SCHEDULED, [
        {"name": name, "summary": one.summary, "collectives": ", ".join(one.collectives), "networks": one.networks}
        for name, one in SCHEDULERS.items()
    ], "schedulers")  # fmt: skip


def _formats() -> Table:
    return _names("formats", {name: one.summary for known in (FORMATS, IMPORTS) for name, one in known.items()})


def _topologies() -> Table:
    from collc.frontends.coll import FAMILIES, OPERATORS, brought

    return Table(TOPOLOGIES, [
        {"name": name, "kind": kind, "signature": signature, "summary": summary}
        for kind, known in (("family", {**FAMILIES, **brought()}), ("operator", OPERATORS))
        for name, (signature, summary) in known.items()
    ], "topologies")  # fmt: skip


def _codes() -> Table:
    from ..messages.explain import all_codes

    rows = [{"code": code, "title": text.partition("\n")[0]} for code, text in all_codes().items()]
    return Table(CODES, rows, "codes")


def _schemas() -> Table:
    from ..tables.schemas import DOCUMENTS

    return _names("schemas", {name: summary for name, (summary, _) in DOCUMENTS.items()})


def _workloads() -> Table:
    from ..training.reading import about, read_workload, shipped, shipped_text

    return Table(WORKLOADS, [about(read_workload(shipped_text(name), name)) for name in shipped()], "workloads")


#: kind -> its table
LISTINGS: Mapping[str, Callable[[], Table]] = {
    "targets": lambda: _names("targets", {name: entry[2] for name, entry in TARGETS.items()}),
    "passes": lambda: _names("passes", {name: entry[2] for name, entry in PASSES.items()}),
    "schedulers": _schedulers, "formats": _formats, "topologies": _topologies, "codes": _codes, "schemas": _schemas,
    "workloads": _workloads,
}  # fmt: skip
