"""The pages of diagnostics: every code with its title and explanation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from textwrap import dedent

from ...messages.explain import ROOMS
from .markdown import fenced, head, page, table

__all__ = ["diagnostics_pages"]

#: part of a page's name -> its title, and the beginnings of the modules whose codes it has
_PAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "command": ("Diagnostics of the command, files and workloads", ("collc.messages", "collc.training")),
    "language": ("Diagnostics of the language", ("collc.frontends.coll",)),
    "import": ("Diagnostics of imported networks", ("collc.frontends.importing",)),
    "schedules": ("Diagnostics of the IR, schedulers and passes", ("collc.ir", "collc.passes")),
    "targets": ("Diagnostics of targets", ("collc.backends",)),
}

#: lines that are indented as code, with blank lines between them
_CODE = re.compile(r"((?:^ {4}.*\n(?:\n(?= {4}))*)+)", re.MULTILINE)

_INDEX = """Every error and warning of collc has a code. `collc explain CODE` prints what this reference says about it.

Messages say what is wrong, what collc found, what it needed, and what to do. The exit status is 1 for errors in the
input, and 2 for wrong usage. It is 3 if no schedule exists within the limits, and 70 for a fault of collc itself."""


def diagnostics_pages() -> dict[str, str]:
    """Return the pages by the name of their file: one of all codes, and one for each part of the compiler."""
    parts = {f"diagnostics-{name}.md": (title, _codes(starts)) for name, (title, starts) in _PAGES.items()}
    rows = sorted(_row(code, text, name) for name, (_, codes) in parts.items() for code, text in codes.items())
    index = page(head("Diagnostics", _INDEX), "## All codes", table(("code", "title"), rows))
    return {"diagnostics.md": index} | {name: _page(title, codes) for name, (title, codes) in parts.items()}


def _codes(starts: tuple[str, ...]) -> dict[str, str]:
    """Return the codes of the modules of a page."""
    modules = [room for room in ROOMS if room.startswith(starts)]
    return {code: text for room in modules for code, text in sorted(import_module(room).CODES.items())}


def _row(code: str, text: str, name: str) -> tuple[str, str]:
    return f"[{code}]({name}#{code.lower()})", text.partition("\n")[0]


def _page(title: str, codes: Mapping[str, str]) -> str:
    text = "`collc explain CODE` prints the same. [All codes](diagnostics.md) lists those of the other parts."
    return page(head(title, text), *(part for code in sorted(codes) for part in _entry(code, codes[code])))


def _entry(code: str, text: str) -> Iterator[str]:
    title, _, rest = text.partition("\n")
    yield f"## {code}"
    yield f"**{title[:1].upper()}{title[1:]}.**"
    for place, block in enumerate(_CODE.split(f"{rest.strip(chr(10))}\n")):
        if block.strip():
            yield fenced("text", dedent(block)) if place % 2 else block.strip("\n")
