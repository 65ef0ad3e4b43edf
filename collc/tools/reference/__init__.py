"""The reference, written from the code: names, command line, grammar, diagnostics, schemas, Python API.

``python -m collc.tools.reference -o docs`` writes ``docs/reference.md`` and the folder ``docs/reference``;
``python -m collc.tools.reference`` prints the page of names.
"""

from __future__ import annotations

from .names import reference_text
from .pages import diagrams, pages, print_names, write_reference

__all__ = ["diagrams", "pages", "print_names", "reference_text", "write_reference"]
