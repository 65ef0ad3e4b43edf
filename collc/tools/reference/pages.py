"""All files of the reference, and what writes them."""

from __future__ import annotations

from pathlib import Path

from ...files.stdout import write_stdout
from .commands import commands_page
from .diagnostics import diagnostics_pages
from .grammar import rules
from .language import FOLDER, grammar_page
from .names import reference_text
from .python import python_page
from .railroads import diagram
from .schemas import schemas_page

__all__ = ["diagrams", "pages", "print_names", "write_reference"]


def pages() -> dict[str, str]:
    """Return the text of every page by its place in the folder of documents."""
    found = {"commands.md": commands_page(), "grammar.md": grammar_page(), "python.md": python_page()}
    found |= {"schemas.md": schemas_page(), **diagnostics_pages()}
    return {"reference.md": reference_text()} | {f"reference/{name}": text for name, text in found.items()}


def diagrams() -> dict[str, str]:
    """Return the railroad diagrams by their place in the folder of documents."""
    return {f"reference/{FOLDER}/{rule.name}.svg": diagram(rule) for rule in rules()}


def write_reference(folder: Path) -> None:
    """Write all files into the folder of documents; those of rules, verbs or codes that are gone are removed."""
    files = pages() | diagrams()
    for old in (folder / "reference").rglob("*.*"):
        if old.relative_to(folder).as_posix() not in files:
            old.unlink()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def print_names() -> None:
    """Print the page of names."""
    write_stdout(reference_text().encode())
