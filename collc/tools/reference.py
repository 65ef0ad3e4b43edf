"""The reference of names, ``docs/reference.md``, written from the code.

``python -m collc.tools.reference > docs/reference.md`` writes it, without names of plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from collc.backends import TARGETS
from collc.frontends.coll import FAMILIES, OPERATORS
from collc.frontends.importing.formats import IMPORTS
from collc.passes import PASSES, SCHEDULERS

from ..files.stdout import write_stdout
from ..reading import FORMATS
from ..registry.options import describe
from ..tables.listed import TABLES

__all__ = ["reference_text"]

_HEAD = """# Reference

All passes, schedulers, targets, graph families, operators and file formats of collc, with their options.
The [glossary](glossary.md) defines the words.
`python -m collc.tools.reference > docs/reference.md` writes this file from the code, and a test compares the two.
`collc passes NAME` and the other listings print the same, also for [plugins](../examples/plugin/README.md).

Options stand in braces: `-p 'discretize{max-chunks=8}'` on the command line, `using bfb { relax: false }` in a file.
"""


def reference_text() -> str:
    """Return the whole file."""
    parts = (_HEAD, *_passes(), *_schedulers(), *_targets(), *_topologies(), *_formats(), *_tables())
    return "\n".join(part.rstrip() + "\n" for part in parts)


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
    yield _table(("scheduler", "summary", "collectives", "networks"), rows)
    yield "The options of a scheduler are those of the pass with its name. The options of `auto`, which is no pass:"
    yield _options(SCHEDULERS.load("auto"))


def _targets() -> Iterator[str]:
    yield "## Targets"
    for name in TARGETS.own:
        cls = TARGETS.load(name)
        yield _entry(name, cls.summary, f"Writes `NAME{cls.suffix}`.", cls)


def _topologies() -> Iterator[str]:
    yield "## Graph families"
    yield _table(("family", "summary"), [(f"`{signature}`", text) for signature, text in FAMILIES.values()])
    yield "## Operators on topologies"
    yield _table(("operator", "summary"), [(f"`{signature}`", text) for signature, text in OPERATORS.values()])


def _formats() -> Iterator[str]:
    yield "## Formats"
    listed = FORMATS.own.items()
    rows = [(f"`{name}`", one.summary, ", ".join(f"`{verb}`" for verb in one.verbs)) for name, one in listed]
    yield _table(("format", "summary", "read by `collc`"), rows)
    yield "## Formats to import"
    imported = [(f"`{name}`", one.summary, f"`{one.printed_by}`") for name, one in IMPORTS.own.items()]
    yield _table(("format", "summary", "printed by"), imported)


_TABLES = """## Tables

These verbs print their table as CSV with `--csv`, as Markdown with `--markdown`, and in one object with `--json`.
`--csv=FILE` and `--markdown=FILE` write files. CSV has every column: None is an empty field, flags are 1 and 0, and an
exact rational such as `31/32` stands beside a float. Units stand in the names. `collc schema NAME` prints the JSON
Schema of the objects of `--json`, which have its version in the key `schema`. Keys may be added to a version; none
leaves it.
"""


def _tables() -> Iterator[str]:
    yield _TABLES
    for name, columns in TABLES.items():
        yield f"### {name} (table)\n"
        yield _table(("column", "meaning"), [(f"`{column.key}`", column.help) for column in columns])


def _entry(name: str, summary: str, more: str, cls: type) -> str:
    return "\n".join((f"### {name}\n", f"{summary[0].upper()}{summary[1:]}. {more}\n", _options(cls)))


def _options(cls: type) -> str:
    rows = [(f"`{o.name}`", f"`{o.kind}`", f"`{o.default}`", o.help) for o in describe(cls)]
    return _table(("option", "type", "default", "meaning"), rows) if rows else "It has no options.\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(_cell(text) for text in row) for row in rows]
    return "".join(f"| {line} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)


if __name__ == "__main__":
    write_stdout(reference_text().encode())
