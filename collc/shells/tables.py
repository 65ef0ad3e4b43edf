"""The names that completion offers, by table: each a function, since tables with plugins are read on use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

__all__ = ["TABLES"]


def _targets() -> dict[str, str]:
    from collc.backends import TARGETS

    return {name: entry[2] for name, entry in TARGETS.items()}


def _passes() -> dict[str, str]:
    from collc.passes import PASSES

    return {name: entry[2] for name, entry in PASSES.items()}


def _schedulers() -> dict[str, str]:
    from collc.passes import SCHEDULERS

    return {name: one.summary for name, one in SCHEDULERS.items()}


def _topologies() -> dict[str, str]:
    from collc.frontends.coll import FAMILIES, OPERATORS, brought

    return {name: summary for name, (_, summary) in {**FAMILIES, **brought(), **OPERATORS}.items()}


def _imports() -> dict[str, str]:
    from collc.frontends.importing.formats import IMPORTS

    return {name: one.summary for name, one in IMPORTS.items()}


def _formats() -> dict[str, str]:
    from ..reading import FORMATS

    return {**{name: one.summary for name, one in FORMATS.items()}, **_imports()}


def _codes() -> dict[str, str]:
    from ..messages.explain import all_codes

    return {code: text.partition("\n")[0] for code, text in all_codes().items()}


def _schemas() -> dict[str, str]:
    from ..tables.schemas import DOCUMENTS

    return {name: summary for name, (summary, _) in DOCUMENTS.items()}


def _workloads() -> dict[str, str]:
    from ..training.reading import shipped

    return _named(shipped())


def _collectives() -> dict[str, str]:
    from collc.frontends.coll.kinds import PREDEFINED

    return _named(PREDEFINED)


def _dtypes() -> dict[str, str]:
    from collc.frontends.coll.kinds import DTYPES

    return _named((*DTYPES, "strided"))


def _runtimes() -> dict[str, str]:
    """Return the runtimes that targets know, which are choices of their option ``runtime``."""
    from collc.backends import TARGETS

    from ..registry.classes import target_class
    from ..registry.options import describe

    options = [(name, one) for name in TARGETS.own for one in describe(target_class(name)) if one.name == "runtime"]
    return {word: f"of {name}" for name, one in options for word in one.kind.split("|")}


def _named(names: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(names, "")


#: table -> a function that returns its names with their summaries
TABLES: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "targets": _targets, "passes": _passes, "schedulers": _schedulers, "topologies": _topologies,
    "formats": _formats, "imports": _imports, "codes": _codes, "schemas": _schemas, "workloads": _workloads,
    "collectives": _collectives, "dtypes": _dtypes, "runtimes": _runtimes,
}  # fmt: skip
