"""The JSON Schemas that are shipped in ``collc/share/schemas``, written from the code.

``python -m collc.tools.schemas FOLDER`` writes a file for every document.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ..tables.schemas import DOCUMENTS, schema

__all__ = ["schema_text", "write_schemas"]


def schema_text(name: str) -> str:
    """Return the file of a document's schema.

    >>> schema_text("find").startswith('{\\n  "$schema": "https://json-schema.org/')
    True
    """
    return json.dumps(schema(name), indent=2) + "\n"


def write_schemas(folder: Path) -> None:
    """Write ``NAME.json`` for every document into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in DOCUMENTS:
        (folder / f"{name}.json").write_text(schema_text(name))


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
