"""Text of Markdown pages that code forges and Sphinx show alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["anchor", "cell", "fenced", "head", "page", "table"]


def page(*parts: str) -> str:
    """Return parts as one page: each ends with one line break, and a blank line stands between two."""
    return "\n".join(part.rstrip() + "\n" for part in parts)


def head(title: str, text: str, above: str = "..") -> str:
    """Return how every page begins: its title, what it is for, and what writes it."""
    return f"""# {title}

{text}

The [glossary]({above}/glossary.md) defines the words. `python -m collc.tools.reference -o docs` writes this page from
the code, and a test compares the two.
"""


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table.

    >>> print(table(("option", "meaning"), [("`a`", "x | y")]), end="")
    | option | meaning |
    | --- | --- |
    | `a` | x \\| y |
    """
    lines = [" | ".join(names), " | ".join("---" for _ in names)]
    lines += [" | ".join(cell(text) for text in row) for row in rows]
    return "".join(f"| {line} |\n" for line in lines)


def cell(text: str) -> str:
    """Return a text as one line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def fenced(language: str, text: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.strip(chr(10))}\n```\n"


def anchor(heading: str) -> str:
    """Return the anchor of a heading.

    >>> anchor("`collc cost`"), anchor("C0501")
    ('collc-cost', 'c0501')
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
