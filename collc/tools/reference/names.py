"""The reference of names, ``docs/reference.md``: what has a name and options, without the names of plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from collc.backends import TARGETS
from collc.frontends.coll import FAMILIES, OPERATORS
from collc.frontends.importing.formats import IMPORTS
from collc.passes import PASSES, SCHEDULERS

from ...reading import FORMATS
from ...registry.options import describe
from ...tables.every import TABLES
from .markdown import page, table

__all__ = ["reference_text"]

_HEAD = """# Reference

All passes, schedulers, targets, graph families, operators and file formats of collc, with their options.
The [glossary](glossary.md) defines the words.
`python -m collc.tools.reference -o docs` writes this file from the code, and a test compares the two.
`collc passes NAME` and the other listings print the same, also for [plugins](../examples/plugin/README.md).

Options are in braces: `-p 'discretize{max-chunks=8}'` on the command line, `using bfb { relax: false }` in a file.
"""


def reference_text() -> str:
    """Return the whole file."""
    return page(_HEAD, *_passes(), *_schedulers(), *_targets(), *_topologies(), *_formats(), *_tables())


def _passes() -> Iterator[str]:
    yield "## Passes"
    for name in PASSES.own:
        cls = PASSES.load(name)
        takes = cls.takes if isinstance(cls.takes, tuple) else (cls.takes,)
        levels = f"Takes {_either(kind.__name__ for kind in takes)}, gives {cls.gives.__name__}"
        needs = f"; needs it {', '.join(cls.requires)}" if cls.requires else ""
        leaves = f"; leaves it {', '.join(cls.establishes)}" if cls.establishes else ""
        yield _entry(name, cls.summary, f"{levels}{needs}{leaves}.", cls)


def _schedulers() -> Iterator[str]:
    yield "## Schedulers"
    listed = SCHEDULERS.own.items()
    rows = [(f"`{name}`", one.summary, ", ".join(one.collectives), one.networks) for name, one in listed]
    yield table(("scheduler", "summary", "collectives", "networks"), rows)
    yield "The options of a scheduler are those of the pass with its name. The options of `auto`, which is no pass:"
    yield _options(SCHEDULERS.load("auto"))


def _targets() -> Iterator[str]:
    yield "## Targets"
    for name in TARGETS.own:
        cls = TARGETS.load(name)
        yield _entry(name, cls.summary, f"Writes `NAME{cls.suffix}`.", cls)


def _topologies() -> Iterator[str]:
    yield "## Graph families"
    yield table(("family", "summary"), [(f"`{signature}`", text) for signature, text in FAMILIES.values()])
    yield "## Operators on topologies"
    yield table(("operator", "summary"), [(f"`{signature}`", text) for signature, text in OPERATORS.values()])


def _formats() -> Iterator[str]:
    yield "## Formats"
    listed = FORMATS.own.items()
    rows = [(f"`{name}`", one.summary, ", ".join(f"`{verb}`" for verb in one.verbs)) for name, one in listed]
    yield table(("format", "summary", "read by `collc`"), rows)
    yield "## Formats to import"
    imported = [(f"`{name}`", one.summary, f"`{one.printed_by}`") for name, one in IMPORTS.own.items()]
    yield table(("format", "summary", "printed by"), imported)


_TABLES = """## Tables

These verbs print their table as CSV with `--csv`, as Markdown with `--markdown`, and in one object with `--json`.
`--csv=FILE` and `--markdown=FILE` write files. A verb with several tables takes `--table NAME`: these forms, or text
without them, then show that table. JSON has all tables. CSV has every column: None is an empty field, flags are 1 and
0, and an exact rational such as `31/32` is next to a float. Units are in the names. `collc schema NAME` prints the
JSON Schema of the objects of `--json`, which have its version in the key `schema`. Keys may be added to a version;
none leaves it.
"""


def _tables() -> Iterator[str]:
    yield _TABLES
    for name, columns in TABLES.items():
        yield f"### {name} (table)\n"
        yield table(("column", "meaning"), [(f"`{column.key}`", column.help) for column in columns])


def _entry(name: str, summary: str, more: str, cls: type) -> str:
    return "\n".join((f"### {name}\n", f"{summary[0].upper()}{summary[1:]}. {more}\n", _options(cls)))


def _options(cls: type) -> str:
    rows = [(f"`{o.name}`", f"`{o.kind}`", f"`{o.default}`", o.help) for o in describe(cls)]
    return table(("option", "type", "default", "meaning"), rows) if rows else "It has no options.\n"


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)
